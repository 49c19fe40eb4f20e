"""The CRF of a hidden Markov model, against the model's own posterior."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from ncrf.crf import (
    LinearChainCRF,
    NoLabelingError,
    RowError,
    from_hmm,
)


def model(
    seed: int, states: int = 3, symbols: int = 4, *, sparse: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random start [Y], transition [Y, Y] and emission [Y, V]; sparse ones have zeros."""
    generator = np.random.default_rng(seed)
    tables = [generator.random(shape) for shape in ((states,), (states, states), (states, symbols))]
    if sparse:
        for table in tables:
            table[generator.random(table.shape) < 0.4] = 0
            table[..., 0] += 0.05
    start, transition, emission = (x / x.sum(-1, keepdims=True) for x in tables)
    return start, transition, emission


def joint(hmm: Any, states: Any, observations: Any, end: Any = None) -> float:
    """P(states, observations) as the product that defines a hidden Markov model."""
    start, transition, emission = hmm
    p = start[states[0]] * emission[states[0], observations[0]]
    for t in range(1, len(states)):
        p *= transition[states[t - 1], states[t]] * emission[states[t], observations[t]]
    return p if end is None else p * end[states[-1]]


def posterior(hmm: Any, observations: Any, end: Any = None) -> dict[tuple[int, ...], float]:
    """P(states | observations) of all sequences of states, by enumeration."""
    every = list(itertools.product(range(len(hmm[0])), repeat=len(observations)))
    joints = {states: joint(hmm, states, observations, end) for states in every}
    total = sum(joints.values())
    return {states: p / total for states, p in joints.items()}


