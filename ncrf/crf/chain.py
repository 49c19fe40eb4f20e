"""The inputs of a linear-chain CRF, checked once and brought into one form.

Letters: B rows (sentences), L positions (words), Y labels. A labeling ``y`` of a row scores

    start[y_1] + sum_t emissions[t, y_t] + sum_t transitions[y_(t-1), y_t] + end[y_n]

and, where there are ``pair_scores`` [B, L-1, Y, Y], those of its label pairs at their positions. A
score of minus infinity says that a labeling is impossible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ncrf.crf.constraints import as_constraints
from ncrf.crf.errors import NoLabelingError, RowError


@dataclass(frozen=True)
class Chain:
    """A batch of chains whose rows are left-aligned: row b uses positions 0 .. lengths[b] - 1.

    Attributes:
        emissions: [B, L, Y] in the working type, minus infinity where a label is not allowed;
            L is at least 1.
        transitions: [Y, Y] or [B, L-1, Y, Y] (the pair of positions t and t+1), pair scores
            included; 0 where a row has no position t+1.
        start: [Y].
        end: [Y].
        lengths: [B].
        last: [B], the last position of each row; 0 for an empty row.
        row: [B], 0 .. B-1.
        valid: [B, L], True at positions below the row's length.
        order: None, or [B, L] with the input position of each position (the mask had holes).
        width: number of positions in the input, which may be 0.
        result_dtype: the type in which results are handed out.
    """

    emissions: Tensor
    transitions: Tensor
    start: Tensor
    end: Tensor
    lengths: Tensor
    last: Tensor
    row: Tensor
    valid: Tensor
    order: Tensor | None
    width: int
    result_dtype: torch.dtype

    @property
    def shared(self) -> bool:
        """True when one transition matrix serves all positions."""
        return self.transitions.dim() == 2

    @property
    def requires_grad(self) -> bool:
        """True when a gradient may be asked of a result."""
        scores = (self.emissions, self.transitions, self.start, self.end)
        return torch.is_grad_enabled() and any(x.requires_grad for x in scores)

    def select(self, rows: Tensor) -> Chain:
        """The given rows [b], in the widest working type."""
        wide = widest(self.emissions.device)
        transitions = self.transitions if self.shared else self.transitions[rows]
        return replace(
            self,
            emissions=self.emissions[rows].to(wide),
            transitions=transitions.to(wide),
            start=self.start.to(wide),
            end=self.end.to(wide),
            lengths=self.lengths[rows],
            last=self.last[rows],
            row=self.row[: len(rows)],
            valid=self.valid[rows],
            order=None if self.order is None else self.order[rows],
        )

    def restricted(self, allowed: Tensor) -> Chain:
        """The chain without the labels that are zero in ``allowed`` [B, L, Y], input positions.

        Raises:
            ValueError: the shape does not fit.
        """
        batch, _, labels = self.emissions.shape
        _expect("allowed", allowed, (batch, self.width, labels))
        if self.width == 0:
            return self
        allowed = allowed.to(device=self.emissions.device, dtype=torch.bool)
        if self.order is not None:
            allowed = allowed.gather(1, self.order.unsqueeze(-1).expand_as(allowed))
        refused = ~allowed & self.valid.unsqueeze(-1)
        return replace(self, emissions=self.emissions.masked_fill(refused, -torch.inf))

    def restore(self, values: Tensor) -> Tensor:
        """Brings [B, L, ...] back to the input's positions, with zeros where it was masked."""
        valid = self.valid.view(self.valid.shape + (1,) * (values.dim() - 2))
        values = values.masked_fill(~valid, 0)
        if self.order is not None:
            order = self.order.view(valid.shape).expand_as(values)
            values = torch.zeros_like(values).scatter(1, order, values)
        return values[:, : self.width]

    def steps(self) -> Tensor:
        """[L, B]: the backward step that comes to a position, and the position a step comes to.

        Rows are reversed within their own length; beyond it stands the first position, so that
        nothing in padding is read.
        """
        position = torch.arange(self.valid.shape[1], device=self.valid.device).unsqueeze(1)
        return (self.last - position).clamp_min_(0)

    def places(self, steps: Tensor) -> Tensor:
        """[L, 2, B]: the place in [B * L] of each row's step, forward and backward."""
        return torch.stack([self.last - steps, steps], 1).add_(self.row * self.valid.shape[1])

    def pair(self, position: int) -> Tensor:
        """The transitions from a position to the next one, [Y, Y] or [B, Y, Y]."""
        return self.transitions if self.shared else self.transitions[:, position]

    def pair_valid(self, position: int) -> Tensor:
        """[B, 1, 1], True for rows that have a word after the position."""
        return self.valid[:, position + 1, None, None]

    def pair_places(self, steps: Tensor) -> Tensor:
        """[L-1, 2, B]: the place in [B * (L-1)] of the pair that leads to each later step."""
        row = self.row * (self.valid.shape[1] - 1)
        latest = (self.last - 1).clamp_min_(0)
        return torch.stack([latest - steps[1:], steps[1:]], 1).clamp_min_(0).add_(row)

    def steps_of_pairs(self, matrices: Tensor, steps: Tensor) -> Tensor:
        """Matrices [Y, Y] or [B, L-1, Y, Y] as the steps use them, transposed for backward ones.

        Returns [2, Y, Y], or [L-1, 2, B, Y, Y].
        """
        if self.shared:
            return torch.stack([matrices, matrices.t()])
        places = self.pair_places(steps)
        flat = matrices.flatten(0, 1)
        return torch.stack([flat[places[:, 0]], flat[places[:, 1]].transpose(-1, -2)], 1)

    def input_position(self, row: int, position: int) -> int:
        """The place in the input of one position of a row."""
        return position if self.order is None else int(self.order[row, position])


