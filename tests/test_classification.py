"""Sentence classification: one label a sentence, ``words ||| label``."""

import json

import pytest

from ncrf import Tagger
from ncrf.cli import main
from ncrf.errors import InputError
from ncrf.evaluate import report_lines
from tests.conftest import small_keys

GOOD, BAD = ("good", "fine", "great"), ("bad", "poor", "awful")


def lines(repeat):
    for i in range(repeat):
        for label, words in (("positive", GOOD), ("negative", BAD)):
            filler = " very" * (i % 4)
            yield f"it was{filler} {words[i % 3]} ||| {label}\n"


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classification")
    (folder / "train.clf").write_text("".join(lines(24)))
    (folder / "raw.clf").write_text("it was great\nawful\n")
    return {
        "train_dir": str(folder / "train.clf"),
        "dev_dir": str(folder / "train.clf"),
        "sentence_classification": True,
        "iteration": 6,
        "optimizer": "Adam",
        "learning_rate": 0.02,
        "dropout": 0.1,
        "seg": None,
    }


@pytest.fixture(scope="module", params=["LSTM", "GRU", "CNN", None])
def classifier(keys, tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("model") / "model"
    layer = {"use_word_seq": request.param is not None, "word_seq_feature": request.param or "LSTM"}
    return Tagger.train(small_keys(folder, **keys, **layer))


def test_learns_one_label_a_sentence(classifier, keys):
    score = classifier.evaluate(keys["train_dir"])
    assert score.kind == "labels" and score.tokens == score.sentences == 48
    assert score.accuracy == 1.0 and set(score.per_type) == {"negative", "positive"}
    assert report_lines(score)[0] == "processed 48 sentences; correct: 48."


def test_predictions_do_not_depend_on_the_batch(classifier):
    sentences = [["it", "was", "great"], ["awful"], ["it", "was", "very", "very", "poor"]]
    together = classifier.predict(sentences, nbest=5, marginals=True)
    assert [p.labels for p in together] == [["positive"], ["negative"], ["negative"]]
    for sentence, expected in zip(sentences, together, strict=True):
        (alone,) = classifier.predict([sentence])
        assert alone.probability == pytest.approx(expected.probability, abs=1e-5)
        assert len(expected.nbest) == 2 and expected.spans == []
        assert sum(x.probability for x in expected.nbest) == pytest.approx(1, abs=1e-5)
        assert expected.marginals == pytest.approx([expected.probability], abs=1e-5)
    with pytest.raises(InputError, match="sentence 0 has no words"):
        classifier.predict([[]])


def test_output(classifier, keys, capsys, tmp_path):
    classifier.save(tmp_path / "model")
    raw = keys["train_dir"].replace("train", "raw")
    command = ["decode", "--raw", raw, "--loadmodel", str(tmp_path / "model"), "--threads", "1"]
    assert main(command) == 0
    assert capsys.readouterr().out == "it was great\tpositive\nawful\tnegative\n"
    assert main([*command, "--nbest", "2"]) == 0
    words, first, second = capsys.readouterr().out.splitlines()[0].split("\t")
    assert words == "it was great"
    assert first.split(" ")[0] == "positive" and second.split(" ")[0] == "negative"
    assert float(first.split(" ")[1]) + float(second.split(" ")[1]) == pytest.approx(1, abs=1e-3)
    assert main([*command, "--decode_format", "json"]) == 0
    value = json.loads(capsys.readouterr().out.splitlines()[1])
    assert (value["tokens"], value["labels"], value["spans"]) == (["awful"], ["negative"], [])
