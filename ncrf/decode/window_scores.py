"""Windows through the network, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ncrf.config import Config
from ncrf.data.batch import RowBatch, places
from ncrf.data.documents import ALONE
from ncrf.decode.window import Window
from ncrf.model.document_memory import mean_of_others, opinions
from ncrf.model.inference_layers import Scores
from ncrf.model.labeler import Labeler
from ncrf.model.lookup import Lookup


class WindowScores:
    """What a model says of the sentences of a window."""

    def __init__(self, labeler: Labeler, config: Config, batch_size: int | None = None) -> None:
        """``batch_size`` fixes the sentences a batch; None takes as many as fit."""
        self._labeler = labeler
        self._tokens = config.decoding.decode_batch_tokens
        self._batch_size = batch_size

    def of(
        self, lookup: Lookup, window: Window, nbest: int = 1
    ) -> Iterator[tuple[RowBatch, Scores]]:
        """The batches of a window, each with what the model says of it."""
        found = self._by_document(lookup, window)
        for batch in self._batches(window, nbest):
            if found is None:
                emissions = lookup.emissions(window.table, batch)
            else:
                words = torch.from_numpy(places(window.offsets, batch.index)[0])
                emissions = found[words.to(found.device)]
            pairs = self._labeler.pair_scores(batch.attributes)
            yield batch, Scores(emissions, lookup.label_mask(batch), batch.allowed, pairs)

    def _batches(self, window: Window, nbest: int = 1) -> Iterator[RowBatch]:
        # The memory of n-best grows with n: beyond 10 the batches shrink.
        tokens = self._tokens * 10 // max(10, nbest)
        for batch in window.batches(self._batch_size, tokens):
            yield batch.to(self._labeler.device)

    def _by_document(self, lookup: Lookup, window: Window) -> Tensor | None:
        """Emissions ``[T,Y]`` of all words of a window; None if each sentence tells its own."""
        if self._labeler.documents is None or window.same_words is None:
            return None
        members = torch.from_numpy(np.flatnonzero(window.same_words != ALONE))
        if not len(members):
            return None
        device = self._labeler.device
        count = self._labeler.inference.crf.num_labels
        emissions = torch.zeros(len(window.same_words), count, device=device)
        for batch in self._batches(window):
            words = torch.from_numpy(places(window.offsets, batch.index)[0]).to(device)
            emissions[words[batch.mask]] = lookup.emissions(window.table, batch)[batch.mask].float()
        groups = torch.from_numpy(window.same_words)[members].to(device)
        members = members.to(device)
        own = emissions[members]
        emissions[members] = self._labeler.documents(own, mean_of_others(opinions(own), groups))
        return emissions
