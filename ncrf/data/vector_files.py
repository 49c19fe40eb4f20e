"""Files of pretrained vectors: text, word2vec binary and fastText, whole or row by row."""

from __future__ import annotations

import codecs
import os
import re
import zlib
from array import array
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ncrf.data.spooled_input import unpacked
from ncrf.data.text_files import BOM, TextFile, open_bytes
from ncrf.data.vector_binary import check_binary
from ncrf.data.vector_text import HEADER, Row, TextRows, cells_of, run_of_numbers, split_row
from ncrf.errors import InputError, NcrfError

FASTTEXT_MAGIC = b"\xba\x16\x4f\x2f"
PICKLE_START = re.compile(rb"\x80[\x02-\x05]")
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
SNIFF_BYTES = 1 << 16


@dataclass(frozen=True)
class VectorTable:
    """Words and their vectors: ``index`` maps a word to its row of ``matrix`` float32 [n, dim]."""

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
        """Return the table of those of ``words`` that are in this one, in their order."""
        present = [word for word in dict.fromkeys(words) if word in self.index]
        rows = [self.index[word] for word in present]
        return VectorTable({word: row for row, word in enumerate(present)}, self.matrix[rows])


def read_vectors(path: str | Path, wanted: Collection[str] | None = None) -> VectorTable:
    """Read the vectors of the ``wanted`` words (None: of all words) from a file of any kind.

    A wanted word's lower-cased form is kept too. The kind is told by the content: fastText's
    ``.bin`` and word2vec's binary format are read by gensim, all else is text, read as
    :class:`TextRows` says. Of a word that stands there twice the first row counts. Raises
    InputError for a pickle (``.kv``), for a file without vectors, and for any row at fault,
    wanted or not.
    """
    kind = vector_kind(path)
    keep = None if wanted is None else with_lower_case(wanted)
    if kind != "text":
        table = _read_binary(path, kind)
        return table if keep is None else table.only(w for w in table.index if w in keep)
    builder = _TableBuilder()
    with TextFile(path) as file:
        rows = TextRows(file, keep)
        for row in rows:
            builder.add(row)
    _refuse_empty(rows.count, path)
    return builder.table(rows.width)


def with_lower_case(words: Collection[str]) -> set[str]:
    """Return the words and their lower-case forms."""
    return {*words, *(word.lower() for word in words)}


class VectorFile:
    """A vector file that is read through once and then asked for words again and again.

    The one pass checks every row and keeps those of ``wanted`` in ``table``, as
    :func:`read_vectors` does. For the words that come later, a text file is indexed: 16 bytes a
    row (a hash and an offset), so that even millions of rows fit, and :meth:`rows` reads just
    the lines it needs. A packed file cannot be read from the middle, and gensim holds what it
    reads: of these, all rows stay in memory. May be used from several threads.
    """

    def __init__(self, path: str | Path, wanted: Collection[str] = ()) -> None:
        """Read ``path`` through; raises what :func:`read_vectors` raises."""
        self.path = path
        self._whole: VectorTable | None = None
        if vector_kind(path) != "text" or str(path).endswith(".gz"):
            self._whole = read_vectors(path)
            keep = with_lower_case(wanted)
            self.table = self._whole.only(w for w in self._whole.index if w in keep)
        else:
            self._state = _file_state(path)
            self.table = self._index(with_lower_case(wanted))

    @property
    def dim(self) -> int:
        """The width of a vector."""
        return self.table.dim

    def rows(self, words: Iterable[str]) -> VectorTable:
        """Return the vectors of those of ``words`` that the file has, in just this spelling.

        Raises InputError if the file was changed since it was first read.
        """
        if self._whole is not None:
            return self._whole.only(words)
        if _file_state(self.path) != self._state:
            raise self._changed()
        builder = _TableBuilder()
        distinct = list(dict.fromkeys(words))
        hashes = np.fromiter(map(hash, distinct), np.int64, len(distinct))
        starts = np.searchsorted(self._hashes, hashes, "left").tolist()
        ends = np.searchsorted(self._hashes, hashes, "right").tolist()
        with open_bytes(self.path) as file:
            for word, start, end in zip(distinct, starts, ends, strict=True):
                # Words of one hash, doublets among them, lie side by side in file order.
                for offset in self._offsets[start:end].tolist():
                    file.seek(offset)
                    row = self._row(file.readline())
                    if row.word == word:
                        builder.add(row)
                        break
        return builder.table(self.dim)

    def _index(self, wanted: set[str]) -> VectorTable:
        builder = _TableBuilder()
        hashes, offsets = array("q"), array("q")
        with TextFile(self.path) as file:
            rows = TextRows(file, wanted)
            for row in rows:
                hashes.append(hash(row.word))
                offsets.append(row.offset)
                builder.add(row)
        _refuse_empty(len(hashes), self.path)
        unsorted = np.asarray(hashes, np.int64)
        order = np.argsort(unsorted, kind="stable")
        self._hashes = unsorted[order]
        self._offsets = np.asarray(offsets, np.int64)[order]
        return builder.table(rows.width)

    def _row(self, line: bytes) -> Row:
        parsed = split_row(line.removeprefix(BOM).removesuffix(b"\n"), self.dim)
        if isinstance(parsed, str):
            raise self._changed()
        return Row(0, 0, parsed[0].decode("utf-8"), parsed[1])

    def _changed(self) -> InputError:
        return InputError(
            "the file was changed while it was in use", file=self.path, remedy="start again"
        )


