"""Features: attributes joined with labels, each with its place in one vector of weights.

K weights in this order: *states* (unigram attribute, label), *transitions* (label before, label),
*bigram* (bigram attribute, label before, label). Only those that the training corpus shows have a
weight, unless all possible ones are asked for; so memory grows with what was observed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncrf.data.attributes import TokenAttributes
from ncrf.data.dataset import IntArray, offsets_of
from ncrf.data.template_window import Values

Floats = NDArray[np.float64]
Keep = NDArray[np.bool_]


@dataclass(frozen=True)
class FeatureIndex:
    """Which features have a weight, and where; Y labels.

    ``state_labels [Ks]``: the labels of unigram attribute a are those from state_offsets[a] to
    state_offsets[a+1], in order (``state_offsets [A+1]``). ``transition_pairs [Kt]``: label pairs,
    before * Y + label; none where the templates have no bare ``B``. ``bigram_pairs [Kb]`` with
    ``bigram_offsets``: the label pairs of bigram attributes, likewise. What has no weight scores 0.
    """

    num_labels: int
    state_offsets: IntArray
    state_labels: IntArray
    transition_pairs: IntArray
    bigram_offsets: IntArray
    bigram_pairs: IntArray

    @classmethod
    def build(
        cls,
        attributes: TokenAttributes,
        labels: IntArray,
        num_labels: int,
        num_attributes: tuple[int, int],
        *,
        transitions: bool = True,
        all_possible_states: bool = False,
        all_possible_transitions: bool = False,
    ) -> FeatureIndex:
        """The features that a training corpus shows; ``labels [T]`` are ids below ``num_labels``.

        ``num_attributes``: how many unigram and bigram attributes the vocabulary has.
        ``transitions``: whether label pairs alone have weights (the bare ``B``).
        ``all_possible_states``, ``all_possible_transitions``: as in CRFsuite, features that the
        corpus does not show as well; with both it is what CRF++ has.
        """
        pairs = num_labels * num_labels
        seen = _codes(attributes, labels, num_labels)
        states = np.arange(num_attributes[0] * num_labels if all_possible_states else 0)
        between = np.arange(pairs if transitions and all_possible_transitions else 0)
        bigram = np.arange(num_attributes[1] * pairs if all_possible_transitions else 0)
        if not all_possible_states:
            states = _tally(*seen.states)[0]
        if not all_possible_transitions:
            between = _tally(*seen.transitions)[0] if transitions else between
            bigram = _tally(*seen.bigram)[0]
        return cls(
            num_labels,
            *_by_attribute(states, num_labels, num_attributes[0]),
            between,
            *_by_attribute(bigram, pairs, num_attributes[1]),
        )

    @property
    def num_states(self) -> int:
        """State features, Ks."""
        return len(self.state_labels)

    @property
    def num_transitions(self) -> int:
        """Transition features without an observation, Kt."""
        return len(self.transition_pairs)

    @property
    def num_features(self) -> int:
        """Weights, K."""
        return len(self.state_labels) + len(self.transition_pairs) + len(self.bigram_pairs)

    @property
    def parts(self) -> tuple[slice, slice, slice]:
        """Where states, transitions and bigram features lie in the K weights."""
        first = self.num_states
        second = first + self.num_transitions
        return slice(0, first), slice(first, second), slice(second, self.num_features)

    def parts_of(self, features: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """What features ``[n]`` (their numbers among the K) are made of, for people to read.

        Attributes (of the unigram or the bigram vocabulary; -1 for a transition), labels before
        (-1 for a state) and labels, each ``[n]``.
        """
        labels = np.concatenate([self.state_labels, self.transition_pairs, self.bigram_pairs])
        before, label = np.divmod(labels[features], self.num_labels)
        states, _, bigram = self.parts
        attribute = np.full(len(features), -1)
        for part, offsets in ((states, self.state_offsets), (bigram, self.bigram_offsets)):
            inside = (features >= part.start) & (features < part.stop)
            places = features[inside] - part.start
            attribute[inside] = np.searchsorted(offsets, places, "right") - 1
        before[features < states.stop] = -1
        return attribute, before, label

    def transition_scores(self, weights: NDArray[Any]) -> NDArray[Any]:
        """The transitions ``[Y,Y]`` (from, to) of K weights; 0 where there is no feature."""
        scores = np.zeros(self.num_labels**2, weights.dtype)
        scores[self.transition_pairs] = weights[self.parts[1]]
        return scores.reshape(self.num_labels, self.num_labels)

    def count(self, attributes: TokenAttributes, labels: IntArray) -> Floats:
        """How often each feature occurs in a labelled corpus, times its value: ``[K]``."""
        seen = _codes(attributes, labels, self.num_labels)
        states, bigram = self._state_codes(), self._bigram_codes()
        counts = np.zeros(self.num_features)
        for part, known, found in zip(
            self.parts,
            (states, self.transition_pairs, bigram),
            (seen.states, seen.transitions, seen.bigram),
            strict=True,
        ):
            codes, totals = _tally(*found)
            place = np.minimum(np.searchsorted(known, codes), max(len(known) - 1, 0))
            if len(known):
                hit = known[place] == codes
                counts[part][place[hit]] = totals[hit]
        return counts

    def kept(self, keep: Keep) -> tuple[FeatureIndex, Keep, Keep]:
        """Without the features where ``keep [K]`` is False, and the attributes that go with them.

        Returns the smaller index and which unigram and bigram attributes it still has, as
        ``AttributeVocabulary.kept`` takes them. The weights that remain are ``weights[keep]``.
        """
        states, transitions, bigram = (keep[part] for part in self.parts)
        state_counts = np.add.reduceat(np.append(states, 0), self.state_offsets)[:-1]
        state_counts[np.diff(self.state_offsets) == 0] = 0
        bigram_counts = np.add.reduceat(np.append(bigram, 0), self.bigram_offsets)[:-1]
        bigram_counts[np.diff(self.bigram_offsets) == 0] = 0
        index = FeatureIndex(
            self.num_labels,
            offsets_of(state_counts[state_counts > 0]),
            self.state_labels[states],
            self.transition_pairs[transitions],
            offsets_of(bigram_counts[bigram_counts > 0]),
            self.bigram_pairs[bigram],
        )
        return index, state_counts > 0, bigram_counts > 0

    def arrays(self) -> dict[str, NDArray[np.int32]]:
        """The index as named arrays, for ``from_arrays``."""
        return {
            "state_counts": np.diff(self.state_offsets).astype(np.int32),
            "state_labels": self.state_labels.astype(np.int32),
            "transition_pairs": self.transition_pairs.astype(np.int32),
            "bigram_counts": np.diff(self.bigram_offsets).astype(np.int32),
            "bigram_pairs": self.bigram_pairs.astype(np.int32),
        }

    @classmethod
    def from_arrays(cls, num_labels: int, arrays: Mapping[str, NDArray[Any]]) -> FeatureIndex:
        """The index that ``arrays`` gave; KeyError, ValueError for what does not fit."""
        if any(arrays[name].dtype != np.int32 or arrays[name].ndim != 1 for name in _ARRAYS):
            raise ValueError("a number of another type")
        found = {name: arrays[name].astype(np.int64) for name in _ARRAYS}
        index = cls(
            num_labels,
            offsets_of(found["state_counts"]),
            found["state_labels"],
            found["transition_pairs"],
            offsets_of(found["bigram_counts"]),
            found["bigram_pairs"],
        )
        for values, counts, limit in (
            (index.state_labels, found["state_counts"], num_labels),
            (index.transition_pairs, None, num_labels**2),
            (index.bigram_pairs, found["bigram_counts"], num_labels**2),
        ):
            wrong = counts is not None and (
                counts.min(initial=0) < 0 or counts.sum() != len(values)
            )
            if wrong or (len(values) and not 0 <= values.min() <= values.max() < limit):
                raise ValueError("the features do not fit their labels")
        return index

    def _state_codes(self) -> IntArray:
        owner = np.repeat(np.arange(len(self.state_offsets) - 1), np.diff(self.state_offsets))
        return owner * self.num_labels + self.state_labels

    def _bigram_codes(self) -> IntArray:
        owner = np.repeat(np.arange(len(self.bigram_offsets) - 1), np.diff(self.bigram_offsets))
        return owner * self.num_labels**2 + self.bigram_pairs


_ARRAYS = ("state_counts", "state_labels", "transition_pairs", "bigram_counts", "bigram_pairs")


@dataclass(frozen=True)
class _Codes:
    """The features at every place of a labelled corpus as integers, with their values."""

    states: tuple[IntArray, Values | None]
    transitions: tuple[IntArray, Values | None]
    bigram: tuple[IntArray, Values | None]


def _codes(attributes: TokenAttributes, labels: IntArray, num_labels: int) -> _Codes:
    labels = labels.astype(np.int64, copy=False)
    if len(labels) != attributes.num_tokens:
        raise ValueError(f"{len(labels)} labels of {attributes.num_tokens} words")
    if len(labels) and not 0 <= labels.min() <= labels.max() < num_labels:
        raise ValueError(f"labels from {labels.min()} to {labels.max()}, {num_labels} are known")
    pairs = np.zeros_like(labels)
    pairs[1:] = labels[:-1] * num_labels + labels[1:]
    inner = np.ones(len(labels), np.bool_)
    starts = attributes.offsets[:-1]
    inner[starts[starts < len(labels)]] = False
    return _Codes(
        _joined(attributes.unigram, attributes.unigram_values, labels, num_labels),
        (pairs[inner], None),
        _joined(attributes.bigram, attributes.bigram_values, pairs, num_labels**2),
    )


def _joined(
    ids: NDArray[np.int32], values: Values | None, outcome: IntArray, size: int
) -> tuple[IntArray, Values | None]:
    """attribute * size + outcome ``[n]`` for the attributes ``[T,R]`` that there are."""
    codes = ids * np.int64(size) + outcome[:, None]
    there = ids >= 0
    return codes[there], None if values is None else values[there]


def _tally(codes: IntArray, values: Values | None) -> tuple[IntArray, Floats]:
    """The distinct codes in order, and how often each occurs or the sum of its values."""
    if values is None:
        distinct, counts = np.unique(codes, return_counts=True)
        return distinct, counts.astype(np.float64)
    distinct, places = np.unique(codes, return_inverse=True)
    totals = np.bincount(places.reshape(-1), values, len(distinct))
    return distinct, totals.astype(np.float64)


def _by_attribute(codes: IntArray, size: int, attributes: int) -> tuple[IntArray, IntArray]:
    """Offsets ``[A+1]`` and outcomes of sorted codes attribute * size + outcome."""
    owner, outcome = np.divmod(codes, max(size, 1))
    return offsets_of(np.bincount(owner, minlength=attributes)), outcome
