"""Whether two systems differ by more than chance: tests over sentences and over seeds.

Every test starts from the counts of each sentence, from which F1 is made anew each time.

Sources: E. Noreen, Computer-Intensive Methods for Testing Hypotheses (1989), and A. Yeh, More
accurate tests for the statistical significance of result differences (COLING 2000), for
approximate randomization; B. Efron and R. Tibshirani, An Introduction to the Bootstrap (1993), and
T. Berg-Kirkpatrick, D. Burkett and D. Klein, An empirical investigation of statistical significance
in NLP (EMNLP 2012), for the paired bootstrap; B. Welch, The generalization of "Student's" problem
when several different population variances are involved (Biometrika 34, 1947).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ncrf.evaluate.sentence_counts import SentenceCounts

Floats = npt.NDArray[np.float64]

_CHUNK = 1000  # shuffles or samples at a time
_EQUAL = 1e-12  # scores that differ by less are equal: only rounding is smaller
_MOST_ARRANGEMENTS = 20_000


def sentence_randomization(
    a: Sequence[SentenceCounts],
    b: Sequence[SentenceCounts],
    *,
    shuffles: int,
    rng: np.random.Generator,
) -> float:
    """The two-sided p of approximate randomization over sentences: (k + 1) / (shuffles + 1).

    In a shuffle each sentence's outputs of A and B change places with probability 1/2; k counts
    the shuffles whose difference in F1 is at least the one observed. All outputs of a system, one
    for each seed, move together, and F1 is that of their summed counts: outputs of several seeds
    for one sentence are alike, and not as many witnesses. Where A and B have different numbers of
    outputs, both are weighed alike.
    """
    first, second = _pooled(a, len(b)), _pooled(b, len(a))
    moves = second - first  # [S, 2]: what A gains, and B loses, where a sentence is swapped
    # Sentences with the same move are alike: how many of them are swapped is binomial.
    moves, times = np.unique(moves[moves.any(axis=1)], axis=0, return_counts=True)
    gold = len(b) * sum(int(one.gold.sum()) for one in a)
    totals = first.sum(axis=0), second.sum(axis=0)
    observed = abs(_f1(gold, totals[1]) - _f1(gold, totals[0]))
    extreme = 0
    for size in _chunks(shuffles):
        moved = rng.binomial(times, 0.5, size=(size, len(times))) @ moves
        differences = _f1(gold, totals[1] - moved) - _f1(gold, totals[0] + moved)
        extreme += int((np.abs(differences) >= observed - _EQUAL).sum())
    return (extreme + 1) / (shuffles + 1)


def bootstrap_interval(
    a: Sequence[SentenceCounts],
    b: Sequence[SentenceCounts],
    *,
    samples: int,
    rng: np.random.Generator,
    level: float = 0.95,
) -> tuple[float, float]:
    """The percentile interval of F1(B) - F1(A), from paired bootstrap samples of the sentences.

    A sample draws as many sentences as there are, with replacement, the same for A and B. Where
    a system has several outputs, as many of them are drawn with replacement too, and its F1 is
    their mean: the interval then covers the chance of seeds beside that of sentences.
    """
    systems = (*a, *b)
    columns = [a[0].gold, *(part for one in systems for part in (one.predicted, one.correct))]
    # Sentences with the same counts are alike: how often they are drawn is multinomial.
    rows, times = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
    values, shares = rows.astype(np.float64), times / times.sum()
    differences = []
    for size in _chunks(samples):
        drawn = rng.multinomial(int(times.sum()), shares, size=size).astype(np.float64)
        sums = drawn @ values
        scores = _f1(sums[:, :1, None], sums[:, 1:].reshape(size, len(systems), 2))
        of_a, of_b = (_resampled(part, rng) for part in np.split(scores, [len(a)], axis=1))
        differences.append(of_b - of_a)
    low, high = np.quantile(np.concatenate(differences), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


class SeedPermutation(NamedTuple):
    """A two-sided p over seeds, the smallest one possible, and how many arrangements were tried."""

    p: float
    smallest: float
    arrangements: int


def seed_permutation(
    a: Sequence[float], b: Sequence[float], *, shuffles: int, rng: np.random.Generator
) -> SeedPermutation:
    """Permutation test over the scores of seeds: whether A and B could have had each other's.

    p is the share of the ways to part all scores into a group of A's size and one of B's whose
    means differ by at least the difference observed. All ways are tried where they are at most
    20,000; else as many as ``shuffles``, and p is (k + 1) / (shuffles + 1).
    """
    scores = np.array([*a, *b])
    arrangements = math.comb(len(scores), len(a))
    observed = abs(float(np.mean(b)) - float(np.mean(a)))
    if arrangements <= _MOST_ARRANGEMENTS:
        chosen = np.array(list(combinations(range(len(scores)), len(a))))
        extreme = int((_mean_differences(scores, chosen) >= observed - _EQUAL).sum())
        mirrored = len(a) == len(b)  # every arrangement has one with A and B exchanged
        smallest = (2 if mirrored else 1) / arrangements
        return SeedPermutation(extreme / arrangements, smallest, arrangements)
    chosen = np.argsort(rng.random((shuffles, len(scores))), axis=1)[:, : len(a)]
    extreme = int((_mean_differences(scores, chosen) >= observed - _EQUAL).sum())
    return SeedPermutation((extreme + 1) / (shuffles + 1), 1 / (shuffles + 1), shuffles)


class Welch(NamedTuple):
    """Welch's t, its degrees of freedom and its two-sided p."""

    t: float
    degrees: float
    p: float


