"""Gradients against autograd through the enumeration, and against finite differences."""

from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ncrf.crf import (
    entropy,
    expected_counts,
    kl_divergence,
    log_partition,
    log_prob,
    marginals,
    pairwise_marginals,
    partial_log_prob,
    path_score,
)
from tests.crf.oracle import Case, cases, close, make_case

MANY = settings(max_examples=60)


def gradients(case: Case, values: Tensor, weights: Tensor) -> list[Tensor]:
    """Gradients of a weighted sum of values [B] at the scores, zero where nothing flows."""
    found = torch.autograd.grad(
        (values * weights).sum(), case.scores, allow_unused=True, materialize_grads=True
    )
    return list(found)


def weights(case: Case, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(case.emissions), generator=generator, dtype=torch.float64)


def enumerated_log_prob(case: Case, labels: Tensor) -> Tensor:
    rows = enumerate(case.rows())
    return torch.stack([row.scores()[row.place(labels[b])] - row.log_z() for b, row in rows])


@MANY
@given(cases(), st.integers(0, 1000))
def test_log_prob(case: Case, seed: int) -> None:
    labels = case.random_labels(seed)
    ours, oracle = case.leaves(), case.leaves()
    emissions, *others = ours.inputs
    found = gradients(ours, log_prob(emissions, labels, *others), weights(case))
    expected = gradients(oracle, enumerated_log_prob(oracle, labels), weights(case))
    for f, e in zip(found, expected, strict=True):
        assert not f.isnan().any()
        assert close(f, e)


@MANY
@given(cases())
def test_log_partition(case: Case) -> None:
    ours, oracle = case.leaves(), case.leaves()
    found = gradients(ours, log_partition(*ours.inputs), weights(case))
    totals = torch.stack([row.log_z() for row in oracle.rows()])
    expected = gradients(oracle, totals, weights(case))
    for f, e in zip(found, expected, strict=True):
        assert not f.isnan().any()
        assert close(f, e)


@MANY
@given(cases(), st.integers(0, 1000))
def test_log_prob_in_float32(case: Case, seed: int) -> None:
    labels = case.random_labels(seed)
    ours = case.to(torch.float32).leaves()
    oracle = case.to(torch.float32).to(torch.float64).leaves()
    emissions, *others = ours.inputs
    values = log_prob(emissions, labels, *others)
    assert values.dtype == torch.float32
    found = gradients(ours, values, weights(case).float())
    expected = gradients(oracle, enumerated_log_prob(oracle, labels), weights(case))
    for f, e in zip(found, expected, strict=True):
        assert f.dtype == torch.float32
        assert close(f, e, 1e-4)


@pytest.mark.parametrize("by_position", [False, True])
def test_finite_differences(by_position: bool) -> None:
    case = make_case(5, labels=3, by_position=by_position, mask="holes").leaves()
    labels = case.random_labels(1)
    possible = torch.rand(case.emissions.shape, generator=torch.Generator().manual_seed(2)) < 0.6
    possible[..., 0] = True

    def likelihoods(
        emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor
    ) -> tuple[Tensor, ...]:
        scores = (transitions, start, end, case.mask)
        return (
            log_prob(emissions, labels, *scores),
            log_partition(emissions, *scores),
            partial_log_prob(emissions, possible, *scores),
            path_score(emissions, labels, *scores),
        )

    assert torch.autograd.gradcheck(likelihoods, case.scores)


def test_finite_differences_of_expectations() -> None:
    case = make_case(6, batch=2, width=4, labels=2, mask="ragged").leaves()
    other = make_case(7, batch=2, width=4, labels=2, mask="full")

    def expectations(
        emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor
    ) -> tuple[Tensor, ...]:
        scores = (emissions, transitions, start, end)
        return (
            entropy(*scores, case.mask),
            marginals(*scores, case.mask),
            pairwise_marginals(*scores, case.mask),
            kl_divergence(scores, other.scores, case.mask),
            kl_divergence(other.scores, scores, case.mask),
            expected_counts(*scores, case.mask).transitions,
        )

    assert torch.autograd.gradcheck(expectations, case.scores)
    entropies = partial(entropy, mask=case.mask)
    assert torch.autograd.gradgradcheck(entropies, case.scores)


def test_expectations_with_impossible_labels_have_gradients_without_nan() -> None:
    case = make_case(8, forbidden=0.5, labels=4).leaves()
    found = [
        entropy(*case.inputs).sum(),
        pairwise_marginals(*case.inputs).square().sum(),
        kl_divergence(case.scores, make_case(9, labels=4).scores, case.mask).sum(),
    ]
    for value in found:
        for gradient in torch.autograd.grad(value, case.scores, retain_graph=True):
            assert torch.isfinite(gradient).all()


def test_second_derivatives() -> None:
    case = make_case(1, batch=2, width=3, labels=2, mask="holes").leaves()
    labels = case.random_labels(0)

    def likelihoods(emissions: Tensor, *others: Any) -> tuple[Tensor, ...]:
        others = (*others, case.mask)
        return log_prob(emissions, labels, *others), log_partition(emissions, *others)

    assert torch.autograd.gradgradcheck(likelihoods, case.scores)


def test_backward_twice_with_the_same_graph() -> None:
    case = make_case(2).leaves()
    emissions, *others = case.inputs
    value = log_prob(emissions, case.random_labels(0), *others).sum()
    first = torch.autograd.grad(value, case.scores, retain_graph=True)
    second = torch.autograd.grad(value, case.scores)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_only_what_needs_a_gradient_gets_one() -> None:
    case = make_case(3)
    emissions = case.emissions.clone().requires_grad_()
    torch.autograd.backward(log_prob(emissions, case.random_labels(0), *case.inputs[1:]).sum())
    assert emissions.grad is not None
    assert not any(x.requires_grad for x in case.scores[1:])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    case = make_case(4, labels=4)
    low = case.emissions.to(dtype).requires_grad_()
    _, transitions, start, end = case.to(torch.float32).scores
    labels = case.random_labels(0)
    value = log_prob(low, labels, transitions, start, end, case.mask)
    assert value.dtype == torch.float32
    torch.autograd.backward(value.sum())
    assert low.grad is not None
    assert low.grad.dtype == dtype
    high = low.detach().double().requires_grad_()
    expected = log_prob(high, labels, *case.inputs[1:])
    assert close(value, expected, 1e-5)
    torch.autograd.backward(expected.sum())
    assert high.grad is not None
    assert close(low.grad, high.grad, torch.finfo(dtype).eps)


def test_autocast_changes_nothing() -> None:
    case = make_case(5, labels=4).to(torch.float32).leaves()
    emissions, *others = case.inputs
    labels = case.random_labels(0)
    plain = log_prob(emissions, labels, *others)
    expected = torch.autograd.grad(plain.sum(), case.scores)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = log_prob(emissions, labels, *others)
        found = torch.autograd.grad(cast.sum(), case.scores)
        assert torch.equal(marginals(*case.inputs), marginals(*case.inputs))
    assert torch.equal(plain, cast)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
