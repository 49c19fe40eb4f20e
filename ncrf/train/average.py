"""The moving average of the weights, which is the model that a training with ``ema`` gives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

_LARGE = 1 << 18  # numbers; from this size on, a tensor is averaged at every tenth step only
_SELDOM = 10


class WeightAverage:
    """Averages weights over the steps of training: average += (1 - d) · (weights - average).

    After step t, counted from 0, the decay is d = min(ema, (1 + t) / (10 + t)): the start of the
    training is soon forgotten (the rule of TensorFlow's ExponentialMovingAverage; averaging itself
    is Polyak and Juditsky 1992). Statistics of batch normalization are averaged as weights are.

    A row that did not move for k steps needs no look meanwhile: the decays of the steps multiply.
    So the rows of tables with a sparse gradient are averaged exactly, each just before it moves.
    Other tensors of a size are averaged at every tenth step, by the product of its ten decays.
    """

    def __init__(self, labeler: nn.Module, ema: float, by_row: Iterable[nn.Parameter]) -> None:
        """``by_row`` are the parameters of ``labeler`` whose gradient is sparse."""
        self._ema = ema
        self._weights = _averaged_tensors(labeler)
        self._averages = {name: w.detach().clone() for name, w in self._weights.items()}
        tables = {id(table) for table in by_row}
        rows = [name for name, weights in self._weights.items() if id(weights) in tables]
        whole = [name for name in self._weights if name not in rows]
        self._often = [name for name in whole if self._weights[name].numel() < _LARGE]
        self._seldom = [name for name in whole if self._weights[name].numel() >= _LARGE]
        self._steps = 0
        self._sum = 0.0  # of the logarithms of all decays since the averages last were complete
        self._taken = {
            name: torch.zeros(len(self._weights[name]), dtype=torch.float64) for name in rows
        }
        self._taken_seldom = 0.0

    @torch.no_grad()
    def before_step(self) -> None:
        """Let the rows that a step is to move take the decays that they have missed."""
        for name, taken in self._taken.items():
            table = self._weights[name]
            if table.grad is None:
                continue
            rows = table.grad.indices()[0]
            average = self._averages[name]
            moved = average[rows].lerp_(table[rows], self._share(taken[rows], average))
            average.index_copy_(0, rows, moved)
            taken[rows] = self._sum

    @torch.no_grad()
    def after_step(self) -> None:
        """Average the weights that a step has made."""
        decay = min(self._ema, (1 + self._steps) / (10 + self._steps))
        self._steps += 1
        self._sum += math.log(decay)
        self._move(self._often, 1 - decay)
        if self._steps % _SELDOM == 0:
            self._move_seldom()

    @torch.no_grad()
    def complete(self) -> None:
        """Let every average take all that it has missed."""
        for name, taken in self._taken.items():
            average = self._averages[name]
            average.lerp_(self._weights[name], self._share(taken, average))
            taken.zero_()
        self._move_seldom()
        self._sum = self._taken_seldom = 0.0

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the averages, which must be complete, in the place of the weights for a while."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def tensors(self) -> dict[str, Tensor]:
        """All that a resumed training needs of the averages, by name."""
        found = {f"average.{name}": average for name, average in self._averages.items()}
        found |= {f"average_taken.{name}": taken for name, taken in self._taken.items()}
        numbers = [self._steps, self._sum, self._taken_seldom]
        found["average_steps"] = torch.tensor(numbers, dtype=torch.float64)
        return found

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Put the tensors of ``tensors()`` back."""
        for name, average in self._averages.items():
            average.copy_(tensors[f"average.{name}"])
        for name, taken in self._taken.items():
            taken.copy_(tensors[f"average_taken.{name}"])
        steps, self._sum, self._taken_seldom = tensors["average_steps"].tolist()
        self._steps = int(steps)

    def _share(self, taken: Tensor, average: Tensor) -> Tensor:
        """How far rows ``[R]`` go towards their weights, ``[R,1]``."""
        return torch.expm1(self._sum - taken).neg_().to(average.dtype).unsqueeze(1)

    def _move_seldom(self) -> None:
        self._move(self._seldom, -math.expm1(self._sum - self._taken_seldom))
        self._taken_seldom = self._sum

    def _move(self, names: list[str], share: float) -> None:
        if names:
            averages = [self._averages[name] for name in names]
            torch._foreach_lerp_(averages, [self._weights[n] for n in names], share)

    @torch.no_grad()
    def _exchange(self) -> None:
        for name, average in self._averages.items():
            weights = self._weights[name]
            kept = weights.clone()
            weights.copy_(average)
            average.copy_(kept)


def _averaged_tensors(labeler: nn.Module) -> dict[str, Tensor]:
    """What training changes: parameters, and the running statistics of batch normalization."""
    found: dict[str, Tensor] = {
        name: weights for name, weights in labeler.named_parameters() if weights.requires_grad
    }
    for prefix, module in labeler.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            for name, values in module.named_buffers(prefix):
                if values.is_floating_point():
                    found[name] = values
    return found