def smoothed(hmm: Any, observations: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """P(state) [L, Y], P(pair of states) [L-1, Y, Y] and P(observations): forward-backward."""
    start, transition, emission = hmm
    length = len(observations)
    forward = np.zeros((length, len(start)))
    backward = np.ones((length, len(start)))
    forward[0] = start * emission[:, observations[0]]
    for t in range(1, length):
        forward[t] = forward[t - 1] @ transition * emission[:, observations[t]]
    for t in range(length - 2, -1, -1):
        backward[t] = transition @ (emission[:, observations[t + 1]] * backward[t + 1])
    evidence = forward[-1].sum()
    pairs = np.stack(
        [
            forward[t][:, None]
            * transition
            * (emission[:, observations[t + 1]] * backward[t + 1])[None]
            for t in range(length - 1)
        ]
    )
    return forward * backward / evidence, pairs / evidence, evidence


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_posterior_by_enumeration(seed: int, sparse: bool) -> None:
    hmm = model(seed, sparse=sparse)
    crf, emissions = from_hmm(*hmm)
    states = torch.tensor(list(itertools.product(range(3), repeat=3)))
    checked = 0
    for observations in itertools.product(range(4), repeat=3):
        if sum(joint(hmm, y, observations) for y in states.tolist()) == 0:
            continue
        scores = emissions(torch.tensor([observations]))
        found = crf.path_score(scores.expand(27, 3, 3), states) - crf.log_partition(scores)
        expected = list(posterior(hmm, observations).values())
        assert np.allclose(found.exp().detach().numpy(), expected, atol=1e-12)
        possible = np.array(expected) > 0
        log_probs = crf.log_prob(scores.expand(int(possible.sum()), 3, 3), states[possible])
        assert np.allclose(log_probs.exp().detach().numpy(), np.array(expected)[possible])
        checked += 1
    assert checked > 10


@pytest.mark.parametrize("sparse", [False, True])
def test_marginals_by_forward_backward(sparse: bool) -> None:
    hmm = model(7, states=5, symbols=6, sparse=sparse)
    crf, emissions = from_hmm(*hmm)
    generator = np.random.default_rng(0)
    lengths = [12, 1, 7]
    drawn = [draw(hmm, length, generator) for length in lengths]
    observations = torch.full((3, 12), -100)
    for b, symbols in enumerate(drawn):
        observations[b, : len(symbols)] = torch.tensor(symbols)
    mask = observations >= 0
    scores = emissions(observations, mask)
    for b, symbols in enumerate(drawn):
        if len(symbols) == 1:
            continue
        states, pairs, evidence = smoothed(hmm, symbols)
        n = len(symbols)
        assert np.allclose(crf.marginals(scores, mask)[b, :n].detach().numpy(), states, atol=1e-12)
        found = crf.pairwise_marginals(scores, mask)[b, : n - 1].detach().numpy()
        assert np.allclose(found, pairs, atol=1e-12)
        log_z = crf.log_partition(scores, mask)[b].item()
        assert log_z == pytest.approx(np.log(evidence), abs=1e-10)


def draw(hmm: Any, length: int, generator: np.random.Generator) -> list[int]:
    """Symbols that the model emits."""
    start, transition, emission = hmm
    state = generator.choice(len(start), p=start)
    symbols = []
    for _ in range(length):
        symbols.append(int(generator.choice(emission.shape[1], p=emission[state])))
        state = generator.choice(len(start), p=transition[state])
    return symbols


def test_best_states() -> None:
    hmm = model(8, sparse=True)
    crf, emissions = from_hmm(*hmm)
    symbols = draw(hmm, 6, np.random.default_rng(1))
    every = posterior(hmm, symbols)
    found = crf.decode(emissions(torch.tensor([symbols])))[0].tolist()
    assert every[tuple(found)] == pytest.approx(max(every.values()), abs=1e-12)


def test_an_end_state() -> None:
    start, transition, emission = model(9)
    end = np.array([0.3, 0.0, 0.6])
    hmm = (start, transition * (1 - end)[:, None], emission)
    crf, emissions = from_hmm(*hmm, end)
    symbols = [2, 0, 3]
    scores = emissions(torch.tensor([symbols]))
    for states, p in posterior(hmm, symbols, end).items():
        score = crf.path_score(scores, torch.tensor([states])) - crf.log_partition(scores)
        assert score.exp().item() == pytest.approx(p, abs=1e-12)


def test_masked_observations_are_as_if_not_there() -> None:
    crf, emissions = from_hmm(*model(10))
    mask = torch.tensor([[True, False, True, True]])
    whole = torch.tensor([[3, 99, 0, 1]])
    found = crf.marginals(emissions(whole, mask), mask)[0, mask[0]]
    alone = crf.marginals(emissions(torch.tensor([[3, 0, 1]])))[0]
    assert torch.allclose(found, alone)


def test_observations_that_cannot_be() -> None:
    start, transition, emission = model(11)
    emission = np.concatenate([emission, np.zeros((3, 1))], 1)
    crf, emissions = from_hmm(start, transition, emission)
    scores = emissions(torch.tensor([[0, 1], [4, 1]]))
    with pytest.raises(NoLabelingError, match="row 1"):
        crf.marginals(scores)
    with pytest.raises(RowError, match="row 0, position 1: observation 5, expected 0 to 4"):
        emissions(torch.tensor([[0, 5]]))
    with pytest.raises(TypeError, match="expected integers"):
        emissions(torch.zeros(1, 2))
    with pytest.raises(ValueError, match=r"expected \[B, L\]"):
        emissions(torch.tensor([0, 1]))


def test_training_goes_on_from_it() -> None:
    """The gradient is finite where probabilities are 0, and zeros stay zeros."""
    hmm = model(12, sparse=True)
    crf, emissions = from_hmm(*hmm)
    symbols = torch.tensor([draw(hmm, 8, np.random.default_rng(3)) for _ in range(4)])
    with torch.no_grad():
        states = crf.decode(emissions(symbols))
    parameters = [*crf.parameters(), *emissions.parameters()]
    before = crf(emissions(symbols), states)
    torch.autograd.backward(-before)
    with torch.no_grad():
        for parameter in parameters:
            assert parameter.grad is not None
            assert torch.isfinite(parameter.grad).all()
            parameter -= 0.05 * parameter.grad
    assert crf(emissions(symbols), states) > before
    assert torch.equal(crf.transitions.isinf(), torch.tensor(hmm[1] == 0))


def test_types_of_tables() -> None:
    hmm = model(13)
    crf, emissions = from_hmm(*(x.tolist() for x in hmm))
    assert isinstance(crf, LinearChainCRF)
    assert emissions.scores.dtype == crf.transitions.dtype == torch.float64
    crf, emissions = from_hmm(*(torch.tensor(x, dtype=torch.float32) for x in hmm))
    assert emissions.scores.dtype == crf.transitions.dtype == torch.float32
    assert repr(emissions) == "ObservationScores(symbols=4, labels=3)"


@pytest.mark.parametrize(
    ("place", "change", "message"),
    [
        (0, lambda x: x[:2], r"start: shape \[2\], expected \[3\]"),
        (0, lambda x: x * 0.5, r"start: probabilities sum to 0\.5, expected 1"),
        (1, lambda x: x[:, :2], r"transition: shape \[3, 2\], expected \[3, 3\]"),
        (1, lambda x: x * [[1], [1], [2]], r"transition of state 2: probabilities sum to 2"),
        (2, lambda x: x.T, r"emission: shape \[4, 3\], expected \[3, 3\]"),
        (2, lambda x: x - 0.9, r"emission holds a number below 0 or NaN"),
        (2, lambda x: x * np.nan, r"emission holds a number below 0 or NaN"),
    ],
)
def test_tables_that_are_no_hmm(place: int, change: Any, message: str) -> None:
    hmm = list(model(14))
    hmm[place] = change(hmm[place])
    with pytest.raises(ValueError, match=message):
        from_hmm(*hmm)
