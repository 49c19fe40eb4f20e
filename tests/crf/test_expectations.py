"""Pair marginals, expected counts, entropy and divergence against enumeration."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ncrf.crf import RowError, entropy, expected_counts, kl_divergence, pairwise_marginals
from tests.crf.oracle import Case, Row, by_row, cases, close, make_case

MANY = settings(max_examples=60)


@MANY
@given(cases())
def test_pairwise_marginals(case: Case) -> None:
    found = pairwise_marginals(*case.inputs)
    assert found.shape[1] == max(case.emissions.shape[1] - 1, 0)
    for b, row in enumerate(case.rows()):
        into = row.positions[1:] - 1
        assert close(found[b, into], row.pairwise_marginals())
        assert close(found[b].sum(), max(row.length - 1, 0))


@MANY
@given(cases(), st.booleans())
def test_expected_counts(case: Case, with_features: bool) -> None:
    features = None
    if with_features:
        shape = (*case.emissions.shape[:2], 2)
        features = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    found = expected_counts(*case.inputs, features=features)
    for b, row in enumerate(case.rows()):
        marginals = row.marginals()
        states = marginals.sum(0)
        if features is not None:
            states = features[b, row.positions].double().t() @ marginals
        assert close(found.states[b], states)
        assert close(found.transitions[b], row.pairwise_marginals().sum(0))
        assert close(found.start[b], marginals[0] if row.length else 0)
        assert close(found.end[b], marginals[-1] if row.length else 0)


def test_expected_counts_over_a_corpus() -> None:
    case = make_case(3, labels=4)
    weights = torch.tensor([0.5, 0.25, 0.25])
    rows, corpus = expected_counts(*case.inputs), expected_counts(*case.inputs, weights=weights)
    for by_sentence, total in zip(rows, corpus, strict=True):
        assert close(total, sum(w * x for w, x in zip(weights, by_sentence, strict=True)))


def test_expected_counts_of_observed_labels_are_the_gradient() -> None:
    case = make_case(4, labels=3)
    transitions = case.transitions.clone().requires_grad_()
    from ncrf.crf import log_partition

    inputs = (case.emissions, transitions, case.start, case.end, case.mask)
    (expected,) = torch.autograd.grad(log_partition(*inputs).sum(), transitions)
    assert close(expected_counts(*case.inputs).transitions.sum(0), expected)


def test_features_and_weights_that_do_not_fit() -> None:
    case = make_case(5)
    with pytest.raises(ValueError, match="features"):
        expected_counts(*case.inputs, features=torch.zeros(3, 4, 2))
    with pytest.raises(ValueError, match="weights"):
        expected_counts(*case.inputs, weights=torch.zeros(2))


@MANY
@given(cases())
def test_entropy(case: Case) -> None:
    def by_enumeration(row: Row) -> Tensor:
        p = row.probabilities()
        return -torch.xlogy(p, p).sum()

    assert close(entropy(*case.inputs), by_row(case, by_enumeration))


def test_entropy_keeps_its_digits_under_large_scores() -> None:
    case = make_case(6, mask="full")
    moved = case.with_emissions(case.emissions + 1e8)
    assert close(entropy(*moved.inputs), entropy(*case.inputs), 1e-6)


@MANY
@given(cases(forbidden=0.0), st.integers(0, 1000))
def test_kl_divergence(case: Case, seed: int) -> None:
    batch, width, labels = case.emissions.shape
    other = make_case(seed, batch, width, labels, scale=2.0)
    other = Case(*other.scores, mask=case.mask)
    found = kl_divergence(case.scores, other.scores, case.mask)
    for b, (p, q) in enumerate(zip(case.rows(), other.rows(), strict=True)):
        log_ratio = (p.scores() - p.log_z()) - (q.scores() - q.log_z())
        assert close(found[b], (p.probabilities() * log_ratio).sum(), 1e-8)
    assert bool((found > -1e-9).all())


def test_kl_divergence_of_a_chain_from_itself_is_zero() -> None:
    case = make_case(7, forbidden=0.4, labels=4)
    assert close(kl_divergence(case.scores, case.scores, case.mask), torch.zeros(3))


def test_kl_divergence_is_infinite_where_the_other_has_no_mass() -> None:
    case = make_case(8, labels=2, mask="full")
    emissions = case.emissions.clone()
    emissions[1, 2, 0] = -math.inf
    other = (emissions, *case.scores[1:])
    assert kl_divergence(case.scores, other, case.mask)[1] == math.inf
    assert torch.isfinite(kl_divergence(other, case.scores, case.mask)).all()


def test_chains_of_different_shapes_have_no_divergence() -> None:
    with pytest.raises(ValueError, match="two chains"):
        kl_divergence(make_case(1, labels=2).scores, make_case(1, labels=3).scores)


def test_expectations_need_a_possible_labeling() -> None:
    case = make_case(9, mask="full")
    emissions = case.emissions.clone()
    emissions[2, 1] = -math.inf
    for quantity in (entropy, pairwise_marginals, expected_counts):
        with pytest.raises(RowError, match="row 2: no labeling is possible"):
            quantity(emissions, *case.inputs[1:])
