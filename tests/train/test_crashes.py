"""A training cut off at any of its file operations: the folder holds the old model or a new one."""

import json
import os
import shutil
from functools import cache, partial

import pytest
import torch

from ncrf import Tagger
from ncrf.cli import main
from ncrf.config import load_config
from ncrf.data.alphabet import Alphabet
from ncrf.data.normalization import Normalization
from ncrf.data.vocabulary import LabelScheme, Vocabulary
from ncrf.errors import InputError, NcrfError
from ncrf.model import folder
from ncrf.train import checkpoint, folder_lock
from tests.conftest import SAMPLE, small_keys
from tests.faults import Disk, crashes, failing, largest_file, operations_of

OLD, FIRST, THIRD = 10.0, 1.0, 3.0  # the values of the weights
NEW_SIZE, OLD_SIZE = 20, 30
FILES = {"config.yaml", "alphabets.json", "model.safetensors", "history.jsonl", "manifest.json"}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """The same few texts are written and read a thousand times; PyYAML and disks are slow."""
    for name in ("config_text", "parse_model_config"):
        monkeypatch.setattr(folder, name, cache(getattr(folder, name)))
    monkeypatch.setattr(os, "fsync", lambda number: None)


@cache
def vocabulary(word):
    return Vocabulary(
        words=Alphabet([word], [1]),
        characters=Alphabet(["a"], [1]),
        features={},
        labels=Alphabet(["B-X", "O"], [1, 1], ()),
        scheme=LabelScheme("IOB2", "IOB2"),
        normalization=Normalization(),
    )


@cache
def config(size):
    return load_config({"hidden_dim": size}, check_files=False)


def history(*epochs):
    return [{"epoch": epoch} for epoch in epochs]


def weights(value):
    return {"weights": torch.full((40,), value)}


def write_state(place, epoch):
    folder.write_tensors(place / checkpoint.STATE, {"epoch": torch.tensor(epoch)}, {"a": "b"})


def train(place, *, vectors=None, size=NEW_SIZE, overwrite=True):
    """What a training writes: three epochs, of which the first and the third are the best."""
    check = partial(checkpoint.check_folder, place, resume=False, overwrite=overwrite)
    with folder_lock.held(place, check):
        checkpoint.begin(place, config(size), vocabulary("new"))
        for epoch in (1, 2, 3):
            if epoch != 2:
                checkpoint.publish(place, weights(float(epoch)))
            write_state(place, epoch)
            checkpoint.write_history(place, history(*range(1, epoch + 1)))
        checkpoint.publish(place)
        checkpoint.finish(place, vectors)


def write_old(place, *, vectors=b"old vectors"):
    files = folder.description_files(config(OLD_SIZE), vocabulary("old"))
    files["vectors.safetensors"] = vectors
    files["history.jsonl"] = b'{"epoch": 7}\n'
    files["model.safetensors"] = folder.tensor_bytes(weights(OLD))
    folder.write_model(place, files)


def value_of(place):
    """The weights of a folder's model, after a check that all of its files go together."""
    found, words = folder.read_description(place)
    (value,) = set(folder.read_tensors(place / "model.safetensors")["weights"].tolist())
    size = found.word_layer.hidden_dim
    epochs = [json.loads(line)["epoch"] for line in folder.history_of(place).splitlines()]
    if value == OLD:
        assert (size, words, epochs) == (OLD_SIZE, vocabulary("old"), [7])
        assert folder.read_file(place / "vectors.safetensors") == b"old vectors"
    else:
        assert (size, words) == (NEW_SIZE, vocabulary("new"))
        assert epochs in ([], [1], [1, 2], [1, 2, 3])
        if folder.has(place, "vectors.safetensors"):
            assert folder.read_file(place / "vectors.safetensors") == b"new vectors"
    return value


def epoch_of(place):
    """The epoch that ``resume`` would go on from; 0 where it would begin, -1 where it is done."""
    if not checkpoint.can_resume(place):
        return 0 if checkpoint.folder_state(place) != "finished" else -1
    path = place / checkpoint.STATE
    assert folder.read_metadata(path) == {"a": "b"}
    folder.read_description(place / "training")
    return int(folder.read_tensors(path)["epoch"])


