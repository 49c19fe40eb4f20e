"""Dropout whose random numbers cost little on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

_LEVELS = 1 << 16  # a mask compares 16 random bits with a threshold
_LOWEST = torch.iinfo(torch.int64).min


class Dropout(nn.Module):
    """Sets each number to zero with ``probability`` in training and scales the rest up.

    On a GPU this is torch's dropout. On a CPU torch draws one random number for each element; here
    one of 64 bits serves four, which makes a mask several times as fast. The probability is met to
    1/65536, and what is left is scaled by the probability that was in fact used.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, values: Tensor) -> Tensor:
        """``values`` of any shape, some of them zeroed; in evaluation as they are."""
        if not self.training or self.probability == 0:
            return values
        if values.device.type != "cpu":
            return functional.dropout(values, self.probability, training=True)
        return values * _mask(values, self.probability)

    def extra_repr(self) -> str:
        """What ``print`` shows of the module."""
        return f"probability={self.probability}"


def _mask(values: Tensor, probability: float) -> Tensor:
    """0 or one over the share that is kept, at random, as ``values`` in shape and type."""
    kept = round((1 - probability) * _LEVELS)
    if kept == 0:
        return torch.zeros_like(values)
    count = values.numel()
    bits = torch.empty((count + 3) // 4, dtype=torch.int64)
    bits.random_(_LOWEST, None)
    lanes = bits.view(torch.int16)[:count].view(values.shape)
    return (lanes < kept - _LEVELS // 2).to(values.dtype).mul_(_LEVELS / kept)
