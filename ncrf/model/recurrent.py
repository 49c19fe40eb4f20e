"""LSTM and GRU over padded rows of different lengths, the same numbers on CPU and GPU."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

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

    def forward(self, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Run over the rows.

        Shapes:
            inputs: ``[B,L,D]``; lengths: ``[B]``, each at least 1.
            returns: states ``[B,L,H]`` (meaningless at padding) and the last state of each
            direction, ``[B,H]``.
        """
        if inputs.is_cuda:
            return self._packed(inputs, lengths)
        return self._layers(range(self.rnn.num_layers), inputs, inputs[:, 0], lengths)

    def further_layers(
        self, states: Tensor, last: Tensor, lengths: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What ``forward`` returns, given what the first layer made of the input; on a CPU."""
        return self._layers(range(1, self.rnn.num_layers), states, last, lengths)

    def _layers(
        self, layers: range, states: Tensor, last: Tensor, lengths: Tensor
    ) -> tuple[Tensor, Tensor]:
        if not layers:
            return states, last
        reverse = reversed_places(lengths, states.shape[1])
        last_place = (lengths - 1).view(-1, 1, 1).expand(-1, 1, self.rnn.hidden_size)
        for layer in layers:
            inputs = [states]
            if self.rnn.bidirectional:
                inputs.append(take_places(states, reverse))
            states, *backward = self._directions(inputs, layer)
            last = states.gather(1, last_place).squeeze(1)
            for backward_states in backward:
                last = torch.cat([last, backward_states.gather(1, last_place).squeeze(1)], dim=1)
                states = torch.cat([states, take_places(backward_states, reverse)], dim=2)
        return states, last

    def _directions(self, inputs: Sequence[Tensor], layer: int) -> list[Tensor]:
        """The directions of one layer, each over rows of its own, ``[B,L,D]`` to ``[B,L,H]``.

        Threads share directions and, where there are more threads, rows.
        """
        rows = len(inputs[0])
        shares = max(1, min(thread_count() // len(inputs), rows // _FEWEST))
        parts = []
        for words, suffix in zip(inputs, ("", "_reverse"), strict=False):
            weights = [getattr(self.rnn, f"{name}_l{layer}{suffix}") for name in _WEIGHTS]
            run = partial(self._one_way, weights=weights)
            parts += [Part(run, [share], weights) for share in words.chunk(shares)]
        states = side_by_side(parts)
        if shares == 1:
            return list(states)
        each = len(parts) // len(inputs)
        return [torch.cat(states[first : first + each]) for first in range(0, len(parts), each)]

    def _one_way(self, inputs: Tensor, weights: list[Tensor]) -> Tensor:
        zero = inputs.new_zeros(1, inputs.shape[0], self.rnn.hidden_size)
        options = (weights, True, 1, 0.0, self.training, False, True)
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
    """Flat places that reverse each row within its length: ``[B*L]`` into rows of length L."""
    steps = torch.arange(longest, device=lengths.device)
    mirrored = lengths[:, None] - 1 - steps
    within = torch.where(mirrored >= 0, mirrored, steps)
    return (within + longest * torch.arange(len(lengths), device=lengths.device)[:, None]).flatten()


def take_places(rows: Tensor, places: Tensor) -> Tensor:
    """``rows [B,L,D]`` with their positions swapped as ``places [B*L]`` of reversed_places says."""
    swapped: Tensor = _Swapped.apply(rows, places)  # type: ignore[no-untyped-call]
    return swapped


class _Swapped(torch.autograd.Function):
    """A permutation that is its own inverse, so its gradient is the same swap, not a sum."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        return rows.flatten(0, 1).index_select(0, places).view_as(rows)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        return take_places(grad, places), None
