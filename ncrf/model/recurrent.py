"""LSTM and GRU over padded rows of different lengths, the same numbers on CPU and GPU."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ncrf.data.dataset import IntArray
from ncrf.model.side_by_side import Part, side_by_side, thread_count

_FEWEST = 16  # rows for a thread: with fewer, a thread costs more than it saves
_WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
_CELLS: dict[str, type[nn.LSTM] | type[nn.GRU]] = {"LSTM": nn.LSTM, "GRU": nn.GRU}


class Recurrent(nn.Module):
    """A one- or two-way recurrent network of ``layers`` layers.

    The parameters are those of torch.nn.LSTM or GRU (``rnn.weight_ih_l0``,
    ``rnn.weight_ih_l0_reverse``, ...). On a GPU the packed cuDNN path runs; on a CPU, where
    packing costs more than it saves, the two directions run as two one-way networks on the
    padded rows, the second on each row reversed within its own length.
    """

    def __init__(
        self, cell: str, input_size: int, hidden_size: int, *, layers: int, bidirectional: bool
    ) -> None:
        super().__init__()
        self.rnn = _CELLS[cell](
            input_size, hidden_size, layers, batch_first=True, bidirectional=bidirectional
        )
        self.output_size = hidden_size * (2 if bidirectional else 1)

    def forward(self, inputs: Tensor, lengths: Tensor, first_layer: int = 0) -> Tensor:
        """The states of rows, ``[B,L,D]`` to ``[B,L,H]``; meaningless at padding.

        ``lengths [B]`` are each at least 1. The input is that of ``first_layer``: on a CPU, layers
        before it can be left to somebody else.
        """
        if inputs.is_cuda:
            return self._packed(inputs, lengths)[0]
        return self._states(inputs, lengths, range(first_layer, self.rnn.num_layers))

    def last(self, inputs: Tensor, lengths: Tensor, first_layer: int = 0) -> Tensor:
        """The last state of each direction, ``[B,L,D]`` to ``[B,H]``; likewise."""
        if inputs.is_cuda:
            return self._packed(inputs, lengths)[1]
        states = self._states(inputs, lengths, range(first_layer, self.rnn.num_layers - 1))
        return self._last(states, lengths)

    def _states(self, states: Tensor, lengths: Tensor, layers: range) -> Tensor:
        for layer in layers:
            states = torch.cat(self._directions(states, lengths, layer), dim=2)
        return states

    def _last(self, states: Tensor, lengths: Tensor) -> Tensor:
        """The last states of the last layer, ``[B,H]``, of what comes into it."""
        place = (lengths - 1).view(-1, 1, 1).expand(-1, 1, self.rnn.hidden_size)
        forward, *backward = self._directions(states, lengths, self.rnn.num_layers - 1)
        # The backward direction ends where the row begins.
        ends = [forward.gather(1, place).squeeze(1), *(states[:, 0] for states in backward)]
        return torch.cat(ends, dim=1)

    def _directions(self, inputs: Tensor, lengths: Tensor, layer: int) -> list[Tensor]:
        """The states of each direction of one layer, ``[B,L,D]`` to ``[B,L,H]``.

        Threads share directions and, where there are more threads, rows.
        """
        directions = [(self._forward, "")]
        if self.rnn.bidirectional:  # the one that is more work first: this thread begins at once
            directions.insert(0, (self._backward, "_reverse"))
        shares = max(1, min(thread_count() // len(directions), len(inputs) // _FEWEST))
        rows, of_rows = inputs.chunk(shares), lengths.chunk(shares)
        parts = []
        for direction, suffix in directions:
            weights = [getattr(self.rnn, f"{name}_l{layer}{suffix}") for name in _WEIGHTS]
            parts += [
                Part(partial(direction, lengths=length, weights=weights), [share], weights)
                for share, length in zip(rows, of_rows, strict=True)
            ]
        states = side_by_side(parts)
        each = len(rows)
        found = [
            torch.cat(states[first : first + each]) if each > 1 else states[first]
            for first in range(0, len(states), each)
        ]
        return found[::-1]

    def _forward(self, inputs: Tensor, lengths: Tensor, weights: list[Tensor]) -> Tensor:
        return self._one_way(inputs, weights, batch_first=True)

    def _backward(self, inputs: Tensor, lengths: Tensor, weights: list[Tensor]) -> Tensor:
        """The same from the end of each row to its beginning."""
        there, back = _reversal(lengths.numpy(), inputs.shape[1])
        steps = _Permuted.apply(inputs.flatten(0, 1), there, back)  # type: ignore[no-untyped-call]
        steps = steps.view(inputs.shape[1], inputs.shape[0], -1)
        states = self._one_way(steps, weights, batch_first=False).flatten(0, 1)
        found: Tensor = _Permuted.apply(states, back, there)  # type: ignore[no-untyped-call]
        return found.view(*inputs.shape[:2], -1)

    def _one_way(self, inputs: Tensor, weights: list[Tensor], *, batch_first: bool) -> Tensor:
        rows = inputs.shape[0 if batch_first else 1]
        zero = inputs.new_zeros(1, rows, self.rnn.hidden_size)
        options = (weights, True, 1, 0.0, self.training, False, batch_first)
        if self.rnn.mode == "LSTM":
            output: Tensor = torch.lstm(inputs, (zero, zero), *options)[0]
        else:
            output = torch.gru(inputs, zero, *options)[0]
        return output

    def _packed(self, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        lengths = lengths.cpu()  # which they mostly are: see data/batch
        packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        output, final = self.rnn(packed)
        states, _ = pad_packed_sequence(output, batch_first=True, total_length=inputs.shape[1])
        hidden = final[0] if self.rnn.mode == "LSTM" else final
        directions = 2 if self.rnn.bidirectional else 1
        return states, hidden[-directions:].transpose(0, 1).flatten(1)


def reversed_places(lengths: Tensor, longest: int) -> Tensor:
    """Flat places that reverse each row within its length: ``[B*L]`` into rows of length L.

    What stands behind the end of a row stays.
    """
    within = _mirrored(lengths.numpy(), longest)
    return torch.from_numpy((within + longest * np.arange(len(within))[:, None]).ravel())


def take_places(rows: Tensor, places: Tensor) -> Tensor:
    """``rows [B,L,D]`` with their positions swapped as ``places [B*L]`` of reversed_places says."""
    return rows.flatten(0, 1).index_select(0, places).view_as(rows)


def _mirrored(lengths: IntArray, longest: int) -> IntArray:
    """The place that each of ``[B,L]`` has in its row when that is reversed."""
    steps = np.arange(longest)
    mirrored = lengths[:, None] - 1 - steps
    return np.where(mirrored >= 0, mirrored, steps)


def _reversal(lengths: IntArray, longest: int) -> tuple[Tensor, Tensor]:
    """Flat places that make reversed rows, step by step, ``[L*B]``, of ``[B,L]``; and back."""
    within = _mirrored(lengths, longest)
    row = np.arange(len(lengths))[:, None]
    there = (within + longest * row).T.ravel()
    back = (within * len(lengths) + row).ravel()
    return torch.from_numpy(there), torch.from_numpy(back)


class _Permuted(torch.autograd.Function):
    """Rows in another order, and the order that undoes it: the gradient is no sum."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, there: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(there, back)
        return rows.index_select(0, there)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        there, back = ctx.saved_tensors
        found: Tensor = _Permuted.apply(grad, back, there)  # type: ignore[no-untyped-call]
        return found, None, None
