"""One training at a time in a model folder; locks of trainings that are gone do not count."""

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace

import pytest

from ncrf import Tagger
from ncrf.cli import main
from ncrf.errors import InputError, NcrfError
from ncrf.train import folder_lock
from ncrf.train.folder_lock import LOCK, Owner, held, refuse_locked
from tests.conftest import small_keys


def nothing():
    """No objection to the folder."""


def write_lock(folder, **changes):
    folder.mkdir(exist_ok=True)
    owner = replace(Owner.this(), **changes)
    (folder / LOCK).write_text(json.dumps(asdict(owner)))
    return owner


@pytest.fixture
def sleeper():
    """Another process that runs, and its start time."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process.pid, folder_lock._start_of(process.pid)
        process.kill()


class TestWhoHasIt:
    def test_it_names_this_process_and_goes_at_the_end(self, tmp_path):
        with held(tmp_path / "model", nothing):
            lock = json.loads((tmp_path / "model" / LOCK).read_text())
            assert (lock["pid"], lock["host"]) == (os.getpid(), socket.gethostname())
        assert not (tmp_path / "model").exists()  # nothing came into it

    def test_it_goes_when_the_training_fails(self, tmp_path):
        (tmp_path / "model").mkdir()
        with pytest.raises(ZeroDivisionError), held(tmp_path / "model", nothing):
            _ = 1 / 0
        assert list((tmp_path / "model").iterdir()) == []

    def test_a_process_that_runs(self, tmp_path, sleeper):
        pid, began = sleeper
        owner = write_lock(tmp_path, pid=pid, began=began)
        message = rf"^{tmp_path}: is in use by the training of process {pid}, since {owner.since}"
        with pytest.raises(InputError, match=message), held(tmp_path, nothing):
            pass
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == pid

    def test_a_process_that_is_no_more(self, tmp_path, caplog):
        process = subprocess.Popen(["true"])
        process.wait()
        write_lock(tmp_path, pid=process.pid, began="1")
        with caplog.at_level("INFO", "ncrf"), held(tmp_path, nothing):
            assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
        assert f"lock of process {process.pid}, which is gone, is taken over" in caplog.text

    def test_a_process_that_was_killed_and_is_not_waited_for(self, tmp_path, sleeper):
        pid, began = sleeper
        write_lock(tmp_path, pid=pid, began=began)
        os.kill(pid, 9)
        deadline = time.monotonic() + 10
        while folder_lock._start_of(pid) != "never" and time.monotonic() < deadline:
            time.sleep(0.01)
        refuse_locked(tmp_path)

    def test_the_number_of_another_process_by_now(self, tmp_path, sleeper):
        pid, began = sleeper
        write_lock(tmp_path, pid=pid, began=str(int(began) - 1))
        refuse_locked(tmp_path)

    def test_the_machine_was_started_anew(self, tmp_path, sleeper):
        pid, began = sleeper
        write_lock(tmp_path, pid=pid, began=began, machine="another-boot pid:[1]")
        refuse_locked(tmp_path)

    @pytest.mark.parametrize("other", ["host", "container"])
    def test_another_machine_cannot_be_asked(self, tmp_path, other):
        boot = folder_lock._machine().split()[0]
        changes = {"host": "elsewhere"} if other == "host" else {"machine": f"{boot} pid:[1]"}
        owner = write_lock(tmp_path, pid=4711, **changes)
        message = rf"process 4711 on {owner.host}, since .*if it does not run .* remove .*{LOCK}"
        with pytest.raises(InputError, match=message), held(tmp_path, nothing):
            pass

    def test_an_empty_lock_was_never_finished(self, tmp_path):
        (tmp_path / LOCK).touch()
        with held(tmp_path, nothing):
            pass

    @pytest.mark.parametrize("content", ["{", "[]", '{"pid": 1}', "7", "[" * 50_000])
    def test_what_is_no_lock_stays(self, tmp_path, content):
        (tmp_path / LOCK).write_text(content)
        with (
            pytest.raises(InputError, match=f"{LOCK}: is no lock of ncrf"),
            held(tmp_path, nothing),
        ):
            pass
        assert (tmp_path / LOCK).read_text() == content

    def test_a_lock_of_this_process_that_no_thread_holds(self, tmp_path):
        write_lock(tmp_path)
        with held(tmp_path, nothing):
            pass


def test_an_objection_touches_nothing(tmp_path):
    def object_to_it():
        raise InputError("no")

    with pytest.raises(InputError), held(tmp_path / "a" / "model", object_to_it):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_cannot_be_written(tmp_path, monkeypatch):
    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    message = f"{LOCK}: cannot be written: No space left"
    with pytest.raises(NcrfError, match=message), held(tmp_path / "model", nothing):
        pass
    assert list(tmp_path.iterdir()) == []


def test_of_many_threads_one_at_a_time(tmp_path):
    """Each has it once, whatever the moments at which they come; two never have it at once."""
    inside, most, refused = [], [], 0
    lock = threading.Lock()

    def work():
        nonlocal refused
        for _ in range(1000):
            try:
                with held(tmp_path / "model", nothing):
                    inside.append(1)
                    most.append(len(inside))
                    time.sleep(0.002)
                    inside.pop()
                return
            except InputError as error:
                assert f"process {os.getpid()} (this one)" in str(error)
                with lock:
                    refused += 1
                time.sleep(0.001)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 6 and refused


def _take_over(folder, start, ends, won):
    start.wait()
    try:
        with held(folder, nothing):
            won.put(os.getpid())
            ends.wait(20)
    except InputError:
        won.put(0)


def test_of_many_processes_one_takes_a_stale_lock(tmp_path):
    context = multiprocessing.get_context("fork")
    process = subprocess.Popen(["true"])
    process.wait()
    write_lock(tmp_path, pid=process.pid, began="1")
    start, ends, won = context.Event(), context.Event(), context.Queue()
    processes = [
        context.Process(target=_take_over, args=(tmp_path, start, ends, won)) for _ in range(6)
    ]
    for one in processes:
        one.start()
    start.set()
    answers = [won.get(timeout=20) for _ in processes]
    ends.set()
    for one in processes:
        one.join()
    assert sum(answer != 0 for answer in answers) == 1
    assert not (tmp_path / LOCK).exists()


class TestTraining:
    def test_a_second_one_is_refused_by_name(self, tmp_path, sleeper, capsys):
        pid, began = sleeper
        write_lock(tmp_path / "model", pid=pid, began=began)
        keys = small_keys(tmp_path / "model", overwrite=True, iteration=1)
        status = main(["train", *(f"--{key}={value}" for key, value in keys.items())])
        error = capsys.readouterr().err.splitlines()[-1]
        assert status == 2
        assert error.startswith(f"ncrf: {tmp_path / 'model'}: is in use by the training of ")
        assert f"process {pid}" in error
        assert [path.name for path in (tmp_path / "model").iterdir()] == [LOCK]

    def test_two_threads_of_one_process(self, tmp_path, monkeypatch):
        began, goes_on = threading.Event(), threading.Event()
        from ncrf.train import training

        read = training._read_corpus

        def slow(*arguments):
            began.set()
            assert goes_on.wait(20)
            return read(*arguments)

        monkeypatch.setattr(training, "_read_corpus", slow)
        keys = small_keys(tmp_path / "model", iteration=1)
        first = threading.Thread(target=Tagger.train, args=(keys,))
        first.start()
        assert began.wait(20)
        with pytest.raises(InputError, match=rf"process {os.getpid()} \(this one\)"):
            Tagger.train(keys)
        goes_on.set()
        first.join()
        assert not (tmp_path / "model" / LOCK).exists()
        Tagger.load(tmp_path / "model")

    def test_a_model_is_not_saved_into_a_training(self, tmp_path, tagger, sleeper):
        pid, began = sleeper
        write_lock(tmp_path / "model", pid=pid, began=began)
        with pytest.raises(InputError, match="is in use"):
            tagger.save(tmp_path / "model")

    def test_input_at_fault_leaves_no_folder(self, tmp_path):
        (tmp_path / "train").write_text("Anna O\nBo\n")
        keys = {"train_dir": str(tmp_path / "train"), "dev_dir": None}
        with pytest.raises(InputError, match="train:2"):
            Tagger.train(small_keys(tmp_path / "a" / "model", **keys))
        assert [path.name for path in tmp_path.iterdir()] == ["train"]

    def test_a_lock_that_was_left_behind_is_no_obstacle(self, tmp_path):
        process = subprocess.Popen([sys.executable, "-c", ""])
        process.wait()
        write_lock(tmp_path / "model", pid=process.pid)
        Tagger.train(small_keys(tmp_path / "model", iteration=1))
        assert not (tmp_path / "model" / LOCK).exists()
