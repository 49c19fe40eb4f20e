"""The best labelings: Viterbi and exact n-best.

Both first find, for each position and label, the score of the best beginning that ends there. The
best labeling then follows label by label from the end. For n-best a walk from the end keeps the n
endings with the best completed scores; since these are exact, so are the n labelings at the start
(the tree-trellis search of Soong & Huang 1991, level by level).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ncrf.crf import scaled
from ncrf.crf.chain import Chain, prepare, require_finite

_BLOCK = 1 << 18  # numbers that one step makes in one go: 2 MB, so that they stay in cache
_FEW_LABELS = 64  # up to these, rows make the better inner dimension


class Viterbi(NamedTuple):
    """Best score [B] and its labeling [B, L] (0 at masked positions)."""

    scores: Tensor
    labels: Tensor


class NBest(NamedTuple):
    """The best labelings, best first: log P(labels | x) [B, N], labels [B, N, L] and counts [B].

    Entries from counts[b] on are padding, with minus infinity and label 0.
    """

    log_probabilities: Tensor
    labels: Tensor
    counts: Tensor


@torch.no_grad()
def viterbi(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    allowed: Tensor | None = None,
    constraints: Sequence[Any] | None = None,
) -> Viterbi:
    """The labeling with the highest score, for each row. Args as log_partition.

    Raises:
        ValueError: as log_partition; with the row (RowError) if it has no possible labeling.
    """
    chain = prepare(
        emissions, transitions, start, end, mask, allowed=allowed, constraints=constraints
    )
    best = _best_beginnings(chain)
    scores, final = (best[chain.last, chain.row] + chain.end).max(1)
    scores = scores.masked_fill_(chain.lengths == 0, 0)
    require_finite(chain, scores)
    labels = _walk_back(chain, best, final)
    return Viterbi(scores.to(chain.result_dtype), chain.restore(labels))


@torch.no_grad()
def nbest(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    n: int,
    allowed: Tensor | None = None,
    constraints: Sequence[Any] | None = None,
) -> NBest:
    """The n best distinct labelings of each row with their log-probabilities.

    N in the result is n, or the number of labelings of L words if that is smaller. A row has
    ``counts[b]`` labelings: n, or as many as are possible. An empty row has one, the empty one,
    with log-probability 0. Other args as log_partition.

    Raises:
        ValueError: as log_partition; n is below 1; with the row (RowError) if it has no possible
            labeling.
    """
    if n < 1:
        raise ValueError(f"n is {n}, expected 1 or more")
    chain = prepare(
        emissions, transitions, start, end, mask, allowed=allowed, constraints=constraints
    )
    log_z = scaled.log_partition(chain)
    require_finite(chain, log_z)
    scores, labels = _best_walks_back(chain, _best_beginnings(chain), n)
    found = scores > -torch.inf
    labels = labels.masked_fill(~found.unsqueeze(-1), 0)
    labels = torch.stack([chain.restore(path) for path in labels.unbind(1)], 1)
    # The best scores are within log Z but for rounding.
    log_probabilities = (scores - log_z.unsqueeze(1)).clamp_max(0).to(chain.result_dtype)
    return NBest(log_probabilities, labels, found.sum(1))


def _best_beginnings(chain: Chain) -> Tensor:
    """Best scores [L, B, Y] over beginnings that end in each label, its emission included."""
    batch, width, labels = chain.emissions.shape
    best = chain.emissions.new_empty(width, batch, labels)
    size = max(1, _BLOCK // (labels * labels))
    for first in range(0, batch, size):
        rows = slice(first, first + size)
        emissions = chain.emissions[rows]
        if chain.shared and labels <= _FEW_LABELS:
            by_label = emissions.permute(1, 2, 0).contiguous()
            matrix = chain.transitions.unsqueeze(2)
            found = torch.empty_like(by_label)
            _max_product(found, by_label, chain.start.unsqueeze(1), (matrix,) * (width - 1), 0)
            best[:, rows] = found.transpose(1, 2)
        else:
            if chain.shared:
                by_step: tuple[Tensor, ...] = (chain.transitions.t().contiguous(),) * (width - 1)
            else:
                by_step = chain.transitions[rows].transpose(2, 3).unbind(1)
            _max_product(best[:, rows], emissions.transpose(0, 1), chain.start, by_step, 2)
    return best


def _max_product(
    best: Tensor, emissions: Tensor, start: Tensor, by_step: tuple[Tensor, ...], axis: int
) -> None:
    """Fills best, which has the dimensions of emissions.

    The scores of a position, with a dimension put in after their first, plus the step's matrix,
    have the earlier label at ``axis``, which is reduced.
    """
    torch.add(emissions[0], start, out=best[0])
    if not by_step:
        return
    sources, targets = best.unsqueeze(2).unbind(0), best[1:].unbind(0)
    sums = best.new_empty((sources[0] + by_step[0]).shape)
    scores = emissions[1:].unbind(0)
    for source, matrix, here, out in zip(sources, by_step, scores, targets, strict=False):
        torch.add(source, matrix, out=sums)
        torch.amax(sums, axis, out=out)
        out += here


def _walk_back(chain: Chain, best: Tensor, final: Tensor) -> Tensor:
    """Labels [B, L] of the best labelings, from the rows' final labels [B] to the start."""
    # Infinity, or NaN once minus infinity is added, is what argmax takes. So the walk comes to the
    # final label from whatever it finds in padding.
    best[chain.last, chain.row, final] = torch.inf
    matrix = chain.transitions.t().contiguous() if chain.shared else chain.transitions
    if best.device.type == "cpu" and chain.shared:
        return _walk_back_in_numpy(matrix, best)
    label = best[-1].argmax(1)
    labels = [label]
    for t in range(len(best) - 2, -1, -1):
        into = matrix[label] if chain.shared else matrix[chain.row, t, :, label]
        label = (into + best[t]).argmax(1)
        labels.append(label)
    return torch.stack(labels[::-1], 1)


