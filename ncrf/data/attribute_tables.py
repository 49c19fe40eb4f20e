"""Numbering what the macros of a template took, without a string per word.

A row of M string numbers, one for each macro, is one attribute. Rows are numbered macro by macro:
the number of the first m strings and the next string make one integer, and the distinct ones
among these are numbered in turn. So no integer outgrows 64 bits, however many macros there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.integer]
Keys = NDArray[np.int32]

_FEW = 1 << 20  # up to so many possible codes, marking beats sorting


@dataclass(frozen=True)
class AttributeTable:
    """The attributes of templates that have them in common.

    ``keys [A,M]``: the numbers of the strings that each attribute's macros took, in rising order
    of the rows; an attribute's number is its row.
    """

    keys: Keys

    def __len__(self) -> int:
        """Return the number of attributes."""
        return len(self.keys)

    @cached_property
    def _stages(self) -> list[tuple[Keys, int, Ints]]:
        """By macro: each string's rank (-1: never there), how many there are, the known codes."""
        stages = []
        prefix: Ints = np.zeros(len(self.keys), np.int64)
        for column in self.keys.T:
            rank = _ranks(column)
            count = int(rank.max(initial=-1)) + 1
            codes = prefix * count + rank[column]
            known, prefix = _distinct(codes, (int(prefix.max(initial=-1)) + 1) * count)
            stages.append((rank, count, known))
        return stages

    def lookup(self, strings: Sequence[Ints], number: int) -> NDArray[np.int64]:
        """The attributes ``[n]`` of M arrays ``[n]`` of string numbers; -1: not in the table.

        ``number`` is n; a string number of -1 is one that no attribute has.
        """
        if not len(self.keys):
            return np.full(number, -1, np.int64)
        found = np.zeros(number, np.int64)
        for (rank, count, known), column in zip(self._stages, strings, strict=True):
            place = np.where((column >= 0) & (column < len(rank)), rank[column % len(rank)], -1)
            codes = found * count + place
            index = np.minimum(np.searchsorted(known, codes), len(known) - 1)
            found = np.where((place >= 0) & (found >= 0) & (known[index] == codes), index, -1)
        return found

    def kept(self, keep: NDArray[np.bool_]) -> AttributeTable:
        """The table of some of the attributes, in the same order."""
        return AttributeTable(np.ascontiguousarray(self.keys[keep]))


def build_table(strings: Sequence[Ints], number: int) -> tuple[AttributeTable, NDArray[np.int64]]:
    """The table of all rows of M arrays ``[n]`` of string numbers, and the attribute of each.

    A row with a -1 in it is no attribute (-1). ``number`` is n.
    """
    present = np.ones(number, np.bool_)
    for column in strings:
        present &= column >= 0
    whole = bool(present.all())
    columns = [c if whole else c[present] for c in strings]
    rows = number if whole else int(present.sum())
    ids: Ints = np.zeros(rows, np.int64)
    size = 1
    for column in columns:
        rank = _ranks(column)
        count = int(rank.max(initial=-1)) + 1
        known, ids = _distinct(ids * count + rank[column], size * count)
        size = len(known)
    # Any row of an attribute shows its strings.
    example = np.zeros(size if rows else 0, np.int64)
    example[ids] = np.arange(rows)
    keys = np.empty((len(example), len(columns)), np.int32)
    for place, column in enumerate(columns):
        keys[:, place] = column[example]
    if whole:
        return AttributeTable(keys), ids.astype(np.int64, copy=False)
    attributes = np.full(number, -1, np.int64)
    attributes[present] = ids
    return AttributeTable(keys), attributes


def _ranks(strings: Ints) -> Keys:
    """The rank of each string number among those that occur, -1 for the others."""
    seen = np.zeros(int(strings.max(initial=-1)) + 1, np.bool_)
    seen[strings] = True
    rank = np.cumsum(seen, dtype=np.int32) - 1
    rank[~seen] = -1
    return rank.astype(np.int32, copy=False)


def _distinct(codes: Ints, limit: int) -> tuple[Ints, Ints]:
    """The distinct codes (all below ``limit``) in order, and each code's place among them."""
    if limit > max(_FEW, 4 * len(codes)):
        known, places = np.unique(codes, return_inverse=True)
        return known, places.reshape(-1)
    seen = np.zeros(limit, np.bool_)
    seen[codes] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[codes]
