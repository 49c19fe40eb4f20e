"""P of a printed label after conversion, against the sum over all labelings."""

import math

import pytest

from ncrf import Tagger
from ncrf.cli import main
from ncrf.errors import InputError
from tests.conftest import small_keys

CORPORA = {
    "BIOES": "a B-X\nb E-X\nc O\n\na S-X\nb S-X\n\na S-Y\nb O\nc B-X\nd I-X\na E-X\n\n",
    "IOB1": "a I-X\nb I-X\nc O\n\na I-X\nb B-X\n\na I-Y\nb O\nc I-X\nd I-X\na I-X\n\n",
}
WORDS = ["a", "b", "c", "a"]


@pytest.fixture(scope="module", params=["BIOES", "IOB1"])
def model(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "train").write_text(CORPORA[request.param] * 3)
    keys = {"train_dir": str(folder / "train"), "dev_dir": None, "learning_rate": 0.05}
    Tagger.train(small_keys(folder / "model", iteration=3, **keys))
    return folder / "model"


@pytest.mark.parametrize("output", ["input", "BIO", "BIOES"])
def test_marginals_are_those_of_the_printed_labels(model, output):
    tagger = Tagger.load(model, output_scheme=output)
    for words in (WORDS, WORDS[:1], WORDS[:2]):
        (prediction,) = tagger.predict([words], nbest=5000, marginals=True)
        labelings = prediction.nbest
        assert len({tuple(x.labels) for x in labelings}) == len(labelings)
        assert math.fsum(x.probability for x in labelings) == pytest.approx(1, abs=1e-5)
        for t, label in enumerate(prediction.labels):
            expected = math.fsum(x.probability for x in labelings if x.labels[t] == label)
            assert prediction.marginals[t] == pytest.approx(expected, abs=1e-5)


def test_without_constraints_labels_stay_in_the_scheme_of_the_model(model):
    tagger = Tagger.load(model, constraints="none")
    (prediction,) = tagger.predict([WORDS[:2]], nbest=5000)
    labelings = [tuple(x.labels) for x in prediction.nbest]
    assert len(labelings) == len(tagger.vocabulary.labels) ** 2 == len(set(labelings))
    other = "BIO" if tagger.vocabulary.scheme.target == "BIOES" else "BIOES"
    with pytest.raises(InputError, match="under constraints=none labels stay in"):
        Tagger.load(model, constraints="none", output_scheme=other)


def test_a_sentence_without_any_legal_labeling(tmp_path, capsys):
    """Every label goes on to another or comes from one: a lone word has none."""
    corpus = tmp_path / "train"
    corpus.write_text("a B-X\nb E-X\n\n" * 3)
    keys = {"train_dir": str(corpus), "dev_dir": None, "iteration": 1}
    tagger = Tagger.train(small_keys(tmp_path / "model", **keys))
    with pytest.raises(InputError, match=r"sentence 1: no labeling is possible \(constraints="):
        tagger.predict([["a", "b"], ["a"], ["a", "b", "a", "b"]])
    (tmp_path / "raw").write_text("a\nb\n\na\n")
    command = ["decode", "--raw", str(tmp_path / "raw"), "--loadmodel", str(tmp_path / "model")]
    assert main([*command, "--threads", "1"]) == 2
    assert f"{tmp_path}/raw:4: no labeling is possible" in capsys.readouterr().err
