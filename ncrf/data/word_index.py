"""Looking words up by a hash that is the same in every process."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

UIntArray = npt.NDArray[np.uint32]
NEWLINE = ord("\n")


def word_hashes(words: Sequence[bytes]) -> UIntArray:
    """The CRC-32 of each word: uint32 [n]. It is cheap; whoever looks up compares the words."""
    return np.fromiter(map(zlib.crc32, words), np.uint32, len(words))


def encoded(word: str) -> bytes:
    """A word in UTF-8; one that has no such form comes out as what no file of words holds."""
    return word.encode("utf-8", "surrogatepass")


class WordIndex:
    """Finds the rows of words that stand one after another, each ended by a newline but the last.

    ``text`` uint8 holds them in UTF-8, without a newline in a word. ``hashes`` uint32 [n] is
    sorted, ``rows`` uint32 [n] says whose hash each is; rows of equal hashes are in order.
    """

    def __init__(
        self,
        text: npt.NDArray[np.uint8],
        hashes: UIntArray | None = None,
        rows: UIntArray | None = None,
    ) -> None:
        """Take hashes and rows as they were once sorted, or make them."""
        self._text = text
        self._ends = np.append(np.flatnonzero(text == NEWLINE), len(text))
        if hashes is None or rows is None:
            hashes, rows = sorted_hashes(word_hashes(text.tobytes().split(b"\n")))
        self.hashes, self.rows = hashes, rows

    def __len__(self) -> int:
        """Return the number of words, equal ones counted again."""
        return len(self._ends)

    def words(self) -> list[str]:
        """Every word, in order."""
        return self._text.tobytes().decode("utf-8").split("\n")

    def find(self, words: Iterable[str]) -> dict[str, int]:
        """Map each of the words that is there to its first row, in the order of the rows."""
        distinct = list(dict.fromkeys(words))
        keys = [encoded(word) for word in distinct]
        found = []
        for place, candidates in candidate_rows(self.hashes, self.rows, word_hashes(keys)):
            for row in candidates:
                start = int(self._ends[row - 1]) + 1 if row else 0
                if self._text[start : int(self._ends[row])].tobytes() == keys[place]:
                    found.append((row, distinct[place]))
                    break
        return {word: row for row, word in sorted(found)}


def sorted_hashes(hashes: UIntArray) -> tuple[UIntArray, UIntArray]:
    """Return hashes in rising order and the row of each; equal ones stay in the rows' order."""
    rows = np.argsort(hashes, kind="stable").astype(np.uint32)
    return hashes[rows], rows


def candidate_rows(
    hashes: UIntArray, rows: npt.NDArray[Any], wanted: UIntArray
) -> Iterator[tuple[int, list[int]]]:
    """Yield ``(place in wanted, rows with its hash)`` for each wanted hash that is there."""
    starts = np.searchsorted(hashes, wanted, "left")
    ends = np.searchsorted(hashes, wanted, "right")
    for place in np.flatnonzero(ends > starts).tolist():
        yield place, rows[starts[place] : ends[place]].tolist()
