"""Dropout whose random numbers cost little on a CPU."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

_LEVELS = 1 << 16  # a mask compares 16 random bits with a threshold
_LOWEST = torch.iinfo(torch.int64).min


class Dropout(nn.Module):
    """Sets each number to zero with ``probability`` in training and scales the rest up.

    On a GPU this is torch's dropout. On a CPU torch draws one random number for each element; here
    one of 64 bits serves four, and with a probability of 1/2 all its bits serve, which makes a mask
    many times as fast. The probability is met to 1/65536, and what is left is scaled by the
    probability that was in fact used.
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
        return values * _mask(values.shape, values.dtype, self.probability)

    def mask(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor | None:
        """What to multiply such values with, in training on a CPU; None where nothing drops."""
        if not self.training or self.probability == 0:
            return None
        return _mask(shape, dtype, self.probability)

    def extra_repr(self) -> str:
        """What ``print`` shows of the module."""
        return f"probability={self.probability}"


def _mask(shape: tuple[int, ...], dtype: torch.dtype, probability: float) -> Tensor:
    """0 or one over the share that is kept, at random."""
    kept = round((1 - probability) * _LEVELS)
    if kept == 0:
        return torch.zeros(shape, dtype=dtype)
    count = math.prod(shape)
    if 2 * kept == _LEVELS:
        halves = np.unpackbits(_random_words(-(-count // 64)).view(torch.uint8).numpy())
        return torch.from_numpy(halves)[:count].view(shape).to(dtype).mul_(2)
    lanes = _random_words(-(-count // 4)).view(torch.int16)[:count].view(shape)
    return (lanes < kept - _LEVELS // 2).to(dtype).mul_(_LEVELS / kept)


def _random_words(count: int) -> Tensor:
    """``[count]`` integers of 64 random bits."""
    return torch.empty(count, dtype=torch.int64).random_(_LOWEST, None)
