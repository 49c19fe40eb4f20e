"""Batches: how sentences are grouped, and the padded arrays that a network sees.

The letters of every shape in this project: B sentences, L words (of the longest sentence),
U distinct words of the batch, W characters (of the longest word), F feature columns,
D width of an input, H width of a hidden state, Y labels, N paths.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ncrf.data.alphabet import PADDING, UNKNOWN
from ncrf.data.attributes import TokenAttributes
from ncrf.data.dataset import Dataset, FloatArray, IntArray, TypeTable

_POOL = 64  # batches whose sentences are sorted together when bucketing


@dataclass(frozen=True)
class AttributeBatch:
    """The template attributes of padded sentences; -1: none, as at all padding.

    Shapes:
        unigram: ``[B,L,R]``; bigram: ``[B,L,Q]``, those of a word and the one before it.
        unigram_values: ``[B,L,R]`` and bigram_values: ``[B,L,Q]``, None where all are 1.
    """

    unigram: Tensor
    bigram: Tensor
    unigram_values: Tensor | None = None
    bigram_values: Tensor | None = None

    @classmethod
    def cut(
        cls, attributes: TokenAttributes | None, place: IntArray, mask: NDArray[np.bool_]
    ) -> AttributeBatch | None:
        """The attributes of the words at ``place [B,L]`` of a corpus, where ``mask [B,L]``."""
        if attributes is None:
            return None

        def ids(of_words: NDArray[np.int32]) -> Tensor:
            return torch.from_numpy(np.where(mask[:, :, None], of_words[place], np.int32(-1)))

        def values(of_words: NDArray[np.float32] | None) -> Tensor | None:
            return None if of_words is None else torch.from_numpy(of_words[place])

        return cls(
            ids(attributes.unigram),
            ids(attributes.bigram),
            values(attributes.unigram_values),
            values(attributes.bigram_values),
        )

    def to(self, device: torch.device) -> AttributeBatch:
        """The same on ``device``."""
        return self if device.type == "cpu" else AttributeBatch(**_moved(vars(self), device))


@dataclass(frozen=True)
class Batch:
    """Padded sentences of one batch.

    The words of a batch repeat, so what depends on the word alone is computed once for each
    distinct word and spread by ``word_index``.

    Shapes:
        words: ``[U]`` word ids of the distinct words, those with most characters first.
        characters: ``[U,W]`` their characters, 0 where the word has ended.
        character_lengths: ``[U]``.
        new_rows, new_vectors: ``[E]`` places in ``words`` whose vector is not the model's own
            but the row of ``new_vectors [E,D]`` (words that training did not see).
        word_index: ``[B,L]`` each position's place in ``words`` (any valid one at padding).
        features: ``[F,B,L]``.
        mask: ``[B,L]`` True at words.
        lengths: ``[B]``, always on the CPU, as ``character_lengths`` are.
        labels: ``[B,L]`` (0 at padding), ``[B,1]`` in sentence classification, or None; where
            labels are known in part, ``[B,L,Y]`` Booleans, True for each that is possible.
        index: ``[B]`` each row's sentence number in the corpus.
        attributes: those of feature templates, None for a model without.
    """

    words: Tensor
    characters: Tensor
    character_lengths: Tensor
    new_rows: Tensor
    new_vectors: Tensor
    word_index: Tensor
    features: Tensor
    mask: Tensor
    lengths: Tensor
    labels: Tensor | None
    index: IntArray
    attributes: AttributeBatch | None = None

    def to(self, device: torch.device) -> Batch:
        """The same batch with its tensors, but not its lengths, on ``device``."""
        return self if device.type == "cpu" else Batch(**_moved(vars(self), device))


@dataclass(frozen=True)
class WordTypes:
    """Distinct words for the network: the fields of this name of a Batch."""

    words: Tensor
    characters: Tensor
    character_lengths: Tensor
    new_rows: Tensor
    new_vectors: Tensor

    def to(self, device: torch.device) -> WordTypes:
        """The same words with their tensors, but not their lengths, on ``device``."""
        return self if device.type == "cpu" else WordTypes(**_moved(vars(self), device))


@dataclass(frozen=True)
class RowBatch:
    """Padded sentences whose words are given by rows of a table, longest sentence first.

    Shapes:
        rows: ``[B,L]`` each word's row (any valid one at padding).
        features: ``[F,B,L]``; mask: ``[B,L]`` True at words; lengths: ``[B]``.
        allowed: None, or ``[B,L,Y]`` Booleans, the labels that a word may get.
        index: ``[B]`` each row's sentence number in its window.
        attributes: those of feature templates, None for a model without.
    """

    rows: Tensor
    features: Tensor
    mask: Tensor
    lengths: Tensor
    allowed: Tensor | None
    index: IntArray
    attributes: AttributeBatch | None = None

    def to(self, device: torch.device) -> RowBatch:
        """The same batch with its tensors, but not its lengths, on ``device``."""
        return self if device.type == "cpu" else RowBatch(**_moved(vars(self), device))


def _moved(fields: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """Fields of a batch with their tensors on a GPU, copied while it computes.

    Lengths stay where they are: packing wants them on the CPU, and asking the GPU for them would
    wait for it.
    """

    def move(name: str, value: Any) -> Any:
        if isinstance(value, AttributeBatch):
            return value.to(device)
        if isinstance(value, Tensor) and not name.endswith("lengths"):
            return value.pin_memory().to(device, non_blocking=True)
        return value

    return {name: move(name, value) for name, value in fields.items()}


@dataclass(frozen=True)
class UnknownReplacement:
    """Training's way to teach the unknown rows: rare strings are replaced now and then.

    A string seen once in training becomes unknown with ``probability``. The Boolean arrays
    say which ids of each alphabet were seen once.
    """

    probability: float
    words: np.ndarray
    characters: np.ndarray
    features: tuple[np.ndarray, ...]

    def apply(self, ids: IntArray, once: np.ndarray, rng: np.random.Generator) -> IntArray:
        """``ids`` (any shape) with the rare ones replaced by the unknown id at random."""
        drawn = once[ids] & (rng.random(ids.shape) < self.probability)
        return np.where(drawn, UNKNOWN, ids)


def make_batch(
    dataset: Dataset,
    rows: IntArray,
    *,
    max_word_length: int = -1,
    possible: NDArray[np.bool_] | None = None,
    replacement: UnknownReplacement | None = None,
    rng: np.random.Generator | None = None,
) -> Batch:
    """Cut the sentences ``rows [B]`` out of the corpus and pad them.

    ``max_word_length`` cuts longer words for the character layer (-1: none). ``replacement``,
    which only training has, needs ``rng``. ``possible [labels, Y]`` tells what each label id of
    the corpus stands for, where some stand for several.
    """
    starts = dataset.offsets[rows]
    lengths = dataset.offsets[rows + 1] - starts
    place, mask = _padded_places(starts, lengths)
    tokens = dataset.types[place]
    tokens[~mask] = tokens[0, 0] if tokens.size and mask[0, 0] else 0
    table = dataset.type_table
    types, word_index = _distinct(table, tokens)
    words = table.words[types]
    characters, character_lengths = _characters(table, types, max_word_length)
    features = np.where(mask, dataset.features[:, place], PADDING)
    if replacement is not None and rng is not None:
        words = replacement.apply(words, replacement.words, rng)
        characters = replacement.apply(characters, replacement.characters, rng)
        for ids, once in zip(features, replacement.features, strict=True):
            ids[:] = replacement.apply(ids, once, rng)
    words, new_rows, new_vectors = _new_words(table, words)
    labels = None
    if dataset.labels is not None:
        label_place, labelled = places(dataset.label_offsets, rows)
        ids = np.where(labelled, dataset.labels[label_place], 0)
        labels = torch.from_numpy(ids if possible is None else possible[ids])
    return Batch(
        words=torch.from_numpy(words),
        characters=torch.from_numpy(characters),
        character_lengths=torch.from_numpy(character_lengths),
        new_rows=torch.from_numpy(new_rows),
        new_vectors=torch.from_numpy(new_vectors),
        word_index=torch.from_numpy(word_index),
        features=torch.from_numpy(features),
        mask=torch.from_numpy(mask),
        lengths=torch.from_numpy(lengths),
        labels=labels,
        index=rows,
        attributes=AttributeBatch.cut(dataset.attributes, place, mask),
    )


def make_types(table: TypeTable, types: IntArray, *, max_word_length: int = -1) -> WordTypes:
    """The distinct words ``types [U]`` of a table, for the network."""
    words, new_rows, new_vectors = _new_words(table, table.words[types])
    characters, character_lengths = _characters(table, types, max_word_length)
    arrays = (words, characters, character_lengths, new_rows, new_vectors)
    return WordTypes(*map(torch.from_numpy, arrays))


def make_row_batch(
    offsets: IntArray,
    sentences: IntArray,
    rows: IntArray,
    features: IntArray,
    allowed: tuple[NDArray[np.bool_], IntArray] | None = None,
    attributes: TokenAttributes | None = None,
) -> RowBatch:
    """Pad the given ``sentences [B]`` (longest first) of a window of T words in S sentences.

    Sentence s holds the words offsets[s] to offsets[s+1] of ``rows [T]`` and ``features [F,T]``.
    ``allowed`` has a row ``[*,Y]`` for each word, or for each sentence in classification, and its
    own offsets.
    """
    starts = offsets[sentences]
    place, mask = _padded_places(starts, offsets[sentences + 1] - starts)
    return RowBatch(
        rows=torch.from_numpy(rows[place]),
        features=torch.from_numpy(np.where(mask, features[:, place], PADDING)),
        mask=torch.from_numpy(mask),
        lengths=torch.from_numpy(offsets[sentences + 1] - starts),
        allowed=None if allowed is None else _padded(*allowed, sentences),
        index=sentences,
        attributes=AttributeBatch.cut(attributes, place, mask),
    )


def places(offsets: IntArray, sentences: IntArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """Where the words of ``sentences [B]`` lie, ``[B,L]``, and the mask; padding points at 0."""
    starts = offsets[sentences]
    return _padded_places(starts, offsets[sentences + 1] - starts)


def _distinct(table: TypeTable, types: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct words ``[U]`` among ``types [B,L]``, longest first, and the place of each."""
    distinct, places = np.unique(types, return_inverse=True)
    longest_first = np.argsort(table.offsets[distinct] - table.offsets[distinct + 1], kind="stable")
    rank = np.empty_like(longest_first)
    rank[longest_first] = np.arange(len(rank))
    return distinct[longest_first], rank[places].reshape(types.shape)


