"""The opinions of a training corpus's words, as they were when each was last trained on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from ncrf.data.batch import Batch, places
from ncrf.data.dataset import Dataset
from ncrf.data.documents import ALONE
from ncrf.model.document_memory import opinions

_TENSORS = ("_opinions", "_seen", "_sums", "_counts")


class Recollection:
    """Gives a batch the opinions of the equal words of its documents, wherever they are trained on.

    Batches are sentences from anywhere, and their documents are elsewhere: what is kept of each
    word is at most an epoch old. No gradient goes through it. A word that was not trained on yet is
    not counted. The memory is one vector of labels for each word of a group.
    """

    def __init__(self, dataset: Dataset, num_labels: int, device: torch.device) -> None:
        self._offsets = dataset.offsets
        assert dataset.same_words is not None
        self._groups = dataset.same_words
        members = self._groups != ALONE
        self._slots = np.where(members, np.cumsum(members) - 1, ALONE)
        size, count = int(members.sum()), int(self._groups.max(initial=-1)) + 1
        self._opinions = torch.zeros(size, num_labels, device=device)
        self._seen = torch.zeros(size, device=device)
        self._sums = torch.zeros(count, num_labels, device=device)
        self._counts = torch.zeros(count, device=device)
        self._new: list[tuple[Tensor, Tensor, Tensor]] = []

    def exchange(self, batch: Batch, scores: Tensor) -> Tensor:
        """The mean opinions of others ``[B,L,Y]``, for the own ``scores [B,L,Y]`` of the words.

        Zeros where there are none. The own opinions are kept from the next ``commit`` on.
        """
        shape = scores.shape[:2]
        words, within = places(self._offsets, batch.index)
        here = np.flatnonzero(within & (self._slots[words] != ALONE))
        words = words.ravel()[here]
        place, slot, group = (
            torch.from_numpy(x).to(scores.device, non_blocking=True)
            for x in (here, self._slots[words], self._groups[words])
        )
        seen = self._seen[slot]
        others = (self._counts[group] - seen).clamp_min_(1).unsqueeze_(1).reciprocal_()
        others = (self._sums[group] - self._opinions[slot]) * others
        found = others.new_zeros(shape[0] * shape[1], others.shape[1])
        found.index_copy_(0, place, others)
        own = opinions(scores.flatten(0, 1).index_select(0, place))
        self._new.append((slot, group, own))
        return found.view(*shape, -1)

    def commit(self) -> None:
        """Keep the opinions of the exchanges since the last time."""
        for slot, group, own in self._new:
            self._sums.index_add_(0, group, own - self._opinions[slot])
            self._counts.index_add_(0, group, 1 - self._seen[slot])
            self._opinions.index_copy_(0, slot, own)
            self._seen.index_fill_(0, slot, 1)
        self._new.clear()

    def tensors(self) -> dict[str, Tensor]:
        """All that a training needs to go on."""
        return {f"recollection.{name[1:]}": getattr(self, name) for name in _TENSORS}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go back to what ``tensors`` gave; KeyError or RuntimeError for what is not of it."""
        for name in _TENSORS:
            getattr(self, name).copy_(tensors[f"recollection.{name[1:]}"])
