"""Error analysis: what a labeling of a corpus gets wrong, counted in several ways.

`analyze` walks gold and predicted sentences side by side, once. Scores are those of
`ncrf.evaluate.spans`, hence conlleval's; the other counts say what they count in the modules that
they come from: `confusion`, `entity_errors`, `vocabulary_classes`, `calibration`,
`frequent_errors`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from ncrf.data.labels import PLAIN, Span, mark, spans
from ncrf.data.schemes import detect_scheme
from ncrf.data.sentence import Sentence
from ncrf.errors import InputError
from ncrf.evaluate.calibration import Reliability, reliability
from ncrf.evaluate.confusion import Confusion
from ncrf.evaluate.entity_errors import RIGHT, EntityErrors
from ncrf.evaluate.frequent_errors import ErrorCounter, FrequentError
from ncrf.evaluate.pairing import labels_of
from ncrf.evaluate.spans import Score, TypeScore, score_accuracy, score_spans
from ncrf.evaluate.vocabulary_classes import CLASSES, VocabularyClasses

LENGTHS = ("1", "2", "3", "4", "≥5")  # of entities, in words
TOP = 20


class PredictedEntity(Protocol):
    """An entity with its probability, as `ncrf.decode.prediction.PredictedSpan`."""

    @property
    def label(self) -> str:
        """Its type."""
        ...

    @property
    def start(self) -> int:
        """Its first word, from 0."""
        ...

    @property
    def end(self) -> int:
        """The word after its last one."""
        ...

    @property
    def probability(self) -> float:
        """The total probability of the labelings that have it."""
        ...


class Predicted(Protocol):
    """What was predicted for a sentence, as `ncrf.decode.prediction.Prediction`."""

    @property
    def labels(self) -> Sequence[str]:
        """The labels, as many as gold has."""
        ...

    @property
    def spans(self) -> Sequence[PredictedEntity]:
        """The entities whose probability is known."""
        ...

    @property
    def marginals(self) -> Sequence[float] | None:
        """The probability of each label; None where they are not known."""
        ...


@dataclass(frozen=True)
class Analysis:
    """What a labeling gets wrong.

    ``task`` is "entities", "labels" (one of each word) or "sentences" (one of each sentence).
    ``errors``, ``lengths`` and ``entity_calibration`` are about entities alone, None or empty
    else. The scores in ``lengths`` and ``classes`` count gold entities by their own length and
    class, predicted ones by theirs; a right one has the same on both sides. With labels,
    ``classes`` counts words: precision and recall are both the accuracy. ``classes`` is empty
    where nothing is known of words, calibration None where there are no probabilities.
    ``thresholds`` are the scores of all entities above each probability, where a model told them.
    """

    task: str
    file: str
    score: Score
    confusion: Confusion
    errors: EntityErrors | None = None
    lengths: dict[str, TypeScore] = field(default_factory=dict)
    classes: dict[str, TypeScore] = field(default_factory=dict)
    class_source: str = ""
    entity_calibration: Reliability | None = None
    label_calibration: Reliability | None = None
    thresholds: dict[str, TypeScore] = field(default_factory=dict)
    frequent: list[FrequentError] = field(default_factory=list)
    distinct_errors: int = 0
    unknown_labels: dict[str, int] = field(default_factory=dict)


def analyze(
    gold: Iterable[Sentence],
    predicted: Iterable[Predicted],
    *,
    scheme: str | None = None,
    delimiter: str = "-",
    policy: str = "conlleval",
    classification: bool = False,
    words: VocabularyClasses | None = None,
    known_labels: Collection[str] | None = None,
    top: int = TOP,
) -> Analysis:
    """The errors of ``predicted`` against the labels of ``gold``.

    Args:
        gold: labelled sentences; document boundaries are to be left out.
        predicted: what was predicted for them, in the same order and the same scheme.
        scheme: of the labels, ``plain`` where every label counts for itself; None detects it.
        delimiter: what stands between prefix and type.
        policy: how ill-formed labels are read, as in `score_spans`.
        classification: whether a sentence has one label, not one a word.
        words: which words are known from training; without it there are no classes.
        known_labels: those of the model; what gold has beside them is counted.
        top: how many of the most frequent errors to keep.

    Raises InputError where gold has no labels, or not one of ``known_labels``, and where the two
    sides differ in number or length.
    """
    sentences, found = list(gold), list(predicted)
    wanted = [labels_of(sentence) for sentence in sentences]
    labels = [prediction.labels for prediction in found]
    unknown = _unknown_labels(sentences, known_labels)
    scheme = PLAIN if classification else scheme or detect_scheme(wanted, delimiter)
    if scheme == PLAIN:
        score = score_accuracy(wanted, labels)
        counts: _Counts = _LabelCounts(words, classification=classification)
    else:
        score = score_spans(wanted, labels, policy=policy, scheme=scheme, delimiter=delimiter)
        counts = _EntityCounts(words, scheme, delimiter, policy)
    for pair in zip(sentences, found, strict=True):
        counts.add(*pair)
    return counts.analysis(score, sentences[0].file if sentences else "", unknown, top)


def _unknown_labels(sentences: Sequence[Sentence], known: Collection[str] | None) -> dict[str, int]:
    """The labels of gold that are not known, most frequent first."""
    if known is None:
        return {}
    counts = Counter(label for sentence in sentences for label in labels_of(sentence))
    unknown = {label: n for label, n in counts.most_common() if label not in known}
    if unknown and len(unknown) == len(counts):
        shown = ", ".join(list(unknown)[:5])
        raise InputError(
            f"not one of its labels ({shown}{', ...' * (len(unknown) > 5)}) is one of the model's",
            file=sentences[0].file or None,
            remedy=f"labels such as {', '.join(list(known)[:5])}; columns= says where they stand",
        )
    return unknown


class _Counts(ABC):
    """What both kinds of analysis count."""

    task = ""

    def __init__(self, words: VocabularyClasses | None) -> None:
        self.words = words
        self.confusion = Confusion()
        self.frequent = ErrorCounter()
        self.classes = _ScoreTable(CLASSES)
        self.labels: list[tuple[float, bool]] = []

    @abstractmethod
    def add(self, sentence: Sentence, prediction: Predicted) -> None:
        """Count a sentence."""

    def analysis(self, score: Score, file: str, unknown: dict[str, int], top: int) -> Analysis:
        """What was counted."""
        return Analysis(
            task=self.task,
            file=file,
            score=score,
            confusion=self.confusion,
            classes=self.classes.scores(),
            class_source=self.words.source if self.words else "",
            label_calibration=reliability(self.labels) if self.labels else None,
            frequent=self.frequent.most_frequent(top),
            distinct_errors=self.frequent.distinct,
            unknown_labels=unknown,
        )


class _LabelCounts(_Counts):
    """Counts labels that each stand for themselves."""

    def __init__(self, words: VocabularyClasses | None, *, classification: bool) -> None:
        super().__init__(None if classification else words)
        self.task = "sentences" if classification else "labels"

    def add(self, sentence: Sentence, prediction: Predicted) -> None:
        gold = labels_of(sentence)
        self.confusion.add_labels(gold, prediction.labels)
        right = [ours == theirs for ours, theirs in zip(gold, prediction.labels, strict=True)]
        if prediction.marginals is not None:
            self.labels += zip(prediction.marginals, right, strict=True)
        if self.words is not None:
            for word, good in zip(sentence.words, right, strict=True):
                self.classes.add(self.words.of([word]), 1, 1, good)
        for position, good in enumerate(right):
            pair = gold[position], prediction.labels[position]
            if not good and self.task == "sentences":
                self.frequent.add_class(sentence, *pair)
            elif not good:
                self.frequent.add_label(sentence, position, *pair)


class _EntityCounts(_Counts):
    """Counts entities."""

    task = "entities"

    def __init__(
        self, words: VocabularyClasses | None, scheme: str, delimiter: str, policy: str
    ) -> None:
        super().__init__(words)
        self._scheme, self._delimiter, self._policy = scheme, delimiter, policy
        self.errors = EntityErrors()
        self.lengths = _ScoreTable(LENGTHS)
        self.entities: list[tuple[float, bool]] = []

    def add(self, sentence: Sentence, prediction: Predicted) -> None:
        gold = labels_of(sentence)
        wanted, found = self._spans(gold), self._spans(prediction.labels)
        self.confusion.add_spans(wanted, found)
        self._add_labels(gold, prediction)
        right = set(wanted) & set(found)
        known = {Span(x.label, x.start, x.end): x.probability for x in prediction.spans}
        self.entities += [(known[span], span in right) for span in found if span in known]
        for span in {*wanted, *found}:
            counts = (span in wanted, span in found, span in right)
            self.lengths.add(LENGTHS[min(span.end - span.start, len(LENGTHS)) - 1], *counts)
            if self.words is not None:
                self.classes.add(self.words.of(sentence.words[span.start : span.end]), *counts)
        for meeting in self.errors.add(wanted, found):
            if meeting.kind != RIGHT:
                self.frequent.add_meeting(sentence, meeting)

    def analysis(self, score: Score, file: str, unknown: dict[str, int], top: int) -> Analysis:
        return replace(
            super().analysis(score, file, unknown, top),
            errors=self.errors,
            lengths=self.lengths.scores(),
            entity_calibration=reliability(self.entities) if self.entities else None,
        )

    def _spans(self, labels: Sequence[str]) -> list[Span]:
        return spans(labels, self._delimiter, scheme=self._scheme, policy=self._policy)

    def _add_labels(self, gold: Sequence[str], prediction: Predicted) -> None:
        """Count the labels of words, which say the same if they differ in case of prefix alone."""
        if prediction.marginals is None:
            return
        sides = zip(prediction.marginals, gold, prediction.labels, strict=True)
        self.labels += [
            (p, mark(ours, self._delimiter)[:2] == mark(theirs, self._delimiter)[:2])
            for p, ours, theirs in sides
        ]


class _ScoreTable:
    """Scores of groups that have a fixed order; groups without anything are left out."""

    def __init__(self, groups: Sequence[str]) -> None:
        self._counts = {group: [0, 0, 0] for group in groups}

    def add(self, group: str, support: int, predicted: int, correct: int) -> None:
        for place, count in enumerate((support, predicted, correct)):
            self._counts[group][place] += count

    def scores(self) -> dict[str, TypeScore]:
        counts = self._counts.items()
        return {group: TypeScore(*own) for group, own in counts if own[0] or own[1]}
