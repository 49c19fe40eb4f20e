"""results.jsonl, and what was trained otherwise."""

import json
import re
from pathlib import Path

import pytest

from ncrf.config import load_config
from ncrf.errors import InputError
from ncrf.train.sweep_grid import plan
from ncrf.train.sweep_identity import (
    content_change,
    contents,
    folder_standing,
    has_test_score,
    identity,
    key_change,
)
from ncrf.train.sweep_results import (
    append_result,
    locked,
    needs_test_score,
    read_results,
    record_of,
)
from ncrf.train.sweep_table import mean_and_deviation, table
from tests.conftest import SAMPLE, small_keys

SCORES = {"precision": 0.5, "recall": 0.25, "f1": 1 / 3, "accuracy": 0.9}


def record(name="seed=1", **changes):
    return {
        "run": name,
        "config": "ner.config",
        "settings": {},
        "seed": 1,
        "best_epoch": 2,
        "epochs": 3,
        "dev": SCORES,
        "test": None,
        "seconds": 1.5,
        "wall_seconds": None,
        "machine": None,
        "version": "0",
        "date": "2020-01-01T00:00:00+00:00",
        "keys": {},
        "files": {},
        **changes,
    }


class TestTheFile:
    def test_the_last_record_of_a_run_counts(self, tmp_path):
        assert read_results(tmp_path) == {}
        for one in (record(), record("seed=2"), record(epochs=9)):
            append_result(tmp_path, one)
        assert read_results(tmp_path) == {"seed=1": record(epochs=9), "seed=2": record("seed=2")}

    @pytest.mark.parametrize("cut", [1, 20, -2, -1])
    def test_a_line_half_written_is_as_if_it_were_not_there(self, tmp_path, cut):
        append_result(tmp_path, record())
        whole = json.dumps(record("seed=2")) + "\n"
        with open(tmp_path / "results.jsonl", "a") as file:
            file.write(whole[:cut])
        assert read_results(tmp_path) == {"seed=1": record()}
        append_result(tmp_path, record("seed=3"))
        assert list(read_results(tmp_path)) == ["seed=1", "seed=3"]

    @pytest.mark.parametrize(
        "line",
        ["{", "[]", "1", '{"run": "x"}', json.dumps(record(dev={"f1": 1})), "\udcff"]
        + [json.dumps(record(**{name: None})) for name in ("run", "seed", "keys", "epochs")],
    )
    def test_a_damaged_line_is_named(self, tmp_path, line):
        append_result(tmp_path, record())
        path = tmp_path / "results.jsonl"
        path.write_bytes(path.read_bytes() + line.encode("utf-8", "surrogateescape") + b"\n")
        with pytest.raises(InputError, match=r"results\.jsonl:2: is no result of a run"):
            read_results(tmp_path)

    def test_one_sweep_at_a_time(self, tmp_path):
        with locked(tmp_path / "a"):
            with pytest.raises(InputError, match="another sweep runs here"), locked(tmp_path / "a"):
                pass
            with locked(tmp_path / "b"):
                pass
        with locked(tmp_path / "a"):
            pass


