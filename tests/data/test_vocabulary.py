"""What a vocabulary knows of the corpus it comes from."""

import json

import pytest

from ncrf.data.columns import Sentence, read_columns
from ncrf.data.dataset import intern_corpus
from ncrf.data.normalization import Normalization
from ncrf.data.vocabulary import LabelScheme, Vocabulary
from ncrf.errors import InputError


def build(tmp_path, text, source, target):
    path = tmp_path / "train"
    path.write_text(text)
    corpus = intern_corpus(read_columns(path), str(path))
    return Vocabulary.build(corpus, LabelScheme(source, target), normalization=Normalization())


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


def test_a_vocabulary_without_labels_is_damaged(tmp_path):
    value = build(tmp_path, "Oslo NNP\n", "plain", "plain").to_json()
    value["labels"] = {"special": [], "strings": [], "counts": []}
    with pytest.raises(InputError, match=r"alphabets\.json: holds no labels"):
        Vocabulary.from_json(value, tmp_path / "alphabets.json")


class TestForeignLabels:
    """A label without a prefix, where labels have to be converted."""

    TEXT = "in O\nOslo I-LOC\n\nNew I-LOC\nx FOO\nYork I-LOC\nBo B-LOC\n"

    def test_in_the_training_corpus_it_is_named_with_its_line(self, tmp_path):
        with pytest.raises(InputError, match="'FOO' cannot be converted to BIOES") as caught:
            build(tmp_path, self.TEXT, "IOB1", "BIOES")
        assert str(caught.value).startswith(f"{tmp_path / 'train'}:5: ")

    def test_in_a_further_corpus_it_stays_and_the_rest_is_converted(self, tmp_path):
        vocabulary = build(tmp_path, "a I-LOC\nb B-LOC\nc O\nd I-LOC\ne I-LOC\n", "IOB1", "BIOES")
        path = tmp_path / "dev"
        path.write_text(self.TEXT)
        dataset = vocabulary.encode(intern_corpus(read_columns(path), str(path)))
        assert dataset.labels is not None
        labels = [dataset.label_strings[i] for i in dataset.labels]
        assert labels == ["O", "S-LOC", "S-LOC", "FOO", "S-LOC", "S-LOC"]
        assert "FOO" not in vocabulary.labels


@pytest.mark.parametrize("name", ["words", "labels", "a[b", "]", " Cap", "Cap ", ""])
def test_a_feature_needs_a_name_that_can_be_given(name):
    sentence = Sentence(["Anna"], ["O"], {name: ["x"]}, "train", 3)
    with pytest.raises(InputError, match="feature") as caught:
        intern_corpus([sentence], "train")
    assert str(caught.value).startswith("train:3: ") and "\n" not in str(caught.value)
    # A model that has such a name already goes on reading its files.
    assert set(intern_corpus([sentence], "train", (name,)).features) == {name}
