"""Improved iterative scaling against scipy and against the equations that define it."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import torch
from torch import Tensor

from ncrf.errors import ConfigError, NcrfError
from ncrf.train.full_batch import minimize, run
from ncrf.train.iterative_scaling import IterativeScaling, Support, solve_updates
from tests.train.dense_crf import DenseCRF, make_crf


def train(crf: Any, algorithm: str, iterations: int, **options: Any) -> tuple[Any, list[float]]:
    learner = IterativeScaling(
        crf, torch.zeros(crf.size), algorithm=algorithm, tolerance=0.0, **options
    )
    objectives: list[float] = []
    run(
        learner,
        iterations=iterations,
        callback=lambda record, _: objectives.append(record.objective),
    )
    return learner, objectives


def greatest_likelihood(crf: DenseCRF) -> float:
    """Negative log-likelihood at scipy's optimum, per token."""
    found = scipy.optimize.minimize(
        crf.value_and_gradient,
        np.zeros(crf.size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9},
    )
    return float(found.fun) / crf.tokens


@pytest.mark.parametrize("seed", [0, 1])
def test_t_reaches_the_likelihood_of_scipy(seed: int) -> None:
    crf = make_crf(seed)
    learner, _ = train(crf, "T", 150)
    exact = greatest_likelihood(crf)
    assert learner.objective / crf.tokens == pytest.approx(exact, abs=1e-4)
    best = minimize(crf, torch.zeros(crf.size), tolerance=1e-12).objective
    assert learner.objective / crf.tokens == pytest.approx(best / crf.tokens, abs=1e-4)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("algorithm", ["S", "T"])
def test_the_likelihood_rises_in_every_iteration(seed: int, algorithm: str) -> None:
    crf = make_crf(seed)
    _, objectives = train(crf, algorithm, 60)
    start = crf.value_and_gradient(np.zeros(crf.size))[0]
    falls = -np.diff([start, *objectives])
    assert (falls > 0).all()


@pytest.mark.parametrize("seed", [0, 1])
def test_s_comes_near_and_t_comes_nearer(seed: int, record_property: Any) -> None:
    crf = make_crf(seed)
    exact = greatest_likelihood(crf)
    left = {}
    for algorithm in ("S", "T"):
        _, objectives = train(crf, algorithm, 50)
        left[algorithm] = objectives[-1] / crf.tokens - exact
        record_property(f"distance_of_{algorithm}_after_50", left[algorithm])
    assert 0 < left["T"] < left["S"] < 2e-3


def test_an_update_of_t_solves_its_equations() -> None:
    crf = make_crf(0)
    learner, _ = train(crf, "T", 1)
    zeros = torch.zeros(crf.size, dtype=torch.float64)
    by_total: dict[float, np.ndarray] = {}
    for (_, p), table in zip(crf.probabilities(zeros.numpy()), crf.features, strict=True):
        total = float(table.sum(1).max())
        by_total[total] = by_total.get(total, np.zeros(crf.size)) + p @ table
    reached = sum(
        counts * np.exp(total * learner.weights.numpy()) for total, counts in by_total.items()
    )
    assert len(by_total) > 2
    assert np.allclose(reached, crf.observed.numpy(), rtol=1e-8)


def test_an_update_of_s() -> None:
    crf = make_crf(0)
    learner, _ = train(crf, "S", 1)
    _, expected = crf.expected(torch.zeros(crf.size, dtype=torch.float64))
    assert crf.largest_total == 7  # four words and three pairs
    assert torch.allclose(learner.weights, (crf.observed / expected).log() / 7)


def test_s_and_t_are_one_where_all_sentences_are_of_one_total() -> None:
    crf = make_crf(0)
    same = [n for n, length in enumerate(crf.lengths) if length == 3]
    crf.features = [crf.features[n] for n in same]
    crf.gold = [crf.gold[n] for n in same]
    s, t = (train(crf, x, 10)[0] for x in ("S", "T"))
    assert s.dropped > 0
    assert torch.allclose(s.weights, t.weights, atol=1e-9)


def test_features_that_were_never_observed_are_dropped() -> None:
    crf = make_crf(2)
    unseen = crf.observed == 0
    assert int(unseen.sum()) == 1
    for algorithm in ("S", "T"):
        learner = IterativeScaling(crf, torch.ones(crf.size), algorithm=algorithm)
        run(learner, iterations=5)
        assert learner.dropped == 1
        assert not learner.weights[unseen].any()
        assert learner.weights[~unseen].all()


