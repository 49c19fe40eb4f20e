"""One batch, prepared once, that is asked several questions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ncrf.crf.chain import align_labels, prepare
from ncrf.crf.likelihood import chain_path_score, chain_vectors
from ncrf.crf.log_space import LogVectors
from ncrf.crf.one_row import OneRow
from ncrf.crf.scaled import log_partition
from ncrf.crf.spans import FoundSpans, SpanMasks, chain_span_probability, chain_spans_above
from ncrf.crf.viterbi import NBest, Viterbi, chain_nbest, chain_viterbi


class Posterior:
    """P(y | x) of a batch: labelings, labels and spans from one forward and one backward pass.

    The numbers are those of the functions that are named like the methods; no gradient is kept.
    """

    def __init__(
        self,
        emissions: Tensor,
        transitions: Tensor,
        start: Tensor | None = None,
        end: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        allowed: Tensor | None = None,
        constraints: Sequence[Any] | None = None,
        pair_scores: Tensor | None = None,
    ) -> None:
        """Prepares the chains; args and errors as log_partition."""
        with torch.no_grad():
            self._chain = prepare(
                *(emissions, transitions, start, end, mask),
                allowed=allowed,
                constraints=constraints,
                pair_scores=pair_scores,
            )

    @cached_property
    def _vectors(self) -> LogVectors:
        with torch.no_grad():
            return chain_vectors(self._chain)

    @cached_property
    def _row(self) -> OneRow | None:
        return OneRow.of(self._chain)

    @cached_property
    def _log_z(self) -> Tensor:
        if self._row is None:
            return self._vectors.log_z
        return torch.tensor([self._row.log_z], dtype=torch.float64)

    def marginals(self) -> Tensor:
        """P(y_t | x) [B, L, Y]; 0 at masked positions."""
        found = None if self._row is None else self._row.marginals()
        if found is not None:
            return found
        with torch.no_grad():
            marginals = self._vectors.marginals(self._chain)
            return self._chain.restore(marginals).to(self._chain.result_dtype)

    def viterbi(self, allowed: Tensor | None = None) -> Viterbi:
        """The labeling with the highest score, of those that keep to ``allowed`` [B, L, Y]."""
        found = None if self._row is None else self._row.viterbi(allowed)
        if found is not None:
            return found
        chain = self._chain
        with torch.no_grad():
            return chain_viterbi(chain if allowed is None else chain.restricted(allowed))

    def log_prob(self, labels: Tensor) -> Tensor:
        """log P(labels | x) [B] of labels [B, L]; minus infinity where they are impossible."""
        with torch.no_grad():
            score = chain_path_score(self._chain, align_labels(self._chain, labels))
            return (score - self._log_z).to(self._chain.result_dtype)

    def nbest(self, n: int, *, alone: bool = False) -> NBest:
        """The n best labelings of each row; see viterbi.nbest.

        ``alone``: only labelings are asked for, so that the forward pass is enough.
        """
        if n < 1:
            raise ValueError(f"n is {n}, expected 1 or more")
        found = None if self._row is None else self._row.nbest(n)
        if found is not None:
            return found
        with torch.no_grad():
            log_z = log_partition(self._chain) if alone else self._log_z
            return chain_nbest(self._chain, n, log_z)

    def span_probability(
        self, *, rows: Any, starts: Any, ends: Any, types: Any, masks: SpanMasks
    ) -> Tensor:
        """Probability [K] of each span [starts, ends) of rows; see spans.span_probability."""
        spans = rows, starts, ends, types, masks
        found = None if self._row is None else self._row.span_probability(*spans)
        if found is not None:
            return found
        with torch.no_grad():
            return chain_span_probability(self._chain, self._vectors, *spans)

    def spans_above(
        self, threshold: float, *, rows: Any, starts: Any, types: Any, masks: SpanMasks
    ) -> FoundSpans:
        """All spans with a probability above a threshold that begin at K places.

        Args:
            threshold: from 0 to 1.
            rows: [K] integers, the row of each place.
            starts: [K] integers, the first word of the spans.
            types: [K] integers, their type, as a place in the masks.
            masks: what makes a span of each type.

        Raises:
            ValueError: as span_probability.
        """
        begun = rows, starts, types, masks
        found = None if self._row is None else self._row.spans_above(threshold, *begun)
        if found is not None:
            return found
        with torch.no_grad():
            return chain_spans_above(self._chain, self._vectors, threshold, *begun)
