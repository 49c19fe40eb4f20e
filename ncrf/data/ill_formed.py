"""Where the labels of a corpus are ill-formed: every place counted, the first ones kept."""

from __future__ import annotations

from dataclasses import dataclass, field

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

    def __init__(self, scheme: str, delimiter: str = "-", keep: int | None = None) -> None:
        """Take the scheme to judge by; ``keep`` says how many places are kept (None: all)."""
        self.places = Findings(keep)
        self.sentences = 0
        self._scheme = scheme
        self._delimiter = delimiter

    def feed(self, sentence: Sentence) -> None:
        """Look at one sentence; one without labels has no faults."""
        found = faults(sentence.labels or (), self._scheme, self._delimiter)
        self.sentences += bool(found)
        for position, reason in found:
            self.places.add(sentence.line_of(position), reason)

    def __str__(self) -> str:
        """The two counts in words."""
        sentences, places = self.sentences, self.places.count
        return (
            f"{sentences:,} sentence{'s' * (sentences != 1)}, {places:,} place{'s' * (places != 1)}"
        )
