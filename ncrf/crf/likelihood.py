"""Likelihoods of prepared chains, with gradients in closed form."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ncrf.crf import scaled
from ncrf.crf.chain import Chain, align_labels, require_finite, widest
from ncrf.crf.errors import RowError
from ncrf.crf.log_space import LogVectors, log_vectors


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


def chain_log_prob(chain: Chain, labels: Tensor, *, trusted: bool = False) -> Tensor:
    """log P(labels | x) [B] of a prepared chain in the widest type; errors as log_prob.

    If trusted, nothing is checked, and the passes run in log space, where no number needs to be
    looked at to know that it is right: nothing waits for the device.
    """
    labels = align_labels(chain, labels, trusted=trusted)
    if trusted:
        return _log_likelihood(chain, labels, in_logs=True)
    if chain.requires_grad:
        result = _log_likelihood(chain, labels)
    else:
        result = chain_path_score(chain, labels) - scaled.log_partition(chain)
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
        in_logs: bool,
    ) -> Tensor:
        found = scaled.posterior(chain, in_logs=in_logs)
        ctx.save_for_backward(emissions, transitions, start, end)
        ctx.chain, ctx.posterior, ctx.labels = chain, found, labels
        return found.log_z if labels is None else chain_path_score(chain, labels) - found.log_z

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            chain = replace(ctx.chain, **dict(zip(_SCORES, ctx.saved_tensors, strict=True)))
            return (*_differentiable_gradient(chain, ctx.labels, grad), None, None, None)
        return (*_gradient(ctx.chain, ctx.posterior, ctx.labels, grad), None, None, None)


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
        value = chain_path_score(chain, labels) - value
    return torch.autograd.grad(
        value, scores, grad.to(value.dtype), create_graph=True, allow_unused=True
    )


def _log_likelihood(chain: Chain, labels: Tensor | None, *, in_logs: bool = False) -> Tensor:
    scores = (chain.emissions, chain.transitions, chain.start, chain.end)
    result: Tensor = _LogLikelihood.apply(*scores, chain, labels, in_logs)  # type: ignore[no-untyped-call]
    return result


def _add_pairs(counts: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Adds weights [B, L-1] at the labels' pairs to counts [Y, Y] or, in place, [B, L-1, Y, Y]."""
    size = counts.shape[-1]
    pairs = labels[:, :-1] * size + labels[:, 1:]
    if counts.dim() == 2:
        counts = counts.flatten().index_add(0, pairs.flatten(), weights.flatten())
        return counts.view(size, size)
    return counts.flatten(2).scatter_add_(2, pairs.unsqueeze(-1), weights.unsqueeze(-1))


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


def chain_path_score(chain: Chain, labels: Tensor) -> Tensor:
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