def _refuse_empty(count: int, path: str | Path) -> None:
    if not count:
        raise InputError("there are no vectors in it", file=path, remedy="check the path")


def _file_state(path: str | Path) -> tuple[int, int]:
    try:
        state = os.stat(path)
    except OSError:
        return (-1, -1)
    return (state.st_size, state.st_mtime_ns)


class _TableBuilder:
    """Collects the wanted rows into a VectorTable; the first row of a word wins."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}
        self._numbers = array("f")

    def add(self, row: Row) -> None:
        if row.values is not None and row.word not in self._index:
            self._index[row.word] = len(self._index)
            self._numbers.extend(row.values)

    def table(self, width: int) -> VectorTable:
        return VectorTable(self._index, np.asarray(self._numbers, np.float32).reshape(-1, width))


def vector_kind(path: str | Path) -> str:
    """Tell by its content whether a file is ``text``, ``word2vec`` (binary) or ``fasttext``.

    Raises InputError for pickles, which can run code when they are loaded: gensim's ``.kv``, and
    for a device or pipe: it may be endless, and vectors are read more than once.
    """
    if os.path.exists(path) and not os.path.isdir(path) and not os.path.isfile(path):
        raise InputError("is no file", file=path, remedy="the path of a file of vectors")
    with open_bytes(path) as file:
        try:
            start = file.read(SNIFF_BYTES)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"cannot be read: {error}", file=path) from None
    if str(path).endswith(".kv") or PICKLE_START.match(start):
        raise InputError(
            "is a pickle, which is never loaded",
            file=path,
            remedy="convert it where you trust it: gensim.models.KeyedVectors.load(FILE)"
            ".save_word2vec_format(TEXT_FILE)",
        )
    if start.startswith(FASTTEXT_MAGIC):
        return "fasttext"
    return "word2vec" if _is_word2vec_binary(start) else "text"


def _is_word2vec_binary(start: bytes) -> bool:
    """Tell the two formats that share a header line by the first row after it."""
    first, _, rest = start.partition(b"\n")
    header = HEADER.fullmatch(first)
    row = cells_of(rest.partition(b"\n")[0])
    if header is None or run_of_numbers(row):
        return False
    packed = rest.partition(b" ")[2][: 4 * int(header[2])]
    try:
        # Incrementally, as the cut may go through a character.
        codecs.getincrementaldecoder("utf-8")().decode(packed)
    except UnicodeDecodeError:
        return True
    return CONTROL.search(packed) is not None


def _read_binary(path: str | Path, kind: str) -> VectorTable:
    """Let gensim read a binary file; it has no lines, so complaints name the word."""
    check_binary(path, kind)
    import gensim.models  # slow to import, seldom needed

    try:
        if kind == "fasttext":
            with unpacked(path) as plain:
                vectors = gensim.models.fasttext.load_facebook_vectors(plain)
        else:
            vectors = gensim.models.KeyedVectors.load_word2vec_format(str(path), binary=True)
    except NcrfError:
        raise
    except Exception as error:  # whatever a damaged file makes of a third party's reader
        raise InputError(
            f"cannot be read as {kind} binary: {error or type(error).__name__}",
            file=path,
            remedy="the file may be cut short; fetch it again",
        ) from error
    words = list(vectors.index_to_key)
    matrix = np.ascontiguousarray(vectors.vectors[: len(words)], dtype=np.float32)
    table = VectorTable({word: row for row, word in enumerate(words)}, matrix)
    return _checked(table, path)


def _checked(table: VectorTable, path: str | Path) -> VectorTable:
    _refuse_empty(table.matrix.size, path)
    finite = np.isfinite(table.matrix).all(axis=1)
    if not finite.all():
        word = list(table.index)[int(np.argmin(finite))]
        raise InputError(
            f"the vector of {word!r} is not finite", file=path, remedy="leave its row out"
        )
    return table
