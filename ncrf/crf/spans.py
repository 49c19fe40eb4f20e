"""The exact probability that a labeling has a given span, with its type and its boundaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ncrf.crf.chain import Chain, prepare
from ncrf.crf.errors import RowError
from ncrf.crf.likelihood import chain_vectors
from ncrf.crf.log_space import LogVectors, log_sum_exp

_BLOCK = 1 << 22  # numbers in one step over many spans


class SpanMasks(NamedTuple):
    """Where label pairs begin, continue and end a span, for each of T types; Boolean.

    Attributes:
        begin: [T, Y, Y], a span begins at the second label of the pair.
        begin_first: [T, Y], a span begins at the row's first label.
        inside: [T, Y, Y], the span that holds the first label goes on at the second.
        end: [T, Y, Y], the span that holds the first label ends there.
        end_last: [T, Y], the span that holds the row's last label ends there.
    """

    begin: Any
    begin_first: Any
    inside: Any
    end: Any
    end_last: Any


def span_probability(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    rows: Any,
    starts: Any,
    ends: Any,
    types: Any,
    masks: SpanMasks,
    allowed: Tensor | None = None,
    constraints: Sequence[Any] | None = None,
    pair_scores: Tensor | None = None,
) -> Tensor:
    """Total probability [K] of the labelings that have span k exactly.

    Args:
        emissions: with what follows it, and the other scores and restrictions, as in log_partition.
        transitions: likewise.
        start: likewise.
        end: likewise.
        mask: likewise.
        rows: [K] integers, the row of each span.
        starts: [K] integers, its first word; words are counted without masked positions.
        ends: [K] integers, the word after its last.
        types: [K] integers, its type, as a place in the masks.
        masks: what makes a span of each type.
        allowed: likewise.
        constraints: likewise.
        pair_scores: likewise.

    Raises:
        ValueError: as log_partition; a mask has another shape; with the row and position (RowError)
            if a span is empty or not within its row, or the row has no possible labeling.
    """
    chain = prepare(
        *(emissions, transitions, start, end, mask),
        allowed=allowed,
        constraints=constraints,
        pair_scores=pair_scores,
    )
    return chain_span_probability(chain, chain_vectors(chain), rows, starts, ends, types, masks)


def chain_span_probability(
    chain: Chain,
    vectors: LogVectors,
    rows: Any,
    starts: Any,
    ends: Any,
    types: Any,
    masks: SpanMasks,
) -> Tensor:
    """The same for a prepared chain with its vectors."""
    device = chain.emissions.device
    places = [torch.as_tensor(x, device=device).long() for x in (rows, starts, ends, types)]
    table = _checked_masks(masks, chain)
    _check_spans(chain, places, len(table.begin))
    refused = SpanMasks(*(~mask for mask in table))
    size = max(1, _BLOCK // chain.emissions.shape[-1] ** 2)
    parts = zip(*(torch.split(x, size) for x in places), strict=True)
    found = [_log_totals(chain, vectors, refused, *part) for part in parts if len(part[0])]
    logs = torch.cat(found) - vectors.log_z[places[0]] if found else chain.emissions.new_zeros(0)
    return logs.exp().to(chain.result_dtype)


class FoundSpans(NamedTuple):
    """M spans: of the places that were asked about, which [M]; where they end; how probable [M].

    ``ends`` are the words after their last ones.
    """

    places: Tensor
    ends: Tensor
    probabilities: Tensor


def chain_spans_above(
    chain: Chain,
    vectors: LogVectors,
    threshold: float,
    rows: Any,
    starts: Any,
    types: Any,
    masks: SpanMasks,
) -> FoundSpans:
    """All spans with a probability above a threshold that begin at given places.

    From each place on it is followed how probable it is that the span has begun there and still
    goes on, until that is not above the threshold.
    """
    device = chain.emissions.device
    rows, starts, types = (torch.as_tensor(x, device=device).long() for x in (rows, starts, types))
    table = _checked_masks(masks, chain)
    _check_spans(chain, [rows, starts, starts + 1, types], len(table.begin))
    refused = SpanMasks(*(~mask for mask in table))
    size = max(1, _BLOCK // chain.emissions.shape[-1] ** 2)
    found = []
    for first in range(0, len(rows), size):
        part = slice(first, first + size)
        walk = _Walk(chain, vectors, refused, rows[part], starts[part], types[part])
        for places, ends, probabilities in walk.above(threshold):
            found.append((places + first, ends, probabilities))
    if not found:
        return FoundSpans(rows[:0], rows[:0], torch.zeros(0, device=device))
    places, ends, probabilities = (torch.cat(x) for x in zip(*found, strict=True))
    return FoundSpans(places, ends, probabilities.to(chain.result_dtype))


@dataclass
class _Walk:
    """Spans that begin at k places, followed word by word; ``refused`` as in _log_totals."""

    chain: Chain
    vectors: LogVectors
    refused: SpanMasks
    rows: Tensor
    starts: Tensor
    types: Tensor

    def above(self, threshold: float) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Places, ends and probabilities of the spans above a threshold, by their lengths."""
        last, log_z = self.chain.last[self.rows], self.vectors.log_z[self.rows]
        state = self.begun()
        places = torch.arange(len(self.rows), device=state.device)
        here = self.starts
        while len(places):
            ended = (self.ended(state, here) - log_z[places]).exp()
            found = (ended > threshold).nonzero().squeeze(1)
            yield places[found], here[found] + 1, ended[found]
            here = here + 1
            onward = self.step(state, self.refused.inside, here)
            after = self.vectors.beta[self.rows, here.minimum(last[places])]
            mass = (log_sum_exp(onward + after, 1) - log_z[places]).exp()
            kept = ((here <= last[places]) & (mass > threshold)).nonzero().squeeze(1)
            state, here, places = onward[kept], here[kept], places[kept]
            self.rows, self.types = self.rows[kept], self.types[kept]

    def begun(self) -> Tensor:
        """Log totals [k, Y] of the beginnings in which a span begins at each place."""
        alpha = self.vectors.alpha
        at_start = alpha[self.rows, 0].masked_fill(self.refused.begin_first[self.types], -torch.inf)
        before = alpha[self.rows, (self.starts - 1).clamp_min(0)]
        later = self.step(before, self.refused.begin, self.starts)
        return torch.where((self.starts == 0).unsqueeze(1), at_start, later)

    def ended(self, state: Tensor, here: Tensor) -> Tensor:
        """Log totals [k] of the labelings whose span ends with the word ``here [k]``."""
        chain, last = self.chain, self.chain.last[self.rows]
        final = (state + chain.end).masked_fill(self.refused.end_last[self.types], -torch.inf)
        after = self.vectors.beta[self.rows, (here + 1).minimum(last)]
        earlier = self.step(state, self.refused.end, here + 1) + after
        return log_sum_exp(torch.where((here == last).unsqueeze(1), final, earlier), 1)

    def step(self, state: Tensor, refused: Tensor, positions: Tensor) -> Tensor:
        """Log totals [k, Y] one position on, over the pairs that are left for each type."""
        chain, rows = self.chain, self.rows
        here = positions.minimum(chain.last[rows])
        pairs = chain.transitions
        if not chain.shared:
            pairs = pairs[rows, (here - 1).clamp_min(0)]
        scores = (state.unsqueeze(2) + pairs).masked_fill(refused[self.types], -torch.inf)
        return log_sum_exp(scores, 1) + chain.emissions[rows, here]


