"""All vectors of a file in a form that is mapped into memory instead of read."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

import numpy as np
import numpy.typing as npt

from ncrf.data.tensor_file import Tensor, TensorMap, TensorWriter
from ncrf.data.vector_table import RowBlock, VectorTable
from ncrf.data.word_index import UIntArray, WordIndex, sorted_hashes, word_hashes

logger = logging.getLogger(__name__)

CHECKED_ROWS = 10_000


class VectorRows(Protocol):
    """The rows of a vector file, some at a time, in order.

    ``announced`` is the number of rows that the file itself gives, if it does.
    """

    announced: int | None

    def __iter__(self) -> Iterator[RowBlock]:
        """Yield the rows, once."""
        ...


class DamagedError(Exception):
    """A mapped file does not hold what was written into it."""


class MappedVectors:
    """A file that ``write`` wrote, with its matrix in memory only as far as it is asked for.

    Its parts are checked when they are read: a row by its own checksum, all else on opening. May
    be used from several threads.
    """

    def __init__(self, path: Path) -> None:
        """Map a file. Raises OSError where it cannot be read, DamagedError where it is no use."""
        self.path = path
        try:
            self._file = TensorMap(path)
            tensors, metadata = self._file.tensors, self._file.metadata
            self._matrix, self._sums = tensors["matrix"], tensors["checksums"]
            text, hashes, rows = tensors["words"], tensors["hashes"], tensors["rows"]
            expected = int(metadata["index_checksum"])
            self.announced = int(metadata["announced"]) if "announced" in metadata else None
        except (ValueError, KeyError) as error:
            raise DamagedError(str(error)) from error
        if expected != _checksum(self._sums, hashes, rows, text):
            raise DamagedError("its index is damaged")
        self._index = WordIndex(text, hashes, rows)
        if self._matrix.ndim != 2 or len(self._matrix) != len(self._index):
            raise DamagedError("its parts do not fit each other")

    @classmethod
    def write(cls, file: IO[bytes], vectors: VectorRows) -> None:
        """Write all rows for ``MappedVectors`` to map; nothing but the words is held in memory.

        Raises what reading the rows raises, OSError where writing fails, and ValueError for a
        word with a newline in it.
        """
        writer = TensorWriter(file)
        text, hashes, sums = bytearray(), [], []
        for block in vectors:
            writer.add("matrix", block.numbers)
            sums.append(_row_checksums(block.numbers))
            hashes.append(word_hashes(block.words))
            text += b"\n".join(block.words) + b"\n"
        in_order, rows = sorted_hashes(np.concatenate(hashes))
        if text.count(b"\n") != len(rows):
            raise ValueError("a word holds a newline")
        index: dict[str, Tensor] = {
            "checksums": np.concatenate(sums),
            "hashes": in_order,
            "rows": rows,
            "words": np.frombuffer(text, np.uint8)[:-1],
        }
        for name, part in index.items():
            writer.add(name, part)
        metadata = {"index_checksum": str(_checksum(*index.values()))}
        if vectors.announced is not None:
            metadata["announced"] = str(vectors.announced)
        writer.finish(metadata)

    @property
    def dim(self) -> int:
        """The width of a vector."""
        return int(self._matrix.shape[1])

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._matrix)

    def rows(self, words: Iterable[str]) -> VectorTable:
        """Return the vectors of those of ``words`` that are there; DamagedError for a bad row."""
        found = self._index.find(words)
        rows = np.fromiter(found.values(), np.int64, len(found))
        matrix = self._file.rows("matrix", rows)
        self._check(matrix, self._sums[rows])
        return VectorTable({word: row for row, word in enumerate(found)}, matrix)

    def everything(self) -> VectorTable:
        """Return the table of all words, its matrix still mapped; DamagedError for a bad row."""
        for start in range(0, len(self), CHECKED_ROWS):
            end = start + CHECKED_ROWS
            self._check(self._matrix[start:end], self._sums[start:end])
            self._file.release()
        index: dict[str, int] = {}
        for row, word in enumerate(self._index.words()):
            index.setdefault(word, row)
        if len(index) == len(self):
            return VectorTable(index, self._matrix)
        matrix = self._file.rows("matrix", np.fromiter(index.values(), np.int64, len(index)))
        return VectorTable(dict(zip(index, range(len(index)), strict=True)), matrix)

    def discard(self, error: DamagedError) -> None:
        """Remove the file, which was found to be damaged, so that it is made anew."""
        logger.warning("%s: damaged, and thrown away (%s)", self.path, error)
        with suppress(OSError):
            self.path.unlink()

    def _check(self, rows: npt.NDArray[np.float32], sums: UIntArray) -> None:
        if not np.array_equal(_row_checksums(rows), sums):
            raise DamagedError("a row is damaged")


def _row_checksums(matrix: npt.NDArray[np.float32]) -> UIntArray:
    """The CRC-32 of each row: uint32 [n]."""
    rows = np.ascontiguousarray(matrix)
    return np.fromiter((zlib.crc32(row.data) for row in rows), np.uint32, len(rows))


def _checksum(*parts: Tensor) -> int:
    """One CRC-32 over several arrays."""
    total = 0
    for part in parts:
        total = zlib.crc32(np.ascontiguousarray(part).data, total)
    return total
