"""The classical CRF as each learner of the whole corpus wants to see it, and the learner by name.

The learners (LBFGS, IterativeScaling, Perceptron) know weights ``[K]`` and a few numbers. What they
ask for is computed here from a labelled corpus in attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ncrf.config import Config
from ncrf.data.attributes import Ids, TokenAttributes
from ncrf.data.dataset import IntArray, offsets_of
from ncrf.data.feature_index import FeatureIndex
from ncrf.data.template_window import Values
from ncrf.model.corpus_scores import expand
from ncrf.train.iterative_scaling import IterativeScaling, Support
from ncrf.train.lbfgs import LBFGS
from ncrf.train.learner import Learner
from ncrf.train.perceptron import Mistake, Perceptron
from ncrf.train.template_objective import TemplateObjective

Floats = NDArray[np.float64]

_MOST_TOTALS = 64  # different T(x); where there are more, they are rounded up to so many


@dataclass(frozen=True)
class LabelledCorpus:
    """What is learned from: the features, and attributes and labels ``[T]`` of every word."""

    index: FeatureIndex
    attributes: TokenAttributes
    labels: IntArray

    def chosen(self, sentences: IntArray) -> LabelledCorpus:
        """Some of its sentences."""
        offsets = self.attributes.offsets
        lengths = (offsets[1:] - offsets[:-1])[sentences]
        new = offsets_of(lengths)
        places = np.arange(new[-1]) + np.repeat(offsets[sentences] - new[:-1], lengths)
        found = self.attributes
        values = (found.unigram_values, found.bigram_values)
        attributes = TokenAttributes(
            new,
            found.unigram[places],
            found.bigram[places],
            *(None if of_words is None else of_words[places] for of_words in values),
        )
        return LabelledCorpus(self.index, attributes, self.labels[places])


def build_learner(config: Config, corpus: LabelledCorpus) -> Learner:
    """The learner that ``optimizer`` names, with all weights zero.

    Raises ConfigError for iterative scaling with features that may be negative.
    """
    keys, name = config.whole_corpus, config.training.optimizer
    start = torch.zeros(corpus.index.num_features, dtype=torch.float64)
    if name.startswith("IIS"):
        scalable = ScalableCorpus(corpus, by_total=name[-1] == "T")
        return IterativeScaling(scalable, start, algorithm=name[-1], tolerance=keys.tolerance)
    if name in ("perceptron", "PA"):
        return Perceptron(
            SentenceScorer(corpus),
            start,
            aggressiveness=keys.aggressiveness if name == "PA" else None,
            tolerance=keys.tolerance,
            seed=config.run.seed,
        )
    likelihood = _likelihood(corpus, c2=keys.c2)

    def objective(weights: Tensor) -> tuple[float, Tensor]:
        value, gradient = likelihood(weights.numpy())
        return value, torch.from_numpy(gradient)

    return LBFGS(objective, start, l1=keys.l1, tolerance=keys.tolerance)


class ScalableCorpus:
    """A corpus for iterative scaling, which groups its sentences by T(x).

    T(x) is the largest total count of features that any labeling of a sentence has: the best score
    of Viterbi with all weights 1. Any bound serves, so where there are more than 64 different
    totals they are rounded up to 64.
    """

    def __init__(self, corpus: LabelledCorpus, *, by_total: bool) -> None:
        """``by_total``: whether algorithm T asks, whose ``support`` is prepared then."""
        index, attributes = corpus.index, corpus.attributes
        self.refusal: str | None = None
        for values in (attributes.unigram_values, attributes.bigram_values):
            if values is not None and bool((values < 0).any()):
                self.refusal = "a feature has a negative value"
        self._corpus = corpus
        self.observed = torch.from_numpy(index.count(attributes, corpus.labels))
        totals = np.zeros(0) if self.refusal else _rounded(_largest_totals(corpus))
        self.largest_total = float(totals.max(initial=1.0))
        self._groups: list[tuple[TemplateObjective, IntArray]] = []
        features = [torch.zeros(0, dtype=torch.int64)]
        sizes = [torch.zeros(0, dtype=torch.float64)]
        for total in np.unique(totals[totals > 0]).tolist() if by_total else ():
            part = corpus.chosen(np.flatnonzero(totals == total))
            possible = _possible(part)
            self._groups.append((_likelihood(part, dtype=torch.float64), possible))
            features.append(torch.from_numpy(possible))
            sizes.append(torch.full((len(possible),), total, dtype=torch.float64))
        self.support = Support(torch.cat(features), torch.cat(sizes))

    @cached_property
    def _whole(self) -> TemplateObjective:
        return _likelihood(self._corpus, dtype=torch.float64)

    def expected(self, weights: Tensor) -> tuple[float, Tensor]:
        """The negative log-likelihood in nats, and the expected counts ``[K]``."""
        log_z, counts = self._whole.expected(weights.numpy())
        return log_z - float(weights @ self.observed), torch.from_numpy(counts)

    def expected_by_total(self, weights: Tensor) -> tuple[float, Tensor]:
        """The negative log-likelihood, and the expected counts ``[M]`` of pairs of ``support``."""
        total, counts = -float(weights @ self.observed), []
        for objective, possible in self._groups:
            log_z, expected = objective.expected(weights.numpy())
            total += log_z
            counts.append(torch.from_numpy(expected[possible]))
        return total, torch.cat(counts)


def _likelihood(
    corpus: LabelledCorpus, *, c2: float = 0.0, dtype: torch.dtype | None = None
) -> TemplateObjective:
    """The likelihood of a corpus, by as many threads as torch has been given."""
    return TemplateObjective(
        corpus.index,
        corpus.attributes,
        corpus.labels,
        c2=c2,
        dtype=dtype,
        threads=torch.get_num_threads(),
    )


class SentenceScorer:
    """Best labelings of single sentences, for learners that need nothing else."""

    def __init__(self, corpus: LabelledCorpus) -> None:
        self._corpus = corpus
        index = corpus.index
        self._labels = index.num_labels
        self._transition = np.full(index.num_labels**2, -1)
        self._transition[index.transition_pairs] = np.arange(index.num_transitions)
        lengths = np.diff(corpus.attributes.offsets)
        self._sentences = np.flatnonzero(lengths)

    def __len__(self) -> int:
        """The number of sentences that have a word."""
        return len(self._sentences)

    def mistake(self, weights: Tensor, sentence: int) -> Mistake | None:
        """What is wrong with the best labeling of a sentence under weights ``[K]``, or None."""
        entries = self._entries(int(self._sentences[sentence]))
        best, _ = entries.best(weights.numpy())
        wrong = int((best != entries.given).sum())
        if not wrong:
            return None
        features, counts = entries.counts(entries.given, self._transition)
        others, less = entries.counts(best, self._transition)
        distinct, place = np.unique(np.concatenate([features, others]), return_inverse=True)
        difference = np.bincount(place.reshape(-1), np.concatenate([counts, -less]), len(distinct))
        there = difference != 0
        if not there.any():
            return None
        return Mistake(
            torch.from_numpy(distinct[there]), torch.from_numpy(difference[there]), wrong
        )

    def total(self, sentence: int) -> float:
        """The largest total feature count of any labeling of a sentence."""
        entries = self._entries(sentence)
        return entries.best(np.ones(self._corpus.index.num_features))[1]

    def _entries(self, sentence: int) -> _Entries:
        corpus, index = self._corpus, self._corpus.index
        found, size = corpus.attributes, self._labels
        words = slice(int(found.offsets[sentence]), int(found.offsets[sentence + 1]))
        states, _, bigram = index.parts
        return _Entries(
            index,
            corpus.labels[words],
            _joined(
                (index.state_offsets, index.state_labels, size, states.start),
                found.unigram[words],
                None if found.unigram_values is None else found.unigram_values[words],
            ),
            _joined(
                (index.bigram_offsets, index.bigram_pairs, size * size, bigram.start),
                found.bigram[words],
                None if found.bigram_values is None else found.bigram_values[words],
            ),
        )


@dataclass(frozen=True)
class _Entries:
    """The features that can be active in one sentence of L words: cells, features and values.

    ``given [L]`` are its labels. The cells of ``states`` are word * Y + label, those of ``pairs``
    word * Y² + label before * Y + label.
    """

    index: FeatureIndex
    given: IntArray
    states: tuple[IntArray, IntArray, Floats]
    pairs: tuple[IntArray, IntArray, Floats]

    def best(self, weights: Floats) -> tuple[IntArray, float]:
        """The best labeling ``[L]`` under weights ``[K]``, and its score."""
        length, size = len(self.given), self.index.num_labels
        cells, features, values = self.states
        emissions = np.bincount(cells, weights[features] * values, length * size)
        emissions = emissions.reshape(length, size)
        transitions = self.index.transition_scores(weights)
        cells, features, values = self.pairs
        by_word = None
        if len(cells):
            by_word = np.bincount(cells, weights[features] * values, length * size * size)
            by_word = by_word.reshape(length, size, size)
        back = np.zeros((length, size), np.int64)
        score = emissions[0]
        columns = np.arange(size)
        for t in range(1, length):
            step = transitions if by_word is None else transitions + by_word[t]
            reached = score[:, None] + step
            back[t] = reached.argmax(0)
            score = reached[back[t], columns] + emissions[t]
        labels = np.empty(length, np.int64)
        labels[-1] = score.argmax()
        for t in range(length - 1, 0, -1):
            labels[t - 1] = back[t, labels[t]]
        return labels, float(score.max())

    def counts(self, labels: IntArray, transition: IntArray) -> tuple[IntArray, Floats]:
        """The features of a labeling, with their values; ``transition`` as in SentenceScorer."""
        size = self.index.num_labels
        cells, features, values = self.states
        active = labels[cells // size] == cells % size
        found, counts = [features[active]], [values[active]]
        pairs = labels[:-1] * size + labels[1:]
        numbers = transition[pairs]
        found.append(numbers[numbers >= 0] + self.index.parts[1].start)
        counts.append(np.ones(len(found[-1])))
        cells, features, values = self.pairs
        active = np.append(-1, pairs)[cells // size**2] == cells % size**2
        return np.concatenate([*found, features[active]]), np.concatenate([*counts, values[active]])


def _joined(
    features: tuple[IntArray, IntArray, int, int], ids: Ids, values: Values | None
) -> tuple[IntArray, IntArray, Floats]:
    """Cells, features and values ``[n]`` for the attributes ``ids [L,R]``.

    ``features``: offsets and outcomes of attributes, the number of outcomes, and the first feature.
    """
    offsets, outcomes, size, first = features
    there = ids >= 0
    place, member = expand(offsets, ids[there])
    cells = np.nonzero(there)[0][place] * size + outcomes[member]
    factors = np.ones(len(place)) if values is None else values[there][place].astype(np.float64)
    return cells, member + first, factors


def _largest_totals(corpus: LabelledCorpus) -> Floats:
    """T(x) of each sentence, 0 for one without words."""
    scorer = SentenceScorer(corpus)
    lengths = np.diff(corpus.attributes.offsets)
    return np.array([scorer.total(s) if n else 0.0 for s, n in enumerate(lengths.tolist())])


def _rounded(totals: Floats) -> Floats:
    """The totals, those of all but 64 values rounded up to one of them."""
    distinct = np.unique(totals)
    if len(distinct) <= _MOST_TOTALS:
        return totals
    places = np.linspace(0, len(distinct) - 1, _MOST_TOTALS).round().astype(np.int64)
    levels = distinct[places]
    return levels[np.searchsorted(levels, totals)]


def _possible(corpus: LabelledCorpus) -> IntArray:
    """The features that can be active in a corpus, in order."""
    index, found = corpus.index, corpus.attributes
    states, transitions, bigram = index.parts
    longer = bool((np.diff(found.offsets) > 1).any())
    parts: Sequence[IntArray] = (
        _members(index.state_offsets, found.unigram) + states.start,
        np.arange(transitions.start, transitions.stop if longer else transitions.start),
        _members(index.bigram_offsets, found.bigram) + bigram.start,
    )
    return np.concatenate(parts)


def _members(offsets: IntArray, ids: Ids) -> IntArray:
    return expand(offsets, np.unique(ids[ids >= 0]).astype(np.int64))[1]
