"""Convolution and maximum as matrix products against torch's own layers."""

import pytest
import torch
from torch import nn

from ncrf.model.convolution import convolve_maximum


@pytest.mark.parametrize("lengths", [[1], [3, 1, 5, 2], [2, 2], [7, 6, 1]])
def test_numbers_and_gradients_are_those_of_a_convolution(lengths):
    torch.manual_seed(0)
    lengths = torch.tensor(lengths)
    convolution = nn.Conv1d(4, 6, kernel_size=3, padding=1).double()
    padding = torch.arange(int(lengths.max())) >= lengths[:, None]
    rows = torch.randn(*padding.shape, 4).double().masked_fill(padding.unsqueeze(2), 0)
    rows.requires_grad_()
    ours = convolve_maximum(rows, lengths, convolution.weight, convolution.bias)
    plain = convolution(rows.transpose(1, 2)).masked_fill(padding[:, None], -torch.inf).amax(2)
    torch.testing.assert_close(ours, plain)
    weights = torch.randn_like(plain)
    inputs = [rows, *convolution.parameters()]
    for mine, theirs in zip(
        torch.autograd.grad((ours * weights).sum(), inputs),
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


def test_no_words():
    weight, bias = torch.zeros(6, 4, 3), torch.zeros(6)
    found = convolve_maximum(torch.zeros(0, 5, 4), torch.zeros(0, dtype=torch.long), weight, bias)
    assert found.shape == (0, 6)
