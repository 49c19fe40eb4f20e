"""Log-partition, log-likelihood, marginals and the forward and backward vectors themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ncrf.crf import scaled
from ncrf.crf.chain import (
    Chain,
    RowError,
    align_labels,
    prepare,
    require_finite,
    widest,
)
from ncrf.crf.log_space import LogVectors, log_vectors


class ForwardBackward(NamedTuple):
    """Logarithms of the forward vectors [B, L, Y], the backward vectors [B, L, Y] and Z [B]."""

    alpha: Tensor
    beta: Tensor
    log_partition: Tensor


def path_score(
    emissions: Tensor,
    labels: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    constraints: Sequence[Any] | None = None,
) -> Tensor:
    """Score [B] of the given labelings: start + emissions + transitions + end.

    Args and errors as in :func:`log_prob`, but an impossible labeling scores minus infinity.
    """
    chain = prepare(emissions, transitions, start, end, mask, constraints=constraints)
    return _path_score(chain, align_labels(chain, labels)).to(chain.result_dtype)


def log_partition(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    allowed: Tensor | None = None,
    constraints: Sequence[Any] | None = None,
) -> Tensor:
    """log Z [B], the logarithm of the sum of exp(score) over all labelings of each row.

    Minus infinity, with gradient 0, for a row that has no possible labeling; 0 for an empty row.

    Args:
        emissions: [B, L, Y].
        transitions: [Y, Y] (from, to) or [B, L-1, Y, Y].
        start: [Y] or None for zeros.
        end: [Y] or None for zeros.
        mask: [B, L], any pattern; masked positions are as if they were not there.
        allowed: [B, L, Y]; the sum is over labelings that keep to it.
        constraints: legal first labels [Y], pairs [Y, Y] and last labels [Y].

    Raises:
        ValueError: a shape does not fit; a score is NaN or plus infinity.
    """
    chain = _for_loss(emissions, transitions, start, end, mask, allowed, constraints)
    log_z = chain_log_partition(chain)
    require_finite(chain, log_z.detach().masked_fill(log_z == -torch.inf, 0))
    return log_z.to(chain.result_dtype)


def log_prob(
    emissions: Tensor,
    labels: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    allowed: Tensor | None = None,
    constraints: Sequence[Any] | None = None,
) -> Tensor:
    """log P(labels | x) [B], the log-likelihood of the given labelings; 0 for an empty row.

    Args:
        emissions: [B, L, Y].
        labels: [B, L] integers; what stands at masked positions is ignored.
        transitions: [Y, Y] (from, to) or [B, L-1, Y, Y].
        start: [Y] or None for zeros.
        end: [Y] or None for zeros.
        mask: [B, L], any pattern; masked positions are as if they were not there.
        allowed: [B, L, Y]; the probability is conditional on labelings that keep to it.
        constraints: legal first labels [Y], pairs [Y, Y] and last labels [Y]; likewise.

    Raises:
        TypeError: emissions are not floating, or labels not integers.
        ValueError: a shape does not fit; a score is NaN or plus infinity; with the row and position
            (RowError) a label is out of range or the labeling impossible.
    """
    chain = _for_loss(emissions, transitions, start, end, mask, allowed, constraints)
    return chain_log_prob(chain, labels).to(chain.result_dtype)


def partial_log_prob(
    emissions: Tensor,
    possible: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    allowed: Tensor | None = None,
    constraints: Sequence[Any] | None = None,
) -> Tensor:
    """Log of the total probability [B] of all labelings that agree with partial labels.

    Args:
        emissions: [B, L, Y].
        possible: [B, L, Y], nonzero where a label is possible: one label where it is known, all of
            them where nothing is known.
        transitions: as the other arguments, see :func:`log_prob`.
        start: [Y] or None for zeros.
        end: [Y] or None for zeros.
        mask: [B, L] or None.
        allowed: [B, L, Y] or None.
        constraints: three Boolean arrays or None.

    Raises:
        ValueError: as log_prob; with the row (RowError) if no labeling agrees.
    """
    chain = _for_loss(emissions, transitions, start, end, mask, allowed, constraints)
    if allowed is not None:
        possible = possible.bool() & allowed.bool()
    agreeing = _for_loss(emissions, transitions, start, end, mask, possible, constraints)
    total, part = chain_log_partition(chain), chain_log_partition(agreeing)
    require_finite(chain, total.detach())
    require_finite(agreeing, part.detach())
    return (part - total).to(chain.result_dtype)


def forward_backward(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    allowed: Tensor | None = None,
    constraints: Sequence[Any] | None = None,
) -> ForwardBackward:
    """Logarithms of the forward and backward vectors.

    alpha[t, y] sums over all beginnings that end in label y at position t, with start and the
    emission of t; beta[t, y] over all continuations after t, with end. So at every position
    logsumexp(alpha + beta) = log_partition. Both are 0 at masked positions. Args as log_partition.
    """
    chain = prepare(
        emissions, transitions, start, end, mask, allowed=allowed, constraints=constraints
    )
    found = chain_vectors(chain)
    alpha, beta = chain.restore(found.alpha), chain.restore(found.beta)
    dtype = chain.result_dtype
    return ForwardBackward(alpha.to(dtype), beta.to(dtype), found.log_z.to(dtype))


def marginals(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    allowed: Tensor | None = None,
    constraints: Sequence[Any] | None = None,
) -> Tensor:
    """P(y_t | x) [B, L, Y]; 0 at masked positions. Args as log_partition.

    Raises:
        ValueError: as log_partition; with the row (RowError) if it has no possible labeling.
    """
    chain = prepare(
        emissions, transitions, start, end, mask, allowed=allowed, constraints=constraints
    )
    if chain.requires_grad:
        return chain.restore(chain_vectors(chain).marginals(chain)).to(chain.result_dtype)
    found = scaled.posterior(chain)
    require_finite(chain, found.log_z)
    return chain.restore(found.marginals).to(chain.result_dtype)


def chain_vectors(chain: Chain) -> LogVectors:
    """Forward and backward vectors of a prepared chain, differentiable where a gradient is due.

    Raises:
        ValueError: as require_finite.
    """
    found = log_vectors(chain) if chain.requires_grad else scaled.vectors(chain)
    require_finite(chain, found.log_z.detach())
    return found


def chain_log_partition(chain: Chain) -> Tensor:
    """log Z [B] of a prepared chain in the widest type; not checked."""
    if not chain.requires_grad:
        return scaled.log_partition(chain)
    return _log_likelihood(chain, None)


def chain_log_prob(chain: Chain, labels: Tensor) -> Tensor:
    """log P(labels | x) [B] of a prepared chain in the widest type; errors as log_prob."""
    labels = align_labels(chain, labels)
    if chain.requires_grad:
        result = _log_likelihood(chain, labels)
    else:
        result = _path_score(chain, labels) - scaled.log_partition(chain)
    if not math.isfinite(result.detach().sum().item()):
        _explain(chain, labels)
    return result


class _LogLikelihood(torch.autograd.Function):
    """score(labels) - log Z, or log Z where labels are None, with its gradient in closed form.

    The gradient of log Z is the expectation of every feature: the marginals for emissions, start
    and end, and the expected pair counts for transitions. That of the score is what is observed.
    """

    @staticmethod
    def forward(
        ctx: Any,
        emissions: Tensor,
        transitions: Tensor,
        start: Tensor,
        end: Tensor,
        chain: Chain,
        labels: Tensor | None,
    ) -> Tensor:
        found = scaled.posterior(chain)
        ctx.save_for_backward(emissions, transitions, start, end)
        ctx.chain, ctx.posterior, ctx.labels = chain, found, labels
        return found.log_z if labels is None else _path_score(chain, labels) - found.log_z

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            chain = replace(ctx.chain, **dict(zip(_SCORES, ctx.saved_tensors, strict=True)))
            return (*_differentiable_gradient(chain, ctx.labels, grad), None, None)
        return (*_gradient(ctx.chain, ctx.posterior, ctx.labels, grad), None, None)


_SCORES = ("emissions", "transitions", "start", "end")


def _gradient(
    chain: Chain, posterior: scaled.Posterior, labels: Tensor | None, grad: Tensor
) -> tuple[Tensor, ...]:
    """Observed minus expected counts, or expected ones without labels, weighted by grad [B]."""
    weights = grad if labels is None else -grad
    dtype = posterior.marginals.dtype
    by_word = posterior.marginals * weights.to(dtype)[:, None, None]
    pairs = posterior.pair_counts(weights)
    if labels is not None:
        seen = grad.to(dtype).unsqueeze(1) * chain.valid
        by_word.scatter_add_(2, labels.unsqueeze(-1), seen.unsqueeze(-1))
        pairs = _add_pairs(pairs, labels, seen[:, 1:] * chain.valid[:, 1:])
    edges = by_word[:, 0].sum(0), by_word[chain.row, chain.last].sum(0)
    return by_word, pairs.view_as(chain.transitions), *edges


def _differentiable_gradient(
    chain: Chain, labels: Tensor | None, grad: Tensor
) -> tuple[Tensor, ...]:
    """The same by autograd through the log-space passes, for derivatives of higher order."""
    scores = tuple(getattr(chain, name) for name in _SCORES)
    value = log_vectors(chain).log_z
    if labels is not None:
        value = _path_score(chain, labels) - value
    return torch.autograd.grad(
        value, scores, grad.to(value.dtype), create_graph=True, allow_unused=True
    )


def _log_likelihood(chain: Chain, labels: Tensor | None) -> Tensor:
    scores = (chain.emissions, chain.transitions, chain.start, chain.end)
    result: Tensor = _LogLikelihood.apply(*scores, chain, labels)  # type: ignore[no-untyped-call]
    return result


def _add_pairs(counts: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Adds weights [B, L-1] at the labels' pairs to counts [Y, Y] or [B, L-1, Y, Y]."""
    size = counts.shape[-1]
    pairs = labels[:, :-1] * size + labels[:, 1:]
    if counts.dim() == 2:
        counts = counts.flatten().index_add(0, pairs.flatten(), weights.flatten())
        return counts.view(size, size)
    return counts.flatten(2).scatter_add(2, pairs.unsqueeze(-1), weights.unsqueeze(-1))


