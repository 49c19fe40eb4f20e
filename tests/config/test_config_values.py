"""What a key allows: booleans, numbers, choices, columns, features - and what an error says."""

from __future__ import annotations

import pytest

from ncrf.config import FeatureSpec, all_keys, load_config
from ncrf.config.document import allowed
from ncrf.errors import ConfigError


def value_of(name: str, raw: object) -> object:
    return load_config({name: raw}, check_files=False).value(name)


def error_of(name: str, raw: object) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config({name: raw}, check_files=False)
    return str(caught.value)


class TestBooleans:
    @pytest.mark.parametrize("word", ["true", "yes", "on", "1", "TRUE", "Yes", "oN"])
    def test_true(self, word):
        assert value_of("use_crf", word) is True

    @pytest.mark.parametrize("word", ["false", "no", "off", "0", "False", "NO", "Off"])
    def test_false(self, word):
        assert value_of("use_crf", word) is False

    @pytest.mark.parametrize("word", ["maybe", "t", "y", "2", "-1", "True#", "00", 2, 1.0])
    def test_anything_else_is_an_error(self, word):
        assert error_of("use_crf", word) == (
            f"use_crf={word!r} is not a boolean (true/false, yes/no, on/off, 1/0)"
        )

    def test_seg_may_be_auto(self):
        assert value_of("seg", "AUTO") == "auto"
        assert value_of("seg", "off") is False
        assert error_of("seg", "span").startswith("seg='span' is neither auto nor a boolean")


class TestNumbers:
    @pytest.mark.parametrize("raw", ["1.0", "1e3", "ten", "1_000", "0x10", "1 0", "9" * 30])
    def test_not_whole(self, raw):
        assert "is not a whole number" in error_of("iteration", raw)

    @pytest.mark.parametrize("raw", [True, 5.0, [5], {"a": 1}])
    def test_typed_values_that_are_not_whole(self, raw):
        assert "is not a whole number" in error_of("iteration", raw)

    @pytest.mark.parametrize("raw", ["nan", "inf", "-inf", "1e999", "1_0.5", "half", "0,5"])
    def test_not_a_finite_number(self, raw):
        assert error_of("learning_rate", raw) == (
            f"learning_rate={raw!r} is not a finite number (as in 0.015 or 1e-8)"
        )

    @pytest.mark.parametrize(
        ("name", "wrong", "right", "said"),
        [
            ("dropout", "-0.1", "0", "from 0, below 1"),
            ("dropout", "1", "0.99", "from 0, below 1"),
            ("iteration", "0", "1", "at least 1"),
            ("batch_size", "0", "1", "at least 1"),
            ("nbest", "-1", "0", "from 0 to 10000"),
            ("hidden_dim", "0", "2", "at least 1"),
            ("char_hidden_dim", "-3", "1", "at least 1"),
            ("word_emb_dim", "0", "1", "at least 1"),
            ("char_emb_dim", "0", "1", "at least 1"),
            ("lstm_layer", "0", "1", "from 1 to 100"),
            ("cnn_layer", "101", "100", "from 1 to 100"),
            ("cnn_padding", "-1", "0", "from 0 to 100"),
            ("learning_rate", "0", "1e-9", "above 0"),
            ("lr_decay", "-1", "0", "at least 0"),
            ("momentum", "1", "0.9", "from 0, below 1"),
            ("l2", "-1e-9", "0", "at least 0"),
            ("clip", "0", "0.1", "above 0"),
            ("warmup", "-1", "0.5", "at least 0"),
            ("patience", "0", "1", "at least 1"),
            ("unk_singleton", "1.1", "1", "from 0 to 1"),
            ("seed", "-1", "0", "from 0 to 4294967295"),
            ("seed", "4294967296", "4294967295", "from 0 to 4294967295"),
            ("threads", "0", "1", "from 1 to 1024"),
            ("max_batch_tokens", "0", "1", "at least 1"),
            ("decode_batch_tokens", "0", "1", "at least 1"),
            ("max_sentence_length", "0", "1", "at least 1, or -1 for no limit"),
            ("max_word_length", "-2", "-1", "at least 1, or -1 for no limit"),
        ],
    )
    def test_ranges(self, name, wrong, right, said):
        assert error_of(name, wrong) == f"{name}={wrong!r} is out of range ({said})"
        assert value_of(name, right) == float(right)

    def test_no_limit_is_minus_one_as_in_ncrfpp(self):
        assert value_of("MAX_SENTENCE_LENGTH", "-1") is None
        assert value_of("MAX_WORD_LENGTH", "-1") == -1

    def test_every_number_has_a_range(self):
        without = [k.name for k in all_keys() if k.type in (int, float) and not k.interval]
        assert without == ["max_sentence_length", "max_word_length"]  # tested above


