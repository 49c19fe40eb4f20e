"""Label schemes: which one a corpus uses, its spans said in another, where a labeling is wrong.

How labels are read stands in `ncrf.data.labels`, the same as arrays in `ncrf.data.label_tables`;
what others need of both can be had from here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ncrf.data.label_tables import (
    LegalTransitions,
    SpanMasks,
    TypeMasks,
    legal_transitions,
    span_masks,
)
from ncrf.data.labels import (
    OUTSIDE,
    PLAIN,
    POLICIES,
    SCHEMES,
    Mark,
    Span,
    belongs,
    join_label,
    mark,
    may_follow,
    scheme_name,
    span_scheme,
    spans,
    split_label,
)
from ncrf.errors import InputError

__all__ = [
    "PLAIN",
    "POLICIES",
    "SCHEMES",
    "Fault",
    "LegalTransitions",
    "SchemeDetector",
    "Span",
    "SpanMasks",
    "TypeMasks",
    "convert",
    "detect_scheme",
    "faults",
    "join_label",
    "legal_transitions",
    "scheme_name",
    "span_masks",
    "spans",
    "split_label",
    "write_labels",
]


def write_labels(
    found: Iterable[Span], length: int, scheme: str, delimiter: str = "-"
) -> list[str]:
    """The labels that say these spans (in order, not overlapping) in a scheme."""
    rules = span_scheme(scheme)
    labels = ["O"] * length
    before = Span("", 0, 0)
    for span in found:
        if not before.end <= span.start < span.end <= length:
            raise ValueError(f"{span} after {before} in {length} words: out of order or of range")
        prefixes = [rules.inside] * (span.end - span.start)
        # An empty `before` ends where it starts: nothing stands before the first span.
        touches = before.start < before.end == span.start and before.label == span.label
        if rules.name != "IOB1" or touches:
            prefixes[0] = rules.begin
        if rules.end:
            prefixes[-1] = rules.end if len(prefixes) > 1 else rules.single
        labels[span.start : span.end] = [join_label(p, span.label, delimiter) for p in prefixes]
        before = span
    return labels


def convert(labels: Sequence[str], source: str, target: str, delimiter: str = "-") -> list[str]:
    """Say the same spans in another scheme (in the same: tidied up).

    Ill-formed input keeps the spans that conlleval reads. A label that has no prefix of any
    scheme is an `InputError`, as it would be lost.
    """
    if scheme_name(source) == scheme_name(target) == PLAIN:
        return list(labels)
    span_scheme(source)
    for label in labels:
        if not mark(label, delimiter).prefix:
            raise InputError(
                f"label {label!r} cannot be converted: it has no prefix of {source}",
                remedy=f"labels such as B{delimiter}PER, or input_scheme=plain",
            )
    return write_labels(spans(labels, delimiter), len(labels), target, delimiter)


class Fault(NamedTuple):
    """A place where a labeling is ill-formed."""

    position: int  # in tokens, from 0
    reason: str


def faults(labels: Sequence[str], scheme: str, delimiter: str = "-") -> list[Fault]:
    """Where and why a sentence's labels are ill-formed in a scheme; none for plain labels."""
    if scheme_name(scheme) == PLAIN:
        return []
    rules = span_scheme(scheme)
    found = []
    before = ""
    previous: Mark | None = OUTSIDE  # None after a foreign label: its neighbours say nothing
    for position, label in enumerate(labels):
        current = mark(label, delimiter)
        known = bool(current.prefix) and belongs(current, rules)
        if not known:
            found.append(Fault(position, f"{label} is no label of {rules.name}"))
        elif previous is not None and not may_follow(previous, current, rules):
            place = f"after {before}" if position else "at the start of a sentence"
            found.append(Fault(position, f"{label} {place}"))
        before, previous = label, current if known else None
    if previous is not None and not may_follow(previous, OUTSIDE, rules):
        found.append(Fault(len(labels) - 1, f"{before} at the end of a sentence"))
    return found


