"""Where the labels of a corpus are ill-formed: every place counted, the first ones kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from ncrf.data.partial import is_partial, without_partial
from ncrf.data.schemes import faults
from ncrf.data.sentence import Sentence


@dataclass
class Findings:
    """Things found in a file: ``count`` of them, the first ``keep`` (None: all) with their lines.

    ``first`` holds ``(line, text)``.
    """

    keep: int | None
    count: int = 0
    first: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        """Count one, and keep it if there is room."""
        self.count += 1
        if self.keep is None or len(self.first) < self.keep:
            self.first.append((line, text))


class IllFormed:
    """The ill-formed places of one corpus; ``sentences`` counts those that have any."""

    def __init__(
        self,
        scheme: str,
        delimiter: str = "-",
        keep: int | None = None,
        *,
        partial_labels: str = "none",
    ) -> None:
        """Take the scheme to judge by; ``keep`` says how many places are kept (None: all).

        Labels that stand for several, as ``partial_labels`` says, are no faults and make none of
        the labels next to them.
        """
        self.places = Findings(keep)
        self.sentences = 0
        self._scheme = scheme
        self._delimiter = delimiter
        self._partial_labels = partial_labels

    def feed(self, sentence: Sentence) -> None:
        """Look at one sentence; one without labels has no faults."""
        partial = self._partial_labels
        labels = without_partial(sentence.labels or (), partial)
        found = [
            fault
            for fault in faults(labels, self._scheme, self._delimiter)
            if not is_partial(labels[fault.position], partial)
        ]
        self.sentences += bool(found)
        for position, reason in found:
            self.places.add(sentence.line_of(position), reason)

    def __str__(self) -> str:
        """The two counts in words."""
        sentences, places = self.sentences, self.places.count
        return (
            f"{sentences:,} sentence{'s' * (sentences != 1)}, {places:,} place{'s' * (places != 1)}"
        )
