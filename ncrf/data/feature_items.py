"""Attributes that come with the words themselves: a dictionary or a list of features for each.

What python-crfsuite takes, with the same attributes: ``{"word": "Rome", "title": True,
"length": 0.5}`` has ``word:Rome`` and ``title`` with the value 1 and ``length`` with 0.5. False is
the value 0. A dictionary, a list or a set as a value has its own attributes after the name and a
colon (``{"suffix": ["me", "ome"]}``: ``suffix:me``, ``suffix:ome``). A list ``["a", "b"]`` in place
of a dictionary is ``{"a": 1, "b": 1}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncrf.data.attributes import TokenAttributes
from ncrf.data.dataset import StringTable, offsets_of
from ncrf.errors import InputError

Items = Mapping[str, Any] | Iterable[str]


def items_of(features: Items) -> Iterator[tuple[str, float]]:
    """The attributes and values of one word.

    Raises InputError for what has neither: a bare string, a name that is no string, a value that
    is no number.
    """
    if isinstance(features, (str, bytes)):
        raise InputError(
            f"a word's features are the string {features!r}",
            remedy='a dictionary such as {"word": "Rome"}, or a list of strings',
        )
    if not isinstance(features, Mapping):
        for name in features:
            yield _name(name), 1.0
        return
    for name, value in features.items():
        if isinstance(value, str):
            yield f"{_name(name)}:{value}", 1.0
        elif isinstance(value, (bool, int, float, np.number, np.bool_)):
            number = float(value)
            if number - number != 0:
                raise InputError(f"the feature {name!r} has the value {value}")
            yield _name(name), number
        elif isinstance(value, Iterable) and not isinstance(value, bytes):
            for inner, number in items_of(value):
                yield f"{_name(name)}:{inner}", number
        else:
            raise InputError(
                f"the feature {name!r} has the value {value!r}",
                remedy="a string, a number, True or False, or a dictionary or list of these",
            )


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise InputError(f"a feature is called {name!r}", remedy="a string")
    return name


class ItemVocabulary:
    """The attributes that training met; in all that learners ask an AttributeVocabulary."""

    num_bigram = 0

    def __init__(self, strings: Sequence[str]) -> None:
        self._strings = list(strings)
        self._numbers = {string: number for number, string in enumerate(self._strings)}
        self.num_unigram = len(self._strings)

    @classmethod
    def build(
        cls, sentences: Iterable[Sequence[Items]], cutoff: int = 1
    ) -> tuple[ItemVocabulary, TokenAttributes]:
        """The attributes of a training corpus, sentences of words' features, and of each word.

        ``cutoff``: an attribute that occurs fewer times is left out. Raises InputError as
        ``items_of``, with the sentence and the word.
        """
        table = StringTable()
        ids, values, counts, lengths = _numbered(sentences, table)
        strings = table.strings()
        if cutoff > 1:
            keep = np.bincount(ids, minlength=len(strings)) >= cutoff
            ids = np.append(np.where(keep, np.cumsum(keep) - 1, -1), -1)[ids]
            strings = [strings[number] for number in np.flatnonzero(keep).tolist()]
        return cls(strings), _padded(ids, values, counts, lengths)

    def encode(self, sentences: Iterable[Sequence[Items]]) -> TokenAttributes:
        """The attributes of each word; those that training did not meet are none (-1)."""
        return _padded(*_numbered(sentences, _Known(self._numbers)))

    def unigram_strings(self, attributes: Iterable[int] | None = None) -> list[str]:
        """The text of attributes (None: of all)."""
        if attributes is None:
            return list(self._strings)
        return [self._strings[attribute] for attribute in attributes]

    def bigram_strings(self, attributes: Iterable[int] | None = None) -> list[str]:
        """None: features of a word go with its label alone."""
        return []

    def kept(self, unigram: NDArray[np.bool_], bigram: NDArray[np.bool_]) -> ItemVocabulary:
        """Without the attributes where ``unigram`` is False; the rest in order."""
        return ItemVocabulary([self._strings[a] for a in np.flatnonzero(unigram).tolist()])


class _Known(dict[str, int]):
    """Numbers of strings, -1 for all others."""

    def __missing__(self, string: str) -> int:
        return -1


def _numbered(
    sentences: Iterable[Sequence[Items]], table: Mapping[str, int]
) -> tuple[NDArray[np.int64], ...]:
    """Attributes ``[n]`` and values ``[n]`` of all words, attributes of each word, and words of
    each sentence."""
    ids: list[int] = []
    values: list[float] = []
    counts: list[int] = []
    lengths: list[int] = []
    for sentence in sentences:
        for place, features in enumerate(sentence):
            before = len(ids)
            try:
                for name, value in items_of(features):
                    ids.append(table[name])
                    values.append(value)
            except InputError as error:
                where = f"sentence {len(lengths)}, word {place}"
                raise InputError(f"{where}: {error.what}", remedy=error.remedy) from None
            counts.append(len(ids) - before)
        lengths.append(len(sentence))
    return (
        np.array(ids, np.int64),
        np.array(values, np.float32),
        np.array(counts, np.int64),
        np.array(lengths, np.int64),
    )


def _padded(
    ids: NDArray[np.int64],
    values: NDArray[Any],
    counts: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> TokenAttributes:
    """The attributes of each word side by side, -1 where a word has fewer than another."""
    width = int(counts.max(initial=0))
    there = np.arange(width) < counts[:, None]
    unigram = np.full(there.shape, -1, np.int32)
    unigram[there] = ids
    of_values = None
    if not (values == 1).all():
        of_values = np.ones(there.shape, np.float32)
        of_values[there] = values
    nothing = np.zeros((len(counts), 0), np.int32)
    return TokenAttributes(offsets_of(lengths), unigram, nothing, of_values)
