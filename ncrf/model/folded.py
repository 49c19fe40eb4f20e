"""Recurrent networks whose input is looked up: the first product is done once for each word.

What a word contributes to the gates of the first layer, its vector times the input weights, does
not depend on the sentence. For decoding it is computed once for each distinct word, stands in a
table, and every step of the network begins with a look-up instead of a matrix product. Rows stand
longest first, and a row that has ended is not computed any further, so padding costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ncrf.model.recurrent import Recurrent, reversed_places, take_places

_LOOKED_UP = 1024  # words in one look-up over several steps


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

    def emissions(
        self,
        table: Tensor,
        rows: Tensor,
        features: Tensor,
        lengths: Tensor,
        projection: nn.Linear,
    ) -> Tensor:
        """The states through a projection, ``[B,L,Y]``; 0 at padding. Shapes as in ``states``.

        Of a single layer each direction is projected by itself, where its states stand: what is
        then put together is as wide as the labels.
        """
        if self._recurrent.rnn.num_layers > 1:
            found: Tensor = projection(self.states(table, rows, features, lengths))
            return found
        out = self._walk(table, rows, features, lengths)
        weights = projection.weight.view(-1, self._directions, self._hidden).transpose(0, 1)
        padding = torch.arange(rows.shape[1]) >= lengths.unsqueeze(1)
        total = (out[:, 0] @ weights[0].t()).transpose(0, 1) + projection.bias
        if self._directions == 2:
            backward = (out[:, 1] @ weights[1].t()).transpose(0, 1).contiguous()
            total += take_places(backward, reversed_places(lengths, rows.shape[1]))
        return total.masked_fill_(padding.unsqueeze(2), 0)

    def states(self, table: Tensor, rows: Tensor, features: Tensor, lengths: Tensor) -> Tensor:
        """States ``[B,L,H]`` (meaningless at padding), as in Recurrent.

        Shapes:
            table: ``[K, D*G*H]``, contiguous; rows: ``[B,L]`` into it, longest sentence first.
            features: ``[F,B,L]``; lengths: ``[B]``, falling.
        """
        out = self._walk(table, rows, features, lengths)
        found: Tensor = self._recurrent(self._by_sentence(out, lengths), lengths, first_layer=1)
        return found

    def last(self, table: Tensor, rows: Tensor, features: Tensor, lengths: Tensor) -> Tensor:
        """Last states ``[B,H]``, likewise."""
        out = self._walk(table, rows, features, lengths)
        if self._recurrent.rnn.num_layers > 1:
            return self._recurrent.last(self._by_sentence(out, lengths), lengths, first_layer=1)
        return out[lengths - 1, :, torch.arange(len(rows))].flatten(1)

    def _by_sentence(self, out: Tensor, lengths: Tensor) -> Tensor:
        """What ``_walk`` returns as states ``[B,L,H]`` of both directions."""
        states = out[:, 0].transpose(0, 1)
        if self._directions == 2:
            places = reversed_places(lengths, states.shape[1])
            backward = take_places(out[:, 1].transpose(0, 1).contiguous(), places)
            states = torch.cat([states, backward], dim=2)
        return states

    def _walk(self, table: Tensor, rows: Tensor, features: Tensor, lengths: Tensor) -> Tensor:
        """States ``[L,D,B,H]`` by step; rows that have ended hold no numbers of any meaning."""
        lookups = [(table.view(-1, self.width // self._directions), self._by_step(rows, lengths))]
        for values, ids in zip(self._features, features, strict=True):
            lookups.append((values, self._by_step(ids, lengths)))
        walk = self._walk_lstm if self._lstm else self._walk_gru
        out = table.new_empty(rows.shape[1], self._directions, len(rows), self._hidden)
        out[0] = 0  # what the first step finds before it
        if self._recurrent.rnn.num_layers > 1:
            out[1:] = 0  # the next layer reads padding too, and no NaN may come of it
        walk(out, _parts(lengths, rows.shape[1]), lookups)
        return out

    def _by_step(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Rows ``[L,D,B]`` of a look-up table with one row for each id and direction."""
        by_direction = [ids]
        if self._directions == 2:
            by_direction.append(ids.flatten()[reversed_places(lengths, ids.shape[1])].view_as(ids))
        stacked = torch.stack(by_direction).permute(2, 0, 1) * self._directions
        return stacked + torch.arange(self._directions).unsqueeze(1)

    def _gates(self, part: _Part, lookups: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """What the input says to the gates, ``[S,D,n,G*H]`` of the S steps of a part."""
        total: Tensor | None = None
        for values, ids in lookups:
            chosen = ids[part.first : part.first + part.steps, :, : part.count]
            found = values.index_select(0, chosen.flatten())
            total = found if total is None else total.add_(found)
        assert total is not None
        return total.view(part.steps, self._directions, part.count, -1)

    def _walk_lstm(
        self, out: Tensor, parts: Iterable[_Part], lookups: Sequence[tuple[Tensor, Tensor]]
    ) -> None:
        """Fill ``out [L,D,B,H]`` step by step.

        tanh(x) is 2 sigmoid(2x) - 1, and a sigmoid takes a fifth of the time of torch's tanh. So
        the weights of the new cell are doubled, ``cells`` holds twice the cells and ``out``, until
        the end, half the states; the hidden weights are doubled once more for that.
        """
        weights = self._hidden_weights
        cells = torch.zeros_like(out[0])
        half = out.new_tensor(0.5)  # made once: for a single sentence, each step would wait for it
        for part in parts:
            cell, before, states = cells[:, : part.count], *_states(out, part)
            together = self._gates(part, lookups)
            apart = [gate.unbind(0) for gate in together.chunk(4, 3)]
            for gates, into, forget, output, new, state in zip(
                together.unbind(0), *apart, states, strict=True
            ):
                torch.baddbmm(gates, before, weights, out=gates)
                gates.sigmoid_()
                cell.mul_(forget).addcmul_(into, new.sub_(half), value=4)
                torch.sigmoid(cell, out=state).sub_(half).mul_(output)
                before = state
        out *= 2

    def _walk_gru(
        self, out: Tensor, parts: Iterable[_Part], lookups: Sequence[tuple[Tensor, Tensor]]
    ) -> None:
        """Likewise; gates in torch's order reset, update, new."""
        size = self._hidden
        for part in parts:
            before, states = _states(out, part)
            for gates, state in zip(self._gates(part, lookups).unbind(0), states, strict=True):
                hidden = torch.bmm(before, self._hidden_weights)
                both = gates[..., : 2 * size].add_(hidden[..., : 2 * size]).sigmoid_()
                reset, update = torch.split(both, size, 2)
                inner = hidden[..., 2 * size :].add_(self._new_bias)
                new = gates[..., 2 * size :].addcmul_(reset, inner).tanh_()
                before = torch.lerp(new, before, update, out=state)


@dataclass(frozen=True)
class _Part:
    """Steps in a row, from ``first`` on, for which the first ``count`` rows have a word."""

    first: int
    steps: int
    count: int


def _parts(lengths: Tensor, longest: int) -> Iterator[_Part]:
    """All steps in parts; few rows take many steps at once, so that little is looked up often."""
    counts = (lengths.unsqueeze(1) > torch.arange(longest)).sum(0).tolist()
    step = 0
    while step < longest:
        count = counts[step]
        most = max(1, _LOOKED_UP // count)
        end = next((t for t in range(step, longest) if counts[t] != count), longest)
        steps = min(end - step, most)
        yield _Part(step, steps, count)
        step += steps


def _states(out: Tensor, part: _Part) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The states ``[D,n,H]`` before a part, 0 before the first step, and where its own go."""
    steps = slice(part.first, part.first + part.steps)
    # Before the first step stands the zero that it overwrites.
    return out[max(0, part.first - 1), :, : part.count], out[steps, :, : part.count].unbind(0)


def _cell_last(values: Tensor, size: int) -> Tensor:
    """Blocks input, forget, cell, output ``[4*H, ...]`` as input, forget, output, cell."""
    into, forget, cell, output = torch.split(values, size)
    return torch.cat([into, forget, output, cell])
