"""The scaled passes step by step, forward and backward side by side."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ncrf.crf.chain import Chain

LARGEST_GROWTH = 1e8  # of a vector between two rescalings
_LONGEST_INTERVAL = 4


def interval_of(labels: int) -> int:
    """The number of steps between two rescalings."""
    growth = math.log(LARGEST_GROWTH) / math.log(max(labels, 2))
    return min(max(int(growth), 1), _LONGEST_INTERVAL)


def walk(
    chain: Chain,
    weights: Tensor,
    steps: Tensor,
    before: Tensor,
    likely: Tensor,
    after: Tensor,
    interval: int,
) -> Tensor:
    """Fills before and after from step 1 on; returns the divisors [K, D, B].

    Args:
        chain: the inputs.
        weights: [Y, Y] or [B, L-1, Y, Y], exponentiated transitions.
        steps: [L, B], see Chain.steps.
        before: [L, D, B, Y], filled at step 0.
        likely: [L, D, B, Y], exponentiated emissions.
        after: [L, D, B, Y], filled at step 0.
        interval: number of steps between two rescalings.
    """
    width, directions, batch, _ = after.shape
    tiny = torch.finfo(after.dtype).tiny
    befores, afters, factors = before.unbind(0), after.unbind(0), likely.unbind(0)
    shared = chain.shared
    if shared:
        both = torch.stack([weights, weights.t()])[:directions]
    else:
        multiply = multiplication(chain, weights, steps, before, after)
    scales = after.new_empty((width - 1) // interval, directions, batch, 1)
    for step in range(1, width):
        if shared:
            torch.bmm(afters[step - 1], both, out=befores[step])
        else:
            multiply(step)
        torch.mul(befores[step], factors[step], out=afters[step])
        if step % interval == 0:
            scale = scales[step // interval - 1]
            torch.sum(afters[step], -1, keepdim=True, out=scale)
            afters[step].div_(scale.clamp_min_(tiny))
    return scales.squeeze(-1)


def multiplication(
    chain: Chain, weights: Tensor, steps: Tensor, before: Tensor, after: Tensor
) -> Callable[[int], object]:
    """With a matrix for each row and step: a function that fills a step's ``before``.

    It multiplies the ``after`` of the step before. Only the matrices of one step at a time are put
    in the order of the backward pass. Args as walk.
    """
    batch, _, labels, _ = weights.shape
    forward = weights.unbind(1)
    places = chain.pair_places(steps)[:, 1].unbind(0)
    by_place, here = weights.flatten(0, 1), weights.new_empty(batch, labels, labels)
    backward = here.transpose(1, 2)
    sources, targets = (x.flatten(0, 1).unsqueeze(2).unbind(0) for x in (after, before))
    directions = before.shape[1]

    def multiply(step: int) -> None:
        first = step * directions
        torch.bmm(sources[first - directions], forward[step - 1], out=targets[first])
        if directions == 2:
            torch.index_select(by_place, 0, places[step - 1], out=here)
            torch.bmm(sources[first - 1], backward, out=targets[first + 1])

    return multiply
