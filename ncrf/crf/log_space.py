"""Forward and backward passes in log space: slower than scaled space, and right for any scores.

Plain differentiable operations, so that autograd gives derivatives of any order.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ncrf.crf.chain import Chain


@dataclass(frozen=True)
class LogVectors:
    """Logarithms of the forward and backward vectors.

    Attributes:
        alpha: [B, L, Y], total over all beginnings that end in label y at position t, emission of
            t included.
        beta: [B, L, Y], total over all continuations after label y at position t, emission of t
            not included. Entries beyond a row's length mean nothing.
        log_z: [B], log-partition; 0 for an empty row.
    """

    alpha: Tensor
    beta: Tensor
    log_z: Tensor

    def marginals(self, chain: Chain) -> Tensor:
        """[B, L, Y], P(y_t | x); 0 beyond a row's length."""
        logs = self.alpha + self.beta - self._finite_log_z()
        return exp_or_zero(logs, chain.valid.unsqueeze(-1))

    def pair_marginals(self, chain: Chain, position: int) -> Tensor:
        """[B, Y, Y], P(y_t, y_t+1 | x) at one position t; 0 where t+1 is beyond a row's length."""
        into = chain.emissions[:, position + 1] + self.beta[:, position + 1]
        logs = self.alpha[:, position].unsqueeze(2) + into.unsqueeze(1) + chain.pair(position)
        return exp_or_zero(logs - self._finite_log_z(), chain.pair_valid(position))

    def _finite_log_z(self) -> Tensor:
        """[B, 1, 1], with 0 for rows without a possible labeling: all their totals are 0 anyway."""
        return self.log_z.masked_fill(self.log_z == -torch.inf, 0)[:, None, None]


class LogPosterior:
    """Posterior of a chain from its log vectors."""

    def __init__(self, vectors: LogVectors, chain: Chain) -> None:
        """Keeps what the pair counts need."""
        self.vectors, self.chain = vectors, chain
        self.log_z = vectors.log_z
        self.marginals = vectors.marginals(chain)

    def pair_counts(self, weights: Tensor) -> Tensor:
        """Expected label pairs, rows weighted by [B]: [Y, Y], or [B, L-1, Y, Y] by position."""
        counts = torch.zeros_like(self.chain.transitions)
        weights = weights.to(counts.dtype)[:, None, None]
        for t in range(self.chain.emissions.shape[1] - 1):
            pairs = self.vectors.pair_marginals(self.chain, t) * weights
            if self.chain.shared:
                counts += pairs.sum(0)
            else:
                counts[:, t] = pairs
        return counts


def log_vectors(chain: Chain) -> LogVectors:
    """Forward and backward vectors in log space, differentiable."""
    width, labels = chain.emissions.shape[1:]
    steps = chain.steps()
    emissions = chain.emissions.reshape(-1, labels)[chain.places(steps)]
    pairs = chain.steps_of_pairs(chain.transitions, steps)
    before = [torch.stack([chain.start, chain.end]).unsqueeze(1).expand_as(emissions[0])]
    after = [before[0] + emissions[0]]
    for step in range(1, width):
        into = pairs.unsqueeze(1) if chain.shared else pairs[step - 1]
        before.append(log_sum_exp(after[-1].unsqueeze(-1) + into, -2))
        after.append(before[-1] + emissions[step])
    alpha = torch.stack([x[0] for x in after], 1)
    backward = torch.stack([x[1] for x in before], 1)
    beta = backward.gather(1, steps.t().unsqueeze(-1).expand_as(backward))
    log_z = log_sum_exp(alpha[chain.row, chain.last] + chain.end, -1)
    return LogVectors(alpha, beta, log_z.masked_fill(chain.lengths == 0, 0))


def log_sum_exp(scores: Tensor, dim: int) -> Tensor:
    """logsumexp whose value and gradient stay clear of NaN where all scores are minus infinity."""
    if not (scores.requires_grad and torch.is_grad_enabled()):
        return torch.logsumexp(scores, dim)  # whose value does
    peak = scores.detach().amax(dim, keepdim=True)
    peak = peak.clamp_min(torch.finfo(scores.dtype).min)
    total = torch.exp(scores - peak).sum(dim)
    dead = total == 0
    return (total.masked_fill(dead, 1).log() + peak.squeeze(dim)).masked_fill(dead, -torch.inf)


def exp_or_zero(logs: Tensor, where: Tensor) -> Tensor:
    """exp(logs) where a condition holds and 0 elsewhere, without gradient from elsewhere."""
    return torch.exp(logs.masked_fill(~where, -torch.inf))
