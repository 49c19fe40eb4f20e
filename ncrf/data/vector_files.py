"""Files of pretrained vectors: text, word2vec binary and fastText, whole or row by row."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import numpy as np

from ncrf.data.cache_folder import changed_file, file_state
from ncrf.data.mapped_vectors import DamagedError, MappedVectors, VectorRows
from ncrf.data.text_files import BOM, TextFile, open_bytes
from ncrf.data.vector_binary import TableRows, read_binary, vector_kind
from ncrf.data.vector_cache import OFF, cached_vectors
from ncrf.data.vector_table import RowBlock, TableBuilder, VectorTable
from ncrf.data.vector_text import TextRows, split_row
from ncrf.data.word_index import candidate_rows, encoded, sorted_hashes, word_hashes

__all__ = ["VectorFile", "VectorTable", "read_vectors", "with_lower_case"]


def read_vectors(
    path: str | Path, wanted: Collection[str] | None = None, cache: str = OFF
) -> VectorTable:
    """Read the vectors of the ``wanted`` words (None: of all words) from a file of any kind.

    A wanted word's lower-cased form is kept too. The kind is told by the content: fastText's
    ``.bin`` and word2vec's binary format are read by gensim, all else is text, read as
    :class:`TextRows` says. Of a word that stands there twice the first row counts. ``cache``
    says where what was read is kept, as the key ``vector_cache`` does; the matrix of all words
    is then mapped into memory. Raises InputError for a pickle (``.kv``), for a file without
    vectors, and for any row at fault, wanted or not.
    """
    if wanted is not None:
        return VectorFile(path, wanted, cache).table
    kind = vector_kind(path)
    mapped = cached_vectors(path, cache, lambda: _open_rows(path, kind))
    if mapped is not None:
        try:
            return mapped.everything()
        except DamagedError as error:
            mapped.discard(error)
    return _all_rows(path, kind)


def with_lower_case(words: Collection[str]) -> set[str]:
    """Return the words and their lower-case forms."""
    return {*words, *(word.lower() for word in words)}


class VectorFile:
    """A vector file that is read through once and then asked for words again and again.

    The first pass checks every row and keeps those of ``wanted`` in ``table``, as
    :func:`read_vectors` does. For the words that come later, the rows are mapped into memory
    from the cache. Without one, a text file is indexed: 12 bytes a row (a hash and an offset), so
    that even millions of rows fit, and :meth:`rows` reads just the lines it needs. A packed file
    cannot be read from the middle, and gensim holds what it reads: of these, all rows stay in
    memory where there is no cache. May be used from several threads.
    """

    def __init__(self, path: str | Path, wanted: Collection[str] = (), cache: str = OFF) -> None:
        """Read ``path`` through; raises what :func:`read_vectors` raises."""
        self.path = path
        self._kind = vector_kind(path)
        self._lock = threading.Lock()
        self._source: _Source
        keep = with_lower_case(wanted)
        mapped = cached_vectors(path, cache, lambda: _open_rows(path, self._kind))
        if mapped is None:
            self.table = self._read(keep)
        else:
            self._source = mapped
            self.table = self.rows(keep)

    @property
    def dim(self) -> int:
        """The width of a vector."""
        return self.table.dim

    def rows(self, words: Iterable[str]) -> VectorTable:
        """Return the vectors of those of ``words`` that the file has, in just this spelling.

        Raises InputError if the file was changed since it was first read, and that matters.
        """
        distinct = list(dict.fromkeys(words))
        return self._ask(lambda source: source.rows(distinct))

    def everything(self) -> VectorTable:
        """Return the vectors of all words; raises what :meth:`rows` raises."""
        return self._ask(lambda source: source.everything())

    def _ask(self, question: Callable[[_Source], VectorTable]) -> VectorTable:
        """Ask the rows; where the cache turns out to be damaged, those of the file itself."""
        try:
            return question(self._source)
        except DamagedError as error:
            with self._lock:
                if isinstance(self._source, MappedVectors):
                    self._source.discard(error)
                    self._read(())
            return question(self._source)

    def _read(self, keep: Collection[str]) -> VectorTable:
        """Make the file itself the source of rows, and return those of ``keep``."""
        if self._kind == "text" and not str(self.path).endswith(".gz"):
            indexed = _IndexedText(self.path, keep)
            self._source = indexed
            return indexed.first
        self._source = _AllRows(_all_rows(self.path, self._kind))
        return self._source.rows(keep)


class _Source(Protocol):
    """Where the rows of a file come from, once it was read through."""

    def rows(self, words: Iterable[str]) -> VectorTable: ...

    def everything(self) -> VectorTable: ...


class _AllRows:
    """All rows of a file, in memory."""

    def __init__(self, table: VectorTable) -> None:
        self._table = table

    def rows(self, words: Iterable[str]) -> VectorTable:
        return self._table.only(words)

    def everything(self) -> VectorTable:
        return self._table


class _IndexedText:
    """A text file of which is known where the row of each word begins.

    ``first`` holds the rows of the words that were wanted in the pass that found this out.
    """

    def __init__(self, path: str | Path, wanted: Collection[str]) -> None:
        self._path = path
        self._state = file_state(path)
        builder = TableBuilder(wanted)
        hashes, offsets = [], []
        with TextFile(path) as file:
            rows = TextRows(file)
            for block in rows:
                builder.add(block)
                hashes.append(word_hashes(block.words))
                offsets.append(block.offsets)
        self._hashes, order = sorted_hashes(np.concatenate(hashes))
        self._offsets = np.concatenate(offsets)[order]
        self.first = builder.table(rows.width)

    def rows(self, words: Iterable[str]) -> VectorTable:
        if file_state(self._path) != self._state:
            raise changed_file(self._path)
        builder, width = TableBuilder(), self.first.dim
        keys = [encoded(word) for word in words]
        # Words of one hash, doublets among them, lie side by side in file order.
        found = candidate_rows(self._hashes, self._offsets, word_hashes(keys))
        with open_bytes(self._path) as file:
            for place, offsets in found:
                for offset in offsets:
                    file.seek(offset)
                    row = self._row(file.readline(), width)
                    if row.words[0] == keys[place]:
                        builder.add(row)
                        break
        return builder.table(width)

    def everything(self) -> VectorTable:
        if file_state(self._path) != self._state:
            raise changed_file(self._path)
        return _all_rows(self._path, "text")

    def _row(self, line: bytes, width: int) -> RowBlock:
        parsed = split_row(line.removeprefix(BOM).removesuffix(b"\n"), width)
        if isinstance(parsed, str):
            raise changed_file(self._path)
        return RowBlock([parsed[0]], np.array([parsed[1]], np.float32))


@contextmanager
def _open_rows(path: str | Path, kind: str) -> Iterator[VectorRows]:
    """Open a file of any kind to go through its rows."""
    if kind == "text":
        with TextFile(path) as file:
            yield TextRows(file)
    else:
        yield TableRows(read_binary(path, kind))


def _all_rows(path: str | Path, kind: str) -> VectorTable:
    """Read all rows into memory."""
    if kind != "text":
        return read_binary(path, kind)
    builder = TableBuilder()
    with TextFile(path) as file:
        rows = TextRows(file)
        for block in rows:
            builder.add(block)
    return builder.table(rows.width)
