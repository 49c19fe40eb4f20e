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
_MOST_NUMBERS = 1 << 25  # numbers in one call on a GPU: 256 MB
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


def viterbi(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    allowed: Tensor | None = None,
    constraints: Sequence[Any] | None = None,
    pair_scores: Tensor | None = None,
) -> Viterbi:
    """The labeling with the highest score, for each row. Args as log_partition.

    Raises:
        ValueError: as log_partition; with the row (RowError) if it has no possible labeling.
    """
    with torch.inference_mode():
        chain = prepare(
            *(emissions, transitions, start, end, mask),
            allowed=allowed,
            constraints=constraints,
            pair_scores=pair_scores,
        )
        found = chain_viterbi(chain)
    # Copies, because autograd would refuse the tensors of inference mode.
    return Viterbi(found.scores.clone(), found.labels.clone())


def chain_viterbi(chain: Chain) -> Viterbi:
    """The best labelings of a prepared chain; errors as viterbi."""
    scores, labels = _best(chain)
    require_finite(chain, scores)
    return Viterbi(scores.to(chain.result_dtype), chain.restore(labels))


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
    pair_scores: Tensor | None = None,
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
    with torch.inference_mode():
        chain = prepare(
            *(emissions, transitions, start, end, mask),
            allowed=allowed,
            constraints=constraints,
            pair_scores=pair_scores,
        )
        found = chain_nbest(chain, n, scaled.log_partition(chain))
    return NBest(*(values.clone() for values in found))


def chain_nbest(chain: Chain, n: int, log_z: Tensor) -> NBest:
    """The n best labelings of a prepared chain whose log-partition is [B]; errors as nbest."""
    require_finite(chain, log_z)
    if n == 1:
        scores, labels = (found.unsqueeze(1) for found in _best(chain))
    else:
        best, before = _best_beginnings(chain, apart=True)
        assert before is not None
        scores, labels = _best_walks_back(chain, best, before, n)
    found = scores > -torch.inf
    labels = labels.masked_fill(~found.unsqueeze(-1), 0)
    labels = chain.restore(labels.transpose(1, 2)).transpose(1, 2)
    # The best scores are within log Z but for rounding.
    log_probabilities = (scores - log_z.unsqueeze(1)).clamp_max(0).to(chain.result_dtype)
    return NBest(log_probabilities, labels, found.sum(1))


def _best(chain: Chain) -> tuple[Tensor, Tensor]:
    """Best scores [B], 0 of an empty row, and their labels [B, L]."""
    best, _ = _best_beginnings(chain)
    scores, final = (best[chain.last, chain.row] + chain.end).max(1)
    return scores.masked_fill_(chain.lengths == 0, 0), _labels(chain, best, final)


