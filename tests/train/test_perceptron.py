"""The averaged perceptron and passive-aggressive updates on labelings by enumeration."""

import math

import numpy as np
import pytest
import torch

from ncrf.train.full_batch import run
from ncrf.train.perceptron import Mistake, Perceptron
from tests.train.dense_crf import DenseCRF, make_crf


def separable(seed: int = 3) -> DenseCRF:
    """Each given labeling is the best one under some weights."""
    crf = make_crf(seed, sentences=40, scale=2.0)
    true = np.random.default_rng(seed).normal(size=crf.size)
    crf.gold = [int(np.argmax(table @ true)) for table in crf.features]
    return crf


@pytest.mark.parametrize("aggressiveness", [None, 1.0])
def test_what_can_be_separated_is_learned(aggressiveness: float | None) -> None:
    crf = separable()
    learner = Perceptron(crf, torch.zeros(crf.size), aggressiveness=aggressiveness, tolerance=0.0)
    objectives: list[float] = []
    reason = run(
        learner, iterations=200, callback=lambda record, _: objectives.append(record.objective)
    )
    assert reason == "the last pass made no mistake"
    assert objectives[-1] == 0
    assert objectives[0] > 0
    assert crf.errors(learner._current) == 0
    assert crf.errors(learner.weights) < len(crf) / 4


@pytest.mark.parametrize("aggressiveness", [None, 0.3])
def test_the_average_is_that_of_the_weights_after_each_sentence(
    aggressiveness: float | None,
) -> None:
    crf = make_crf(0, sentences=15)
    learner = Perceptron(crf, torch.zeros(crf.size), aggressiveness=aggressiveness, seed=7)
    run(learner, iterations=3)
    weights, total, seen = np.zeros(crf.size), np.zeros(crf.size), 0
    for epoch in range(3):
        order = torch.randperm(15, generator=torch.Generator().manual_seed(7 + epoch))
        for sentence in order.tolist():
            found = crf.mistake(torch.from_numpy(weights), sentence)
            if found is not None:
                difference = np.zeros(crf.size)
                difference[found.features.numpy()] = found.difference.numpy()
                rate = 1.0
                if aggressiveness is not None:
                    loss = math.sqrt(found.wrong) - weights @ difference
                    rate = min(aggressiveness, loss / (difference @ difference))
                weights = weights + rate * difference
            total += weights
            seen += 1
    assert seen == 45
    assert np.allclose(learner._current.numpy(), weights)
    assert np.allclose(learner.weights.numpy(), total / seen)


class OneMistake:
    """A model of one sentence, whose best labeling is always wrong by so much."""

    def __len__(self) -> int:
        return 1

    def mistake(self, weights: torch.Tensor, sentence: int) -> Mistake:
        return Mistake(torch.tensor([0, 2]), torch.tensor([2.0, -1.0]), 4)


def test_a_passive_aggressive_step_reaches_the_margin_and_no_more() -> None:
    """The margin is the square root of the number of wrong labels."""
    learner = Perceptron(OneMistake(), torch.zeros(3), aggressiveness=10.0)
    record = learner.iterate()
    assert record.objective == 2.0
    difference = torch.tensor([2.0, 0.0, -1.0], dtype=torch.float64)
    assert float(learner._current @ difference) == pytest.approx(2.0)
    assert torch.allclose(learner._current, difference * 2 / 5)
    limited = Perceptron(OneMistake(), torch.zeros(3), aggressiveness=0.1)
    limited.iterate()
    assert torch.allclose(limited._current, difference * 0.1)
    assert record.gradient_norm is None
    assert (record.number, record.active, record.evaluations) == (1, 2, 1)


def test_an_aggressiveness_that_is_none() -> None:
    with pytest.raises(ValueError, match="expected above 0"):
        Perceptron(OneMistake(), torch.zeros(3), aggressiveness=0.0)
