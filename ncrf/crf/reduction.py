"""One number from the log-likelihoods of a batch."""

from __future__ import annotations

from torch import Tensor

REDUCTIONS = ("none", "sum", "mean", "token_mean")


def reduce(rows: Tensor, mask: Tensor | None, width: int, reduction: str) -> Tensor:
    """Log-likelihoods [B] as they are, or their sum, or that by rows or by words.

    Raises:
        ValueError: reduction is not one of REDUCTIONS.
    """
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction is {reduction!r}, expected one of {', '.join(REDUCTIONS)}")
    if reduction == "none":
        return rows
    total = rows.sum()
    if reduction == "sum":
        return total
    if reduction == "mean":
        return total / max(len(rows), 1)
    if mask is None:
        return total / max(len(rows) * width, 1)
    return total / mask.bool().sum().clamp_min(1)
