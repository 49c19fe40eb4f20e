"""Forward and backward passes in scaled probability space, both directions in one loop.

Each step is one matrix product, one product with the exponentiated emissions and, every few steps,
a division by the sum of the entries (Rabiner 1989, section V.A). The backward pass runs on rows
reversed within their own length, so that both passes start at step 0, no step looks at a mask and
a row's numbers beyond its length are never read.

Numbers that are too small for the type lose accuracy, or vanish, without a sound. So every number
that is read is compared with a bound under which that could have happened (zeros that follow from
scores of minus infinity are told apart), and a row with such a number is computed again: in float64
if it was in float32, else in log space.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from ncrf.crf.chain import Chain, widest
from ncrf.crf.log_space import LogPosterior, LogVectors, log_vectors
from ncrf.crf.scan import pays, scan
from ncrf.crf.walk import LARGEST_GROWTH, interval_of, multiplication, walk


class _Bounds(NamedTuple):
    """Numbers from which on a type's results are trusted.

    The smallest normal number is far below entry * shrink, and 1 / overlap times the growth between
    two rescalings far below the largest.
    """

    entry: float  # an entry of a vector
    shrink: float  # the sum of a vector before it is rescaled
    overlap: float  # the inner product of a forward and a backward vector


_BOUNDS = {
    torch.float32: _Bounds(1e-20, 1e-10, 1e-12),
    torch.float64: _Bounds(1e-150, 1e-150, 1e-100),
}


class Posterior(Protocol):
    """What the gradient needs: log-partition [B], marginals [B, L, Y] and expected pair counts."""

    log_z: Tensor
    marginals: Tensor

    def pair_counts(self, weights: Tensor) -> Tensor:
        """Expected label pairs, rows weighted by [B]: [Y, Y], or [B, L-1, Y, Y] by position."""


@dataclass(frozen=True)
class _Pass:
    """Vectors of step s for direction d (0 forward, 1 backward), each up to a factor per row.

    Attributes:
        before: [L, D, B, Y], without the emission of the position that step s has come to.
        after: [L, D, B, Y], with it.
        steps: [L, B], see Chain.steps.
        places: [L, D, B], see Chain.places.
        weights: [Y, Y] or [B, L-1, Y, Y], exponentiated transitions.
        edges: [2, Y], exponentiated start and end.
        peaks: [B, L], what was subtracted from the emissions before exponentiation.
        pair_peaks: [] or [B, L-1], likewise from the transitions.
        edge_peaks: [2], likewise from start and end.
        scales: [K, D, B], what the vectors after the steps ``rescaled_at`` [K] were divided by.
        wrong: None, or [L-1, D, B], True for later steps that are not to be trusted.
    """

    before: Tensor
    after: Tensor
    steps: Tensor
    places: Tensor
    weights: Tensor
    edges: Tensor
    peaks: Tensor
    pair_peaks: Tensor
    edge_peaks: Tensor
    scales: Tensor
    rescaled_at: Tensor
    wrong: Tensor | None


class _ScaledPosterior:
    """Posterior of a batch in scaled space; ``redone`` holds rows that were computed again."""

    def __init__(self, chain: Chain) -> None:
        run = _run(chain, 2)
        self.shared, self.weights = chain.shared, run.weights
        batch = len(chain.row)
        backward_step = (run.steps * (2 * batch)).add_(chain.row + batch)
        backward = _rows(run.before, backward_step)
        forward = run.after[:, 0]
        both = forward * backward
        overlap = both.sum(-1)
        valid = chain.valid.t()
        inverse = torch.where(valid, overlap.reciprocal(), 0)
        self.marginals = both.mul_(inverse.unsqueeze(-1)).transpose(0, 1)
        # Pairs: forward vector of t, transition, backward vector of t+1 with its emission.
        inverse = inverse[:-1] * valid[1:]
        self.left = forward[:-1] * inverse.unsqueeze(-1)
        self.right = _rows(run.after, backward_step[1:])
        self.log_z = _log_z(chain, run, overlap.gather(0, chain.last.unsqueeze(0)).squeeze(0))
        self.redone: tuple[Tensor, Posterior] | None = None
        rows = _doubtful(chain, run, overlap)
        if rows is not None:
            self._redo(chain, rows)

    def _redo(self, chain: Chain, rows: Tensor) -> None:
        again = posterior(chain.select(rows), in_logs=_is_widest(chain))
        self.log_z[rows] = again.log_z
        self.marginals[rows] = again.marginals.to(self.marginals.dtype)
        self.left[:, rows] = 0
        self.right[:, rows] = 0
        self.redone = (rows, again)

    def pair_counts(self, weights: Tensor) -> Tensor:
        """Expected label pairs, rows weighted by [B]: [Y, Y], or [B, L-1, Y, Y] by position."""
        left = self.left * weights.to(self.left.dtype).unsqueeze(-1)
        if self.shared:
            with torch.autocast(left.device.type, enabled=False):
                counts = left.flatten(0, 1).t() @ self.right.flatten(0, 1)
            counts *= self.weights
        else:
            left, right = left.transpose(0, 1), self.right.transpose(0, 1)
            counts = (left.unsqueeze(-1) * right.unsqueeze(-2)).mul_(self.weights)
        if self.redone is not None:
            rows, again = self.redone
            more = again.pair_counts(weights[rows]).to(counts.dtype)
            if self.shared:
                counts += more
            else:
                counts[rows] = more
        return counts


def posterior(chain: Chain, *, in_logs: bool = False) -> Posterior:
    """Log-partition, marginals and pair counts of a chain, outside autograd."""
    return LogPosterior(log_vectors(chain), chain) if in_logs else _ScaledPosterior(chain)


def log_partition(chain: Chain) -> Tensor:
    """Log-partition [B] by the forward pass alone, outside autograd."""
    run = _run(chain, 1)
    ends = _ends(chain, run)
    log_z = _log_z(chain, run, ends)
    rows = _doubtful(chain, run, ends.unsqueeze(0))
    if rows is not None:
        again = chain.select(rows)
        log_z[rows] = log_vectors(again).log_z if _is_widest(chain) else log_partition(again)
    return log_z


def vectors(chain: Chain) -> LogVectors:
    """Logarithms of the forward and backward vectors from a scaled pass, outside autograd."""
    run = _run(chain, 2)
    wide = widest(run.after.device)
    peaks = run.peaks.to(wide).flatten()[run.places]
    rescaled = torch.zeros_like(peaks)
    rescaled[run.rescaled_at] = run.scales.to(wide).log()
    pairs = torch.zeros_like(peaks)
    if chain.shared:
        pairs[1:] = run.pair_peaks
    else:
        pairs[1:] = run.pair_peaks.to(wide).flatten()[chain.pair_places(run.steps)]
    offset = run.edge_peaks.to(wide).unsqueeze(1) + (peaks + pairs + rescaled).cumsum(0)
    of_last = offset[chain.last, 0, chain.row] + run.edge_peaks[1]
    alpha = run.after[:, 0].to(wide).log() + offset[:, 0].unsqueeze(-1)
    offset = offset - peaks - rescaled
    beta = run.before[:, 1].to(wide).log() + offset[:, 1].unsqueeze(-1)
    beta = beta.gather(0, run.steps.unsqueeze(-1).expand_as(beta))
    alpha, beta = alpha.transpose(0, 1), beta.transpose(0, 1)
    ends = _ends(chain, run)
    log_z = (ends.to(wide).log() + of_last).masked_fill_(chain.lengths == 0, 0)
    rows = _doubtful(chain, run, ends.unsqueeze(0))
    if rows is not None:
        again = log_vectors(chain.select(rows))
        alpha[rows], beta[rows], log_z[rows] = again.alpha, again.beta, again.log_z
    return LogVectors(alpha, beta, log_z)


def _run(chain: Chain, directions: int) -> _Pass:
    """Both passes (or the forward one) over all rows; see _Pass."""
    batch, width, labels = chain.emissions.shape
    likely, peaks = _exp_below_peak(chain.emissions, 1)
    edges, edge_peaks = _exp_below_peak(torch.stack([chain.start, chain.end]), 1)
    weights, pair_peaks = _exp_below_peak(chain.transitions, 2)
    steps = chain.steps()
    places = chain.places(steps)[:, :directions]
    likely = likely.view(-1, labels).index_select(0, places.flatten())
    likely = likely.view(width, directions, batch, labels)
    before, after = torch.empty_like(likely), torch.empty_like(likely)
    before[0] = edges[:directions].unsqueeze(1)
    torch.mul(before[0], likely[0], out=after[0])
    with torch.autocast(after.device.type, enabled=False):
        if pays(likely):
            interval = 1
            matrices = chain.steps_of_pairs(weights, steps)
            matrices = matrices[:directions] if chain.shared else matrices[:, :directions]
            scales, wrong = scan(before, likely, after, matrices)
        else:
            interval, wrong = interval_of(labels), None
            scales = walk(chain, weights, steps, before, likely, after, interval)
    rescaled_at = torch.arange(interval, max(width, interval), interval, device=after.device)
    return _Pass(
        *(before, after, steps, places, weights, edges, peaks, pair_peaks, edge_peaks),
        *(scales, rescaled_at, wrong),
    )


def _exp_below_peak(scores: Tensor, dims: int) -> tuple[Tensor, Tensor]:
    """exp(scores - peak) and peak, the largest score over the last dims (never minus infinity)."""
    over = tuple(range(-dims, 0))
    peak = scores.amax(over, keepdim=True).clamp_min_(torch.finfo(scores.dtype).min)
    return (scores - peak).exp_(), peak.view(scores.shape[:-dims])


def _rows(values: Tensor, places: Tensor) -> Tensor:
    """Vectors [..., Y] of values at places in all its dimensions but the last."""
    labels = values.shape[-1]
    return values.view(-1, labels).index_select(0, places.flatten()).view(*places.shape, labels)


def _ends(chain: Chain, run: _Pass) -> Tensor:
    """Scaled totals [B] over all labelings: last forward vector times end."""
    return (run.after[chain.last, 0, chain.row] * run.edges[1]).sum(1)


def _log_z(chain: Chain, run: _Pass, ends: Tensor) -> Tensor:
    """Log-partition [B] from the scaled totals and all that was divided out."""
    wide = widest(ends.device)
    total = torch.where(chain.valid, run.peaks, 0).sum(1, dtype=wide)
    total += ends.log()
    total += run.edge_peaks.sum(dtype=wide)
    if chain.shared:
        total += run.pair_peaks.to(wide) * chain.last
    else:
        total += torch.where(chain.valid[:, 1:], run.pair_peaks, 0).sum(1, dtype=wide)
    divided = run.rescaled_at.unsqueeze(1) <= chain.last
    total += torch.where(divided, run.scales[:, 0].log(), 0).sum(0, dtype=wide)
    return total.masked_fill_(chain.lengths == 0, 0)


def _doubtful(chain: Chain, run: _Pass, overlap: Tensor) -> Tensor | None:
    """Rows [b] of which a number that is read may have lost accuracy, or None.

    Args:
        chain: the inputs.
        run: their passes.
        overlap: [L, B], or [1, B], inner products of forward and backward vectors.
    """
    bounds = _BOUNDS[run.after.dtype]
    checks = [(run.after, bounds.entry), (overlap, bounds.overlap), (run.scales, bounds.shrink)]
    checks = [(x, bound) for x, bound in checks if x.numel() > 0]
    if not checks:
        return None
    lowest = torch.stack([x.amin() for x, _ in checks]).tolist()
    entries, *others = (low >= bound for low, (_, bound) in zip(lowest, checks, strict=True))
    trusted = all(others) and (run.wrong is None or not bool(run.wrong.any()))
    if trusted and (entries or (chain.shared and _nothing_vanished(chain, run))):
        return None
    valid = chain.valid.t()
    small = (run.after < bounds.entry) & ~_impossible(chain, run)
    doubt = (small.any(-1) & valid.unsqueeze(1)).flatten(0, 1).any(0)
    divided = run.rescaled_at[:, None, None] <= chain.last
    doubt |= ((run.scales < bounds.shrink) & divided).flatten(0, 1).any(0)
    doubt |= ((overlap < bounds.overlap) & valid[: len(overlap)]).any(0)
    if run.wrong is not None:
        doubt |= (run.wrong & valid[1:].unsqueeze(1)).flatten(0, 1).any(0)
    rows = doubt.nonzero().squeeze(1)
    return rows if len(rows) else None


def _nothing_vanished(chain: Chain, run: _Pass) -> bool:
    """Whether it is certain at a glance that each entry is trusted, or 0 because it is impossible.

    It is if no product of an entry, a transition and an emission can be too small for the type:
    what is 0 then had a factor 0, and that was a score of minus infinity.
    """
    bounds, tiny = _BOUNDS[run.after.dtype], torch.finfo(run.after.dtype).tiny
    factor = math.sqrt(tiny * LARGEST_GROWTH / bounds.entry)
    if not bool(run.after.masked_fill(run.after == 0, 1).amin() >= bounds.entry):
        return False
    if not bool((chain.emissions.amin(2) - run.peaks).amin() >= math.log(factor)):
        return False
    edges = torch.stack([chain.start, chain.end])
    return all(
        torch.equal(weights >= factor, scores > -torch.inf)
        for weights, scores in ((run.weights, chain.transitions), (run.edges, edges))
    )


def _impossible(chain: Chain, run: _Pass) -> Tensor:
    """[L, D, B, Y], True for entries that are 0 because scores of minus infinity make them so.

    Each step is judged by the entries of the step before; if those are right, so is this one.
    """
    directions, labels = run.after.shape[1], run.after.shape[3]
    legal = (chain.transitions > -torch.inf).to(run.after.dtype)
    alive = (run.after > 0).to(run.after.dtype)
    ways = torch.empty_like(run.after)
    edges = torch.stack([chain.start, chain.end]) > -torch.inf
    ways[0] = edges[:directions].unsqueeze(1)
    with torch.autocast(run.after.device.type, enabled=False):
        if chain.shared:
            ways[1:] = alive[:-1] @ chain.steps_of_pairs(legal, run.steps)[:directions]
        elif run.wrong is not None:
            matrices = chain.steps_of_pairs(legal, run.steps)[:, :directions]
            ways[1:] = (alive[:-1].unsqueeze(-2) @ matrices).squeeze(-2)
        else:
            multiply = multiplication(chain, legal, run.steps, ways, alive)
            for step in range(1, len(ways)):
                multiply(step)
    open_here = _rows(chain.emissions.view(-1, labels) > -torch.inf, run.places)
    return (run.after == 0) & ~((ways > 0) & open_here)


def _is_widest(chain: Chain) -> bool:
    return chain.emissions.dtype == widest(chain.emissions.device)
