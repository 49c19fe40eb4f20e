"""Whether a binary file of vectors holds what its header says, before gensim makes room for it.

gensim takes every number for granted: of a file that is cut short it reads on without end, and for
one that claims a billion rows it asks for the memory. Here the sizes are compared with the file,
which is read through block by block.
"""

from __future__ import annotations

import struct
import zlib
from io import BufferedReader
from pathlib import Path

from ncrf.data.text_files import BLOCK_BYTES, open_bytes
from ncrf.data.vector_text import HEADER
from ncrf.errors import InputError

_NUMBER = 4  # bytes
_AFTER_WORD = struct.calcsize("<qb")  # its count and kind
_PRUNED = struct.calcsize("<2i")
#: magic, version, dim, ws, epoch, min_count, neg, word_ngrams, loss, model, bucket, minn, maxn,
#: lr_update_rate, t; words of all kinds, words, labels, tokens, pruned entries.
_FASTTEXT = struct.Struct("<14id3i2q")
_MATRIX = struct.Struct("<?2q")


class _TooShortError(Exception):
    """The file ended."""


def check_binary(path: str | Path, kind: str) -> None:
    """InputError for a ``word2vec`` or ``fasttext`` file that is shorter than it says, or odd."""
    with open_bytes(path) as file:
        parts = _Parts(file)
        try:
            problem = _word2vec(parts) if kind == "word2vec" else _fasttext(parts)
        except _TooShortError:
            problem = "it is cut short"
        except (OSError, EOFError, zlib.error) as error:
            problem = str(error)
    if problem is not None:
        raise InputError(
            f"cannot be read as {kind} binary: {problem}",
            file=path,
            remedy="the file may be cut short; fetch it again",
        )


def _word2vec(parts: _Parts) -> str | None:
    header = HEADER.fullmatch(parts.line())
    assert header is not None  # by this it was told to be binary
    rows, width = int(header[1]), int(header[2])
    if not rows * width:
        return f"{rows} rows of {width} numbers"
    parts.skip(rows * (width * _NUMBER + 2))  # a word has a letter, and a space after it
    return None


def _fasttext(parts: _Parts) -> str | None:
    """The layout is that of fastText's own ``Dictionary::save`` and ``Matrix::save``."""
    numbers = _FASTTEXT.unpack(parts.take(_FASTTEXT.size))
    width, buckets = numbers[2], numbers[10]
    words, labels, pruned = numbers[15], numbers[17], numbers[19]
    if labels:
        return "a classifier, which has no vectors of words"
    for _ in range(words):
        parts.skip_word()
        parts.skip(_AFTER_WORD)
    parts.skip(max(pruned, 0) * _PRUNED)
    _, rows, columns = _MATRIX.unpack(parts.take(_MATRIX.size))
    if width < 1 or columns != width or buckets < 0 or rows != words + buckets or words < 1:
        return f"{rows} rows of {columns} numbers for {words} words of width {width}"
    parts.skip(rows * columns * _NUMBER)
    return None


class _Parts:
    """A file taken piece by piece, of which one block is held at a time."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self._block = b""
        self._at = 0

    def take(self, size: int) -> bytes:
        """The next few bytes."""
        taken = b""
        while len(taken) < size:
            self._more()
            piece = self._block[self._at : self._at + size - len(taken)]
            self._at += len(piece)
            taken += piece
        return taken

    def line(self) -> bytes:
        """The next short line, without its end."""
        taken = b""
        while (byte := self.take(1)) != b"\n":
            taken += byte
            if len(taken) > 64:
                raise _TooShortError
        return taken

    def skip(self, size: int) -> None:
        """Go over bytes."""
        while size > 0:
            self._more()
            step = min(size, len(self._block) - self._at)
            self._at += step
            size -= step

    def skip_word(self) -> None:
        """Go over a word and the NUL that ends it."""
        while True:
            self._more()
            end = self._block.find(b"\0", self._at)
            if end >= 0:
                self._at = end + 1
                return
            self._at = len(self._block)

    def _more(self) -> None:
        """Read on where the block is used up."""
        if self._at == len(self._block):
            self._block, self._at = self._file.read1(BLOCK_BYTES), 0
            if not self._block:
                raise _TooShortError
