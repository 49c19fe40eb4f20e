"""Log-partition, log-likelihood, marginals and the forward and backward vectors themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ncrf.crf import scaled
from ncrf.crf.chain import Chain, align_labels, prepare, require_finite
from ncrf.crf.likelihood import (
    chain_log_partition,
    chain_log_prob,
    chain_path_score,
    chain_vectors,
)

# Up to so many emissions float64 takes hardly longer than float32, and spares the second pass over
# rows of which float32 has lost something; in a trained model that is a row of nearly every batch.
_SMALL = 1 << 14


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
    pair_scores: Tensor | None = None,
) -> Tensor:
    """Score [B] of the given labelings: start + emissions + transitions + end.

    Args and errors as in :func:`log_prob`, but an impossible labeling scores minus infinity.
    """
    chain = prepare(
        *(emissions, transitions, start, end, mask),
        constraints=constraints,
        pair_scores=pair_scores,
    )
    return chain_path_score(chain, align_labels(chain, labels)).to(chain.result_dtype)


def log_partition(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    allowed: Tensor | None = None,
    constraints: Sequence[Any] | None = None,
    pair_scores: Tensor | None = None,
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
        pair_scores: [B, L-1, Y, Y] or None for zeros; entry t is added to the transitions from
            position t to t+1. Where the mask has holes, it belongs to the pair of t+1 and the word
            before it; entries that lead to a masked position, or to a row's first word, are unused.

    Raises:
        ValueError: a shape does not fit; a score is NaN or plus infinity.
    """
    chain = _for_loss(emissions, transitions, start, end, mask, allowed, constraints, pair_scores)
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
    pair_scores: Tensor | None = None,
    trusted: bool = False,
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
        pair_scores: [B, L-1, Y, Y], scores of label pairs by position, or None; see log_partition.
        trusted: the caller knows that the mask has no holes, each row has a word and labels are
            in range. Nothing is checked then, so that a GPU is not waited for: a score that is not
            finite, or an impossible labeling, shows in the result alone.

    Raises:
        TypeError: emissions are not floating, or labels not integers.
        ValueError: a shape does not fit; a score is NaN or plus infinity; with the row and position
            (RowError) a label is out of range or the labeling impossible.
    """
    chain = _for_loss(
        emissions, transitions, start, end, mask, allowed, constraints, pair_scores, trusted
    )
    return chain_log_prob(chain, labels, trusted=trusted).to(chain.result_dtype)


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
    pair_scores: Tensor | None = None,
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
        pair_scores: [B, L-1, Y, Y] or None.

    Raises:
        ValueError: as log_prob; with the row (RowError) if no labeling agrees.
    """
    chain = _for_loss(emissions, transitions, start, end, mask, allowed, constraints, pair_scores)
    if allowed is not None:
        possible = possible.bool() & allowed.bool()
    limits = (possible, constraints, pair_scores)
    agreeing = _for_loss(emissions, transitions, start, end, mask, *limits)
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
    pair_scores: Tensor | None = None,
) -> ForwardBackward:
    """Logarithms of the forward and backward vectors.

    alpha[t, y] sums over all beginnings that end in label y at position t, with start and the
    emission of t; beta[t, y] over all continuations after t, with end. So at every position
    logsumexp(alpha + beta) = log_partition. Both are 0 at masked positions. Args as log_partition.
    """
    chain = prepare(
        *(emissions, transitions, start, end, mask),
        allowed=allowed,
        constraints=constraints,
        pair_scores=pair_scores,
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
    pair_scores: Tensor | None = None,
) -> Tensor:
    """P(y_t | x) [B, L, Y]; 0 at masked positions. Args as log_partition.

    Raises:
        ValueError: as log_partition; with the row (RowError) if it has no possible labeling.
    """
    chain = prepare(
        *(emissions, transitions, start, end, mask),
        allowed=allowed,
        constraints=constraints,
        pair_scores=pair_scores,
    )
    if chain.requires_grad:
        return chain.restore(chain_vectors(chain).marginals(chain)).to(chain.result_dtype)
    found = scaled.posterior(chain)
    require_finite(chain, found.log_z)
    return chain.restore(found.marginals).to(chain.result_dtype)


def _for_loss(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None,
    end: Tensor | None,
    mask: Tensor | None,
    allowed: Tensor | None,
    constraints: Sequence[Any] | None,
    pair_scores: Tensor | None,
    trusted: bool = False,
) -> Chain:
    """The inputs as a chain that is fast where a gradient is asked for and exact where not."""
    scores = (emissions, transitions, start, end, pair_scores)
    trained = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in scores)
    large = emissions.numel() > _SMALL
    return prepare(
        *(emissions, transitions, start, end, mask),
        allowed=allowed,
        constraints=constraints,
        pair_scores=pair_scores,
        fast=trained and large and not trusted,
        trusted=trusted,
    )