def test_features_of_any_value() -> None:
    """Values such as 0.5 make totals that are no whole numbers."""
    crf = make_crf(1)
    scale = np.linspace(0.3, 1.7, crf.size)
    crf.features = [table * scale for table in crf.features]
    assert len(set(crf.totals)) > 10
    learner, objectives = train(crf, "T", 300)
    assert (np.diff(objectives) < 0).all()
    assert learner.objective / crf.tokens == pytest.approx(greatest_likelihood(crf), abs=1e-4)


def root(observed: float, totals: np.ndarray, expected: np.ndarray) -> float:
    """The root by bracketing, on the logarithm, for one feature."""

    def miss(change: float) -> float:
        exponents = totals * change + np.log(expected)
        peak = exponents.max()
        return float(peak + np.log(np.exp(exponents - peak).sum()) - np.log(observed))

    found: float = scipy.optimize.brentq(miss, -800, 800, xtol=1e-14)
    return found


def test_newton_finds_the_roots() -> None:
    """Counts and totals over many orders of magnitude."""
    generator = np.random.default_rng(0)
    size = 40
    features, totals, expected = [], [], []
    observed = 10 ** generator.uniform(-3, 6, size)
    for k in range(size):
        few = int(generator.integers(1, 8))
        features += [k] * few
        totals += (10 ** generator.uniform(-1, 3.5, few)).tolist()
        expected += (10 ** generator.uniform(-9, 6, few)).tolist()
    order = generator.permutation(len(features))
    places, sums, counts = (np.array(x)[order] for x in (features, totals, expected))
    found = solve_updates(
        torch.from_numpy(observed),
        Support(torch.from_numpy(places), torch.from_numpy(sums)),
        torch.from_numpy(counts),
    )
    for k in range(size):
        here = places == k
        exact = root(observed[k], sums[here], counts[here])
        assert float(found[k]) == pytest.approx(exact, rel=1e-7, abs=1e-10)


def test_a_feature_without_probability() -> None:
    support = Support(torch.tensor([0, 1]), torch.tensor([2.0, 2.0]))
    with pytest.raises(NcrfError, match="feature 1 is observed, but has no probability"):
        solve_updates(torch.tensor([1.0, 1.0]).double(), support, torch.tensor([1.0, 0.0]).double())
    model: Any = SimpleNamespace(
        size=2,
        observed=torch.tensor([1.0, 1.0]),
        largest_total=2.0,
        refusal=None,
        expected=lambda weights: (1.0, torch.tensor([1.0, 0.0])),
    )
    with pytest.raises(NcrfError, match="feature 1 is observed, but has no probability"):
        train(model, "S", 1)


def test_a_bound_that_is_none() -> None:
    """Steps for a total of 1 overshoot, and the likelihood falls at last."""
    crf = make_crf(0)
    crf.__dict__["largest_total"] = 0.5
    with pytest.raises(NcrfError, match="the log-likelihood fell"):
        train(crf, "S", 50)


@pytest.mark.parametrize("algorithm", ["S", "T"])
def test_models_that_are_not_log_linear(algorithm: str) -> None:
    crf = make_crf(0)
    crf.refusal = "word_seq_feature=LSTM scores words by a network"
    with pytest.raises(ConfigError) as raised:
        IterativeScaling(crf, torch.zeros(crf.size), algorithm=algorithm)
    text = str(raised.value)
    assert f"optimizer=IIS-{algorithm}" in text
    assert "word_seq_feature=LSTM" in text
    assert "LBFGS" in text
    assert "\n" not in text
    crf = make_crf(0)
    crf.features = [-table for table in crf.features]
    with pytest.raises(ConfigError, match="a feature has a negative value"):
        IterativeScaling(crf, torch.zeros(crf.size), algorithm=algorithm)
    with pytest.raises(ValueError, match="'U', expected S or T"):
        IterativeScaling(make_crf(0), torch.zeros(crf.size), algorithm="U")


def test_convergence_ends_the_training() -> None:
    crf = make_crf(0)
    learner = IterativeScaling(crf, torch.zeros(crf.size), algorithm="T", tolerance=1e-4)
    reason = run(learner, iterations=1000)
    assert "fell by less than the tolerance" in reason
    assert 10 <= learner.progress.iterations < 200
    assert isinstance(learner.weights, Tensor)
