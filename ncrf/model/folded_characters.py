"""A character CNN whose products are done once for each character, as model/folded.py's for words.

What a character adds to the window around it, before it or after it, is its vector times a third of
the weights. These rows stand in a table; a window is the sum of three of them.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ncrf.data.alphabet import PADDING
from ncrf.model.char_layers import CharCNN
from ncrf.model.convolution import WIDTH

_AT_A_TIME = 1 << 13  # characters, padding included, of which the windows stay in cache


class FoldedCharacters:
    """A character CNN in evaluation on a CPU, with its weights as they are when this is made."""

    def __init__(self, embedding: nn.Embedding, layer: CharCNN) -> None:
        weight, bias = layer.convolution.weight.detach(), layer.convolution.bias
        assert bias is not None
        characters = embedding.weight.detach()
        # [3, C, H]: what a character adds as the first one, the middle one, the last one of three.
        rows = torch.stack([characters @ weight[:, :, k].t() for k in range(WIDTH)])
        rows[1] += bias.detach()
        rows[:, PADDING] = 0
        rows[1, PADDING] = -torch.inf  # a window around no character is never the largest
        self._table = rows.flatten(0, 1)
        self._part = torch.arange(WIDTH) * len(characters)

    def __call__(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """Words ``[U,W]`` of ``lengths [U]``, each of at least one character, to ``[U,H]``."""
        if characters.numel() <= _AT_A_TIME:
            return self._maxima(characters)
        found, first = [], 0
        ends = lengths.tolist()
        while first < len(ends):
            # Where the longest words come first, these are of like length.
            count = max(1, _AT_A_TIME // max(1, ends[first]))
            part = slice(first, first + count)
            found.append(self._maxima(characters[part, : max(1, max(ends[part]))]))
            first += count
        return torch.cat(found)

    def _maxima(self, characters: Tensor) -> Tensor:
        windows = functional.pad(characters, (1, 1), value=PADDING).unfold(1, WIDTH, 1)
        places = (windows + self._part).flatten(0, 1)
        scores = functional.embedding_bag(places, self._table, mode="sum")
        return scores.view(*characters.shape, -1).amax(1)
