"""Loss and gradient of one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from ncrf.data.batch import Batch
from ncrf.model.labeler import Labeler
from ncrf.train.recollection import Recollection


def gradient(
    labeler: Labeler,
    batches: Sequence[Batch],
    *,
    scale: float,
    amp: bool,
    failed: Callable[[ValueError, Batch], Exception],
    recollection: Recollection | None = None,
) -> Tensor:
    """The summed loss ``[]`` of a step's batches; the parameters get ``scale`` times its gradient.

    ``amp`` computes in bfloat16 where that is as good. ``failed`` says what is to be raised for a
    ValueError that a batch raised. ``recollection`` is that of a model with a document memory, and
    has what the step has found afterwards.
    """
    losses = []
    recall = None if recollection is None else recollection.exchange
    for batch in batches:
        try:
            with _precision(labeler.device, amp):
                loss = labeler.loss(batch, recall)
        except ValueError as error:
            raise failed(error, batch) from error
        (loss * scale if scale != 1.0 else loss).backward()  # type: ignore[no-untyped-call]
        losses.append(loss.detach())
    if recollection is not None:
        recollection.commit()
    return losses[0] if len(losses) == 1 else torch.stack(losses).sum()


def _precision(device: torch.device, amp: bool) -> AbstractContextManager[object]:
    return torch.autocast(device.type, torch.bfloat16) if amp else nullcontext()
