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
