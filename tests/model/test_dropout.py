"""The mask of dropout: as often zero as was said, unbiased, and no two places alike."""

import pytest
import torch

from ncrf.model.dropout import Dropout


def dropped(probability, *shape):
    torch.manual_seed(4)
    return Dropout(probability)(torch.ones(*shape))


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5, 0.9])
def test_the_share_and_the_mean(probability):
    values = dropped(probability, 1000, 401)
    error = 5 * (probability * (1 - probability) / values.numel()) ** 0.5
    assert (values == 0).float().mean().item() == pytest.approx(probability, abs=error)
    assert values.mean().item() == pytest.approx(1, abs=error / (1 - probability))
    kept = values[values > 0].unique()
    assert len(kept) == 1
    assert kept.item() == pytest.approx(1 / (1 - probability), abs=1e-3)


def test_neighbouring_numbers_are_independent():
    """Four masks come from one random number: none tells of another."""
    lanes = (dropped(0.5, 100_000, 4) == 0).float()
    correlation = torch.corrcoef(lanes.t()) - torch.eye(4)
    assert correlation.abs().max() < 5 / 100_000**0.5


@pytest.mark.parametrize("shape", [(1,), (3, 7), (0, 5), (2, 3, 5)])
def test_any_shape(shape):
    assert dropped(0.5, *shape).shape == shape


def test_the_gradient_goes_where_the_numbers_went():
    values = torch.ones(50, 3, requires_grad=True)
    output = Dropout(0.5)(values)
    output.sum().backward()
    assert torch.equal(values.grad, output.detach())


@pytest.mark.parametrize("probability", [0.0, 0.5])
def test_in_evaluation_nothing_is_dropped(probability):
    values = torch.randn(4, 5)
    assert Dropout(probability).eval()(values) is values
    assert Dropout(0.0)(values) is values


def test_everything_may_be_dropped():
    assert dropped(1.0, 4, 4).abs().sum() == 0
