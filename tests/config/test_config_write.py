"""A config that is written reads back equal, whatever is in it; any text loads or is refused."""

from __future__ import annotations

import string
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ncrf.config import (
    Config,
    FeatureSpec,
    Key,
    all_keys,
    config_text,
    find_key,
    load_config,
    write_config,
)
from ncrf.config.folders import model_folder
from ncrf.config.template_keys import WHOLE_CORPUS
from ncrf.errors import ConfigError, NcrfError

texts = st.text(min_size=1).filter(
    lambda t: t.strip() and t.strip().lower() not in ("none", "null") and "\0" not in t
)
names = st.text(string.ascii_letters + string.digits + "_-. é漢", min_size=1).map(str.strip)
features = st.builds(
    FeatureSpec,
    name=names.filter(bool),
    emb_size=st.integers(1, 10**6),
    emb_dir=st.none() | texts,
    emb_norm=st.booleans(),
    source=st.none() | st.just("capitalization"),
)
SPECIAL: dict[str, st.SearchStrategy[Any]] = {
    "columns": st.sampled_from([("word",), ("word", "[a b]", "-", "label"), ("[-]", "-", "word")]),
    "feature": st.lists(features, unique_by=lambda f: f.name, max_size=3).map(tuple),
    "freeze": st.sampled_from([("word",), ("word", "char", "POS")]),
    "seg": st.sampled_from(["auto", True, False]),
    "label_column": st.sampled_from(["upos", "misc:Gloss: x"]),
    "max_word_length": st.integers(1, 99) | st.just(-1),
    "max_sentence_length": st.integers(1, 10**9),
}
FOLDERS = ("model_dir", "load_model_dir", "dset_dir", "init_from")


def values_of(key: Key) -> st.SearchStrategy[Any]:
    if key.name in SPECIAL:
        return SPECIAL[key.name]
    if key.choices:
        return st.sampled_from(key.choices)
    if key.type is bool:
        return st.booleans()
    if key.type is int:
        most = int(min(key.interval.high, 10**9)) if key.interval else 10**9
        return st.integers(1, most).map(lambda n: n * 2 if "hidden" in key.name else n)
    if key.type is float:
        return st.floats(1e-300, 0.999)
    if key.name in FOLDERS:
        return texts.filter(lambda path: model_folder(path) == path)
    return texts


def written(config: Config) -> Config:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "config.yaml")
        write_config(config, path)
        return load_config(path, check_files=False)


WRITABLE = [k for k in all_keys() if k.name not in ("plugins", "dset_dir", "load_model_dir")]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.data())
def test_what_is_written_reads_back_equal(data):
    chosen = data.draw(st.lists(st.sampled_from(WRITABLE), unique_by=lambda k: k.name))
    changes = {k.name: data.draw(values_of(k), label=k.name) for k in chosen}
    changes.pop("overwrite" if changes.get("resume") else "resume", None)
    if changes.get("status") == "decode":
        changes.pop("model_dir", None)  # loading would put it into load_model_dir too
    if changes.get("optimizer") in WHOLE_CORPUS:
        changes.pop("optimizer")  # these want a config of the classical CRF
    if changes.get("word_seq_feature") == "none":
        changes.pop("word_seq_feature")  # loading would set what follows from it too
    if "template_file" in changes:
        for key in ("init_from", "sentence_classification"):
            changes.pop(key, None)
    config = Config().replace(**{**changes, "dev_dir": "d"})
    assert written(config) == config
    assert load_config(config.flat(), check_files=False) == config


@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    st.text()
    | st.lists(
        st.sampled_from(
            sorted(
                [
                    "=",
                    "\n",
                    "#",
                    " ",
                    "\t",
                    "[A]",
                    "feature",
                    "emb_size",
                    "1",
                    "columns",
                    "word",
                    ",",
                    "iteration",
                    "use_crf",
                    "dropout",
                    ":",
                    "- ",
                    "{",
                    "}",
                    "[",
                    "]",
                    "&x",
                    "*x",
                    "'",
                    '"',
                    "None",
                    "label",
                    "model_dir",
                    "a.dset",
                    "\\",
                    "?",
                    "|",
                    ">",
                    "%",
                    "@",
                    "!",
                ]
            )
        )
    ).map("".join),
    st.sampled_from(["fuzz.config", "fuzz.yaml"]),
)
def test_any_text_loads_or_is_refused_in_one_line(text, name):
    if "plugins" in text:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        try:
            config = load_config(path, check_files=False)
        except ConfigError as error:
            assert len(str(error).splitlines()) == 1
            assert str(path) in str(error)
        else:
            assert written(config).replace(load_model_dir=None) == config.replace(
                load_model_dir=None
            )


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.lists(st.text() | st.sampled_from(["--feature", "--hidden_dim", "--x=", "--seg"])))
def test_any_command_line_loads_or_is_refused_in_one_line(arguments):
    if any("plugins" in argument for argument in arguments):
        return
    try:
        load_config({}, arguments, check_files=False)
    except ConfigError as error:
        assert len(str(error).splitlines()) == 1
        assert str(error).startswith("command line: ")


def test_every_key_but_plugins_stands_in_the_file_under_its_group():
    text = config_text(Config().replace(hidden_dim=40, plugins="x"))
    assert set(yaml.safe_load(text)) == {k.name for k in all_keys()} - {"plugins"}
    assert "\n# word_layer: The layer over the words of a sentence.\nuse_word_seq: true\n" in text
    assert "\nhidden_dim: 40\n" in text and "plugins" not in text


@pytest.mark.parametrize(
    "path", ["a\x85b", "a\u2028b", "\ufeffa", "漢/é", "a: b #c", "'", "\ud800", "1"]
)
def test_awkward_paths_read_back(path):
    config = Config().replace(train_dir=path, feature=[FeatureSpec("A", emb_dir=path)])
    assert written(config) == config


def test_flat_has_plain_values():
    flat = Config().replace(feature=[FeatureSpec("A", source="capitalization")]).flat()
    assert flat["feature"] == [{"name": "A", "emb_size": 20, "from": "capitalization"}]
    assert flat["l2"] == 1e-8 and flat["columns"] is None and "plugins" not in flat


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "config.yaml"
    write_config(Config(), path)
    write_config(Config().replace(iteration=7), path)
    assert load_config(path, check_files=False).training.iteration == 7
    assert [p.name for p in tmp_path.iterdir()] == ["config.yaml"]
    with pytest.raises(NcrfError, match="cannot be written"):
        write_config(Config(), path / "config.yaml")


def test_a_key_of_each_kind_is_in_the_property_tests():
    assert find_key("word_emb_dir") in WRITABLE and len(WRITABLE) > 50
