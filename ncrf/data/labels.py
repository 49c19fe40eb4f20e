"""Labels and the spans they mean.

A label is an optional prefix, a delimiter and a type (``B-PER``), or a prefix alone (``B``, in
word segmentation), or ``O``. Prefixes are read in either case, types keep theirs and may hold
the delimiter (``B-GOODS-X`` is of type ``GOODS-X``).

Reading rests on one relation between neighbours, `joined`: does the span that holds the first
label go on into the second? It is conlleval's, extended to S and E as seqeval's default mode
reads them; M is read as I, L as E, U as S. A label without a known prefix stands outside any
span. Which labelings are *well-formed* in a scheme rests on two more, `well_begun` and
`well_ended`. Spans, legal transitions, masks and faults are all derived from these three, so
that they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ncrf.errors import InputError

POLICIES = ("conlleval", "strict")


@dataclass(frozen=True, slots=True)
class Scheme:
    """The prefixes of a scheme. ``end`` and ``single`` are empty where spans have no end mark."""

    name: str
    begin: str = "B"
    inside: str = "I"
    end: str = ""
    single: str = ""

    @property
    def prefixes(self) -> frozenset[str]:
        """The prefixes that stand in a span."""
        return frozenset(self.begin + self.inside + self.end + self.single)


SCHEMES = {
    "IOB1": Scheme("IOB1"),
    "IOB2": Scheme("IOB2"),
    "BIOES": Scheme("BIOES", end="E", single="S"),
    "BMES": Scheme("BMES", inside="M", end="E", single="S"),
    "BILOU": Scheme("BILOU", end="L", single="U"),
}
PLAIN = "plain"
_ALIASES = {"BIO": "IOB2", "IOBES": "BIOES"}


def scheme_name(name: str) -> str:
    """The canonical name of a scheme: ``bio`` → ``IOB2``; an unknown one is an `InputError`."""
    if name.lower() == PLAIN:
        return PLAIN
    canonical = _ALIASES.get(name.upper(), name.upper())
    if canonical not in SCHEMES:
        raise InputError(
            f"unknown label scheme {name!r}", remedy=f"one of {', '.join(SCHEMES)}, {PLAIN}"
        )
    return canonical


def span_scheme(name: str) -> Scheme:
    """The rules of a scheme; `InputError` for plain labels, which have no spans."""
    canonical = scheme_name(name)
    if canonical == PLAIN:
        raise InputError("plain labels have no spans", remedy=f"one of {', '.join(SCHEMES)}")
    return SCHEMES[canonical]


def check_policy(policy: str, scheme: str | None) -> None:
    """Raise `InputError` for an unknown policy, and for the strict one without a scheme."""
    if policy not in POLICIES:
        raise InputError(f"unknown score_policy {policy!r}", remedy=" or ".join(POLICIES))
    if policy == "strict" and scheme is None:
        raise InputError("the strict policy needs a scheme", remedy="such as scheme='BIOES'")


class Mark(NamedTuple):
    """What one label says about spans."""

    prefix: str  # B I E S M L U O, or "" for a label that belongs to no scheme
    type: str  # "" in segmentation and for O; the whole label where the prefix is ""
    inside: bool  # stands in a span
    runs_on: bool  # its span may go on after it (not after E, S)
    runs_in: bool  # its span may have begun before it (not at B, S)


OUTSIDE = Mark("O", "", False, False, False)
_RUNS_ON, _RUNS_IN = frozenset("BIM"), frozenset("IMEL")
_IN_SPAN = frozenset("BIESMLU")


@lru_cache(maxsize=1 << 16)
def mark(label: str, delimiter: str = "-") -> Mark:
    """Read one label. ``_``, CoNLL-U's "nothing here", is read as ``O``."""
    if not delimiter:
        raise InputError("label_delimiter is empty", remedy="label_delimiter=-")
    if label == "_":
        return OUTSIDE
    head, _, kind = label.partition(delimiter)
    prefix = head.upper()
    if prefix == "O":
        return OUTSIDE if not kind else OUTSIDE._replace(type=kind)
    if prefix not in _IN_SPAN:
        return Mark("", label, False, False, False)
    return Mark(prefix, kind, True, prefix in _RUNS_ON, prefix in _RUNS_IN)


def split_label(label: str, delimiter: str = "-") -> tuple[str, str]:
    """``b-GOODS-X`` → ``("B", "GOODS-X")``; ``O`` → ``("O", "")``; ``NN`` → ``("", "NN")``."""
    return mark(label, delimiter)[:2]


def join_label(prefix: str, type_: str, delimiter: str = "-") -> str:
    """The inverse of `split_label`: no delimiter where there is no type or no prefix."""
    return f"{prefix}{delimiter}{type_}" if prefix and type_ else prefix or type_


def joined(previous: Mark, current: Mark) -> bool:
    """Whether one span holds both neighbours."""
    return previous.runs_on and current.runs_in and previous.type == current.type


def well_begun(previous: Mark, current: Mark, scheme: Scheme) -> bool:
    """Whether the scheme lets a span begin at ``current`` (given that the two are not joined)."""
    if scheme.name == "IOB1":  # B only where it keeps two spans of one type apart
        apart = previous.inside and previous.type == current.type
        return current.prefix == (scheme.begin if apart else scheme.inside)
    return not current.runs_in


def well_ended(last: Mark, scheme: Scheme) -> bool:
    """Whether the scheme lets a span end after ``last``."""
    return not scheme.end or not last.runs_on


def belongs(label: Mark, scheme: Scheme) -> bool:
    """Whether a label's prefix is one of the scheme's; labels outside spans belong to all."""
    return not label.inside or label.prefix in scheme.prefixes


def may_follow(previous: Mark, current: Mark, scheme: Scheme) -> bool:
    """Whether ``current`` may follow ``previous``; `OUTSIDE` stands for start and end."""
    if joined(previous, current):
        return True
    begins = not current.inside or well_begun(previous, current, scheme)
    return begins and (not previous.inside or well_ended(previous, scheme))


class Span(NamedTuple):
    """One span of a sentence: its type and its place in tokens, ``end`` exclusive."""

    label: str
    start: int
    end: int


def spans(
    labels: Sequence[str],
    delimiter: str = "-",
    *,
    scheme: str | None = None,
    policy: str = "conlleval",
) -> list[Span]:
    """The spans of one sentence's labels, in order.

    ``policy="conlleval"`` reads any sequence, ill-formed ones too, and needs no scheme;
    ``"strict"`` keeps those spans that are well-formed in ``scheme``.
    """
    check_policy(policy, scheme)
    marks = [mark(label, delimiter) for label in labels]
    found = list(_read(marks))
    if policy == "conlleval" or scheme is None:
        return found
    rules = span_scheme(scheme)
    return [span for span in found if _well_formed(span, marks, rules)]


def _read(marks: Sequence[Mark]) -> Iterator[Span]:
    start, previous = 0, OUTSIDE
    for position, current in enumerate(marks):
        if not joined(previous, current):
            if previous.inside:
                yield Span(previous.type, start, position)
            start = position
        previous = current
    if previous.inside:
        yield Span(previous.type, start, len(marks))


def _well_formed(span: Span, marks: Sequence[Mark], scheme: Scheme) -> bool:
    previous = marks[span.start - 1] if span.start else OUTSIDE
    return (
        well_begun(previous, marks[span.start], scheme)
        and well_ended(marks[span.end - 1], scheme)
        and all(belongs(label, scheme) for label in marks[span.start : span.end])
    )
