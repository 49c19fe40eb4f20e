"""L-BFGS and OWL-QN against scipy on likelihoods by enumeration."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import torch
from safetensors.torch import load, save
from torch import Tensor

from ncrf.crf import LinearChainCRF
from ncrf.errors import NcrfError
from ncrf.train import lbfgs
from ncrf.train.full_batch import minimize, run, with_l2
from ncrf.train.iterative_scaling import IterativeScaling
from ncrf.train.lbfgs import LBFGS
from ncrf.train.learner import Iteration, Learner
from ncrf.train.line_search import Trial, backtracking, strong_wolfe
from ncrf.train.perceptron import Perceptron
from tests.train.dense_crf import DenseCRF, make_crf


def least(function: Any, size: int, **options: Any) -> Any:
    """scipy's minimum, as exact as it gets."""
    limits = {"maxiter": 5000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-9}
    start = np.zeros(size)
    return scipy.optimize.minimize(
        function, start, jac=True, method="L-BFGS-B", options=limits, **options
    )


def zeros(crf: DenseCRF) -> Tensor:
    return torch.zeros(crf.size)


@pytest.mark.parametrize("seed", [0, 1])
def test_lbfgs_reaches_the_likelihood_of_scipy(seed: int) -> None:
    crf = make_crf(seed)
    exact = least(crf.value_and_gradient, crf.size)
    assert np.abs(exact.x).max() < 3  # the optimum is finite
    found = minimize(crf, zeros(crf))
    assert found.objective / crf.tokens == pytest.approx(exact.fun / crf.tokens, abs=1e-4)
    found = minimize(crf, zeros(crf), tolerance=1e-12)
    assert found.objective / crf.tokens == pytest.approx(exact.fun / crf.tokens, abs=1e-9)
    assert found.objective == pytest.approx(crf.value_and_gradient(found.weights.numpy())[0])
    assert found.weights.dtype == torch.float64


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_chain_of_ncrf_as_the_objective(dtype: torch.dtype) -> None:
    """Label pairs by pair scores; in float32 rounding is all that is between both."""
    crf = make_crf(1)
    longest, size = max(crf.lengths), crf.labels
    words, labels = (torch.zeros(len(crf), longest, dtype=torch.long) for _ in range(2))
    mask = torch.zeros(len(crf), longest, dtype=torch.bool)
    for n, length in enumerate(crf.lengths):
        words[n, :length] = torch.tensor(crf.words[n])
        labels[n, :length] = torch.tensor(crf.paths(n)[crf.gold[n]])
        mask[n, :length] = True
    chain = LinearChainCRF(size).to(dtype).requires_grad_(False)

    def objective(weights: Tensor) -> tuple[float, Tensor]:
        leaf = weights.clone().requires_grad_()
        table = leaf[: -size * size].view(-1, size).to(dtype)
        pairs = leaf[-size * size :].view(1, 1, size, size).to(dtype)
        every = pairs.expand(len(crf), longest - 1, size, size)
        value = -chain(table[words], labels, mask, "none", pair_scores=every).double().sum()
        (gradient,) = torch.autograd.grad(value, leaf)
        return value.item(), gradient

    exact = least(crf.value_and_gradient, crf.size)
    found = minimize(objective, zeros(crf), tolerance=1e-7)
    closeness = 1e-8 if dtype == torch.float64 else 1e-6
    assert found.objective / crf.tokens == pytest.approx(exact.fun / crf.tokens, abs=closeness)
    _, gradient = crf(found.weights)
    assert float(gradient.norm()) < 0.01


