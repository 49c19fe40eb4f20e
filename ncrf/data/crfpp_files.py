"""Corpora as CRF++ has them: any number of columns, the label last, all of them for templates."""

from __future__ import annotations

from pathlib import Path

from ncrf.data.column_layout import LABEL, WORD, cut
from ncrf.data.text_files import open_text
from ncrf.errors import InputError


def crfpp_columns(path: str | Path) -> tuple[str, ...]:
    """What ``columns=`` says of a training file of CRF++: ``word,[1],[2],label``.

    The first row decides. Raises InputError for a file without one, or with a single column.
    """
    with open_text(path) as text:
        for number, line in text:
            cells = cut(line.strip(" "), "\t" if "\t" in line else " ")
            if not line.strip(" \t"):
                continue
            if len(cells) < 2:
                raise InputError(
                    f"1 column found, {line!r}, expected at least 2 (word and label)",
                    file=path,
                    line=number,
                    remedy="separate word and label by a tab or by spaces",
                )
            return (WORD, *(f"[{place}]" for place in range(1, len(cells) - 1)), LABEL)
    raise InputError("holds no sentence", file=path)
