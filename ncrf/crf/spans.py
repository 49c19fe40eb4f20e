"""The exact probability that a labeling has a given span, with its type and its boundaries."""

from __future__ import annotations

from collections.abc import Sequence
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
    last = chain.last[rows]

    def step(state: Tensor, refused: Tensor, positions: Tensor) -> Tensor:
        """Log totals [k, Y] one position on, over the pairs that are left for each type."""
        here = positions.minimum(last)
        pairs = chain.transitions
        if not chain.shared:
            pairs = pairs[rows, (here - 1).clamp_min(0)]
        scores = (state.unsqueeze(2) + pairs).masked_fill(refused[types], -torch.inf)
        return log_sum_exp(scores, 1) + chain.emissions[rows, here]

    at_start = vectors.alpha[rows, 0].masked_fill(refused.begin_first[types], -torch.inf)
    later = step(vectors.alpha[rows, (starts - 1).clamp_min(0)], refused.begin, starts)
    state = torch.where((starts == 0).unsqueeze(1), at_start, later)
    lengths = ends - starts
    for k in range(1, int(lengths.max())):
        onward = step(state, refused.inside, starts + k)
        state = torch.where((lengths > k).unsqueeze(1), onward, state)
    at_end = (state + chain.end).masked_fill(refused.end_last[types], -torch.inf)
    earlier = step(state, refused.end, ends) + vectors.beta[rows, ends.minimum(last)]
    return log_sum_exp(torch.where((ends > last).unsqueeze(1), at_end, earlier), 1)


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
