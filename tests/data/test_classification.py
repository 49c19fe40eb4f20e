import pytest

from ncrf.data.classification import read_classification
from ncrf.errors import InputError


@pytest.fixture
def corpus(tmp_path):
    def reader(text: str, **options):
        path = tmp_path / "sentences"
        path.write_text(text, encoding="utf-8")
        return read_classification(path, **options)

    return reader


def test_words_and_label(corpus):
    reader = corpus("a  fine film ||| very good\n\n| a|||b ||| bad \n")
    first, second = reader
    assert (first.words, first.labels, first.line) == (["a", "fine", "film"], ["very good"], 1)
    assert (second.words, second.labels, second.line) == (["|", "a|||b"], ["bad"], 3)
    assert (reader.sentences, reader.tokens) == (2, 5)
    assert reader.format.columns == ("word", "label")


def test_features_hold_for_every_word(corpus):
    reader = corpus("a b ||| [Len]2 ||| [Src]x y ||| good\n")
    (sentence,) = reader
    assert sentence.features == {"Len": ["2", "2"], "Src": ["x y", "x y"]}
    assert sentence.labels == ["good"]
    assert reader.format.features == ("Len", "Src")


def test_labels_may_be_missing(corpus):
    (bare,) = corpus("a b\n", labels="optional")
    assert (bare.words, bare.labels) == (["a", "b"], None)
    (known,) = corpus("a ||| [Len]1\n", labels="optional", features=["Len"])
    assert (known.labels, known.features) == (None, {"Len": ["1"]})
    (unknown,) = corpus("a ||| [Len]1\n", labels="optional")
    assert unknown.labels == ["[Len]1"]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("c", r"1 part\(s\) found, expected 3"),
        ("c ||| [F]1 ||| x ||| y", r"4 part\(s\) found, expected 3"),
        ("c ||| [G]1 ||| x", r"has no prefix \[F\]"),
        ("c ||| [F]1 |||", "the label is empty"),
        ("||| [F]1 ||| x", "there are no words"),
    ],
)
def test_lines_at_fault(corpus, line, what):
    with pytest.raises(InputError, match=what) as caught:
        list(corpus(f"a ||| [F]1 ||| x\n\n{line}\n"))
    assert caught.value.line == 3


@pytest.mark.parametrize("line", ["a", "a ||| F ||| x", "a ||| [F]1 ||| [F]2 ||| x"])
def test_first_lines_at_fault(corpus, line):
    with pytest.raises(InputError) as caught:
        list(corpus(line))
    assert caught.value.line == 1