def widest(device: torch.device) -> torch.dtype:
    """The most exact type that a device computes in; Apple's GPUs have no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def prepare(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    allowed: Tensor | None = None,
    constraints: Sequence[Any] | None = None,
    pair_scores: Tensor | None = None,
    fast: bool = False,
    trusted: bool = False,
) -> Chain:
    """Checks the inputs and gives them as a Chain.

    Args:
        emissions: [B, L, Y], any floating type.
        transitions: [Y, Y] (from, to), or [B, L-1, Y, Y] where entry t leads from t to t+1. Where
            the mask has holes, a pair of words uses the entry that leads to the later one.
        start: [Y] or None for zeros.
        end: [Y] or None for zeros.
        mask: [B, L], any pattern, nonzero where there is a word; None for all.
        allowed: [B, L, Y], nonzero where a label is possible at a position; None for all.
        constraints: start [Y], transitions [Y, Y] and end [Y], True where legal; None for all.
        pair_scores: [B, L-1, Y, Y], added to the transitions, position by position; None for zeros.
        fast: compute in float32 on a CPU, unless an input is float64.
        trusted: the mask has no holes and each row a word; nothing is looked at, so that nothing
            waits for the device.

    Raises:
        TypeError: emissions, transitions or pair scores are not of a floating type.
        ValueError: a shape does not fit.
    """
    _check_scores(emissions, transitions, start, end, pair_scores)
    batch, width, labels = emissions.shape
    result = torch.promote_types(emissions.dtype, transitions.dtype)
    result = torch.promote_types(result, torch.float32)
    if pair_scores is not None:
        result = torch.promote_types(result, pair_scores.dtype)
    # On a GPU the recursions wait for kernel launches, not for arithmetic, and float64 is out of
    # reach of TF32 and autocast.
    in_float32 = fast and result == torch.float32 and emissions.device.type != "cuda"
    working = torch.float32 if in_float32 else widest(emissions.device)
    scores = emissions.to(working).contiguous()
    start = scores.new_zeros(labels) if start is None else start.to(scores)
    end = scores.new_zeros(labels) if end is None else end.to(scores)
    # Without pairs one matrix serves as well as none.
    transitions = (
        transitions.to(scores) if transitions.numel() else scores.new_zeros(labels, labels)
    )
    if constraints is not None:
        legal = as_constraints(constraints, labels, emissions.device)
        start = start.masked_fill(~legal.start, -torch.inf)
        end = end.masked_fill(~legal.end, -torch.inf)
        transitions = transitions.masked_fill(~legal.transitions, -torch.inf)
    if pair_scores is not None and pair_scores.numel():
        converted = pair_scores.to(scores)
        add = converted.add if converted is pair_scores else converted.add_
        transitions = add(transitions)
    if width == 0:
        scores = scores.new_zeros(batch, 1, labels)
        mask = torch.zeros(batch, 1, dtype=torch.bool, device=scores.device)
    lengths, valid, order, any_empty = _layout(mask, scores, trusted)
    if order is not None:
        scores = scores.gather(1, order.unsqueeze(-1).expand_as(scores))
    if transitions.dim() == 4:
        transitions = _align_pairs(transitions, valid, order, fresh=pair_scores is not None)
    if any_empty:
        # Whatever stands in an empty row must not meet the arithmetic.
        scores = scores.masked_fill((lengths == 0)[:, None, None], 0)
    last = (lengths - 1).clamp_min_(0)
    row = torch.arange(batch, device=last.device)
    chain = Chain(scores, transitions, start, end, lengths, last, row, valid, order, width, result)
    return chain if allowed is None else chain.restricted(allowed)


def _align_pairs(pairs: Tensor, valid: Tensor, order: Tensor | None, *, fresh: bool) -> Tensor:
    """Scores [B, L-1, Y, Y] of label pairs in left-aligned rows; 0 where there is no later word.

    ``fresh`` tensors, which nobody else holds, may be written to: these are the largest by far.
    """
    if order is not None:
        into = (order[:, 1:] - 1).clamp_min(0)
        pairs, fresh = pairs.gather(1, into[..., None, None].expand_as(pairs)), True
    padding = ~valid[:, 1:, None, None]
    if not bool(padding.any()):
        return pairs
    if not fresh:
        return pairs.masked_fill(padding, 0)
    with torch.no_grad():  # no total depends on padding, so its gradient is 0 without a record
        return pairs.masked_fill_(padding, 0)


def align_labels(chain: Chain, labels: Tensor, *, trusted: bool = False) -> Tensor:
    """Labels [B, L] in the chain's positions, 0 where there is no word; not checked if trusted.

    Raises:
        TypeError: labels are not integers.
        ValueError: the shape does not fit, or (RowError) a word's label is not from 0 to Y-1.
    """
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise TypeError(f"labels are {labels.dtype}, expected integers")
    batch, count = chain.valid.shape[0], chain.emissions.shape[-1]
    _expect("labels", labels, (batch, chain.width))
    labels = labels.to(device=chain.valid.device, dtype=torch.long)
    if chain.width == 0:
        return labels.new_zeros(batch, 1)
    if chain.order is not None:
        labels = labels.gather(1, chain.order)
    labels = labels.masked_fill(~chain.valid, 0)
    if trusted:
        return labels
    wrong = (labels < 0) | (labels >= count)
    if bool(wrong.any()):
        row, position = (int(i) for i in wrong.nonzero()[0])
        place = chain.input_position(row, position)
        value = int(labels[row, position])
        raise RowError(f"label {value}, expected 0 to {count - 1}", row, place)
    return labels


@torch.no_grad()
def require_finite(chain: Chain, totals: Tensor) -> None:
    """Raises unless each row has a labeling and a finite total [B], log Z or its best score.

    Raises:
        ValueError: a score is NaN or plus infinity (RowError where an emission is to blame), or
            (RowError) every labeling of a row has a score of minus infinity.
    """
    if math.isfinite(totals.sum().item()):
        return
    broken = ~(chain.emissions < torch.inf) & chain.valid.unsqueeze(-1)
    if bool(broken.any()):
        row, position, label = (int(i) for i in broken.nonzero()[0])
        value = chain.emissions[row, position, label].item()
        place = chain.input_position(row, position)
        raise RowError(f"emission of label {label} is {value}", row, place)
    if not chain.shared:
        _require_pairs(chain)
    for name, scores in (
        ("transitions", chain.transitions),
        ("start", chain.start),
        ("end", chain.end),
    ):
        if bool((~(scores < torch.inf)).any()):
            raise ValueError(f"{name} hold NaN or plus infinity")
    row = int((~torch.isfinite(totals)).nonzero()[0])
    raise NoLabelingError("no labeling is possible, all have a score of minus infinity", row)


def _require_pairs(chain: Chain) -> None:
    """Raises RowError with the place of a pair score that is NaN or plus infinity."""
    broken = ~(chain.transitions < torch.inf)
    if bool(broken.any()):
        row, position, before, label = (int(i) for i in broken.nonzero()[0])
        value = chain.transitions[row, position, before, label].item()
        place = chain.input_position(row, position + 1)
        raise RowError(f"score of label {label} after label {before} is {value}", row, place)


def _layout(
    mask: Tensor | None, scores: Tensor, trusted: bool
) -> tuple[Tensor, Tensor, Tensor | None, bool]:
    """Lengths [B], valid [B, L], order [B, L] or None, and whether a row is empty."""
    batch, width = scores.shape[:2]
    if mask is None:
        lengths = torch.full((batch,), width, device=scores.device)
        return lengths, torch.ones_like(scores[..., 0], dtype=torch.bool), None, False
    _expect("mask", mask, (batch, width))
    mask = mask.to(device=scores.device, dtype=torch.bool)
    lengths = mask.sum(1)
    valid = torch.arange(width, device=scores.device) < lengths.unsqueeze(1)
    if trusted:
        return lengths, valid, None, False
    order = None if torch.equal(mask, valid) else torch.argsort(~mask, dim=1, stable=True)
    return lengths, valid, order, not bool(valid[:, 0].all())


def _check_scores(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None,
    end: Tensor | None,
    pair_scores: Tensor | None,
) -> None:
    if not emissions.is_floating_point() or not transitions.is_floating_point():
        kinds = f"{emissions.dtype} and {transitions.dtype}"
        raise TypeError(f"emissions and transitions are {kinds}, expected floating types")
    if emissions.dim() != 3 or emissions.shape[2] == 0:
        raise ValueError(f"emissions are {_shape(emissions)}, expected [B, L, Y]")
    batch, width, labels = emissions.shape
    by_position = (batch, max(width - 1, 0), labels, labels)
    if transitions.shape not in ((labels, labels), by_position):
        expected = f"[{labels}, {labels}] or {list(by_position)}"
        raise ValueError(f"transitions are {_shape(transitions)}, expected {expected}")
    if pair_scores is not None:
        if not pair_scores.is_floating_point():
            raise TypeError(f"pair_scores are {pair_scores.dtype}, expected a floating type")
        _expect("pair_scores", pair_scores, by_position)
    for name, edge in (("start", start), ("end", end)):
        if edge is not None:
            _expect(name, edge, (labels,))


def _expect(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    if tensor.shape != shape:
        raise ValueError(f"{name}: shape {_shape(tensor)}, expected {list(shape)}")


def _shape(tensor: Tensor) -> list[int]:
    return list(tensor.shape)
