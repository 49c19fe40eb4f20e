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

_MOST_BYTES = 1 << 27  # for the table; a window with more words gets a table of its own size
_LEAST_WIDTH = 16  # a word costs so much in the dictionary of words, however narrow its row
_AT_A_TIME = 512  # words whose rows are computed together: what they need stays in cache


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
        self._room = max(1, _MOST_BYTES // (4 * max(_LEAST_WIDTH, lookup.width)))
        self._places: dict[str, int] = {}
        self._begin(self._room)

    def _begin(self, room: int) -> None:
        self._places.clear()
        self._used = 0
        with torch.inference_mode(False):  # it may be written to outside of that mode
            self._table = torch.empty(room, self._lookup.width, device=self._lookup.device)
        self._unknown = np.zeros(room, np.bool_)

    def find(self, words: Sequence[str]) -> FoundWords:
        """The rows of distinct ``words``; those that are new are computed."""
        with self._lock:
            found = self._found(words)
            missing = [word for word in words if word not in self._places]
        while found is None:
            # Not under the lock, so that threads compute side by side, rarely the same word.
            computed = self._compute(missing)
            with self._lock:
                self._keep(missing, *computed)
                found = self._found(words)
                # Another thread has begun anew, and what this one had found is gone.
                missing = list(words)
        return found

    def _found(self, words: Sequence[str]) -> FoundWords | None:
        """The rows of words if all are there."""
        try:
            rows = np.fromiter(map(self._places.__getitem__, words), np.int64, len(words))
        except KeyError:
            return None
        return FoundWords(self._table, rows, self._unknown[rows])

    def _compute(self, words: list[str]) -> tuple[Tensor, NDArray[np.bool_]]:
        """The rows of new words, and which have none of their own."""
        table = self._vocabulary.encode_types(words, self._new_words)
        out = torch.empty(len(words), self._lookup.width, device=self._lookup.device)
        fill_rows(self._lookup, table, np.arange(len(words)), out, self._max_word_length)
        return out, table.words == UNKNOWN

    def _keep(self, words: list[str], rows: Tensor, unknown: NDArray[np.bool_]) -> None:
        """Put rows into the table, which begins anew where there is no room for them."""
        if self._used + len(words) > len(self._table):
            self._begin(max(self._room, len(words)))
        start, self._used = self._used, self._used + len(words)
        self._table[start : self._used] = rows
        self._unknown[start : self._used] = unknown
        # A word that another thread has added meanwhile moves to its new, equal row.
        self._places.update(zip(words, range(start, self._used), strict=True))


def fill_rows(
    lookup: Lookup, table: TypeTable, types: IntArray, out: Tensor, max_word_length: int
) -> None:
    """Compute the rows of ``types [K]`` into ``out [K,width]``, the longest words first."""
    order = np.argsort(-np.diff(table.offsets)[types], kind="stable")
    with torch.inference_mode():
        for start in range(0, len(order), _AT_A_TIME):
            places = order[start : start + _AT_A_TIME]
            made = make_types(table, types[places], max_word_length=max_word_length)
            out[torch.from_numpy(places).to(out.device)] = lookup.rows(made.to(out.device))
