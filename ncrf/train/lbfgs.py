"""L-BFGS, and OWL-QN where the sum of the weights' magnitudes is penalized.

The direction is the gradient times an estimate of the inverse Hessian from the last few steps, by
the two-loop recursion (Nocedal 1980; Nocedal & Wright 2006, algorithm 7.4). OWL-QN (Andrew & Gao
2007) keeps each step within one orthant, where the L1 penalty is smooth: weights that would cross
zero become zero. Weights that are zero and best stay so; here the curvature is estimated among the
others alone (Byrd et al. 2016), and only weights that leave zero, not all, are held to the sign of
the steepest direction. That saves half of the iterations and more.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

import torch
from torch import Tensor

from ncrf.errors import NcrfError
from ncrf.train.learner import Iteration, Progress
from ncrf.train.line_search import Trial, backtracking, strong_wolfe

Objective = Callable[[Tensor], tuple[float, Tensor]]

# From this many weights on, past steps are kept in float32: they only estimate the curvature.
_MANY_WEIGHTS = 1 << 22
_LEAST_CURVATURE = 1e-12  # of the product of both lengths; less may be rounding


class LBFGS:
    """Minimizes ``objective(w) + l1 * |w|_1``, one line search an iteration.

    Attributes:
        weights: [K] in float64.
        objective: its value there; NaN before the first iteration.
        progress: iterations so far.
    """

    def __init__(
        self,
        objective: Objective,
        weights: Tensor,
        *,
        l1: float = 0.0,
        memory: int = 6,
        tolerance: float = 1e-5,
        period: int = 10,
    ) -> None:
        """Takes the problem; nothing is evaluated yet.

        Args:
            objective: gives, at weights [K] in float64, the value to be minimized, with any L2
                penalty, and its gradient [K], a tensor of its own each time.
            weights: [K], where to start.
            l1: penalty of each weight's magnitude; above 0 the method is OWL-QN.
            memory: number of past steps from which the curvature is estimated.
            tolerance: see Progress.
            period: see Progress.

        Raises:
            ValueError: an argument is out of range.
        """
        if not l1 >= 0 or memory < 1:
            raise ValueError(f"l1 {l1}, memory {memory}: expected 0 or more, 1 or more")
        self.weights = weights.detach().to(torch.float64, copy=True)
        self.progress = Progress(tolerance, period)
        self.objective = math.nan
        self._function, self._l1 = objective, l1
        self._gradient: Tensor | None = None
        self._norm = math.nan  # of the gradient, or under L1 of the pseudo-gradient
        self._pairs: deque[tuple[Tensor, Tensor]] = deque(maxlen=memory)
        self._stuck = False

    @property
    def done(self) -> str | None:
        """Why there is nothing left to do, or None."""
        if self._gradient is None:
            return None
        if self._stuck:
            return "no step lowers the objective any more"
        return self.progress.reason(self._norm, float(self.weights.norm()))

    def iterate(self) -> Iteration:
        """One step of the weights.

        Raises:
            NcrfError: the objective is not finite where the training starts.
        """
        began = time.perf_counter()
        evaluations = 0
        if self._gradient is None:
            self._begin()
            evaluations += 1
        assert self._gradient is not None
        step = 0.0
        if self.done is None:
            step, tried = self._advance(self._gradient)
            evaluations += tried
        self.progress.add(self.objective)
        return Iteration(
            number=self.progress.iterations,
            objective=self.objective,
            gradient_norm=self._norm,
            active=int(self.weights.count_nonzero()),
            step=step,
            evaluations=evaluations,
            seconds=time.perf_counter() - began,
        )

    def state_dict(self) -> dict[str, Tensor]:
        """All that the next iterations depend on, as plain tensors."""
        state = {"weights": self.weights, **self.progress.state_dict()}
        if self._gradient is not None:
            state["gradient"] = self._gradient
            state["objective"] = torch.tensor(self.objective, dtype=torch.float64)
        for k, (step, change) in enumerate(self._pairs):
            state |= {f"step.{k}": step, f"change.{k}": change}
        return state

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a state; the iterations that follow are the same, to the bit."""
        self.weights = state["weights"].clone()
        self.progress.load_state_dict(state)
        gradient = state.get("gradient")
        self._gradient = None
        if gradient is not None:
            self._settle(float(state["objective"]), gradient.clone())
        self._stuck = False
        self._pairs.clear()
        while f"step.{len(self._pairs)}" in state:
            k = len(self._pairs)
            self._pairs.append((state[f"step.{k}"].clone(), state[f"change.{k}"].clone()))

    def _begin(self) -> None:
        value, gradient = self._evaluate(self.weights)
        if not (math.isfinite(value) and bool(torch.isfinite(gradient).all())):
            raise NcrfError("the objective or its gradient is not finite where the training starts")
        self._settle(value, gradient)
        self.progress.begin(value)

    def _settle(self, objective: float, gradient: Tensor) -> None:
        """Notes what was found at the weights."""
        self.objective, self._gradient = objective, gradient
        self._norm = float(self._steepest(gradient).norm())

    def _evaluate(self, weights: Tensor) -> tuple[float, Tensor]:
        """The whole objective, and the gradient of its smooth part."""
        value, gradient = self._function(weights)
        if self._l1:
            value += self._l1 * float(torch.linalg.vector_norm(weights, 1))
        return float(value), gradient.detach().to(torch.float64)

    def _advance(self, gradient: Tensor) -> tuple[float, int]:
        """Takes a step; gives its length and the number of evaluations."""
        evaluations = 0
        while True:
            steepest = self._steepest(gradient)
            direction = self._direction(steepest)
            trial, tried = self._search(direction, steepest)
            evaluations += tried
            if trial is not None or not self._pairs:
                break
            self._pairs.clear()  # a bad estimate of the curvature; the plain gradient is left
        if trial is None:
            self._stuck = True
            return 0.0, evaluations
        assert trial.gradient is not None
        weights = self._point(trial.step, direction, steepest)
        del direction, steepest  # the largest demand for memory is in what follows
        self._remember(weights, trial.gradient)
        self.weights = weights
        self._settle(trial.value, trial.gradient)
        return trial.step, evaluations

    def _search(self, direction: Tensor, steepest: Tensor) -> tuple[Trial | None, int]:
        slope = float(direction @ steepest)
        if not slope < 0:
            return None, 0
        start = Trial(0.0, self.objective, slope, None)
        first = 1.0 if self._pairs else 1.0 / float(direction.norm())

        def trial_at(step: float) -> Trial:
            point = self._point(step, direction, steepest)
            value, gradient = self._evaluate(point)
            along = float((point - self.weights) @ steepest if self._l1 else gradient @ direction)
            return Trial(step, value, along, gradient)

        if self._l1:
            return backtracking(trial_at, start, first, grow=not self._pairs)
        return strong_wolfe(trial_at, start, first)

    def _point(self, step: float, direction: Tensor, steepest: Tensor) -> Tensor:
        """The weights after a step; under L1 those that left their orthant are 0."""
        point = torch.add(self.weights, direction, alpha=step)
        if self._l1:
            crossed = torch.where(
                self.weights != 0, point * self.weights <= 0, point * steepest >= 0
            )
            point.masked_fill_(crossed, 0)
        return point

    def _steepest(self, gradient: Tensor) -> Tensor:
        """The gradient, or under L1 the pseudo-gradient: the steepest of the one-sided slopes."""
        if not self._l1:
            return gradient
        on_one_side = torch.add(gradient, self.weights.sign(), alpha=self._l1)
        at_zero = torch.nn.functional.softshrink(gradient, self._l1)
        return torch.where(self.weights != 0, on_one_side, at_zero)

    def _direction(self, steepest: Tensor) -> Tensor:
        """Minus the steepest slope times the estimated inverse Hessian."""
        if not self._l1:
            return self._two_loops(-steepest, None)
        free = ((self.weights != 0) | (steepest != 0)).nonzero().squeeze(1)
        downhill = -steepest[free]
        result = self._two_loops(downhill, free)
        result.masked_fill_((self.weights[free] == 0) & (result * downhill <= 0), 0)
        return torch.zeros_like(steepest).index_copy_(0, free, result)

    def _two_loops(self, downhill: Tensor, free: Tensor | None) -> Tensor:
        """The estimated inverse Hessian times a vector; both among free weights, or all."""
        result = downhill.clone()
        used: list[tuple[int, float, float]] = []  # pair, its curvature, and its factor
        for k in reversed(range(len(self._pairs))):
            curvature, factor = self._back(k, free, result)
            if curvature > 0:
                used.append((k, curvature, factor))
        if used:
            change = self._pair(used[0][0], free)[1]
            result.mul_(used[0][1] / float(change @ change))
            del change
        for k, curvature, factor in reversed(used):
            self._forth(k, free, result, curvature, factor)
        return result

    # Both loops' bodies are methods, so that copies of one pair are gone when the next is made.

    def _back(self, k: int, free: Tensor | None, result: Tensor) -> tuple[float, float]:
        """The first loop's step for a pair: its curvature and its factor."""
        step, change = self._pair(k, free)
        curvature = _curvature(step, change)
        if not curvature > 0:
            return 0.0, 0.0
        factor = float(step @ result) / curvature
        result.sub_(change, alpha=factor)
        return curvature, factor

    def _forth(
        self, k: int, free: Tensor | None, result: Tensor, curvature: float, factor: float
    ) -> None:
        """The second loop's step for a pair."""
        step, change = self._pair(k, free)
        result.add_(step, alpha=factor - float(change @ result) / curvature)

    def _pair(self, k: int, free: Tensor | None) -> tuple[Tensor, Tensor]:
        """A past step and its change of the gradient, of the free weights or all."""
        step, change = self._pairs[k]
        if free is not None:
            step, change = step[free], change[free]
        return step.double(), change.double()

    def _remember(self, weights: Tensor, gradient: Tensor) -> None:
        """Keeps the step to new weights and the change of the gradient, if they show curvature."""
        assert self._gradient is not None
        step, change = weights - self.weights, gradient - self._gradient
        if not _curvature(step, change) > 0:
            return
        if len(self._pairs) == self._pairs.maxlen:
            self._pairs.popleft()
        if len(step) >= _MANY_WEIGHTS:
            step = step.float()
            change = change.float()
        self._pairs.append((step, change))


def _curvature(step: Tensor, change: Tensor) -> float:
    """The product of a step and its change of the gradient; 0 where it may be rounding."""
    product = float(step @ change)
    least = _LEAST_CURVATURE * float(step.norm()) * float(change.norm())
    return product if product > least else 0.0
