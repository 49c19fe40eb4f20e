"""Scores of predicted labels against gold ones: precision, recall and F1 of spans, accuracy.

Spans are read with `ncrf.data.labels`'s relation, for a whole corpus at once over flat arrays
of label ids. Counting is conlleval's: a predicted span is correct if a gold span has its type
and both its borders.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ncrf.data.dataset import StringTable
from ncrf.data.label_tables import Bools, Ints, SpanTables
from ncrf.data.labels import check_policy
from ncrf.data.schemes import detect_scheme
from ncrf.errors import InputError

logger = logging.getLogger(__name__)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


@dataclass(frozen=True, slots=True)
class TypeScore:
    """The score of one span type, or of one plain label: fractions, and counts of items."""

    support: int  # in gold
    predicted: int
    correct: int

    @property
    def precision(self) -> float:
        """Correct ones among the predicted."""
        return _share(self.correct, self.predicted)

    @property
    def recall(self) -> float:
        """Correct ones among gold's."""
        return _share(self.correct, self.support)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return _share(2 * self.correct, self.predicted + self.support)


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a corpus, over all types. Fractions from 0 to 1; 0 where nothing is counted.

    ``kind`` is "spans", or "labels" where every token counts as one item (plain labels; precision,
    recall and F1 then equal the accuracy). In sentence classification ``tokens`` counts what has
    a label: sentences. ``gold``, ``predicted`` and ``correct`` count items, ``per_type`` is sorted
    by name.
    """

    kind: str
    gold: int
    predicted: int
    correct: int
    sentences: int
    tokens: int
    correct_tokens: int
    per_type: dict[str, TypeScore] = field(default_factory=dict)

    @property
    def precision(self) -> float:
        """Correct items among the predicted."""
        return _share(self.correct, self.predicted)

    @property
    def recall(self) -> float:
        """Correct items among gold's."""
        return _share(self.correct, self.gold)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return _share(2 * self.correct, self.predicted + self.gold)

    @property
    def unit(self) -> str:
        """What carries a label: "sentences" where each has one, else "tokens"."""
        return "sentences" if 0 < self.tokens == self.sentences else "tokens"

    @property
    def accuracy(self) -> float:
        """Tokens whose labels are equal."""
        return _share(self.correct_tokens, self.tokens)


class SpanArrays(NamedTuple):
    """The spans of a corpus, in order: ``type``, ``start``, ``end`` ``[S]``, end exclusive.

    Types index `SpanReader.types`, places count tokens over the whole corpus.
    """

    type: Ints
    start: Ints
    end: Ints


class SpanReader:
    """Reads the spans of a whole corpus from label ids, without a loop over tokens."""

    def __init__(
        self,
        labels: Sequence[str],
        *,
        policy: str = "conlleval",
        scheme: str | None = None,
        delimiter: str = "-",
    ) -> None:
        """``labels`` are the strings of the ids 0..Y-1; they may be more than a model knows.

        ``policy="strict"`` keeps spans that are well-formed in ``scheme``, which it needs.
        """
        check_policy(policy, scheme)
        self._tables = SpanTables(labels, delimiter)
        self._rules = self._tables.rules(scheme) if policy == "strict" and scheme else None
        self.types = self._tables.types
        self.size = len(labels)

    def same(self, gold: Ints, predicted: Ints) -> Bools:
        """Where two arrays of ids say the same: ``b-PER`` and ``B-PER`` do."""
        reading = self._tables.reading
        return np.asarray(reading[gold] == reading[predicted])

    def read(self, ids: Ints, offsets: Ints) -> SpanArrays:
        """The spans of sentences laid end to end.

        Args:
            ids: ``[tokens]`` label ids.
            offsets: ``[sentences + 1]`` where each sentence begins, and the number of tokens.
        """
        self._check(ids, offsets)
        tables, width = self._tables, self.size + 1
        ids = ids.astype(np.int64, copy=False)
        previous, following = np.empty_like(ids), np.empty_like(ids)
        previous[1:], following[:-1] = ids[:-1], ids[1:]
        filled = offsets[1:] > offsets[:-1]
        previous[offsets[:-1][filled]] = self.size
        following[offsets[1:][filled] - 1] = self.size
        from_previous = previous * width + ids
        start = np.flatnonzero(tables.begins.ravel()[from_previous])
        last = np.flatnonzero(tables.ends.ravel()[ids * width + following])
        found = SpanArrays(tables.type_of[ids[start]], start, last + 1)
        if self._rules is None:
            return found
        begun, ended, foreign = self._rules
        strangers = np.concatenate(([0], np.cumsum(foreign[ids])))
        good = begun.ravel()[from_previous[start]] & ended[ids[last]]
        good &= strangers[found.start] == strangers[found.end]
        return SpanArrays(*(array[good] for array in found))

    def compare(
        self, gold: Ints, predicted: Ints, offsets: Ints
    ) -> tuple[SpanArrays, SpanArrays, Bools]:
        """The spans of both, and which of the predicted ones are correct; see `read`."""
        if gold.shape != predicted.shape:
            raise ValueError(f"{len(gold)} gold labels and {len(predicted)} predicted ones")
        wanted, found = self.read(gold, offsets), self.read(predicted, offsets)
        end_at, type_at = np.zeros_like(gold), np.full_like(gold, -1)
        end_at[wanted.start], type_at[wanted.start] = wanted.end, wanted.type
        right = (end_at[found.start] == found.end) & (type_at[found.start] == found.type)
        return wanted, found, np.asarray(right)

    def _check(self, ids: Ints, offsets: Ints) -> None:
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(ids):
            raise ValueError(f"offsets do not run from 0 to the number of tokens, {len(ids)}")
        if len(ids) and not 0 <= ids.min() <= ids.max() < self.size:
            raise ValueError(
                f"label ids from {ids.min()} to {ids.max()} for {self.size} labels: labels that "
                "the model does not know need ids of their own, behind its own"
            )