class TestTrainedOtherwise:
    @pytest.fixture
    def run(self, trained, tmp_path, monkeypatch):
        """The run of a model that was trained outside a sweep, and moved into its place."""
        monkeypatch.chdir(tmp_path)
        return self.planned(trained)

    def planned(self, trained, **changes):
        keys = small_keys("any", train_dir=str(SAMPLE / "train.bioes"), iteration=5)
        keys |= {"optimizer": "Adam", "learning_rate": 0.01, "dropout": 0.2, **changes}
        text = "".join(f"{k}={v}\n" for k, v in keys.items() if v is not None)
        Path("ner.config").write_text(text)
        (run,) = plan(["ner.config"], [], None, Path("runs"))
        Path("runs/ner").mkdir(parents=True, exist_ok=True)
        if not run.model_dir.exists():
            run.model_dir.symlink_to(trained)
        return run

    def test_what_is_recorded_of_a_model_folder(self, run, trained):
        history = [json.loads(x) for x in (trained / "history.jsonl").read_text().splitlines()]
        best = [epoch for epoch in history if epoch["best"]][-1]
        found = record_of(run, None)
        assert (found["run"], found["seed"], found["settings"]) == ("seed=42", 42, {})
        assert (found["best_epoch"], found["epochs"]) == (best["epoch"], 5)
        assert found["dev"] == best["dev"] and found["test"] is None
        assert found["seconds"] == pytest.approx(sum(e["seconds"] for e in history), abs=0.06)
        assert found["machine"] is None  # it was trained who knows where
        append_result(Path("runs/ner"), found)
        assert read_results(Path("runs/ner")) == {"seed=42": found}

    def test_the_same_config_fits(self, run):
        assert folder_standing(run) == ("finished", None)
        before = record_of(run, None)
        assert key_change(before, run) is content_change(before, run) is None

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"dropout": 0.3}, "dropout was 0.2, now it is 0.3"),
            ({"learning_rate": None}, "learning_rate was 0.01, now it is 0.015"),
            ({"clip": 5}, "clip was None, now it is 5.0"),
            ({"dev_dir": str(SAMPLE / "dev.bioes")}, "dev_dir was .*test.bioes, now it is .*dev"),
            ({"dev_dir": None}, "dev_dir was .*test.bioes, now it is None"),
            ({"partial_labels": "none"}, "partial_labels was "),
            ({"feature": "[Cap] from=capitalization"}, "feature"),
        ],
    )
    def test_another_config_does_not(self, run, trained, changes, said):
        before, now = record_of(run, None), self.planned(trained, **changes)
        state, difference = folder_standing(now)
        assert state == "finished"
        for change in (difference, key_change(before, now)):
            assert change is not None and re.search(said, change), change

    @pytest.mark.parametrize(
        "changes",
        [
            {"threads": 2},
            {"nbest": 3},
            {"gpu": False},
            {"checkpoint_every": 5},
            {"status": "train"},
        ],
    )
    def test_keys_that_do_not_change_what_is_learned(self, run, trained, changes):
        before, now = record_of(run, None), self.planned(trained, **changes)
        assert folder_standing(now) == ("finished", None) and key_change(before, now) is None

    def test_another_content_of_a_corpus(self, run, trained, tmp_path):
        copy = tmp_path / "train.bioes"
        copy.write_bytes((SAMPLE / "train.bioes").read_bytes())
        now = self.planned(trained, train_dir=str(copy))
        assert folder_standing(now) == ("finished", None)  # a file of this name, elsewhere
        before = record_of(now, None)
        assert content_change(before, now) is None
        changed = dict(before, files={**before["files"], "train_dir": "0" * 32})
        assert "train_dir=" in (content_change(changed, now) or "")

    def test_a_test_corpus_may_come_later(self, run, trained):
        before = record_of(run, None)
        assert has_test_score(before, run) and not needs_test_score(run)
        now = self.planned(trained, test_dir=str(SAMPLE / "dev.bioes"))
        assert key_change(before, now) is content_change(before, now) is None
        assert not has_test_score(before, now) and needs_test_score(now)
        tested = dict(before, test=SCORES, files=contents(now.config))
        assert has_test_score(tested, now)
        tested["files"]["test_dir"] = "0" * 32
        assert not has_test_score(tested, now)


def test_identity_leaves_out_defaults_and_what_changes_nothing():
    keys = {"train_dir": "a", "model_dir": "b", "hidden_dim": 200, "dropout": 0.1, "nbest": 5}
    config = load_config(keys, check_files=False)
    assert identity(config) == {"train_dir": "a", "dropout": 0.1}


class TestTable:
    def test_mean_and_sample_deviation(self):
        # 91.0, 91.5, 92.6: mean 91.7, squares 0.49 + 0.04 + 0.81 = 1.34, over 2: 0.67
        assert mean_and_deviation([0.91, 0.915, 0.926]) == "91.70 ± 0.82"
        assert mean_and_deviation([0.91]) == "91.00"

    def test_rows(self):
        def scored(f1):
            return {**SCORES, "f1": f1}

        records = [
            record(settings={"hidden_dim": 20}, dev=scored(0.91), seconds=1, machine="M"),
            record("b", settings={"hidden_dim": 40}, dev=scored(0.5), test=scored(0.4)),
            record("c", settings={"hidden_dim": 20}, dev=scored(0.93), seconds=2, epochs=4),
        ]
        head, _, *rows = [line for line in table(records, title="T").splitlines() if "|" in line]
        assert head.startswith("| config | settings | n | dev F1 | best | worst | test F1 |")
        assert rows == [
            "| ner.config | hidden_dim=20 | 2 | 92.00 ± 1.41 | 93.00 | 91.00 | - | - | - "
            "| 2.0 of 3–4 | 2 | - |",
            "| ner.config | hidden_dim=40 | 1 | 50.00 | 50.00 | 50.00 | 40.00 | 40.00 | 40.00 "
            "| 2.0 of 3 | 2 | - |",
        ]

    def test_plain_labels_are_scored_by_accuracy(self):
        same = dict.fromkeys(SCORES, 0.75)
        assert "| dev accuracy |" in table([record(dev=same, test=same)], title="T")
        assert "| dev F1 |" in table([record(dev=same), record("b")], title="T")
