"""Which features have a weight, and how often each occurs."""

import itertools

import numpy as np
import pytest

from ncrf.data.feature_index import FeatureIndex
from tests.template_oracle import encoded, names, observed

LINES = ["U", "U00:%x[0,0]", "U01:%v[-1,0]", "B", "B00:%x[0,0]"]
CORPUS = [
    ([["a"], ["b:2"], ["a"]], ["X", "Y", "X"]),
    ([], []),
    ([["c"], ["a"]], ["Z", "Z"]),
    ([["b:2"]], ["X"]),
]
LABELS = ["X", "Y", "Z"]


def test_features_are_those_that_the_corpus_shows_with_their_counts():
    vocabulary, attributes, ids, index = encoded(LINES, CORPUS, LABELS)
    expected = observed(LINES, CORPUS)
    found = names(vocabulary, index, LABELS)
    assert len(found) == index.num_features
    counts = index.count(attributes, ids)
    assert dict(zip(found, counts.tolist(), strict=True)) == dict(expected)


def test_all_possible_features():
    vocabulary, attributes, ids, index = encoded(
        LINES, CORPUS, LABELS, all_possible_states=True, all_possible_transitions=True
    )
    expected = set(itertools.product(vocabulary.unigram_strings(), [(y,) for y in LABELS]))
    pairs = list(itertools.product(LABELS, LABELS))
    expected |= set(itertools.product(["B", *vocabulary.bigram_strings()], pairs))
    found = names(vocabulary, index, LABELS)
    assert set(found) == expected
    assert len(found) == len(expected)
    counts = dict(zip(found, index.count(attributes, ids).tolist(), strict=True))
    seen = observed(LINES, CORPUS)
    assert counts == {name: seen[name] for name in expected}


def test_no_bare_bigram_line_no_transitions():
    *_, index = encoded(LINES[:3], CORPUS, LABELS, all_possible_transitions=True)
    assert index.num_transitions == 0
    assert len(index.bigram_pairs) == 0


def test_transition_scores_put_weights_in_their_places():
    *_, index = encoded(LINES, CORPUS, LABELS)
    weights = np.arange(1.0, index.num_features + 1)
    scores = index.transition_scores(weights)
    first = index.num_states
    # Observed: X-Y, Y-X and Z-Z, in the order of the pairs.
    expected = [[0, first + 1, 0], [first + 2, 0, 0], [0, 0, first + 3]]
    assert scores.tolist() == expected


def test_dropping_features_drops_attributes_without_any():
    vocabulary, _, _, index = encoded(LINES, CORPUS, LABELS)
    found = names(vocabulary, index, LABELS)
    chosen = {("U00:a", ("X",)), ("B", ("Z", "Z")), ("B00:a", ("Z", "Z")), ("U", ("Y",))}
    keep = np.array([name in chosen for name in found])
    smaller, unigram, bigram = index.kept(keep)
    kept = vocabulary.kept(unigram, bigram)
    assert set(kept.unigram_strings()) == {"U00:a", "U"}
    assert kept.bigram_strings() == ["B00:a"]
    assert names(kept, smaller, LABELS) == [name for name in found if name in chosen]


def test_attributes_that_never_had_a_feature_are_dropped_too():
    arrays = {
        "state_counts": [2, 0, 1, 0],
        "state_labels": [0, 2, 1],
        "transition_pairs": [],
        "bigram_counts": [0, 1, 0],
        "bigram_pairs": [5],
    }
    arrays = {name: np.array(values, np.int32) for name, values in arrays.items()}
    index = FeatureIndex.from_arrays(3, arrays)
    same, unigram, bigram = index.kept(np.ones(4, np.bool_))
    assert unigram.tolist() == [True, False, True, False]
    assert bigram.tolist() == [False, True, False]
    assert same.arrays()["state_counts"].tolist() == [2, 1]
    assert same.arrays()["bigram_counts"].tolist() == [1]


def test_array_round_trip():
    *_, index = encoded(LINES, CORPUS, LABELS)
    arrays = index.arrays()
    again = FeatureIndex.from_arrays(3, arrays)
    for name, value in vars(index).items():
        assert np.array_equal(getattr(again, name), value)
    for name in ("state_labels", "bigram_pairs"):
        with pytest.raises(ValueError, match="do not fit"):
            FeatureIndex.from_arrays(3, {**arrays, name: arrays[name][:-1]})
        with pytest.raises(ValueError, match="do not fit"):
            FeatureIndex.from_arrays(3, {**arrays, name: arrays[name] + 9})


def test_labels_that_are_none_of_the_models_are_refused():
    _, attributes, ids, index = encoded(LINES, CORPUS, LABELS)
    with pytest.raises(ValueError, match="labels from 0 to 3, 3 are known"):
        index.count(attributes, np.where(ids == 2, 3, ids))
    with pytest.raises(ValueError, match="5 labels of 6 words"):
        index.count(attributes, ids[:-1])
