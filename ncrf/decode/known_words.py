"""The words that decoding has met: each has its row of the network's table computed once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ncrf.data.alphabet import UNKNOWN
from ncrf.data.batch import make_types
from ncrf.data.dataset import IntArray, TypeTable
from ncrf.data.vocabulary import NewWordVectors, Vocabulary
from ncrf.model.lookup import Lookup

_MOST_BYTES = 1 << 26  # for the table; a window with more words gets a table of its own size
_AT_A_TIME = 4096  # words whose rows are computed together


@dataclass(frozen=True)
class FoundWords:
    """Where K words stand: ``table [*,width]``, ``rows [K]`` in it, and which are unknown."""

    table: Tensor
    rows: IntArray
    unknown: NDArray[np.bool_]


class KnownWords:
    """Keeps the rows of words for as long as there is room, then begins anew.

    May be used from several threads: a table that was handed out never changes where it is read.
    """

    def __init__(
        self,
        lookup: Lookup,
        vocabulary: Vocabulary,
        new_words: NewWordVectors | None,
        max_word_length: int,
    ) -> None:
        self._lookup = lookup
        self._vocabulary = vocabulary
        self._new_words = new_words
        self._max_word_length = max_word_length
        self._lock = threading.Lock()
        self._room = max(1, _MOST_BYTES // (4 * max(1, lookup.width)))
        self._places: dict[str, int] = {}
        self._begin(self._room)

    def _begin(self, room: int) -> None:
        self._places.clear()
        self._table = torch.empty(room, self._lookup.width, device=self._lookup.device)
        self._unknown = np.zeros(room, np.bool_)

    def find(self, words: Sequence[str]) -> FoundWords:
        """The rows of distinct ``words``; those that are new are computed."""
        with self._lock:
            places = self._places
            missing = [word for word in words if word not in places]
            if len(places) + len(missing) > len(self._table):
                self._begin(max(self._room, len(words)))
                missing = list(words)
            if missing:
                self._add(missing)
            rows = np.fromiter(map(places.__getitem__, words), np.int64, len(words))
            return FoundWords(self._table, rows, self._unknown[rows])

    def _add(self, words: list[str]) -> None:
        start = len(self._places)
        table = self._vocabulary.encode_types(words, self._new_words)
        out = self._table[start : start + len(words)]
        fill_rows(self._lookup, table, np.arange(len(words)), out, self._max_word_length)
        self._unknown[start : start + len(words)] = table.words == UNKNOWN
        self._places.update(zip(words, range(start, start + len(words)), strict=True))


def fill_rows(
    lookup: Lookup, table: TypeTable, types: IntArray, out: Tensor, max_word_length: int
) -> None:
    """Compute the rows of ``types [K]`` into ``out [K,width]``, words of like length together."""
    order = np.argsort(np.diff(table.offsets)[types], kind="stable")
    with torch.inference_mode():
        for start in range(0, len(order), _AT_A_TIME):
            places = order[start : start + _AT_A_TIME]
            made = make_types(table, types[places], max_word_length=max_word_length)
            out[torch.from_numpy(places).to(out.device)] = lookup.rows(made.to(out.device))
