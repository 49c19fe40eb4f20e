"""The most frequent errors: which words and phrases go wrong, how often, and where for example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ncrf.data.labels import Span
from ncrf.data.sentence import Sentence
from ncrf.evaluate.entity_errors import Meeting

LABEL = "label"  # the kind of error of a plain label
_AROUND = 5  # words of an example on either side
_LONGEST = 25  # words of an example that are shown at all


class Mention(NamedTuple):
    """Some words and what they were labelled as."""

    text: str
    label: str


class ErrorKey(NamedTuple):
    """What errors have in common that are counted together; ``kind`` as in `entity_errors`."""

    kind: str
    gold: Mention | None
    predicted: Mention | None


class Example(NamedTuple):
    """Where an error stands: file, line of its first word, and the words around it.

    The words at fault are the ones between ``before`` and ``after``.
    """

    file: str
    line: int
    before: str
    words: str
    after: str

    @property
    def place(self) -> str:
        """``file:line``, as in error messages; empty for sentences from no file."""
        return f"{self.file}:{self.line}" if self.file else ""


@dataclass(frozen=True, slots=True)
class FrequentError:
    """An error, how often it was made, and its first occurrence."""

    key: ErrorKey
    count: int
    example: Example


class ErrorCounter:
    """Counts errors while the sentences of a file go by."""

    def __init__(self) -> None:
        self._counts: dict[ErrorKey, int] = {}
        self._examples: dict[ErrorKey, Example] = {}

    def add_meeting(self, sentence: Sentence, meeting: Meeting) -> None:
        """Count what happened to an entity of a sentence."""
        spans = [span for span in meeting if span is not None]
        start, end = min(span.start for span in spans), max(span.end for span in spans)
        gold, predicted = (span and _mention(sentence, span) for span in meeting)
        self._add(ErrorKey(meeting.kind, gold, predicted), sentence, start, end)

    def add_label(self, sentence: Sentence, position: int, gold: str, predicted: str) -> None:
        """Count the wrong label of a word."""
        word = sentence.words[position]
        key = ErrorKey(LABEL, Mention(word, gold), Mention(word, predicted))
        self._add(key, sentence, position, position + 1)

    def add_class(self, sentence: Sentence, gold: str, predicted: str) -> None:
        """Count the wrong label of a whole sentence."""
        text = " ".join(sentence.words)
        key = ErrorKey(LABEL, Mention(text, gold), Mention(text, predicted))
        self._add(key, sentence, 0, len(sentence.words))

    def most_frequent(self, top: int) -> list[FrequentError]:
        """The ``top`` most frequent errors; of equally frequent ones those that come first."""
        order = sorted(self._counts, key=lambda key: -self._counts[key])[:top]
        return [FrequentError(key, self._counts[key], self._examples[key]) for key in order]

    @property
    def distinct(self) -> int:
        """How many different errors there are."""
        return len(self._counts)

    def _add(self, key: ErrorKey, sentence: Sentence, start: int, end: int) -> None:
        self._counts[key] = self._counts.get(key, 0) + 1
        if key not in self._examples:
            self._examples[key] = _example(sentence, start, end)


def _mention(sentence: Sentence, span: Span) -> Mention:
    return Mention(" ".join(sentence.words[span.start : span.end]), span.label)


def _example(sentence: Sentence, start: int, end: int) -> Example:
    words = sentence.words
    before, after = words[max(0, start - _AROUND) : start], words[end : end + _AROUND]
    within = words[start:end] if end - start <= _LONGEST else [*words[start:][:_LONGEST], "…"]
    return Example(
        file=sentence.file,
        line=sentence.line_of(start),
        before=" ".join(["…"] * (start > _AROUND) + before),
        words=" ".join(within),
        after=" ".join(after + ["…"] * (end + _AROUND < len(words))),
    )