class TestChoices:
    @pytest.mark.parametrize(
        ("name", "raw", "value"),
        [
            ("optimizer", "sgd", "SGD"),
            ("optimizer", "adadelta", "AdaDelta"),
            ("optimizer", "RMSPROP", "RMSprop"),
            ("optimizer", " adamw ", "AdamW"),
            ("word_seq_feature", "lstm", "LSTM"),
            ("char_seq_feature", "all", "ALL"),
            ("input_scheme", "iob1", "IOB1"),
            ("input_scheme", "Auto", "auto"),
            ("tag_scheme", "bioes", "BIOES"),
            ("output_scheme", "INPUT", "input"),
            ("constraints", "None", "none"),
            ("status", "Train", "train"),
            ("vector_cache", " AUTO ", "auto"),
            ("vector_cache", True, "auto"),
            ("vector_cache", "Off", "off"),
            ("vector_cache", False, "off"),  # what YAML reads for off
            ("vector_cache", "no", "off"),
            ("vector_cache", "Data/Cache", "Data/Cache"),
            ("label_column", "UPOS", "upos"),
            ("label_column", "MISC:Gloss", "misc:Gloss"),
        ],
    )
    def test_enumerated_values_match_in_any_case(self, name, raw, value):
        assert value_of(name, raw) == value

    def test_an_unknown_value_names_the_nearest(self):
        assert error_of("word_seq_feature", "LTSM") == (
            "word_seq_feature='LTSM' is not known (one of LSTM, GRU, CNN, none; nearest: LSTM)"
        )
        assert error_of("optimizer", "adagrat").endswith("nearest: Adagrad)")
        assert error_of("use_crff", "1").endswith("(the nearest name is use_crf)")
        assert "nearest: xpos" in error_of("label_column", "xpo")
        assert "one of upos, xpos, feats, deprel, misc:KEY" in error_of("label_column", "misc:")

    def test_the_sets_are_those_of_ncrfpp(self):
        choices = {k.name: k.choices for k in all_keys()}
        assert set(choices["optimizer"]) == {
            *("SGD", "Adagrad", "AdaDelta", "RMSprop", "Adam"),
            "AdamW",
            *("LBFGS", "IIS-S", "IIS-T", "perceptron", "PA"),
        }
        assert {"CNN", "LSTM", "GRU", "ALL"} <= set(choices["char_seq_feature"])
        assert {"LSTM", "GRU", "CNN"} <= set(choices["word_seq_feature"])


class TestColumns:
    def test_conll_2003_as_distributed(self):
        wanted = ("word", "[POS]", "[chunk]", "label")
        assert value_of("columns", " Word , [POS],[chunk], LABEL") == wanted

    @pytest.mark.parametrize(
        ("raw", "what"),
        [
            ("label,[POS]", "has no word column"),
            ("word,POS,label", "has an unknown column 'POS'"),
            ("word,[],label", "has an unknown column '[]'"),
            ("word,,label", "has an unknown column ''"),
            ("word,word,label", "names word twice"),
            ("word,label,label", "names label twice"),
            ("word,[A],[A]", "names [A] twice"),
            (["word", 3], "has a part 3"),
            (7, "is not a list"),
        ],
    )
    def test_errors(self, raw, what):
        assert error_of("columns", raw).startswith(f"columns={raw!r} {what} (")

    def test_skipped_columns_may_repeat_and_the_label_may_be_missing(self):
        assert value_of("columns", "-,word,-") == ("-", "word", "-")


class TestFeatures:
    def test_the_options_of_a_line(self):
        line = "[Cap] EMB_SIZE=5   emb_dir=a/b.txt emb_norm=yes from=CAPITALIZATION"
        wanted = FeatureSpec("Cap", 5, "a/b.txt", True, "capitalization")
        assert value_of("feature", line) == (wanted,)

    def test_a_name_keeps_its_case_and_may_hold_anything_but_brackets(self):
        assert value_of("feature", "[my POS=x]") == (FeatureSpec("my POS=x"),)
        assert value_of("feature", {"name": "NULL"}) == (FeatureSpec("NULL"),)

    def test_empty_options_are_unset(self):
        assert value_of("feature", "[A] emb_size= emb_dir=None") == (FeatureSpec("A"),)

    @pytest.mark.parametrize(
        ("raw", "what"),
        [
            ("Cap emb_size=20", "does not begin with [NAME]"),
            ("[] emb_size=20", "name='[]' is not the name of a feature"),
            ("[A] emb_size=0", "emb_size='0' is out of range (at least 1)"),
            ("[A] emb_size=x", "emb_size='x' is not a whole number"),
            ("[A] emb_norm=maybe", "emb_norm='maybe' is not a boolean"),
            ("[A] emb_sise=3", "has an unknown option 'emb_sise' (nearest: emb_size)"),
            ("[A] emb_size=3 Emb_Size=4", "gives emb_size twice"),
            ("[A] name=B", "has 'name=B'"),
            ("[A] 20", "has '20'"),
            ("[A] from=capitalisation", "from='capitalisation' is not known (one of cap"),
            (FeatureSpec("A", emb_size=0), "emb_size=0 is out of range (at least 1)"),
            ({"emb_size": 3}, "names no feature"),
            ({"name": "a]b"}, "name='a]b' is not the name of a feature"),
            ([["A"]], "does not begin with [NAME]"),
            (5, "is not a feature"),
        ],
    )
    def test_errors(self, raw, what):
        assert error_of("feature", raw).startswith(f"feature={raw!r} {what}")


class TestTexts:
    def test_names_to_freeze(self):
        assert value_of("freeze", "Word, CHAR,[POS],Cap") == ("word", "char", "POS", "Cap")
        assert value_of("freeze", ["word"]) == ("word",)
        assert error_of("freeze", "word,,char").startswith("freeze='word,,char' has an empty part")

    def test_a_nul_character_is_refused(self):
        assert "holds a NUL character" in error_of("train_dir", "a\0b")

    def test_a_long_value_is_shortened_in_the_error(self):
        assert len(error_of("iteration", "x" * 10_000)) < 200


def test_every_key_says_what_it_is():
    for k in all_keys():
        assert len(k.doc) > 15 and k.doc.endswith("."), k.name
        assert k.doc[0].isupper() or k.doc.startswith("ncrf"), k.name
        assert allowed(k), k.name
