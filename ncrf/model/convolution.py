"""Convolution over the characters of a word and its maximum, as matrix products.

On a CPU the general convolution spends more on arranging its input than on arithmetic when the
input is a batch's few hundred words. Here the windows of three characters are laid side by side and
multiplied in one product; the gradient goes through the one place that was the maximum.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_WIDTH = 3


def convolve_maximum(characters: Tensor, lengths: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Convolution of width 3 (zeros beyond the word) and the maximum over the word's places.

    Shapes:
        characters: ``[U,W,D]``, zero at padding; lengths: ``[U]``.
        weight: ``[H,D,3]`` and bias ``[H]``, as torch.nn.Conv1d has them.
        returns: ``[U,H]``.
    """
    if characters.is_cuda or torch.is_autocast_enabled(characters.device.type):
        convolved = torch.nn.functional.conv1d(characters.transpose(1, 2), weight, bias, padding=1)
        return convolved.masked_fill(_padding(characters, lengths)[:, None], -torch.inf).amax(2)
    result: Tensor = _ConvolveMaximum.apply(  # type: ignore[no-untyped-call]
        characters, weight, _padding(characters, lengths)
    )
    return result + bias


def _padding(characters: Tensor, lengths: Tensor) -> Tensor:
    """``[U,W]``, True beyond the end of each word."""
    lengths = lengths.to(characters.device, non_blocking=True)
    return torch.arange(characters.shape[1], device=characters.device) >= lengths[:, None]


class _ConvolveMaximum(torch.autograd.Function):
    """The convolution without its bias, and the maximum; see ``convolve_maximum``."""

    @staticmethod
    def forward(ctx: Any, characters: Tensor, weight: Tensor, padding: Tensor) -> Tensor:
        words, longest, width = characters.shape
        windows = characters.new_zeros(words, longest, _WIDTH, width)
        windows[:, 1:, 0] = characters[:, :-1]
        windows[:, :, 1] = characters
        windows[:, :-1, 2] = characters[:, 1:]
        windows = windows.view(words * longest, _WIDTH * width)
        matrix = weight.permute(2, 1, 0).reshape(_WIDTH * width, -1)
        scores = torch.mm(windows, matrix).view(words, longest, -1)
        best, place = scores.masked_fill_(padding.unsqueeze(2), -torch.inf).max(1)
        ctx.save_for_backward(windows, matrix, place)
        return best

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        windows, matrix, place = ctx.saved_tensors
        words, hidden = grad.shape
        longest, width = len(windows) // max(words, 1), windows.shape[1] // _WIDTH
        by_place = grad.new_zeros(words, longest, hidden)
        by_place = by_place.scatter_(1, place.unsqueeze(1), grad.unsqueeze(1)).flatten(0, 1)
        to_matrix = torch.mm(windows.t(), by_place)
        to_weight = to_matrix.view(_WIDTH, width, hidden).permute(2, 1, 0)
        to_windows = torch.mm(by_place, matrix.t()).view(words, longest, _WIDTH, width)
        to_characters = to_windows[:, :, 1].clone()
        to_characters[:, :-1] += to_windows[:, 1:, 0]
        to_characters[:, 1:] += to_windows[:, :-1, 2]
        return to_characters, to_weight, None