def _padded(values: NDArray[np.bool_], offsets: IntArray, sentences: IntArray) -> Tensor:
    """``values [*,Y]`` of the given sentences, ``[B,L,Y]``; without a meaning at padding."""
    return torch.from_numpy(values[places(offsets, sentences)[0]])


def _new_words(table: TypeTable, words: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Word ids ``[U]`` in the alphabet; which of them are new, ``[E]``, and their vectors."""
    new_rows = np.flatnonzero(words >= table.num_words)
    new_vectors = table.new_vectors[words[new_rows] - table.num_words]
    return np.where(words >= table.num_words, UNKNOWN, words), new_rows, new_vectors


def _padded_places(starts: IntArray, lengths: IntArray) -> tuple[IntArray, np.ndarray]:
    """Places ``[B,L]`` in a flat array of pieces, and the mask; padding points at place 0."""
    steps = np.arange(max(1, int(lengths.max(initial=0))))
    mask = steps < lengths[:, None]
    return np.where(mask, starts[:, None] + steps, 0), mask


def _characters(
    table: TypeTable, types: IntArray, max_word_length: int
) -> tuple[IntArray, IntArray]:
    """Characters ``[U,W]`` of the given types, and their lengths ``[U]``."""
    starts = table.offsets[types]
    lengths = table.offsets[types + 1] - starts
    if max_word_length > 0:
        lengths = np.minimum(lengths, max_word_length)
    place, mask = _padded_places(starts, lengths)
    return np.where(mask, table.characters[place], PADDING), lengths


def training_batches(
    lengths: IntArray, batch_size: int, bucket: bool, rng: np.random.Generator
) -> list[IntArray]:
    """One epoch's batches: arrays of sentence numbers, every sentence once, in random order.

    With ``bucket`` the shuffled corpus is sorted by length within pools of 64 batches before
    it is cut, so a batch holds sentences of like length and yet another mixture every epoch;
    the batches themselves are shuffled. Without it, the shuffled corpus is cut as it is.
    """
    order = rng.permutation(len(lengths))
    if not bucket:
        return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
    batches = []
    for start in range(0, len(order), _POOL * batch_size):
        pool = order[start : start + _POOL * batch_size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[i : i + batch_size] for i in range(0, len(pool), batch_size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def pieces(rows: IntArray, lengths: IntArray, max_tokens: int) -> Iterator[IntArray]:
    """Cut ``rows`` into pieces whose padded size (rows × longest) stays within ``max_tokens``.

    Rows are taken longest first so that a long sentence does not pad short ones; a sentence
    longer than ``max_tokens`` stands alone.
    """
    order = rows[np.argsort(-lengths[rows], kind="stable")]
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        count = max(1, max_tokens // longest)
        yield order[start : start + count]
        start += count


def split_by_length(rows: IntArray, lengths: IntArray, spared: int) -> list[IntArray]:
    """Cut ``rows`` where that spares so many tokens of padding or more; else they stay as they are.

    A batch that holds the longest sentences of all pads the others most.
    """
    order = rows[np.argsort(-lengths[rows], kind="stable")]
    sizes = lengths[order]
    cuts = np.arange(1, len(order))
    saved = (len(order) - cuts) * (sizes[0] - sizes[1:])
    if not len(saved) or saved.max() < spared:
        return [rows]
    cut = int(saved.argmax()) + 1
    longer, shorter = order[:cut], order[cut:]
    return [part for side in (longer, shorter) for part in split_by_length(side, lengths, spared)]
