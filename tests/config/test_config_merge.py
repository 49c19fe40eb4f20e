"""Section 1 of the contract: what a decode config may change of a model, and what not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncrf.config import (
    FeatureSpec,
    all_keys,
    idle_keys,
    load_config,
    merge_decode_config,
    read_model_config,
    write_config,
)
from ncrf.errors import ConfigError


def merged(model: dict, decode: dict):
    return merge_decode_config(
        load_config(model, check_files=False),
        load_config({"status": "decode", **decode}, check_files=False),
    )


class TestPrecedence:
    def test_the_model_then_the_decode_file_then_the_command_line(self, read):
        model = read("hidden_dim=40\nnbest=2\nconstraints=all\ncolumns=word,label\n")
        decode = read("status=decode\nnbest=5\nconstraints=none\n", ["--nbest", "10"])
        config = merge_decode_config(model, decode)
        assert config.word_layer.hidden_dim == 40
        assert config.decoding.nbest == 10
        assert config.inference.constraints == "none"
        assert config.corpus.columns == ("word", "label")

    @pytest.mark.parametrize(
        ("name", "models", "asked"),
        [
            ("constraints", "decode", "none"),
            ("output_scheme", "BIO", "BIOES"),
            ("nbest", 2, 10),
            ("batch_size", 10, 200),
            ("columns", "word,label", "word,-,label"),
            ("column_separator", "tab", "space"),
            ("comment_prefix", "#", "%"),
            ("file_format", "columns", "conllu"),
            ("raw_format", "columns", "lines"),
            ("decode_format", "text", "json"),
            ("marginals", False, True),
            ("word_emb_dir", "a", "b"),
        ],
    )
    def test_keys_that_do_not_shape_the_model_may_change(self, name, models, asked):
        wanted = load_config({name: asked}, check_files=False).value(name)
        assert merged({name: models}, {name: asked}).value(name) == wanted
        assert merged({name: models}, {}).value(name) != wanted

    def test_an_empty_value_leaves_the_models(self, read):
        decode = read("status=decode\nnbest=\n")
        assert merge_decode_config(read("nbest=3\n"), decode).decoding.nbest == 3

    def test_run_and_files_are_never_the_models(self):
        model = {"gpu": True, "seed": 1, "threads": 3, "train_dir": "t", "model_dir": "m"}
        config = merged(model, {"raw_dir": "r", "load_model_dir": "n"})
        assert (config.run.status, config.run.gpu, config.run.seed) == ("decode", None, 42)
        assert (config.files.train_dir, config.files.model_dir) == (None, None)
        assert (config.files.raw_dir, config.files.load_model_dir) == ("r", "n")

    def test_is_set_is_what_the_decode_config_says(self):
        assert not merged({"batch_size": 5}, {}).is_set("batch_size")
        assert merged({"batch_size": 5}, {"batch_size": 7}).is_set("batch_size")
        assert idle_keys(merged({"cnn_layer": 3}, {})) == []


#: For every key that shapes a model: the model's value, another one, what else is set.
OTHER = {
    "sentence_classification": (False, True, {}),
    "number_normalized": (True, False, {}),
    "lowercase": (False, True, {}),
    "tag_scheme": ("BIOES", "BIO", {}),
    "label_delimiter": ("-", "_", {}),
    "max_word_length": (20, 30, {}),
    "use_word_emb": (True, False, {}),
    "word_emb_dim": (50, 100, {}),
    "norm_word_emb": (False, True, {"word_emb_dir": "v"}),
    "use_char": (True, False, {}),
    "char_seq_feature": ("CNN", "LSTM", {}),
    "char_emb_dim": (30, 31, {}),
    "char_hidden_dim": (50, 60, {}),
    "use_word_seq": (True, False, {}),
    "word_seq_feature": ("LSTM", "GRU", {}),
    "hidden_dim": (200, 201, {}),
    "lstm_layer": (1, 2, {}),
    "cnn_layer": (4, 5, {"word_seq_feature": "CNN"}),
    "cnn_padding": (0, 4, {"word_seq_feature": "CNN"}),
    "bilstm": (True, False, {}),
    "use_crf": (True, False, {}),
    "document_memory": (False, True, {}),
    "template_file": ("a", "b", {}),
    "feature_cutoff": (1, 2, {"template_file": "t"}),
    "all_possible_states": (False, True, {"template_file": "t"}),
    "all_possible_transitions": (True, False, {"template_file": "t"}),
}


class TestShape:
    @pytest.mark.parametrize("name", sorted(OTHER))
    def test_a_different_value_is_an_error_that_shows_both(self, read, name):
        models, asked, rest = OTHER[name]
        model = load_config({name: models, **rest}, check_files=False)
        decode = read(f"status=decode\n{name}={asked}\n")
        with pytest.raises(ConfigError) as caught:
            merge_decode_config(model, decode)
        assert str(caught.value).startswith(
            f"my.config:2: {name}={asked} does not fit the model, which has {name}={models} ("
        )

    @pytest.mark.parametrize("name", sorted(OTHER))
    def test_the_same_value_is_none(self, name):
        models, _, rest = OTHER[name]
        assert merged({name: models, **rest}, {name: models}).value(name) == models

    def test_no_key_is_forgotten_above(self):
        shaping = {k.name for k in all_keys() if k.shapes_model}
        assert shaping == set(OTHER) | {"feature"}

    def test_a_key_that_the_model_does_not_use_does_not_matter(self):
        lstm = merged({"word_seq_feature": "LSTM"}, {"cnn_layer": 7})
        assert lstm.word_layer.word_seq_feature == "LSTM"
        assert not merged({"use_char": False}, {"char_hidden_dim": 7}).chars.use_char

    def test_a_width_that_came_from_a_vector_file_does_not_matter(self):
        model = {"word_emb_dim": 100, "word_emb_dir": "glove", "char_emb_dir": "c"}
        config = merged(model, {"word_emb_dim": 50, "char_emb_dim": 5})
        assert (config.words.word_emb_dim, config.chars.char_emb_dim) == (100, 30)

    def test_tag_scheme_keep_asks_for_nothing(self):
        assert merged({"tag_scheme": "BIO"}, {"tag_scheme": "keep"}).corpus.tag_scheme == "BIO"


MODEL = {
    "feature": ["[Cap] emb_size=10", "[POS] emb_dir=pos", "[S] from=capitalization"],
}


class TestFeatures:
    @pytest.mark.parametrize(
        "asked", ["[Cap] emb_size=10", "[POS] emb_size=7 emb_dir=other", "[S] from=capitalization"]
    )
    def test_a_decode_config_may_list_some_of_the_models(self, asked):
        config = merged(MODEL, {"feature": asked})
        assert [spec.name for spec in config.corpus.feature] == ["Cap", "POS", "S"]
        assert config.corpus.feature[0] == FeatureSpec("Cap", 10)

    @pytest.mark.parametrize(
        ("asked", "what"),
        [
            ("[Cap] emb_size=11", "[Cap] emb_size=11 does not fit the model, which has [Cap] emb_"),
            ("[X]", "[X] does not fit the model, which has [Cap], [POS], [S] ("),
            ("[S]", "[S] emb_size=20 does not fit the model, which has [S] emb_size=20 from=capit"),
        ],
    )
    def test_others_are_an_error(self, read, asked, what):
        model = load_config(MODEL, check_files=False)
        decode = read(f"status=decode\nfeature={asked}\n")
        with pytest.raises(ConfigError) as caught:
            merge_decode_config(model, decode)
        assert str(caught.value).startswith(f"my.config:2: feature {what}")


class TestModelFolder:
    def write(self, text: str) -> None:
        Path("m").mkdir(exist_ok=True)
        Path("m/config.yaml").write_text(text, encoding="utf-8")

    def test_the_files_it_names_need_not_exist(self, read):
        config = read("train_dir=gone.txt\nmodel_dir=m\nword_emb_dir=gone.vec\nhidden_dim=40\n")
        Path("m").mkdir()
        write_config(config, "m/config.yaml")
        assert read_model_config("m") == config
        assert read_model_config(Path("m.0.model")) == config

    def test_a_folder_without_a_model_is_an_error(self):
        with pytest.raises(ConfigError, match=r"'m' does not exist \(the folder of a model"):
            read_model_config("m")
        Path("m").mkdir()
        with pytest.raises(ConfigError, match=r"'m' holds no config\.yaml"):
            read_model_config("m")

    def test_it_may_not_name_plugins(self):
        Path("evil.py").write_text("open('proof', 'w').close()")
        for line in ("plugins: evil", "PLUGINS: [evil]", "run: {Plugins: evil}"):
            self.write(f"hidden_dim: 40\n{line}\n")
            with pytest.raises(ConfigError, match=r"config\.yaml:2: a model may not name plugins"):
                read_model_config("m")
        assert not Path("proof").exists()

    def test_an_unknown_name_may_be_a_plugins(self):
        self.write("char_seq_feature: HIGHWAY\n")
        with pytest.raises(ConfigError, match="if a plugin declares it, pass plugins="):
            read_model_config("m")
        self.write("highway_depth: 3\n")
        with pytest.raises(ConfigError, match="if a plugin declares it, pass plugins="):
            read_model_config("m")
        self.write("dropout: 3\n")
        with pytest.raises(ConfigError, match=r"is out of range \(from 0, below 1\)$"):
            read_model_config("m")

    def test_it_is_checked_like_any_other(self):
        self.write("hidden_dim: 41\nstatus: decode\n")
        with pytest.raises(ConfigError, match=r"m/config\.yaml:1: hidden_dim=41 is odd"):
            read_model_config("m")
