import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncrf.data.alphabet import Alphabet
from ncrf.errors import InputError


def test_falling_frequency_with_ties_by_first_appearance():
    alphabet = Alphabet.build(Counter(["b", "a", "c", "c", "d", "a", "e"]))
    assert alphabet.strings == ("<pad>", "<unk>", "a", "c", "b", "d", "e")
    assert alphabet.counts.tolist() == [0, 0, 2, 2, 1, 1, 1]
    assert alphabet.ids(["c", "a", "x", "e"]).tolist() == [3, 2, 1, 6]
    assert (alphabet.id("b"), alphabet.id("x"), len(alphabet)) == (4, 1, 7)
    assert "b" in alphabet and "x" not in alphabet


def test_labels_keep_their_order_and_have_no_unknown():
    labels = Alphabet.build(Counter(["O", "B-X", "B-X", "I-X"]), special=())
    assert labels.strings == ("O", "B-X", "I-X")
    assert labels.ids(["I-X", "B-Y", "O"]).tolist() == [2, -1, 0]


def test_singletons_are_the_strings_counted_once():
    alphabet = Alphabet.build({"a": 1, "b": 2, "c": 1})
    assert alphabet.singletons.dtype == np.bool_
    assert [alphabet.strings[i] for i in np.flatnonzero(alphabet.singletons)] == ["a", "c"]


def test_a_corpus_word_may_be_spelled_like_a_special_entry():
    alphabet = Alphabet.build({"<unk>": 5, "<pad>": 1})
    assert alphabet.ids(["<unk>", "<pad>", "x"]).tolist() == [2, 3, 1]
    assert Alphabet.from_json(alphabet.to_json()) == alphabet


def test_ids_of_nothing():
    ids = Alphabet.build({}).ids([])
    assert (ids.dtype, ids.shape) == (np.int64, (0,))


def test_a_string_twice():
    with pytest.raises(ValueError, match="'a' stands there twice"):
        Alphabet(["b", "a", "c", "a"], [1, 1, 1, 1])


anything = st.text(st.characters(exclude_categories=[]))


@settings(derandomize=True, deadline=None)
@given(st.dictionaries(anything, st.integers(1, 2**62)), st.sampled_from([(), ("<pad>", "<unk>")]))
def test_json_round_trip(counts, special):
    alphabet = Alphabet.build(counts, special)
    again = Alphabet.from_json(json.loads(json.dumps(alphabet.to_json())))
    assert again == alphabet
    assert again.ids(counts).tolist() == alphabet.ids(counts).tolist()
    order = np.argsort(again.ids(counts)) if special else range(len(counts))
    strings = list(counts)
    assert again.strings[len(special) :] == tuple(strings[i] for i in order)


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {"strings": [], "counts": []},
        {"special": [], "strings": ["a"], "counts": []},
        {"special": [], "strings": ["a", "a"], "counts": [1, 1]},
        {"special": [], "strings": ["a", 1], "counts": [1, 1]},
        {"special": [], "strings": ["a"], "counts": [True]},
        {"special": [], "strings": ["a"], "counts": [1.5]},
        {"special": [], "strings": ["a"], "counts": [10**30]},
        {"special": ["<pad>"], "strings": ["a"], "counts": [1]},
        {"special": [], "strings": {"a": 1}, "counts": [1]},
    ],
)
def test_damaged_json_names_the_file(data):
    with pytest.raises(InputError, match=r"^model/alphabets\.json: .*damaged") as caught:
        Alphabet.from_json(data, "model/alphabets.json")
    assert caught.value.exit_status == 2
