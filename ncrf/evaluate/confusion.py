"""Confusion: how often what gold calls one thing was predicted as another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ncrf.data.labels import Span


class Confused(NamedTuple):
    """What gold says and what was predicted; None where the other side has nothing to match."""

    gold: str | None
    predicted: str | None


@dataclass
class Confusion:
    """Counts of gold × predicted names: of types, or of plain labels.

    For entities a count joins the types of a gold and a predicted entity of exactly the same
    words; ``None`` stands where the other side has no entity of just these words. A row sums to
    what gold has, a column to what was predicted, and the diagonal is right.
    """

    counts: Counter[Confused] = field(default_factory=Counter)

    def add_labels(self, gold: Iterable[str], predicted: Iterable[str]) -> None:
        """Count the labels of a sentence."""
        self.counts.update(map(Confused, gold, predicted))

    def add_spans(self, gold: Sequence[Span], predicted: Sequence[Span]) -> None:
        """Count the entities of a sentence."""
        wanted = {(span.start, span.end): span.label for span in gold}
        found = {(span.start, span.end): span.label for span in predicted}
        self.counts.update(
            Confused(wanted.get(place), found.get(place)) for place in {**wanted, **found}
        )

    @property
    def names(self) -> list[str]:
        """All names but None, sorted."""
        return sorted({name for pair in self.counts for name in pair if name is not None})

    def mistakes(self) -> list[tuple[Confused, int]]:
        """The pairs of two different names, most frequent first, then by name."""
        return sorted(self._mistakes(), key=lambda item: (-item[1], item[0]))

    def _mistakes(self) -> Iterator[tuple[Confused, int]]:
        for pair, count in self.counts.items():
            if pair.gold is not None and pair.predicted is not None and pair[0] != pair[1]:
                yield pair, count
