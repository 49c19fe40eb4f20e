"""Training on the whole corpus at once: a learner is run until it has converged.

The learners are lbfgs.LBFGS (with OWL-QN), iterative_scaling.IterativeScaling (IIS-S and IIS-T) and
perceptron.Perceptron (with passive-aggressive learning). They know weights [K] in float64, and of
the model and its corpus no more than what they ask for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from ncrf.train.lbfgs import LBFGS, Objective
from ncrf.train.learner import Iteration, Learner

Callback = Callable[[Iteration, Learner], object]


class Minimum(NamedTuple):
    """Weights [K], the objective there, the number of iterations, and why they ended."""

    weights: Tensor
    objective: float
    iterations: int
    reason: str


def run(learner: Learner, *, iterations: int, callback: Callback | None = None) -> str:
    """Iterates until the learner is done, or has done so many iterations, resumed ones included.

    Args:
        learner: anything with iterate(), done and progress.
        iterations: the most iterations.
        callback: called after each with its record and the learner, whose state_dict() is then all
            that is needed to go on; a true result ends the training.

    Returns:
        Why it ended.
    """
    while learner.progress.iterations < iterations:
        reason = learner.done
        if reason is not None:
            return reason
        record = learner.iterate()
        if callback is not None and callback(record, learner):
            return "stopped"
    return learner.done or f"{iterations} iterations are done"


def minimize(
    objective: Objective,
    weights: Tensor,
    *,
    l1: float = 0.0,
    tolerance: float = 1e-5,
    iterations: int = 1000,
    memory: int = 6,
    callback: Callback | None = None,
    state: dict[str, Tensor] | None = None,
) -> Minimum:
    """The weights at which ``objective(w) + l1 * |w|_1`` is least, by L-BFGS or OWL-QN.

    Args:
        objective: gives at weights [K] the value to be minimized and its gradient [K], a tensor of
            its own each time.
        weights: [K], where to start.
        l1: penalty of each weight's magnitude.
        tolerance: see progress.Progress.
        iterations: the most iterations.
        memory: number of past steps that are kept.
        callback: see run.
        state: from LBFGS.state_dict(), to go on from there.

    Raises:
        NcrfError: the objective is not finite where the training starts.
        ValueError: an argument is out of range.
    """
    learner = LBFGS(objective, weights, l1=l1, memory=memory, tolerance=tolerance)
    if state is not None:
        learner.load_state_dict(state)
    reason = run(learner, iterations=iterations, callback=callback)
    return Minimum(learner.weights, learner.objective, learner.progress.iterations, reason)


def with_l2(objective: Objective, c2: float) -> Objective:
    """The objective with ``c2 * |w|^2`` added, which is how CRFsuite counts L2."""

    def penalized(weights: Tensor) -> tuple[float, Tensor]:
        value, gradient = objective(weights)
        return value + c2 * float(weights @ weights), gradient.add_(weights, alpha=2 * c2)

    return penalized
