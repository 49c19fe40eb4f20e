"""Convolution over the characters of a word and its maximum, as matrix products.

On a CPU the general convolution spends more on arranging its input than on arithmetic when the
input is a batch's few hundred words. Here the windows of three characters are laid side by side and
multiplied in one product; the gradient goes through the place that was the maximum (places that are
equal share it).
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
    autocast = torch.is_autocast_enabled(characters.device.type)
    if characters.is_cuda or autocast or not characters.numel():
        convolved = torch.nn.functional.conv1d(characters.transpose(1, 2), weight, bias, padding=1)
        return convolved.masked_fill(_padding(characters, lengths)[:, None], -torch.inf).amax(2)
    padding = None
    if int(lengths.min()) < characters.shape[1]:
        padding = _padding(characters, lengths).t()
    result: Tensor = _ConvolveMaximum.apply(  # type: ignore[no-untyped-call]
        characters.transpose(0, 1), weight, padding
    )
    return result + bias


def _padding(characters: Tensor, lengths: Tensor) -> Tensor:
    """``[U,W]``, True beyond the end of each word."""
    lengths = lengths.to(characters.device, non_blocking=True)
    return torch.arange(characters.shape[1], device=characters.device) >= lengths[:, None]


class _ConvolveMaximum(torch.autograd.Function):
    """The convolution without its bias, and the maximum; see ``convolve_maximum``.

    Here the place within the word comes first, ``[W,U,D]``: then a window lies in three pieces of
    the same shape, and the maximum is one of whole rows.
    """

    @staticmethod
    def forward(ctx: Any, characters: Tensor, weight: Tensor, padding: Tensor | None) -> Tensor:
        longest, words, width = characters.shape
        places = longest * words
        padded = characters.new_zeros(places + 2 * words, width)
        padded[words:-words].view_as(characters).copy_(characters)
        pieces = [padded[i * words : i * words + places] for i in range(_WIDTH)]
        windows = torch.cat(pieces, 1)
        matrix = weight.permute(2, 1, 0).reshape(_WIDTH * width, -1)
        scores = torch.mm(windows, matrix).view(longest, words, -1)
        if padding is not None:
            beyond = torch.zeros_like(padding, dtype=scores.dtype).masked_fill_(padding, -torch.inf)
            scores += beyond.unsqueeze(2)
        best = scores.amax(0)
        ctx.save_for_backward(windows, matrix, scores, best)
        return best

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        windows, matrix, scores, best = ctx.saved_tensors
        longest, words, hidden = scores.shape
        width = windows.shape[1] // _WIDTH
        chosen = (scores - best).sign_().add_(1.0)  # 1 at the maximum, 0 elsewhere
        by_place = chosen.mul_(grad / chosen.sum(0)).view(-1, hidden)
        to_matrix = torch.mm(windows.t(), by_place)
        to_weight = to_matrix.view(_WIDTH, width, hidden).permute(2, 1, 0)
        to_windows = torch.mm(by_place, matrix.t())
        before, here, after = to_windows.chunk(_WIDTH, 1)
        to_characters = here.clone()
        to_characters[:-words] += before[words:]
        to_characters[words:] += after[:-words]
        return to_characters.view(longest, words, width), to_weight, None
