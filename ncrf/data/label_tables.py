"""Arrays over label ids: which transitions are legal, and where spans begin, go on and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ncrf.data.labels import (
    OUTSIDE,
    PLAIN,
    Mark,
    belongs,
    joined,
    mark,
    may_follow,
    scheme_name,
    span_scheme,
    well_begun,
    well_ended,
)

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

_KEPT_TYPES = 16  # of which the masks are not computed again


class LegalTransitions(NamedTuple):
    """Well-formed labelings: ``start [Y]``, ``transition [Y,Y]`` (from, to), ``end [Y]``."""

    start: Bools
    transition: Bools
    end: Bools


def legal_transitions(labels: Sequence[str], scheme: str, delimiter: str = "-") -> LegalTransitions:
    """The legal starts, transitions and ends among Y labels; for plain ones, all of them.

    A label whose prefix the scheme does not have is legal nowhere; one without any prefix is
    treated like ``O``.
    """
    count = len(labels)
    if scheme_name(scheme) == PLAIN:
        shapes = ((count,), (count, count), (count,))
        return LegalTransitions(*(np.ones(shape, dtype=np.bool_) for shape in shapes))
    rules = span_scheme(scheme)
    marks = [*(mark(label, delimiter) for label in labels), OUTSIDE]

    def legal(previous: Mark, current: Mark) -> bool:
        known = belongs(previous, rules) and belongs(current, rules)
        return known and may_follow(previous, current, rules)

    table = _over_pairs(marks, legal)
    return LegalTransitions(table[-1, :-1].copy(), table[:-1, :-1].copy(), table[:-1, -1].copy())


def _over_pairs(marks: Sequence[Mark], relation: Callable[[Mark, Mark], bool]) -> Bools:
    """A relation between neighbours, for all pairs ``[Y,Y]`` of labels.

    It may depend on their prefixes and on whether their types are the same, and is asked for these
    alone: with thousands of labels there are millions of pairs.
    """
    kinds = list(dict.fromkeys(label._replace(type="") for label in marks))
    types: dict[str, int] = {}
    of_kind = np.array([kinds.index(label._replace(type="")) for label in marks], np.intp)
    of_type = np.array([types.setdefault(label.type, len(types)) for label in marks], np.int64)

    def table(other: str) -> Bools:
        rows = [[relation(a, b._replace(type=other)) for b in kinds] for a in kinds]
        return np.array(rows, dtype=np.bool_)[np.ix_(of_kind, of_kind)]

    return np.where(of_type[:, None] == of_type[None, :], table(""), table("another"))


class StrictRules(NamedTuple):
    """When a span is well-formed: how it begins and ends, and no label in it is ``foreign``.

    ``begun [Y+1, Y+1]`` (previous, first label; row Y is the border of a sentence),
    ``ended [Y]`` (last label), ``foreign [Y]`` (a label that the scheme does not have).
    """

    begun: Bools
    ended: Bools
    foreign: Bools


class SpanTables:
    """What neighbouring labels say about spans, as arrays over Y label ids.

    Row and column Y stand for the border of a sentence.

    Attributes:
        types: the T types, in order of first appearance.
        type_of: ``[Y]`` index into ``types``, -1 for a label outside any span.
        reading: ``[Y]`` equal where two labels say the same (``B-PER`` and ``b-PER``).
        begins: ``[Y+1, Y+1]`` (previous, current): a span begins at current.
        ends: ``[Y+1, Y+1]`` (current, next): a span ends after current.
        inside: ``[Y, Y]`` (previous, current): one span holds both.
    """

    def __init__(self, labels: Sequence[str], delimiter: str = "-") -> None:
        """Work out the tables; ``labels`` are the strings of the ids 0..Y-1."""
        self.marks = [mark(label, delimiter) for label in labels]
        kinds: dict[str, int] = {}
        readings: dict[tuple[str, str], int] = {}
        for label in self.marks:
            readings.setdefault(label[:2], len(readings))
            if label.inside:
                kinds.setdefault(label.type, len(kinds))
        self.types = tuple(kinds)
        self.type_of: Ints = np.array(
            [kinds[label.type] if label.inside else -1 for label in self.marks], dtype=np.int64
        )
        self.reading: Ints = np.array([readings[m[:2]] for m in self.marks], dtype=np.int64)
        bordered = [*self.marks, OUTSIDE]
        within = _over_pairs(bordered, joined)
        stands = np.array([label.inside for label in bordered], dtype=np.bool_)
        self.begins: Bools = stands[None, :] & ~within
        self.ends: Bools = stands[:, None] & ~within
        self.inside: Bools = within[:-1, :-1]

    def rules(self, scheme: str) -> StrictRules:
        """Which spans are well-formed in a scheme, as arrays."""
        rules = span_scheme(scheme)
        bordered = [*self.marks, OUTSIDE]
        return StrictRules(
            _over_pairs(bordered, lambda a, b: b.inside and well_begun(a, b, rules)),
            np.array([well_ended(label, rules) for label in self.marks], dtype=np.bool_),
            np.array([not belongs(label, rules) for label in self.marks], dtype=np.bool_),
        )


class TypeMasks(NamedTuple):
    """When a labeling has a span of one type: it begins, goes on (or not at all), and ends.

    ``begin [Y,Y]`` (previous, current) with ``begin_first [Y]`` at a sentence's first label,
    ``inside [Y,Y]`` (previous, current), ``end [Y,Y]`` (current, next) with ``end_last [Y]``.
    """

    begin: Bools
    begin_first: Bools
    inside: Bools
    end: Bools
    end_last: Bools


class SpanMasks(Mapping[str, TypeMasks]):
    """The `TypeMasks` of every type, computed when asked for: T·Y² would be large at once.

    Those of a few types are kept.
    """

    def __init__(self, tables: SpanTables) -> None:
        """Masks that are cut from these tables."""
        self._tables = tables
        self._kept: dict[str, TypeMasks] = {}

    def __getitem__(self, type_: str) -> TypeMasks:
        """The masks of one type."""
        found = self._kept.get(type_)
        if found is None:
            found = self._of_type(type_)
            if len(self._kept) < _KEPT_TYPES:
                self._kept[type_] = found
        return found

    def _of_type(self, type_: str) -> TypeMasks:
        tables = self._tables
        if type_ not in tables.types:
            raise KeyError(type_)
        of_type = tables.type_of == tables.types.index(type_)
        return TypeMasks(
            begin=tables.begins[:-1, :-1] & of_type[None, :],
            begin_first=tables.begins[-1, :-1] & of_type,
            inside=tables.inside & of_type[None, :],
            end=tables.ends[:-1, :-1] & of_type[:, None],
            end_last=tables.ends[:-1, -1] & of_type,
        )

    def __iter__(self) -> Iterator[str]:
        """The types, in order of first appearance."""
        return iter(self._tables.types)

    def __len__(self) -> int:
        """How many types there are."""
        return len(self._tables.types)


def span_masks(labels: Sequence[str], scheme: str, delimiter: str = "-") -> SpanMasks:
    """Masks over label ids that hold exactly where `spans` reads a span; none for plain labels."""
    plain = scheme_name(scheme) == PLAIN
    return SpanMasks(SpanTables(["O"] * len(labels) if plain else labels, delimiter))
