"""Words and their vectors in memory."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ncrf.data.word_index import encoded


@dataclass(frozen=True)
class VectorTable:
    """Words and their vectors: ``index`` maps a word to its row of ``matrix`` float32 [n, dim].

    The rows stand in the order of the words.
    """

    index: dict[str, int]
    matrix: npt.NDArray[np.float32]

    @property
    def dim(self) -> int:
        """The width of a vector."""
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        """Return the number of words."""
        return len(self.index)

    def only(self, words: Iterable[str]) -> VectorTable:
        """Return the table of those of ``words`` that are in this one, in its order."""
        present = sorted((self.index[word], word) for word in set(words) if word in self.index)
        index = {word: new for new, (_, word) in enumerate(present)}
        return VectorTable(index, self.matrix[[row for row, _ in present]])


class RowBlock(NamedTuple):
    """Some rows that follow each other: their words in UTF-8, their numbers float32 [n, dim].

    ``offsets`` int64 [n] says where the rows begin in a text file, [0] in any other.
    """

    words: list[bytes]
    numbers: npt.NDArray[np.float32]
    offsets: npt.NDArray[np.int64] = np.zeros(0, np.int64)


class TableBuilder:
    """Collects rows, all or those of some words, into a VectorTable; a word's first row wins."""

    def __init__(self, wanted: Collection[str] | None = None) -> None:
        """``wanted`` None takes every word."""
        self._wanted = None if wanted is None else {encoded(word) for word in wanted}
        self._index: dict[str, int] = {}
        self._numbers = array("f")  # it grows in place: the matrix is never there twice

    def add(self, block: RowBlock) -> None:
        """Take what is wanted of some rows."""
        wanted = self._wanted
        for row, word in enumerate(block.words):
            if wanted is None or word in wanted:
                name = word.decode("utf-8")
                if name not in self._index:
                    self._index[name] = len(self._index)
                    self._numbers.frombytes(block.numbers[row].tobytes())

    def table(self, width: int) -> VectorTable:
        """Return what was collected."""
        return VectorTable(self._index, np.asarray(self._numbers, np.float32).reshape(-1, width))
