"""The classical CRF as a scikit-learn estimator, with the names of sklearn-crfsuite.

>>> from ncrf.sklearn import CRF
>>> crf = CRF(c2=0.1).fit([[{"word": "in"}, {"word": "Oslo", "title": True}]], [["O", "LOC"]])
>>> crf.predict([[{"word": "Bergen", "title": True}]])
[['LOC']]
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ncrf.data.attributes import TokenAttributes
from ncrf.data.dataset import IntArray
from ncrf.data.feature_index import FeatureIndex
from ncrf.data.feature_items import Items, ItemVocabulary
from ncrf.errors import InputError

try:
    from sklearn.base import BaseEstimator
except ImportError as error:
    raise ImportError(
        f"ncrf.sklearn needs scikit-learn (pip install 'ncrf[sklearn]'): {error}"
    ) from None

if TYPE_CHECKING:
    from ncrf.train.learner import Iteration, Learner

Sentences = Iterable[Sequence[Items]]
Labelings = Iterable[Sequence[Any]]

_LOGGER = logging.getLogger(__name__)
_NO_LIMIT = 1 << 31


class CRF(BaseEstimator):  # type: ignore[misc]
    """A linear-chain CRF over words with features, for what took sklearn_crfsuite.CRF.

    X is a list of sentences, a sentence a list of words, a word a dictionary of features or a list
    of their names: ``{"word.lower()": "oslo", "bias": 1.0, "title": True}`` has the attributes
    ``word.lower():oslo`` with the value 1, ``bias`` with 1 and ``title`` with 1. y is a list of
    lists of labels.

    Attributes after ``fit``:
        classes_: the labels, in order of first appearance.
        attributes_: the attributes that have a weight.
        state_features_: ``{(attribute, label): weight}``.
        transition_features_: ``{(label before, label): weight}``.
        training_log_: one ``ncrf.train.learner.Iteration`` for each iteration.
    """

    def __init__(
        self,
        algorithm: str = "lbfgs",
        min_freq: float = 0,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        num_memories: int | None = None,
        epsilon: float | None = None,
        period: int | None = None,
        delta: float | None = None,
        linesearch: str | None = None,
        max_linesearch: int | None = None,
        calibration_eta: float | None = None,
        calibration_rate: float | None = None,
        calibration_samples: int | None = None,
        calibration_candidates: int | None = None,
        calibration_max_trials: int | None = None,
        pa_type: int | None = None,
        c: float | None = None,
        error_sensitive: bool | None = None,
        averaging: bool | None = None,
        variance: float | None = None,
        gamma: float | None = None,
        verbose: bool = False,
        model_filename: str | None = None,
        keep_tempfiles: bool | None = None,
        trainer_cls: Any = None,
        *,
        n_jobs: int | None = None,
    ) -> None:
        """Parameters as in sklearn-crfsuite, with CRFsuite's defaults where they are None.

        Args:
            algorithm: ``lbfgs``: L-BFGS, or OWL-QN where c1 is above 0. There is no other.
            min_freq: a feature (attribute and label, or two labels) that occurs less often, its
                values summed, is left out.
            all_possible_states: weights for attributes with labels that they never occur with.
            all_possible_transitions: weights for all pairs of labels.
            c1: penalty ``c1 * sum(|w|)``; 0.
            c2: penalty ``c2 * sum(w**2)``; 1.
            max_iterations: the most iterations; None for no limit.
            num_memories: past steps from which the curvature is estimated; 6.
            epsilon: training ends when the gradient's norm is below this fraction of that of the
                weights; 1e-5. It does so in any case below ``delta``.
            period: iterations over which ``delta`` is looked at; 10.
            delta: training ends when the objective fell by less than this fraction; 1e-5.
            linesearch: like all from here to ``gamma`` of no effect: there is one line search, and
                the others are for algorithms that are not there.
            max_linesearch: no effect.
            calibration_eta: no effect.
            calibration_rate: no effect.
            calibration_samples: no effect.
            calibration_candidates: no effect.
            calibration_max_trials: no effect.
            pa_type: no effect.
            c: no effect.
            error_sensitive: no effect.
            averaging: no effect.
            variance: no effect.
            gamma: no effect.
            verbose: log a line for each iteration (``logging``, level INFO).
            model_filename: must be None: the estimator itself holds the model.
            keep_tempfiles: must be None.
            trainer_cls: must be None.
            n_jobs: threads that train; None is 1, -1 one for each core.
        """
        self.algorithm = algorithm
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.c1, self.c2 = c1, c2
        self.max_iterations = max_iterations
        self.num_memories = num_memories
        self.epsilon, self.period, self.delta = epsilon, period, delta
        self.linesearch, self.max_linesearch = linesearch, max_linesearch
        self.calibration_eta, self.calibration_rate = calibration_eta, calibration_rate
        self.calibration_samples = calibration_samples
        self.calibration_candidates = calibration_candidates
        self.calibration_max_trials = calibration_max_trials
        self.pa_type, self.c = pa_type, c
        self.error_sensitive, self.averaging = error_sensitive, averaging
        self.variance, self.gamma = variance, gamma
        self.verbose = verbose
        self.model_filename, self.keep_tempfiles = model_filename, keep_tempfiles
        self.trainer_cls = trainer_cls
        self.n_jobs = n_jobs

    def fit(self, X: Sentences, y: Labelings, X_dev: Any = None, y_dev: Any = None) -> CRF:
        """Find the features of a corpus and their weights; returns the estimator itself.

        With ``verbose`` the accuracy on ``X_dev`` and ``y_dev`` is logged with each iteration; they
        have no other effect.

        Raises InputError, naming the sentence, for X and y of different lengths or features that
        are none; for a corpus without words; and for parameters that cannot be had.
        """
        self._check()
        sentences, labelings = list(X), [list(row) for row in y]
        _check_lengths(sentences, labelings)
        table: dict[Any, int] = {}
        labels = [table.setdefault(label, len(table)) for row in labelings for label in row]
        if not labels:
            raise InputError("the corpus holds no words")
        self.classes_ = list(table)
        self._learn(sentences, np.array(labels, np.int64), (X_dev, y_dev))
        return self

    def predict(self, X: Sentences) -> list[list[Any]]:
        """The best labeling of each sentence."""
        from ncrf.decode.corpus_labels import best_labels

        attributes = self._encode(X)
        labels = best_labels(self._index, self._weights, attributes).tolist()
        found = [self.classes_[label] for label in labels]
        return [found[start:end] for start, end in pairwise(attributes.offsets.tolist())]

    def predict_single(self, xseq: Sequence[Items]) -> list[Any]:
        """The best labeling of one sentence."""
        return self.predict([xseq])[0]

    def predict_marginals(self, X: Sentences) -> list[list[dict[Any, float]]]:
        """The probability of each label, by label, for each word of each sentence."""
        from ncrf.decode.corpus_labels import label_marginals

        attributes = self._encode(X)
        rows = label_marginals(self._index, self._weights, attributes).tolist()
        found = [dict(zip(self.classes_, row, strict=True)) for row in rows]
        return [found[start:end] for start, end in pairwise(attributes.offsets.tolist())]

    def predict_marginals_single(self, xseq: Sequence[Items]) -> list[dict[Any, float]]:
        """The probability of each label for each word of one sentence."""
        return self.predict_marginals([xseq])[0]

    def score(self, X: Sentences, y: Labelings) -> float:
        """The share of words whose label is right."""
        sentences, labelings = list(X), [list(row) for row in y]
        _check_lengths(sentences, labelings)
        found = self.predict(sentences)
        right = [
            bool(ours == gold)
            for labels, golds in zip(found, labelings, strict=True)
            for ours, gold in zip(labels, golds, strict=True)
        ]
        if not right:
            raise InputError("there are no words to score")
        return float(np.mean(right))

    @property
    def attributes_(self) -> list[str]:
        """The attributes that have a weight."""
        return self._fitted().unigram_strings()

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """The weights of attributes with labels."""
        attributes, classes = self.attributes_, self.classes_
        states = self._index.parts[0]
        owners, _, labels = self._index.parts_of(np.arange(states.stop))
        return {
            (attributes[a], classes[label]): weight
            for a, label, weight in zip(
                owners.tolist(), labels.tolist(), self._weights[states].tolist(), strict=True
            )
        }

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """The weights of pairs of a label and the next."""
        self._fitted()
        places = np.arange(self._index.parts[1].start, self._index.parts[1].stop)
        _, before, labels = self._index.parts_of(places)
        classes, weights = self.classes_, self._weights[places].tolist()
        pairs = zip(before.tolist(), labels.tolist(), weights, strict=True)
        return {(classes[a], classes[b]): weight for a, b, weight in pairs}

    def _learn(self, sentences: list[Sequence[Items]], labels: IntArray, dev: Any) -> None:
        """Find features and weights; ``labels [T]`` are places in ``classes_``."""
        from ncrf.train.template_objective import TemplateObjective, fit_weights

        vocabulary, attributes = ItemVocabulary.build(sentences)
        index = FeatureIndex.build(
            *(attributes, labels, len(self.classes_), (vocabulary.num_unigram, 0)),
            all_possible_states=bool(self.all_possible_states),
            all_possible_transitions=bool(self.all_possible_transitions),
        )
        if self.min_freq > 0:
            keep = index.count(attributes, labels) >= self.min_freq
            index, unigram, bigram = index.kept(keep)
            vocabulary = vocabulary.kept(unigram, bigram)
            numbers = np.append(np.where(unigram, np.cumsum(unigram) - 1, -1), -1)
            attributes = replace(attributes, unigram=numbers.astype(np.int32)[attributes.unigram])
        self._vocabulary, self._index = vocabulary, index
        objective = TemplateObjective(
            *(index, attributes, labels),
            c2=1.0 if self.c2 is None else self.c2,
            threads=_threads(self.n_jobs),
        )
        self.training_log_: list[Iteration] = []
        self._weights = fit_weights(
            objective,
            c1=self.c1 or 0.0,
            tolerance=1e-5 if self.delta is None else self.delta,
            period=10 if self.period is None else self.period,
            max_iterations=_NO_LIMIT if self.max_iterations is None else self.max_iterations,
            memory=6 if self.num_memories is None else self.num_memories,
            callback=lambda record, learner: self._note(record, learner, dev),
        )

    def _note(self, record: Iteration, learner: Learner, dev: Any) -> bool:
        """Keep, and perhaps log, the record of an iteration; True where the gradient is small."""
        self.training_log_.append(record)
        if self.verbose:
            text = ""
            if dev[0] is not None:
                self._weights = learner.weights.numpy()
                text = f", dev accuracy {self.score(*dev):.4f}"
            _LOGGER.info(
                "iteration %d: objective %.6g, gradient %.4g, %.2f s%s",
                *(record.number, record.objective, record.gradient_norm, record.seconds, text),
            )
        small = 1e-5 if self.epsilon is None else self.epsilon
        return record.gradient_norm is not None and record.gradient_norm <= small * max(
            1.0, float(learner.weights.norm())
        )

    def _encode(self, X: Sentences) -> TokenAttributes:
        return self._fitted().encode(X)

    def _fitted(self) -> ItemVocabulary:
        if not hasattr(self, "_vocabulary"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this CRF is not fitted (call fit(X, y) first)")
        return self._vocabulary

    def _check(self) -> None:
        """InputError for a parameter that cannot be had."""
        if self.algorithm != "lbfgs":
            raise InputError(f"algorithm is {self.algorithm!r}", remedy="there is only lbfgs")
        for name in ("model_filename", "keep_tempfiles", "trainer_cls"):
            if getattr(self, name) is not None:
                raise InputError(
                    f"{name} is {getattr(self, name)!r}",
                    remedy="None: the estimator itself holds the model; joblib keeps it",
                )
        for name, least in (("c1", 0), ("c2", 0), ("num_memories", 1)):
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise InputError(f"{name} is {value}", remedy=f"{least} or more")


def _check_lengths(sentences: list[Sequence[Items]], labelings: list[list[Any]]) -> None:
    if len(sentences) != len(labelings):
        raise InputError(f"X has {len(sentences)} sentences, y has {len(labelings)}")
    for place, (words, labels) in enumerate(zip(sentences, labelings, strict=True)):
        if len(words) != len(labels):
            raise InputError(f"sentence {place} has {len(words)} words, but {len(labels)} labels")


def _threads(n_jobs: int | None) -> int:
    """Threads for scikit-learn's ``n_jobs``."""
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise InputError("n_jobs is 0", remedy="None for 1, or -1 for all cores")
    return n_jobs if n_jobs > 0 else max(1, len(os.sched_getaffinity(0)) + 1 + n_jobs)
