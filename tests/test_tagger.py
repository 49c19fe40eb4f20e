"""The Tagger, as a Python user meets it."""

import errno
import io
import math
import os
from pathlib import Path

import pytest
import torch

import ncrf
from ncrf import Tagger
from ncrf.data.schemes import convert, spans
from ncrf.errors import InputError, NcrfError
from tests.conftest import SAMPLE, small_keys

SENTENCES = [["Anna", "met", "Bo", "in", "Oslo"], ["Reading"], [], ["the", "end", "."] * 30]


def test_public_names():
    assert ncrf.Tagger is Tagger
    assert set(ncrf.__all__) == {"Config", "FeatureCRF", "Tagger", "__version__", "load_config"}
    with pytest.raises(AttributeError):
        _ = ncrf.Taggre


class TestPredict:
    def test_in_the_order_given_one_label_a_word(self, tagger):
        predictions = tagger.predict(SENTENCES)
        assert [p.tokens for p in predictions] == SENTENCES
        assert [len(p.labels) for p in predictions] == [len(s) for s in SENTENCES]
        for sentence, together in zip(SENTENCES, predictions, strict=True):
            alone = tagger.predict([sentence])[0]
            assert alone.labels == together.labels
            assert alone.probability == pytest.approx(together.probability, abs=1e-5)

    def test_an_empty_sentence_has_one_certain_labeling(self, tagger):
        (prediction,) = tagger.predict([[]], nbest=3, marginals=True)
        assert prediction.labels == [] and prediction.probability == 1.0
        assert [x.probability for x in prediction.nbest] == [1.0] and prediction.marginals == []

    def test_nbest(self, tagger):
        for prediction in tagger.predict(SENTENCES, nbest=4):
            labelings = [tuple(x.labels) for x in prediction.nbest]
            probabilities = [x.probability for x in prediction.nbest]
            assert len(set(labelings)) == len(labelings) == (4 if prediction.tokens else 1)
            assert probabilities == sorted(probabilities, reverse=True)
            assert sum(probabilities) <= 1 + 1e-6
            assert prediction.labels == list(labelings[0])
            assert prediction.probability == probabilities[0]

    def test_all_labelings_of_a_word_sum_to_one(self, tagger):
        """More than there are is asked for: all come, and the whole probability with them."""
        (prediction,) = tagger.predict([["Oslo"]], nbest=1000)
        assert 1 < len(prediction.nbest) < 1000
        assert math.fsum(x.probability for x in prediction.nbest) == pytest.approx(1, abs=1e-5)
        # One word: its marginal is the probability of the labeling, and of the entity if one.
        (prediction,) = tagger.predict([["Oslo"]], marginals=True)
        assert prediction.marginals[0] == pytest.approx(prediction.probability, abs=1e-5)

    def test_span_probability_is_the_total_of_the_labelings_that_have_it(self, tagger):
        (prediction,) = tagger.predict([["Anna", "left"]], nbest=1000)
        assert math.fsum(x.probability for x in prediction.nbest) == pytest.approx(1, abs=1e-5)
        assert prediction.spans
        for span in prediction.spans:
            wanted = (span.label, span.start, span.end)
            having = [x.probability for x in prediction.nbest if wanted in spans(x.labels)]
            assert span.probability == pytest.approx(math.fsum(having), abs=1e-5)
            assert span.text == " ".join(["Anna", "left"][span.start : span.end])

    def test_any_sequence_of_strings_is_a_sentence(self, tagger):
        (given_tuple,) = tagger.predict([("Anna", "left")])
        assert given_tuple.labels == tagger.predict([["Anna", "left"]])[0].labels

    @pytest.mark.parametrize(
        ("sentences", "message"),
        [
            (["Anna left"], "sentence 0 is a string"),
            ("Anna left", "the sentences are one string"),
            ([["Anna"], ["left", ""]], "sentence 1, word 1"),
            ([["Anna", 5]], "sentence 0, word 1"),
            ([{"POS": ["N"]}], "has no 'words'"),
            ([["Anna"], 5], "sentence 1 is 5"),
            ([{"words": 5}], "sentence 0 is 5"),
        ],
    )
    def test_wrong_sentences_are_named(self, tagger, sentences, message):
        with pytest.raises(InputError, match=message):
            tagger.predict(sentences)

    def test_stream_is_lazy_and_equal(self, tagger):
        taken = []

        def sentences():
            for i in range(5000):
                taken.append(i)
                yield ["Anna", "left"] * (1 + i % 3)

        stream = tagger.stream(sentences())
        first = next(stream)
        assert first.labels == tagger.predict([["Anna", "left"]])[0].labels
        assert len(taken) < 5000
        assert 1 + sum(1 for _ in stream) == 5000


