"""Template scores as a layer for batches, alone or added to the emissions of a neural network.

Its weights are those of observed features only. ``corpus_scores`` has the same scores for a whole
corpus, for learners that need no batches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from ncrf.data.feature_index import FeatureIndex
from ncrf.model.corpus_scores import NARROW, wide_cells

_ROWWISE_WEIGHTS = 1 << 18  # from so many on, a gradient is kept for the weights in use only


class TemplateScores(nn.Module):
    """Scores of labels and label pairs by feature templates.

    Parameters: ``state_weights [Ks]`` and ``bigram_weights [Kb]``, zero at first, in the order of
    the FeatureIndex. The index's transitions, the bare ``B``, are not here: label pairs alone are
    scored by the CRF layer.
    """

    def __init__(self, index: FeatureIndex) -> None:
        super().__init__()
        self.num_labels = index.num_labels
        self.state_weights = nn.Parameter(torch.zeros(index.num_states))
        self.bigram_weights = nn.Parameter(torch.zeros(len(index.bigram_pairs)))
        self._sparse: set[str] = set()  # the parameters whose gradient is
        degree = np.diff(index.state_offsets)
        wide = degree > index.num_labels * NARROW
        self._rows = int(wide.sum())
        row_of = np.append(np.where(wide, np.cumsum(wide) - 1, self._rows), self._rows)
        table_weights, table_cells = wide_cells(index, wide)
        # Buffers, so that they move with the layer; not saved, because the index has them.
        for name, tensor in {
            "state_offsets": torch.from_numpy(index.state_offsets),
            "state_labels": torch.from_numpy(index.state_labels),
            "bigram_offsets": torch.from_numpy(index.bigram_offsets),
            "bigram_pairs": torch.from_numpy(index.bigram_pairs),
            "row_of": torch.from_numpy(row_of),
            "table_weights": table_weights,
            "table_cells": table_cells,
        }.items():
            self.register_buffer(f"_{name}", tensor, persistent=False)
        self._state_offsets: Tensor
        self._state_labels: Tensor
        self._bigram_offsets: Tensor
        self._bigram_pairs: Tensor
        self._row_of: Tensor
        self._table_weights: Tensor
        self._table_cells: Tensor

    def rowwise_gradients(self) -> list[nn.Parameter]:
        """Let many weights have a sparse gradient, of those that a batch uses; which they are."""
        large = {
            name: weights
            for name, weights in self.named_parameters()
            if len(weights) >= _ROWWISE_WEIGHTS and weights.requires_grad
        }
        self._sparse = set(large)
        return list(large.values())

    def forward(self, attributes: Tensor, values: Tensor | None = None) -> Tensor:
        """Emissions ``[...,Y]`` of words with unigram ``attributes [...,R]`` (-1: none).

        ``values [...,R]`` as in TokenAttributes; None where all are 1.
        """
        if not attributes.shape[-1]:  # there are no U templates
            return self.state_weights.new_zeros(*attributes.shape[:-1], self.num_labels)
        flat = attributes.reshape(-1, attributes.shape[-1]).long()
        factors = None if values is None else values.reshape(flat.shape).to(self.state_weights)
        features = (self._state_offsets, self._state_labels, self.num_labels)
        # Few words look up their weights one by one. For many it pays to make a table first.
        if "state_weights" in self._sparse and torch.is_grad_enabled():
            found = self._by_own_table(flat, factors)
        elif self._weights_of(flat) < len(self._table_cells):
            found = _sums(flat, factors, self.state_weights, *features)
        else:
            rows = self._row_of[flat]
            found = self._by_table(rows, factors)
            rest = torch.where(rows < self._rows, -1, flat)
            found = found + _sums(rest, factors, self.state_weights, *features)
        return found.view(*attributes.shape[:-1], self.num_labels)

    def pair_scores(self, attributes: Tensor, values: Tensor | None = None) -> Tensor | None:
        """Scores ``[B,L-1,Y,Y]`` of label pairs, to be added to the transitions at entry t.

        ``attributes [B,L,Q]``: the bigram attributes of each word (and the one before); entry t is
        that of words t and t+1. None where the templates have no such attributes.
        """
        if not len(self.bigram_weights) or attributes.shape[2] == 0:
            return None
        labels, later = self.num_labels, attributes[:, 1:]
        flat = later.reshape(-1, attributes.shape[2]).long()
        factors = None if values is None else values[:, 1:].reshape(flat.shape)
        factors = None if factors is None else factors.to(self.bigram_weights)
        weights: Tensor = self.bigram_weights
        offsets, pairs = self._bigram_offsets, self._bigram_pairs
        if "bigram_weights" in self._sparse and torch.is_grad_enabled():
            own = _distinct(flat, offsets)
            flat, offsets, pairs = own.attributes, own.offsets, pairs[own.features]
            weights = _gathered(weights, own.features)
        found = _sums(flat, factors, weights, offsets, pairs, labels**2)
        return found.view(*later.shape[:2], labels, labels)

    def _weights_of(self, attributes: Tensor) -> int:
        """How many weights the attributes have in all."""
        there = attributes[attributes >= 0]
        return int((self._state_offsets[there + 1] - self._state_offsets[there]).sum())

    def _by_own_table(self, attributes: Tensor, factors: Tensor | None) -> Tensor:
        """Sums ``[n,Y]`` of ``attributes [n,R]`` by a table of those that occur among them."""
        own = _distinct(attributes, self._state_offsets)
        size = len(own.offsets) - 1
        rows = torch.arange(size, device=attributes.device)
        rows = rows.repeat_interleave(own.offsets.diff(), output_size=len(own.features))
        cells = rows * self.num_labels + self._state_labels.index_select(0, own.features)
        weights = _gathered(self.state_weights, own.features)
        table = weights.new_zeros((size + 1) * self.num_labels).index_copy(0, cells, weights)
        rows = torch.where(own.attributes < 0, size, own.attributes)
        found: Tensor = embedding_bag(
            rows, table.view(-1, self.num_labels), mode="sum", per_sample_weights=factors
        )
        return found

    def _by_table(self, rows: Tensor, factors: Tensor | None) -> Tensor:
        """Sums ``[n,Y]`` of the rows ``[n,R]`` of wide attributes; the last row is zero."""
        cells = self.state_weights.new_zeros((self._rows + 1) * self.num_labels)
        cells = cells.index_put((self._table_cells,), self.state_weights[self._table_weights])
        table = cells.view(-1, self.num_labels)
        found: Tensor = embedding_bag(rows, table, mode="sum", per_sample_weights=factors)
        return found


class _SparseGather(torch.autograd.Function):
    """Weights ``[K]`` at distinct, rising places ``[n]``, with a sparse gradient."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, places: Tensor) -> Tensor:
        """The weights at the places."""
        ctx.save_for_backward(places)
        ctx.number = len(weights)
        return weights.index_select(0, places)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """The derivatives by the weights."""
        (places,) = ctx.saved_tensors
        size = (ctx.number,)
        return (
            torch.sparse_coo_tensor(
                places.unsqueeze(0), gradients[0], size, check_invariants=False, is_coalesced=True
            ),
            None,
        )


