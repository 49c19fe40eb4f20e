"""Documents: which words of one are the same word."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncrf.data import documents
from ncrf.data.dataset import intern_corpus
from ncrf.data.documents import ALONE, last_whole, same_words
from ncrf.data.sentence import BOUNDARY, Sentence

BORDER = Sentence([BOUNDARY], boundary=True)
WORDS = st.sampled_from(["Oslo", "OSLO", "oslo", "Bo", "bo", "7", "東", "É", "é"])
TEXTS = st.lists(st.one_of(st.none(), st.lists(WORDS, max_size=4)), max_size=12)


def corpus_of(text):
    """A corpus of sentences, None for a document's border."""
    return intern_corpus(
        [BORDER if words is None else Sentence(words) for words in text], "made up"
    )


def groups_by_definition(text, longest):
    """For each word the set of places that it shares a group with."""
    document, reached = None, 0
    places, keys = {}, []
    for number, words in enumerate(text):
        if words is None:
            document, reached = number, 0
            continue
        near = document is not None and reached < longest
        reached += max(1, len(words))
        keys += [(document, w.lower()) if near and w[0] in "OBÉ東" else None for w in words]
    for i, key in enumerate(keys):
        if key is not None:
            places.setdefault(key, set()).add(i)
    return [places[key] if key is not None and len(places[key]) > 1 else set() for key in keys]


@given(TEXTS, st.sampled_from([1, 3, 100_000]))
def test_groups(text, longest):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "LONGEST", longest)
        groups = same_words(corpus_of(text))
    wanted = groups_by_definition(text, longest)
    assert len(groups) == len(wanted)
    found = [set(np.flatnonzero(groups == g)) if g != ALONE else set() for g in groups]
    assert found == wanted
    different = {frozenset(group) for group in wanted if group}
    assert set(groups.tolist()) - {ALONE} == set(range(len(different)))


def test_sentences_before_the_first_border_are_of_no_document():
    corpus = corpus_of([["Oslo"], ["Oslo", "Bo"], None, ["Bo"], [], None, None, ["Bo"]])
    assert corpus.documents.tolist() == [-1, -1, 0, 0, 2]
    assert same_words(corpus).tolist() == [ALONE] * 5


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.data())
def test_no_document_is_cut_where_that_can_be(steps, data):
    numbers = np.cumsum(steps) - 1
    start = data.draw(st.integers(0, len(numbers) - 1))
    end = data.draw(st.integers(start + 1, len(numbers)))
    found = last_whole(numbers, start, end)
    whole = [i for i in range(start + 1, end + 1) if not _cuts(numbers, i)]
    assert found == (max(whole) if whole else end)


def _cuts(numbers, i):
    """Whether a document has sentences before ``i`` and from there on."""
    return i < len(numbers) and numbers[i] != ALONE and numbers[i] == numbers[i - 1]
