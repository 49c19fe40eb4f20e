"""Samples and posterior decoding against enumeration."""

import pytest
import torch
from hypothesis import given, settings

from ncrf.crf import RowError, posterior_decode, sample
from tests.crf.oracle import Case, cases, make_case

MANY = settings(max_examples=60)


@pytest.mark.parametrize("by_position", [False, True])
def test_labelings_come_as_often_as_they_are_probable(by_position: bool) -> None:
    case = make_case(
        1, batch=3, width=4, labels=3, forbidden=0.3, by_position=by_position, mask="holes"
    )
    n = 20_000
    generator = torch.Generator().manual_seed(0)
    found = sample(*case.inputs, n=n, generator=generator)
    assert found.shape == (3, n, 4)
    for b, row in enumerate(case.rows()):
        p = row.probabilities()
        places = torch.zeros(n, dtype=torch.long)
        for position in row.positions:
            places = places * case.num_labels + found[b, :, position]
        seen = torch.bincount(places, minlength=len(p)) / n
        deviation = (p * (1 - p) / n).sqrt()
        assert ((seen - p).abs() <= 4.5 * deviation + 1e-12).all()
        assert not found[b][:, ~case.mask[b]].any()


@MANY
@given(cases())
def test_samples_are_possible(case: Case) -> None:
    found = sample(*case.inputs, n=3, generator=torch.Generator().manual_seed(1))
    for b, row in enumerate(case.rows()):
        for labels in found[b]:
            assert row.probabilities()[row.place(labels)] > 0


def test_a_generator_makes_samples_repeatable() -> None:
    case = make_case(2)
    first, second = (
        sample(*case.inputs, n=5, generator=torch.Generator().manual_seed(3)) for _ in range(2)
    )
    assert torch.equal(first, second)


def test_samples_that_cannot_be() -> None:
    case = make_case(3, mask="full")
    with pytest.raises(ValueError, match="n is 0"):
        sample(*case.inputs, n=0)
    emissions = case.emissions.clone()
    emissions[1, 0] = -torch.inf
    with pytest.raises(RowError, match="row 1"):
        sample(emissions, *case.inputs[1:])


@MANY
@given(cases())
def test_posterior_decode(case: Case) -> None:
    found = posterior_decode(*case.inputs)
    for b, row in enumerate(case.rows()):
        marginals = row.marginals()
        chosen = marginals.gather(1, found[b, row.positions].unsqueeze(1)).squeeze(1)
        assert torch.allclose(chosen, marginals.amax(1))
    assert not found[~case.mask].any()
