"""Character layers: the characters of a word to one vector.

A character layer is built as ``layer(keys, input_size)`` with the key group of the characters
and the width of a character embedding; it has ``output_size`` and maps embedded characters
``[U,W,D]``, their number ``[U]`` to word vectors ``[U,H]``. Padding must not change a result.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ncrf.config.schema import Chars
from ncrf.model.convolution import (
    PackedWords,
    convolve_maximum,
    convolve_packed,
    multiplies_windows,
)
from ncrf.model.recurrent import Recurrent
from ncrf.model.registry import Registry


class CharLayer(nn.Module):
    """What every character layer is: a module that knows the width of its vectors."""

    output_size: int


CHAR_LAYERS: Registry[CharLayer] = Registry("char_seq_feature")


@CHAR_LAYERS.register("CNN")
class CharCNN(CharLayer):
    """Convolution of width 3 and the maximum over the word, as in NCRF++."""

    def __init__(self, keys: Chars, input_size: int) -> None:
        super().__init__()
        self.output_size = keys.char_hidden_dim
        self.convolution = nn.Conv1d(input_size, self.output_size, kernel_size=3, padding=1)

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """Embedded characters ``[U,W,D]`` (zero at padding) to ``[U,H]``."""
        assert self.convolution.bias is not None
        return convolve_maximum(characters, lengths, self.convolution.weight, self.convolution.bias)

    def packs(self, characters: Tensor) -> bool:
        """Whether ``packed`` can stand for the layer here: on a CPU, and no subclass changes it."""
        inherited = type(self).forward is CharCNN.forward
        return inherited and multiplies_windows(characters)

    def packed(self, table: Tensor, ids: Tensor, words: PackedWords, mask: Tensor | None) -> Tensor:
        """Rows ``ids [N]`` of an embedding table, times ``mask [N,D]``, to ``[U,H]``."""
        assert self.convolution.bias is not None
        parameters = (self.convolution.weight, self.convolution.bias)
        return convolve_packed(table, ids, words, *parameters, mask)


class _CharRecurrent(CharLayer):
    """Last state of each direction of a recurrent network over the characters."""

    cell: str

    def __init__(self, keys: Chars, input_size: int) -> None:
        super().__init__()
        self.recurrent = Recurrent(
            self.cell, input_size, keys.char_hidden_dim // 2, layers=1, bidirectional=True
        )
        self.output_size = self.recurrent.output_size

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """Embedded characters ``[U,W,D]`` to ``[U,H]``."""
        return self.recurrent.last(characters, lengths)


@CHAR_LAYERS.register("LSTM")
class CharLSTM(_CharRecurrent):
    """Bidirectional LSTM over the characters."""

    cell = "LSTM"


@CHAR_LAYERS.register("GRU")
class CharGRU(_CharRecurrent):
    """Bidirectional GRU over the characters."""

    cell = "GRU"


@CHAR_LAYERS.register("ALL")
class CharAll(CharLayer):
    """CNN and LSTM side by side."""

    def __init__(self, keys: Chars, input_size: int) -> None:
        super().__init__()
        self.cnn = CharCNN(keys, input_size)
        self.lstm = CharLSTM(keys, input_size)
        self.output_size = self.cnn.output_size + self.lstm.output_size

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """Embedded characters ``[U,W,D]`` to ``[U,H]``."""
        return torch.cat([self.cnn(characters, lengths), self.lstm(characters, lengths)], dim=1)
