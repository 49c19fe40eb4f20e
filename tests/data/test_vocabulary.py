"""What a vocabulary knows of the corpus it comes from."""

import json

import pytest

from ncrf.data.columns import read_columns
from ncrf.data.dataset import intern_corpus
from ncrf.data.vocabulary import LabelScheme, Vocabulary


def build(tmp_path, text, source, target):
    path = tmp_path / "train"
    path.write_text(text)
    corpus = intern_corpus(read_columns(path), str(path))
    return Vocabulary.build(corpus, LabelScheme(source, target), number_normalized=True)


@pytest.mark.parametrize(
    ("text", "source", "target", "counts"),
    [
        (
            "-DOCSTART- O\n\nAnna I-PER\nBo B-PER\n\nin O\nNew I-LOC\nYork I-LOC\n\n",
            "IOB1",
            "IOB2",
            {"sentences": 2, "tokens": 5, "entities": 3},
        ),
        ("Oslo NNP\nis VBZ\n", "plain", "plain", {"sentences": 1, "tokens": 2}),
    ],
)
def test_corpus_counts(text, source, target, counts, tmp_path):
    vocabulary = build(tmp_path, text, source, target)
    assert vocabulary.corpus == counts
    assert Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json()))) == vocabulary


def test_a_vocabulary_without_counts_is_read(tmp_path):
    value = build(tmp_path, "Oslo NNP\n", "plain", "plain").to_json()
    del value["corpus"]
    assert Vocabulary.from_json(value).corpus == {}
