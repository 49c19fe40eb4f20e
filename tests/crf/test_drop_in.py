"""CRF, on the same inputs as the package it stands in for."""

from typing import Any

import pytest
import torch
from torch import Tensor

from ncrf.crf import CRF, LinearChainCRF, RowError
from tests.crf.oracle import Row, by_row, close, make_case


def inputs(seed: int, batch_first: bool) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    emissions = torch.randn(4, 6, 5, generator=generator)
    tags = torch.randint(5, (4, 6), generator=generator)
    mask = torch.arange(6) < torch.tensor([6, 1, 4, 2]).unsqueeze(1)
    tensors = (emissions, tags, mask)
    return tensors if batch_first else tuple(x.transpose(0, 1) for x in tensors)


@pytest.mark.filterwarnings("ignore:where received a uint8")
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8])
def test_both_give_the_same(batch_first: bool, dtype: torch.dtype) -> None:
    torchcrf = pytest.importorskip("torchcrf")
    torch.manual_seed(1)
    theirs = torchcrf.CRF(5, batch_first=batch_first)
    torch.manual_seed(1)
    ours = CRF(5, batch_first=batch_first)
    for name, parameter in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], parameter)
    ours.load_state_dict(theirs.state_dict())
    assert repr(ours) == repr(theirs)
    emissions, tags, mask = inputs(2, batch_first)
    for given in (None, mask.bool() if dtype == torch.bool else mask.to(dtype)):
        for reduction in ("none", "sum", "mean", "token_mean"):
            found: list[Any] = []
            expected: list[Any] = []
            for crf, values in ((ours, found), (theirs, expected)):
                crf.zero_grad()
                leaf = emissions.clone().requires_grad_()
                # The other package takes Boolean masks only in its where.
                used = given if crf is ours or given is None else given.bool()
                value = crf(leaf, tags, used, reduction=reduction)
                torch.autograd.backward(value.sum())
                values += [value, leaf.grad, *(x.grad for x in crf.parameters())]
            assert all(close(a, b, 1e-5) for a, b in zip(found, expected, strict=True))
        used = None if given is None else given.bool()
        assert ours.decode(emissions, given) == theirs.decode(emissions, used)


def test_likelihood_and_tags_against_enumeration() -> None:
    case = make_case(3, labels=4).to(torch.float32)
    crf = CRF(4, batch_first=True)
    crf.load_state_dict(
        {
            "transitions": case.transitions,
            "start_transitions": case.start,
            "end_transitions": case.end,
        }
    )
    case = case.to(torch.float64)
    tags = case.random_labels(0)
    rows = enumerate(case.rows())
    scores = torch.stack([row.scores()[row.place(tags[b])] for b, row in rows])
    found = crf(case.emissions.float(), tags, case.mask, reduction="none")
    assert close(found, scores - by_row(case, Row.log_z), 1e-5)
    decoded = crf.decode(case.emissions.float(), case.mask)
    best = [row.paths[row.scores().argmax()].tolist() for row in case.rows()]
    assert decoded == best


def test_defaults() -> None:
    torch.manual_seed(4)
    crf = CRF(30)
    assert not crf.batch_first
    assert [name for name, _ in crf.named_parameters()] == [
        "start_transitions",
        "end_transitions",
        "transitions",
    ]
    values = torch.cat([x.flatten() for x in crf.parameters()])
    assert -0.1 <= values.min() < -0.09
    assert 0.09 < values.max() <= 0.1
    emissions, tags, _ = inputs(5, batch_first=False)
    crf = CRF(5)
    assert crf(emissions, tags) == crf(emissions, tags, torch.ones(6, 4), reduction="sum")


def test_masks_that_the_other_package_refuses() -> None:
    crf = CRF(3, batch_first=True)
    emissions = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(6))
    mask = torch.tensor([[0, 1, 0, 1], [0, 0, 0, 0]])
    tags = crf.decode(emissions, mask)
    assert tags[1] == []
    assert tags[0] == crf.decode(emissions[:1, [1, 3]])[0]


def test_a_state_dict_serves_both_layers() -> None:
    assert LinearChainCRF(3).load_state_dict(CRF(3).state_dict())


def test_wrong_inputs() -> None:
    with pytest.raises(ValueError, match="num_tags is 0"):
        CRF(0)
    crf = CRF(3)
    with pytest.raises(ValueError, match="emissions are"):
        crf.decode(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="emissions are"):
        crf.decode(torch.zeros(2, 1, 4))
    with pytest.raises(ValueError, match="labels: shape"):
        crf(torch.zeros(2, 1, 3), torch.zeros(1, 1, dtype=torch.long))
    with pytest.raises(ValueError, match="mask: shape"):
        crf.decode(torch.zeros(2, 1, 3), torch.ones(1, 1))
    with pytest.raises(ValueError, match="reduction"):
        crf(torch.zeros(2, 1, 3), torch.zeros(2, 1, dtype=torch.long), reduction="best")
    with pytest.raises(RowError, match="row 0, position 1"):
        crf(torch.zeros(2, 1, 3), torch.tensor([[0], [3]]))
