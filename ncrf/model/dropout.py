"""Dropout whose random numbers cost little on a CPU."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

_LEVELS = 1 << 16  # a mask compares 16 random bits with a threshold
_LOWEST = torch.iinfo(torch.int64).min


class Dropout(nn.Module):
    """Sets each number to zero with ``probability`` in training and scales the rest up.

    With ``shared``, the number of a dimension, what is dropped is the same all along it: at every
    position of a sentence (variational dropout, Gal and Ghahramani 2016).

    On a GPU this is torch's dropout. On a CPU torch draws one random number for each element; here
    one of 64 bits serves four, and with a probability of 1/2 all its bits serve, which makes a mask
    many times as fast. The probability is met to 1/65536, and what is left is scaled by the
    probability that was in fact used.
    """

    def __init__(self, probability: float, shared: int | None = None) -> None:
        super().__init__()
        self.probability = probability
        self.shared = shared

    def forward(self, values: Tensor) -> Tensor:
        """``values`` of any shape, some of them zeroed; in evaluation as they are.

        One vector a row, ``[B,H]``, has no dimension to share along.
        """
        if not self.training or self.probability == 0:
            return values
        shape = list(values.shape)
        if self.shared is not None and len(shape) > 2:
            shape[self.shared] = 1
        elif values.device.type != "cpu":
            return functional.dropout(values, self.probability, training=True)
        return values * _mask(shape, values, self.probability)

    def mask(self, shape: Sequence[int], like: Tensor) -> Tensor | None:
        """What to multiply values of this shape with in training; None where nothing drops."""
        if not self.training or self.probability == 0:
            return None
        return _mask(shape, like, self.probability)

    def extra_repr(self) -> str:
        """What ``print`` shows of the module."""
        shared = "" if self.shared is None else f", shared={self.shared}"
        return f"probability={self.probability}{shared}"


class WordDropout(nn.Module):
    """Sets all of a word's numbers to zero with ``probability`` in training (Iyyer et al. 2015).

    The words that are left are not scaled: a sentence that misses a word tells no more of the
    others.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, words: Tensor) -> Tensor:
        """``words [B,L,D]``, some of them zeroed; in evaluation as they are."""
        if not self.training or self.probability == 0:
            return words
        return words * _mask([*words.shape[:2], 1], words, self.probability).sign()

    def extra_repr(self) -> str:
        """What ``print`` shows of the module."""
        return f"probability={self.probability}"


def _mask(shape: Sequence[int], like: Tensor, probability: float) -> Tensor:
    """0 or one over the share that is kept, at random; typed and placed as ``like``."""
    if like.device.type != "cpu":
        return functional.dropout(like.new_ones(shape), probability, training=True)
    kept = round((1 - probability) * _LEVELS)
    if kept == 0:
        return like.new_zeros(shape)
    count = math.prod(shape)
    if 2 * kept == _LEVELS:
        halves = np.unpackbits(_random_words(-(-count // 64)).view(torch.uint8).numpy())
        return torch.from_numpy(halves)[:count].view(*shape).to(like.dtype).mul_(2)
    lanes = _random_words(-(-count // 4)).view(torch.int16)[:count].view(*shape)
    return (lanes < kept - _LEVELS // 2).to(like.dtype).mul_(_LEVELS / kept)


def _random_words(count: int) -> Tensor:
    """``[count]`` integers of 64 random bits."""
    return torch.empty(count, dtype=torch.int64).random_(_LOWEST, None)
