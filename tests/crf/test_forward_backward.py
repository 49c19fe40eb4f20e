"""Log-partition, scores, log-probabilities, marginals and vectors against enumeration."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ncrf.crf import (
    RowError,
    forward_backward,
    log_partition,
    log_prob,
    marginals,
    partial_log_prob,
    path_score,
)
from tests.crf.oracle import Case, Row, by_row, cases, close, make_case

MANY = settings(max_examples=60)


@MANY
@given(cases())
def test_log_partition(case: Case) -> None:
    found = log_partition(*case.inputs)
    assert close(found, by_row(case, Row.log_z))


@MANY
@given(cases())
def test_log_partition_in_float32_with_gradient(case: Case) -> None:
    leaves = case.to(torch.float32).leaves()
    found = log_partition(*leaves.inputs)
    assert found.dtype == torch.float32
    assert close(found, by_row(leaves, Row.log_z), 1e-5)


@MANY
@given(cases(), st.integers(0, 1000))
def test_path_score_and_log_prob(case: Case, seed: int) -> None:
    labels = case.random_labels(seed)
    rows = case.rows()
    scores = torch.stack([row.scores()[row.place(labels[b])] for b, row in enumerate(rows)])
    log_z = by_row(case, Row.log_z)
    emissions, transitions, start, end, mask = case.inputs
    found = path_score(emissions, labels, transitions, start, end, mask)
    assert close(found, scores)
    found = log_prob(emissions, labels, transitions, start, end, mask)
    assert close(found, scores - log_z)
    assert bool((found <= 1e-9).all())


@MANY
@given(cases())
def test_marginals(case: Case) -> None:
    found = marginals(*case.inputs)
    for b, row in enumerate(case.rows()):
        assert close(found[b, row.positions], row.marginals())
    assert close(found.sum(2), case.mask.double())


@MANY
@given(cases())
def test_forward_and_backward_vectors(case: Case) -> None:
    found = forward_backward(*case.inputs)
    for b, row in enumerate(case.rows()):
        alpha, beta = found.alpha[b, row.positions], found.beta[b, row.positions]
        for t in range(row.length):
            paths, scores = of_part(row, 0, t + 1)
            scores = scores + row.start[paths[:, 0]]
            assert close(alpha[t], totals_by_label(scores, paths[:, -1], case.num_labels))
            paths, scores = of_part(row, t, row.length)
            scores = scores + row.end[paths[:, -1]]
            expected = totals_by_label(scores, paths[:, 0], case.num_labels)
            assert close(beta[t] + row.emissions[t], expected)
    assert not found.alpha[~case.mask].any()
    assert not found.beta[~case.mask].any()
    assert close(found.log_partition, by_row(case, Row.log_z))


def of_part(row: Row, first: int, after: int) -> tuple[Tensor, Tensor]:
    """All labels of words first .. after-1, and their scores without edges."""
    every = itertools.product(range(row.num_labels), repeat=after - first)
    paths = torch.tensor(list(every))
    words = range(after - first)
    scores = torch.zeros(len(paths), dtype=torch.float64)
    for k in words:
        scores = scores + row.emissions[first + k, paths[:, k]]
    for k in words[:-1]:
        scores = scores + row.pairs[first + k][paths[:, k], paths[:, k + 1]]
    return paths, scores


def totals_by_label(scores: Tensor, labels: Tensor, count: int) -> Tensor:
    return torch.stack([torch.logsumexp(scores[labels == y], 0) for y in range(count)])


@MANY
@given(cases(forbidden=0.0), st.integers(0, 1000), st.sampled_from([0.3, 0.7]))
def test_partial_labels(case: Case, seed: int, density: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    possible = torch.rand(case.emissions.shape, generator=generator) < density
    possible[..., 0] |= ~possible.any(2)
    emissions, transitions, start, end, mask = case.inputs
    found = partial_log_prob(emissions, possible, transitions, start, end, mask)
    for b, row in enumerate(case.rows()):
        total = row.probabilities()[row.agreeing(possible[b])].sum()
        assert close(found[b].exp(), total)


def test_partial_labels_without_any_are_certain() -> None:
    case = make_case(1)
    emissions, *others = case.inputs
    found = partial_log_prob(emissions, torch.ones_like(emissions, dtype=torch.bool), *others)
    assert close(found, torch.zeros(3))


def test_partial_labels_with_one_each_are_labels() -> None:
    case = make_case(2)
    labels = case.random_labels(0)
    emissions, *others = case.inputs
    one = torch.nn.functional.one_hot(labels.clamp_min(0), case.num_labels).bool()
    assert close(partial_log_prob(emissions, one, *others), log_prob(emissions, labels, *others))


def test_partial_labels_that_nothing_agrees_with() -> None:
    case = make_case(3, mask="full")
    emissions, *others = case.inputs
    possible = torch.ones_like(emissions, dtype=torch.bool)
    possible[1, 2] = False
    with pytest.raises(RowError, match="row 1"):
        partial_log_prob(emissions, possible, *others)


@MANY
@given(cases(), st.integers(0, 1000))
def test_forced_labels_make_everything_conditional(case: Case, seed: int) -> None:
    labels = case.random_labels(seed)
    generator = torch.Generator().manual_seed(seed)
    forced = torch.rand(labels.shape, generator=generator) < 0.5
    one = torch.nn.functional.one_hot(labels.clamp_min(0), case.num_labels).bool()
    allowed = one | ~forced.unsqueeze(2)
    emissions, transitions, start, end, mask = case.inputs
    others = (transitions, start, end, mask)
    log_probs = log_prob(emissions, labels, *others, allowed=allowed)
    found = marginals(emissions, *others, allowed=allowed)
    for b, row in enumerate(case.rows()):
        agrees = row.agreeing(allowed[b])
        given = row.probabilities() * agrees / row.probabilities()[agrees].sum()
        assert close(log_probs[b].exp(), given[row.place(labels[b])], 1e-7)
        one = torch.nn.functional.one_hot(row.paths, case.num_labels).double()
        assert close(found[b, row.positions], torch.tensordot(given, one, 1), 1e-7)
