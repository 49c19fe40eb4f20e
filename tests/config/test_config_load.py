"""Section 1 of the contract: names, status, precedence, model folders."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from ncrf.config import Config, FeatureSpec, idle_keys, load_config, model_folder
from ncrf.errors import ConfigError, InputError


def error_of(read, text: str, overrides=None, **options) -> str:
    with pytest.raises(ConfigError) as caught:
        read(text, overrides, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestDefaults:
    def test_seed_is_the_key_and_42_the_default(self):
        assert Config().run.seed == 42
        assert load_config({"seed": 7}, check_files=False).run.seed == 7

    def test_the_defaults_of_ncrfpp(self):
        c = Config()
        assert (c.words.word_emb_dim, c.chars.char_emb_dim) == (50, 30)
        assert (c.word_layer.hidden_dim, c.chars.char_hidden_dim) == (200, 50)
        assert (c.word_layer.lstm_layer, c.word_layer.cnn_layer) == (1, 4)
        assert (c.word_layer.word_seq_feature, c.chars.char_seq_feature) == ("LSTM", "CNN")
        assert (c.training.iteration, c.training.batch_size) == (100, 10)
        assert (c.training.optimizer, c.training.learning_rate) == ("SGD", 0.015)
        assert (c.training.lr_decay, c.training.momentum, c.training.l2) == (0.05, 0.0, 1e-8)
        assert (c.network.dropout, c.word_layer.bilstm, c.training.clip) == (0.5, True, None)
        assert c.inference.use_crf and c.chars.use_char and c.corpus.number_normalized
        assert not (c.words.norm_word_emb or c.chars.norm_char_emb or c.training.ave_batch_loss)
        assert c.corpus.seg is True and c.run.gpu is None and c.decoding.nbest is None

    def test_a_config_is_frozen(self):
        with pytest.raises(AttributeError):
            Config().training.iteration = 3
        with pytest.raises(AttributeError):
            Config().training = None
        assert hash(Config()) == hash(load_config({}, check_files=False))


class TestUnknownKeys:
    @pytest.mark.parametrize(
        ("name", "close"),
        [
            ("hiden_dim", "hidden_dim"),
            ("HIDDEN-DIMS", "hidden_dim"),
            ("average_batch_loss", "ave_batch_loss"),
            ("word_embedding_dim", "word_emb_dim"),
            ("features", "feature"),
            ("trian_dir", "train_dir"),
            ("savemodle", "model_dir"),  # an alias leads to its key
        ],
    )
    def test_the_error_names_line_and_nearest(self, read, name, close):
        assert error_of(read, f"# c\n{name}=5\n") == (
            f"my.config:2: unknown key {name!r} (the nearest name is {close})"
        )

    def test_whatever_the_name_one_is_nearest(self, read):
        assert "(the nearest name is " in error_of(read, "§§§§=1\n")
        assert "(the nearest name is " in error_of(read, "x" * 5000 + "=1\n")

    @pytest.mark.parametrize("value", ["None", "none", "False", "FALSE", ""])
    @pytest.mark.parametrize("name", ["low_level_transformer", "word_emb_finetune", "A_Finetune"])
    def test_the_later_branch_is_accepted_while_it_asks_for_nothing(self, read, name, value):
        assert read(f"{name}={value}\n").origins == {}

    @pytest.mark.parametrize("value", ["bert-base-uncased", "True", "1", "0"])
    def test_but_not_when_it_asks_for_something(self, read, value):
        message = error_of(read, f"high_level_transformer={value}\n")
        assert message == (
            f"my.config:1: high_level_transformer={value!r} is not supported (None or False)"
        )

    def test_use_word_emb_and_use_word_seq_switch_parts_off(self, read):
        config = read("use_word_emb=False\nuse_word_seq=False\n")
        assert not config.words.use_word_emb and not config.word_layer.use_word_seq


class TestStatus:
    @pytest.mark.parametrize(
        ("text", "status"),
        [
            ("", "train"),
            ("raw_dir=r\nload_model_dir=m\n", "decode"),
            ("raw_dir=r\ndset_dir=m.dset\n", "decode"),
            ("raw_dir=r\nload_model_dir=m\ntrain_dir=t\n", "train"),
            ("raw_dir=r\n", "train"),
            ("load_model_dir=m\n", "train"),
            ("train_dir=t\nstatus=decode\n", "decode"),
            ("raw_dir=r\nload_model_dir=m\nstatus=train\n", "train"),
            ("raw_dir=r\nload_model_dir=m\nstatus=\n", "decode"),
        ],
    )
    def test_it_follows_from_the_files_when_it_is_missing(self, read, text, status):
        assert read(text).run.status == status


class TestPrecedence:
    def test_defaults_then_file_then_command_line(self, read):
        config = read("iteration=5\nbatch_size=20\n", ["--iteration", "6"])
        assert config.training.iteration == 6
        assert config.training.batch_size == 20
        assert config.word_layer.hidden_dim == 200

    def test_a_base_takes_the_place_of_the_defaults(self, read):
        base = read("iteration=5\nclip=3\nfeature=[A]\n")
        config = read("iteration=6\nfeature=[B]\n", base=base)
        assert (config.training.iteration, config.training.clip) == (6, 3.0)
        assert config.corpus.feature == (FeatureSpec("A"), FeatureSpec("B"))
        assert read("clip=\n", base=base).training.clip is None

    def test_a_config_may_be_the_source(self, read):
        base = read("iteration=5\nclip=3\n")
        config = load_config(base, {"clip": None, "hidden_dim": 10}, check_files=False)
        assert (config.training.iteration, config.training.clip) == (5, None)
        assert config.is_set("iteration") and config.is_set("hidden_dim")
        assert not config.is_set("clip")

    def test_is_set_tells_what_was_given(self, read):
        config = read("batch_size=10\nMAX_SENTENCE_LENGTH=250\n", ["--train", "x"])
        assert config.is_set("batch_size") and config.is_set("BATCH_SIZE")
        assert config.is_set("max_sentence_length") and config.is_set("train_dir")
        assert not config.is_set("iteration")
        with pytest.raises(ConfigError, match=r"unknown key 'batchsize'.*batch_size"):
            config.is_set("batchsize")


class TestReplace:
    def test_a_changed_copy(self, read):
        config = read("iteration=5\n")
        changed = config.replace(word_emb_dim=100, feature=[FeatureSpec("A", 7)], clip="2")
        assert config.words.word_emb_dim == 50
        assert changed.words.word_emb_dim == 100 and changed.training.clip == 2.0
        assert changed.corpus.feature == (FeatureSpec("A", 7),)
        assert changed.is_set("iteration") and not changed.is_set("clip")
        assert changed.replace(clip=None, word_emb_dim=50, feature=()) == config

    def test_values_are_checked(self):
        with pytest.raises(ConfigError, match=r"dropout=1 is out of range \(from 0, below 1\)"):
            Config().replace(dropout=1)
        with pytest.raises(ConfigError, match="unknown key 'droput'"):
            Config().replace(droput=0)


class TestFolders:
    @pytest.mark.parametrize(
        ("path", "folder"),
        [
            ("a/ner.dset", "a/ner"),
            ("a/ner.model", "a/ner"),
            ("a/ner.0.model", "a/ner"),
            ("a/ner.127.model/", "a/ner"),
            ("a/v1.5.ner.3.model", "a/v1.5.ner"),
            ("7.model", "7"),
            ("a/ner", "a/ner"),
            ("a/ner.model.x", "a/ner.model.x"),
            ("a/.model", "a/.model"),
            ("a.model/b", "a.model/b"),
        ],
    )
    def test_names_of_ncrfpp(self, path, folder):
        assert model_folder(path) == folder

    def test_a_folder_of_that_very_name_is_meant_as_it_stands(self):
        Path("ner.model").mkdir()
        assert model_folder("ner.model") == "ner.model"

    def test_it_is_said_in_the_log(self, read, caplog):
        caplog.set_level(logging.INFO)
        config = read("status=decode\ndset_dir=s/x.dset\nload_model_dir=s/x.0.model\n")
        assert config.files.load_model_dir == "s/x"
        said = [r.getMessage() for r in caplog.records if r.levelno == logging.INFO]
        assert said == [
            "load_model_dir=s/x.0.model is a file name of NCRF++; the model folder is s/x",
            "dset_dir=s/x.dset is a file name of NCRF++; the model folder is s/x",
        ]

    @pytest.mark.parametrize("name", ["load_model_dir", "dset_dir", "model_dir"])
    def test_decoding_finds_the_model_under_each_name(self, read, name):
        config = read(f"status=decode\n{name}=a/m.dset\n")
        assert config.files.load_model_dir == "a/m"

    @pytest.mark.parametrize("name", ["dset_dir", "model_dir"])
    def test_training_finds_its_folder_under_two(self, read, name):
        assert read(f"status=train\n{name}=a/m.dset\n").files.model_dir == "a/m"

    def test_one_folder_in_several_spellings(self, read, tmp_path):
        text = f"status=decode\ndset_dir=a/m.dset\nload_model_dir=./a//m\nmodel_dir={tmp_path}/a/m"
        assert read(text).files.load_model_dir == "./a//m"

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("model_dir=a", "load_model_dir=b"),
            ("load_model_dir=a.0.model", "dset_dir=b.dset"),
            ("model_dir=a.dset", "dset_dir=b"),
        ],
    )
    @pytest.mark.parametrize("status", ["train", "decode"])
    def test_two_names_for_different_folders_are_an_error(self, read, one, other, status):
        message = error_of(read, f"status={status}\n{one}\n{other}\n")
        assert message.startswith("my.config:3: ")
        assert "names the folder 'b'" in message and "names 'a'" in message

    def test_relative_paths_are_kept(self, read):
        assert read("train_dir=../data/x\n").files.train_dir == "../data/x"


class TestNcrfppConfigs:
    """The three kinds of config that NCRF++ users have, in our own words."""

    TAGGER = """\
