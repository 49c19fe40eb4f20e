"""Line searches: how far to go in a direction in which an objective falls.

Strong Wolfe conditions by bracketing and interpolation (Nocedal & Wright 2006, algorithms 3.5 and
3.6, in one loop), and backtracking for objectives with kinks (Andrew & Gao 2007).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

_FALL = 1e-4  # of what the slope promises, which a step must keep (c1)
_FLATTER = 0.9  # of the first slope, to which a step must bring it down (c2)
_MOST_TRIALS = 20
_GROWTH = (2.0, 10.0)  # least and greatest factor between steps that are too short
_MARGIN = 0.1  # of a bracket, which a trial keeps from its ends
# Sums over a corpus are rounded: differences smaller than this fraction of them say nothing.
_NOISE = 1e-12


class Trial(NamedTuple):
    """A point on the line.

    Attributes:
        step: its distance, in lengths of the direction.
        value: the objective.
        slope: its derivative by the step; under L1, by what it should change to first order.
        gradient: [K] of the smooth part, or None where only the numbers are needed.
    """

    step: float
    value: float
    slope: float
    gradient: Tensor | None


def strong_wolfe(
    trial_at: Callable[[float], Trial], start: Trial, first: float
) -> tuple[Trial | None, int]:
    """A step after which the objective is lower and its slope at most 0.9 times as steep.

    Args:
        trial_at: evaluates the objective at a step.
        start: the trial at step 0; its slope is negative.
        first: the step to try first.

    Returns:
        The trial, or, if none of 20 is flat enough, the lowest of them, or None if none is lower;
        and the number of evaluations.
    """
    noise = _NOISE * max(1.0, abs(start.value))
    before, low, high = start, start, None
    step = first
    for count in range(1, _MOST_TRIALS + 1):
        trial = trial_at(step)
        promised = start.value + _FALL * step * start.slope
        lower = trial.value <= promised + noise and trial.value <= low.value + noise
        if not (lower and math.isfinite(trial.slope)):
            high = trial._replace(gradient=None)
        elif abs(trial.slope) <= -_FLATTER * start.slope:
            return trial, count
        else:
            beyond = math.inf if high is None else high.step
            if trial.slope * (beyond - low.step) >= 0:
                high = low._replace(gradient=None)
            before, low = low._replace(gradient=None), trial
        if high is None:
            step = _longer(before, low)
        elif abs(high.step - low.step) <= 1e-12 * max(high.step, low.step):
            break
        else:
            step = _between(low, high)
    return (low if low.value < start.value else None), count


def backtracking(
    trial_at: Callable[[float], Trial], start: Trial, first: float, *, grow: bool
) -> tuple[Trial | None, int]:
    """The first of ever shorter steps after which the objective is low enough.

    Args:
        trial_at: evaluates the objective at a step; the slope is the change to first order.
        start: the trial at step 0.
        first: the step to try first.
        grow: if that step is short enough, try longer ones as long as they are better.

    Returns:
        The trial, or None if the step got too short; and the number of evaluations.
    """
    noise = _NOISE * max(1.0, abs(start.value))
    step = first
    for count in range(1, _MOST_TRIALS + 1):
        trial = trial_at(step)
        lower = trial.value <= start.value + _FALL * trial.slope + noise
        if trial.slope < 0 and lower:
            if grow and count == 1:
                return _grown(trial_at, trial)
            return trial, count
        step /= 2
    return None, count


def _grown(trial_at: Callable[[float], Trial], trial: Trial) -> tuple[Trial, int]:
    """Steps four times as long, as long as they are better; two evaluations at least."""
    count = 1
    while count < _MOST_TRIALS:
        longer = trial_at(trial.step * 4)
        count += 1
        if not longer.value < trial.value:
            break
        trial = longer
    return trial, count


def _longer(before: Trial, low: Trial) -> float:
    """A longer step than both, where the slope would be 0 if it went on as between them."""
    least, greatest = (low.step * factor for factor in _GROWTH)
    bend = low.slope - before.slope
    if bend <= 0:
        return greatest
    root = low.step - low.slope * (low.step - before.step) / bend
    return min(max(root, least), greatest)


def _between(low: Trial, high: Trial) -> float:
    """The minimum of the cubic through two trials and their slopes (Nocedal & Wright, 3.59)."""
    width = high.step - low.step
    if not (math.isfinite(high.value) and math.isfinite(high.slope)):
        return low.step + _MARGIN * width
    chord = 3 * (low.value - high.value) / width
    first = low.slope + high.slope + chord
    square = first * first - low.slope * high.slope
    place = 0.5
    if square >= 0:
        root = math.copysign(math.sqrt(square), width)
        bottom = high.slope - low.slope + 2 * root
        if bottom != 0:
            place = 1 - (high.slope + root - first) / bottom
    return low.step + min(max(place, _MARGIN), 1 - _MARGIN) * width
