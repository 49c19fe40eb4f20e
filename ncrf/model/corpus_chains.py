"""A corpus as chains for inference: sentences of like length side by side, scored by templates.

What the likelihood of a whole corpus and its decoding have in common. As in CRF++ and CRFsuite
there are no scores for the first or last label as such (a template that sees the boundary,
``%x[-1,0]``, says what is to say there): in the terms of ``ncrf.crf``, start and end are zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ncrf.data.attributes import Ids, TokenAttributes
from ncrf.data.dataset import IntArray
from ncrf.data.feature_index import FeatureIndex
from ncrf.data.template_window import Values
from ncrf.model.corpus_scores import CorpusScorer, SingleFeatures

_BATCH_TOKENS = 16384  # words of one batch of sentences
_BATCH_PAIRS = 1 << 19  # label pairs of one batch where each word has its own transitions
_SLACK = 0.1  # a batch's longest sentence may be longer than its shortest by this share


@dataclass(frozen=True)
class CorpusBatch:
    """Sentences of like length: B rows of L places in the padded corpus, from ``start`` on.

    ``mask [B,L]`` is None where no place is padding.
    """

    start: int
    shape: tuple[int, int]
    mask: Tensor | None

    @property
    def places(self) -> slice:
        """Its places among the N of the padded corpus."""
        return slice(self.start, self.start + self.shape[0] * self.shape[1])


@dataclass(frozen=True)
class CorpusLayout:
    """A corpus in batches of like length, laid end to end in N places with little padding.

    ``tokens [N]``: the word at each place, -1 for padding. Empty sentences are left out; their
    likelihood is 1.
    """

    tokens: IntArray
    batches: tuple[CorpusBatch, ...]

    @classmethod
    def build(
        cls,
        offsets: IntArray,
        batch_tokens: int = _BATCH_TOKENS,
        part: tuple[int, int] = (0, 1),
    ) -> CorpusLayout:
        """Lay out the sentences from offsets[s] to offsets[s+1], at most so many words a batch.

        ``part`` (p, n): only the p-th of n parts, alike in number and lengths of sentences.
        """
        lengths = np.diff(offsets)
        order = np.argsort(lengths, kind="stable")
        order = order[lengths[order] > 0][part[0] :: part[1]]
        pieces: list[IntArray] = []
        batches: list[CorpusBatch] = []
        start = 0
        for rows in _groups(lengths[order], batch_tokens):
            chosen = order[rows]
            longest = int(lengths[chosen[-1]])
            steps = np.arange(longest)
            inside = steps < lengths[chosen][:, None]
            pieces.append(np.where(inside, offsets[chosen][:, None] + steps, -1).reshape(-1))
            mask = None if inside.all() else torch.from_numpy(inside)
            batches.append(CorpusBatch(start, (len(chosen), longest), mask))
            start += inside.size
        tokens = np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
        return cls(tokens, tuple(batches))


def _groups(lengths: IntArray, batch_tokens: int) -> Iterator[slice]:
    """Runs of rising lengths that make one batch each."""
    start = 0
    while start < len(lengths):
        longest = int(lengths[start] * (1 + _SLACK))
        end = int(np.searchsorted(lengths, longest, "right"))
        longest = int(lengths[end - 1])
        end = min(end, start + max(1, batch_tokens // longest))
        yield slice(start, end)
        start = end


class CorpusChain(NamedTuple):
    """One batch, scored.

    Attributes:
        batch: its place in the layout.
        emissions: [B,L,Y] in the scorer's type, the batch's part of those of the corpus; it may be
            written over.
        transitions: [Y,Y], or [B,L-1,Y,Y] where they differ by position, in float64.
        pairs: the bigram features of the batch, or None.
    """

    batch: CorpusBatch
    emissions: Tensor
    transitions: Tensor
    pairs: SingleFeatures | None


class CorpusChains:
    """Emissions and transitions of all sentences of a corpus, or of a part of it, by K weights.

    Attributes:
        layout: where the words are.
        scorer: emissions from weights, and the way back.
    """

    def __init__(
        self,
        index: FeatureIndex,
        attributes: TokenAttributes,
        dtype: torch.dtype,
        part: tuple[int, int] = (0, 1),
    ) -> None:
        """Prepare for a corpus; ``dtype`` is that of the emissions, ``part`` as in the layout."""
        self.index = index
        by_position = bool(len(index.bigram_pairs)) and attributes.bigram.shape[1] > 0
        most = max(1, _BATCH_PAIRS // index.num_labels**2) if by_position else _BATCH_TOKENS
        self.layout = CorpusLayout.build(attributes.offsets, most, part)
        tokens = self.layout.tokens
        ids, values = _placed(attributes.unigram, attributes.unigram_values, tokens)
        self.scorer = CorpusScorer(index, ids, values, dtype)
        self._pairs: list[SingleFeatures | None] = [None] * len(self.layout.batches)
        if by_position:
            ids, values = _placed(attributes.bigram, attributes.bigram_values, tokens)
            self._pairs = [self._pairs_of(b, ids, values) for b in self.layout.batches]

    def chains(self, emissions: Tensor, weights: Tensor) -> Iterator[CorpusChain]:
        """The batches, with ``emissions [N,Y]`` and the transitions of weights ``[K]``."""
        transitions = torch.from_numpy(self.index.transition_scores(weights.numpy())).double()
        bigram = weights[self.index.parts[2]].double()
        for batch, pairs in zip(self.layout.batches, self._pairs, strict=True):
            part = emissions[batch.places].view(*batch.shape, -1)
            scores = transitions
            if pairs is not None:
                scores = self._pair_scores(batch, pairs, transitions, bigram)
            yield CorpusChain(batch, part, scores, pairs)

    def _pairs_of(
        self, batch: CorpusBatch, ids: Ids, values: Values | None
    ) -> SingleFeatures | None:
        """The bigram features of a batch, whose cells are those of scores ``[B,L-1,Y,Y]``."""
        if batch.shape[1] == 1:
            return None
        width = ids.shape[1]
        places = np.arange(batch.places.start, batch.places.stop).reshape(batch.shape)[:, 1:]
        later = ids[places].reshape(-1, width)
        of_values = None if values is None else values[places].reshape(-1, width)
        features = (self.index.bigram_offsets, self.index.bigram_pairs, self.index.num_labels**2)
        return SingleFeatures(features, later, of_values, torch.float64)

    def _pair_scores(
        self, batch: CorpusBatch, pairs: SingleFeatures, transitions: Tensor, weights: Tensor
    ) -> Tensor:
        """Transitions by position, ``[B,L-1,Y,Y]``."""
        rows, width = batch.shape
        scores = transitions.repeat(rows, width - 1, 1, 1)
        pairs.add(scores.view(-1), weights)
        return scores


def _placed(ids: Ids, values: Values | None, tokens: IntArray) -> tuple[Ids, Values | None]:
    """Attributes ``[N,R]`` at the places of a layout; -1 at padding."""
    if not len(ids):
        return ids, values
    placed = ids[tokens]
    placed[tokens < 0] = -1
    return placed, None if values is None else values[tokens]
