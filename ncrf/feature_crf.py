"""FeatureCRF: a CRF of textbook feature functions over sequences of integers.

>>> model = FeatureCRF(unigram=[[0]], bigram=[[]]).fit([[0, 1, 1]], [[5, 7, 7]])
>>> model.num_features, model.predict([[1, 0]])
(8, [[7, 5]])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ncrf.data.attributes import AttributeVocabulary, TokenAttributes
from ncrf.data.dataset import IntArray, InternedColumn, StringTable, offsets_of
from ncrf.data.feature_index import FeatureIndex
from ncrf.data.templates import head_and_tail_templates, textbook_templates
from ncrf.decode.corpus_labels import best_labels
from ncrf.errors import InputError
from ncrf.train.template_objective import TemplateObjective, fit_weights

Sequences = Iterable[Sequence[Any]]


class FeatureCRF:
    """P(y | x) proportional to exp(sum_k w_k F_k(x, y)), F_k counting one feature function.

    A sentence x_1 .. x_n has an artificial head x_0 and tail x_(n+1), labelled head and tail. A
    unigram rule is a list of offsets; with each combination of symbols that it finds around a
    place i in training, and the label there, it makes a function s(y_i, x, i). A bigram rule makes
    functions t(y_(i-1), y_i, x, i), from i = 1 (after the head) to n + 1 (the tail). Rules do not
    apply where they look beyond head or tail; ``[]`` looks at nothing but the labels.

    Symbols are integers or strings, labels anything that can be a key of a dictionary.
    """

    def __init__(
        self,
        unigram: Iterable[Sequence[int]] = ((0,),),
        bigram: Iterable[Sequence[int]] = ((),),
        *,
        c2: float = 0.0,
        max_iterations: int = 200,
        tolerance: float = 1e-6,
    ) -> None:
        """``c2``: the penalty ``c2 * sum(w**2)``; 0 is maximum likelihood.

        Fitting ends after ``max_iterations``, or when it has converged: ``tolerance`` is that of
        ``ncrf.train.learner.Progress``.
        """
        self.unigram = [list(rule) for rule in unigram]
        self.bigram = [list(rule) for rule in bigram]
        self.c2 = c2
        self.max_iterations, self.tolerance = max_iterations, tolerance
        self._labels: list[Any] = []
        self._vocabulary: AttributeVocabulary | None = None

    def fit(self, x: Sequences, y: Sequences) -> FeatureCRF:
        """Find the feature functions of a corpus and their weights; returns the model itself.

        Raises InputError, naming the sentence, if x and y are not of the same lengths, or for a
        corpus without words.
        """
        sentences, labelings = [list(row) for row in x], [list(row) for row in y]
        table: dict[Any, int] = {}
        labels = self._label_ids(sentences, labelings, lambda s: table.setdefault(s, len(table)))
        if not len(labels):
            raise InputError("the corpus holds no words")
        self._labels = list(table)
        column, offsets = _column(sentences)
        templates = textbook_templates(self.unigram, self.bigram)
        self._vocabulary, attributes = AttributeVocabulary.build(templates, column, offsets)
        sizes = self._vocabulary.num_unigram, self._vocabulary.num_bigram
        self._index = FeatureIndex.build(
            attributes, labels, len(table), sizes, transitions=templates.transitions
        )
        edges = head_and_tail_templates(self.unigram)
        self._fixed = AttributeVocabulary.build(edges, column, offsets)[0].num_unigram
        objective = self._objective(attributes, labels)
        self.weights = fit_weights(
            objective, max_iterations=self.max_iterations, tolerance=self.tolerance
        )
        return self

    @property
    def num_features(self) -> int:
        """Feature functions, those at head and tail included.

        A unigram rule's functions at the head and the tail themselves are counted too, though they
        say the same of every labeling and have no weight.
        """
        self._fitted()
        return self._index.num_features + self._fixed

    @property
    def labels(self) -> list[Any]:
        """The labels, in order of first appearance."""
        return list(self._labels)

    def predict(self, x: Sequences) -> list[list[Any]]:
        """The best labeling of each sentence."""
        attributes = self._encode([list(row) for row in x])
        labels = best_labels(self._index, self.weights, attributes).tolist()
        found = [self._labels[label] for label in labels]
        return [found[start:end] for start, end in pairwise(attributes.offsets.tolist())]

    def log_likelihood(self, x: Sequences, y: Sequences) -> float:
        """Log-probability of the labelings ``y`` by the model, per word.

        Raises InputError, naming the sentence, for a label that fitting did not see, and as
        ``fit`` does.
        """
        sentences, labelings = [list(row) for row in x], [list(row) for row in y]
        attributes = self._encode(sentences)
        table = {label: number for number, label in enumerate(self._labels)}
        labels = self._label_ids(sentences, labelings, lambda label: table.get(label, -1))
        return self._objective(attributes, labels).log_likelihood(self.weights)

    def _objective(self, attributes: TokenAttributes, labels: IntArray) -> TemplateObjective:
        return TemplateObjective(self._index, attributes, labels, c2=self.c2)

    def _encode(self, sentences: list[list[Any]]) -> TokenAttributes:
        return self._fitted().encode(*_column(sentences))

    def _fitted(self) -> AttributeVocabulary:
        if self._vocabulary is None:
            raise InputError("the model is not fitted", remedy="call fit(x, y) first")
        return self._vocabulary

    @staticmethod
    def _label_ids(
        sentences: list[list[Any]], labelings: list[list[Any]], number: Callable[[Any], int]
    ) -> IntArray:
        """The labels ``[T]`` of all words as numbers."""
        if len(sentences) != len(labelings):
            raise InputError(f"x has {len(sentences)} sentences, y has {len(labelings)}")
        ids: list[int] = []
        for place, (words, labels) in enumerate(zip(sentences, labelings, strict=True)):
            if len(words) != len(labels):
                raise InputError(
                    f"sentence {place} has {len(words)} words, but {len(labels)} labels"
                )
            for label in labels:
                ids.append(number(label))
                if ids[-1] < 0:
                    raise InputError(f"sentence {place} has the new label {label!r}")
        return np.array(ids, np.int64)


def _column(sentences: list[list[Any]]) -> tuple[dict[str, InternedColumn], IntArray]:
    """The symbols of all sentences as one column, and where each sentence begins."""
    table = StringTable()
    ids = np.array([table[str(symbol)] for row in sentences for symbol in row], np.int64)
    lengths = np.array([len(row) for row in sentences], np.int64)
    return {"x": InternedColumn(ids, table.strings())}, offsets_of(lengths)
