"""Updates of tables whose gradient is sparse: only the rows in use are looked at.

A table is ``[rows, width]``, or ``[rows]``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

_UNSEEN = 2.0**-25  # a decay so small leaves a float32 as it is
_MANY = 64  # steps: if so many decay less than that, all rows are settled once in so many or more


class RowDecay:
    """Lets every row of a table shrink by all that was decided, whenever it was last looked at.

    SGD multiplies all weights by 1 - rate · l2 in every step. A row that is not in use need not be
    multiplied at once: the logarithms of the factors are added up, and a row takes what it has
    missed when the gradient next touches it, or when all rows are settled. What float32 would not
    see is left to the next time.
    """

    def __init__(self, table: nn.Parameter) -> None:
        self._table = table
        self._sum = 0.0
        self._taken = torch.zeros(len(table), dtype=torch.float64)

    @torch.no_grad()
    def apply(self, decay: float) -> None:
        """Decide a step's ``decay``; rows with a gradient, or all, take what they have missed."""
        self._sum += math.log1p(-decay)
        if -self._sum < _UNSEEN:
            return
        if _MANY * decay < _UNSEEN:
            self.settle()
            return
        grad = self._table.grad
        if grad is None:
            return
        rows = grad.indices()[0]
        kept = self._table.detach().index_select(0, rows)
        kept *= self._factors(self._taken.index_select(0, rows))
        self._table.index_copy_(0, rows, kept)
        self._taken.index_fill_(0, rows, self._sum)

    @torch.no_grad()
    def settle(self) -> None:
        """Let all rows take what they have missed."""
        self._table.mul_(self._factors(self._taken))
        self._taken.zero_()
        self._sum = 0.0

    def _factors(self, taken: Tensor) -> Tensor:
        factors = (self._sum - taken).exp_().to(self._table.dtype)
        return factors.view(-1, *[1] * (self._table.dim() - 1))

    def state(self) -> Tensor:
        """What each row has taken, and behind it the sum of what was decided, ``[rows + 1]``."""
        return torch.cat([self._taken, torch.tensor([self._sum], dtype=torch.float64)])

    def restore(self, state: Tensor) -> None:
        """Put the tensor of ``state()`` back."""
        self._taken, self._sum = state[:-1].clone(), float(state[-1])


class RowAdagrad(torch.optim.Optimizer):
    """Adagrad (Duchi, Hazan and Singer 2011) for coalesced sparse gradients.

    A row without a gradient would not move under the dense rule either. torch's own Adagrad takes
    sparse gradients too, with a warning for whoever trains.
    """

    _EPSILON = 1e-10

    def __init__(self, tables: Iterable[nn.Parameter], lr: float) -> None:
        super().__init__(tables, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Move each row that has a gradient."""
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is None:
                    continue
                state = self.state[table]
                if not state:
                    state["sum"] = torch.zeros_like(table)
                rows, values = table.grad.indices()[0], table.grad.values()
                total = state["sum"][rows].addcmul_(values, values)
                state["sum"].index_copy_(0, rows, total)
                moved = table[rows].addcdiv_(
                    values, total.sqrt_().add_(self._EPSILON), value=-group["lr"]
                )
                table.index_copy_(0, rows, moved)
