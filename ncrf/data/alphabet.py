"""Alphabets: the strings a model knows - words, characters, feature values, labels - as ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ncrf.errors import InputError

PADDING = 0
UNKNOWN = 1
SPECIAL = ("<pad>", "<unk>")
MISSING = -1


class Alphabet:
    """Strings and their ids, with the counts they had in the training corpus.

    An alphabet of words, characters or feature values begins with padding (id 0) and unknown
    (id 1). These two are no strings: a corpus word ``<unk>`` gets an id of its own. An alphabet
    of labels has neither. Alphabets do not change once they are made.
    """

    def __init__(
        self, strings: Sequence[str], counts: Sequence[int], special: Sequence[str] = SPECIAL
    ) -> None:
        """Take the strings, without the special ones, in the order of their ids.

        Raises ValueError if a string stands there twice or the lengths differ.
        """
        if len(strings) != len(counts):
            raise ValueError(f"{len(strings)} strings, but {len(counts)} counts")
        self.special = tuple(special)
        self.strings: tuple[str, ...] = (*self.special, *strings)
        self.counts = np.array([0] * len(special) + list(counts), dtype=np.int64)
        self._ids = {string: id_ for id_, string in enumerate(strings, len(special))}
        if len(self._ids) != len(strings):
            twice = next(s for i, s in enumerate(strings, len(special)) if self._ids[s] != i)
            raise ValueError(f"{twice!r} stands there twice")

    @classmethod
    def build(cls, counts: Mapping[str, int], special: Sequence[str] = SPECIAL) -> Alphabet:
        """Make an alphabet of the strings counted in ``counts``.

        With special entries: by falling count, ties by first appearance. Without (labels): by
        first appearance. First appearance is the order of ``counts``, as a Counter keeps it.
        """
        strings = sorted(counts, key=lambda s: -counts[s]) if special else list(counts)
        return cls(strings, [counts[string] for string in strings], special)

    @property
    def unknown(self) -> int:
        """The id of strings that are not in the alphabet: 1, or -1 if it has no unknown."""
        return UNKNOWN if self.special else MISSING

    @property
    def singletons(self) -> npt.NDArray[np.bool_]:
        """Boolean [size]: which ids were counted exactly once."""
        return np.equal(self.counts, 1)

    def __len__(self) -> int:
        """Return the number of ids, padding and unknown included."""
        return len(self.strings)

    def __contains__(self, string: object) -> bool:
        """Return whether ``string`` has an id of its own."""
        return string in self._ids

    def __eq__(self, other: object) -> bool:
        """Return whether ids, counts and special entries are the same."""
        if not isinstance(other, Alphabet):
            return NotImplemented
        return (
            self.special == other.special
            and self.strings == other.strings
            and np.array_equal(self.counts, other.counts)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Return a short description."""
        return f"Alphabet({len(self)} strings)"

    def id(self, string: str) -> int:
        """Return the id of ``string``, or ``unknown``."""
        return self._ids.get(string, self.unknown)

    def ids(self, strings: Iterable[str]) -> npt.NDArray[np.int64]:
        """Return the ids of ``strings`` as int64 [len(strings)]; ``unknown`` for those not here."""
        return np.fromiter(map(self._ids.get, strings, repeat(self.unknown)), np.int64)

    def to_json(self) -> dict[str, Any]:
        """Return the alphabet as plain lists, for :meth:`from_json`."""
        start = len(self.special)
        return {
            "special": list(self.special),
            "strings": list(self.strings[start:]),
            "counts": self.counts[start:].tolist(),
        }

    @classmethod
    def from_json(cls, data: object, file: str | Path | None = None) -> Alphabet:
        """Make the alphabet that :meth:`to_json` wrote; InputError, naming ``file``, for others."""
        if not isinstance(data, dict) or set(data) != {"special", "strings", "counts"}:
            raise _damaged("an alphabet needs special, strings and counts", file)
        special, strings, counts = data["special"], data["strings"], data["counts"]
        if not (_all_are(str, special) and _all_are(str, strings) and _all_are(int, counts)):
            raise _damaged("special and strings must be strings, counts whole numbers", file)
        if len(special) not in (0, len(SPECIAL)):
            raise _damaged(f"{len(special)} special entries in an alphabet", file)
        try:
            return cls(strings, counts, special)
        except (ValueError, OverflowError) as error:
            raise _damaged(f"in an alphabet {error}", file) from None


def _all_are(kind: type, values: object) -> bool:
    return isinstance(values, list) and all(type(value) is kind for value in values)


def _damaged(what: str, file: str | Path | None) -> InputError:
    return InputError(what, file=file, remedy="the file is damaged; train the model again")