def test_evaluate_gives_fractions(tagger):
    score = tagger.evaluate(SAMPLE / "test.bioes")
    for value in (score.precision, score.recall, score.f1, score.accuracy):
        assert 0 < value <= 1
    assert set(score.per_type) == {"LOC", "MISC", "ORG", "PER"}


@pytest.mark.parametrize("scheme", ["IOB2", "IOB1", "BMES", "BILOU"])
def test_a_file_in_another_scheme_is_scored_alike(tagger, tmp_path, caplog, scheme):
    expected = tagger.evaluate(SAMPLE / "test.bioes")
    blocks = (SAMPLE / "test.bioes").read_text().strip().split("\n\n")
    rows = [[row.split(" ") for row in block.split("\n")] for block in blocks]
    other = tmp_path / "other"
    with other.open("w") as file:
        for sentence in rows:
            labels = convert([label for _, label in sentence], "BIOES", scheme)
            for (word, _), label in zip(sentence, labels, strict=True):
                file.write(f"{word} {label}\n")
            file.write("\n")
    assert tagger.evaluate(other) == expected
    assert f"labels in {scheme}, but those of the training corpus in BIOES" in caplog.text


@pytest.mark.parametrize("nbest", [-1, "3", 1.5])
def test_a_wrong_nbest_is_an_error(tagger, nbest):
    with pytest.raises(InputError, match="nbest is"):
        tagger.predict([["Anna"]], nbest=nbest)


def assert_alike(found, expected):
    """The same up to rounding, which depends on what words were met together before."""
    assert [p.labels for p in found] == [p.labels for p in expected]
    probabilities = [p.probability for p in expected]
    assert [p.probability for p in found] == pytest.approx(probabilities, rel=1e-5)


def test_save_and_load(tagger, tmp_path):
    tagger.save(tmp_path / "copy")
    copy = Tagger.load(tmp_path / "copy")
    assert_alike(copy.predict(SENTENCES), tagger.predict(SENTENCES))
    with pytest.raises(InputError, match="holds a model"):
        tagger.save(tmp_path / "copy")
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]


def test_a_copy_has_the_history_of_the_training(trained, tmp_path):
    tagger = Tagger.train(small_keys(tmp_path / "model", iteration=1))
    tagger.save(tmp_path / "first")
    Tagger.load(tmp_path / "first").save(tmp_path / "second")
    expected = (tmp_path / "model" / "history.jsonl").read_bytes()
    assert len(expected.splitlines()) == 1
    for name in ("first", "second"):
        assert (tmp_path / name / "history.jsonl").read_bytes() == expected


@pytest.mark.parametrize("made_before", [False, True])
def test_a_save_that_fails_leaves_nothing_behind(tagger, tmp_path, monkeypatch, made_before):
    place = tmp_path / "new" / "copy"
    if made_before:
        place.mkdir(parents=True)

    def full(number):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(NcrfError, match=r"copy/\w+\.\w+: cannot be written: No space left"):
            tagger.save(place)
    assert not list(tmp_path.rglob("*.*")) and place.exists() == made_before
    tagger.save(place)
    assert_alike(Tagger.load(place).predict(SENTENCES), tagger.predict(SENTENCES))
    assert not list(tmp_path.rglob("*.tmp"))


def test_load_takes_keys_that_do_not_shape_the_model(trained):
    tagger = Tagger.load(trained, constraints="none", batch_size=1)
    assert not tagger.predictor.labeler.inference.constrained
    assert Tagger.load(trained).predictor.labeler.inference.constrained
    with pytest.raises(InputError, match="hidden_dim"):
        Tagger.load(trained, hidden_dim=300)


def test_nbest_and_marginals_can_be_asked_for_at_load(trained):
    tagger = Tagger.load(trained, nbest=2, marginals=True)
    (prediction,) = tagger.predict([["Anna", "left"]])
    assert len(prediction.nbest) == 2 and len(prediction.marginals) == 2
    assert tagger.predict([["Anna"]], nbest=0)[0].nbest is None


def test_load_refuses_what_is_no_model(tmp_path, trained):
    with pytest.raises(InputError, match="no such model folder"):
        Tagger.load(tmp_path / "nothing")
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in ("config.yaml", "alphabets.json", "model.safetensors"):
        broken.joinpath(name).write_bytes((trained / name).read_bytes()[:-20])
    with pytest.raises(InputError, match="broken"):
        Tagger.load(broken)


