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
from concurrent.futures import ThreadPoolExecutor
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
from ncrf.decode.pipeline import sharing_cores
from ncrf.model.corpus_scores import CorpusScorer, SingleFeatures
from ncrf.train.full_batch import Callback, run
from ncrf.train.lbfgs import LBFGS

Floats = NDArray[np.float64]

_BATCH_TOKENS = 16384  # words of one batch of sentences
_BATCH_PAIRS = 1 << 19  # label pairs of one batch where each word has its own transitions
_LEAST_SENTENCES = 64  # of a thread, or it costs more than it gains
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


class TemplateObjective:
    """Negative log-likelihood of a labelled corpus, and its gradient, by K weights.

    Calling it with weights ``[K]`` (float64) gives ``(value, gradient [K])``, the value summed over
    the corpus and, with ``c2``, the penalty ``c2 * sum(w**2)`` added (CRFsuite's c2; CRF++'s -c C
    is c2 = 1 / (2 C), a Gaussian prior of variance V is c2 = 1 / (2 V)).

    Emissions are added up in ``dtype``. With float32, some times as fast, value and gradient are
    right to about 1e-6 a word. All else is in float64: in a trained model scores are so far apart
    that a forward pass in float32 has to be done again for every third sentence.

    With several ``threads`` each computes its part of the sentences, and what they find is added up
    in the order of the parts: as many threads give the same numbers, to the bit.
    """

    def __init__(
        self,
        index: FeatureIndex,
        attributes: TokenAttributes,
        labels: IntArray,
        *,
        c2: float = 0.0,
        dtype: torch.dtype = torch.float32,
        threads: int = 1,
    ) -> None:
        """Prepare for a corpus with ``labels [T]``, ids below the index's number of labels."""
        self.index = index
        self.c2 = c2
        self.num_weights = index.num_features
        self.num_tokens = attributes.num_tokens
        self.observed = index.count(attributes, labels)
        self._dtype = dtype
        sentences = len(attributes.offsets) - 1
        parts = max(1, min(threads, sentences // _LEAST_SENTENCES))
        self._parts = [_Part(index, attributes, dtype, (p, parts)) for p in range(parts)]
        self._pool = ThreadPoolExecutor(parts, "ncrf objective") if parts > 1 else None

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
        rounded = torch.from_numpy(weights).to(self._dtype)
        if self._pool is None:
            total, counts = self._parts[0].expected(rounded)
            return total, counts.numpy()
        with sharing_cores(len(self._parts)):
            found = list(self._pool.map(lambda part: part.expected(rounded), self._parts))
        total, counts = found[0]
        for more, of_part in found[1:]:
            total += more
            counts += of_part
        return total, counts.numpy()


class _Part:
    """The sentences of a corpus that one thread computes."""

    def __init__(
        self,
        index: FeatureIndex,
        attributes: TokenAttributes,
        dtype: torch.dtype,
        part: tuple[int, int],
    ) -> None:
        self.index = index
        by_position = bool(len(index.bigram_pairs)) and attributes.bigram.shape[1] > 0
        most = max(1, _BATCH_PAIRS // index.num_labels**2) if by_position else _BATCH_TOKENS
        self._layout = CorpusLayout.build(attributes.offsets, most, part)
        tokens = self._layout.tokens
        ids, values = _placed(attributes.unigram, attributes.unigram_values, tokens)
        self._scorer = CorpusScorer(index, ids, values, dtype)
        self._pairs: list[SingleFeatures | None] = [None] * len(self._layout.batches)
        if by_position:
            ids, values = _placed(attributes.bigram, attributes.bigram_values, tokens)
            self._pairs = [self._pairs_of(b, ids, values) for b in self._layout.batches]

    def expected(self, weights: Tensor) -> tuple[float, Tensor]:
        """Sum of log Z and expected counts ``[K]`` by weights of the scorer's type."""
        states, _, bigram = self.index.parts
        emissions = self._scorer.emissions(weights[states])
        weights = weights.double()
        transitions = torch.from_numpy(self.index.transition_scores(weights.numpy()))
        pair_counts = torch.zeros(transitions.shape, dtype=torch.float64)
        by_position = torch.zeros(len(self.index.bigram_pairs), dtype=torch.float64)
        total = 0.0
        for batch, pairs in zip(self._layout.batches, self._pairs, strict=True):
            part = emissions[batch.places].view(*batch.shape, -1)
            scores = transitions
            if pairs is not None:
                scores = self._pair_scores(batch, pairs, transitions, weights[bigram])
            log_z, marginals, found = _expectations(part.double(), scores, batch.mask)
            total += log_z
            # The batch's emissions are done with: their place serves for its marginals.
            part.copy_(marginals)
            if pairs is not None:
                pairs.gradient(found, by_position)
                found = found.flatten(0, 1).sum(0, dtype=torch.float64)
            pair_counts += found
        flat = pair_counts.view(-1)[torch.from_numpy(self.index.transition_pairs)]
        return total, torch.cat([self._scorer.gradient(emissions), flat, by_position])

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


def fit_weights(
    objective: TemplateObjective,
    *,
    c1: float = 0.0,
    tolerance: float = 1e-5,
    period: int = 10,
    max_iterations: int = 1000,
    memory: int = 6,
    callback: Callback | None = None,
) -> Floats:
    """The weights ``[K]`` where the objective, with ``c1 * sum(|w|)`` added, is least.

    By L-BFGS, or OWL-QN where ``c1`` is above 0; arguments and errors as ``full_batch.LBFGS``.
    """

    def value_at(weights: Tensor) -> tuple[float, Tensor]:
        value, gradient = objective(weights.numpy())
        return value, torch.from_numpy(gradient)

    start = torch.zeros(objective.num_weights, dtype=torch.float64)
    learner = LBFGS(value_at, start, l1=c1, memory=memory, tolerance=tolerance, period=period)
    run(learner, iterations=max_iterations, callback=callback)
    return learner.weights.numpy()
