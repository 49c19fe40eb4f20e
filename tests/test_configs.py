"""configs/: every file is a valid config; examples are commented, those on sample data run.

The folders in it, configs of published results, are the matter of test_result_configs.py.
"""

import re

import pytest

from ncrf import load_config
from ncrf.config import find_key, idle_keys
from ncrf.decode.files import decode_file
from ncrf.train.training import train_model
from tests.conftest import ROOT

FOLDER = ROOT / "configs"
CONFIGS = sorted(path for path in FOLDER.rglob("*.*") if path.suffix in (".config", ".yaml"))
NAMES = [str(path.relative_to(FOLDER)) for path in CONFIGS]
EXAMPLES = [path.name for path in CONFIGS if path.parent == FOLDER]
ASSIGNMENT = re.compile(r"(\w+)=(.*)")


def on_sample_data(name):
    return "train_dir=sample_data/" in (FOLDER / name).read_text(encoding="utf-8")


TRAINING = [name for name in NAMES if name.endswith(".train.config") and on_sample_data(name)]


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch):
    """Where the paths in the configs start, and every run of one starts there anew."""
    monkeypatch.chdir(ROOT)


def test_there_is_one_config_a_task():
    tasks = ("demo", "ner", "pos", "segmentation", "features", "classification", "templates")
    assert {f"{task}.{status}.config" for task in tasks for status in ("train", "decode")} <= set(
        NAMES
    )
    assert {f"{task}.train.config" for task in tasks} <= set(TRAINING)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_read_without_a_complaint(name, caplog):
    config = load_config(FOLDER / name, check_files=False)
    assert not caplog.records  # no key twice, no legacy folder
    assert not idle_keys(config)
    assert config.is_set("status")
    assert (".decode." in name) == (config.run.status == "decode")


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name.endswith(".config")])
def test_every_key_has_its_comment_and_stands_there_once(name):
    keys = []
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        found = ASSIGNMENT.match(line)
        if not found:
            assert not line or line.startswith("#"), line
            continue
        assert re.search(r"\s# .*\w", line), f"{line!r} has no comment"
        keys.append(find_key(found[1]).name)
    assert len(keys) == len(set(keys) - {"feature"}) + keys.count("feature")


@pytest.mark.parametrize("name", TRAINING)
def test_it_trains_an_epoch_and_decodes(name, tmp_path):
    here = {"threads": "1", "iteration": "1", "model_dir": str(tmp_path / "model")}
    config = load_config(FOLDER / name)
    predictor = train_model(load_config(config, here))
    assert (tmp_path / "model" / "model.safetensors").is_file()
    assert predictor.config.values().keys() == config.values().keys()
    decoding = FOLDER / name.replace(".train.", ".decode.")
    if not decoding.exists():
        return
    wanted = load_config(decoding, check_files=False)
    assert wanted.files.load_model_dir == config.files.model_dir
    there = {"load_model_dir": str(tmp_path / "model"), "decode_dir": str(tmp_path / "out")}
    decode_file(load_config(wanted, there))
    raw = (ROOT / wanted.files.raw_dir).read_text(encoding="utf-8")
    written = (tmp_path / "out").read_text(encoding="utf-8")
    one_a_line = wanted.corpus.raw_format == "lines" or config.corpus.sentence_classification
    sentences = raw.count("\n") if one_a_line else raw.count("\n\n")
    as_lines = config.corpus.sentence_classification or wanted.decoding.decode_format == "json"
    assert written.count("\n" if as_lines else "\n\n") == sentences
