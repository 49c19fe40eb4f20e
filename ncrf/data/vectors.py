"""Pretrained vectors for an alphabet: which row each string gets, and how many were found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ncrf.data.alphabet import PADDING, Alphabet
from ncrf.data.normalization import Normalization
from ncrf.data.vector_files import VectorFile, VectorTable, read_vectors

__all__ = [
    "Coverage",
    "Match",
    "VectorFile",
    "VectorTable",
    "initial_rows",
    "match_vectors",
    "most_frequent_forms",
    "normalize_rows",
    "random_rows",
    "read_vectors",
    "spellings",
]

NONE, EXACT, LOWER = 0, 1, 2
LOW_COVERAGE = 0.2


def spellings(key: str, original: str | None = None) -> tuple[str, ...]:
    """Return the spellings under which a vector is looked for, best first.

    These are the key itself and its lower-case form and, where words were normalized, the same of
    ``original``, the most frequent form that the key stands for.
    """
    if original is None or original == key:
        return (key, key.lower())
    return (key, key.lower(), original, original.lower())


def most_frequent_forms(counts: Mapping[str, int], normalization: Normalization) -> dict[str, str]:
    """Map each normalized form to the most frequent of the words it stands for.

    Of equally frequent words the first in ``counts`` is taken. Empty where each word stands for
    itself.
    """
    if not normalization:
        return {}
    forms: dict[str, str] = {}
    for word, count in counts.items():
        key = normalization.key(word)
        if key not in forms or count > counts[forms[key]]:
            forms[key] = word
    return forms


@dataclass(frozen=True)
class Match:
    """Where each string's vector stands: ``rows`` int64 [n] (-1: nowhere), ``how`` int8 [n].

    ``how`` is NONE, EXACT or LOWER, the last if only a lower-case form was found.
    """

    rows: npt.NDArray[np.int64]
    how: npt.NDArray[np.int8]

    @property
    def found(self) -> npt.NDArray[np.bool_]:
        """Boolean [n]: which strings have a vector."""
        return self.rows >= 0


def match_vectors(candidates: Iterable[Sequence[str]], table: VectorTable) -> Match:
    """Find the first of each entry's spellings that ``table`` has.

    ``candidates`` holds one sequence for each entry, made as by :func:`spellings`: a form that
    is the lower-case form of the one before it counts as LOWER, any other as EXACT.
    """
    rows: list[int] = []
    how: list[int] = []
    for forms in candidates:
        row, way, before = -1, NONE, ""
        for form in forms:
            if form in table.index:
                row = table.index[form]
                way = LOWER if form == before.lower() else EXACT
                break
            before = form
        rows.append(row)
        how.append(way)
    return Match(np.array(rows, np.int64), np.array(how, np.int8))


@dataclass(frozen=True)
class Coverage:
    """How much of a corpus a vector file covers: (types, tokens) for each way of finding."""

    exact: tuple[int, int]
    lower: tuple[int, int]
    missing: tuple[int, int]

    @classmethod
    def of(cls, match: Match, counts: npt.ArrayLike) -> Coverage:
        """Count the matches; ``counts`` int [n] says how many tokens each string has."""
        tokens = np.asarray(counts, dtype=np.int64)
        exact, lower, missing = (
            (int(chosen.sum()), int(tokens[chosen].sum()))
            for chosen in (match.how == EXACT, match.how == LOWER, match.how == NONE)
        )
        return cls(exact, lower, missing)

    @property
    def types(self) -> int:
        """The number of distinct strings."""
        return self.exact[0] + self.lower[0] + self.missing[0]

    @property
    def tokens(self) -> int:
        """The number of tokens."""
        return self.exact[1] + self.lower[1] + self.missing[1]

    @property
    def found_tokens(self) -> float:
        """The fraction of tokens that have a vector; 0 for an empty corpus."""
        return (self.exact[1] + self.lower[1]) / self.tokens if self.tokens else 0.0

    def lines(self) -> list[str]:
        """Return the report for the log, a line for each way of finding."""
        return [
            f"{name}: {_share(types, self.types)} types, {_share(tokens, self.tokens)} tokens"
            for name, (types, tokens) in (
                ("found exactly", self.exact),
                ("found lower-cased", self.lower),
                ("not found", self.missing),
            )
        ]

    def warning(self) -> str | None:
        """Return a warning if less than a fifth of the tokens were found, else None."""
        if not self.tokens or self.found_tokens >= LOW_COVERAGE:
            return None
        return (
            f"only {100 * self.found_tokens:.1f} % of the tokens have a pretrained vector "
            "(check that the file is of the right language and its words are written alike)"
        )


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({100 * part / whole if whole else 0:.1f} %)"


def random_rows(count: int, dim: int, generator: np.random.Generator) -> npt.NDArray[np.float32]:
    """Draw float32 [count, dim], uniform in ±sqrt(3 / dim): rows of length about 1."""
    bound = np.sqrt(3.0 / dim)
    return generator.uniform(-bound, bound, (count, dim)).astype(np.float32)


def normalize_rows(matrix: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the rows scaled to Euclidean length 1; rows of zeros stay as they are."""
    length = np.linalg.norm(matrix.astype(np.float64), axis=1, keepdims=True)
    return (matrix / np.where(length > 0, length, 1)).astype(np.float32)


def initial_rows(
    alphabet: Alphabet,
    table: VectorTable,
    generator: np.random.Generator,
    *,
    originals: Mapping[str, str] | None = None,
    normalize: bool = False,
) -> tuple[npt.NDArray[np.float32], Coverage]:
    """Return a table of embeddings to begin with, float32 [len(alphabet), dim], and its coverage.

    Found strings get their row (of length 1 if ``normalize``), all others a random one, padding
    zeros. ``originals`` is what :func:`most_frequent_forms` gives, where words are normalized.
    As many numbers are drawn from ``generator`` whatever is found.
    """
    start = len(alphabet.special)
    strings = alphabet.strings[start:]
    forms = originals or {}
    match = match_vectors((spellings(string, forms.get(string)) for string in strings), table)
    matrix = random_rows(len(alphabet), table.dim, generator)
    rows = table.matrix[match.rows[match.found]]
    matrix[start:][match.found] = normalize_rows(rows) if normalize else rows
    if start:
        matrix[PADDING] = 0
    return matrix, Coverage.of(match, alphabet.counts[start:])
