"""Learners that go sentence by sentence and need nothing but the best labeling.

The averaged perceptron (Collins 2002) and passive-aggressive updates (Crammer et al. 2006): where
the best labeling is not the given one, its features lose weight and those of the given one gain.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from ncrf.train.learner import Iteration, Progress


class Mistake(NamedTuple):
    """How a sentence's given labeling differs from the best one.

    Attributes:
        features: [n] integers, the features that differ in their counts, each once.
        difference: [n], the given labeling's counts less the best one's.
        wrong: number of words with a wrong label.
    """

    features: Tensor
    difference: Tensor
    wrong: int


class SentenceModel(Protocol):
    """What these learners ask of a model and its corpus."""

    def __len__(self) -> int:
        """The number of sentences."""

    def mistake(self, weights: Tensor, sentence: int) -> Mistake | None:
        """What is wrong with the best labeling of a sentence under weights [K], or None."""


class Perceptron:
    """The averaged perceptron, or passive-aggressive learning; one iteration is one pass.

    Attributes:
        objective: the loss of the last pass, summed over its sentences; NaN before the first.
        progress: iterations so far.
    """

    def __init__(
        self,
        model: SentenceModel,
        weights: Tensor,
        *,
        aggressiveness: float | None = None,
        tolerance: float = 1e-5,
        period: int = 10,
        seed: int = 42,
    ) -> None:
        """Takes the problem; nothing is decoded yet.

        Args:
            model: the sentences.
            weights: [K], where to start.
            aggressiveness: None for the perceptron; C, the largest step, for passive-aggressive
                learning (PA-I), whose loss is that of the margin sqrt(number of wrong labels).
            tolerance: see Progress.
            period: see Progress.
            seed: of the order of the sentences, which is new in each pass.

        Raises:
            ValueError: the aggressiveness is not above 0, or the tolerance out of range.
        """
        if aggressiveness is not None and not aggressiveness > 0:
            raise ValueError(f"aggressiveness is {aggressiveness}, expected above 0")
        self.objective = math.nan
        self.progress = Progress(tolerance, period)
        self._model, self._aggressiveness, self._seed = model, aggressiveness, seed
        self._current = weights.detach().to(torch.float64, copy=True)
        # The sum of all changes, each times the number of sentences that had been seen before it.
        self._late = torch.zeros_like(self._current)
        self._seen = 0
        self._mistakes = -1

    @property
    def weights(self) -> Tensor:
        """[K] in float64, averaged over all sentences seen so far."""
        return self._current - self._late / max(self._seen, 1)

    @property
    def done(self) -> str | None:
        """Why there is nothing left to do, or None."""
        if self._mistakes == 0:
            return "the last pass made no mistake"
        return self.progress.reason(None, 0.0)

    def iterate(self) -> Iteration:
        """One pass over the sentences in a new order."""
        began = time.perf_counter()
        order = torch.Generator().manual_seed(self._seed + self.progress.iterations)
        losses, self._mistakes = [0.0], 0
        for sentence in torch.randperm(len(self._model), generator=order).tolist():
            mistake = self._model.mistake(self._current, sentence)
            if mistake is not None:
                self._mistakes += 1
                losses.append(self._learn(mistake))
            self._seen += 1
        self.objective = math.fsum(losses)
        self.progress.add(self.objective)
        return Iteration(
            number=self.progress.iterations,
            objective=self.objective,
            gradient_norm=None,
            active=int(self._current.count_nonzero()),
            step=1.0,
            evaluations=1,
            seconds=time.perf_counter() - began,
        )

    def state_dict(self) -> dict[str, Tensor]:
        """All that the next iterations depend on, as plain tensors."""
        return {
            "current": self._current,
            "late": self._late,
            "seen": torch.tensor(self._seen),
            "mistakes": torch.tensor(self._mistakes),
            "objective": torch.tensor(self.objective, dtype=torch.float64),
            **self.progress.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a state; the iterations that follow are the same, to the bit."""
        self._current, self._late = state["current"].clone(), state["late"].clone()
        self._seen, self._mistakes = int(state["seen"]), int(state["mistakes"])
        self.objective = float(state["objective"])
        self.progress.load_state_dict(state)

    def _learn(self, mistake: Mistake) -> float:
        """Changes the weights; gives the loss before the change."""
        features, difference = mistake.features, mistake.difference.double()
        loss = -float(self._current[features] @ difference)
        rate = 1.0
        if self._aggressiveness is not None:
            loss += math.sqrt(mistake.wrong)
            square = float(difference @ difference)
            rate = min(self._aggressiveness, loss / square) if square > 0 else 0.0
        self._current.index_add_(0, features, difference, alpha=rate)
        self._late.index_add_(0, features, difference, alpha=rate * self._seen)
        return loss