class SpanScorer:
    """Scores label ids over and over, as training does: the tables are built once."""

    def __init__(
        self,
        labels: Sequence[str],
        *,
        policy: str = "conlleval",
        scheme: str | None = None,
        delimiter: str = "-",
    ) -> None:
        """The arguments of `SpanReader`."""
        self._reader = SpanReader(labels, policy=policy, scheme=scheme, delimiter=delimiter)

    def score(self, gold: Ints, predicted: Ints, offsets: Ints) -> Score:
        """The score of ``predicted`` ``[tokens]``; for ``offsets`` see `SpanReader.read`."""
        wanted, found, right = self._reader.compare(gold, predicted, offsets)
        score = Score(
            kind="spans",
            gold=len(wanted.type),
            predicted=len(found.type),
            correct=int(right.sum()),
            sentences=len(offsets) - 1,
            tokens=len(gold),
            correct_tokens=int(self._reader.same(gold, predicted).sum()),
            per_type=_per_type(self._reader.types, wanted.type, found.type, found.type[right]),
        )
        _warn_of_nothing(score)
        return score


def score_spans(
    gold: Iterable[Sequence[str]],
    predicted: Iterable[Sequence[str]],
    *,
    policy: str = "conlleval",
    scheme: str | None = None,
    delimiter: str = "-",
) -> Score:
    """The span score of label strings, one sequence a sentence; micro and per type.

    Labels that training has not seen count like any other. ``scheme`` matters to the strict
    policy alone and is detected from gold where it is not given. Raises `InputError` where
    gold and predicted differ in number or length.
    """
    flat = flatten(gold, predicted)
    if policy == "strict" and scheme is None:
        edges = flat.offsets.tolist()
        names = np.array(flat.labels, dtype=object)[flat.gold].tolist()
        scheme = detect_scheme((names[a:b] for a, b in pairwise(edges)), delimiter)
    scorer = SpanScorer(flat.labels, policy=policy, scheme=scheme, delimiter=delimiter)
    return scorer.score(flat.gold, flat.predicted, flat.offsets)


def score_accuracy(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> Score:
    """The accuracy of plain labels, with every label's precision, recall and F1.

    Raises `InputError` where gold and predicted differ in number or length.
    """
    flat = flatten(gold, predicted)
    return score_label_ids(flat.labels, flat.gold, flat.predicted, sentences=len(flat.offsets) - 1)


def score_label_ids(labels: Sequence[str], gold: Ints, predicted: Ints, *, sentences: int) -> Score:
    """`score_accuracy` for label ids ``[tokens]`` whose strings are ``labels``."""
    right = gold == predicted
    correct = int(right.sum())
    score = Score(
        kind="labels",
        gold=len(gold),
        predicted=len(gold),
        correct=correct,
        sentences=sentences,
        tokens=len(gold),
        correct_tokens=correct,
        per_type=_per_type(labels, gold, predicted, gold[right]),
    )
    _warn_of_nothing(score)
    return score


def _per_type(
    names: Sequence[str], gold: Ints, predicted: Ints, correct: Ints
) -> dict[str, TypeScore]:
    """The counts of each type that occurs, by name; the arrays hold one type id per item."""
    counts = [np.bincount(ids, minlength=len(names)).tolist() for ids in (gold, predicted, correct)]
    rows = sorted(zip(names, *counts, strict=True))
    return {name: TypeScore(g, p, c) for name, g, p, c in rows if g or p}


def _warn_of_nothing(score: Score) -> None:
    if not score.tokens:
        logger.warning("there is nothing to score: no tokens; every score is 0")
    elif not score.gold:
        logger.warning("the gold labels hold no spans; precision, recall and F1 are 0")


class FlatLabels(NamedTuple):
    """Sentences of labels laid end to end: ids of ``labels``, and where sentences begin."""

    labels: list[str]
    gold: Ints
    predicted: Ints
    offsets: Ints


def flatten(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> FlatLabels:
    """Gold and predicted labels as ids; InputError where they differ in number or length."""
    number = StringTable()
    wanted: list[int] = []
    found: list[int] = []
    offsets = [0]
    for row, (ours, theirs) in enumerate(_in_step(gold, predicted), start=1):
        if len(ours) != len(theirs):
            raise InputError(
                f"sentence {row} has {len(ours)} gold labels and {len(theirs)} predicted ones",
                remedy="one predicted label for each gold label",
            )
        wanted.extend(map(number.__getitem__, ours))
        found.extend(map(number.__getitem__, theirs))
        offsets.append(len(wanted))
    arrays = (np.array(values, dtype=np.int64) for values in (wanted, found, offsets))
    return FlatLabels(list(number), *arrays)


def _in_step(
    gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]
) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    left, right = iter(gold), iter(predicted)
    count = 0
    for ours in left:
        theirs = next(right, None)
        if theirs is None:
            raise InputError(
                f"{count} predicted sentences, but gold has more", remedy="as many as in gold"
            )
        count += 1
        yield ours, theirs
    if next(right, None) is not None:
        raise InputError(
            f"{count} gold sentences, but there are more predicted ones",
            remedy="as many as in gold",
        )
