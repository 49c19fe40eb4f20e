"""Expectations under P(y | x): pair marginals, feature counts, entropy and divergence.

All are differentiable. Where no gradient is asked for, the forward and backward vectors come from
the scaled passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ncrf.crf.chain import Chain, prepare
from ncrf.crf.likelihood import chain_vectors
from ncrf.crf.log_space import LogVectors


class ExpectedCounts(NamedTuple):
    """Expected counts of features, for each row, or over the batch where weights were given.

    Attributes:
        states: [B, Y] how often each label occurs, or [B, F, Y] the sum of each observation feature
            over the words with each label.
        transitions: [B, Y, Y], how often one label follows another.
        start: [B, Y], how often each label is the first.
        end: [B, Y], how often each label is the last.
    """

    states: Tensor
    transitions: Tensor
    start: Tensor
    end: Tensor


def pairwise_marginals(
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
    """P(y_t, y_t+1 | x) [B, L-1, Y, Y] at entry t; 0 where t+1 is masked.

    Where the mask has holes, the entry that leads to a word holds its pair with the word before it.
    Args and errors as log_partition.
    """
    chain = prepare(
        *(emissions, transitions, start, end, mask),
        allowed=allowed,
        constraints=constraints,
        pair_scores=pair_scores,
    )
    vectors = chain_vectors(chain)
    batch, width, labels = chain.emissions.shape
    pairs = chain.emissions.new_zeros(batch, 0, labels, labels)
    if width > 1:
        pairs = torch.stack([vectors.pair_marginals(chain, t) for t in range(width - 1)], 1)
    if chain.order is not None:
        into = (chain.order[:, 1:] - 1).clamp_min(0)[..., None, None].expand_as(pairs)
        pairs = torch.zeros_like(pairs).scatter_add(1, into, pairs)
    return pairs.to(chain.result_dtype)


def expected_counts(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    features: Tensor | None = None,
    weights: Tensor | None = None,
    allowed: Tensor | None = None,
    constraints: Sequence[Any] | None = None,
    pair_scores: Tensor | None = None,
) -> ExpectedCounts:
    """Expected counts of state and transition features under P(y | x).

    Args:
        emissions: with what follows it, and the other scores and restrictions, as in log_partition.
        transitions: likewise.
        start: likewise.
        end: likewise.
        mask: likewise.
        features: [B, L, F], values of observation features at each word, or None to count labels.
        weights: [B], weights of the rows, by which the counts are summed over the batch; with the
            empirical distribution of the rows this is the expectation over a corpus. None to keep
            the rows apart.
        allowed: likewise.
        constraints: likewise.
        pair_scores: likewise.

    Raises:
        ValueError: as log_partition; features or weights do not fit; with the row (RowError) if it
            has no possible labeling.
    """
    chain = prepare(
        *(emissions, transitions, start, end, mask),
        allowed=allowed,
        constraints=constraints,
        pair_scores=pair_scores,
    )
    vectors = chain_vectors(chain)
    marginals = vectors.marginals(chain)
    counts = [
        _state_counts(chain, chain.restore(marginals), features),
        _pair_counts(chain, vectors),
        marginals[:, 0],
        marginals[chain.row, chain.last],
    ]
    if weights is not None:
        if weights.shape != chain.lengths.shape:
            raise ValueError(f"weights: shape {list(weights.shape)}, expected [B]")
        weights = weights.to(chain.emissions)
        counts = [torch.tensordot(weights, x, 1) for x in counts]
    return ExpectedCounts(*(x.to(chain.result_dtype) for x in counts))


def entropy(
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
    """Entropy [B] of P(y | x) in nats; 0 for an empty row. Args and errors as log_partition.

    It is the entropy of the first label plus that of each later label given the one before it,
    which, unlike log Z minus the expected score, loses no digits when scores are large.
    """
    chain = prepare(
        *(emissions, transitions, start, end, mask),
        allowed=allowed,
        constraints=constraints,
        pair_scores=pair_scores,
    )
    vectors = chain_vectors(chain)
    total = -_expectation(chain, vectors, lambda t: _log_conditional(chain, vectors, t))
    return total.to(chain.result_dtype)


def kl_divergence(
    scores: Sequence[Tensor | None],
    other: Sequence[Tensor | None],
    mask: Tensor | None = None,
    *,
    allowed: Tensor | None = None,
    constraints: Sequence[Any] | None = None,
) -> Tensor:
    """Kullback-Leibler divergence [B] of one chain from another, in nats; infinite where due.

    Args:
        scores: emissions, transitions and perhaps start, end and pair scores of the distribution P.
        other: those of the distribution Q, in KL(P || Q).
        mask: [B, L] or None, for both.
        allowed: [B, L, Y] or None, for both.
        constraints: three Boolean arrays or None, for both.

    Raises:
        ValueError: as log_partition; with the row (RowError) if it has no possible labeling.
    """
    chains = []
    for emissions, transitions, *edges in (scores, other):
        if emissions is None or transitions is None:
            raise ValueError("a chain needs emissions and transitions")
        start, end, pair_scores = [*edges, None, None, None][:3]
        chains.append(
            prepare(
                *(emissions, transitions, start, end, mask),
                allowed=allowed,
                constraints=constraints,
                pair_scores=pair_scores,
            )
        )
    p, q = chains
    if p.emissions.shape != q.emissions.shape:
        shapes = f"{list(p.emissions.shape)} and {list(q.emissions.shape)}"
        raise ValueError(f"emissions of the two chains are {shapes}")
    of_p, of_q = chain_vectors(p), chain_vectors(q)

    def log_ratio(t: int) -> Tensor:
        log_q = _log_conditional(q, of_q, t)
        log_q = log_q.masked_fill(log_q.isnan(), -torch.inf)
        return _log_conditional(p, of_p, t) - log_q

    return _expectation(p, of_p, log_ratio).to(p.result_dtype)


def _state_counts(chain: Chain, marginals: Tensor, features: Tensor | None) -> Tensor:
    if features is None:
        return marginals.sum(1)
    if features.dim() != 3 or features.shape[:2] != marginals.shape[:2]:
        expected = [*marginals.shape[:2], "F"]
        raise ValueError(f"features: shape {list(features.shape)}, expected {expected}")
    return features.to(marginals).transpose(1, 2) @ marginals


def _pair_counts(chain: Chain, vectors: LogVectors) -> Tensor:
    batch, width, labels = chain.emissions.shape
    counts = chain.emissions.new_zeros(batch, labels, labels)
    for t in range(width - 1):
        counts = counts + vectors.pair_marginals(chain, t)
    return counts


def _log_conditional(chain: Chain, vectors: LogVectors, t: int) -> Tensor:
    """log P(y_t | y_t-1, x) [B, Y, Y], or log P(y_0 | x) [B, Y]; NaN after impossible labels."""
    into = chain.emissions[:, t] + vectors.beta[:, t]
    if t == 0:
        return chain.start + into - vectors.log_z.unsqueeze(1)
    before = vectors.beta[:, t - 1].unsqueeze(2)
    return chain.pair(t - 1) + into.unsqueeze(1) - before


def _expectation(chain: Chain, vectors: LogVectors, values: Any) -> Tensor:
    """Expected sum [B] of values(0) [B, Y] at first labels and values(t) [B, Y, Y] at pairs."""
    total = chain.emissions.new_zeros(len(chain.row))
    for t in range(chain.emissions.shape[1]):
        if t == 0:
            logs = _log_conditional(chain, vectors, 0)
            weights = torch.exp(logs.masked_fill(~chain.valid[:, :1], -torch.inf))
        else:
            weights = vectors.pair_marginals(chain, t - 1)
        # What never happens does not count, whatever its value.
        total = total + (weights * torch.where(weights > 0, values(t), 0)).flatten(1).sum(1)
    return total
