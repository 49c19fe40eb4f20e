"""Section 1 of the contract: the grammar of config files and of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncrf.config import FeatureSpec, load_config
from ncrf.errors import ConfigError


def error_of(read, text: str, overrides=None, **options) -> str:
    with pytest.raises(ConfigError) as caught:
        read(text, overrides, **options)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_status == 2
    return str(caught.value)


class TestKeyValueLines:
    def test_lines_keys_and_values_are_stripped(self, read):
        config = read("  hidden_dim =  100  \n\t dropout\t=\t0.25\t\n")
        assert config.word_layer.hidden_dim == 100
        assert config.network.dropout == 0.25

    def test_blank_lines_are_skipped(self, read):
        assert read("\n  \n\t\niteration=7\n\n").training.iteration == 7

    def test_a_comment_begins_at_the_start_or_after_white_space(self, read):
        text = "# use_crf=False\n  ### heading ###\nuse_crf=True   #c\nuse_char=no\t# c # d\n"
        config = read(text)
        assert config.inference.use_crf is True
        assert config.chars.use_char is False

    def test_a_hash_inside_a_path_stays(self, read):
        config = read("train_dir=data#1/a#b.txt # the corpus\ncomment_prefix=#\n")
        assert config.files.train_dir == "data#1/a#b.txt"
        assert config.corpus.comment_prefix == "#"

    def test_a_value_may_hold_an_equals_sign(self, read):
        assert read("train_dir=a=b").files.train_dir == "a=b"

    @pytest.mark.parametrize("value", ["", "  ", " # comment", "None", "null", "NONE"])
    def test_an_empty_value_means_unset(self, read, value):
        config = read(f"clip={value}\n")
        assert config.training.clip is None
        assert not config.is_set("clip")

    def test_an_empty_value_gives_the_default(self, read):
        assert read("hidden_dim=\n").word_layer.hidden_dim == 200

    def test_none_is_no_value_of_a_key_that_cannot_be_unset(self, read):
        assert error_of(read, "hidden_dim=None\n").startswith(
            "my.config:1: hidden_dim='None' is not a whole number"
        )

    def test_names_match_in_any_case(self, read):
        config = read("MAX_SENTENCE_LENGTH=250\nHidden_Dim=60\nUSE_CRF=False")
        assert config.corpus.max_sentence_length == 250
        assert config.word_layer.hidden_dim == 60
        assert config.inference.use_crf is False

    def test_a_line_without_equals_is_an_error_with_its_number(self, read):
        assert error_of(read, "iteration=1\n\n#c\ngpu # bare\n") == (
            "my.config:4: 'gpu' is no setting (key=value)"
        )

    def test_a_line_without_a_name_is_an_error(self, read):
        assert error_of(read, "= 5\n").startswith("my.config:1: '= 5' is no setting")

    def test_windows_and_old_mac_line_ends_and_a_byte_order_mark(self):
        Path("a.config").write_bytes(b"\xef\xbb\xbfiteration=3\r\nhidden_dim=40\rdropout=0\n")
        config = load_config("a.config", check_files=False)
        assert (config.training.iteration, config.word_layer.hidden_dim) == (3, 40)
        assert config.network.dropout == 0.0

    def test_invalid_utf8_is_an_error_with_its_line(self):
        Path("a.config").write_bytes(b"iteration=3\n# \xe9\n")
        with pytest.raises(ConfigError, match=r"^a\.config:2: is not UTF-8"):
            load_config("a.config")

    def test_a_missing_config_file_is_an_error(self):
        with pytest.raises(ConfigError, match=r"^no\.config: cannot be read: No such file"):
            load_config("no.config")

    def test_a_folder_is_no_config_file(self, tmp_path):
        with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
            load_config(tmp_path)


class TestRepeatedKeys:
    def test_the_last_wins_with_a_warning(self, read, warnings_of):
        config = read("iteration=1\nhidden_dim=50\nITERATION=2\n")
        assert config.training.iteration == 2
        assert warnings_of() == [
            "iteration is given twice: '2' (my.config:3) replaces '1' (my.config:1)"
        ]

    def test_an_alias_repeats_its_key(self, read, warnings_of):
        assert read("train_dir=a\ntrain=b\n").files.train_dir == "b"
        assert len(warnings_of()) == 1

    def test_an_empty_value_at_last_unsets(self, read):
        config = read("clip=5\nclip=\n")
        assert config.training.clip is None
        assert not config.is_set("clip")

    def test_the_command_line_replaces_without_a_warning(self, read, warnings_of):
        assert read("iteration=1\n", ["--iteration", "2"]).training.iteration == 2
        assert warnings_of() == []

    def test_feature_lines_add_up(self, read, warnings_of):
        config = read("feature=[Cap] emb_size=10\nfeature=[POS]\n", ["--feature", "[Shape]"])
        assert config.corpus.feature == (
            FeatureSpec("Cap", emb_size=10),
            FeatureSpec("POS"),
            FeatureSpec("Shape"),
        )
        assert warnings_of() == []

    def test_a_feature_that_is_named_twice_is_replaced_with_a_warning(self, read, warnings_of):
        config = read("feature=[Cap] emb_size=10\nfeature=[Cap] emb_size=30\n")
        assert config.corpus.feature == (FeatureSpec("Cap", emb_size=30),)
        assert "feature [Cap] is given twice" in warnings_of()[0]

    def test_an_empty_feature_drops_those_before(self, read):
        text = "feature=[A]\nfeature=[B]\n"
        assert read(text, ["--feature="]).corpus.feature == ()
        assert read(text, ["--feature=", "--feature=[C]"]).corpus.feature == (FeatureSpec("C"),)
        changed = load_config(read(text), ["--feature=", "--feature=[C]"], check_files=False)
        assert changed.corpus.feature == (FeatureSpec("C"),)


class TestYaml:
    def read(self, read, text):
        return read(text, name="my.yaml")

    @pytest.mark.parametrize("ending", ["yaml", "yml", "YAML"])
    def test_a_flat_mapping(self, read, ending):
        config = read("hidden_dim: 100\nclip: 5\nuse_crf: no\n", name=f"my.{ending}")
        assert config.word_layer.hidden_dim == 100
        assert config.training.clip == 5.0
        assert config.inference.use_crf is False

    def test_another_ending_is_no_yaml(self, read):
        assert error_of(read, "hidden_dim: 100\n", name="my.txt").startswith("my.txt:1:")

    def test_one_level_of_section_names_is_ignored(self, read):
        text = "train:\n  iteration: 3\nnetwork:\n  Hidden_Dim: 40\ndropout: 0.1\n"
        config = self.read(read, text)
        assert (config.training.iteration, config.word_layer.hidden_dim) == (3, 40)
        assert config.network.dropout == 0.1

    def test_a_second_level_is_an_error(self, read):
        message = error_of(read, "a:\n  b:\n    iteration: 3\n", name="my.yaml")
        assert message.startswith("my.yaml:2: the section 'b' stands inside another")

    def test_a_repeated_key_is_said_and_the_last_wins(self, read, warnings_of):
        text = "iteration: 1\nsection:\n  iteration: 2\n"
        assert self.read(read, text).training.iteration == 2
        assert warnings_of() == [
            "iteration is given twice: '2' (my.yaml:3) replaces '1' (my.yaml:1)"
        ]

    def test_features_as_texts_and_mappings(self, read):
        text = (
            "feature:\n"
            '  - "[Cap] emb_size=10"\n'
            "  - {name: POS, emb_size: 5, emb_norm: yes, emb_dir: pos.txt}\n"
            "  - {name: '[Shape]', from: Capitalization}\n"
        )
        assert self.read(read, text).corpus.feature == (
            FeatureSpec("Cap", emb_size=10),
            FeatureSpec("POS", emb_size=5, emb_norm=True, emb_dir="pos.txt"),
            FeatureSpec("Shape", source="capitalization"),
        )

    def test_one_feature_alone(self, read):
        assert self.read(read, "feature: {name: Cap}\n").corpus.feature == (FeatureSpec("Cap"),)
        text = 'feature: "[Cap] emb_size=7"\n'
        assert self.read(read, text).corpus.feature == (FeatureSpec("Cap", emb_size=7),)

    def test_a_repeated_feature_key_replaces_as_in_yaml(self, read, warnings_of):
        config = self.read(read, "feature: ['[A]']\nfeature: ['[B]']\n")
        assert config.corpus.feature == (FeatureSpec("B"),)
        assert len(warnings_of()) == 1

    def test_columns_as_text_or_list(self, read):
        wanted = ("word", "[POS]", "-", "label")
        assert self.read(read, "columns: word,[POS],-,label\n").corpus.columns == wanted
        text = "columns: [word, [POS], '-', Label]\n"
        assert self.read(read, text).corpus.columns == wanted

    @pytest.mark.parametrize("nothing", ["", "~", "null", "''", "None", "[]"])
    def test_nothing_means_unset(self, read, nothing):
        assert self.read(read, f"clip: {nothing}\n").is_set("clip") is False

    @pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n"])
    def test_an_empty_file_sets_nothing(self, read, text):
        assert self.read(read, text).origins == {}

    def test_numbers_mean_what_they_mean_in_the_other_grammar(self, read):
        # YAML 1.1 takes 1e-8 for a text and 010 for eight.
        config = self.read(read, "l2: 1e-8\nseed: 010\niteration: '3'\n")
        assert (config.training.l2, config.run.seed, config.training.iteration) == (1e-8, 10, 3)

    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ("iteration: 1\nfeature: [Cap] emb_size=20\n", "my.yaml:2: is not YAML"),
            ("iteration: 1\n\tdropout: 0\n", "my.yaml:2: is not YAML"),
            ("iteration: 1\nx: '\x07'\n", "my.yaml:2: is not YAML"),
            ("- iteration\n", "my.yaml:1: holds no mapping"),
            ("iteration\n", "my.yaml:1: holds no mapping"),
            ("iteration: 1\n---\niteration: 2\n", "my.yaml:2: is not YAML"),
            ("a: 1\n? [x, y]\n: 2\n", "my.yaml:2: a key is no word"),
            ("\niteration: [1, 2]\n", "my.yaml:2: iteration=['1', '2'] is not a whole number"),
            ("train_dir: [a]\n", "my.yaml:1: train_dir=['a'] is not a text"),
            ("columns: &x [*x]\n", "my.yaml:1: "),
            ("columns: [[[[[word]]]]]\n", "my.yaml:1: lists within lists"),
            ("<<: {iteration: 1}\nhiden_dim: 5\n", "my.yaml:2: unknown key 'hiden_dim'"),
            ('x: "\\UFFFFFFFF"\n', "my.yaml: is not YAML"),
            ("[" * 800, "my.yaml"),
        ],
    )
    def test_errors_name_the_line(self, read, text, place):
        assert error_of(read, text, name="my.yaml").startswith(place)

    def test_a_tag_is_never_acted_upon(self, read):
        text = "train_dir: !!python/object/apply:os.makedirs made\n"
        assert self.read(read, text).files.train_dir == "made"
        assert not Path("made").exists()


class TestCommandLine:
    def test_both_forms(self, read):
        config = read("", ["--hidden_dim", "40", "--dropout=0.1", "--use_crf", "False"])
        assert config.word_layer.hidden_dim == 40
        assert config.network.dropout == 0.1
        assert config.inference.use_crf is False

    def test_a_boolean_alone_is_true(self, read):
        config = read("", ["--resume", "--norm_word_emb", "--iteration", "2", "--seg"])
        assert config.files.resume and config.words.norm_word_emb and config.corpus.seg is True

    def test_names_in_any_case_and_with_hyphens(self, read):
        config = read("", ["--MAX_SENTENCE_LENGTH", "9", "--hidden-dim", "8"])
        assert (config.corpus.max_sentence_length, config.word_layer.hidden_dim) == (9, 8)

    def test_a_value_may_begin_with_one_hyphen(self, read):
        assert read("", ["--max_word_length", "-1"]).corpus.max_word_length == -1
        assert read("", ["--decode_dir", "-"]).files.decode_dir == "-"

    @pytest.mark.parametrize(
        ("option", "key"),
        [
            ("wordemb", "word_emb_dir"),
            ("charemb", "char_emb_dir"),
            ("savemodel", "model_dir"),
            ("loadmodel", "load_model_dir"),
            ("train", "train_dir"),
            ("dev", "dev_dir"),
            ("test", "test_dir"),
            ("raw", "raw_dir"),
            ("output", "decode_dir"),
        ],
    )
    def test_options_of_the_old_launcher(self, read, option, key):
        config = read("", [f"--{option}", "some/path", "--status", "train"])
        assert config.value(key) == "some/path"
        assert config.is_set(key) and config.is_set(option)

    def test_savedset_seg_and_avg_batch_loss(self, read):
        config = read("", ["--savedset", "m.dset", "--seg", "False", "--avg_batch_loss", "on"])
        assert config.files.model_dir == "m"
        assert config.corpus.seg is False
        assert config.training.ave_batch_loss is True

    def test_an_empty_value_unsets_what_the_file_says(self, read):
        config = read("clip=5\nhidden_dim=90\n", ["--clip=", "--hidden_dim", ""])
        assert config.training.clip is None
        assert config.word_layer.hidden_dim == 200

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--hiden_dim", "5"], "command line: unknown key 'hiden_dim' (the nearest name is"),
            (["--hidden_dim"], "command line: --hidden_dim has no value (--hidden_dim VALUE)"),
            (["--hidden_dim", "--resume"], "command line: --hidden_dim has no value"),
            (["hidden_dim=5"], "command line: 'hidden_dim=5' is no setting (--key value)"),
            (["-x", "5"], "command line: '-x' is no setting"),
            (["--", "5"], "command line: '--' is no setting"),
            (["--dropout", "2"], "command line: dropout='2' is out of range (from 0, below 1)"),
        ],
    )
    def test_errors(self, read, arguments, message):
        assert error_of(read, "", arguments).startswith(message)


class TestMappings:
    def test_typed_values(self, tmp_path):
        given = {
            "train_dir": tmp_path / "a",
            "iteration": 5,
            "l2": 0,
            "clip": None,
            "use_crf": False,
            "columns": ["word", "label"],
            "feature": [FeatureSpec("A"), "[B] emb_size=3", {"name": "C"}],
        }
        config = load_config(given, check_files=False)
        assert config.files.train_dir == str(tmp_path / "a")
        assert (config.training.iteration, config.training.l2) == (5, 0.0)
        assert config.corpus.columns == ("word", "label")
        names = [FeatureSpec("A"), FeatureSpec("B", 3), FeatureSpec("C")]
        assert config.corpus.feature == tuple(names)
        assert config.is_set("l2") and not config.is_set("clip")

    def test_an_error_names_no_file(self):
        with pytest.raises(ConfigError) as caught:
            load_config({"iteration": 0})
        assert str(caught.value) == "iteration=0 is out of range (at least 1)"

    def test_overrides_go_before(self, read):
        config = read("iteration=5\nclip=1\n", {"iteration": 6, "clip": None})
        assert (config.training.iteration, config.training.clip) == (6, None)
