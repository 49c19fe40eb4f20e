"""Trusted input: the same numbers and gradients, and no value is ever read off the device."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ncrf.crf import LinearChainCRF, log_prob

READERS = ("_local_scalar_dense", "equal", "nonzero", "is_nonzero", "masked_select")


class NothingIsRead(TorchDispatchMode):
    """Fails at an operation whose result the CPU would have to wait for."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert func.overloadpacket.__name__ not in READERS, func
        return func(*args, **(kwargs or {}))


def example(scale=1.0):
    generator = torch.Generator().manual_seed(3)
    emissions = scale * torch.randn(3, 6, 4, generator=generator)
    labels = torch.randint(0, 4, (3, 6), generator=generator)
    mask = torch.arange(6) < torch.tensor([[6], [1], [4]])
    crf = LinearChainCRF(4)
    for weights in crf.parameters():
        torch.nn.init.normal_(weights, generator=generator)
    return crf, emissions.requires_grad_(), labels, mask


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_numbers_and_gradients_are_the_same(scale):
    crf, emissions, labels, mask = example(scale)
    found = []
    for trusted in (False, True):
        rows = crf(emissions, labels, mask, reduction="none", trusted=trusted)
        gradient = torch.autograd.grad(rows.sum(), [emissions, *crf.parameters()])
        found.append([rows.detach(), *gradient])
    for plain, fast in zip(*found, strict=True):
        torch.testing.assert_close(fast, plain, atol=1e-5, rtol=1e-5)


def test_nothing_is_read():
    crf, emissions, labels, mask = example()
    with NothingIsRead():
        crf(emissions, labels, mask, trusted=True).backward()
    assert torch.isfinite(emissions.grad).all()
    with pytest.raises(AssertionError, match="equal"), NothingIsRead():
        crf(emissions, labels, mask)


def test_what_is_wrong_shows_in_the_result():
    crf, emissions, labels, mask = example()
    legal = torch.ones(4), torch.ones(4, 4), torch.ones(4)
    legal[0][labels[0, 0]] = 0
    rows = log_prob(
        emissions, labels, *crf.parameters(), mask, constraints=legal, trusted=True
    ).tolist()
    assert rows[0] == float("-inf")
    broken = emissions.detach().clone()
    broken[2, 1, 0] = float("nan")
    rows = log_prob(broken, labels, *crf.parameters(), mask, trusted=True)
    assert torch.isfinite(rows[:2]).all() and torch.isnan(rows[2])
