"""Recurrent networks whose input is looked up: the first product is done once for each word.

What a word contributes to the gates of the first layer, its vector times the input weights, does
not depend on the sentence. For decoding it is computed once for each distinct word, stands in a
table, and every step of the network begins with a look-up instead of a matrix product. Rows stand
longest first, and a row that has ended is not computed any further, so padding costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ncrf.model.recurrent import Recurrent, reversed_places, take_places


class FoldedRecurrent:
    """A recurrent network in evaluation; letters as in data/batch, G gates, D directions.

    The inputs of the network are a part that depends on the word alone, ``type_width`` wide, and
    behind it feature vectors from ``feature_tables [rows, width]``. Holds copies of the weights of
    the first layer, as they are when it is made.
    """

    def __init__(
        self, recurrent: Recurrent, type_width: int, feature_tables: Sequence[Tensor]
    ) -> None:
        self._recurrent = recurrent
        rnn = recurrent.rnn
        self._lstm = rnn.mode == "LSTM"
        self._hidden = rnn.hidden_size
        suffixes = ["", "_reverse"] if rnn.bidirectional else [""]
        self._directions = len(suffixes)
        inputs, hidden, biases = zip(*map(self._weights, suffixes), strict=True)
        self._hidden_weights = torch.stack([w.t().contiguous() for w in hidden])  # [D,H,G*H]
        self._new_bias = torch.stack([bias[1] for bias in biases]).unsqueeze(1)  # [D,1,H], GRU
        self._type_weights = torch.cat([w[:, :type_width] for w in inputs])  # [D*G*H, type_width]
        self._bias = torch.cat([bias[0] for bias in biases])
        self.width = len(self._bias)
        self._features = []
        start = type_width
        for table in feature_tables:
            columns = slice(start, start + table.shape[1])
            weights = torch.cat([w[:, columns] for w in inputs])
            self._features.append((table @ weights.t()).view(-1, self.width // self._directions))
            start += table.shape[1]

    def _weights(self, suffix: str) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
        """Input weights ``[G*H,I]``, hidden ones ``[G*H,H]`` and biases of one direction.

        The gates of an LSTM come in the order input, forget, output, cell: those with a sigmoid
        side by side. The second bias is that of a GRU's new gate, which is inside a product.
        """
        rnn = self._recurrent.rnn
        parts = [
            getattr(rnn, f"{name}_l0{suffix}").detach()
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ]
        if self._lstm:
            parts = [_cell_last(part, self._hidden) for part in parts]
            for part in parts:
                part[3 * self._hidden :] *= 2  # see _walk_lstm
            inputs, hidden, bias, more = parts
            return inputs, 2 * hidden, (bias + more, more[: self._hidden])
        inputs, hidden, bias, more = parts
        bias = bias.clone()
        bias[: 2 * self._hidden] += more[: 2 * self._hidden]
        return inputs, hidden, (bias, more[2 * self._hidden :])

    def rows(self, type_vectors: Tensor) -> Tensor:
        """The rows ``[K, D*G*H]`` of words whose vectors are ``[K, type_width]``."""
        return torch.addmm(self._bias, type_vectors, self._type_weights.t())

    def __call__(
        self, table: Tensor, rows: Tensor, features: Tensor, lengths: Tensor
    ) -> tuple[Tensor, Tensor]:
        """States ``[B,L,H]`` and last states ``[B,H]``, as Recurrent has them; 0 at padding.

        Shapes:
            table: ``[K, D*G*H]``, contiguous; rows: ``[B,L]`` into it, longest sentence first.
            features: ``[F,B,L]``; lengths: ``[B]``, falling.
        """
        counts = (lengths.unsqueeze(1) > torch.arange(rows.shape[1])).sum(0).tolist()
        lookups = [(table.view(-1, self.width // self._directions), self._by_step(rows, lengths))]
        for values, ids in zip(self._features, features, strict=True):
            lookups.append((values, self._by_step(ids, lengths)))
        walk = self._walk_lstm if self._lstm else self._walk_gru
        out = table.new_zeros(len(counts), self._directions, len(rows), self._hidden)
        walk(out, counts, lookups)
        last = out[lengths - 1, :, torch.arange(len(rows))].flatten(1)
        states = out[:, 0].transpose(0, 1)
        if self._directions == 2:
            places = reversed_places(lengths, rows.shape[1])
            backward = take_places(out[:, 1].transpose(0, 1).contiguous(), places)
            states = torch.cat([states, backward], dim=2)
        return self._recurrent.further_layers(states.contiguous(), last, lengths)

    def _by_step(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Rows ``[L,D,B]`` of a look-up table with one row for each id and direction."""
        by_direction = [ids]
        if self._directions == 2:
            by_direction.append(ids.flatten()[reversed_places(lengths, ids.shape[1])].view_as(ids))
        stacked = torch.stack(by_direction).permute(2, 0, 1) * self._directions
        return stacked + torch.arange(self._directions).unsqueeze(1)

    def _gates(self, step: int, count: int, lookups: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """What the input says to the gates of the first ``count`` rows, ``[D,n,G*H]``."""
        total: Tensor | None = None
        for values, ids in lookups:
            part = values.index_select(0, ids[step, :, :count].flatten())
            total = part if total is None else total.add_(part)
        assert total is not None
        return total.view(self._directions, count, -1)

    def _walk_lstm(
        self, out: Tensor, counts: list[int], lookups: Sequence[tuple[Tensor, Tensor]]
    ) -> None:
        """Fill ``out [L,D,B,H]`` step by step; ``counts``: the rows that a step still has.

        tanh(x) is 2 sigmoid(2x) - 1, and a sigmoid takes a fifth of the time of torch's tanh. So
        the weights of the new cell are doubled, ``cells`` holds twice the cells and ``out``, until
        the end, half the states; the hidden weights are doubled once more for that.
        """
        size = self._hidden
        cells = torch.zeros_like(out[0])
        for step, count in enumerate(counts):
            gates = self._gates(step, count, lookups)
            if step:
                torch.baddbmm(gates, out[step - 1, :, :count], self._hidden_weights, out=gates)
            gates.sigmoid_()
            into, forget, output, new = (gates.narrow(2, i * size, size) for i in range(4))
            cell, state = cells[:, :count], out[step, :, :count]
            cell.mul_(forget).addcmul_(into, new.sub_(0.5), value=4)
            torch.sigmoid(cell, out=state).sub_(0.5).mul_(output)
        out *= 2

    def _walk_gru(
        self, out: Tensor, counts: list[int], lookups: Sequence[tuple[Tensor, Tensor]]
    ) -> None:
        """Likewise; gates in torch's order reset, update, new."""
        size = self._hidden
        for step, count in enumerate(counts):
            gates = self._gates(step, count, lookups)
            before = out[step - 1, :, :count] if step else torch.zeros_like(out[0, :, :count])
            hidden = torch.bmm(before, self._hidden_weights)
            both = gates[..., : 2 * size].add_(hidden[..., : 2 * size]).sigmoid_()
            reset, update = torch.split(both, size, 2)
            inner = hidden[..., 2 * size :].add_(self._new_bias)
            new = gates[..., 2 * size :].addcmul_(reset, inner).tanh_()
            torch.lerp(new, before, update, out=out[step, :, :count])


def _cell_last(values: Tensor, size: int) -> Tensor:
    """Blocks input, forget, cell, output ``[4*H, ...]`` as input, forget, output, cell."""
    into, forget, cell, output = torch.split(values, size)
    return torch.cat([into, forget, output, cell])
