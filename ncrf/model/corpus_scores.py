"""Scores by templates over a whole corpus: from weights to scores, and from there to gradients.

For learners that look at the whole corpus at every step: what can be prepared is prepared once, and
the gradient is explicit. Most attributes occur once or twice and have one label, a few (parts of
speech) occur everywhere and have many. So there are two kinds. A *wide* attribute, one with more
than a tenth of the labels, has a row in a dense table ``[D,Y]``, and words add up rows; the
features of all others go one by one. Letters: N places for words, R attributes of each, Y labels,
K state weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag

from ncrf.data.attributes import Ids
from ncrf.data.feature_index import FeatureIndex
from ncrf.data.template_window import Values

NARROW = 0.1  # share of the labels up to which an attribute is not worth a dense row
_PIECE = 128  # numbers that are summed in float32 before float64 takes over

Ints = NDArray[np.integer]


class CorpusScorer:
    """Emissions ``[N,Y]`` of a corpus from K state weights, and the gradient's way back."""

    def __init__(
        self, index: FeatureIndex, ids: Ids, values: Values | None, dtype: torch.dtype
    ) -> None:
        """Prepare for the unigram attributes ``ids [N,R]`` with ``values [N,R]`` (None: all 1).

        ``dtype`` is that of the emissions; sums of the gradient are kept in float64 all the same.
        """
        degree = np.diff(index.state_offsets)
        occurs = np.zeros(len(degree) + 1, np.bool_)
        occurs[ids] = True
        wide = (degree > index.num_labels * NARROW) & occurs[:-1]
        row_of = np.append(np.where(wide, np.cumsum(wide) - 1, -1), -1)
        self._wide = _Wide(index, wide, row_of[ids], values, dtype)
        self._narrow = SingleFeatures(
            (index.state_offsets, index.state_labels, index.num_labels),
            np.where(np.append(wide, True)[ids], -1, ids),
            values,
            dtype,
        )

    def emissions(self, weights: Tensor) -> Tensor:
        """Emissions ``[N,Y]`` from weights ``[K]`` of the scorer's type."""
        found = self._wide.sums(weights)
        self._narrow.add(found.view(-1), weights)
        return found

    def gradient(self, by_emission: Tensor, out: Tensor) -> None:
        """From the derivatives by the emissions ``[N,Y]`` those by the weights, into ``out [K]``.

        ``out`` is in float64, and zero. With marginals in place of derivatives, these are the
        expected counts of the features.
        """
        self._wide.gradient(by_emission, out)
        self._narrow.gradient(by_emission, out)


class SingleFeatures:
    """Features one by one: each time that one applies, a cell of the scores and its weight."""

    def __init__(
        self,
        features: tuple[Ints, Ints, int],
        ids: Ints,
        values: Values | None,
        dtype: torch.dtype,
    ) -> None:
        """The features of attributes ``ids [N,R]`` (-1: none) with ``values [N,R]``.

        ``features``: offsets ``[A+1]``, outcomes ``[K]`` and their number Y: attribute a has the
        weights from offsets[a] to offsets[a+1], and these are for ``outcomes`` below Y.
        """
        offsets, outcomes, size = features
        there = ids >= 0
        place, weight = expand(offsets, ids[there])
        cells = np.nonzero(there)[0][place] * size + outcomes[weight]
        self._cells, self._weights = torch.from_numpy(cells), torch.from_numpy(weight)
        self._factors = None
        if values is not None:
            self._factors = torch.from_numpy(values[there][place]).to(dtype)
        order = np.argsort(weight, kind="stable")
        self._by_weight, ordered = cells[order], weight[order]
        self._used, self._starts = np.unique(ordered, return_index=True)
        self._ordered_factors = None if self._factors is None else self._factors.numpy()[order]

    def add(self, scores: Tensor, weights: Tensor) -> None:
        """Add the weights ``[K]`` of these features to flat scores ``[N*Y]``."""
        found = weights[self._weights]
        if self._factors is not None:
            found *= self._factors
        scores.index_add_(0, self._cells, found)

    def gradient(self, by_score: Tensor, out: Tensor) -> None:
        """Add the derivatives by these features' weights to ``out [K]``, float64."""
        if not len(self._used):
            return
        found = by_score.detach().numpy().reshape(-1).take(self._by_weight)
        if self._ordered_factors is not None:
            found *= self._ordered_factors
        sums = np.add.reduceat(found, self._starts, dtype=np.float64)
        out.numpy()[self._used] += sums