class SchemeDetector:
    """Tells a corpus's scheme from its labels, in one pass and in memory that does not grow.

    Feed it every sentence's labels, then ask for `scheme`.
    """

    def __init__(self, delimiter: str = "-") -> None:
        """A detector that has seen nothing yet."""
        self._delimiter = delimiter
        self._pairs: Counter[tuple[str, str]] = Counter()
        self._places: dict[str, tuple[str | None, int | None]] = {}

    def feed(
        self, labels: Sequence[str], *, file: str | None = None, line: int | None = None
    ) -> None:
        """Take in one sentence; file and line (of its first word) serve error messages."""
        self._pairs.update(zip(("O", *labels), labels, strict=False))
        for label in dict.fromkeys(labels):
            self._places.setdefault(label, (file, line))

    def scheme(self) -> str:
        """IOB1, IOB2, BIOES, BMES, BILOU or plain.

        Labels that are all O are IOB2: nothing speaks against it. Raises `InputError` where
        most labels have prefixes and some have none, where the prefixes are not those of one
        scheme, or where another delimiter than the one set stands after all of them.
        """
        marks = {label: mark(label, self._delimiter) for label in self._places}
        strange = [label for label, m in marks.items() if not m.prefix]
        typed = [label for label, m in marks.items() if m.inside and m.type]
        explicit = f"or say which it is: input_scheme={'|'.join(SCHEMES)}|{PLAIN}"
        if strange and not typed:
            self._refuse_other_delimiter(strange)
        elif strange and self._tokens(typed) > self._tokens(strange):
            label = strange[0]
            what = f"label {label!r}, in this sentence, has no prefix, unlike most others"
            raise self._error(label, what, f"a label such as {typed[0]}, {explicit}")
        if strange:
            return PLAIN
        prefixes = {m.prefix for m in marks.values() if m.inside}
        name = self._by_prefixes(prefixes, bare=not typed)
        if name is None and typed:
            what = f"no label scheme has the prefixes {', '.join(sorted(prefixes))} and no others"
            raise self._error(typed[0], what, f"convert the file, {explicit}")
        return name or PLAIN

    def _by_prefixes(self, prefixes: set[str], *, bare: bool) -> str | None:
        """The scheme that has these prefixes, if there is one."""
        if prefixes <= {"B", "I"}:
            return self._iob()
        # Without B, labels that go on or close a span are no scheme's: E and I are IOE's, and
        # letters alone (sizes S, M, L) are likelier tags.
        if "B" not in prefixes and prefixes & set("IMEL"):
            return None
        # Where neither I nor M occurs, typed labels are BIOES and bare ones BMES, as is usual.
        order = ("BMES", "BIOES", "BILOU") if bare else ("BIOES", "BMES", "BILOU")
        return next((name for name in order if prefixes <= SCHEMES[name].prefixes), None)

    def _iob(self) -> str:
        """IOB1 begins most spans with I, IOB2 with B; a B that keeps two spans apart tells not."""
        begun: Counter[str] = Counter()
        for (before, label), count in self._pairs.items():
            previous, current = mark(before, self._delimiter), mark(label, self._delimiter)
            if current.inside and not (previous.inside and previous.type == current.type):
                begun[current.prefix] += count
        return "IOB1" if begun["I"] > begun["B"] else "IOB2"

    def _tokens(self, labels: Iterable[str]) -> int:
        wanted = set(labels)
        return sum(count for (_, label), count in self._pairs.items() if label in wanted)

    def _refuse_other_delimiter(self, strange: Sequence[str]) -> None:
        matches = [re.fullmatch(r"[BIESMLUbiesmlu]([\W_]).+", label) for label in strange]
        found = {match[1] if match else None for match in matches}
        delimiter = next(iter(found))
        if len(found) == 1 and delimiter:
            raise self._error(
                strange[0],
                f"labels look like {strange[0]!r}, and label_delimiter is {self._delimiter!r}",
                f"label_delimiter={delimiter}",
            )

    def _error(self, label: str, what: str, remedy: str) -> InputError:
        file, line = self._places[label]
        return InputError(what, file=file, line=line, remedy=remedy)


def detect_scheme(sequences: Iterable[Sequence[str]], delimiter: str = "-") -> str:
    """The scheme of a corpus, given as one sequence of labels per sentence; `SchemeDetector`."""
    detector = SchemeDetector(delimiter)
    for labels in sequences:
        detector.feed(labels)
    return detector.scheme()
