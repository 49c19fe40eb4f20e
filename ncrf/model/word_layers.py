"""Word layers: the word vectors of a sentence to states that know their context.

A word layer is built as ``layer(keys, input_size, dropout)`` with the key group of the word
layer; it has ``output_size`` and maps word vectors ``[B,L,D]``, the mask ``[B,L]`` and lengths
``[B]`` to states ``[B,L,H]``. Padding must not change a state at a word. For sentence
classification ``pool`` gives one vector a sentence.
"""

from __future__ import annotations

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
    """tanh(linear), then ``cnn_layer`` times convolution, ReLU, dropout, batch normalization."""

    def __init__(self, keys: WordLayerKeys, input_size: int, dropout: float) -> None:
        super().__init__()
        self.output_size = width = keys.hidden_dim
        self.input_projection = nn.Linear(input_size, width)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(width, width, kernel_size=3, padding=1) for _ in range(keys.cnn_layer)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(keys.cnn_layer))
        self.dropout = Dropout(dropout, shared=2 if keys.locked_dropout else None)  # of [B,H,L]

    def forward(self, words: Tensor, mask: Tensor, lengths: Tensor) -> Tensor:
        """Word vectors ``[B,L,D]`` to states ``[B,L,H]``."""
        real = mask.unsqueeze(2)
        # Where words stand in [B*L]; worked out on the CPU, where the lengths are.
        steps = torch.arange(words.shape[1], device=lengths.device)
        places = (steps < lengths[:, None]).flatten().nonzero().squeeze(1).to(words.device)
        states = torch.tanh(self.input_projection(words))
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            # A neighbour beyond the sentence counts as zero, whatever the batch pads there.
            convolved = convolution(states.masked_fill(~real, 0.0).transpose(1, 2))
            states = self.dropout(torch.relu(convolved)).transpose(1, 2)
            states = self._normalize(norm, states, places)
        return states

    def _normalize(self, norm: nn.Module, states: Tensor, places: Tensor) -> Tensor:
        """Batch normalization whose statistics come from real positions only, ``places [T]``."""
        if len(places) < 2 and self.training:
            return states  # one word has no variance to normalize by
        flat = states.flatten(0, 1)
        normalized = norm(flat.index_select(0, places)).to(flat.dtype)
        return flat.index_copy(0, places, normalized).view_as(states)