# ---- files ----
train_dir=corpus/train.bmes
dev_dir=corpus/dev.bmes
test_dir=corpus/test.bmes
model_dir=runs/tagger
word_emb_dir=corpus/words.emb

#raw_dir=
#dset_dir=

norm_word_emb=False
norm_char_emb=False
number_normalized=True
seg=True
word_emb_dim=50
char_emb_dim=30

# ---- network ----
use_crf=True
use_char=True
word_seq_feature=LSTM
char_seq_feature=CNN
feature=[POS] emb_size=20
feature=[Cap] emb_size=20 emb_dir=None
#nbest=1

# ---- training ----
status=train
optimizer=SGD
iteration=1
batch_size=10
ave_batch_loss=False
cnn_layer=4
char_hidden_dim=50
hidden_dim=200
dropout=0.5
lstm_layer=1
bilstm=True
learning_rate=0.015
lr_decay=0.05
momentum=0
l2=1e-8
#gpu
#clip=
"""

    def test_a_tagger(self, read):
        config = read(self.TAGGER, name="tagger.train.config")
        assert config.run.status == "train" and config.files.model_dir == "runs/tagger"
        assert config.corpus.feature == (FeatureSpec("POS"), FeatureSpec("Cap"))
        assert config.training.l2 == 1e-8 and config.training.momentum == 0.0
        assert idle_keys(config) == ["cnn_layer"]

    def test_a_classifier(self, read):
        text = self.TAGGER.replace("seg=True", "seg=False").replace("crf=True", "crf=False")
        config = read("sentence_classification=True\n" + text)
        assert config.corpus.sentence_classification and not config.inference.use_crf
        assert idle_keys(config) == ["cnn_layer"]

    def test_decoding(self, read):
        text = (
            "### Decode ###\nstatus=decode\nraw_dir=corpus/raw.bmes\nnbest=10\n"
            "decode_dir=corpus/raw.out\ndset_dir=runs/tagger.dset\n"
            "load_model_dir=runs/tagger.0.model"
        )
        config = read(text)
        assert config.run.status == "decode" and config.decoding.nbest == 10
        assert config.files.load_model_dir == "runs/tagger"


def test_importing_the_config_takes_no_torch():
    code = (
        "import sys; from ncrf.config import keys_table, load_config; keys_table(); "
        "load_config({}, check_files=False); "
        "print([m for m in ('torch', 'numpy', 'gensim') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_config_error_ends_with_status_2():
    assert issubclass(ConfigError, InputError) and ConfigError("x").exit_status == 2
