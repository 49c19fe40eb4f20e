"""A feature CRF by enumeration: every labeling of every sentence is a row of feature counts.

It shares no code with ncrf: the oracle of the learners.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ncrf.train.iterative_scaling import Support
from ncrf.train.perceptron import Mistake


@dataclass
class DenseCRF:
    """Features of all labelings [P, K] of each of N sentences, and the places of the given ones."""

    features: list[np.ndarray]
    gold: list[int]
    tokens: int
    lengths: list[int]
    labels: int
    words: list[list[int]]

    refusal: str | None = None
    evaluations = 0

    @property
    def size(self) -> int:
        return int(self.features[0].shape[1])

    def probabilities(self, weights: np.ndarray) -> list[tuple[float, np.ndarray]]:
        """log P of the given labeling and P of all labelings [P], sentence by sentence."""
        found = []
        for table, place in zip(self.features, self.gold, strict=True):
            scores = table @ weights
            peak = scores.max()
            log_z = peak + np.log(np.exp(scores - peak).sum())
            found.append((scores[place] - log_z, np.exp(scores - log_z)))
        return found

    def value_and_gradient(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Negative log-likelihood and its gradient, for scipy."""
        value, gradient = 0.0, np.zeros(self.size)
        rows = self.probabilities(weights)
        for (log_p, p), table, place in zip(rows, self.features, self.gold, strict=True):
            value -= log_p
            gradient += p @ table - table[place]
        return value, gradient

    def __call__(self, weights: Tensor) -> tuple[float, Tensor]:
        self.evaluations += 1
        value, gradient = self.value_and_gradient(weights.numpy())
        return value, torch.from_numpy(gradient)

    # What iterative scaling asks for.

    @cached_property
    def observed(self) -> Tensor:
        rows = zip(self.features, self.gold, strict=True)
        return torch.from_numpy(np.sum([table[place] for table, place in rows], 0))

    @cached_property
    def totals(self) -> list[float]:
        """T(x) of each sentence."""
        return [float(table.sum(1).max()) for table in self.features]

    @cached_property
    def largest_total(self) -> float:
        return max(self.totals)

    @cached_property
    def support(self) -> Support:
        pairs = []
        for total in sorted(set(self.totals)):
            group = [x for x, t in zip(self.features, self.totals, strict=True) if t == total]
            possible = np.nonzero(np.sum([x.sum(0) for x in group], 0))[0]
            pairs += [(k, total) for k in possible]
        features, totals = zip(*pairs, strict=True)
        return Support(torch.tensor(features), torch.tensor(totals, dtype=torch.float64))

    def expected(self, weights: Tensor) -> tuple[float, Tensor]:
        value, gradient = self.value_and_gradient(weights.numpy())
        return value, torch.from_numpy(gradient) + self.observed

    def expected_by_total(self, weights: Tensor) -> tuple[float, Tensor]:
        rows = self.probabilities(weights.numpy())
        value = -sum(log_p for log_p, _ in rows)
        by_total: dict[float, np.ndarray] = {}
        for (_, p), table, total in zip(rows, self.features, self.totals, strict=True):
            by_total[total] = by_total.get(total, np.zeros(self.size)) + p @ table
        support = self.support
        pairs = zip(support.features.tolist(), support.totals.tolist(), strict=True)
        return value, torch.tensor([by_total[t][k] for k, t in pairs], dtype=torch.float64)

    # What the perceptron asks for.

    def __len__(self) -> int:
        return len(self.features)

    def mistake(self, weights: Tensor, sentence: int) -> Mistake | None:
        table, gold = self.features[sentence], self.gold[sentence]
        best = int(np.argmax(table @ weights.numpy()))
        if best == gold:
            return None
        difference = table[gold] - table[best]
        places = np.nonzero(difference)[0]
        paths = self.paths(sentence)
        wrong = sum(a != b for a, b in zip(paths[best], paths[gold], strict=True))
        return Mistake(torch.from_numpy(places), torch.from_numpy(difference[places]), wrong)

    def paths(self, sentence: int) -> list[tuple[int, ...]]:
        """All labelings of a sentence, in the order of its features."""
        return list(itertools.product(range(self.labels), repeat=self.lengths[sentence]))

    def errors(self, weights: Tensor) -> int:
        """Number of sentences with a wrong best labeling."""
        return sum(self.mistake(weights, n) is not None for n in range(len(self)))


def counts(words: list[int], labels: tuple[int, ...], vocabulary: int, size: int) -> np.ndarray:
    """Word-label counts, and label-pair counts."""
    table = np.zeros(vocabulary * size + size * size)
    for word, label in zip(words, labels, strict=True):
        table[word * size + label] += 1
    for before, after in itertools.pairwise(labels):
        table[vocabulary * size + before * size + after] += 1
    return table


def make_crf(
    seed: int, sentences: int = 60, vocabulary: int = 4, labels: int = 3, *, scale: float = 0.7
) -> DenseCRF:
    """Sentences of 1 to 4 words over few words, so that the same x comes with different y.

    The given labelings are drawn from a random CRF. With seeds 0 and 1 they are so many that no
    feature is always, or never, where it could be: the likelihood is greatest at finite weights.
    With seed 2 one feature is never observed.
    """
    generator = np.random.default_rng(seed)
    true = generator.normal(size=vocabulary * labels + labels * labels) * scale
    crf = DenseCRF([], [], 0, [], labels, [])
    for _ in range(sentences):
        length = int(generator.integers(1, 5))
        words = generator.integers(vocabulary, size=length).tolist()
        paths = itertools.product(range(labels), repeat=length)
        table = np.stack([counts(words, path, vocabulary, labels) for path in paths])
        p = np.exp(table @ true)
        crf.features.append(table)
        crf.gold.append(int(generator.choice(len(p), p=p / p.sum())))
        crf.tokens += length
        crf.lengths.append(length)
        crf.words.append(words)
    return crf
