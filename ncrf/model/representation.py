"""Word representations: word vector, feature vectors and character vector side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ncrf.config.schema import Chars, Words
from ncrf.data.alphabet import PADDING
from ncrf.data.batch import Batch, WordTypes
from ncrf.errors import ConfigError
from ncrf.model.char_layers import CHAR_LAYERS, CharCNN, CharLayer
from ncrf.model.convolution import PackedWords
from ncrf.model.dropout import Dropout, WordDropout

_ROWWISE_ROWS = 1000  # from this size on, a table's gradient is kept for the rows in use only
_MAX_CHARACTERS = 1 << 17  # that go through the character layer at a time
_LENGTHS = 4  # so many groups of words of similar length


@dataclass(frozen=True)
class InputSizes:
    """How many rows each embedding table has and how wide it is.

    ``words`` and ``characters``: (rows, width); ``features``: one (rows, width) a column.
    """

    words: tuple[int, int]
    characters: tuple[int, int]
    features: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class InputDropout:
    """Probabilities with which training drops parts of the input.

    ``characters`` is for each number of an embedded character, ``vectors`` for each of a word's
    vector, ``words`` for all of that vector. With ``locked`` the same numbers of the vector are
    dropped at every word of a sentence.
    """

    characters: float = 0.0
    vectors: float = 0.0
    words: float = 0.0
    locked: bool = False


class WordRepresentation(nn.Module):
    """What the network knows of a word before it sees the sentence.

    Word embedding, feature embeddings and the character layer's output are concatenated, then
    dropout of single numbers and of whole words. The two parts that depend on the word alone are
    computed once for each distinct word of the batch.
    """

    def __init__(
        self,
        word_keys: Words,
        char_keys: Chars,
        sizes: InputSizes,
        dropout: InputDropout,
        own_char_keys: tuple[Any, ...] = (),
    ) -> None:
        """``own_char_keys`` holds the key group that a plugin's character layer has for itself."""
        super().__init__()
        self.char_dropout = Dropout(dropout.characters)
        self.dropout = Dropout(dropout.vectors, shared=1 if dropout.locked else None)
        self.word_dropout = WordDropout(dropout.words)
        self.word_embedding = _embedding(*sizes.words) if word_keys.use_word_emb else None
        self.feature_embeddings = nn.ModuleList(_embedding(*size) for size in sizes.features)
        self.char_embedding: nn.Embedding | None = None
        self.char_layer: CharLayer | None = None
        self.output_size = sum(width for _, width in sizes.features)
        if word_keys.use_word_emb:
            self.output_size += sizes.words[1]
        if char_keys.use_char:
            self.char_embedding = _embedding(*sizes.characters)
            self.char_layer = CHAR_LAYERS.get(char_keys.char_seq_feature)(
                char_keys, sizes.characters[1], *own_char_keys
            )
            self.output_size += self.char_layer.output_size

    def freeze(self, names: tuple[str, ...], feature_names: tuple[str, ...]) -> None:
        """Exclude embedding tables from training: ``word``, ``char``, or a feature's name.

        Raises ConfigError for a table that is not there.
        """
        tables = dict(zip(feature_names, self.feature_embeddings, strict=True))
        if self.word_embedding is not None:
            tables["word"] = self.word_embedding
        if self.char_embedding is not None:
            tables["char"] = self.char_embedding
        for name in names:
            if name not in tables:
                raise ConfigError(
                    f"freeze={name}: no such table", remedy=f"of: {', '.join(tables) or 'none'}"
                )
            tables[name].requires_grad_(False)

    def rowwise_gradients(self) -> list[nn.Parameter]:
        """Let large tables have a sparse gradient, of the rows that a batch uses; which they are.

        For optimizers that can take one. A table that is not trained is left out.
        """
        tables = [self.word_embedding, *self.feature_embeddings]
        weights: list[nn.Parameter] = []
        for table in tables:
            if isinstance(table, nn.Embedding) and table.num_embeddings >= _ROWWISE_ROWS:
                weight = table.weight
                if isinstance(weight, nn.Parameter) and weight.requires_grad:
                    table.sparse = True
                    weights.append(weight)
        return weights

    def forward(self, batch: Batch) -> Tensor:
        """Word vectors ``[B,L,D]`` of a batch; what stands at padding has no meaning."""
        types = self.type_vectors(batch)
        words = None if types is None else functional.embedding(batch.word_index, types)
        vectors = self.dropout(self.with_features(words, batch.features))
        output: Tensor = self.word_dropout(vectors)
        return output

    def with_features(self, words: Tensor | None, features: Tensor) -> Tensor:
        """Word vectors ``[B,L,D]`` (None: there are none) and those of ``features [F,B,L]``."""
        parts = [] if words is None else [words]
        parts += [
            embedding(ids) for embedding, ids in zip(self.feature_embeddings, features, strict=True)
        ]
        return torch.cat(parts, dim=2) if len(parts) > 1 else parts[0]

    def type_vectors(
        self,
        types: Batch | WordTypes,
        character_vectors: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> Tensor | None:
        """The part that depends on the word alone, ``[U,D]``, for distinct words.

        ``character_vectors`` stands for the character layer: characters ``[U,W]`` and lengths
        ``[U]`` to ``[U,H]``.
        """
        parts = []
        if self.word_embedding is not None:
            vectors = self.word_embedding(types.words)
            if len(types.new_rows):
                vectors = vectors.index_copy(0, types.new_rows, types.new_vectors.to(vectors.dtype))
            parts.append(vectors)
        if self.char_layer is not None:
            vectors_of = character_vectors or self._character_vectors
            parts.append(vectors_of(types.characters, types.character_lengths))
        return torch.cat(parts, dim=1) if parts else None

    def _character_vectors(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """Characters ``[U,W]`` to vectors ``[U,H]``; long words do not pad short ones."""
        layer = self.char_layer
        assert self.char_embedding is not None and layer is not None
        packs = isinstance(layer, CharCNN) and layer.packs(characters)
        if not packs and characters.numel() <= _MAX_CHARACTERS:
            vectors: Tensor = layer(self.char_dropout(self.char_embedding(characters)), lengths)
            return vectors
        vectors_of = self._packed if packs else self._by_length
        counts = lengths.numpy()
        if (counts[1:] <= counts[:-1]).all():  # as training has them
            return vectors_of(characters, lengths)
        order = torch.argsort(lengths, descending=True, stable=True)
        sorted_vectors = vectors_of(characters[order], lengths[order])
        return sorted_vectors.index_select(0, torch.argsort(order).to(sorted_vectors.device))

    def _by_length(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """The same for words of which the longest come first."""
        layer = self.char_layer
        assert self.char_embedding is not None and layer is not None
        done = [
            layer(
                self.char_dropout(self.char_embedding(characters[first:end, :longest])),
                lengths[first:end],
            )
            for first, end, longest in _alike(lengths.tolist())
        ]
        return torch.cat(done)

    def _packed(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """The same without padding."""
        table, layer = self.char_embedding, self.char_layer
        assert table is not None and isinstance(layer, CharCNN)
        ends = lengths.numpy().cumsum()
        bounds = np.searchsorted(ends, np.arange(_MAX_CHARACTERS, ends[-1], _MAX_CHARACTERS))
        done = []
        for first, end in pairwise(sorted({0, *bounds.tolist(), len(lengths)})):
            words = PackedWords.of(lengths[first:end].numpy())
            places = words.word * characters.shape[1] + words.place
            ids = characters[first:end].flatten().index_select(0, places)
            mask = self.char_dropout.mask((len(ids), table.embedding_dim), table.weight)
            done.append(layer.packed(table.weight, ids, words, mask))
        return torch.cat(done) if len(done) > 1 else done[0]


def _alike(lengths: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Words of a similar number of characters, longest first: from, to, characters of the first."""
    fewest = -(-len(lengths) // _LENGTHS)
    first = 0
    while first < len(lengths):
        longest = max(1, lengths[first])
        end = min(len(lengths), first + min(fewest, max(1, _MAX_CHARACTERS // longest)))
        yield first, end, longest
        first = end


def _embedding(rows: int, width: int) -> nn.Embedding:
    """An embedding table, uniform in ±sqrt(3/width), with a zero row for padding."""
    bound = float(np.sqrt(3.0 / width))
    numbers = torch.empty(rows, width).uniform_(-bound, bound)
    numbers[PADDING] = 0.0
    return nn.Embedding(rows, width, padding_idx=PADDING, _weight=numbers)
