"""Which kind of vector file one is, and the binary kinds: word2vec's and fastText's."""

from __future__ import annotations

import codecs
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ncrf.data.binary_check import check_binary
from ncrf.data.spooled_input import unpacked
from ncrf.data.text_files import open_bytes
from ncrf.data.vector_table import RowBlock, VectorTable
from ncrf.data.vector_text import HEADER, cells_of, run_of_numbers
from ncrf.errors import InputError, NcrfError

FASTTEXT_MAGIC = b"\xba\x16\x4f\x2f"
PICKLE_START = re.compile(rb"\x80[\x02-\x05]")
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
SNIFF_BYTES = 1 << 16
BLOCK_ROWS = 1000


class TableRows:
    """A table in memory as rows, some at a time."""

    announced: int | None = None

    def __init__(self, table: VectorTable) -> None:
        self._table = table

    def __iter__(self) -> Iterator[RowBlock]:
        """Yield all rows, in order."""
        words, matrix = list(self._table.index), self._table.matrix
        for start in range(0, len(words), BLOCK_ROWS):
            end = start + BLOCK_ROWS
            names = [word.encode("utf-8") for word in words[start:end]]
            yield RowBlock(names, matrix[start:end])


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


def read_binary(path: str | Path, kind: str) -> VectorTable:
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
    if not table.matrix.size:
        raise InputError("there are no vectors in it", file=path, remedy="check the path")
    finite = np.isfinite(table.matrix).all(axis=1)
    if not finite.all():
        word = list(table.index)[int(np.argmin(finite))]
        raise InputError(
            f"the vector of {word!r} is not finite", file=path, remedy="leave its row out"
        )
    return table
