"""Improved iterative scaling for CRFs: algorithms S and T of Lafferty, McCallum & Pereira (2001).

With weights w + d in place of w the log-likelihood of a corpus rises by at least

    sum_k d_k E~[f_k] + N - sum_x sum_y P(y | x) exp(sum_k d_k f_k(x, y))

Write T(x) for a bound of the total count sum_k f_k(x, y) over all y; the least one is the best
score of Viterbi with all weights 1. Since features are never negative, f_k / T(x) and what is
missing to 1 are weights of a mean, and the exponential of a mean is at most the mean of the
exponentials (d = 0 for what is missing):

    exp(sum_k d_k f_k) <= sum_k f_k / T(x) * exp(d_k T(x)) + (1 - sum_k f_k / T(x))

This bound falls apart into one equation for each feature. With E_k(m) for the expected count of
feature k over the sentences with T(x) = m, its best d_k solves

    sum_m E_k(m) exp(m d_k) = E~[f_k]                                     (algorithm T)

Algorithm S takes one constant S >= T(x) for all sentences, so that d_k = log(E~[f_k] / E[f_k]) / S.
What is missing to S is its slack feature. Its weight stays at 0: with it, all features sum to the
constant S, so that adding to its weight is the same as taking from all the others.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ncrf.errors import ConfigError, NcrfError
from ncrf.train.learner import Iteration, Progress

_MOST_NEWTON_STEPS = 100
_EXACT = 1e-10  # of a count, by which its equation may be missed
# A fall of the log-likelihood beyond this fraction of it is not rounding, in float32 at worst.
_NOISE = 1e-6


@dataclass(frozen=True)
class Support:
    """Which features can be active in sentences of which total: M pairs of both.

    Attributes:
        features: [M] integers from 0 to K-1.
        totals: [M] T(x) of the sentences, above 0.
    """

    features: Tensor
    totals: Tensor


class ScalableObjective(Protocol):
    """What iterative scaling asks of a model and its corpus.

    Attributes:
        observed: [K], observed count of each feature, summed over the corpus.
        largest_total: S, at least the total feature count of any labeling of any sentence.
        support: pairs of feature and T(x); for algorithm T alone. A corpus whose sentences are
            grouped by T(x) has them group by group.
        refusal: why the model is not log-linear in features that are never negative, or None.
    """

    observed: Tensor
    largest_total: float
    support: Support
    refusal: str | None

    def expected(self, weights: Tensor) -> tuple[float, Tensor]:
        """The negative log-likelihood in nats, and the expected counts [K]."""

    def expected_by_total(self, weights: Tensor) -> tuple[float, Tensor]:
        """The negative log-likelihood, and the expected counts [M] of the pairs of ``support``."""


class IterativeScaling:
    """Improved iterative scaling; every iteration raises the log-likelihood.

    Features that were never observed would go to minus infinity; they are dropped, with weight 0.

    Attributes:
        weights: [K] in float64.
        objective: the negative log-likelihood there; NaN before the first iteration.
        dropped: number of features without an observation.
        progress: iterations so far.
    """

    def __init__(
        self,
        objective: ScalableObjective,
        weights: Tensor,
        *,
        algorithm: str,
        tolerance: float = 1e-5,
        period: int = 10,
    ) -> None:
        """Takes the problem; nothing is evaluated yet.

        Args:
            objective: the model on its corpus.
            weights: [K], where to start.
            algorithm: "S" or "T".
            tolerance: see Progress.
            period: see Progress.

        Raises:
            ConfigError: the model is not log-linear in features that are never negative.
            ValueError: the algorithm is unknown, or the tolerance out of range.
        """
        if algorithm not in ("S", "T"):
            raise ValueError(f"algorithm is {algorithm!r}, expected S or T")
        _refuse(objective, algorithm)
        observed = objective.observed.double()
        self.objective = math.nan
        self.progress = Progress(tolerance, period)
        self.dropped = int((observed == 0).sum())
        self.weights = weights.detach().double().masked_fill(observed == 0, 0)
        self._model, self._algorithm, self._observed = objective, algorithm, observed
        self._counts: Tensor | None = None
        self._norm = math.nan

    @property
    def done(self) -> str | None:
        """Why there is nothing left to do, or None."""
        if self._counts is None:
            return None
        return self.progress.reason(self._norm, float(self.weights.norm()))

    def iterate(self) -> Iteration:
        """One update of all weights.

        Raises:
            NcrfError: an observed feature has no probability, or the likelihood fell, so that the
                totals are no bounds.
        """
        began = time.perf_counter()
        evaluations = 1
        if self._counts is None:
            self._evaluate()
            self.progress.begin(self.objective)
            evaluations += 1
        assert self._counts is not None
        before = self.objective
        self.weights = self.weights + self._update(self._counts)
        self._evaluate()
        if not self.objective <= before + _NOISE * max(1.0, abs(before)):
            raise NcrfError(f"the log-likelihood fell from {-before:.6g} to {-self.objective:.6g}")
        self.progress.add(self.objective)
        return Iteration(
            number=self.progress.iterations,
            objective=self.objective,
            gradient_norm=self._norm,
            active=int(self.weights.count_nonzero()),
            step=1.0,
            evaluations=evaluations,
            seconds=time.perf_counter() - began,
        )

    def state_dict(self) -> dict[str, Tensor]:
        """All that the next iterations depend on, as plain tensors."""
        state = {"weights": self.weights, **self.progress.state_dict()}
        if self._counts is not None:
            state["counts"] = self._counts
            state["objective"] = torch.tensor(self.objective, dtype=torch.float64)
        return state

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a state; the iterations that follow are the same, to the bit."""
        self.weights = state["weights"].clone()
        self.progress.load_state_dict(state)
        self._counts = None
        if "counts" in state:
            self._settle(float(state["objective"]), state["counts"].clone())

    def _evaluate(self) -> None:
        model, by_total = self._model, self._algorithm == "T"
        find = model.expected_by_total if by_total else model.expected
        objective, counts = find(self.weights)
        self._settle(float(objective), counts.detach().double())

    def _settle(self, objective: float, counts: Tensor) -> None:
        """Notes what was found at the weights."""
        self.objective, self._counts = objective, counts
        expected = counts
        if self._algorithm == "T":
            expected = _by_feature(self._model.support, counts, len(self._observed))
        gradient = (expected - self._observed).masked_fill_(self._observed == 0, 0)
        self._norm = float(gradient.norm())
        if not (math.isfinite(objective) and math.isfinite(self._norm)):
            raise NcrfError("the log-likelihood or an expected count is not finite")
        if bool(((expected <= 0) & (self._observed > 0)).any()):
            feature = int(((expected <= 0) & (self._observed > 0)).nonzero()[0])
            raise NcrfError(f"feature {feature} is observed, but has no probability")

    def _update(self, counts: Tensor) -> Tensor:
        """The changes [K] of the weights."""
        if self._algorithm == "T":
            return solve_updates(self._observed, self._model.support, counts)
        ratios = torch.where(self._observed > 0, self._observed / counts, 1.0)
        return ratios.log() / self._model.largest_total


