"""Vectors for words that training did not see: from the vector file, or kept in the model."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch

from ncrf.config import Config
from ncrf.data.dataset import FloatArray
from ncrf.data.vectors import (
    VectorFile,
    VectorTable,
    match_vectors,
    normalize_rows,
    read_vectors,
)
from ncrf.data.vocabulary import NewWordVectors
from ncrf.errors import InputError
from ncrf.model.folder import VECTORS, has, read_tensors, tensor_bytes

logger = logging.getLogger(__name__)


class StoredRows:
    """The rows of a vector file that a model folder keeps (``vectors_in_model``).

    Raises InputError for a file that does not hold rows of the model's width.
    """

    def __init__(self, path: Path, width: int) -> None:
        tensors = read_tensors(path)
        try:
            words = tensors["words"].numpy().tobytes().decode("utf-8").split("\n")
            self._matrix = tensors["rows"].numpy()  # float16: half the memory, too
        except (KeyError, TypeError, UnicodeDecodeError) as error:
            raise InputError("is damaged: it holds no vectors", file=path) from error
        self._index = {word: row for row, word in enumerate(words)}
        if self._matrix.shape != (len(words), width) or self._matrix.dtype != np.float16:
            raise InputError(
                f"holds {self._matrix.dtype} of {list(self._matrix.shape)}, not float16 of "
                f"{[len(words), width]}",
                file=path,
            )

    @classmethod
    def content(cls, table: VectorTable) -> bytes:
        """A table of vectors as the content of a file for ``StoredRows`` to read."""
        table = table.only(word for word in table.index if "\n" not in word)
        words = np.frombuffer("\n".join(table.index).encode("utf-8"), np.uint8)
        rows = table.matrix.astype(np.float16)
        tensors = {"words": torch.from_numpy(words.copy()), "rows": torch.from_numpy(rows)}
        return tensor_bytes(tensors)

    def all_rows(self) -> VectorTable:
        """Every word that is stored."""
        return VectorTable(self._index, self._matrix.astype(np.float32))

    def rows(self, words: Iterable[str]) -> VectorTable:
        """The vectors of those words that have one."""
        present = [word for word in dict.fromkeys(words) if word in self._index]
        matrix = self._matrix[[self._index[word] for word in present]].astype(np.float32)
        return VectorTable({word: row for row, word in enumerate(present)}, matrix)


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
        source = self._source
        table = source.all_rows() if isinstance(source, StoredRows) else read_vectors(source.path)
        return StoredRows.content(table)


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
        source = VectorFile(path)
        if source.dim != width:
            raise InputError(
                f"holds vectors of width {source.dim}, but the model's are of width {width}",
                file=path,
                remedy="the vector file that the model was trained with",
            )
    else:
        return None
    return FoundRows(source, width, normalize=config.words.norm_word_emb)