@pytest.mark.parametrize("c2", [0.05, 1.0, 50.0])
def test_l2(c2: float) -> None:
    crf = make_crf(2)

    def penalized(weights: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = crf.value_and_gradient(weights)
        return value + c2 * float((weights**2).sum()), gradient + 2 * c2 * weights

    exact = least(penalized, crf.size)
    found = minimize(with_l2(crf, c2), zeros(crf), tolerance=1e-10)
    assert found.objective / crf.tokens == pytest.approx(exact.fun / crf.tokens, abs=1e-8)
    assert np.allclose(found.weights.numpy(), exact.x, atol=1e-4)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("l1", [0.3, 2.0, 8.0])
def test_l1_is_the_minimum_over_split_weights(seed: int, l1: float) -> None:
    """w = u - v with u, v >= 0, where the penalty is l1 times the sum of both and so is smooth."""
    crf = make_crf(seed)

    def split(halves: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = crf.value_and_gradient(halves[: crf.size] - halves[crf.size :])
        return value + l1 * halves.sum(), np.concatenate([gradient, -gradient]) + l1

    exact = least(split, 2 * crf.size, bounds=[(0, None)] * (2 * crf.size))
    expected = exact.x[: crf.size] - exact.x[crf.size :]
    found = minimize(crf, zeros(crf), l1=l1, tolerance=1e-11)
    assert found.objective / crf.tokens == pytest.approx(exact.fun / crf.tokens, abs=1e-7)
    assert np.allclose(found.weights.numpy(), expected, atol=2e-3)
    assert int(found.weights.count_nonzero()) == int((np.abs(expected) > 1e-4).sum()) < crf.size


@pytest.mark.parametrize("l1", [0.3, 2.0])
def test_conditions_of_the_l1_optimum(l1: float) -> None:
    """Zero lies between the slopes on both sides of each weight (Karush, Kuhn, Tucker)."""
    crf = make_crf(1)
    weights = minimize(crf, zeros(crf), l1=l1, tolerance=1e-13).weights
    _, gradient = crf(weights)
    kept = weights != 0
    assert torch.allclose(gradient[kept], -l1 * weights[kept].sign(), atol=1e-4)
    assert bool((gradient[~kept].abs() <= l1).all())
    assert kept.any()
    assert not kept.all()


def test_a_penalty_that_leaves_nothing() -> None:
    crf = make_crf(0)
    _, gradient = crf(torch.zeros(crf.size, dtype=torch.float64))
    found = minimize(crf, zeros(crf), l1=float(gradient.abs().max()) + 0.01)
    assert not found.weights.any()
    assert found.reason == "the gradient is within the tolerance of zero"


@pytest.mark.parametrize("l1", [0.0, 1.0])
def test_an_iteration_takes_about_one_evaluation(l1: float) -> None:
    """On a problem with many weights of very different use, as words are."""
    generator = np.random.default_rng(0)
    examples, size = 400, 600
    frequency = 1 / np.arange(1, size + 1)
    inputs = torch.tensor((generator.random((examples, size)) < frequency * 20) * 1.0)
    sides = torch.tensor(generator.choice([-1.0, 1.0], size=examples), dtype=torch.float64)
    calls = 0

    def logistic(weights: Tensor) -> tuple[float, Tensor]:
        nonlocal calls
        calls += 1
        margin = inputs @ weights * sides
        value = torch.nn.functional.softplus(-margin).sum() + 0.1 * weights @ weights
        gradient = inputs.t() @ (-sides * torch.sigmoid(-margin)) + 0.2 * weights
        return value.item(), gradient

    records: list[Iteration] = []
    found = minimize(
        logistic,
        torch.zeros(size),
        l1=l1,
        tolerance=1e-9,
        callback=lambda record, _: records.append(record),
    )
    assert calls == sum(record.evaluations for record in records)
    assert found.iterations == len(records) >= 20
    assert calls <= 1.25 * found.iterations + 5
    assert found.iterations <= 150
    assert all(b.objective <= a.objective for a, b in itertools.pairwise(records))


def test_records() -> None:
    crf, records = make_crf(0), list[Iteration]()
    found = minimize(crf, zeros(crf), l1=2.0, callback=lambda record, _: records.append(record))
    assert [record.number for record in records] == list(range(1, found.iterations + 1))
    last = records[-1]
    assert last.objective == found.objective
    value, _ = crf(found.weights)
    assert last.objective == pytest.approx(value + 2.0 * float(found.weights.abs().sum()))
    assert last.active == int(found.weights.count_nonzero())
    assert last.gradient_norm is not None
    assert records[0].gradient_norm is not None
    assert last.gradient_norm < records[0].gradient_norm
    assert all(record.seconds > 0 and record.step > 0 for record in records)


def rosenbrock(weights: Tensor) -> tuple[float, Tensor]:
    x, y = weights.tolist()
    value = (1 - x) ** 2 + 100 * (y - x * x) ** 2
    slopes = [-2 * (1 - x) - 400 * x * (y - x * x), 200 * (y - x * x)]
    return value, torch.tensor(slopes, dtype=torch.float64)


def test_a_curved_valley() -> None:
    found = minimize(rosenbrock, torch.tensor([-1.2, 1.0]), tolerance=1e-12)
    assert torch.allclose(found.weights, torch.ones(2, dtype=torch.float64), atol=1e-6)
    assert found.iterations < 60


def test_values_that_are_not_finite_are_stepped_back_from() -> None:
    """-log(w) + w beyond a wall at 0: a step that is too long finds no number."""

    def barrier(weights: Tensor) -> tuple[float, Tensor]:
        w = float(weights)
        value = w - math.log(w) if w > 0 else math.nan
        return value, torch.tensor([1 - 1 / w if w != 0 else math.nan], dtype=torch.float64)

    found = minimize(barrier, torch.tensor([90.0]), tolerance=1e-12)
    assert float(found.weights) == pytest.approx(1, abs=1e-5)


def test_rounding_ends_the_training_without_an_error() -> None:
    """An objective in float32 stops falling long before its gradient is zero to float64."""
    crf = make_crf(0)

    def rounded(weights: Tensor) -> tuple[float, Tensor]:
        value, gradient = crf(weights)
        return float(np.float32(value)), gradient.float().double() * (1 + 1e-6)

    exact = least(crf.value_and_gradient, crf.size)
    found = minimize(rounded, zeros(crf), tolerance=0.0, iterations=300)
    assert found.objective / crf.tokens == pytest.approx(exact.fun / crf.tokens, abs=1e-5)
    assert found.iterations < 300


def test_past_steps_in_float32_lead_to_the_same_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    crf = make_crf(1)
    exact = minimize(crf, zeros(crf), tolerance=1e-10)
    monkeypatch.setattr(lbfgs, "_MANY_WEIGHTS", 1)
    learner = LBFGS(crf, zeros(crf), tolerance=1e-10)
    run(learner, iterations=200)
    assert learner.state_dict()["step.0"].dtype == torch.float32
    assert learner.objective == pytest.approx(exact.objective, abs=1e-6)
    assert learner.progress.iterations <= exact.iterations + 10


def test_a_start_that_is_not_finite() -> None:
    with pytest.raises(NcrfError, match="not finite where the training starts"):
        minimize(lambda w: (math.nan, w), torch.zeros(3))
    with pytest.raises(NcrfError, match="not finite where the training starts"):
        minimize(lambda w: (0.0, w / 0), torch.zeros(3))


def test_the_optimum_as_the_start() -> None:
    found = minimize(lambda w: (float(w @ w), 2 * w), torch.zeros(4))
    assert (found.iterations, found.objective) == (1, 0.0)
    assert found.reason == "the gradient is within the tolerance of zero"


def test_limits() -> None:
    crf = make_crf(0)
    found = minimize(crf, zeros(crf), iterations=3)
    assert (found.iterations, found.reason) == (3, "3 iterations are done")
    found = minimize(crf, zeros(crf), callback=lambda record, _: record.number == 2)
    assert (found.iterations, found.reason) == (2, "stopped")
    loose, tight = (minimize(crf, zeros(crf), tolerance=x) for x in (1e-2, 1e-8))
    assert loose.iterations < tight.iterations
    assert "in 10 iterations" in loose.reason


@pytest.mark.parametrize(
    "options", [{"l1": -1.0}, {"memory": 0}, {"tolerance": -1.0}, {"l1": math.nan}]
)
def test_arguments_out_of_range(options: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        minimize(lambda w: (0.0, w), torch.zeros(2), **options)


def learner(kind: str, crf: DenseCRF) -> Learner:
    made: Learner
    if kind.startswith("IIS"):
        made = IterativeScaling(crf, zeros(crf), algorithm=kind[-1], tolerance=0)
    elif kind in ("AP", "PA"):
        made = Perceptron(crf, zeros(crf), aggressiveness=1.0 if kind == "PA" else None)
    else:
        made = LBFGS(crf, zeros(crf), l1=0.5 if kind == "OWL-QN" else 0.0, tolerance=0)
    return made


KINDS = ["LBFGS", "OWL-QN", "IIS-S", "IIS-T", "AP", "PA"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stop", [0, 1, 9, 13])
def test_a_training_that_was_killed_goes_on_with_the_same_numbers(kind: str, stop: int) -> None:
    crf = make_crf(1)
    whole = learner(kind, crf)
    unbroken: list[Iteration] = []
    run(whole, iterations=16, callback=lambda record, _: unbroken.append(record))
    first = learner(kind, crf)
    run(first, iterations=stop)
    written = save({name: x.contiguous() for name, x in first.state_dict().items()})
    second = learner(kind, crf)
    second.load_state_dict(load(written))
    resumed: list[Iteration] = []
    run(second, iterations=16, callback=lambda record, _: resumed.append(record))
    assert torch.equal(second.weights, whole.weights)
    assert [(x.number, x.objective, x.step) for x in resumed] == [
        (x.number, x.objective, x.step) for x in unbroken[stop:]
    ]
    assert second.done == whole.done


@pytest.mark.parametrize("kind", KINDS)
def test_trainings_are_repeatable(kind: str) -> None:
    weights = []
    for _ in range(2):
        made = learner(kind, make_crf(0))
        run(made, iterations=8)
        weights.append(made.weights)
    assert torch.equal(*weights)


def line(function: Any) -> tuple[Any, Trial]:
    """Trials of a function of one number that gives value and slope."""

    def trial_at(step: float) -> Trial:
        value, slope = function(step)
        return Trial(step, value, slope, torch.tensor([slope]))

    return trial_at, trial_at(0.0)


def dent(x: float) -> tuple[float, float]:
    """The second function of Moré & Thuente (1994), with its minimum at 1.596."""
    b = 0.004
    return (x + b) ** 5 - 2 * (x + b) ** 4, 5 * (x + b) ** 4 - 8 * (x + b) ** 3


def bowl(x: float) -> tuple[float, float]:
    return (x - 7) ** 2, 2 * (x - 7)


def wall(x: float) -> tuple[float, float]:
    """It falls up to a wall at 2."""
    return (-math.log1p(x), -1 / (1 + x)) if x < 2 else (math.inf, math.inf)


@pytest.mark.parametrize("function", [dent, bowl])
@pytest.mark.parametrize("first", [1e-3, 0.1, 1.0, 10.0, 1e3])
def test_strong_wolfe_conditions(function: Any, first: float) -> None:
    trial_at, start = line(function)
    found, count = strong_wolfe(trial_at, start, first)
    assert found is not None
    assert found.value <= start.value + 1e-4 * found.step * start.slope
    assert abs(found.slope) <= 0.9 * abs(start.slope)
    assert count <= 15


def test_the_best_of_a_search_without_a_flat_place() -> None:
    trial_at, start = line(wall)
    found, count = strong_wolfe(trial_at, start, 1e-3)
    assert found is not None
    assert 0.5 < found.step < 2
    assert count <= 20


def test_a_direction_that_does_not_fall() -> None:
    trial_at, start = line(lambda x: (abs(x), -1.0 if x == 0 else 1.0))
    assert strong_wolfe(trial_at, start, 1.0)[0] is None
    trial_at, start = line(lambda x: (x * x, 0.0))
    assert backtracking(trial_at, start, 1.0, grow=False)[0] is None


@pytest.mark.parametrize("first", [1e-3, 1.0, 1e3])
def test_backtracking(first: float) -> None:
    def trial_at(step: float) -> Trial:
        return Trial(step, (step - 7) ** 2, -14 * step, None)

    start = Trial(0.0, 49.0, -14.0, None)
    plain, _ = backtracking(trial_at, start, first, grow=False)
    grown, _ = backtracking(trial_at, start, first, grow=True)
    assert plain is not None
    assert grown is not None
    assert plain.value < 49
    assert grown.value <= plain.value
    if first < 1:
        assert plain.step == first
        assert 3 < grown.step < 12
