"""Labels drawn from P(y | x), and the labels that are most probable one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ncrf.crf.chain import prepare
from ncrf.crf.forward_backward import marginals
from ncrf.crf.likelihood import chain_vectors


@torch.no_grad()
def sample(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    n: int = 1,
    generator: torch.Generator | None = None,
    allowed: Tensor | None = None,
    constraints: Sequence[Any] | None = None,
    pair_scores: Tensor | None = None,
) -> Tensor:
    """n independent labelings [B, n, L] of each row, drawn from P(y | x); 0 at masked positions.

    Each label is drawn given the one before it, by the largest of log-probabilities with Gumbel
    noise. Other args as log_partition.

    Raises:
        ValueError: as log_partition; n is below 1; with the row (RowError) if it has no possible
            labeling.
    """
    if n < 1:
        raise ValueError(f"n is {n}, expected 1 or more")
    chain = prepare(
        *(emissions, transitions, start, end, mask),
        allowed=allowed,
        constraints=constraints,
        pair_scores=pair_scores,
    )
    into = chain.emissions + chain_vectors(chain).beta
    batch, width, labels = into.shape
    noise = torch.empty(batch, n, labels, dtype=into.dtype, device=into.device)
    logits = (chain.start + into[:, 0]).unsqueeze(1)
    drawn: list[Tensor] = []
    for t in range(width):
        if t > 0:
            if chain.shared:
                out = chain.transitions[drawn[-1]]
            else:
                out = chain.transitions[chain.row.unsqueeze(1), t - 1, drawn[-1]]
            logits = out + into[:, t].unsqueeze(1)
        noise.exponential_(generator=generator)
        drawn.append((logits - noise.log()).argmax(2))
    by_position = torch.stack(drawn, 1)
    return chain.restore(by_position).transpose(1, 2)


@torch.no_grad()
def posterior_decode(
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
    """The label of the highest marginal at each position, [B, L]; 0 at masked positions.

    It has the fewest wrong labels in expectation, but as a whole it may be improbable, and even
    impossible. Args and errors as marginals.
    """
    found = marginals(
        *(emissions, transitions, start, end, mask),
        allowed=allowed,
        constraints=constraints,
        pair_scores=pair_scores,
    )
    return found.argmax(2)
