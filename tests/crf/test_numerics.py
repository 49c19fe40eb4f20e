"""Accuracy: large scores, long rows, numbers that scaled space would lose."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ncrf.crf import forward_backward, log_partition, log_prob, marginals, nbest, scaled, viterbi
from ncrf.crf.chain import prepare
from tests.crf.oracle import Case, Row, by_row, cases, close, make_case

MANY = settings(max_examples=60)


def long_rows(scale: float, seed: int = 0) -> tuple[tuple[Tensor, ...], Tensor]:
    """Uniform scores up to a bound on 200 words of 19 labels, in float32."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return (torch.rand(shape, generator=generator) * 2 - 1) * scale

    labels = torch.randint(19, (4, 200), generator=generator)
    return (draw(4, 200, 19), draw(19, 19), draw(19), draw(19)), labels


def likelihood(scores: Any, labels: Tensor) -> Tensor:
    emissions, *others = scores
    return log_prob(emissions, labels, *others)


@pytest.mark.parametrize("scale", [1.0, 10.0, 30.0, 100.0])
def test_float32_is_within_a_thousandth(scale: float) -> None:
    scores, labels = long_rows(scale)
    trained = [x.clone().requires_grad_() for x in scores]
    exact = likelihood([x.double() for x in scores], labels)
    for found in (likelihood(trained, labels), likelihood(scores, labels)):
        # What rounding to float32 the result itself costs is not to be blamed on the recursion.
        rounding = exact.abs() * torch.finfo(torch.float32).eps
        assert ((found.double() - exact).abs() <= 1e-3 + rounding).all()


@pytest.mark.parametrize("scale", [1e3, 1e4])
def test_float32_is_within_a_millionth_of_large_totals(scale: float) -> None:
    scores, labels = long_rows(scale)
    trained = [x.clone().requires_grad_() for x in scores]
    exact = [x.double() for x in scores]
    largest = float(log_partition(*exact).abs().max())
    found = likelihood(trained, labels)
    assert float((found - likelihood(exact, labels)).detach().abs().max()) <= 1e-6 * largest
    assert torch.isfinite(found).all()
    torch.autograd.backward(found.sum())
    assert all(x.grad is not None and torch.isfinite(x.grad).all() for x in trained)


def test_gradient_of_long_rows_in_float32() -> None:
    scores, labels = long_rows(10.0)
    low = [x.clone().requires_grad_() for x in scores]
    high = [x.double().requires_grad_() for x in scores]
    for leaves in (low, high):
        torch.autograd.backward(likelihood(leaves, labels).sum())
    for a, b in zip(low, high, strict=True):
        assert a.grad is not None
        assert b.grad is not None
        assert close(a.grad, b.grad, 1e-3)


@MANY
@given(cases(scale=1e4), st.integers(0, 1000))
def test_enumeration_of_large_scores(case: Case, seed: int) -> None:
    labels = case.random_labels(seed)
    emissions, *others = case.to(torch.float32).leaves().inputs
    oracle = case.to(torch.float32).to(torch.float64)
    found = log_prob(emissions, labels, *others)
    rows = enumerate(oracle.rows())
    scores = torch.stack([row.scores()[row.place(labels[b])] for b, row in rows])
    assert close(found, scores - by_row(oracle, Row.log_z), 1e-6)
    gradient = torch.autograd.grad(found.sum(), emissions, allow_unused=True)[0]
    assert gradient is None or not gradient.isnan().any()
    for b, row in enumerate(oracle.rows()):
        assert close(marginals(*oracle.inputs)[b, row.positions], row.marginals(), 1e-6)


def rows_that_dive(depth: float, steps: int, gap: int = 0) -> Tensor:
    """A label falls far behind, gets far ahead and falls back: both passes would lose it.

    It does so in steps with gaps between them, in which a scaled vector can recover its scale.
    """
    change = depth / steps
    changes = [-change] * steps + [change] * 2 * steps + [-change] * steps
    falls = torch.zeros(len(changes) * (gap + 1), 2)
    falls[:: gap + 1, 0] = torch.tensor(changes)
    return falls.unsqueeze(0)


