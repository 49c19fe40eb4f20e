"""Documents: which sentences belong together, and which words of a document are the same word."""

from __future__ import annotations

import logging

import numpy as np

from ncrf.data.dataset import IntArray, InternedCorpus, offsets_of

logger = logging.getLogger(__name__)

ALONE = -1  # a sentence of no document, or a word that no other one of its document equals
LONGEST = 100_000  # words, an empty sentence counted as one; a sentence farther on is alone


def same_words(corpus: InternedCorpus) -> IntArray:
    """Groups of words ``[T]`` of one document that are equal but for case; ``ALONE`` for others.

    Every group has a number of its own, from 0 on, and at least two members. Only words that begin
    as a name may are in one: with a letter that is not in lower case.
    """
    words = corpus.words
    keys = _keys(words.strings)[words.ids]
    documents = np.repeat(_near_documents(corpus), np.diff(corpus.offsets))
    member = np.flatnonzero((keys != ALONE) & (documents != ALONE))
    _, group, size = np.unique(
        documents[member] * (len(words.strings) + 1) + keys[member],
        return_inverse=True,
        return_counts=True,
    )
    number = np.where(size > 1, np.cumsum(size > 1) - 1, ALONE)
    groups = np.full(corpus.num_tokens, ALONE, np.int64)
    groups[member] = number[group]
    return groups


def _near_documents(corpus: InternedCorpus) -> IntArray:
    """The document of each sentence ``[S]``; ``ALONE`` too far from its beginning."""
    documents = corpus.documents
    starts = offsets_of(np.maximum(np.diff(corpus.offsets), 1))[:-1]
    first = np.searchsorted(documents, documents, "left")
    return np.where(starts - starts[first] < LONGEST, documents, ALONE)


def _keys(words: list[str]) -> IntArray:
    """A number for each word, the same for those that differ in case; ``ALONE`` for no name."""
    numbers: dict[str, int] = {}
    return np.array(
        [
            numbers.setdefault(word.lower(), len(numbers)) if _may_be_name(word[:1]) else ALONE
            for word in words
        ],
        np.int64,
    )


def _may_be_name(first: str) -> bool:
    return first.isalpha() and not first.islower()


def log_no_document(file: str) -> None:
    """Say that a model that looks at documents finds none in a file."""
    logger.warning(
        "%s: no -DOCSTART- line says where a document begins: every sentence stands for itself",
        file,
    )


def last_whole(documents: IntArray, start: int, end: int) -> int:
    """Up to which sentence, ``end`` at most, no document is cut; ``end`` where there is none.

    ``documents [S]`` numbers the document of each sentence; ``start`` is the first sentence.
    """
    if end >= len(documents) or documents[end] == ALONE:
        return end
    first = int(np.searchsorted(documents, documents[end], "left"))
    return first if first > start else end
