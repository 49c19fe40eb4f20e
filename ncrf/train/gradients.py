"""Loss and gradient of one step: its batches one after another, or side by side in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import torch
from torch import Tensor, nn

from ncrf.data.batch import Batch
from ncrf.model.dropout import random_numbers_from
from ncrf.model.labeler import Labeler

_SEEDS = 1 << 62


class Gradients:
    """Leaves the gradient of a step in the parameters and returns its summed loss.

    With several ``workers``, threads compute whole batches; what they find is added up in the order
    of the batches, and the random numbers of each follow from torch's random state: with the same
    number of workers, the same seed gives the same numbers.
    """

    def __init__(self, labeler: Labeler, *, amp: bool, workers: int = 1) -> None:
        self._labeler = labeler
        self._amp = amp
        self._parameters = [weights for weights in labeler.parameters() if weights.requires_grad]
        self._pool = ThreadPoolExecutor(workers, "ncrf gradients") if workers > 1 else None

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def compute(
        self,
        batches: Sequence[Batch],
        scale: float,
        failed: Callable[[Exception, Batch], Exception],
    ) -> Tensor:
        """The loss ``[]`` of all batches, whose gradient is that of ``scale`` times the loss.

        ``failed`` says what is to be raised for a ValueError that a batch raised.
        """
        if self._pool is None or len(batches) == 1:
            losses = []
            for batch in batches:
                loss = self._loss(batch, failed)
                (loss * scale if scale != 1.0 else loss).backward()  # type: ignore[no-untyped-call]
                losses.append(loss.detach())
            return losses[0] if len(losses) == 1 else torch.stack(losses).sum()
        seeds = torch.randint(_SEEDS, (len(batches),)).tolist()

        def work(batch: Batch, seed: int) -> tuple[Tensor, tuple[Tensor | None, ...]]:
            with random_numbers_from(torch.Generator().manual_seed(seed)):
                loss = self._loss(batch, failed)
                found = torch.autograd.grad(loss * scale, self._parameters, allow_unused=True)
                return loss.detach(), found

        done = list(self._pool.map(work, batches, seeds))
        for weights, *found in zip(self._parameters, *(grads for _, grads in done), strict=True):
            there = [grad for grad in found if grad is not None]
            weights.grad = _sum(there) if there else None
        return torch.stack([loss for loss, _ in done]).sum()

    def _loss(self, batch: Batch, failed: Callable[[Exception, Batch], Exception]) -> Tensor:
        device = self._labeler.device.type
        with ExitStack() as stack:
            if self._amp:
                stack.enter_context(torch.autocast(device, torch.bfloat16))
            try:
                return self._labeler.loss(batch)
            except ValueError as error:
                raise failed(error, batch) from error


def may_be_shared(labeler: Labeler) -> bool:
    """Whether threads may compute parts of a step: on a CPU, and nothing counts over a batch."""
    counting = any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in labeler.modules())
    return labeler.device.type == "cpu" and not counting


def _sum(grads: Sequence[Tensor]) -> Tensor:
    """The sum, laid out in memory as parameters are: fused optimizers count on that."""
    total = grads[0]
    for grad in grads[1:]:
        total = total + grad
    return total if total.is_sparse else total.contiguous()