def welch_test(a: Sequence[float], b: Sequence[float]) -> Welch | None:
    """Welch's t-test of the means of two samples, which may have different variances.

    It takes scores of seeds for normal. None where a sample has less than two scores, or no
    score differs from the others of its sample.
    """
    if min(len(a), len(b)) < 2:
        return None
    parts = [statistics.variance(sample) / len(sample) for sample in (a, b)]
    if not sum(parts):
        return None
    t = (statistics.fmean(b) - statistics.fmean(a)) / math.sqrt(sum(parts))
    spread = sum(p * p / (len(s) - 1) for p, s in zip(parts, (a, b), strict=True))
    degrees = sum(parts) ** 2 / spread
    return Welch(t, degrees, _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t)))


def _pooled(counts: Sequence[SentenceCounts], weight: int) -> npt.NDArray[np.int64]:
    """Predicted and correct items ``[S, 2]`` of all outputs together, times ``weight``."""
    predicted = sum(one.predicted for one in counts)
    correct = sum(one.correct for one in counts)
    return weight * np.stack([np.asarray(predicted), np.asarray(correct)], axis=1)


def _f1(gold: Any, predicted_and_correct: npt.NDArray[Any]) -> Any:
    """F1 from counts ``[..., 2]``; 0 where nothing is counted."""
    items = gold + predicted_and_correct[..., :1]
    shares = np.divide(
        2.0 * predicted_and_correct[..., 1:],
        items,
        out=np.zeros(np.broadcast_shapes(items.shape, predicted_and_correct[..., 1:].shape)),
        where=items != 0,
    )
    return shares[..., 0]


def _resampled(scores: Floats, rng: np.random.Generator) -> Floats:
    """The mean of as many outputs as there are ``[R, M]``, drawn with replacement, ``[R]``."""
    size, outputs = scores.shape
    if outputs == 1:
        return scores[:, 0]
    drawn = rng.integers(outputs, size=(size, outputs))
    return np.asarray(np.take_along_axis(scores, drawn, axis=1).mean(axis=1))


def _mean_differences(scores: Floats, chosen: npt.NDArray[np.int64]) -> Floats:
    """The distance between the means of the scores chosen ``[R, M]`` and of the others, ``[R]``."""
    inside = scores[chosen].sum(axis=1)
    count = chosen.shape[1]
    outside = (scores.sum() - inside) / (len(scores) - count)
    return np.asarray(np.abs(outside - inside / count))


def _chunks(total: int) -> Iterator[int]:
    for start in range(0, total, _CHUNK):
        yield min(_CHUNK, total - start)


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function, by its continued fraction.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.5.8 and 26.5.2,
    evaluated by Lentz's method.
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # where the fraction converges slowly
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    value, c, d = 1.0, 1.0, 0.0  # of 1 + 1 / (1 + d1 / (1 + d2 / (1 + ...
    for i in range(1000):
        m = i // 2
        if i == 0:
            term = 1.0
        elif i % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / (1 + term * d)
        c = 1 + term / c
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front / a * (value - 1)
