"""Text files of vectors, row by row: a word, then its numbers, every row checked."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Container, Iterator
from itertools import chain, islice
from math import isfinite
from typing import NamedTuple

import numpy as np

from ncrf.data.text_files import TextFile, invalid_utf8
from ncrf.errors import InputError

logger = logging.getLogger(__name__)

HEADER = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t\r]*")
PLAIN_NUMBER = rb" -?[0-9]{1,9}\.[0-9]+(?:e-[0-9]+)?"
WIDEST_PLAIN = 10_000  # numbers of a row that a pattern is made for
SETTLING_ROWS = 1000
SETTLING_BYTES = 1 << 24
LARGEST = float(np.finfo(np.float32).max)


class Row(NamedTuple):
    """One row: its line, the offset of its first byte, its word, and its numbers.

    ``values`` is None for a row that was checked, but not wanted.
    """

    line: int
    offset: int
    word: str
    values: list[float] | None


class TextRows:
    """The rows of an open text file of vectors; ``width`` numbers each, ``count`` read so far.

    A first line of two whole numbers is word2vec's header; its second number is the width.
    Without one, the width is the most frequent length of the run of numbers that ends a row,
    over the first 1,000 rows; the larger one of two equally frequent. Numbers are taken from
    the right, so a word may hold spaces; tabs separate as spaces do; blank lines are skipped.
    """

    def __init__(self, file: TextFile, wanted: Container[str] | None = None) -> None:
        """Settle the width; rows whose word is not in ``wanted`` (None: all) get no values."""
        self._file = file
        self.count = 0
        self._wanted = wanted
        self._lines = file.byte_lines()
        self._head = list(_first(self._lines))
        self._announced, self.width = _settle([line for _, _, line in self._head], file.name)

    def __iter__(self) -> Iterator[Row]:
        """Yield every row, once.

        Raises InputError, with its line, for a row that has too few numbers, a number that is
        not finite (in float32), or a word that is not UTF-8, whether it is wanted or not.
        """
        wanted, plain = self._wanted, None
        if wanted is not None and self.width <= WIDEST_PLAIN:
            # Most rows are plain, and need no parsing to be known as right.
            plain = re.compile(rb"([^ ]+)(?:%s){%d}[ \r]*" % (PLAIN_NUMBER, self.width))
        for number, offset, line in self._row_lines():
            match = None if plain is None else plain.fullmatch(line)
            word = None if match is None else self._decoded(match[1], number)
            values = None
            if word is None or (wanted is not None and word in wanted):
                parsed = split_row(line, self.width)
                if isinstance(parsed, str):
                    remedy = f"write a word and {self.width} numbers"
                    raise InputError(parsed, file=self._file.name, line=number, remedy=remedy)
                word = self._decoded(parsed[0], number)
                values = parsed[1] if wanted is None or word in wanted else None
            self.count += 1
            yield Row(number, offset, word, values)
        if self._announced is not None and self._announced != self.count:
            logger.warning(
                "%s: the header says %d rows, there are %d",
                self._file.name,
                self._announced,
                self.count,
            )

    def _row_lines(self) -> Iterator[tuple[int, int, bytes]]:
        head = self._head if self._announced is None else self._head[1:]
        return (item for item in chain(head, self._lines) if item[2].strip(b" \t\r"))

    def _decoded(self, word: bytes, line: int) -> str:
        try:
            return word.decode("utf-8")
        except UnicodeDecodeError as error:
            raise invalid_utf8(self._file.name, line, word[error.start]) from None


def _first(lines: Iterator[tuple[int, int, bytes]]) -> Iterator[tuple[int, int, bytes]]:
    """The lines by which the width is settled, of which memory can hold any number."""
    size = 0
    for line in islice(lines, SETTLING_ROWS + 1):
        yield line
        size += len(line[2])
        if size > SETTLING_BYTES:
            break


def _settle(head: list[bytes], file: str) -> tuple[int | None, int]:
    """Return the number of rows that a header announces (None: no header) and the width."""
    header = HEADER.fullmatch(head[0]) if head else None
    rows = [line for line in (head[1:] if header else head) if line.strip(b" \t\r")]
    runs = [run_of_numbers(cells_of(line)) for line in rows]
    if header is None:
        width = max(Counter(runs).items(), key=lambda item: item[::-1])[0] if runs else 0
        if runs and not width:
            raise InputError(
                "no numbers found", file=file, line=1, remedy="a row is a word and its numbers"
            )
        return None, width
    width = int(header[2])
    if width == 0 or (len(runs) > 1 and min(runs) > width):
        raise InputError(
            f"the header says {width} numbers a row, the rows have {min(runs, default=0)}",
            file=file,
            line=1,
            remedy="correct the header or remove it",
        )
    return int(header[1]), width


def split_row(line: bytes, width: int) -> tuple[bytes, list[float]] | str:
    """Split a row into the word's bytes and ``width`` numbers, or say what is wrong with it."""
    line = line.rstrip(b" \t\r")
    parsed = _parse(line, width)
    if parsed is None:  # tabs or runs of spaces, or a row at fault
        cells = cells_of(line)
        parsed = _parse(b" ".join(cells), width)
    if parsed is None:
        found = run_of_numbers(cells, word=False)
        if found >= width:
            return "there is no word before the numbers"
        return f"{found} numbers found, expected {width}"
    values = parsed[1]
    # One sum is the cheapest sign of a NaN, an infinity or a number out of float32's range.
    if not -LARGEST < sum(values) < LARGEST:
        bad = [value for value in values if not abs(value) <= LARGEST]
        if bad:
            return f"{bad[0]} is not a finite 32-bit number"
    return parsed


def _parse(line: bytes, width: int) -> tuple[bytes, list[float]] | None:
    word, *cells = line.rsplit(b" ", width)
    if len(cells) != width:
        return None
    try:
        return word, list(map(float, cells))
    except ValueError:
        return None


def cells_of(line: bytes) -> list[bytes]:
    """Split a line at runs of spaces and tabs."""
    return [cell for cell in line.rstrip(b"\r").replace(b"\t", b" ").split(b" ") if cell]


def run_of_numbers(cells: list[bytes], word: bool = True) -> int:
    """Count the finite numbers at the end of a row, of which the first cell is the word."""
    run = 0
    for cell in reversed(cells[1:] if word else cells):
        try:
            if not isfinite(float(cell)):
                break
        except ValueError:
            break
        run += 1
    return run
