"""Vectors for words that training did not see: from the vector file, or kept in the model."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ncrf.config import Config
from ncrf.data.dataset import FloatArray
from ncrf.data.tensor_file import TensorMap, TensorWriter
from ncrf.data.vectors import (
    VectorFile,
    VectorTable,
    match_vectors,
    normalize_rows,
)
from ncrf.data.vocabulary import NewWordVectors
from ncrf.data.word_index import WordIndex
from ncrf.errors import InputError
from ncrf.model.folder import VECTORS, has

logger = logging.getLogger(__name__)

ROWS_AT_ONCE = 10_000


class StoredRows:
    """The rows of a vector file that a model folder keeps (``vectors_in_model``).

    They stay in the file, mapped into memory. Raises InputError for one that is missing or
    damaged.
    """

    def __init__(self, path: Path, width: int) -> None:
        try:
            self._file = TensorMap(path)
            self._index = WordIndex(self._file.tensors["words"])
            rows = self._file.tensors["rows"]
            if rows.shape != (len(self._index), width) or rows.dtype != np.float16:
                raise ValueError(
                    f"it holds {rows.dtype} of {list(rows.shape)}, not float16 of "
                    f"{[len(self._index), width]}"
                )
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file=path) from error
        except (ValueError, KeyError) as error:
            raise InputError(f"is damaged: {error}", file=path) from error

    @classmethod
    def content(cls, table: VectorTable) -> bytes:
        """A table of vectors, in float16, as the content of a file for ``StoredRows`` to read."""
        if any("\n" in word for word in table.index):
            table = table.only(word for word in table.index if "\n" not in word)
        words = np.frombuffer("\n".join(table.index).encode("utf-8"), np.uint8)
        file = io.BytesIO()
        writer = TensorWriter(file)
        for start in range(0, len(table), ROWS_AT_ONCE):  # never the whole matrix in float32 again
            rows = table.matrix[start : start + ROWS_AT_ONCE]
            writer.add("rows", rows.astype(np.float16))
        writer.add("words", words)
        writer.finish({})
        return file.getvalue()

    def everything(self) -> VectorTable:
        """Every word that is stored, with its row as it is stored."""
        words = {word: row for row, word in enumerate(self._index.words())}
        return VectorTable(words, self._file.tensors["rows"])

    def rows(self, words: Iterable[str]) -> VectorTable:
        """The vectors of those words that have one."""
        found = self._index.find(words)
        matrix = self._file.rows("rows", np.fromiter(found.values(), np.int64, len(found)))
        index = {word: row for row, word in enumerate(found)}
        return VectorTable(index, matrix.astype(np.float32))


class FoundRows:
    """The rows of a source for words given by their spellings; see ``NewWordVectors``."""

    def __init__(self, source: VectorFile | StoredRows, width: int, *, normalize: bool) -> None:
        self._source = source
        self._width = width
        self._normalize = normalize

    def rows(self, candidates: Sequence[Sequence[str]]) -> tuple[FloatArray, np.ndarray]:
        """Rows ``[n,D]`` of n words, and which of them were found."""
        table = self._source.rows(spelling for word in candidates for spelling in word)
        match = match_vectors(candidates, table)
        rows = np.zeros((len(match.rows), self._width), np.float32)
        rows[match.found] = table.matrix[match.rows[match.found]]
        return (normalize_rows(rows) if self._normalize else rows), match.found

    def stored(self) -> bytes:
        """All rows of the source, in float16, as the content of a model folder's file."""
        return StoredRows.content(self._source.everything())


def new_words_for_decoding(config: Config, model_dir: Path) -> NewWordVectors | None:
    """Where decoding finds vectors for new words: in the model folder, or in the vector file.

    None where the model was trained without a file, or the file is not at hand any more; then
    new words are unknown. Raises InputError for a vector file of another width than the model's.
    """
    path, width = config.words.word_emb_dir, config.words.word_emb_dim
    if not config.words.use_word_emb or path is None:
        return None
    source: VectorFile | StoredRows
    if has(model_dir, VECTORS):
        source = StoredRows(model_dir / VECTORS, width)
    elif os.path.exists(path):
        source = VectorFile(path, cache=config.files.vector_cache)
        if source.dim != width:
            raise InputError(
                f"holds vectors of width {source.dim}, but the model's are of width {width}",
                file=path,
                remedy="the vector file that the model was trained with",
            )
    else:
        return None
    return FoundRows(source, width, normalize=config.words.norm_word_emb)
