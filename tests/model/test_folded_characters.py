"""A character CNN that looks up is the convolution, however the words are cut into parts."""

import pytest
import torch
from torch import nn

from ncrf.config.schema import Chars
from ncrf.model import folded_characters
from ncrf.model.char_layers import CharCNN
from ncrf.model.folded_characters import FoldedCharacters


@pytest.mark.parametrize("at_once", [1, 12, 1 << 13])
@pytest.mark.parametrize("lengths", [[1], [9, 4, 4, 2, 1, 1], [1, 2, 9, 3], [30, 1, 1, 20]])
def test_the_numbers_are_those_of_a_convolution(lengths, at_once, monkeypatch):
    monkeypatch.setattr(folded_characters, "_AT_A_TIME", at_once)
    torch.manual_seed(0)
    embedding = nn.Embedding(7, 5, padding_idx=0)
    layer = CharCNN(Chars(char_hidden_dim=6), 5)
    words = [torch.randint(1, 7, (length,)) for length in lengths]
    padded = nn.utils.rnn.pad_sequence(words, batch_first=True)
    ours = FoldedCharacters(embedding, layer)(padded, torch.tensor(lengths))
    for word, found in zip(words, ours, strict=True):
        convolved = layer.convolution(embedding(word).t())
        torch.testing.assert_close(found, convolved.amax(1).detach())


def test_what_stands_in_the_row_of_padding_does_not_count():
    torch.manual_seed(0)
    embedding = nn.Embedding(4, 5)
    layer = CharCNN(Chars(char_hidden_dim=6), 5)
    words, lengths = torch.tensor([[1, 2, 3], [2, 0, 0]]), torch.tensor([3, 1])
    expected = FoldedCharacters(embedding, layer)(words, lengths)
    nn.init.constant_(embedding.weight.data[0], 100.0)
    torch.testing.assert_close(FoldedCharacters(embedding, layer)(words, lengths), expected)
