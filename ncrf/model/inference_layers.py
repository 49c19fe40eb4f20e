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

from ncrf.crf import LinearChainCRF, SpanMasks
from ncrf.data.label_tables import LegalTransitions, TypeMasks
from ncrf.model.registry import Registry


@dataclass(frozen=True)
class Decoded:
    """The best labelings of a batch.

    ``labels [B,N,L]`` (0 beyond a sentence's end), ``log_probabilities [B,N]`` and ``count
    [B]``: how many of the N a sentence has.
    """

    labels: Tensor
    log_probabilities: Tensor
    count: Tensor


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

    def loss(self, emissions: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        """Negative log-likelihood of ``labels [B,L]``, summed; emissions ``[B,L,Y]``."""
        constraints = self._legal() if self._in_loss else None
        likelihood: Tensor = self.crf(
            emissions, labels, mask, reduction="sum", constraints=constraints
        )
        return -likelihood

    def viterbi(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """The best labeling of every sentence, ``[B,L]``, without its probability."""
        labels: Tensor = self.crf.decode(emissions, mask, constraints=self._legal())
        return labels

    def decode(self, emissions: Tensor, mask: Tensor, nbest: int) -> Decoded:
        """The ``nbest`` best labelings of every sentence with their probabilities."""
        log_probabilities, labels, count = self.crf.nbest(
            emissions, mask, nbest, constraints=self._legal()
        )
        return Decoded(labels, log_probabilities, count)

    def marginals(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """P(label at a position | x), ``[B,L,Y]``."""
        marginals: Tensor = self.crf.marginals(emissions, mask, constraints=self._legal())
        return marginals

    def span_probabilities(
        self,
        emissions: Tensor,
        mask: Tensor,
        found: Sequence[tuple[int, int, int, str]],
        masks: Mapping[str, TypeMasks],
    ) -> list[float]:
        """For K spans (row, start, end, type) the total probability of the labelings with each."""
        if not found:
            return []
        rows, starts, ends, kinds = zip(*found, strict=True)
        types = {kind: i for i, kind in enumerate(dict.fromkeys(kinds))}
        stacked = SpanMasks(
            *(np.stack(tables) for tables in zip(*(masks[kind] for kind in types), strict=True))
        )
        probabilities: list[float] = self.crf.span_probability(
            emissions,
            mask,
            rows=rows,
            starts=starts,
            ends=ends,
            types=[types[kind] for kind in kinds],
            masks=stacked,
            constraints=self._legal(),
        ).tolist()
        return probabilities


INFERENCE_LAYERS: Registry[ChainInference] = Registry("use_crf")


@INFERENCE_LAYERS.register("CRF")
class CRFInference(ChainInference):
    """A CRF: start, transition and end scores are learned, from zero."""

    learns_transitions = True


@INFERENCE_LAYERS.register("softmax")
class SoftmaxInference(ChainInference):
    """Each token on its own: the chain with zero transitions."""

    learns_transitions = False
