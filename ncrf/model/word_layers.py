"""Word layers: the word vectors of a sentence to states that know their context.

A word layer is built as ``layer(keys, input_size, dropout)`` with the key group of the word
layer; it has ``output_size`` and maps word vectors ``[B,L,D]``, the mask ``[B,L]`` and lengths
``[B]`` to states ``[B,L,H]``. Padding must not change a state at a word. For sentence
classification ``pool`` gives one vector a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ncrf.config.schema import WordLayer as WordLayerKeys
from ncrf.model.dropout import Dropout
from ncrf.model.recurrent import Recurrent
from ncrf.model.registry import Registry


class WordLayer(nn.Module):
    """What every word layer is: a module that knows the width of its states."""

    output_size: int

    def pool(self, words: Tensor, mask: Tensor, lengths: Tensor) -> Tensor:
        """One vector a sentence, ``[B,H]``: the maximum over its words, unless overridden."""
        return masked_maximum(self(words, mask, lengths), mask)


def masked_maximum(states: Tensor, mask: Tensor) -> Tensor:
    """The maximum over real positions, ``[B,L,H]`` to ``[B,H]``."""
    return states.masked_fill(~mask.unsqueeze(2), float("-inf")).amax(dim=1)


WORD_LAYERS: Registry[WordLayer] = Registry("word_seq_feature")


class RecurrentWordLayer(WordLayer):
    """Recurrent network and dropout on its output."""

    cell: str

    def __init__(self, keys: WordLayerKeys, input_size: int, dropout: float) -> None:
        super().__init__()
        directions = 2 if keys.bilstm else 1
        self.recurrent = Recurrent(
            self.cell,
            input_size,
            keys.hidden_dim // directions,
            layers=keys.lstm_layer,
            bidirectional=keys.bilstm,
        )
        self.dropout = Dropout(dropout, shared=1 if keys.locked_dropout else None)
        self.output_size = self.recurrent.output_size

    def forward(self, words: Tensor, mask: Tensor, lengths: Tensor) -> Tensor:
        """Word vectors ``[B,L,D]`` to states ``[B,L,H]``."""
        states: Tensor = self.dropout(self.recurrent(words, lengths))
        return states

    def pool(self, words: Tensor, mask: Tensor, lengths: Tensor) -> Tensor:
        """The last state of each direction, ``[B,H]``."""
        last: Tensor = self.dropout(self.recurrent.last(words, lengths))
        return last


@WORD_LAYERS.register("LSTM")
class WordLSTM(RecurrentWordLayer):
    """LSTM over the words; ``hidden_dim`` is the width over both directions."""

    cell = "LSTM"


@WORD_LAYERS.register("GRU")
class WordGRU(RecurrentWordLayer):
    """GRU over the words; ``hidden_dim`` is the width over both directions."""

    cell = "GRU"


@WORD_LAYERS.register("CNN")
class WordCNN(WordLayer):
    """tanh(linear), then ``cnn_layer`` times convolution, ReLU, dropout, batch normalization.

    Computed for the words alone, ``[T,H]``, one sentence behind the other: a convolution of three
    words is then a single matrix product, and statistics are those of words. ``cnn_padding`` words
    more behind each sentence, all zeros, are computed as words are; the scales of normalization
    then begin uniform in [0, 1), as in PyTorch before 1.2, when NCRF++'s results were made.
    """

    def __init__(self, keys: WordLayerKeys, input_size: int, dropout: float) -> None:
        super().__init__()
        self.output_size = width = keys.hidden_dim
        self.padding = keys.cnn_padding
        self.input_projection = nn.Linear(input_size, width)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(width, width, kernel_size=3, padding=1) for _ in range(keys.cnn_layer)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(keys.cnn_layer))
        for norm in self.norms if self.padding else ():
            assert isinstance(norm.weight, Tensor)
            nn.init.uniform_(norm.weight)
        self.dropout = Dropout(dropout, shared=1 if keys.locked_dropout else None)

    def forward(self, words: Tensor, mask: Tensor, lengths: Tensor) -> Tensor:
        """Word vectors ``[B,L,D]`` to states ``[B,L,H]``, 0 at padding."""
        neighbours = _Neighbours.of(lengths, words.shape[1], words.device, self.padding)
        flat = words.flatten(0, 1).index_select(0, neighbours.places)
        states = torch.tanh(self.input_projection(flat))
        if self.padding:
            of_padding = torch.tanh(self.input_projection.bias).to(states.dtype)
            rows = of_padding.expand(len(neighbours.sentence), -1)
            states = rows.index_copy(0, neighbours.words, states)
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            weight, bias = convolution.weight, convolution.bias
            assert isinstance(weight, Tensor) and isinstance(bias, Tensor)
            matrix = weight.permute(2, 1, 0).reshape(-1, self.output_size)
            convolved = torch.addmm(bias, neighbours.beside(states), matrix)
            states = self._dropped(torch.relu(convolved), neighbours.sentence, len(lengths))
            if len(states) > 1 or not self.training:  # one word has no variance to normalize by
                states = norm(states).to(states.dtype)
        if self.padding:
            states = states.index_select(0, neighbours.words)
        padded = states.new_zeros(mask.numel(), self.output_size)
        return padded.index_copy(0, neighbours.places, states).view(*mask.shape, -1)

    def _dropped(self, states: Tensor, sentence: Tensor, sentences: int) -> Tensor:
        """``states [T,H]`` after dropout; a locked one is the same for all words of a sentence."""
        if self.dropout.shared is None:
            dropped: Tensor = self.dropout(states)
            return dropped
        kept = self.dropout.mask((sentences, self.output_size), states)
        return states if kept is None else states * kept.index_select(0, sentence)


@dataclass(frozen=True)
class _Neighbours:
    """Where the words of a batch are, and which are beside each other.

    T counts words, R these and the padding words behind each sentence.

    Shapes:
        places: ``[T]`` of each word in ``[B*L]``; words: ``[T]``, which of the R they are.
        sentence: ``[R]``, the row of each.
        before, after: ``[R]``, those beside it, R where there is none.
    """

    places: Tensor
    words: Tensor
    sentence: Tensor
    before: Tensor
    after: Tensor

    @classmethod
    def of(cls, lengths: Tensor, longest: int, device: torch.device, padding: int) -> _Neighbours:
        """Those of sentences of ``lengths [B]``, which are on the CPU, padded to ``longest``.

        Behind each stand ``padding`` words that are not in ``[B*L]``.
        """
        of_rows = lengths.numpy()
        ends = (of_rows + padding).cumsum()
        starts = ends - of_rows - padding
        count = int(ends[-1])
        sentence = np.repeat(np.arange(len(of_rows)), of_rows + padding)
        order = np.arange(count)
        within = order - starts[sentence]
        words = np.flatnonzero(within < of_rows[sentence])
        places = (within + longest * sentence)[words]
        before, after = order - 1, order + 1
        before[starts] = count
        after[ends - 1] = count
        arrays = (places, words, sentence, before, after)
        return cls(*(torch.from_numpy(each).to(device, non_blocking=True) for each in arrays))

    def beside(self, states: Tensor) -> Tensor:
        """The states of the word before, of the word and of that after it: ``[R,3*H]``."""
        found: Tensor = _Beside.apply(states, self.before, self.after)  # type: ignore[no-untyped-call]
        return found


class _Beside(torch.autograd.Function):
    """See ``_Neighbours.beside``; zero stands beyond a sentence."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, before: Tensor, after: Tensor) -> Tensor:
        ctx.save_for_backward(before, after)
        padded = torch.cat([states, states.new_zeros(1, states.shape[1])])
        return torch.cat([padded.index_select(0, before), states, padded.index_select(0, after)], 1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        before, after = ctx.saved_tensors
        padded = torch.cat([grad, grad.new_zeros(1, grad.shape[1])])
        as_before, here, as_after = padded.chunk(3, 1)
        # A word is the one before that which comes after it.
        found = here[:-1] + as_before.index_select(0, after)
        return found.add_(as_after.index_select(0, before)), None, None
