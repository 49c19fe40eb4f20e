"""LinearChainCRF: parameters, reductions, constraints."""

import math
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor

from ncrf import crf as functions
from ncrf.crf import LinearChainCRF, NBest
from tests.crf.oracle import Case, close, make_case

LEGAL = ([True, True, False], [[True, True, False], [True] * 3, [True] * 3], [True] * 3)


def layer_and_case(seed: int = 1, **options: Any) -> tuple[LinearChainCRF, Case]:
    case = make_case(seed, labels=3, **options).to(torch.float32)
    crf = LinearChainCRF(3)
    with torch.no_grad():
        crf.transitions.copy_(case.transitions)
        crf.start_transitions.copy_(case.start)
        crf.end_transitions.copy_(case.end)
    return crf, case


def test_parameters_start_at_zero() -> None:
    crf = LinearChainCRF(4)
    assert {name: tuple(x.shape) for name, x in crf.state_dict().items()} == {
        "transitions": (4, 4),
        "start_transitions": (4,),
        "end_transitions": (4,),
    }
    assert not any(x.any() for x in crf.parameters())
    assert repr(crf) == "LinearChainCRF(num_labels=4)"


def test_methods_are_the_functions() -> None:
    crf, case = layer_and_case()
    emissions, mask = case.emissions, case.mask
    for name in (
        "log_partition",
        "marginals",
        "forward_backward",
        "pairwise_marginals",
        "expected_counts",
        "posterior_decode",
        "entropy",
    ):
        found = getattr(crf, name)(emissions, mask)
        expected = getattr(functions, name)(*case.inputs)
        found, expected = (x if isinstance(x, tuple) else (x,) for x in (found, expected))
        assert all(close(a, b, 1e-6) for a, b in zip(found, expected, strict=True)), name
    labels = case.random_labels(0)
    others = case.inputs[1:]
    assert close(crf.path_score(emissions, labels, mask), path_score(case, labels), 1e-6)
    assert close(
        crf.log_prob(emissions, labels, mask), functions.log_prob(emissions, labels, *others), 1e-6
    )
    assert torch.equal(crf.decode(emissions, mask), functions.viterbi(*case.inputs).labels)
    best = functions.nbest(*case.inputs, n=4)
    assert torch.equal(crf.nbest(emissions, mask, 4).labels, best.labels)
    draws = [torch.Generator().manual_seed(5) for _ in range(2)]
    assert torch.equal(
        crf.sample(emissions, mask, n=2, generator=draws[0]),
        functions.sample(*case.inputs, n=2, generator=draws[1]),
    )


def path_score(case: Case, labels: Tensor) -> Tensor:
    emissions, *others = case.inputs
    return functions.path_score(emissions, labels, *others)


def test_reductions() -> None:
    crf, case = layer_and_case(2)
    labels = case.random_labels(0)
    rows = crf(case.emissions, labels, case.mask, reduction="none")
    assert rows.shape == (3,)
    assert close(crf(case.emissions, labels, case.mask), rows.sum(), 1e-6)
    assert close(crf(case.emissions, labels, case.mask, reduction="mean"), rows.sum() / 3, 1e-6)
    words = case.mask.sum()
    assert close(
        crf(case.emissions, labels, case.mask, reduction="token_mean"), rows.sum() / words, 1e-6
    )
    whole = crf(case.emissions, labels.clamp_min(0), reduction="token_mean")
    assert close(whole, crf(case.emissions, labels.clamp_min(0)) / labels.numel(), 1e-6)
    with pytest.raises(ValueError, match="'average', expected one of none, sum, mean"):
        crf(case.emissions, labels, case.mask, reduction="average")


def test_means_of_nothing_are_zero() -> None:
    crf = LinearChainCRF(3)
    for reduction in ("sum", "mean", "token_mean"):
        for shape in ((0, 4), (2, 0), (2, 4)):
            mask = torch.zeros(shape, dtype=torch.bool)
            labels = torch.full(shape, -100)
            assert crf(torch.zeros(*shape, 3), labels, mask, reduction=reduction) == 0


