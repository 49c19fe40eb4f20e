"""The likelihood of the classical CRF over a whole corpus, as a function of its weights.

The model is P(y | x) with the score sum_k w_k f_k(x, y) for a labeling: state features at each
word, and at each word but the first the features of its label and the one before (see
``ncrf.model.corpus_chains``).
The negative log-likelihood and its gradient are

    sum over sentences of log Z(x) - w . observed,     expected - observed

with the counts of the features in the corpus and their expectation under the model.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ncrf.crf import log_partition
from ncrf.data.attributes import TokenAttributes
from ncrf.data.dataset import IntArray
from ncrf.data.feature_index import FeatureIndex
from ncrf.decode.pipeline import sharing_cores
from ncrf.model.corpus_chains import CorpusChains
from ncrf.train.full_batch import Callback, run
from ncrf.train.lbfgs import LBFGS

Floats = NDArray[np.float64]

_LEAST_SENTENCES = 64  # of a thread, or it costs more than it gains
_SMALL = 1 << 18  # attributes of words in a corpus up to which float64 costs nothing that counts


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
        dtype: torch.dtype | None = None,
        threads: int = 1,
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
        sentences = len(attributes.offsets) - 1
        parts = max(1, min(threads, sentences // _LEAST_SENTENCES))
        self._parts = [
            _Part(CorpusChains(index, attributes, dtype, (p, parts))) for p in range(parts)
        ]
        self._pool = ThreadPoolExecutor(parts, "ncrf objective") if parts > 1 else None

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """The value to be minimized, and its gradient ``[K]``."""
        log_z, expected = self.expected(weights)
        # Both parts of the value take the same rounded weights, or it would belong to no point.
        rounded = torch.from_numpy(weights).to(self._dtype).double().numpy()
        value = log_z - float(rounded @ self.observed)
        expected -= self.observed
        if self.c2:
            value += self.c2 * float(weights @ weights)
            # In place: with many millions of weights each temporary array counts.
            torch.from_numpy(expected).add_(torch.from_numpy(weights), alpha=2 * self.c2)
        return value, expected

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

    def __init__(self, chains: CorpusChains) -> None:
        self._chains = chains

    def expected(self, weights: Tensor) -> tuple[float, Tensor]:
        """Sum of log Z and expected counts ``[K]`` by weights of the scorer's type."""
        index, scorer = self._chains.index, self._chains.scorer
        emissions = scorer.emissions(weights[index.parts[0]])
        pair_counts = torch.zeros(index.num_labels, index.num_labels, dtype=torch.float64)
        by_position = torch.zeros(len(index.bigram_pairs), dtype=torch.float64)
        total = 0.0
        for batch, part, scores, pairs in self._chains.chains(emissions, weights):
            log_z, marginals, found = _expectations(part.double(), scores, batch.mask)
            total += log_z
            # The batch's emissions are done with: their place serves for its marginals.
            part.copy_(marginals)
            if pairs is not None:
                pairs.gradient(found, by_position)
                found = found.flatten(0, 1).sum(0, dtype=torch.float64)
            pair_counts += found
        states, transitions, bigram = index.parts
        counts = torch.zeros(index.num_features, dtype=torch.float64)
        scorer.gradient(emissions, counts[states])
        counts[transitions] = pair_counts.view(-1)[torch.from_numpy(index.transition_pairs)]
        counts[bigram] = by_position
        return total, counts


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
