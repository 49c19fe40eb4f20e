"""Declaring keys: groups, choices that plugins add, plugins themselves."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from ncrf.config import (
    Config,
    add_choice,
    all_keys,
    choices_of,
    config_text,
    find_key,
    groups,
    idle_keys,
    key,
    key_group,
    keys,
    load_config,
)
from ncrf.errors import ConfigError

PLUGIN = '''
from __future__ import annotations
from dataclasses import dataclass
from ncrf.config import add_choice, key, key_group

@key_group("highway")
@dataclass(frozen=True)
class Highway:
    """A highway over the characters."""

    highway_depth: int = key(2, "How many highways.", interval="[1, 9]", shapes_model=True)
    highway_bias: float | None = key(None, "The bias of the gate.", aliases=("gatebias",))

add_choice("char_seq_feature", "HIGHWAY", group="highway")
'''


@pytest.fixture(autouse=True)
def _registry_as_before(monkeypatch):
    """What a test declares is gone after it."""
    for name in ("_groups", "_keys", "_names"):
        monkeypatch.setattr(keys, name, dict(getattr(keys, name)))
    copied = {name: dict(choices) for name, choices in keys._choices.items()}
    monkeypatch.setattr(keys, "_choices", copied)
    yield
    for name in [m for m in sys.modules if m.startswith("plugin_")]:
        del sys.modules[name]


def plugin(name: str, text: str = PLUGIN) -> str:
    Path(f"{name}.py").write_text(text)
    return name


class TestGroups:
    def test_a_group_brings_its_keys(self):
        @key_group("mine")
        @dataclass(frozen=True)
        class Mine:
            """My keys."""

            my_width: int = key(3, "A width.", interval="(2, 5]", unit="numbers")

        assert groups()["mine"] is Mine
        assert all_keys()[-1].name == "my_width" and find_key("MY-WIDTH").group == "mine"
        assert Config().group("mine") == Mine()
        config = load_config({"my_width": "5"}, check_files=False)
        assert config.group("mine").my_width == config.value("my_width") == 5
        with pytest.raises(ConfigError, match=r"my_width=2 is out of range \(above 2 to 5\)"):
            load_config({"my_width": 2})

    def test_a_key_may_parse_its_value_itself(self):
        def parse(raw):
            if raw != "seven":
                raise ValueError("seven")
            return 7

        @key_group("mine")
        @dataclass(frozen=True)
        class Mine:
            mine: int = key(1, "A number.", parse=parse, allowed="seven")

        assert load_config({"mine": "seven"}, check_files=False).value("mine") == 7
        with pytest.raises(ConfigError, match=r"^mine='eight' is not allowed \(seven\)$"):
            load_config({"mine": "eight"}, check_files=False)

    def test_a_name_cannot_be_declared_twice(self):
        with pytest.raises(ValueError, match="'train' is already in 'files'"):

            @key_group("mine")
            @dataclass(frozen=True)
            class Mine:
                mine: int = key(1, "x.", aliases=("train",))

        assert "mine" not in groups() and find_key("mine") is None
        with pytest.raises(ValueError, match="'run' is already declared by Run"):

            @key_group("run")
            @dataclass(frozen=True)
            class Other:
                other: int = key(1, "x.")

    def test_only_declared_fields_of_a_dataclass(self):
        with pytest.raises(ValueError, match="must be a frozen dataclass"):
            key_group("mine")(type("Mine", (), {}))
        with pytest.raises(ValueError, match=r"\.width is not declared with key"):

            @key_group("mine")
            @dataclass(frozen=True)
            class Mine:
                width: int = 3

    def test_names_are_unique_over_all_groups(self):
        names = [spelling for k in all_keys() for spelling in (k.name, *k.aliases)]
        assert len(names) == len(set(names))

    def test_an_interval_is_checked_when_it_is_declared(self):
        with pytest.raises(ValueError, match="not an interval"):
            key(1, "x.", interval="1..3")


class TestChoices:
    def test_a_choice_is_added_once(self):
        add_choice("word_seq_feature", "HIGHWAY")
        add_choice("word_seq_feature", "highway", group="mine")
        add_choice("WORD_SEQ_FEATURE", "LSTM")
        assert find_key("word_seq_feature").choices == ("LSTM", "GRU", "CNN", "none", "HIGHWAY")
        assert choices_of("word_seq_feature")["HIGHWAY"] == "mine"
        config = load_config({"word_seq_feature": "highway"}, check_files=False)
        assert config.word_layer.word_seq_feature == "HIGHWAY"

    def test_a_computed_feature_may_be_added(self):
        add_choice("from", "suffix")
        config = load_config({"feature": "[S] from=Suffix"}, check_files=False)
        assert config.corpus.feature[0].source == "suffix"

    @pytest.mark.parametrize("name", ["hidden_dim", "seg", "no_such_key"])
    def test_only_where_there_are_choices(self, name):
        with pytest.raises(ValueError, match="is not a key with choices"):
            add_choice(name, "X")


class TestPlugins:
    def test_they_are_imported_before_the_config_is_checked(self, read):
        name = plugin("plugin_a")
        config = read(f"char_seq_feature=highway\nhighway_depth=3\nplugins={name}\n")
        assert config.chars.char_seq_feature == "HIGHWAY"
        assert config.group("highway").highway_depth == 3
        assert config.run.plugins == ("plugin_a",)
        assert read("", ["--plugins", name, "--gatebias", "1"]).value("highway_bias") == 1.0
        assert str(Path.cwd()) not in sys.path

    def test_python_may_name_them(self, read):
        name = plugin("plugin_b")
        config = read("highway_depth=4\n", plugins=name)
        assert config.run.plugins == ("plugin_b",)
        assert read("", plugins=[name]).run.plugins == ("plugin_b",)

    def test_a_saved_config_names_none(self, read):
        name = plugin("plugin_c")
        text = config_text(read(f"plugins={name}\nchar_seq_feature=HIGHWAY\nhighway_depth=3\n"))
        assert "plugin" not in text
        assert "# highway: A highway over the characters.\nhighway_depth: 3\n" in text

    def test_a_group_that_is_not_chosen_stays_out_of_the_file(self, read):
        config = read(f"plugins={plugin('plugin_d')}\n")
        assert "highway" not in config_text(config)
        assert config == read("").replace(plugins="plugin_d")

    def test_a_chosen_group_stands_in_it_at_its_defaults_too(self, read):
        config = read(f"plugins={plugin('plugin_i')}\nchar_seq_feature=HIGHWAY\n")
        assert "highway_depth: 2\n" in config_text(config)

    def test_its_keys_are_idle_under_another_layer(self, read):
        config = read(f"plugins={plugin('plugin_e')}\nhighway_depth=3\n")
        assert idle_keys(config) == ["highway_depth"]
        assert idle_keys(read("char_seq_feature=HIGHWAY\nhighway_depth=3\n")) == []

    def test_a_plugin_imported_again_declares_its_keys_again(self, read):
        name = plugin("plugin_f")
        read(f"plugins={name}\n")
        del sys.modules[name]
        plugin(name, PLUGIN.replace("highway_bias", "highway_gate").replace("[1, 9]", "[1, 99]"))
        assert read(f"plugins={name}\nhighway_depth=50\n").value("highway_depth") == 50
        assert find_key("highway_bias") is None and find_key("gatebias").name == "highway_gate"

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            (None, "ModuleNotFoundError: No module named 'plugin_g'"),
            ("x = (\n", "SyntaxError"),
            ("raise RuntimeError('two\\nlines')\n", "RuntimeError: two lines"),
        ],
    )
    def test_one_that_fails_is_one_line(self, read, text, what):
        if text is not None:
            plugin("plugin_g", text)
        with pytest.raises(ConfigError) as caught:
            read("hiden_dim=3\nplugins=plugin_g\n")
        start = "my.config:2: the plugin 'plugin_g' cannot be imported: "
        assert str(caught.value).startswith(start + what)
        assert "\n" not in str(caught.value)

    def test_a_list_with_a_hole(self):
        with pytest.raises(ConfigError, match="has an empty part"):
            load_config({}, plugins="a,,b")
