"""Viterbi and n-best against enumeration."""

import math
import sys
import time
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ncrf.crf import RowError, log_prob, nbest, viterbi
from tests.crf.oracle import Case, by_row, cases, close, make_case

MANY = settings(max_examples=80)


@MANY
@given(cases())
def test_viterbi(case: Case) -> None:
    found = viterbi(*case.inputs)
    assert close(found.scores, by_row(case, lambda row: row.scores().max()))
    for b, row in enumerate(case.rows()):
        assert close(row.scores()[row.place(found.labels[b])], row.scores().max())
    assert not found.labels[~case.mask].any()


@MANY
@given(cases(), st.sampled_from([1, 40, 1000]))
def test_viterbi_as_on_a_gpu(case: Case, numbers: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        module = sys.modules["ncrf.crf.viterbi"]
        patch.setattr(module, "_walk_back", module._compose)
        patch.setattr(module, "_MOST_NUMBERS", numbers)
        found = viterbi(*case.inputs)
    for b, row in enumerate(case.rows()):
        assert close(row.scores()[row.place(found.labels[b])], row.scores().max())
    assert not found.labels[~case.mask].any()


@MANY
@given(cases(), st.sampled_from([1, 2, 3, 10, 70]))
def test_nbest(case: Case, n: int) -> None:
    check_nbest(case, n)


@MANY
@given(cases(), st.sampled_from([2, 10, 70]))
def test_nbest_with_ties(case: Case, n: int) -> None:
    whole = case.changed(lambda x: x.div(10).round())
    check_nbest(whole, n)


def check_nbest(case: Case, n: int) -> None:
    found = nbest(*case.inputs, n=n)
    for b, row in enumerate(case.rows()):
        log_probs = (row.scores() - row.log_z()).sort(descending=True).values
        possible = int((log_probs > -torch.inf).sum())
        count = int(found.counts[b])
        assert count == min(n, possible)
        assert close(found.log_probabilities[b, :count], log_probs[:count])
        places = [row.place(y) for y in found.labels[b, :count]]
        assert len(set(places)) == count
        exact = (row.scores() - row.log_z())[places]
        assert close(found.log_probabilities[b, :count], exact)
        assert not found.labels[b, :, ~case.mask[b]].any()
        assert (found.log_probabilities[b, count:] == -torch.inf).all()
        assert not found.labels[b, count:].any()
        assert found.log_probabilities[b].exp().sum() <= 1 + 1e-9


@MANY
@given(cases(labels=3))
def test_constraints_leave_only_what_is_legal(case: Case) -> None:
    legal = constraints(3)
    limited = constrained(case, legal)
    if any(bool((row.scores() == -torch.inf).all()) for row in limited.rows()):
        with pytest.raises(RowError):
            viterbi(*case.inputs, constraints=legal)
        return
    assert torch.equal(
        viterbi(*case.inputs, constraints=legal).labels, viterbi(*limited.inputs).labels
    )
    found, expected = nbest(*case.inputs, n=9, constraints=legal), nbest(*limited.inputs, n=9)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def constraints(labels: int) -> tuple[Any, Any, Any]:
    start = [True] * (labels - 1) + [False]
    transitions = [[(i, j) != (0, labels - 1) for j in range(labels)] for i in range(labels)]
    return start, transitions, [False] + [True] * (labels - 1)


def constrained(case: Case, legal: Any) -> Case:
    start, transitions, end = (torch.tensor(x) for x in legal)
    return Case(
        case.emissions,
        case.transitions.masked_fill(~transitions, -torch.inf),
        case.start.masked_fill(~start, -torch.inf),
        case.end.masked_fill(~end, -torch.inf),
        case.mask,
    )


def test_one_word_sentences_have_distinct_labelings() -> None:
    case = make_case(1, batch=2, width=1, labels=4, mask="full")
    found = nbest(*case.inputs, n=10)
    assert found.counts.tolist() == [4, 4]
    assert found.labels.shape == (2, 4, 1)
    assert sorted(found.labels[0, :, 0].tolist()) == [0, 1, 2, 3]
    assert close(found.log_probabilities.exp().sum(1), torch.ones(2))


def test_an_empty_row_has_one_labeling() -> None:
    case = make_case(2, batch=2, width=3)
    case.mask[0] = False
    case.mask[1] = True
    found = nbest(*case.inputs, n=5)
    assert found.counts.tolist() == [1, 5]
    assert found.log_probabilities[0].tolist() == [0.0, *[-math.inf] * 4]
    assert not found.labels[0].any()


def test_nothing_to_decode() -> None:
    empty = torch.zeros(2, 0, 3)
    found = nbest(empty, torch.zeros(3, 3), n=4)
    assert found.labels.shape == (2, 1, 0)
    assert found.counts.tolist() == [1, 1]
    assert viterbi(empty, torch.zeros(3, 3)).labels.shape == (2, 0)
    assert viterbi(torch.zeros(0, 5, 3), torch.zeros(3, 3)).labels.shape == (0, 5)
    assert nbest(torch.zeros(0, 5, 3), torch.zeros(3, 3), n=2).labels.shape == (0, 2, 5)


def test_more_labels_than_fit_one_block() -> None:
    """Many labels and rows take other ways through the max-product pass."""
    generator = torch.Generator().manual_seed(3)
    for batch, labels in ((3, 70), (9, 200), (800, 20)):
        emissions = torch.randn(batch, 4, labels, generator=generator)
        transitions = torch.randn(labels, labels, generator=generator)
        found = viterbi(emissions, transitions)
        alone = [viterbi(row[None].double(), transitions.double()) for row in emissions[:9]]
        assert torch.equal(found.labels[:9], torch.cat([x.labels for x in alone]))
        best = nbest(emissions[:9], transitions, n=2)
        assert torch.equal(best.labels[:, 0], found.labels[:9])


def test_hundred_best_of_long_sentences() -> None:
    generator = torch.Generator().manual_seed(4)
    emissions = torch.randn(16, 200, 19, generator=generator)
    transitions = torch.randn(19, 19, generator=generator)
    began = time.perf_counter()
    found = nbest(emissions, transitions, n=100)
    assert time.perf_counter() - began < 10
    assert found.counts.tolist() == [100] * 16
    assert (found.log_probabilities.diff(dim=1) <= 0).all()
    for row in found.labels:
        assert len(set(map(tuple, row.tolist()))) == 100
    many = emissions.repeat_interleave(100, 0)
    scores = log_prob(many, found.labels.flatten(0, 1), transitions)
    assert close(found.log_probabilities.flatten(), scores, 1e-4)


def test_legal_labelings_beyond_counting() -> None:
    emissions = torch.zeros(1, 1500, 3)
    found = nbest(emissions, torch.zeros(3, 3), n=7)
    assert found.counts.tolist() == [7]
    assert close(found.log_probabilities, torch.full((1, 7), -1500 * math.log(3)), 1e-6)


def test_no_labeling_is_possible() -> None:
    emissions = torch.zeros(2, 3, 2)
    emissions[1, 1] = -math.inf
    for decode in (viterbi, lambda *a: nbest(*a, n=2)):
        with pytest.raises(RowError, match="row 1: no labeling is possible") as raised:
            decode(emissions, torch.zeros(2, 2))
        assert raised.value.row == 1


def test_n_below_one() -> None:
    with pytest.raises(ValueError, match="n is 0"):
        nbest(torch.zeros(1, 1, 2), torch.zeros(2, 2), n=0)
