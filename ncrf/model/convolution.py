"""Convolution over the characters of a word and its maximum, as matrix products.

On a CPU the general convolution spends more on arranging its input than on arithmetic when the
input is a batch's few hundred words. Here the characters lie together without padding, the windows
of three characters are laid side by side and multiplied in one product; the gradient goes through
the place that was the maximum (places that are equal share it).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ncrf.data.dataset import IntArray
from ncrf.model.side_by_side import at_once

WIDTH = 3
_LONG = 1 << 7  # characters of a word: beyond, an operation for each place is too much
_MANY = 1 << 10  # characters: for fewer, a thread costs more than it saves


def convolve_maximum(characters: Tensor, lengths: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Convolution of width 3 (zeros beyond the word) and the maximum over the word's places.

    Shapes:
        characters: ``[U,W,D]``, zero at padding; lengths: ``[U]``, each at least 1.
        weight: ``[H,D,3]`` and bias ``[H]``, as torch.nn.Conv1d has them.
        returns: ``[U,H]``.
    """
    if not multiplies_windows(characters):
        padding = torch.arange(characters.shape[1], device=characters.device) >= lengths.to(
            characters.device, non_blocking=True
        ).unsqueeze(1)
        convolved = torch.nn.functional.conv1d(characters.transpose(1, 2), weight, bias, padding=1)
        return convolved.masked_fill(padding[:, None], -torch.inf).amax(2)
    order = torch.argsort(lengths, descending=True)
    packed = PackedWords.of(lengths[order].numpy())
    places = order[packed.word] * characters.shape[1] + packed.place
    found = convolve_packed(characters.flatten(0, 1), places, packed, weight, bias)
    return found.index_select(0, torch.argsort(order))


def multiplies_windows(characters: Tensor) -> bool:
    """Whether this module's own way is taken for these: in full precision on a CPU."""
    on_cpu = characters.device.type == "cpu"
    return on_cpu and not torch.is_autocast_enabled("cpu") and characters.numel() > 0


@dataclass(frozen=True)
class PackedWords:
    """The N characters of words without padding: all first ones, then all second ones, and so on.

    The words stand in descending order of their lengths, each of at least one character.

    Shapes:
        counts: how many words have a first character, a second one, ...
        word, place: ``[N]`` which word a character is of, and its place there.
        windows: ``[3*N]`` the three characters around each one, N for none.
        uses: ``[N,3]`` where in ``windows`` each character is, 3*N or more for nowhere.
    """

    counts: list[int]
    word: Tensor
    place: Tensor
    windows: Tensor
    uses: Tensor

    @classmethod
    def of(cls, lengths: IntArray) -> PackedWords:
        """Those of words with ``lengths [U]``, descending."""
        places = np.arange(lengths[0])
        counts = len(lengths) - np.searchsorted(lengths[::-1], places, side="right")
        here = np.arange(counts.sum())
        word = here - np.repeat(counts.cumsum() - counts, counts)
        before = here - np.repeat(np.append(0, counts[:-1]), counts)
        before[: len(lengths)] = len(here)
        after = here + np.repeat(counts, counts)
        after[word >= np.repeat(np.append(counts[1:], 0), counts)] = len(here)
        windows = np.stack([before, here, after], axis=1)
        return cls(
            counts=counts.tolist(),
            word=torch.from_numpy(word),
            place=torch.from_numpy(np.repeat(places, counts)),
            windows=torch.from_numpy(windows.ravel()),
            # A character is the last one of the window before it and the first one of that after.
            uses=torch.from_numpy(WIDTH * windows + [2, 1, 0]),
        )


def convolve_packed(
    table: Tensor,
    ids: Tensor,
    words: PackedWords,
    weight: Tensor,
    bias: Tensor,
    mask: Tensor | None = None,
) -> Tensor:
    """The same for packed words, on a CPU, their characters rows of a table.

    Shapes:
        table: ``[K,D]``; ids: ``[N]`` rows of it, as ``words`` orders the characters.
        weight: ``[H,D,3]``; bias: ``[H]``.
        mask: ``[N,D]``, what the rows are multiplied by.
        returns: ``[U,H]``, the longest word first.
    """
    found: Tensor = _ConvolveMaximum.apply(  # type: ignore[no-untyped-call]
        table, weight, bias, ids, words, mask
    )
    return found


def _maxima(scores: Tensor, words: PackedWords) -> Tensor:
    """The largest scores ``[U,H]`` of each word's places, ``[N,H]``."""
    if len(words.counts) > _LONG:
        index = words.word.unsqueeze(1).expand_as(scores)
        lowest = scores.new_full((words.counts[0], scores.shape[1]), -torch.inf)
        return lowest.scatter_reduce_(0, index, scores, "amax")
    first, *others = torch.split(scores, words.counts)
    best = first.clone()
    for other in others:
        reached = best[: len(other)]
        torch.maximum(reached, other, out=reached)
    return best


class _ConvolveMaximum(torch.autograd.Function):
    """See ``convolve_packed``; from the rows of the table to the maximum, and back."""

    @staticmethod
    def forward(
        ctx: Any,
        table: Tensor,
        weight: Tensor,
        bias: Tensor,
        ids: Tensor,
        words: PackedWords,
        mask: Tensor | None,
    ) -> Tensor:
        hidden, width, _ = weight.shape
        characters = table.new_zeros(len(ids) + 1, width)
        torch.index_select(table, 0, ids, out=characters[:-1])
        if mask is not None:
            characters[:-1] *= mask
        windows = characters.index_select(0, words.windows).view(len(ids), WIDTH * width)
        matrix = weight.permute(2, 1, 0).reshape(WIDTH * width, hidden)
        scores = torch.mm(windows, matrix)
        best = _maxima(scores, words)
        ctx.words, ctx.rows = words, len(table)
        ctx.save_for_backward(ids, mask, windows, matrix, scores, best)
        return best + bias

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        ids, mask, windows, matrix, scores, best = ctx.saved_tensors
        words, width = ctx.words, windows.shape[1] // WIDTH
        chosen = best.index_select(0, words.word)
        torch.sub(scores, chosen, out=chosen).sign_().add_(1.0)  # 1 at the maximum, 0 elsewhere
        equal = torch.zeros_like(best).index_add_(0, words.word, chosen)
        chosen *= (grad / equal).index_select(0, words.word)
        to_matrix = torch.empty_like(matrix)
        to_windows = torch.empty(len(ids) + 1, WIDTH * width, dtype=chosen.dtype)
        to_windows[-1] = 0.0
        products = [
            partial(torch.mm, chosen, matrix.t(), out=to_windows[:-1]),
            partial(torch.mm, windows.t(), chosen, out=to_matrix),
        ]
        at_once(products, shared=len(ids) >= _MANY)
        to_weight = to_matrix.view(WIDTH, width, -1).permute(2, 1, 0)
        to_characters = torch.nn.functional.embedding_bag(
            words.uses, to_windows.view(-1, width), mode="sum"
        )
        if mask is not None:
            to_characters *= mask
        to_table = to_characters.new_zeros(ctx.rows, width).index_add_(0, ids, to_characters)
        return to_table, to_weight, grad.sum(0), None, None, None