def _walk_back_in_numpy(matrix: Tensor, best: Tensor) -> Tensor:
    """The same; on arrays this small numpy's calls take a third of the time of torch's."""
    rows, scores = matrix.numpy(), best.numpy()
    labels = np.empty(scores.shape[:2], dtype=np.int64)
    into = np.empty_like(scores[0])
    scores[-1].argmax(1, out=labels[-1])
    with np.errstate(invalid="ignore"):
        for t in range(len(scores) - 2, -1, -1):
            rows.take(labels[t + 1], axis=0, out=into, mode="clip")
            np.add(into, scores[t], out=into)
            into.argmax(1, out=labels[t])
    return torch.from_numpy(labels).t()


def _best_walks_back(chain: Chain, best: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The n best scores [B, N] and labels [B, N, L]; minus infinity where there are fewer."""
    width, _, labels = best.shape
    n = min(n, labels**chain.width)
    ends = best[chain.last, chain.row] + chain.end
    ends = torch.nn.functional.pad(ends, (0, max(n - labels, 0)), value=-torch.inf)
    final, final_label = ends.topk(n, dim=1)
    final_label.clamp_max_(labels - 1)
    itself = torch.arange(n, device=final_label.device).expand_as(final_label)
    scores, label = final, final_label
    all_labels, parents = [label], []
    for t in range(width - 2, -1, -1):
        inside = (chain.last > t).unsqueeze(1)
        totals, choice = _extend(chain, t, scores, label, best[t])
        # A row starts at its own last position, and keeps to it before.
        scores = torch.where(inside, totals, final)
        label = torch.where(inside, choice % labels, final_label)
        parents.append(torch.where(inside, choice.div(labels, rounding_mode="floor"), itself))
        all_labels.append(label)
    scores = scores.masked_fill((chain.lengths == 0).unsqueeze(1), -torch.inf)
    scores[:, 0].masked_fill_(chain.lengths == 0, 0)
    return scores, _trace(all_labels, parents)


def _extend(
    chain: Chain, t: int, scores: Tensor, label: Tensor, best: Tensor
) -> tuple[Tensor, Tensor]:
    """The best completed scores [B, N] over endings with a label of position t put before them.

    Args:
        chain: the inputs.
        t: position of the label that is put on.
        scores: [B, N], completed scores of the endings so far.
        label: [B, N], their first labels.
        best: [B, Y], best beginnings up to each label of t.

    Returns:
        The scores and, in [N * Y], the ending and label they come from.
    """
    n = scores.shape[1]
    if chain.shared:
        totals = chain.transitions.t().index_select(0, label.flatten())
        totals = totals.view(*label.shape, len(chain.end))
    else:
        totals = chain.transitions[chain.row.unsqueeze(1), t, :, label]
    totals.add_(best.unsqueeze(1))
    # An ending without its best beginning; a dead one stays at minus infinity.
    ending = scores - totals.amax(2).clamp_min_(torch.finfo(scores.dtype).min)
    totals.add_(ending.unsqueeze(2))
    found, choice = totals.flatten(1).topk(n, dim=1)
    return found, choice


def _trace(labels: list[Tensor], parents: list[Tensor]) -> Tensor:
    """Labels [B, N, L] from lists that run from the last position to the first."""
    place = torch.arange(labels[0].shape[1], device=labels[0].device).expand_as(labels[0])
    path = [labels[-1]]
    for label, parent in zip(labels[-2::-1], parents[::-1], strict=True):
        place = parent.gather(1, place)
        path.append(label.gather(1, place))
    return torch.stack(path, 2)