def _step_scores(chain: Chain, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Emission scores [B, L], pair scores [B, L-1] and edge scores [B, 2] of labels [B, L]."""
    words = chain.emissions.gather(2, labels.unsqueeze(-1)).squeeze(-1)
    words = torch.where(chain.valid, words, 0)
    pairs = labels[:, :-1] * chain.emissions.shape[-1] + labels[:, 1:]
    if chain.shared:
        between = chain.transitions.take(pairs)
    else:
        between = chain.transitions.flatten(2).gather(2, pairs.unsqueeze(-1)).squeeze(-1)
    between = torch.where(chain.valid[:, 1:], between, 0)
    final = labels.gather(1, chain.last.unsqueeze(1)).squeeze(1)
    edges = torch.stack([chain.start.take(labels[:, 0]), chain.end.take(final)], 1)
    return words, between, torch.where(chain.valid[:, :1], edges, 0)


def _path_score(chain: Chain, labels: Tensor) -> Tensor:
    """Score [B] of labels [B, L], summed in the widest type."""
    wide = widest(chain.emissions.device)
    words, between, edges = _step_scores(chain, labels)
    return words.sum(1, dtype=wide) + between.sum(1, dtype=wide) + edges.sum(1, dtype=wide)


@torch.no_grad()
def _explain(chain: Chain, labels: Tensor) -> None:
    """Raises for a log-likelihood that is not finite, with the place that makes it so."""
    require_finite(chain, scaled.log_partition(chain))
    words, between, edges = _step_scores(chain, labels)
    into = torch.cat([edges[:, :1], between], 1)
    for what, scores in (("emission", words), ("transition to this label", into)):
        bad = (scores == -torch.inf).nonzero()
        if len(bad):
            row, position = (int(i) for i in bad[0])
            label, place = int(labels[row, position]), chain.input_position(row, position)
            raise RowError(f"label {label} is impossible here ({what} -inf)", row, place)
    row = int((edges[:, 1] == -torch.inf).nonzero()[0])
    position = int(chain.last[row])
    label, place = int(labels[row, position]), chain.input_position(row, position)
    raise RowError(f"label {label} is impossible at the end of a row", row, place)


def _for_loss(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None,
    end: Tensor | None,
    mask: Tensor | None,
    allowed: Tensor | None,
    constraints: Sequence[Any] | None,
) -> Chain:
    """The inputs as a chain that is fast where a gradient is asked for and exact where not."""
    scores = (emissions, transitions, start, end)
    trained = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in scores)
    return prepare(
        *(emissions, transitions, start, end, mask),
        allowed=allowed,
        constraints=constraints,
        fast=trained,
    )