@pytest.mark.parametrize("gap", [0, 3, 4])
@pytest.mark.parametrize(
    ("depth", "steps"),
    [(30, 1), (60, 3), (100, 1), (100, 4), (100, 20), (500, 20), (900, 3), (900, 4), (5000, 1)],
)
@pytest.mark.parametrize("gradient", [False, True])
def test_a_label_that_dives_is_not_lost(depth: float, steps: int, gap: int, gradient: bool) -> None:
    emissions = rows_that_dive(depth, steps, gap).requires_grad_(gradient)
    apart = torch.tensor([[0.0, -math.inf], [-math.inf, 0.0]])
    found = log_partition(emissions, apart)
    assert close(found, math.log(2), 1e-4)
    assert close(marginals(emissions, apart), torch.full(emissions.shape, 0.5), 1e-4)
    if gradient:
        (derivative,) = torch.autograd.grad(found.sum(), emissions)
        assert close(derivative, torch.full(emissions.shape, 0.5), 1e-4)
    with torch.no_grad():
        vectors = forward_backward(emissions.double(), apart)
    totals = torch.logsumexp(vectors.alpha + vectors.beta, 2)
    assert close(totals, torch.full(totals.shape, math.log(2)), 1e-4)


@settings(max_examples=60)
@given(cases(by_position=False, forbidden=0.6, scale=5.0), st.booleans())
def test_impossible_labels_alone_do_not_need_log_space(case: Case, gradient: bool) -> None:
    def refuse(chain: object) -> None:
        raise AssertionError("a row went through log space")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ncrf.crf.scaled.log_vectors", refuse)
        totals = log_partition(*(case.leaves() if gradient else case).inputs)
        found = marginals(*case.inputs)
    assert not totals.isnan().any() and not found.isnan().any()


