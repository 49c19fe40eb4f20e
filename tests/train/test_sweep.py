"""Sweeps from end to end, with real trainings of a few sentences."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ncrf import Tagger
from ncrf.cli import main
from ncrf.train.checkpoint import write_history
from tests.conftest import ROOT, SAMPLE

SENTENCES = 30
KEYS = {
    "iteration": 15,
    "optimizer": "Adam",
    "batch_size": 5,
    "hidden_dim": 8,
    "char_hidden_dim": 4,
    "char_emb_dim": 4,
    "word_emb_dim": 8,
    "threads": 1,
}
FOLDER = Path("runs/sweep/ner")


def prepare(folder, **keys):
    """A config in ``folder`` and the beginning of the sample corpora."""
    for name in ("train", "dev", "test"):
        blocks = (SAMPLE / f"{name}.bioes").read_text(encoding="utf-8").split("\n\n")[:SENTENCES]
        (folder / f"{name}.txt").write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
    keys = {f"{name}_dir": f"{name}.txt" for name in ("train", "dev", "test")} | KEYS | keys
    text = "".join(f"{key}={value}\n" for key, value in keys.items())
    (folder / "ner.config").write_text(text, encoding="utf-8")


def records(folder=FOLDER):
    lines = (folder / "results.jsonl").read_text(encoding="ascii").splitlines()
    return [json.loads(line) for line in lines]


def state(folder):
    """Everything in a folder, with its time of change."""
    return {str(p): p.stat().st_mtime_ns for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A folder in which two good runs and a bad one were tried, and what was printed."""
    folder = tmp_path_factory.mktemp("swept")
    prepare(folder)
    command = ["sweep", "ner.config", "--learning_rate", "0.03,0.05,1e30", "--jobs", "3"]
    return folder, call(folder, *command)


def call(folder, *arguments):
    return subprocess.run(program(*arguments), cwd=folder, capture_output=True, text=True)


def program(*arguments):
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from ncrf.cli import main\n"
    code += "status = main(sys.argv[1:]); assert 'torch' not in sys.modules; sys.exit(status)"
    return [sys.executable, "-c", code, *arguments]


