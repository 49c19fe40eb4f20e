"""Optimizers and learning-rate schedules by their config names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from ncrf.config.schema import Training
from ncrf.model.labeler import Labeler
from ncrf.train.average import WeightAverage
from ncrf.train.rowwise import RowAdagrad, RowDecay

Parameters = Iterable[nn.Parameter]


def _sgd(parameters: Parameters, keys: Training) -> torch.optim.Optimizer:
    return torch.optim.SGD(
        parameters, keys.learning_rate, momentum=keys.momentum, weight_decay=keys.l2, fused=True
    )


def _rmsprop(parameters: Parameters, keys: Training) -> torch.optim.Optimizer:
    return torch.optim.RMSprop(
        parameters, keys.learning_rate, momentum=keys.momentum, weight_decay=keys.l2
    )


def _without_momentum(
    cls: Callable[..., torch.optim.Optimizer], **options: bool
) -> Callable[[Parameters, Training], torch.optim.Optimizer]:
    def build(parameters: Parameters, keys: Training) -> torch.optim.Optimizer:
        return cls(parameters, lr=keys.learning_rate, weight_decay=keys.l2, **options)

    return build


_OPTIMIZERS = {
    "sgd": _sgd,
    "adagrad": _without_momentum(torch.optim.Adagrad, fused=True),
    "adadelta": _without_momentum(torch.optim.Adadelta),
    "rmsprop": _rmsprop,
    "adam": _without_momentum(torch.optim.Adam, fused=True),
    "adamw": _without_momentum(torch.optim.AdamW, fused=True),
}


class Updates:
    """Takes the steps of training: gradients to new weights.

    Large embedding tables, and the weights of templates where there are many, are updated row by
    row, only where a batch uses them, if the optimizer allows that (SGD without momentum, Adagrad)
    and the weights are on a CPU; everything else is dense. With SGD the decay (``l2``) of a row
    that is not in use is made up for, so that it is that of the dense update; with Adagrad it acts
    on the rows of the batch alone.
    """

    def __init__(self, labeler: Labeler, keys: Training) -> None:
        self._keys = keys
        trainable = [weights for weights in labeler.parameters() if weights.requires_grad]
        name = keys.optimizer.lower()
        allowed = name == "adagrad" or (
            name == "sgd" and keys.momentum == 0 and keys.learning_rate * keys.l2 < 1
        )
        self._rows: list[nn.Parameter] = []
        if allowed and labeler.device.type == "cpu":
            self._rows = labeler.rowwise_gradients()
        chosen = {id(table) for table in self._rows}
        self._dense = [weights for weights in trainable if id(weights) not in chosen]
        self._plain = name == "sgd" and keys.momentum == 0
        self._optimizers: list[torch.optim.Optimizer] = []
        if self._dense and not self._plain:
            self._optimizers.append(_OPTIMIZERS[name](self._dense, keys))
        if self._rows and not self._plain:
            self._optimizers.append(RowAdagrad(self._rows, lr=keys.learning_rate))
        lazily = name == "sgd" and keys.l2 > 0
        self._decays = [RowDecay(table) for table in self._rows] if lazily else []
        self._average = None
        if keys.ema is not None:
            self._average = WeightAverage(labeler, keys.ema, self._rows)

    def zero_grad(self) -> None:
        """Forget the gradient."""
        for weights in (*self._dense, *self._rows):
            weights.grad = None

    def step(self, rate: float) -> Tensor:
        """Move the weights along the gradient; returns its norm, ``[]``, before clipping.

        A gradient whose norm is not finite moves nothing on a CPU.
        """
        norm = self._clip()
        if norm.device.type == "cpu" and not math.isfinite(norm.item()):
            return norm
        if self._average is not None:
            self._average.before_step()
        for decay in self._decays:
            decay.apply(rate * self._keys.l2)
        if self._plain:
            self._descend(rate)
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
        if self._average is not None:
            self._average.after_step()
        return norm

    @torch.no_grad()
    def _descend(self, rate: float) -> None:
        """The step of SGD without momentum; torch's own spends more time on itself than on it."""
        pairs = [(weights, weights.grad) for weights in self._dense if weights.grad is not None]
        if pairs:
            moved, grads = [weights.data for weights, _ in pairs], [grad for _, grad in pairs]
            if self._keys.l2 > 0:
                torch._foreach_add_(grads, moved, alpha=self._keys.l2)
            torch._foreach_add_(moved, grads, alpha=-rate)
        for table in self._rows:
            if table.grad is not None:
                rows, values = table.grad._indices()[0], table.grad._values()
                table.index_add_(0, rows, values, alpha=-rate)

    def _clip(self) -> Tensor:
        """The norm of the gradient, which is scaled down to ``clip`` if that is set."""
        parts = [weights.grad for weights in self._dense if weights.grad is not None]
        for table in self._rows:
            if table.grad is not None:
                table.grad = self._row_gradient(table, table.grad)
                parts.append(table.grad._values())
        norms: Sequence[Tensor] = torch._foreach_norm(parts)
        norm: Tensor = torch.linalg.vector_norm(torch.stack(list(norms)))
        if self._keys.clip is not None:
            torch._foreach_mul_(parts, (self._keys.clip / (norm + 1e-6)).clamp(max=1.0))
        return norm

    def _row_gradient(self, table: nn.Parameter, grad: Tensor) -> Tensor:
        """The gradient of a table's rows, each once; Adagrad has its decay in the gradient."""
        grad = _coalesced(grad)
        if self._keys.l2 > 0 and not self._decays:
            rows = grad.indices()[0]
            grad.values().add_(table.detach()[rows], alpha=self._keys.l2)
        return grad

    def settle(self) -> None:
        """Let the decay reach all rows: afterwards the weights are those of dense updates.

        Their average is then complete; it is one of the weights as they were in use.
        """
        for decay in self._decays:
            decay.settle()
        if self._average is not None:
            self._average.complete()

    def averaged(self) -> AbstractContextManager[None]:
        """Between settling and the next step: the labeler as it is to be used, ``ema`` applied."""
        return nullcontext() if self._average is None else self._average.in_place()

    def tensors(self) -> dict[str, Tensor]:
        """All that a resumed training needs of the optimizers, by name."""
        found = {
            f"optimizer.{place}.{number}.{name}": value
            for place, optimizer in enumerate(self._optimizers)
            for number, values in optimizer.state_dict()["state"].items()
            for name, value in values.items()
            if isinstance(value, Tensor)
        }
        for place, decay in enumerate(self._decays):
            found[f"decay.{place}"] = decay.state()
        if self._average is not None:
            found |= self._average.tensors()
        return found

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Put the tensors of ``tensors()`` back."""
        for place, optimizer in enumerate(self._optimizers):
            state: dict[int, dict[str, Tensor]] = {}
            prefix = f"optimizer.{place}."
            for key, value in tensors.items():
                if key.startswith(prefix):
                    number, name = key.removeprefix(prefix).split(".", 1)
                    state.setdefault(int(number), {})[name] = value
            groups = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": state, "param_groups": groups})
        for place, decay in enumerate(self._decays):
            decay.restore(tensors[f"decay.{place}"])
        if self._average is not None:
            self._average.restore(tensors)


def _coalesced(grad: Tensor) -> Tensor:
    """A sparse gradient with each row once; one whose rows rise already is not sorted again."""
    indices = grad._indices()
    if grad.is_coalesced() or not bool((indices[0].diff() > 0).all()):
        return grad.coalesce()
    return torch.sparse_coo_tensor(
        indices, grad._values(), grad.shape, is_coalesced=True, check_invariants=False
    )


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