class TestAProcessThatIsKilled:
    @pytest.mark.parametrize(
        "vectors", [pytest.param(None, marks=pytest.mark.slow), b"new vectors"]
    )
    def test_over_an_old_model(self, tmp_path, monkeypatch, vectors):
        place = tmp_path / "model"
        write_old(place)
        places = crashes(
            lambda: train(place, vectors=vectors), place, tmp_path / "snapshots", monkeypatch
        )
        values = [value_of(snapshot) for snapshot in places]
        assert values == sorted(values, key=[OLD, FIRST, THIRD].index)
        assert set(values) == {OLD, FIRST, THIRD} and len(values) > 100
        epochs = [epoch_of(snapshot) for snapshot in places]
        assert epochs[0] == epochs[-1] == -1
        running = [epoch for epoch in epochs if epoch >= 0]
        assert running == sorted(running) and set(running) == {0, 1, 2, 3}

    def test_in_a_new_folder(self, tmp_path, monkeypatch):
        place = tmp_path / "model"
        place.mkdir()
        places = crashes(lambda: train(place), place, tmp_path / "snapshots", monkeypatch)
        values = []
        for snapshot in places:
            if (snapshot / "model.safetensors").exists():
                values.append(value_of(snapshot))
            else:
                assert not values
                assert checkpoint.folder_state(snapshot) in ("absent", "unfinished")
        assert values == sorted(values) and set(values) == {FIRST, THIRD}

    def test_whoever_comes_after_makes_it_whole(self, tmp_path, monkeypatch):
        """The next training finds every state that a killed one can leave, and ends as usual."""
        place = tmp_path / "model"
        write_old(place)
        places = crashes(lambda: train(place), place, tmp_path / "snapshots", monkeypatch)
        for snapshot in places[::8]:
            (snapshot / "lock.json").unlink(missing_ok=True)  # of a process that still runs: this
            train(snapshot)
            assert value_of(snapshot) == THIRD
            assert {path.name for path in snapshot.iterdir()} == FILES

    def test_a_saved_model_is_there_or_not(self, tmp_path, monkeypatch):
        place = tmp_path / "model"
        place.mkdir()
        places = crashes(lambda: write_old(place), place, tmp_path / "snapshots", monkeypatch)
        there = [checkpoint.folder_state(snapshot) == "finished" for snapshot in places]
        assert there == sorted(there) and set(there) == {False, True}
        for snapshot, whole in zip(places, there, strict=True):
            if whole:
                assert value_of(snapshot) == OLD
            else:
                with pytest.raises(InputError):
                    folder.read_description(snapshot)


class TestAFullDisk:
    @pytest.mark.parametrize(
        ("ever_after", "step"),
        [
            pytest.param(False, 1, marks=pytest.mark.slow),
            pytest.param(True, 1, marks=pytest.mark.slow),
            (False, 4),
            (True, 9),
        ],
    )
    def test_at_every_operation(self, tmp_path, monkeypatch, ever_after, step):
        old = tmp_path / "old"
        write_old(old)
        place = tmp_path / "model"
        copy = partial(shutil.copytree, old, place, copy_function=os.link)
        copy()
        count = len(operations_of(lambda: train(place), place, monkeypatch))
        failed = 0
        for number in range(0, count, step):
            shutil.rmtree(place)
            copy()
            disk = Disk(place, failing(number, ever_after=ever_after))
            with disk.watched(monkeypatch):
                try:
                    train(place)
                except NcrfError as error:
                    failed += 1
                    assert str(error).startswith(str(place)), disk.operations[number]
                    assert "No space left" in str(error)
            assert value_of(place) in (OLD, FIRST, THIRD)
            assert not (place / "lock.json").exists() or "lock.json" in disk.operations[number]
            assert epoch_of(place) in (-1, 0, 1, 2, 3)
        assert failed > 0.8 * count / step

    def test_of_a_saved_model_nothing_stays(self, tmp_path, monkeypatch):
        place = tmp_path / "new" / "model"
        count = len(operations_of(lambda: write_old(place), tmp_path, monkeypatch))
        for number in range(count):
            shutil.rmtree(tmp_path / "new")
            with Disk(tmp_path, failing(number)).watched(monkeypatch) as disk:
                try:
                    write_old(place)
                except NcrfError as error:
                    assert "No space left" in str(error)
            if place.exists():  # it failed when all was done, but for the names
                assert "rename" in disk.operations[number] or disk.operations[number] == "fsync"
                assert value_of(place) == OLD
            else:
                assert not (tmp_path / "new").exists(), disk.operations[number]
                (tmp_path / "new").mkdir()


class TestALimitOfTheSystem:
    """The same by the system itself: files that may not grow beyond some size."""

    def test_in_training(self, tmp_path):
        Tagger.train(small_keys(tmp_path / "model", iteration=1))
        before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
        limit = len(before["model.safetensors"]) // 2
        message = r"model\.safetensors: cannot be written: File too large"
        with pytest.raises(NcrfError, match=message), largest_file(limit):
            Tagger.train(small_keys(tmp_path / "model", iteration=1, overwrite=True, seed=3))
        after = {p.name: p.read_bytes() for p in (tmp_path / "model").iterdir() if p.is_file()}
        assert after == before

    def test_in_decoding(self, trained, tmp_path, capsys):
        (tmp_path / "out").write_text("of yesterday")
        arguments = ["--raw", SAMPLE / "raw.bioes", "--loadmodel", trained]
        arguments += ["--output", tmp_path / "out"]
        with largest_file(1000):
            status = main(["decode", *map(str, arguments)])
        assert status == 1
        last = capsys.readouterr().err.splitlines()[-1]
        assert last == f"ncrf: {tmp_path / 'out'}: cannot be written: File too large"
        assert [path.name for path in tmp_path.iterdir()] == ["out"]
        assert (tmp_path / "out").read_text() == "of yesterday"


def test_each_epoch_writes_what_has_changed_and_no_more(tmp_path, monkeypatch):
    place = tmp_path / "model"
    place.mkdir()
    operations = operations_of(lambda: train(place), place, monkeypatch)
    renamed = [what.rpartition("/")[2] for what in operations if what.startswith("os.rename")]
    assert renamed.count(".alphabets.json.next") == 2  # for training/ and for the folder
    assert renamed.count(".state.safetensors.next") == 3
    assert renamed.count(".model.safetensors.next") == 2