@pytest.fixture
def again(swept, tmp_path, monkeypatch):
    """A copy of that folder to work in, and its path."""
    shutil.copytree(swept[0], tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


GOOD = ["sweep", "ner.config", "--learning_rate", "0.03,0.05"]


class TestFirstCall:
    def test_a_line_for_each_run_and_the_failed_one_stops_no_other(self, swept):
        _, done = swept
        lines = [line for line in done.stdout.splitlines() if line.startswith("runs/")]
        assert len(lines) == 2 and all(" of 15, " in line for line in lines)
        failures = [line for line in done.stderr.splitlines() if "failed" in line]
        assert len(failures) == 1 and done.returncode == 1
        assert failures[0].startswith("ncrf: runs/sweep/ner/learning_rate=1e+30,seed=42: failed: ")
        assert "not finite" in failures[0] or "the loss is" in failures[0]

    def test_every_finished_run_is_recorded(self, swept):
        folder, _ = swept
        found = records(folder / FOLDER)
        assert {r["settings"]["learning_rate"] for r in found} == {0.03, 0.05}
        for record in found:
            model = folder / FOLDER / record["run"]
            tagger = Tagger.load(model, word_emb_dir=None)
            for name in ("dev", "test"):
                score = tagger.evaluate(folder / f"{name}.txt")
                assert score.f1 > 0
                assert record[name]["f1"] == pytest.approx(score.f1)
                assert record[name]["accuracy"] == pytest.approx(score.accuracy)
            assert record["wall_seconds"] > record["seconds"] > 0
            assert record["machine"].endswith("1 thread") and record["seed"] == 42

    def test_the_table_is_printed_and_written(self, swept):
        folder, done = swept
        page = (folder / FOLDER / "results.md").read_text(encoding="utf-8")
        assert done.stdout.endswith(page)
        assert page.count("| ner.config |") == 2 and "1e+30" not in page


class TestSecondCall:
    def test_nothing_is_trained_twice(self, again, capsys):
        before = state(again / FOLDER)
        assert main(GOOD) == 0
        out, err = capsys.readouterr()
        assert "2 runs: 2 finished before, 0 to do" in err and out.startswith("\n# Sweep of")
        after = state(again / FOLDER)
        assert {k: v for k, v in before.items() if "results.md" not in k and ".lock" not in k} == {
            k: v for k, v in after.items() if "results.md" not in k and ".lock" not in k
        }

    def test_the_table_alone(self, again, capsys):
        assert main([*GOOD, "--report-only"]) == 0
        out, err = capsys.readouterr()
        assert out.count("| ner.config |") == 2 and "missing" not in err

    def test_the_table_says_which_runs_are_missing(self, again, capsys):
        assert main([*GOOD, "--seeds", "42,7", "--report-only"]) == 0
        out, err = capsys.readouterr()
        assert out.count("| ner.config |") == 2
        assert "ncrf: 2 of 4 runs are missing: " in err and "seed=7, ..." in err

    def test_several_configs_stand_in_one_table(self, again, capsys):
        shutil.copy("ner.config", "pos.config")
        shutil.copytree(FOLDER, FOLDER.parent / "pos")
        assert main(["sweep", "pos.config", "./ner.config", "--report-only"]) == 0
        page = (FOLDER.parent / "results.md").read_text(encoding="utf-8")
        assert capsys.readouterr().out.endswith(page)
        assert page.count("| pos.config |") == page.count("| ./ner.config |") == 2
        assert (FOLDER / "results.md").read_text(encoding="utf-8").count("| ./ner.config |") == 2

    def test_a_folder_that_no_record_tells_of_is_recorded(self, again, capsys):
        before = records()
        (FOLDER / "results.jsonl").unlink()
        assert main(GOOD) == 0
        free = {"date": None, "wall_seconds": None}
        assert [r | free for r in records()] == [r | free for r in sorted(before, key=rate)]
        assert capsys.readouterr().err.count("trained before, and is recorded") == 2

    @pytest.mark.slow
    def test_a_failed_run_is_tried_again(self, again, capsys):
        assert main(["sweep", "ner.config", "--learning_rate", "1e30"]) == 1
        assert capsys.readouterr().err.count("failed: ") == 1
        log = (FOLDER / "learning_rate=1e+30,seed=42.log").read_text(encoding="utf-8")
        assert log.count("ncrf train ner.config") == 2

    def test_a_changed_config_is_said_and_trained_only_if_asked(self, again, capsys):
        with open("ner.config", "a", encoding="utf-8") as file:
            file.write("dropout=0.25\n")
        before = state(FOLDER)
        assert main(GOOD) == 2
        error = capsys.readouterr().err
        assert "dropout was 0.5, now it is 0.25" in error and "--retrain" in error
        assert "(and 1 more)" in error and state(FOLDER) == before
        assert main([*GOOD[:3], "0.03", "--retrain"]) == 0
        out, error = capsys.readouterr()
        assert "1 run was trained with another config and left out" in error
        assert len(records()) == 3 and out.count("| ner.config |") == 1
        config = (FOLDER / "learning_rate=0.03,seed=42" / "config.yaml").read_text()
        assert "dropout: 0.25" in config

    def test_a_changed_corpus_is_said(self, again, capsys):
        with open("train.txt", "a", encoding="utf-8") as file:
            file.write("Oslo S-LOC\n\n")
        assert main(GOOD) == 2
        assert "train_dir=train.txt has another content now" in capsys.readouterr().err


def rate(record):
    return record["settings"]["learning_rate"]


def test_a_model_trained_outside_is_taken_in_and_scored(again, capsys):
    """One that does not say how it scores on the test corpus, as older ones do not."""
    source, place = FOLDER / "learning_rate=0.05,seed=42", FOLDER / "seed=42"
    shutil.copytree(source, place)
    history = [json.loads(line) for line in (place / "history.jsonl").read_text().splitlines()]
    write_history(place, [{k: v for k, v in e.items() if k != "test"} for e in history])
    with open("ner.config", "a", encoding="utf-8") as file:
        file.write("learning_rate=0.05\n")
    assert main(["sweep", "ner.config"]) == 0
    assert "scoring" in capsys.readouterr().err
    outside, inside = records()[-1], next(r for r in records() if r["run"] == source.name)
    for name in ("dev", "test", "best_epoch", "epochs"):
        assert outside[name] == inside[name]
    assert outside["machine"] is None and inside["machine"]
    history = [json.loads(line) for line in (place / "history.jsonl").read_text().splitlines()]
    tested = [epoch for epoch in history if "test" in epoch]
    assert [e["epoch"] for e in tested] == [outside["best_epoch"]]
    assert tested[0]["test"] == outside["test"]
    Tagger.load(place)  # the folder is whole


def begun(folder, sweep, epochs):
    """Wait until the training of a sweep has so many epochs."""
    history = folder / FOLDER / "seed=42" / "history.jsonl"
    for _ in range(2400):
        if history.exists() and len(history.read_text().splitlines()) >= epochs:
            return
        assert sweep.poll() is None, sweep.communicate()
        time.sleep(0.05)
    raise AssertionError("nothing was trained")


def child_of(folder):
    """The process that holds the model folder."""
    return json.loads((folder / FOLDER / "seed=42" / "lock.json").read_text())["pid"]


def is_gone(pid):
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX":
            return True  # dead, and not yet buried by whoever adopted it
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)]
)
def test_a_sweep_that_was_stopped_goes_on(tmp_path, number):
    prepare(tmp_path, iteration=30)
    command = program("sweep", "ner.config")
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as sweep:
        begun(tmp_path, sweep, 2)
        child = child_of(tmp_path)
        sweep.send_signal(number)
        out, err = sweep.communicate(timeout=120)
    assert sweep.returncode == (130 if number == signal.SIGINT else -number)
    assert is_gone(child), "the training outlived its sweep"
    model = tmp_path / FOLDER / "seed=42"
    assert (model / "training").exists() and not (tmp_path / FOLDER / "results.jsonl").exists()
    if number == signal.SIGINT:
        assert "ncrf: interrupted" in err and "no run has finished" in out
        assert not (model / "lock.json").exists()
    done = call(tmp_path, "sweep", "ner.config")
    assert done.returncode == 0, done.stderr
    assert "resumed after epoch" in (tmp_path / FOLDER / "seed=42.log").read_text()
    (record,) = records(tmp_path / FOLDER)
    assert record["epochs"] == 30 and record["wall_seconds"] is None