def _log_totals(
    chain: Chain,
    vectors: LogVectors,
    refused: SpanMasks,
    rows: Tensor,
    starts: Tensor,
    ends: Tensor,
    types: Tensor,
) -> Tensor:
    """Logarithms [k] of the totals over labelings that have each span.

    ``refused`` is True where a mask does not hold.
    """
    walk = _Walk(chain, vectors, refused, rows, starts, types)
    state = walk.begun()
    lengths = ends - starts
    for k in range(1, int(lengths.max())):
        onward = walk.step(state, refused.inside, starts + k)
        state = torch.where((lengths > k).unsqueeze(1), onward, state)
    return walk.ended(state, ends - 1)


def _checked_masks(masks: SpanMasks, chain: Chain) -> SpanMasks:
    device, labels = chain.emissions.device, chain.emissions.shape[-1]
    tensors = [x if isinstance(x, Tensor) else torch.tensor(x) for x in masks]
    table = SpanMasks(*(x.to(device=device, dtype=torch.bool) for x in tensors))
    for name, tensor in table._asdict().items():
        dims = 1 if name in ("begin_first", "end_last") else 2
        expected = (len(table.begin), *(labels,) * dims)
        if tensor.shape != expected:
            raise ValueError(f"{name}: shape {list(tensor.shape)}, expected {list(expected)}")
    return table


def _check_spans(chain: Chain, places: list[Tensor], types: int) -> None:
    rows, starts, ends, kinds = places
    if any(x.dim() != 1 or x.shape != rows.shape for x in places):
        raise ValueError(f"rows, starts, ends and types are {[list(x.shape) for x in places]}")
    for name, found, count in (("rows", rows, len(chain.row)), ("types", kinds, types)):
        if len(found) and (int(found.min()) < 0 or int(found.max()) >= count):
            raise ValueError(f"{name} of spans are not all from 0 to {count - 1}")
    wrong = (starts < 0) | (starts >= ends) | (ends > chain.lengths[rows])
    if bool(wrong.any()):
        k = int(wrong.nonzero()[0])
        row, first, after = int(rows[k]), int(starts[k]), int(ends[k])
        length = int(chain.lengths[row])
        raise RowError(f"span [{first}, {after}) is not within {length} words", row, first)