class _Bags(NamedTuple):
    """Rows to be summed: bag i is ``rows[offsets[i]:offsets[i+1]]``, each times its factor."""

    rows: Tensor
    offsets: Tensor
    factors: Tensor | None

    def sum_of(self, table: Tensor) -> Tensor:
        """The sums ``[bags,Y]`` of the rows of ``table [.,Y]``."""
        if not len(self.rows):
            return table.new_zeros(len(self.offsets) - 1, table.shape[1])
        return embedding_bag(
            self.rows,
            table,
            self.offsets,
            mode="sum",
            include_last_offset=True,
            per_sample_weights=self.factors,
        )


class _LongBags:
    """Bags of any length, summed in pieces that float32 can bear, and these in float64."""

    def __init__(self, rows: Ints, counts: Ints, factors: Tensor | None) -> None:
        """Bag i is the next ``counts[i]`` of ``rows``."""
        pieces = np.maximum(-(-counts // _PIECE), 1)
        nth = np.arange(int(pieces.sum())) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        starts = np.repeat(np.cumsum(counts) - counts, pieces) + nth * _PIECE
        offsets = np.append(starts, len(rows))
        self._owner = torch.from_numpy(np.repeat(np.arange(len(counts)), pieces))
        self._bags = _Bags(torch.from_numpy(rows), torch.from_numpy(offsets), factors)
        self._size = len(counts)

    def sum_of(self, table: Tensor) -> Tensor:
        """The sums ``[bags,Y]``, in float64 where they are of several pieces."""
        found = self._bags.sum_of(table)
        if len(found) == self._size:
            return found
        found = found.double()
        return found.new_zeros(self._size, table.shape[1]).index_add_(0, self._owner, found)


class _Wide:
    """The attributes that have a row in a table."""

    def __init__(
        self,
        index: FeatureIndex,
        wide: NDArray[np.bool_],
        rows: Ints,
        values: Values | None,
        dtype: torch.dtype,
    ) -> None:
        """``rows [N,R]``: each attribute's row in the table, -1 for those that have none."""
        weights, cells = wide_cells(index, wide)
        # Where all labels of all attributes have a weight, table and weights are one thing.
        self._whole = len(weights) == index.num_states == len(wide) * index.num_labels
        if not self._whole:
            self._weights, self._cells = weights, cells
        self._table = torch.zeros(int(wide.sum()), index.num_labels, dtype=dtype)
        there = rows >= 0
        flat, in_word = rows[there], there.sum(1)
        factors = None if values is None else torch.from_numpy(values[there]).to(dtype)
        offsets = torch.from_numpy(np.append(0, np.cumsum(in_word)))
        self._by_word = _Bags(torch.from_numpy(flat), offsets, factors)
        order = self._by_word.rows.argsort(stable=True)
        words = np.repeat(np.arange(len(rows)), in_word)[order.numpy()]
        counts = np.bincount(flat, minlength=len(self._table))
        self._by_attribute = _LongBags(words, counts, None if factors is None else factors[order])

    def sums(self, weights: Tensor) -> Tensor:
        """Emissions ``[N,Y]`` by these attributes."""
        if self._whole:
            return self._by_word.sum_of(weights.view(self._table.shape))
        # Cells without a feature stay 0 for ever.
        self._table.view(-1)[self._cells] = weights[self._weights]
        return self._by_word.sum_of(self._table)

    def gradient(self, by_emission: Tensor, out: Tensor) -> None:
        """Write the derivatives by these attributes' weights into ``out [K]``."""
        rows = self._by_attribute.sum_of(by_emission).view(-1)
        if self._whole:
            out.copy_(rows)
        else:
            out[self._weights] = rows[self._cells].double()


def wide_cells(index: FeatureIndex, wide: NDArray[np.bool_]) -> tuple[Tensor, Tensor]:
    """The weights of ``wide [A]`` attributes, and the cells in ``[D*Y]`` where each belongs."""
    degree = np.diff(index.state_offsets)
    chosen = np.repeat(wide, degree)
    rows = np.repeat(np.arange(int(wide.sum())), degree[wide])
    cells = rows * index.num_labels + index.state_labels[chosen]
    return torch.from_numpy(np.flatnonzero(chosen)), torch.from_numpy(cells)


def expand(offsets: Ints, owners: Ints) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each of ``owners [n]`` all its members, offsets[owner] to offsets[owner+1].

    Returns ``(place, member)``, each ``[m]``: the place in ``owners``, and the member.
    """
    counts = offsets[owners + 1] - offsets[owners]
    place = np.repeat(np.arange(len(owners)), counts)
    before = np.cumsum(counts) - counts
    return place, np.arange(len(place)) + np.repeat(offsets[owners] - before, counts)
