"""configs/*/: configs of published results state what is not the default; names fit the keys.

That they are read without a complaint is in test_configs.py.
"""

import itertools

import pytest

from ncrf import load_config
from ncrf.config import find_key
from tests.conftest import ROOT
from tests.test_configs import ASSIGNMENT

FOLDER = ROOT / "configs"
NAMES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.glob("*/*.config"))
CORPORA = {"conll2000", "conll2003", "cws", "ud_pos", "wnut17"}
# A config names the layers that its file's name does, default or not, and says that it trains.
STATED = {"status", "char_seq_feature", "word_seq_feature", "use_crf"}
CHARS = {
    "nochar": {"use_char": False},
    "char_lstm": {"use_char": True, "char_seq_feature": "LSTM"},
    "char_cnn": {"use_char": True, "char_seq_feature": "CNN"},
}
WORDS = {"word_lstm": "LSTM", "word_cnn": "CNN"}
OUTPUTS = {"crf": True, "softmax": False}


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


def loaded(name):
    return load_config(FOLDER / name, check_files=False)


def keys_of(name):
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [found[1] for found in map(ASSIGNMENT.match, lines) if found]


def test_every_corpus_has_its_configs():
    assert {name.split("/")[0] for name in NAMES} >= CORPORA
    assert {"ud_pos/upos.config", "ud_pos/xpos.config"} < set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_states_only_what_is_not_the_default(name):
    keys = [find_key(key).name for key in keys_of(name)]
    once = [key for key in keys if key != "feature"]  # of which there is a line for each
    assert len(once) == len(set(once))
    values, defaults = loaded(name).values(), load_config({}, check_files=False).values()
    assert [key for key in keys if values[key] == defaults[key] and key not in STATED] == []


@pytest.mark.parametrize("name", NAMES)
def test_paths_are_those_of_its_corpus(name):
    corpus, _, file = name.partition("/")
    if corpus not in CORPORA:
        pytest.skip("other rules")
    files = loaded(name).files
    train = "all" if loaded(name).classical else "train"  # nothing to choose on a dev part
    assert files.train_dir == f"data/{corpus}/{train}.txt"
    assert files.dev_dir == (None if train == "all" else f"data/{corpus}/dev.txt")
    assert files.test_dir == f"data/{corpus}/test.txt"
    assert files.model_dir == f"runs/{corpus}/{file.removesuffix('.config')}"
    assert loaded(name).values()["word_emb_dir"] in (None, "data/glove/glove.6B.100d.txt")


@pytest.mark.parametrize("name", [name for name in NAMES if "-word_" in name])
def test_its_name_says_what_its_keys_are(name):
    *features, chars, words, output = name.split("/")[1].removesuffix(".config").split("-")
    values = loaded(name).values()
    assert {key: values[key] for key in CHARS[chars]} == CHARS[chars]
    assert values["word_seq_feature"] == WORDS[words]
    assert values["use_crf"] is OUTPUTS[output]
    columns = [f"[{feature.upper()}]" for feature in features]
    assert [c for c in values["columns"] if c.startswith("[")] == columns


def test_conll2003_has_all_twelve_models_and_they_differ_in_what_their_layers_need():
    twelve = {"-".join(parts) for parts in itertools.product(CHARS, WORDS, OUTPUTS)}
    names = {f"conll2003/{name}.config" for name in twelve}
    assert names == {name for name in NAMES if name.startswith("conll2003/")}
    layers = {"use_char", "char_seq_feature", "word_seq_feature", "use_crf", "model_dir"}
    # The rate is that of the study's authors; batch normalization wants all lengths in a batch and
    # padding in its statistics, and is slow to learn.
    of_lstm = {"learning_rate": 0.015, "bucket": True, "iteration": 60, "patience": 15}
    of_cnn = {"learning_rate": 0.005, "bucket": False, "iteration": 100, "patience": None}
    common = set()
    for name in names:
        values = loaded(name).values()
        cnn = values["word_seq_feature"] == "CNN"
        own = {**of_cnn, "cnn_padding": 4} if cnn else {**of_lstm, "cnn_padding": 0}
        assert {key: values[key] for key in own} == own
        rest = {k: v for k, v in values.items() if k not in layers | own.keys()}
        common.add(str(sorted(rest.items())))
    assert len(common) == 1


def test_the_classical_crf_has_nineteen_templates_and_pairs_of_labels():
    config = loaded("conll2000/templates-crf.config")
    assert config.classical and config.values()["c2"] == 1
    path = ROOT / config.values()["template_file"]
    lines = [line for line in path.read_text("utf-8").splitlines() if line and line[0] != "#"]
    assert [line for line in lines if line[0] == "B"] == ["B"]
    unigrams = [line.partition(":")[2] for line in lines if line[0] == "U"]
    assert len(unigrams) == len(set(unigrams)) == 19
    cells = [f"%x[{row},{column}]" for column in (0, 1) for row in range(-2, 3)]
    assert set(cells) < set(unigrams)
