"""Convolution and maximum as matrix products against torch's own layers."""

import numpy as np
import pytest
import torch
from torch import nn

from ncrf.model.convolution import PackedWords, convolve_maximum, convolve_packed


@pytest.mark.parametrize("lengths", [[1], [3, 1, 5, 2], [2, 2], [7, 6, 1], [3, 200, 150]])
def test_numbers_and_gradients_are_those_of_a_convolution(lengths):
    torch.manual_seed(0)
    lengths = torch.tensor(lengths)
    convolution = nn.Conv1d(4, 6, kernel_size=3, padding=1).double()
    padding = torch.arange(int(lengths.max())) >= lengths[:, None]
    numbers = torch.randn(*padding.shape, 4).double().requires_grad_()
    rows = numbers.masked_fill(padding.unsqueeze(2), 0)
    ours = convolve_maximum(rows, lengths, convolution.weight, convolution.bias)
    plain = convolution(rows.transpose(1, 2)).masked_fill(padding[:, None], -torch.inf).amax(2)
    torch.testing.assert_close(ours, plain)
    weights = torch.randn_like(plain)
    inputs = [numbers, *convolution.parameters()]
    for mine, theirs in zip(
        torch.autograd.grad((ours * weights).sum(), inputs, retain_graph=True),
        torch.autograd.grad((plain * weights).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs)


def test_equal_places_share_the_gradient():
    """A word of equal characters: its embedding's gradient is that of torch's convolution."""
    torch.manual_seed(0)
    convolution = nn.Conv1d(4, 6, kernel_size=3, padding=1).double()
    table = torch.randn(1, 4, dtype=torch.double, requires_grad=True)
    characters = nn.functional.embedding(torch.zeros(2, 7, dtype=torch.long), table)
    ours = convolve_maximum(characters, torch.tensor([7, 7]), convolution.weight, convolution.bias)
    theirs = convolution(characters.transpose(1, 2)).amax(2)
    weights = torch.randn_like(theirs)
    leaves = [table, convolution.weight, convolution.bias]
    expected = torch.autograd.grad((theirs * weights).sum(), leaves, retain_graph=True)
    found = torch.autograd.grad((ours * weights).sum(), leaves)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_of_a_table_without_padding(dtype):
    """Words of 4, 2 and 1 characters, rows of a table that a mask drops in part."""
    torch.manual_seed(0)
    convolution = nn.Conv1d(3, 5, kernel_size=3, padding=1).to(dtype)
    table = torch.randn(6, 3, dtype=dtype, requires_grad=True)
    words = [[1, 2, 3, 2], [4, 1], [5]]
    ids = torch.tensor([1, 4, 5, 2, 1, 3, 2])  # the first characters, the second ones, ...
    mask = torch.randint(0, 3, (7, 3)).to(dtype)
    packed = PackedWords.of(np.array([4, 2, 1]))
    ours = convolve_packed(table, ids, packed, convolution.weight, convolution.bias, mask)
    kept = {0: [0, 3, 5, 6], 1: [1, 4], 2: [2]}
    expected = torch.cat(
        [
            convolution((table[word] * mask[kept[row]]).t().unsqueeze(0)).amax(2)
            for row, word in enumerate(words)
        ]
    )
    torch.testing.assert_close(ours, expected)
    weights = torch.randn_like(ours)
    leaves = [table, *convolution.parameters()]
    found = torch.autograd.grad((ours * weights).sum(), leaves)
    torch.testing.assert_close(found, torch.autograd.grad((expected * weights).sum(), leaves))


def test_no_words():
    weight, bias = torch.zeros(6, 4, 3), torch.zeros(6)
    found = convolve_maximum(torch.zeros(0, 5, 4), torch.zeros(0, dtype=torch.long), weight, bias)
    assert found.shape == (0, 6)
