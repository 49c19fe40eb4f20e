"""Inference layers: emissions to a distribution over labelings, its loss and its decoding.

Both are the linear chain of ``ncrf.crf``: a CRF learns its transitions, a softmax layer is the
chain whose transitions are zero. So n-best, probabilities, constraints and marginals are the
same code, and every probability is the true P(labels | x) under the distribution at decode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ncrf.crf import LinearChainCRF, Posterior, SpanMasks
from ncrf.data.label_tables import LegalTransitions, TypeMasks
from ncrf.model.registry import Registry


@dataclass(frozen=True)
class Scores:
    """What the network says of a batch: emissions ``[B,L,Y]`` and the mask ``[B,L]`` of labels.

    ``allowed [B,L,Y]`` (None: all) restricts decoding to labelings of allowed labels; every
    probability is then conditional on that. ``pair_scores [B,L-1,Y,Y]`` (None: there are none) are
    added to the transitions, entry t to those from position t to t+1.
    """

    emissions: Tensor
    mask: Tensor
    allowed: Tensor | None = None
    pair_scores: Tensor | None = None

    def row(self, row: int) -> Scores:
        """One sentence of the batch, without its padding."""
        length = int(self.mask[row].sum())
        place = slice(row, row + 1), slice(0, length)
        allowed = None if self.allowed is None else self.allowed[place]
        pairs = self.pair_scores
        if pairs is not None:
            pairs = pairs[row : row + 1, : max(length - 1, 0)]
        return Scores(self.emissions[place], self.mask[place], allowed, pairs)


class ChainInference(nn.Module):
    """A linear chain over the labels, with the legal transitions of the label scheme.

    ``constraints``: ``none`` - every labeling is possible; ``decode`` - trained over all
    labelings, decoded over the legal ones; ``all`` - legal ones only, in the loss too.
    """

    learns_transitions: bool

    def __init__(self, num_labels: int, constraints: str, legal: LegalTransitions | None) -> None:
        super().__init__()
        self.crf = LinearChainCRF(num_labels)
        self.crf.requires_grad_(self.learns_transitions)
        self._in_loss = constraints == "all"
        self.constrained = constraints != "none" and legal is not None
        if self.constrained and legal is not None:
            for name, values in legal._asdict().items():
                self.register_buffer(f"legal_{name}", torch.from_numpy(values), persistent=False)

    def _legal(self) -> Any:
        if not self.constrained:
            return None
        return self.legal_start, self.legal_transition, self.legal_end

    def learn_pairs(self, pairs: Tensor) -> None:
        """Let only the transitions of label ``pairs [n]`` (before * Y + label) be learned.

        All others stay zero, and so do the scores of the first and the last label.
        """
        crf = self.crf
        crf.start_transitions.requires_grad_(False)
        crf.end_transitions.requires_grad_(False)
        crf.transitions.requires_grad_(self.learns_transitions and len(pairs) > 0)
        if crf.transitions.requires_grad and len(pairs) < crf.num_labels**2:
            learned = torch.zeros(crf.num_labels**2).index_fill_(0, pairs, 1.0)
            self.register_buffer("learned", learned.view_as(crf.transitions), persistent=False)
            crf.transitions.register_hook(  # type: ignore[no-untyped-call]
                lambda gradient: gradient * self.learned
            )

    def loss(
        self,
        emissions: Tensor,
        labels: Tensor,
        mask: Tensor,
        pair_scores: Tensor | None = None,
    ) -> Tensor:
        """Negative log-likelihood of ``labels [B,L]``, summed; emissions ``[B,L,Y]``.

        ``pair_scores [B,L-1,Y,Y]`` as in Scores. Of labels known in part, ``[B,L,Y]`` Booleans,
        that of all labelings that agree. On a GPU known labels are not checked, because every look
        would wait for it: what is wrong with them shows in the loss.
        """
        constraints = self._legal() if self._in_loss else None
        likelihood: Tensor = self.crf(
            emissions,
            labels,
            mask,
            reduction="sum",
            constraints=constraints,
            pair_scores=pair_scores,
            trusted=emissions.is_cuda,
        )
        return -likelihood

    def posterior(self, scores: Scores) -> Posterior:
        """What a batch is asked more than one thing of; ``span_probabilities`` needs it."""
        found: Posterior = self.crf.posterior(scores.emissions, scores.mask, **self._limits(scores))
        return found

    def pair_marginals(self, scores: Scores) -> Tensor:
        """P(labels at two neighbouring positions | x), ``[B,L-1,Y,Y]``."""
        pairs: Tensor = self.crf.pairwise_marginals(
            scores.emissions, scores.mask, **self._limits(scores)
        )
        return pairs

    def span_probabilities(
        self,
        posterior: Posterior,
        found: Sequence[tuple[int, int, int, str]],
        masks: Mapping[str, TypeMasks],
    ) -> list[float]:
        """For K spans (row, start, end, type) the total probability of the labelings with each."""
        if not found:
            return []
        rows, starts, ends, kinds = zip(*found, strict=True)
        types, tables = _numbered(kinds, masks)
        probabilities: list[float] = posterior.span_probability(
            rows=rows, starts=starts, ends=ends, types=types, masks=tables
        ).tolist()
        return probabilities

    def spans_above(
        self,
        posterior: Posterior,
        threshold: float,
        begun: Sequence[tuple[int, int, str]],
        masks: Mapping[str, TypeMasks],
    ) -> dict[tuple[int, int, int, str], float]:
        """The spans (row, start, end, type) that are more probable than a threshold.

        Of those that begin at the given places (row, start, type); each with its probability.
        """
        if not begun:
            return {}
        rows, starts, kinds = zip(*begun, strict=True)
        types, tables = _numbered(kinds, masks)
        found = posterior.spans_above(
            threshold, rows=rows, starts=starts, types=types, masks=tables
        )
        return {
            (*begun[place][:2], end, begun[place][2]): probability
            for place, end, probability in zip(*(x.tolist() for x in found), strict=True)
        }

    def _limits(self, scores: Scores) -> dict[str, Any]:
        return {
            "allowed": scores.allowed,
            "constraints": self._legal(),
            "pair_scores": scores.pair_scores,
        }


def _numbered(kinds: Sequence[str], masks: Mapping[str, TypeMasks]) -> tuple[list[int], SpanMasks]:
    """The types of K spans as places in the masks, and the masks of the types that there are."""
    types = {kind: i for i, kind in enumerate(dict.fromkeys(kinds))}
    tables = zip(*(masks[kind] for kind in types), strict=True)
    stacked = SpanMasks(*(torch.from_numpy(np.stack(table)) for table in tables))
    return [types[kind] for kind in kinds], stacked


INFERENCE_LAYERS: Registry[ChainInference] = Registry("use_crf")


@INFERENCE_LAYERS.register("CRF")
class CRFInference(ChainInference):
    """A CRF: start, transition and end scores are learned, from zero."""

    learns_transitions = True


@INFERENCE_LAYERS.register("softmax")
class SoftmaxInference(ChainInference):
    """Each token on its own: the chain with zero transitions."""

    learns_transitions = False
