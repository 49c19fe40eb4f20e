"""Minimum Bayes risk: the labeling of which the fewest entities are expected to be wrong.

Viterbi's labeling is the one that is most probably right as a whole. A reader counts entities: each
that is predicted and not there is an error, and so is each that is there and not predicted. The
expectation of their number is lowest if exactly those are predicted that are more likely there than
not. Two such entities cannot overlap, for no labeling has both. Where labels mark no spans, each
label is an entity of its own, and the most likely one at each word is taken.

With a threshold t of the probability in place of one half, a missed entity counts 1 - t and a wrong
one t. Under one half entities can overlap; then those are predicted, no two overlapping, whose
probabilities exceed t by most in sum, which have the lowest risk of all such sets.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ncrf.config import Config
from ncrf.crf import Posterior
from ncrf.data.label_tables import SpanTables, legal_transitions, span_masks
from ncrf.data.vocabulary import LabelScheme
from ncrf.model.inference_layers import ChainInference

Bools = NDArray[np.bool_]
# What is as probable as the threshold is not above it, in whatever batch it is computed.
_ROUNDING = 1e-9
_ROUNDING_OF_MARGINALS = 1e-6  # which may be in float32

Candidate = tuple[int, int, int, str]  # row, first word, word after the last, type


class MinimumRisk:
    """Finds these labelings for one model, whose scheme must be kept to (``constraints``)."""

    def __init__(
        self,
        inference: ChainInference,
        labels: Sequence[str],
        scheme: LabelScheme,
        threshold: float = 0.5,
    ) -> None:
        """``labels`` are those of the ids 0 to Y-1, in the target of ``scheme``."""
        self._inference = inference
        self._threshold = threshold * (1 + _ROUNDING)
        self._masks = span_masks(labels, scheme.target, scheme.delimiter)
        if not len(self._masks):
            return
        tables = SpanTables(labels, scheme.delimiter)
        legal = _legal(labels, scheme)
        self._types = tables.types
        of_type: Bools = np.equal.outer(tables.type_of, np.arange(len(tables.types)))
        # [Y,K]: the labels with which a span of a type begins, goes on and ends. Between labels
        # that may follow each other, that does not depend on the other one.
        self._begin: Bools = of_type & _some((tables.begins & legal)[:, :-1], 0)
        self._inside: Bools = of_type & _some(tables.inside & legal[:-1, :-1], 0)
        self._end: Bools = of_type & _some((tables.ends & legal)[:-1], 1)
        self._outside = tables.type_of < 0

    @classmethod
    def wanted(
        cls,
        config: Config,
        inference: ChainInference,
        labels: Sequence[str],
        scheme: LabelScheme,
    ) -> MinimumRisk | None:
        """One where ``decoder=mbr`` asks for it; a sentence of one label has no need.

        Raises ConfigError where what is likely need not be a labeling.
        """
        if config.inference.decoder != "mbr" or config.corpus.sentence_classification:
            return None
        if config.inference.constraints == "none":
            raise config.error(
                "decoder",
                "decoder=mbr needs labelings that keep to the tag scheme, and constraints=none",
                "constraints=decode",
            )
        if config.decoding.forced_labels:
            raise config.error(
                "decoder",
                "decoder=mbr does not go together with forced_labels=True",
                "decoder=viterbi",
            )
        return cls(inference, labels, scheme, config.inference.mbr_threshold)

    def labelings(self, posterior: Posterior) -> tuple[Tensor, Mapping[Candidate, float]]:
        """The labels of every sentence, ``[B,L]``, and the probabilities of their spans.

        What stands at padding has no meaning.
        """
        marginals = posterior.marginals()
        if not len(self._masks):
            return marginals.argmax(2), {}
        likely = self._above(posterior, marginals)
        if self._threshold < 0.5:
            likely = without_overlap(likely, self._threshold)
        return posterior.viterbi(self._allowed(marginals, likely)).labels, likely

    def above(self, posterior: Posterior) -> dict[Candidate, float]:
        """All spans with a probability above the threshold, with it; they may overlap."""
        return self._above(posterior, posterior.marginals())

    def _above(self, posterior: Posterior, marginals: Tensor) -> dict[Candidate, float]:
        """Such spans begin where any of their type does with a probability above the threshold."""
        masses = marginals.double().cpu().numpy() @ self._begin.astype(np.float64)
        least = self._threshold * (1 - _ROUNDING_OF_MARGINALS)
        begun = [
            (row, first, self._types[kind])
            for row, first, kind in np.argwhere(masses > least).tolist()
        ]
        return self._inference.spans_above(posterior, self._threshold, begun, self._masks)

    def _allowed(self, marginals: Tensor, likely: Iterable[Candidate]) -> Tensor:
        """The labels ``[B,L,Y]`` that words may get so that there are these spans and no others.

        A label set without one for words outside of spans needs others: there the best are taken.
        """
        batch, longest, count = marginals.shape
        free = self._outside if self._outside.any() else np.ones(count, dtype=np.bool_)
        allowed: Bools = np.broadcast_to(free, (batch, longest, count)).copy()
        spans = [(row, first, end, self._types.index(type_)) for row, first, end, type_ in likely]
        for row, _, after, kind in spans:
            if after < longest:  # where no label is outside, the next one must not go on
                allowed[row, after] &= ~self._inside[:, kind]
        for row, first, after, kind in spans:
            allowed[row, first] = self._begin[:, kind]
            allowed[row, first + 1 : after] = self._inside[:, kind]
            allowed[row, after - 1] &= self._end[:, kind]
        return torch.from_numpy(allowed).to(marginals.device)


def without_overlap(spans: Mapping[Candidate, float], threshold: float) -> dict[Candidate, float]:
    """Those, no two overlapping, whose probabilities exceed a threshold by most in sum."""
    of_rows: dict[int, list[Candidate]] = {}
    for span in spans:
        of_rows.setdefault(span[0], []).append(span)
    kept: dict[Candidate, float] = {}
    for row in of_rows.values():
        row.sort(key=lambda span: span[2])
        ends = [span[2] for span in row]
        # Of the first so many spans: the largest sum, and that with the last of them among those.
        best, earlier = [0.0], []
        for span in row:
            earlier.append(bisect_right(ends, span[1]))
            with_it = best[earlier[-1]] + spans[span] - threshold
            best.append(max(best[-1], with_it))
        place = len(row)
        while place:
            if best[place] > best[place - 1]:
                span = row[place - 1]
                kept[span] = spans[span]
                place = earlier[place - 1]
            else:
                place -= 1
    return kept


def _legal(labels: Sequence[str], scheme: LabelScheme) -> Bools:
    """Which label may follow which, ``[Y+1,Y+1]``; row and column Y are a sentence's border."""
    legal = legal_transitions(labels, scheme.target, scheme.delimiter)
    start = np.append(legal.start, np.False_)
    return np.vstack([np.column_stack([legal.transition, legal.end]), start])


def _some(table: Bools, axis: int) -> Bools:
    """Whether anything along an axis of a matrix is true, as a column."""
    found: Bools = np.any(table, axis=axis, keepdims=True)
    return found.reshape(-1, 1)
