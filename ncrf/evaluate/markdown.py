"""Markdown: tables, and cells that hold words of any corpus as they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ncrf.errors import printable

NOTHING = "–"
_MOST = 100  # characters of a cell
_PLAIN = re.compile(r"[\w.:,+/-]*[^\W_][\w.:,+/-]*")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> list[str]:
    """The lines of a table; the first ``words`` columns are words, the others numbers."""
    align = ["---"] * words + ["---:"] * (len(header) - words)
    return [_row(header), f"|{'|'.join(align)}|", *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def code(text: str, most: int = _MOST) -> str:
    """Text in a code span that may stand in a cell; the middle of what is too long is left out."""
    shown = printable(clipped(text, most)).replace("|", "\\|")
    longest = max(map(len, re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest or shown != shown.strip() or not shown else ""
    return f"{fence}{space}{shown}{space}{fence}"


def clipped(text: str, most: int) -> str:
    """Text of at most ``most`` characters."""
    half = (most - 3) // 2
    return text if len(text) <= most else f"{text[:half]} … {text[-half:]}"


def name(label: str | None) -> str:
    """The name of a type or label; as a code span where Markdown could take it for something."""
    if label is None:
        return NOTHING
    if not label:
        return "(no type)"
    return label if _PLAIN.fullmatch(label) and len(label) <= _MOST else code(label)
