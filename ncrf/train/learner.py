"""How far a learner is: the record of an iteration, and when there is nothing more to gain."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


@dataclass(frozen=True)
class Iteration:
    """What one iteration of a learner did.

    Attributes:
        number: counted from 1.
        objective: what is minimized, at the new weights: the negative log-likelihood in nats with
            its penalties, or the sum of the losses of one pass.
        gradient_norm: Euclidean norm of the gradient there (under L1, of the pseudo-gradient); None
            for learners without a gradient.
        active: number of weights that are not zero.
        step: factor by which the direction was followed; 0 if no step was found, 1 for learners
            that do not search.
        evaluations: number of passes over the corpus.
        seconds: wall-clock time.
    """

    number: int
    objective: float
    gradient_norm: float | None
    active: int
    step: float
    evaluations: int
    seconds: float


class Learner(Protocol):
    """What trains weights iteration by iteration, and can stop and go on between two of them."""

    objective: float
    progress: Progress

    @property
    def weights(self) -> Tensor:
        """[K] in float64."""

    @property
    def done(self) -> str | None:
        """Why there is nothing left to do, or None."""

    def iterate(self) -> Iteration:
        """Changes the weights once."""

    def state_dict(self) -> dict[str, Tensor]:
        """All that the next iterations depend on, as plain tensors."""

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a state; the iterations that follow are the same, to the bit."""


class Progress:
    """Counts iterations and compares objectives: ``tolerance`` as in CRFsuite's L-BFGS.

    Training has converged when the objective fell by less than this fraction of itself over the
    last ``period`` iterations, or when the gradient's norm is less than this fraction of the
    weights' norm (of 1, if that is smaller).
    """

    def __init__(self, tolerance: float, period: int) -> None:
        """Raises ValueError for a negative tolerance or a period below 1."""
        if not tolerance >= 0 or period < 1:
            raise ValueError(
                f"tolerance {tolerance}, period {period}: expected 0 or more, 1 or more"
            )
        self.tolerance = tolerance
        self.iterations = 0
        self._recent: deque[float] = deque(maxlen=period + 1)

    def begin(self, objective: float) -> None:
        """Notes the objective before the first iteration."""
        self._recent.append(objective)

    def add(self, objective: float) -> None:
        """Notes the objective after one more iteration."""
        self.iterations += 1
        self._recent.append(objective)

    def reason(self, gradient_norm: float | None, weight_norm: float) -> str | None:
        """Why training has converged, or None."""
        if gradient_norm is not None and gradient_norm <= self.tolerance * max(1.0, weight_norm):
            return "the gradient is within the tolerance of zero"
        values = self._recent
        if len(values) == values.maxlen:
            fall = values[0] - values[-1]
            if fall <= self.tolerance * max(abs(values[-1]), torch.finfo(torch.float64).tiny):
                count = len(values) - 1
                return f"the objective fell by less than the tolerance in {count} iterations"
        return None

    def state_dict(self) -> dict[str, Tensor]:
        """The count and the objectives."""
        return {
            "iterations": torch.tensor(self.iterations),
            "recent": torch.tensor(list(self._recent), dtype=torch.float64),
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a state."""
        self.iterations = int(state["iterations"])
        self._recent.clear()
        self._recent.extend(state["recent"].tolist())
