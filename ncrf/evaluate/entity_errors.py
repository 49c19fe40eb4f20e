"""Boundary against type errors: how the entities of gold meet those that were predicted.

The entities of one side of a sentence never overlap. Gold and predicted entities are put in pairs,
each in at most one:

1. Candidates are all pairs of a gold and a predicted entity that share at least one word.
2. Of the candidates whose two entities are both free, the best becomes a pair, again and again
   until none is left. Better is, in this order: the same type; more words shared; the gold entity
   that begins first; the predicted one that begins first. No two candidates are equal in all of
   these, so that the pairs do not depend on chance. Two entities of exactly the same words share
   words with no others, and are always a pair.

A pair is `right` (same words, same type), `type` (same words, another type), `boundary` (other
words, same type) or `both` (other words, another type). A gold entity in no pair is `missed`, a
predicted one in no pair `spurious`. Each entity is thus counted once: right pairs are the true
positives; type, boundary, both and spurious are the false positives; type, boundary, both and
missed the false negatives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ncrf.data.labels import Span

RIGHT, TYPE, BOUNDARY, BOTH = "right", "type", "boundary", "both"
MISSED, SPURIOUS = "missed", "spurious"
KINDS = (RIGHT, TYPE, BOUNDARY, BOTH, MISSED, SPURIOUS)


class Meeting(NamedTuple):
    """A gold and a predicted entity that were put together; one of them is None if alone."""

    gold: Span | None
    predicted: Span | None

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        if self.predicted is None:
            return MISSED
        if self.gold is None:
            return SPURIOUS
        same_words = self.gold[1:] == self.predicted[1:]
        if self.gold.label == self.predicted.label:
            return RIGHT if same_words else BOUNDARY
        return TYPE if same_words else BOTH

    @property
    def start(self) -> int:
        """The first word of the two."""
        return min(span.start for span in self if span is not None)


def meetings(gold: Sequence[Span], predicted: Sequence[Span]) -> list[Meeting]:
    """The pairs of a sentence and what is left alone, by their first word."""
    found: list[Meeting] = []
    free_gold, free_predicted = set(gold), set(predicted)
    for one, other in sorted(_overlapping(gold, predicted), key=_rank):
        if one in free_gold and other in free_predicted:
            free_gold.remove(one)
            free_predicted.remove(other)
            found.append(Meeting(one, other))
    found += [Meeting(span, None) for span in free_gold]
    found += [Meeting(None, span) for span in free_predicted]
    # Where one of either side begins at the same word and both are alone, gold stands first.
    return sorted(found, key=lambda x: (x.start, x.gold is None))


def _overlapping(gold: Sequence[Span], predicted: Sequence[Span]) -> Iterator[tuple[Span, Span]]:
    """All pairs that share a word, of two lists in order."""
    i = j = 0
    while i < len(gold) and j < len(predicted):
        if _shared(gold[i], predicted[j]) > 0:
            yield gold[i], predicted[j]
        if gold[i].end <= predicted[j].end:
            i += 1
        else:
            j += 1


def _shared(one: Span, other: Span) -> int:
    return min(one.end, other.end) - max(one.start, other.start)


def _rank(pair: tuple[Span, Span]) -> tuple[bool, int, int, int]:
    """The better a pair, the smaller."""
    one, other = pair
    return one.label != other.label, -_shared(one, other), one.start, other.start


@dataclass
class EntityErrors:
    """How many entities met how: ``counts`` by kind and type, ``overlapping`` by kind.

    The type is the gold entity's, of spurious ones the predicted type. ``overlapping`` counts the
    missed and the spurious entities that share words with an entity of the other side, which is
    paired with another one.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    overlapping: Counter[str] = field(default_factory=Counter)

    def add(self, gold: Sequence[Span], predicted: Sequence[Span]) -> list[Meeting]:
        """Count the entities of a sentence; returns how they met."""
        found = meetings(gold, predicted)
        touched_gold = {one for one, _ in _overlapping(gold, predicted)}
        touched_predicted = {other for _, other in _overlapping(gold, predicted)}
        for meeting in found:
            span = meeting.gold or meeting.predicted
            assert span is not None
            self.counts[meeting.kind, span.label] += 1
            if meeting.gold is None or meeting.predicted is None:
                self.overlapping[meeting.kind] += span in touched_gold | touched_predicted
        return found

    def of_kind(self, kind: str) -> int:
        """How many met in this way, over all types."""
        return sum(count for (own, _), count in self.counts.items() if own == kind)

    @property
    def types(self) -> list[str]:
        """The types that were counted, by name."""
        return sorted({name for _, name in self.counts})
