"""The scaled passes as a scan over matrices: as many launches as log2 of the length.

A GPU computes one step of a small chain faster than the step can be launched. So all prefixes of
the product of the steps' matrices are made by doubling (Hillis & Steele 1986), with more arithmetic
and far fewer launches. Each vector is then made once more from the one before it, which costs one
product for all steps together: that gives the scales, and where the two differ the scan has lost
something to underflow.
"""

from __future__ import annotations

import torch
from torch import Tensor

_MOST_LABELS = 64
_MOST_NUMBERS = 1 << 25  # in the matrices of all steps: 256 MB
_FEWEST_STEPS = 8
_TOLERANCE = 1e-8


def pays(likely: Tensor) -> bool:
    """Whether to scan chains with exponentiated emissions [L, D, B, Y]."""
    labels = likely.shape[-1]
    return (
        likely.device.type == "cuda"
        and labels <= _MOST_LABELS
        and len(likely) >= _FEWEST_STEPS
        and likely.numel() * labels <= _MOST_NUMBERS
    )


def scan(before: Tensor, likely: Tensor, after: Tensor, matrices: Tensor) -> tuple[Tensor, Tensor]:
    """Fills before and after from step 1 on, dividing each vector of ``after`` by its sum.

    Args:
        before: [L, D, B, Y], filled at step 0.
        likely: [L, D, B, Y], exponentiated emissions.
        after: [L, D, B, Y], filled at step 0.
        matrices: [D, Y, Y] or [L-1, D, B, Y, Y].

    Returns:
        The divisors [L-1, D, B], and where [L-1, D, B] the scan is not to be trusted.
    """
    tiny = torch.finfo(after.dtype).tiny
    shared = matrices.dim() == 3
    products = (matrices.unsqueeze(1) if shared else matrices) * likely[1:].unsqueeze(-2)
    distance = 1
    while distance < len(products):
        longer = products[:-distance] @ products[distance:]
        longer /= longer.amax((-2, -1), keepdim=True).clamp_min_(tiny)
        products = torch.cat([products[:distance], longer])
        distance *= 2
    found = (after[0].unsqueeze(-2) @ products).squeeze(-2)
    found /= found.sum(-1, keepdim=True).clamp_min_(tiny)
    previous = torch.cat([after[:1], found[:-1]])
    if shared:
        torch.matmul(previous, matrices, out=before[1:])
    else:
        before[1:] = (previous.unsqueeze(-2) @ matrices).squeeze(-2)
    torch.mul(before[1:], likely[1:], out=after[1:])
    scales = after[1:].sum(-1)
    after[1:] /= scales.unsqueeze(-1).clamp_min(tiny)
    wrong = (after[1:] - found).abs_() > _TOLERANCE * found
    return scales, wrong.any(-1)