def _gathered(weights: Tensor, places: Tensor) -> Tensor:
    found: Tensor = _SparseGather.apply(weights, places)  # type: ignore[no-untyped-call]
    return found


class _Distinct(NamedTuple):
    """The attributes of a batch, numbered anew; ``features [F]`` are theirs, in order.

    ``attributes [n,R]`` (-1: none); those of attribute a are ``features[offsets[a]:offsets[a+1]]``.
    """

    attributes: Tensor
    offsets: Tensor
    features: Tensor


def _distinct(attributes: Tensor, offsets: Tensor) -> _Distinct:
    """The distinct ones among ``attributes [n,R]``, whose features have ``offsets [A+1]``."""
    found, numbers = torch.unique(attributes, return_inverse=True)
    none = len(found) - int((found >= 0).sum())  # 1 where -1 is among them, the first
    found = found[none:]
    first = offsets[found]
    counts = offsets[found + 1] - first
    own = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    total = int(own[-1])
    shift = (first - own[:-1]).repeat_interleave(counts, output_size=total)
    features = torch.arange(total, device=found.device) + shift
    return _Distinct(numbers - none, own, features)


def _sums(
    attributes: Tensor,
    factors: Tensor | None,
    weights: Tensor,
    offsets: Tensor,
    outcomes: Tensor,
    size: int,
) -> Tensor:
    """For attributes ``[n,R]`` (-1: none) the sums ``[n,size]`` of their weights, by outcome."""
    words, width = attributes.shape
    flat = attributes.reshape(-1)
    there = (flat >= 0).nonzero().squeeze(1)
    owners = flat[there]
    counts = offsets[owners + 1] - offsets[owners]
    total = int(counts.sum())
    first = offsets[owners] - (counts.cumsum(0) - counts)
    place = torch.repeat_interleave(there, counts, output_size=total)
    first = torch.repeat_interleave(first, counts, output_size=total)
    feature = torch.arange(total, device=flat.device) + first
    scores = weights[feature]
    if factors is not None:
        scores = scores * factors.reshape(-1)[place]
    cells = place.div(width, rounding_mode="floor") * size + outcomes[feature]
    return scores.new_zeros(words * size).index_add(0, cells, scores).view(words, size)