def solve_updates(observed: Tensor, support: Support, expected: Tensor) -> Tensor:
    """The d [K] with sum_m E_k(m) exp(m d_k) = E~[f_k]; 0 for features that were not observed.

    Newton's method on the logarithm of both sides. The left one is then convex in d, and its slope
    is a mean of the totals m, so that no step gets out of hand: each is kept within the bounds that
    hold if all of a feature's count had its smallest, or its largest, total.

    Args:
        observed: [K], E~[f_k].
        support: pairs of feature and total.
        expected: [M], E_k(m) of each pair.

    Raises:
        NcrfError: an observed feature has no expected count.
    """
    size = len(observed)
    live = (expected > 0) & (observed > 0)[support.features]
    pair, totals, weights = support.features[live], support.totals[live].double(), expected[live]
    counts = torch.zeros_like(observed).index_add_(0, pair, weights)
    if bool(((counts == 0) & (observed > 0)).any()):
        feature = int(((counts == 0) & (observed > 0)).nonzero()[0])
        raise NcrfError(f"feature {feature} is observed, but has no probability")
    solved = observed > 0
    counts, target = (torch.where(solved, x, 1.0) for x in (counts, observed))
    one = torch.ones(size, dtype=torch.float64)
    smallest = one.scatter_reduce(0, pair, totals, "amin", include_self=False)
    largest = one.scatter_reduce(0, pair, totals, "amax", include_self=False)
    ratio = (target / counts).log()
    ends = torch.stack([ratio / smallest, ratio / largest])
    lowest, highest = ends.amin(0), ends.amax(0)
    change = ends[1]
    for _ in range(_MOST_NEWTON_STEPS):
        # The largest exponent of each feature, which is taken out, so that none overflows.
        shift = torch.where(change > 0, largest, smallest) * change
        terms = weights * (totals * change[pair] - shift[pair]).exp_()
        sums = torch.zeros_like(observed).index_add_(0, pair, terms)
        slopes = torch.zeros_like(observed).index_add_(0, pair, terms.mul_(totals))
        sums, slopes = (torch.where(solved, x, 1.0) for x in (sums, slopes))
        miss = sums.log() + shift - target.log()
        miss.masked_fill_(~solved, 0)
        if bool((miss.abs() <= _EXACT).all()):
            break
        change = (change - miss * sums / slopes).clamp(lowest, highest)
    return change.masked_fill(~solved, 0)


def _by_feature(support: Support, counts: Tensor, size: int) -> Tensor:
    zeros = torch.zeros(size, dtype=torch.float64)
    return zeros.index_add_(0, support.features, counts)


def _refuse(objective: ScalableObjective, algorithm: str) -> None:
    """Raises ConfigError for a model that iterative scaling cannot train."""
    problem = objective.refusal
    if problem is None and bool((objective.observed < 0).any()):
        problem = "a feature has a negative value"
    if problem is not None:
        raise ConfigError(
            f"optimizer=IIS-{algorithm} needs a model that is log-linear in features which are "
            f"never negative: {problem}",
            remedy="optimizer=LBFGS has no such need",
        )