def _best_beginnings(chain: Chain, *, apart: bool = False) -> tuple[Tensor, Tensor | None]:
    """Best scores [L, B, Y] over beginnings that end in each label, and without its emission.

    The latter only if asked for.
    """
    batch, width, labels = chain.emissions.shape
    best = chain.emissions.new_empty(width, batch, labels)
    before = torch.empty_like(best) if apart else None
    size = max(1, _BLOCK // (labels * labels))
    for first in range(0, batch, size):
        rows = slice(first, first + size)
        emissions = chain.emissions[rows]
        if chain.shared and labels <= _FEW_LABELS:
            by_label = emissions.permute(1, 2, 0).contiguous()
            by_step: tuple[Tensor, ...] = (chain.transitions.unsqueeze(2),) * (width - 1)
            found = torch.empty_like(by_label)
            without = torch.empty_like(by_label) if apart else None
            _max_product(found, without, by_label, chain.start.unsqueeze(1), by_step, 0)
            best[:, rows] = found.transpose(1, 2)
            if before is not None and without is not None:
                before[:, rows] = without.transpose(1, 2)
        else:
            if chain.shared:
                by_step, axis = (chain.transitions.t().contiguous(),) * (width - 1), 2
            else:
                by_step, axis = chain.transitions[rows].unbind(1), 1
            part = None if before is None else before[:, rows]
            _max_product(best[:, rows], part, emissions.transpose(0, 1), chain.start, by_step, axis)
    return best, before


def _max_product(
    best: Tensor,
    before: Tensor | None,
    emissions: Tensor,
    start: Tensor,
    by_step: tuple[Tensor, ...],
    axis: int,
) -> None:
    """Fills best, and before from position 1 on; both have the dimensions of emissions.

    The scores of a position, with a dimension put in for the later label, plus the step's matrix,
    have the earlier label at ``axis``, which is reduced.
    """
    torch.add(emissions[0], start, out=best[0])
    if not by_step:
        return
    later = 3 if axis == 1 else 2
    sources, targets = best.unsqueeze(later).unbind(0), best[1:].unbind(0)
    sums = best.new_empty((sources[0] + by_step[0]).shape)
    scores = emissions[1:].unbind(0)
    for t, (source, matrix, here, out) in enumerate(
        zip(sources, by_step, scores, targets, strict=False), 1
    ):
        torch.add(source, matrix, out=sums)
        torch.amax(sums, axis, out=out)
        if before is not None:
            before[t] = out
        out += here


def _labels(chain: Chain, best: Tensor, final: Tensor) -> Tensor:
    """Labels [B, L] of the best labelings, whose final labels [B] are given."""
    if best.device.type == "cpu":
        return _walk_back(chain, best, final)
    return _compose(chain, best, final)


def _walk_back(chain: Chain, best: Tensor, final: Tensor) -> Tensor:
    """Label by label; on arrays this small numpy's calls take a third of the time of torch's."""
    # Infinity, or NaN once minus infinity is added, is what argmax takes. So the walk comes to the
    # final label from whatever it finds in padding.
    best[chain.last, chain.row, final] = torch.inf
    scores = best.numpy()
    labels = np.empty(scores.shape[:2], dtype=np.int64)
    into = np.empty_like(scores[0])
    shared = chain.shared
    if shared:
        by_label = chain.transitions.t().contiguous().numpy()
    else:
        pairs, row = chain.transitions.detach().numpy(), chain.row.numpy()
    scores[-1].argmax(1, out=labels[-1])
    with np.errstate(invalid="ignore"):
        for t in range(len(scores) - 2, -1, -1):
            if shared:
                by_label.take(labels[t + 1], axis=0, out=into, mode="clip")
            else:
                into = pairs[row, t, :, labels[t + 1]]
            np.add(into, scores[t], out=into)
            into.argmax(1, out=labels[t])
    return torch.from_numpy(labels).t()


def _compose(chain: Chain, best: Tensor, final: Tensor) -> Tensor:
    """All back-pointers in a few calls, and their compositions by doubling: for GPUs."""
    width, batch, labels = best.shape
    size = max(1, _MOST_NUMBERS // max(1, batch * labels * labels))
    back = [torch.arange(labels, device=best.device).expand(0, batch, labels)]
    for first in range(0, width - 1, size):
        steps = slice(first, min(first + size, width - 1))
        pairs = chain.transitions if chain.shared else chain.transitions[:, steps].transpose(0, 1)
        back.append((best[steps].unsqueeze(-1) + pairs).argmax(-2))
    inside = chain.valid.t()[1:].unsqueeze(-1)
    pointers = torch.where(inside, torch.cat(back), torch.arange(labels, device=best.device))
    distance = 1
    while distance < len(pointers):
        further = pointers[:-distance].gather(2, pointers[distance:])
        pointers = torch.cat([further, pointers[-distance:]])
        distance *= 2
    earlier = pointers.gather(2, final.expand(width - 1, batch).unsqueeze(2)).squeeze(2)
    return torch.cat([earlier, final.unsqueeze(0)]).t()


def _best_walks_back(chain: Chain, best: Tensor, before: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The n best scores [B, N] and labels [B, N, L]; minus infinity where there are fewer."""
    width, _, labels = best.shape
    n = min(n, labels**chain.width)
    ends = best[chain.last, chain.row] + chain.end
    ends = torch.nn.functional.pad(ends, (0, max(n - labels, 0)), value=-torch.inf)
    scores, label = ends.topk(n, dim=1)
    scores.masked_fill_((chain.lengths == 0).unsqueeze(1), -torch.inf)
    scores[:, 0].masked_fill_(chain.lengths == 0, 0)
    # Longest rows first: those that have a word at t+1 are the first so many.
    order = chain.lengths.argsort(descending=True)
    inside = chain.valid[:, 1:].sum(0).tolist()
    scores, label = scores[order], label.clamp_max_(labels - 1)[order]
    best, before = best.index_select(1, order), before.index_select(1, order)
    matrix = chain.transitions.t().contiguous() if chain.shared else chain.transitions
    # A choice is the place of an ending and a label before it, in [N * Y]; here: the ending itself.
    choices = (torch.arange(n, device=order.device) * labels + label).repeat(width, 1, 1)
    for t in range(width - 2, -1, -1):
        rows = order[: inside[t]]
        count = len(rows)
        label = choices[t + 1, :count] % labels
        # Endings without their best beginnings; dead ones stay at minus infinity.
        rest = before[t + 1, :count].gather(1, label)
        endings = scores[:count] - rest.clamp_min_(torch.finfo(scores.dtype).min)
        if chain.shared:
            totals = matrix.index_select(0, label.flatten()).view(count, n, labels)
        else:
            totals = matrix[rows.unsqueeze(1), t, :, label]
        totals.add_(best[t, :count].unsqueeze(1)).add_(endings.unsqueeze(2))
        torch.topk(totals.flatten(1), n, dim=1, out=(scores[:count], choices[t, :count]))
    back = order.argsort()
    return scores[back], _trace(choices, labels)[back]


def _trace(choices: Tensor, labels: int) -> Tensor:
    """Labels [B, N, L] by following the choices [L, B, N] from the first position to the last."""
    label, parent = choices % labels, choices.div(labels, rounding_mode="floor")
    place = torch.arange(choices.shape[2], device=choices.device).expand_as(choices[0])
    path = []
    for here, next_place in zip(label.unbind(0), parent.unbind(0), strict=True):
        path.append(here.gather(1, place))
        place = next_place.gather(1, place)
    return torch.stack(path, 2)