def test_sets_of_labels() -> None:
    crf, case = layer_and_case(3)
    possible = torch.rand(case.emissions.shape, generator=torch.Generator().manual_seed(0)) < 0.5
    possible[..., 1] = True
    emissions, *others = case.inputs
    expected = functions.partial_log_prob(emissions, possible, *others)
    assert close(crf(emissions, possible, case.mask, reduction="none"), expected, 1e-6)


def test_constraints_in_loss_and_decode() -> None:
    """none, decode and all: the caller gives them to no method, to decoding ones, to the layer."""
    crf, case = layer_and_case(4, mask="full")
    emissions, mask = case.emissions, case.mask
    labels = torch.zeros(case.mask.shape, dtype=torch.long)
    everywhere = LinearChainCRF(3, LEGAL)
    everywhere.load_state_dict(crf.state_dict())
    assert close(everywhere.decode(emissions), crf.decode(emissions, mask, constraints=LEGAL))
    assert close(
        everywhere(emissions, labels), crf(emissions, labels, mask, constraints=LEGAL), 1e-6
    )
    assert everywhere(emissions, labels) > crf(emissions, labels, mask)
    found = everywhere.nbest(emissions, mask, 300)
    for row in found.labels.flatten(0, 1)[found.log_probabilities.flatten() > -math.inf]:
        assert row[0] != 2
        assert (0, 2) not in set(zip(row.tolist(), row.tolist()[1:], strict=False))
    assert close(found.log_probabilities.exp().sum(1), torch.ones(3), 1e-6)
    assert not everywhere.marginals(emissions, mask)[:, 0, 2].any()
    assert sorted(everywhere.state_dict()) == sorted(crf.state_dict())
    assert everywhere.double().legal_start.dtype == torch.bool


def test_constraints_of_a_softmax_model() -> None:
    """The chain with zero transitions is a softmax at each word, here with legal pairs only."""
    generator = torch.Generator().manual_seed(5)
    emissions = torch.randn(2, 4, 3, generator=generator)
    crf = LinearChainCRF(3)
    assert close(crf.marginals(emissions), emissions.softmax(2), 1e-6)
    assert torch.equal(crf.decode(emissions), emissions.argmax(2))
    best = crf.nbest(emissions, None, 81, constraints=LEGAL)
    assert close(crf.marginals(emissions, constraints=LEGAL), expected_marginals(best), 1e-6)


def expected_marginals(best: NBest) -> Tensor:
    one = torch.nn.functional.one_hot(best.labels, 3).double()
    return (best.log_probabilities.double().exp()[..., None, None] * one).sum(1)


def test_constraints_of_another_shape() -> None:
    with pytest.raises(ValueError, match=r"constraints\.transitions"):
        LinearChainCRF(4, ([True] * 4, LEGAL[1], [True] * 4))
    with pytest.raises(ValueError, match="three arrays"):
        LinearChainCRF(3, LEGAL[:2])


def test_numbers_of_labels_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="num_labels is 0"):
        LinearChainCRF(0)
    with pytest.raises(ValueError, match=r"expected \[B, L, 3\]"):
        LinearChainCRF(3).decode(torch.zeros(1, 2, 4))


def test_training_learns_a_rule() -> None:
    """Labels that alternate are learned from emissions that say nothing."""
    crf = LinearChainCRF(2)
    labels = torch.tensor([[0, 1, 0, 1, 0], [1, 0, 1, 0, 1]])
    optimizer = torch.optim.Adam(crf.parameters(), lr=0.2)
    for _ in range(50):
        optimizer.zero_grad()
        torch.autograd.backward(-crf(torch.zeros(2, 5, 2), labels))
        optimizer.step()
    hint = torch.zeros(2, 5, 2)
    hint[0, 2, 0] = hint[1, 2, 1] = 1.0
    assert torch.equal(crf.decode(hint), labels)


def test_the_crf_needs_nothing_else_of_the_project() -> None:
    code = (
        "import sys; sys.modules['yaml'] = None; import ncrf.crf; "
        "print([m for m in sys.modules if m.startswith('ncrf.') and not m.startswith('ncrf.crf')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr
