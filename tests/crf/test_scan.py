"""The scan gives what the loop gives; it is for GPUs, and is compared on the CPU here."""

import math

import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from ncrf.crf import forward_backward, log_partition, log_prob, marginals
from tests.crf.oracle import Case, Row, by_row, cases, close, make_case
from tests.crf.test_numerics import rows_that_dive

MANY = settings(max_examples=60)


@pytest.fixture(autouse=True)
def scanning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncrf.crf.scaled.pays", lambda likely: True)


@MANY
@given(cases())
def test_against_enumeration(case: Case) -> None:
    assert close(log_partition(*case.inputs), by_row(case, Row.log_z))
    found = marginals(*case.inputs)
    for b, row in enumerate(case.rows()):
        assert close(found[b, row.positions], row.marginals())
    vectors = forward_backward(*case.inputs)
    totals = torch.logsumexp(vectors.alpha + vectors.beta, 2)
    expected = vectors.log_partition.unsqueeze(1).expand_as(totals)
    assert close(totals[case.mask], expected[case.mask])


@pytest.mark.parametrize("by_position", [False, True])
def test_against_the_loop(by_position: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case(1, 4, 40, 5, by_position=by_position).leaves()
    labels = torch.zeros(4, 40, dtype=torch.long)

    def results() -> tuple[Tensor, ...]:
        emissions, *others = case.inputs
        value = log_prob(emissions, labels, *others)
        return value, *torch.autograd.grad(value.sum(), case.scores)

    found = results()
    monkeypatch.setattr("ncrf.crf.scaled.pays", lambda likely: False)
    assert all(close(a, b) for a, b in zip(found, results(), strict=True))


@pytest.mark.parametrize("gap", [0, 4])
@pytest.mark.parametrize(("depth", "steps"), [(100, 4), (500, 20), (900, 3), (900, 4), (5000, 1)])
def test_labels_that_dive(depth: float, steps: int, gap: int) -> None:
    emissions = rows_that_dive(depth, steps, gap).double()
    apart = torch.tensor([[0.0, -math.inf], [-math.inf, 0.0]])
    assert close(log_partition(emissions, apart), math.log(2), 1e-6)
    assert close(marginals(emissions, apart), torch.full(emissions.shape, 0.5), 1e-6)


def test_a_calm_row_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(chain: object) -> None:
        raise AssertionError("a row went through log space")

    monkeypatch.setattr("ncrf.crf.scaled.log_vectors", refuse)
    case = make_case(2, 4, 60, 6, scale=3.0, forbidden=0.2)
    assert torch.isfinite(log_partition(*case.inputs)).all()
