"""The probability of a printed label where labels are converted before they are printed.

Which label a scheme prints at a word depends on three things: whether a span of the label's type
begins there, whether it ends there, and, in IOB1, whether a span of the same type stands right
before. All three follow from the model's label at the word, its left and its right neighbour. Given
the label at the word, left and right are independent, so P(printed) is the sum over labels y of
P(y_t = y) P(left fits | y_t = y) P(right fits | y_t = y), exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ncrf.data.label_tables import SpanTables
from ncrf.data.labels import OUTSIDE, mark, span_scheme

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class _Fit:
    """The labelings of three neighbours that print one label.

    ``here [Y]``; ``left [Y+1,Y]`` (previous, current) and ``right [Y,Y+1]`` (current, next), where
    the last row and column stand for the border of a sentence.
    """

    here: Tensor
    left: Tensor
    right: Tensor


class PrintedMarginals:
    """P(printed label | x) at a word, for labels of a model printed in another scheme."""

    def __init__(self, labels: tuple[str, ...], target: str, delimiter: str) -> None:
        self._tables = SpanTables(labels, delimiter)
        self._target = target
        self._delimiter = delimiter
        self._fits: dict[str, _Fit] = {}

    def probability(self, marginals: Tensor, pairs: Tensor, printed: list[str]) -> list[float]:
        """P of each printed label of one sentence.

        Args:
            marginals: ``[L,Y]`` (what stands beyond the sentence is not read).
            pairs: ``[L-1,Y,Y]``, P of neighbouring labels.
            printed: the sentence's labels as they are written.
        """
        result = []
        for t, label in enumerate(printed):
            fit = self._fit(label)
            here = marginals[t]
            left, right = here * fit.left[-1], here * fit.right[:, -1]
            if t:
                left = (pairs[t - 1] * fit.left[:-1]).sum(0)
            if t + 1 < len(printed):
                right = (pairs[t] * fit.right[:, :-1]).sum(1)
            # left and right are joint with the label here: their product has P(y_t) once too often.
            both = left * right / here.clamp_min(torch.finfo(here.dtype).tiny)
            result.append(min(1.0, float(both[fit.here].sum())))
        return result

    def _fit(self, printed: str) -> _Fit:
        if printed not in self._fits:
            self._fits[printed] = self._make(printed)
        return self._fits[printed]

    def _make(self, printed: str) -> _Fit:
        tables, read = self._tables, mark(printed, self._delimiter)
        begins, ends = tables.begins[:, :-1], tables.ends[:-1]
        if not read.inside:
            everything = np.ones_like(begins), np.ones_like(ends)
            return _tensors(tables.type_of < 0, *everything)
        here = np.array([m.inside and m.type == read.type for m in tables.marks])
        scheme = span_scheme(self._target)
        before = [*tables.marks, OUTSIDE]
        same = np.array([m.inside and m.type == read.type for m in before])[:, None]
        if scheme.name == "IOB1":
            apart = begins & same  # a span of the same type ends right before
            return _tensors(here, apart if read.prefix == "B" else ~apart, np.ones_like(ends))
        first = read.prefix in (scheme.begin, scheme.single)
        left = begins if first else ~begins
        if not scheme.end:
            return _tensors(here, left, np.ones_like(ends))
        last = read.prefix in (scheme.end, scheme.single)
        return _tensors(here, left, ends if last else ~ends)


def _tensors(here: Bools, left: Bools, right: Bools) -> _Fit:
    return _Fit(torch.from_numpy(here), torch.from_numpy(left), torch.from_numpy(right))
