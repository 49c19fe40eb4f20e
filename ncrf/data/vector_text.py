"""Text files of vectors, some rows at a time: a word, then its numbers, every row checked."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from math import isfinite

import numpy as np
import numpy.typing as npt

from ncrf.data.text_files import TextFile, invalid_utf8
from ncrf.data.vector_numbers import LARGEST, plain_numbers
from ncrf.data.vector_table import RowBlock
from ncrf.errors import InputError

logger = logging.getLogger(__name__)

HEADER = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t\r]*")
SETTLING_ROWS = 1000
SETTLING_BYTES = 1 << 24
BLOCK_NUMBERS = 40_000

_BLANK = (b"", b" ", b"\t", b"\r")  # how a line may begin that is blank
_Numbers = npt.NDArray[np.float32]
_Line = tuple[int, int, bytes]  # its number, the offset of its first byte, the line without LF


class TextRows:
    """The rows of an open text file of vectors; ``width`` numbers each, ``count`` read so far.

    A first line of two whole numbers is word2vec's header; its second number is the width.
    Without one, the width is the most frequent length of the run of numbers that ends a row,
    over the first 1,000 rows; the larger one of two equally frequent. Numbers are taken from
    the right, so a word may hold spaces; tabs separate as spaces do; blank lines are skipped.
    ``announced`` is the number of rows that the header gives, None without one.
    """

    def __init__(self, file: TextFile) -> None:
        """Settle the width from the first rows."""
        self._file = file
        self.count = 0
        self._lines = file.byte_lines()
        self._head = list(_first(self._lines))
        self.announced, self.width = _settle([line for _, _, line in self._head], file.name)

    def __iter__(self) -> Iterator[RowBlock]:
        """Yield all rows, once.

        Raises InputError, with its line, for a row that has too few numbers, a number that is
        not finite (in float32), or a word that is not UTF-8; and for a file without rows.
        """
        lines = self._row_lines()
        while block := list(islice(lines, max(1, BLOCK_NUMBERS // max(1, self.width)))):
            offsets = np.array([offset for _, offset, _ in block], np.int64)
            self.count += len(block)
            yield RowBlock(*(self._plain_block(block) or self._any_block(block)), offsets)
        if not self.count:
            raise InputError(
                "there are no vectors in it", file=self._file.name, remedy="check the path"
            )
        warn_of_count(self._file.name, self.announced, self.count)

    def _plain_block(self, block: list[_Line]) -> tuple[list[bytes], _Numbers] | None:
        """Read rows of which most are plain, and need no look at each number.

        None where that fails: no row is plain, or the block holds a mistake.
        """
        words, cells, plain = [], [], np.zeros(len(block), np.bool_)
        for row, (_, _, line) in enumerate(block):
            word, _, rest = line.rstrip(b" \t\r").partition(b" ")
            words.append(word)
            if (
                word
                and rest.count(b" ") == self.width - 1
                and rest.count(b".") == self.width
                and b"e" not in rest
            ):
                cells.append(rest)
                plain[row] = True
        found = plain_numbers(b" ".join(cells)) if cells else None
        if found is None:
            return None
        numbers = np.empty((len(block), self.width), np.float32)
        numbers[plain] = found.reshape(-1, self.width)
        for row in np.flatnonzero(~plain).tolist():
            parsed = split_row(block[row][2], self.width)
            if isinstance(parsed, str):
                return None
            words[row], numbers[row] = parsed
        try:
            b"\n".join(words).decode("utf-8")
        except UnicodeDecodeError:
            return None
        return words, numbers

    def _any_block(self, block: list[_Line]) -> tuple[list[bytes], _Numbers]:
        """Read rows one by one, so that the first mistake is the one that is reported."""
        words, numbers = [], []
        for line, _, content in block:
            parsed = split_row(content, self.width)
            if isinstance(parsed, str):
                remedy = f"write a word and {self.width} numbers"
                raise InputError(parsed, file=self._file.name, line=line, remedy=remedy)
            word, values = parsed
            try:
                word.decode("utf-8")
            except UnicodeDecodeError as error:
                raise invalid_utf8(self._file.name, line, word[error.start]) from None
            words.append(word)
            numbers.append(np.array(values, np.float32))
        return words, np.stack(numbers)

    def _row_lines(self) -> Iterator[_Line]:
        head = self._head if self.announced is None else self._head[1:]
        return (item for item in chain(head, self._lines) if _filled(item[2]))


def warn_of_count(file: str, announced: int | None, count: int) -> None:
    """Say so where a header announces another number of rows than there are."""
    if announced is not None and announced != count:
        logger.warning("%s: the header says %d rows, there are %d", file, announced, count)


def _filled(line: bytes) -> bool:
    """Whether a line holds more than spaces and tabs."""
    return line[:1] not in _BLANK or bool(line.strip(b" \t\r"))


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
    rows = [line for line in (head[1:] if header else head) if _filled(line)]
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
