"""A single short row on a CPU: the same answers as those for a batch, from few and small calls.

Whoever waits for one sentence waits for some thousand calls of torch, not for arithmetic. Of a row
by itself both passes are products of a vector and a matrix, and numpy's calls take a third of the
time of torch's. A row is short enough if its totals stay within float64's range without any
rescaling: then the passes hold probabilities up to one constant, and no logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ncrf.crf.chain import Chain
from ncrf.crf.spans import FoundSpans, SpanMasks
from ncrf.crf.viterbi import NBest, Viterbi

Floats = NDArray[np.float64]

_MOST_PAIRS = 1 << 16  # of labels in a row; with more, arithmetic is what one waits for
_LARGEST_TOTAL = 300.0  # logarithm of what the sum of a vector may grow to
# A product of an entry, an emission and a transition that is not 0 is then a normal number.
_LEAST_ENTRY = 1e-150
_LEAST_FACTOR = 1e-75
_LEAST_PROBABILITY = 1e-100  # of a span; what is below is left to logarithms
_LOWEST = float(np.finfo(np.float64).min)
# What is NaN, infinite or too small is looked for, and told by the code for batches.
_QUIET = np.errstate(all="ignore")


class OneRow:
    """One row whose L positions are all words, with Y labels.

    A method gives what the one of posterior.Posterior gives, or None where there is an error to
    raise or more to do than is done here.

    Attributes:
        log_z: log-partition.
    """

    def __init__(
        self,
        scores: tuple[Floats, Floats, Floats, Floats],
        forward: Floats,
        steps: Floats,
        end: Floats,
        result_dtype: torch.dtype,
    ) -> None:
        """What ``of`` has found.

        Args:
            scores: emissions [L, Y], transitions [Y, Y], start [Y] and end [Y].
            forward: [L, Y], totals over all beginnings, up to a constant.
            steps: [L-1, Y, Y], exponentiated transitions with the emissions of the later position.
            end: [Y], exponentiated.
            result_dtype: as in Chain.
        """
        self._scores = scores
        self._result_dtype = result_dtype
        self._forward = forward
        self._steps = steps
        self._end = end
        self._total = float(forward[-1] @ end)
        self.log_z = math.nan

    @classmethod
    @_QUIET
    def of(cls, chain: Chain) -> OneRow | None:
        """The row of a chain; None if there are more, or if its numbers need more than this."""
        batch, length, labels = chain.emissions.shape
        if (
            batch != 1
            or not chain.shared
            or chain.emissions.dtype != torch.float64
            or chain.emissions.device.type != "cpu"
            or length * labels * labels > _MOST_PAIRS
            or length * math.log(labels) > _LARGEST_TOTAL
            or chain.lengths.item() != length
        ):
            return None
        tensors = chain.emissions[0], chain.transitions, chain.start, chain.end
        emissions, pairs, first, last = (tensor.detach().numpy() for tensor in tensors)
        parts = [
            _exponentiated(emissions, by_position=True),
            *(_exponentiated(x, by_position=False) for x in (pairs, first, last)),
        ]
        if any(part is None for part in parts):
            return None
        likely, weights, start, end = (part[0] for part in parts if part is not None)
        peaks, pair_peak, *edge_peaks = (part[1] for part in parts if part is not None)
        forward = np.empty((length, labels))
        np.multiply(start, likely[0], out=forward[0])
        steps = likely[1:, None, :] * weights
        for before, step, after in zip(forward, steps, forward[1:], strict=False):
            np.dot(before, step, out=after)
        scores = emissions, pairs, first, last
        found = cls(scores, forward, steps, end, chain.result_dtype)
        if not (_trusted(forward) and found._total > 0):
            return None
        taken = peaks.sum() + (length - 1) * pair_peak + sum(edge_peaks)
        found.log_z = math.log(found._total) + float(taken)
        return found if math.isfinite(found.log_z) else None

    @cached_property
    def _backward(self) -> Floats | None:
        """Totals [L, Y] over all continuations, likewise; None if they are not to be trusted."""
        backward = np.empty_like(self._forward)
        backward[-1] = self._end
        for t in range(len(backward) - 2, -1, -1):
            np.dot(self._steps[t], backward[t + 1], out=backward[t])
        return backward if _trusted(backward) else None

    @_QUIET
    def marginals(self) -> Tensor | None:
        """P(y_t | x) [1, L, Y]."""
        if self._backward is None:
            return None
        found = self._forward * self._backward / self._total
        return torch.from_numpy(found).unsqueeze(0).to(self._result_dtype)

    @_QUIET
    def viterbi(self, allowed: Tensor | None = None) -> Viterbi | None:
        """The best labeling, of those that keep to ``allowed`` [1, L, Y]."""
        chosen = None
        if allowed is not None:
            if allowed.shape != (1, *self._forward.shape):
                return None
            chosen = allowed[0].bool().cpu().numpy()
        score, labels = self._best(chosen)
        if score == -math.inf:
            return None
        scores = torch.tensor([score], dtype=self._result_dtype)
        return Viterbi(scores, torch.from_numpy(labels).unsqueeze(0))

    @_QUIET
    def nbest(self, n: int) -> NBest | None:
        """The best labeling with its log-probability; more of them are left to others."""
        if n != 1:
            return None
        score, labels = self._best()
        # The best score is within log Z but for rounding.
        log_probability = min(score - self.log_z, 0.0)
        return NBest(
            torch.tensor([[log_probability]], dtype=self._result_dtype),
            torch.from_numpy(labels)[None, None],
            torch.ones(1, dtype=torch.long),
        )

    def _best(self, allowed: NDArray[np.bool_] | None = None) -> tuple[float, NDArray[np.int64]]:
        """The highest score and its labels [L]; added up in the order of viterbi.chain_viterbi."""
        emissions, pairs, start, end = self._scores
        if allowed is not None:
            emissions = np.where(allowed, emissions, -np.inf)
        length, labels = emissions.shape
        best = emissions[0] + start
        sums = np.empty((length - 1, labels, labels))
        for here, into in zip(emissions[1:], sums, strict=True):
            np.add(best[:, None], pairs, out=into)
            best = np.maximum.reduce(into, 0)
            best += here
        best += end
        label = int(best.argmax())
        score = float(best[label])
        path = [label]
        for choices in reversed(sums.argmax(1).tolist()):
            label = choices[label]
            path.append(label)
        return score, np.array(path[::-1])

    @_QUIET
    def span_probability(
        self, rows: Any, starts: Any, ends: Any, types: Any, masks: Sequence[Any]
    ) -> Tensor | None:
        """Probability [K] of each span."""
        walk = _Spans.of(self, masks)
        spans = _integers(rows, starts, ends, types)
        if walk is None or spans is None or not walk.holds(*spans):
            return None
        found = [walk.probability(*span) for span in zip(*spans[1:], strict=True)]
        if min(found, default=1.0) < _LEAST_PROBABILITY:
            return None
        return torch.tensor(found, dtype=self._result_dtype)

    @_QUIET
    def spans_above(
        self, threshold: float, rows: Any, starts: Any, types: Any, masks: Sequence[Any]
    ) -> FoundSpans | None:
        """All spans with a probability above a threshold that begin at K places."""
        walk = _Spans.of(self, masks)
        begun = _integers(rows, starts, types)
        if threshold < _LEAST_PROBABILITY or walk is None or begun is None:
            return None
        first_words = [start + 1 for start in begun[1]]
        if not walk.holds(begun[0], begun[1], first_words, begun[2]):
            return None
        found = [
            (place, end, probability)
            for place, (start, kind) in enumerate(zip(begun[1], begun[2], strict=True))
            for end, probability in walk.above(threshold, start, kind)
        ]
        places, ends, probabilities = zip(*found, strict=True) if found else ((), (), ())
        return FoundSpans(
            torch.tensor(places, dtype=torch.long),
            torch.tensor(ends, dtype=torch.long),
            torch.tensor(probabilities, dtype=self._result_dtype),
        )


class _Spans:
    """Totals over the labelings of a row that have certain spans; spans.SpanMasks as arrays."""

    def __init__(self, row: OneRow, backward: Floats, masks: SpanMasks) -> None:
        self._forward, self._backward = row._forward, backward
        self._steps, self._end, self._total = row._steps, row._end, row._total
        self._masks = masks

    @classmethod
    def of(cls, row: OneRow, masks: Sequence[Any]) -> _Spans | None:
        """None if the masks are not arrays of the shapes that they should have."""
        if row._backward is None:
            return None
        try:
            table = SpanMasks(*(np.asarray(mask, np.bool_) for mask in masks))
        except (TypeError, ValueError, RuntimeError):  # bfloat16, ragged, with a gradient
            return None
        labels = len(row._end)
        pairs, single = (len(table.begin), labels, labels), (len(table.begin), labels)
        if [mask.shape for mask in table] != [pairs, single, pairs, pairs, single]:
            return None
        return cls(row, row._backward, table)

    def holds(self, rows: list[int], starts: list[int], ends: list[int], types: list[int]) -> bool:
        """Whether these are spans of the row."""
        length, kinds = len(self._forward), len(self._masks.begin)
        return len(rows) == len(starts) == len(ends) == len(types) and all(
            row == 0 and 0 <= start < end <= length and 0 <= kind < kinds
            for row, start, end, kind in zip(rows, starts, ends, types, strict=True)
        )

    def probability(self, start: int, end: int, kind: int) -> float:
        """That of one span."""
        state = self._begun(start, kind)
        for here in range(start + 1, end):
            state = self._onward(state, here, kind)
        return self._ended(state, end, kind)

    def above(self, threshold: float, start: int, kind: int) -> list[tuple[int, float]]:
        """Where spans end that begin at a word, with their probabilities if above a threshold."""
        state, found = self._begun(start, kind), []
        for end in range(start + 1, len(self._forward) + 1):
            probability = self._ended(state, end, kind)
            if probability > threshold:
                found.append((end, probability))
            if end < len(self._forward):
                state = self._onward(state, end, kind)
                if not state @ self._backward[end] > threshold * self._total:
                    break
        return found

    def _begun(self, start: int, kind: int) -> Floats:
        """Totals [Y] over the beginnings in which a span begins at a word."""
        if start == 0:
            begun: Floats = self._forward[0] * self._masks.begin_first[kind]
        else:
            begun = self._forward[start - 1] @ (self._steps[start - 1] * self._masks.begin[kind])
        return begun

    def _onward(self, state: Floats, word: int, kind: int) -> Floats:
        """Totals [Y] over the beginnings in which the span goes on at a word."""
        onward: Floats = state @ (self._steps[word - 1] * self._masks.inside[kind])
        return onward

    def _ended(self, state: Floats, end: int, kind: int) -> float:
        """The probability that the span ends before a word."""
        if end == len(self._forward):
            total = state @ (self._end * self._masks.end_last[kind])
        else:
            total = state @ (self._steps[end - 1] * self._masks.end[kind]) @ self._backward[end]
        return float(total) / self._total


def _integers(*sequences: Any) -> list[list[int]] | None:
    """Sequences of integers as lists; None if there is one that is something else."""
    try:
        return [
            [int(x) for x in (values.tolist() if isinstance(values, Tensor) else values)]
            for values in sequences
        ]
    except (TypeError, ValueError):
        return None


def _exponentiated(scores: Floats, *, by_position: bool) -> tuple[Floats, Any] | None:
    """exp(scores - peak) and the peak, of each position or of all; None if not to be trusted.

    They are if what is 0 comes from minus infinity, and nothing else is below the least factor.
    """
    axis = 1 if by_position else None
    peak = np.maximum.reduce(scores, axis, keepdims=True, initial=_LOWEST)
    values = np.exp(scores - peak)
    if not np.array_equal(values >= _LEAST_FACTOR, scores > -np.inf):
        return None
    return values, peak.ravel() if by_position else peak.item()


def _trusted(vectors: Floats) -> bool:
    """Whether all entries are 0, or large enough that nothing they are made of has vanished."""
    return bool(np.where(vectors > 0, vectors, 1.0).min() >= _LEAST_ENTRY)