@pytest.mark.parametrize(("dtype", "scale"), [(torch.float32, 1), (torch.float64, 8)])
def test_a_label_that_vanishes_from_one_step_to_the_next_is_not_lost(
    dtype: torch.dtype, scale: float
) -> None:
    """Its last number before that is one that is trusted; then it makes up for it slowly."""
    emissions = torch.zeros(1, 24, 2, dtype=dtype)
    emissions[0, :, 1] = scale * torch.tensor([-40.0, -70.0, *[5.0] * 22])
    apart = torch.tensor([[0.0, -math.inf], [-math.inf, 0.0]], dtype=dtype)
    chain = prepare(emissions, apart, fast=True)
    after = scaled._run(chain, 1).after[:, 0, 0, 1]
    assert after[0] > 0 and after[1] == 0
    assert close(scaled.log_partition(chain), math.log(2), 1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_zeros_of_constraints_are_certain_at_a_glance(dtype: torch.dtype) -> None:
    emissions = torch.linspace(-1, 1, 12, dtype=dtype).view(1, 4, 3)
    transitions = torch.tensor([[0.5, -1, 0], [0, -math.inf, 1], [1, 0, -math.inf]], dtype=dtype)
    start = torch.tensor([0, -math.inf, 0], dtype=dtype)
    chain = prepare(emissions, transitions, start, fast=True)
    run = scaled._run(chain, 2)
    assert (run.after == 0).any()
    assert scaled._nothing_vanished(chain, run)
    chain = replace(chain, emissions=60 * chain.emissions * (8 if dtype == torch.float64 else 1))
    assert not scaled._nothing_vanished(chain, scaled._run(chain, 2))


@pytest.mark.parametrize("gradient", [False, True])
def test_extreme_rows_leave_their_neighbours_alone(gradient: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    calm = torch.randn(3, 8, 2, generator=generator)
    wild = rows_that_dive(3000.0, 2)
    emissions = torch.cat([calm[:1], wild, calm[1:]]).requires_grad_(gradient)
    transitions = torch.randn(2, 2, generator=generator).requires_grad_(gradient)
    found = log_partition(emissions, transitions)
    alone = torch.cat([log_partition(row[None], transitions) for row in emissions])
    assert torch.equal(found, alone)
    assert close(found[1], by_row(dive_case(wild, transitions), Row.log_z)[0], 1e-6)
    if gradient:
        leaves = (emissions, transitions)
        expected = torch.autograd.grad(alone.sum(), leaves)
        for a, b in zip(torch.autograd.grad(found.sum(), leaves), expected, strict=True):
            assert close(a, b, 1e-6)


def dive_case(emissions: Tensor, transitions: Tensor) -> Case:
    case = make_case(0, batch=1, width=8, labels=2, mask="full").with_emissions(emissions.double())
    zeros = torch.zeros(2, dtype=torch.float64)
    return type(case)(case.emissions, transitions.detach().double(), zeros, zeros, case.mask)


def test_large_negative_scores_that_mean_forbidden() -> None:
    """The finite stand-ins for minus infinity that other code uses."""
    case = make_case(2, labels=4, mask="full")
    banned = case.transitions.clone()
    banned[0] = -10_000.0
    banned[2, 3] = -10_000.0
    case = type(case)(case.emissions, banned, case.start, case.end, case.mask)
    emissions, *others = case.to(torch.float32).leaves().inputs
    assert close(log_partition(emissions, *others), by_row(case, Row.log_z), 1e-6)


def test_per_position_scores_that_dive() -> None:
    transitions = torch.zeros(1, 7, 2, 2)
    transitions[0, :, 0, 1] = transitions[0, :, 1, 0] = -math.inf
    transitions[0, ::2, 0, 0] = -700.0
    transitions[0, 1::2, 0, 0] = 700.0
    transitions[0, 6, 0, 0] = 0.0
    found = log_partition(torch.zeros(1, 8, 2).requires_grad_(), transitions)
    assert close(found, math.log(2), 1e-5)


@pytest.mark.parametrize(
    ("dtype", "depth", "fall"), [(torch.float32, 40.0, 60.0), (torch.float64, 340.0, 403.0)]
)
def test_a_step_that_shrinks_all_labels(dtype: torch.dtype, depth: float, fall: float) -> None:
    """Pairs that nothing uses are far better; what was small is lost just before rescaling."""
    emissions = torch.zeros(1, 10, 3, dtype=dtype)
    emissions[:, :, 2] = -math.inf
    emissions[0, 0, 0], emissions[0, 6, 0] = -depth, depth
    transitions = torch.zeros(1, 9, 3, 3, dtype=dtype)
    transitions[0, :, 0, 1] = transitions[0, :, 1, 0] = -math.inf
    transitions[0, 3, :2, :2] -= fall
    for gradient in (False, True):
        found = log_partition(emissions.clone().requires_grad_(gradient), transitions)
        assert close(found, math.log(2) - fall, 1e-5)


@pytest.mark.parametrize("gradient", [False, True])
def test_the_only_labeling_has_the_worst_end(gradient: bool) -> None:
    apart = torch.tensor([[0.0, -math.inf], [-math.inf, 0.0]])
    emissions = torch.zeros(1, 3, 2).requires_grad_(gradient)
    edges = (torch.tensor([0.0, -math.inf]), torch.tensor([-2000.0, 0.0]))
    assert close(log_partition(emissions, apart, *edges), -2000.0)


def test_fifteen_hundred_words() -> None:
    emissions = torch.zeros(1, 1500, 7).requires_grad_()
    found = log_partition(emissions, torch.zeros(7, 7))
    assert close(found, 1500 * math.log(7), 1e-6)
    (gradient,) = torch.autograd.grad(found.sum(), emissions)
    assert close(gradient, torch.full((1, 1500, 7), 1 / 7), 1e-5)


def test_probabilities_of_the_best_sum_to_one_at_most() -> None:
    generator = torch.Generator().manual_seed(3)
    emissions = torch.randn(2, 4, 3, generator=generator) * 20
    found = nbest(emissions, torch.zeros(3, 3), n=81)
    assert found.counts.tolist() == [81, 81]
    assert close(found.log_probabilities.double().exp().sum(1), torch.ones(2), 1e-6)


def test_best_score_among_near_ties_of_large_scores() -> None:
    """Float32 sums of these would not tell the two best apart."""
    emissions = torch.full((1, 400, 2), 1e4)
    emissions[0, 200, 1] += 0.01
    found = viterbi(emissions, torch.tensor([[0.0, -1e-6], [-1e-6, 0.0]]))
    assert found.labels[0].tolist() == [1] * 400
