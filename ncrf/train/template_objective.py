"""The likelihood of the classical CRF over a whole corpus, as a function of its weights.

The model is P(y | x) with the score sum_k w_k f_k(x, y) for a labeling: state features at each
word, and at each word but the first the features of its label and the one before. There are no
scores for the first or last label as such, as in CRF++ and CRFsuite (a template that sees the
boundary, ``%x[-1,0]``, says what is to say there): in the terms of ``ncrf.crf``, start and end are
zero. The negative log-likelihood and its gradient are

    sum over sentences of log Z(x) - w . observed,     expected - observed

with the counts of the features in the corpus and their expectation under the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ncrf.crf import log_partition
from ncrf.data.attributes import Ids, TokenAttributes
from ncrf.data.dataset import IntArray
from ncrf.data.feature_index import FeatureIndex
from ncrf.data.template_window import Values
from ncrf.model.corpus_scores import CorpusScorer, SingleFeatures

Floats = NDArray[np.float64]

_BATCH_TOKENS = 16384  # words of one batch of sentences
_BATCH_PAIRS = 1 << 19  # label pairs of one batch where each word has its own transitions
_SMALL = 1 << 18  # attributes of words in a corpus up to which float64 costs nothing that counts
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
    def build(cls, offsets: IntArray, batch_tokens: int = _BATCH_TOKENS) -> CorpusLayout:
        """Lay out the sentences from offsets[s] to offsets[s+1], at most so many words a batch."""
        lengths = np.diff(offsets)
        order = np.argsort(lengths, kind="stable")
        order = order[lengths[order] > 0]
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


class TemplateObjective:
    """Negative log-likelihood of a labelled corpus, and its gradient, by K weights.

    Calling it with weights ``[K]`` (float64) gives ``(value, gradient [K])``, the value summed over
    the corpus and, with ``c2``, the penalty ``c2 * sum(w**2)`` added (CRFsuite's c2; CRF++'s -c C
    is c2 = 1 / (2 C), a Gaussian prior of variance V is c2 = 1 / (2 V)).

    Emissions are added up in ``dtype``. With float32, some times as fast, value and gradient are
    right to about 1e-6 a word, so that a learner may come to where the value falls no further
    while the gradient is not quite 0. None takes float64 for a corpus so small that it does not
    matter. All else is in float64: in a trained model scores are so far apart that a forward pass
    in float32 would have to be done again for every third sentence.
    """

    def __init__(
        self,
        index: FeatureIndex,
        attributes: TokenAttributes,
        labels: IntArray,
        *,
        c2: float = 0.0,
        dtype: torch.dtype | None = None,
    ) -> None:
        """Prepare for a corpus with ``labels [T]``, ids below the index's number of labels."""
        self.index = index
        self.c2 = c2
        self.num_weights = index.num_features
        self.num_tokens = attributes.num_tokens
        self.observed = index.count(attributes, labels)
        if dtype is None:
            dtype = torch.float64 if attributes.unigram.size <= _SMALL else torch.float32
        self._dtype = dtype
        self._by_position = bool(len(index.bigram_pairs)) and attributes.bigram.shape[1] > 0
        most = _BATCH_TOKENS
        if self._by_position:
            most = max(1, _BATCH_PAIRS // index.num_labels**2)
        self._layout = CorpusLayout.build(attributes.offsets, most)
        tokens = self._layout.tokens
        ids, values = _placed(attributes.unigram, attributes.unigram_values, tokens)
        self._scorer = CorpusScorer(index, ids, values, dtype)
        self._pairs: list[SingleFeatures | None] = [None] * len(self._layout.batches)
        if self._by_position:
            ids, values = _placed(attributes.bigram, attributes.bigram_values, tokens)
            self._pairs = [self._pairs_of(b, ids, values) for b in self._layout.batches]

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """The value to be minimized, and its gradient ``[K]``."""
        log_z, expected = self.expected(weights)
        # Both parts of the value take the same rounded weights, or it would belong to no point.
        rounded = torch.from_numpy(weights).to(self._dtype).double().numpy()
        value = log_z - float(rounded @ self.observed)
        gradient = expected - self.observed
        if self.c2:
            value += self.c2 * float(weights @ weights)
            gradient += 2 * self.c2 * weights
        return value, gradient

    def log_likelihood(self, weights: Floats) -> float:
        """Log-likelihood of the corpus, without the penalty, per word."""
        value = self(weights)[0] - self.c2 * float(weights @ weights)
        return -value / max(self.num_tokens, 1)

    def expected(self, weights: Floats) -> tuple[float, Floats]:
        """Sum of log Z over the corpus, and the expected counts of the K features in it."""
        states, _, bigram = self.index.parts
        rounded = torch.from_numpy(weights).to(self._dtype)
        emissions = self._scorer.emissions(rounded[states])
        rounded = rounded.double()
        transitions = torch.from_numpy(self.index.transition_scores(rounded.numpy()))
        pair_counts = torch.zeros(transitions.shape, dtype=torch.float64)
        by_position = torch.zeros(self.num_weights - bigram.start, dtype=torch.float64)
        total = 0.0
        for batch, pairs in zip(self._layout.batches, self._pairs, strict=True):
            part = emissions[batch.places].view(*batch.shape, -1)
            scores = transitions
            if pairs is not None:
                scores = self._pair_scores(batch, pairs, transitions, rounded[bigram])
            log_z, marginals, found = _expectations(part.double(), scores, batch.mask)
            total += log_z
            # The batch's emissions are done with: their place serves for its marginals.
            part.copy_(marginals)
            if pairs is not None:
                pairs.gradient(found, by_position)
                found = found.flatten(0, 1).sum(0, dtype=torch.float64)
            pair_counts += found
        flat = pair_counts.view(-1)[torch.from_numpy(self.index.transition_pairs)]
        gradient = torch.cat([self._scorer.gradient(emissions), flat, by_position])
        return total, gradient.numpy()

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


def _expectations(
    emissions: Tensor, transitions: Tensor, mask: Tensor | None
) -> tuple[float, Tensor, Tensor]:
    """Sum of log Z, marginals ``[B,L,Y]`` and expected label pairs in the shape of transitions."""
    emissions = emissions.detach().requires_grad_()
    transitions = transitions.detach().requires_grad_()
    log_z = log_partition(emissions, transitions, mask=mask).sum(dtype=torch.float64)
    marginals, pairs = torch.autograd.grad(log_z, (emissions, transitions))
    return log_z.item(), marginals, pairs
