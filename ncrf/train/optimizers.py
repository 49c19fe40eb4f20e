"""Optimizers and learning-rate schedules by their config names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import nn

from ncrf.config.schema import Training

Parameters = Iterable[nn.Parameter]


def _sgd(parameters: Parameters, keys: Training) -> torch.optim.Optimizer:
    return torch.optim.SGD(
        parameters, keys.learning_rate, momentum=keys.momentum, weight_decay=keys.l2
    )


def _rmsprop(parameters: Parameters, keys: Training) -> torch.optim.Optimizer:
    return torch.optim.RMSprop(
        parameters, keys.learning_rate, momentum=keys.momentum, weight_decay=keys.l2
    )


def _without_momentum(
    cls: Callable[..., torch.optim.Optimizer],
) -> Callable[[Parameters, Training], torch.optim.Optimizer]:
    def build(parameters: Parameters, keys: Training) -> torch.optim.Optimizer:
        return cls(parameters, lr=keys.learning_rate, weight_decay=keys.l2)

    return build


_OPTIMIZERS = {
    "sgd": _sgd,
    "adagrad": _without_momentum(torch.optim.Adagrad),
    "adadelta": _without_momentum(torch.optim.Adadelta),
    "rmsprop": _rmsprop,
    "adam": _without_momentum(torch.optim.Adam),
    "adamw": _without_momentum(torch.optim.AdamW),
}


def build_optimizer(parameters: Parameters, keys: Training) -> torch.optim.Optimizer:
    """The optimizer named by ``optimizer``; ``l2`` is its weight decay (decoupled in AdamW)."""
    return _OPTIMIZERS[keys.optimizer.lower()](parameters, keys)


class LearningRate:
    """The learning rate at every step of training, as ``lr_schedule`` and ``warmup`` say.

    Epochs count from 0 and may be fractions: step s of n in epoch i stands at i + s / n.
    ``plateau`` halves the rate when the dev score has not risen for two epochs; the halvings
    so far are its only state.
    """

    _PLATEAU_EPOCHS = 2

    def __init__(self, keys: Training) -> None:
        self._keys = keys
        self.halvings = 0
        self.epochs_without_rise = 0

    def at(self, epoch: int, fraction: float) -> float:
        """The rate ``fraction`` (0 to 1) into ``epoch``."""
        keys = self._keys
        schedule = keys.lr_schedule
        if schedule == "auto":
            schedule = "decay" if keys.optimizer.upper() == "SGD" else "constant"
        rate: float = keys.learning_rate
        if schedule == "decay":
            rate /= 1 + keys.lr_decay * epoch
        elif schedule == "cosine":
            rest = max(keys.iteration - keys.warmup, 1e-9)
            progress = min(max((epoch + fraction - keys.warmup) / rest, 0.0), 1.0)
            rate *= 0.5 * (1 + math.cos(math.pi * progress))
        elif schedule == "plateau":
            rate *= 0.5**self.halvings
        if keys.warmup > 0:
            rate *= min(1.0, (epoch + fraction) / keys.warmup)
        return rate

    def epoch_done(self, rose: bool) -> None:
        """Tell the schedule whether the dev score rose above its best."""
        self.epochs_without_rise = 0 if rose else self.epochs_without_rise + 1
        if self.epochs_without_rise > self._PLATEAU_EPOCHS:
            self.halvings += 1
            self.epochs_without_rise = 0
