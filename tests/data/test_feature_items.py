"""Features given with the words, as python-crfsuite reads them."""

import numpy as np
import pytest

from ncrf.data.feature_items import ItemVocabulary, items_of
from ncrf.errors import InputError


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ({"foo": "bar"}, {"foo:bar": 1}),
        ({"foo": 1, "baz": True, "no": False}, {"foo": 1, "baz": 1, "no": 0}),
        (["foo", "bar"], {"foo": 1, "bar": 1}),
        ({"foo": {"bar": -0.5, "baz": "x"}}, {"foo:bar": -0.5, "foo:baz:x": 1}),
        ({"foo": ["a", "b"], "c": {"d"}}, {"foo:a": 1, "foo:b": 1, "c:d": 1}),
        ({"n": np.float32(0.25), "m": np.int64(2)}, {"n": 0.25, "m": 2}),
        ({"a": "x:y"}, {"a:x:y": 1}),
        ({}, {}),
    ],
)
def test_attributes_and_values(features, expected):
    assert dict(items_of(features)) == expected


def test_words_with_different_numbers_of_features():
    x = [[{"w": "a", "n": 2}, {"w": "b"}], [], [["w:a", "extra"]]]
    vocabulary, attributes = ItemVocabulary.build(x)
    assert vocabulary.unigram_strings() == ["w:a", "n", "w:b", "extra"]
    assert attributes.offsets.tolist() == [0, 2, 2, 3]
    assert attributes.unigram.tolist() == [[0, 1], [2, -1], [0, 3]]
    assert attributes.unigram_values.tolist() == [[1, 2], [1, 1], [1, 1]]
    assert attributes.bigram.shape == (3, 0)
    other = vocabulary.encode([[{"w": "c", "n": 0}, ["w:b"]]])
    assert other.unigram.tolist() == [[-1, 1], [2, -1]]
    assert other.unigram_values.tolist() == [[1, 0], [1, 1]]


def test_a_cutoff_and_dropped_attributes():
    x = [[["a", "b"], ["b"], ["c", "b"], ["a"]]]
    vocabulary, attributes = ItemVocabulary.build(x, cutoff=2)
    assert vocabulary.unigram_strings() == ["a", "b"]
    assert attributes.unigram.tolist() == [[0, 1], [1, -1], [-1, 1], [0, -1]]
    assert attributes.unigram_values is None
    smaller = vocabulary.kept(np.array([False, True]), np.zeros(0, np.bool_))
    assert smaller.unigram_strings([0]) == ["b"]
    assert smaller.encode(x).unigram[:, 0].tolist() == [-1, 0, -1, -1]


@pytest.mark.parametrize(
    ("features", "what"),
    [
        ("word", "a word's features are the string 'word'"),
        ({"a": None}, "the feature 'a' has the value None"),
        ({"a": float("nan")}, "the feature 'a' has the value nan"),
        ({3: 1}, "a feature is called 3"),
        ([["a"]], r"a feature is called \['a'\]"),
    ],
)
def test_mistakes_are_named_with_their_place(features, what):
    with pytest.raises(InputError, match=f"^sentence 1, word 2: {what}"):
        ItemVocabulary.build([[], [{}, {}, features]])