@pytest.mark.parametrize("method", ["is_dir", "read_bytes"])
def test_load_names_what_may_not_be_read(trained, monkeypatch, method):
    """As for a folder, or one above it, without permission; root may read everything."""

    def refuse(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, method, refuse)
    with pytest.raises(InputError, match=f"^{trained}.*: cannot be read: Permission denied"):
        Tagger.load(trained)


def test_train_reads_standard_input(tmp_path, monkeypatch):
    text = (SAMPLE / "dev.bioes").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    keys = {"dev_dir": None, "iteration": 1}
    piped = Tagger.train(small_keys(tmp_path / "piped", **{**keys, "train_dir": "-"}))
    read = Tagger.train(small_keys(tmp_path / "read", **keys))
    assert piped.predict(SENTENCES) == read.predict(SENTENCES)


def test_features_are_needed_where_the_model_has_them(tmp_path):
    keys = {"train_dir": str(SAMPLE / "dev.cappos.bioes"), "dev_dir": None, "iteration": 1}
    tagger = Tagger.train(small_keys(tmp_path / "model", **keys))
    assert set(tagger.vocabulary.features) == {"Cap", "POS"}
    sentence = {"words": ["Anna", "left"], "Cap": ["1", "0"], "POS": ["NNP", "VBD"]}
    assert len(tagger.predict([sentence])[0].labels) == 2
    with pytest.raises(InputError, match="feature 'Cap' is missing"):
        tagger.predict([["Anna", "left"]])
    for values, message in (
        (["NNP"], "sentence 1: feature 'POS' has 1 values"),
        ("NN", "sentence 1: feature 'POS' is a string .a list of 2 strings"),
        (["NNP", 3], "sentence 1: feature 'POS', word 1: 3 is no string"),
        (None, "sentence 1: feature 'POS' is None"),
    ):
        with pytest.raises(InputError, match=message):
            tagger.predict([sentence, {**sentence, "POS": values}])
    # What is no column of the model is the caller's own matter.
    assert tagger.predict([{**sentence, "id": 7}]) == tagger.predict([sentence])


def test_forced_labels_are_a_list_of_strings(trained):
    tagger = Tagger.load(trained, forced_labels=True)
    words = ["Anna", "left"]
    assert tagger.predict([{"words": words, "labels": ["?", "O"]}])[0].labels[1] == "O"
    for labels, message in (
        ("OO", "sentence 0: 'labels' is a string"),
        (["O", None], "sentence 0: 'labels', word 1: None is no string"),
    ):
        with pytest.raises(InputError, match=message):
            tagger.predict([{"words": words, "labels": labels}])


def test_computed_features_need_no_column(tmp_path):
    keys = {"feature": ["[Cap] emb_size=4 from=capitalization"], "iteration": 1}
    tagger = Tagger.train(small_keys(tmp_path / "model", **keys))
    assert tagger.vocabulary.features["Cap"].id("initial") > 1
    again = Tagger.load(tmp_path / "model")
    assert again.predict(SENTENCES) == tagger.predict(SENTENCES)


@pytest.mark.parametrize("size", [1, 10, 200])
def test_the_batch_size_changes_nothing(trained, size):
    lines = (SAMPLE / "test.bioes").read_text().strip().split("\n\n")
    sentences = [[row.split(" ")[0] for row in block.split("\n")] for block in lines]
    expected = Tagger.load(trained).predict(sentences, nbest=3)
    forced = Tagger.load(trained, batch_size=size)
    order = sorted(range(len(sentences)), key=lambda i: hash((i, 17)))
    shuffled = forced.predict([sentences[i] for i in order], nbest=3)
    for place, i in enumerate(order):
        assert shuffled[place].labels == expected[i].labels
        for one, other in zip(shuffled[place].nbest, expected[i].nbest, strict=True):
            assert one.probability == pytest.approx(other.probability, abs=1e-5)


def test_inference_mode_may_begin_and_end_anywhere(trained):
    words, new = ["EU", "rejects"], ["Zwölf", "neue", "Wörter"]
    expected = [prediction.probability for prediction in Tagger.load(trained).predict([words, new])]
    with torch.inference_mode():
        tagger = Tagger.load(trained)
        found = [tagger.predict([words])[0].probability]
    found.append(tagger.predict([new])[0].probability)
    assert found == pytest.approx(expected, abs=1e-6)
