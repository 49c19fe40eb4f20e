"""Section 1 of the contract: files that must exist, sizes that must fit, keys without effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncrf.config import idle_keys
from ncrf.errors import ConfigError

TRAIN = "train_dir=train.txt\nmodel_dir=runs/m\n"


def touch(*paths: str) -> None:
    for path in paths:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()


def error_of(read, text: str, overrides=None, **options) -> str:
    with pytest.raises(ConfigError) as caught:
        read(text, overrides, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestFilesThatMustExist:
    def read(self, read, text, overrides=None):
        return read(text, overrides, check_files=True)

    def test_a_complete_training(self, read):
        touch("train.txt", "dev.txt", "vectors.txt")
        text = TRAIN + "dev_dir=dev.txt\nword_emb_dir=vectors.txt\n"
        assert self.read(read, text).files.train_dir == "train.txt"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("iteration=1\n", "my.config: training needs a corpus, but train_dir is not set"),
            (
                "iteration=1\nstatus=train\n",
                "my.config:2: training needs a corpus, but train_dir is not set (train_dir=PATH)",
            ),
            (
                "status=train\ntrain_dir=train.txt\n",
                "my.config:1: training needs a folder for the model, but model_dir is not set",
            ),
            (TRAIN + "dev_dir=no.txt\n", "my.config:3: dev_dir: 'no.txt' does not exist"),
            (TRAIN + "test_dir=no.txt\n", "my.config:3: test_dir: 'no.txt' does not exist"),
            (TRAIN + "train_dir=.\n", "my.config:3: train_dir: '.' is a folder"),
            (TRAIN + "word_emb_dir=v\n", "my.config:3: word_emb_dir: 'v' does not exist"),
            (TRAIN + "char_emb_dir=v\n", "my.config:3: char_emb_dir: 'v' does not exist"),
            (
                TRAIN + "feature=[A] emb_dir=v\nfeature=[B]\n",
                "my.config:3: feature [A]: 'v' does not exist",
            ),
            (TRAIN + "init_from=old\n", "my.config:3: init_from: 'old' does not exist"),
        ],
    )
    def test_training(self, read, text, message):
        touch("train.txt")
        assert error_of(read, text, check_files=True).startswith(message)

    def test_a_key_from_the_command_line_says_so(self, read):
        message = error_of(read, "", ["--train", "no.txt", "--savemodel", "m"], check_files=True)
        assert message == "command line: train_dir: 'no.txt' does not exist (the path of a file)"

    @pytest.mark.parametrize("name", ["train_dir", "dev_dir", "test_dir"])
    def test_one_corpus_may_be_standard_input(self, read, name):
        touch("train.txt", "dev.txt")
        config = self.read(read, TRAIN + "dev_dir=dev.txt\n", {name: "-"})
        assert config.value(name) == "-"

    def test_two_may_not(self, read):
        message = error_of(read, "model_dir=m\ntrain_dir=-\ntest_dir=-\n", check_files=True)
        assert message.startswith("my.config:3: train_dir and test_dir are both standard input")

    def test_files_that_are_not_used_need_not_exist(self, read):
        touch("train.txt")
        text = (
            TRAIN + "raw_dir=no\nuse_char=False\nchar_emb_dir=no\nuse_word_emb=0\nword_emb_dir=no"
        )
        assert self.read(read, text).files.raw_dir == "no"

    def test_the_folder_of_kept_vectors_need_not_exist_but_is_no_file(self, read):
        touch("train.txt", "auto", "off")
        for value in ("auto", "off", "new/folder", "."):
            assert self.read(read, f"{TRAIN}vector_cache={value}").files.vector_cache == value
        message = error_of(read, f"{TRAIN}vector_cache=./off\n", check_files=True)
        assert message.startswith("my.config:3: vector_cache: './off' is a file (a folder's path")

    def test_a_complete_decoding(self, read):
        touch("raw.txt", "m/config.yaml")
        text = "status=decode\nraw_dir=raw.txt\nload_model_dir=m\n"
        assert self.read(read, text).files.decode_dir is None
        assert self.read(read, text + "decode_dir=new/folder/out.txt\n")
        assert self.read(read, text, ["--raw", "-", "--output", "-"]).files.raw_dir == "-"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("load_model_dir=m\n", "my.config:1: decoding needs a file to decode, but raw_dir"),
            ("raw_dir=raw.txt\n", "my.config:1: decoding needs a model folder, but load_model_dir"),
            ("raw_dir=no\nload_model_dir=m\n", "my.config:2: raw_dir: 'no' does not exist"),
            (
                "raw_dir=raw.txt\nload_model_dir=no\n",
                "my.config:3: load_model_dir: 'no' does not exist (the folder of a model",
            ),
            (
                "raw_dir=raw.txt\nload_model_dir=no.0.model\n",
                "my.config:3: load_model_dir: 'no' does not exist",
            ),
            ("raw_dir=raw.txt\ndset_dir=no.dset\n", "my.config:3: dset_dir: 'no' does not exist"),
            (
                "raw_dir=raw.txt\nmodel_dir=empty\n",
                "my.config:3: model_dir: 'empty' holds no config.yaml",
            ),
            ("raw_dir=raw.txt\nmodel_dir=raw.txt\n", "my.config:3: model_dir: 'raw.txt' is a file"),
            (
                "raw_dir=raw.txt\nload_model_dir=m\ndecode_dir=./raw.txt\n",
                "my.config:4: decode_dir and raw_dir are the same file './raw.txt'",
            ),
            (
                "raw_dir=raw.txt\nload_model_dir=m\ndecode_dir=empty\n",
                "my.config:4: decode_dir: 'empty' is a folder",
            ),
            (
                "raw_dir=raw.txt\nload_model_dir=m\nword_emb_dir=no\n",
                "my.config:4: word_emb_dir: 'no' does not exist",
            ),
        ],
    )
    def test_decoding(self, read, text, message):
        touch("raw.txt", "m/config.yaml", "empty/x")
        assert error_of(read, "status=decode\n" + text, check_files=True).startswith(message)


class TestCombinations:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("hidden_dim=201\n", "my.config:1: hidden_dim=201 is odd, but bilstm=True"),
            (
                "bilstm=yes\nhidden_dim=7\nword_seq_feature=gru\n",
                "my.config:2: hidden_dim=7 is odd",
            ),
            (
                "char_seq_feature=LSTM\nchar_hidden_dim=51\n",
                "my.config:2: char_hidden_dim=51 is odd",
            ),
            (
                "char_seq_feature=GRU\nchar_hidden_dim=51\n",
                "my.config:2: char_hidden_dim=51 is odd",
            ),
            (
                "char_seq_feature=ALL\nchar_hidden_dim=51\n",
                "my.config:2: char_hidden_dim=51 is odd",
            ),
        ],
    )
    def test_an_odd_width_for_two_directions_names_the_next_even_one(self, read, text, message):
        found = error_of(read, text)
        assert found.startswith(message)
        odd = 201 if "201" in text else 7 if "=7" in text else 51
        assert found.endswith(f"(the next even value is {odd + 1})")

    @pytest.mark.parametrize(
        "text",
        [
            "hidden_dim=201\nbilstm=False\n",
            "hidden_dim=201\nword_seq_feature=CNN\n",
            "hidden_dim=201\nuse_word_seq=False\n",
            "char_hidden_dim=51\n",
            "char_hidden_dim=51\nchar_seq_feature=LSTM\nuse_char=False\n",
            "hidden_dim=201\nstatus=decode\n",  # whether it fits is the model's matter
        ],
    )
    def test_an_odd_width_elsewhere_is_fine(self, read, text):
        assert read(text)

    def test_resume_and_overwrite_exclude_each_other(self, read):
        message = error_of(read, "resume=True\noverwrite=True\n")
        assert message.startswith("my.config:2: resume=True and overwrite=True exclude each other")

    def test_plateau_needs_a_dev_corpus(self, read):
        assert error_of(read, "lr_schedule=plateau\n").endswith("(dev_dir=PATH)")
        assert read("lr_schedule=plateau\ndev_dir=d\n")


class TestIdleKeys:
    @pytest.mark.parametrize(
        ("text", "idle"),
        [
            ("cnn_layer=4\nlstm_layer=1\n", ["cnn_layer"]),
            (
                "cnn_layer=4\nlstm_layer=1\nbilstm=True\nword_seq_feature=CNN\n",
                ["lstm_layer", "bilstm"],
            ),
            (
                "use_char=False\nchar_seq_feature=LSTM\nchar_emb_dim=9\nchar_hidden_dim=8\n"
                "char_emb_dir=x\nmax_word_length=5\n",
                ["max_word_length", "char_seq_feature", "char_emb_dim", "char_hidden_dim"],
            ),
            (
                "use_word_seq=False\nword_seq_feature=GRU\nhidden_dim=10\nlstm_layer=2\n",
                ["word_seq_feature", "hidden_dim", "lstm_layer"],
            ),
            ("use_word_emb=False\nword_emb_dim=9\nword_emb_dir=x\n", ["word_emb_dim"]),
            ("norm_word_emb=True\nnorm_char_emb=True\n", ["norm_word_emb", "norm_char_emb"]),
            ("sentence_classification=True\nuse_crf=True\nseg=True\n", ["seg", "use_crf"]),
            ("label_column=xpos\n", ["label_column"]),
            ("file_format=conllu\ncolumns=word,label\n", ["columns"]),
            ("optimizer=Adam\nmomentum=0.9\n", ["momentum"]),
            ("lr_schedule=cosine\nlr_decay=0.1\n", ["lr_decay"]),
            ("patience=5\n", ["patience"]),
            ("patience=5\ndev_dir=d\n", []),
        ],
    )
    def test_known_keys_that_the_chosen_layers_do_not_use(self, read, text, idle):
        found = idle_keys(read(text))
        assert set(idle) <= set(found) and found[: len(idle)] == idle

    def test_a_switch_that_is_off_asks_for_nothing(self, read):
        text = "norm_char_emb=False\nmomentum=0\noptimizer=Adam\nuse_crf=False\n"
        assert idle_keys(read(text + "sentence_classification=True\n")) == []

    def test_defaults_are_not_named(self, read):
        assert idle_keys(read("word_seq_feature=CNN\nuse_char=False\n")) == []
