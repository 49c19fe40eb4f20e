#!/usr/bin/env python3
"""Puts GloVe's vectors where the configs look for them, and checks every row.

    scripts/prepare_glove.py SOURCE [TARGET] [--width N]

SOURCE is glove.6B.zip, a folder with it or with its files, or one file of vectors (text; .gz too).
What is made in the folder TARGET is glove.6B.100d.txt, or another width's. Of the archive, which
need not be unpacked, only the member of that width is read. A file with other than 400,000 rows,
such as a selection for some corpora, is taken with --any-version, which says how many it has.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from preparation.commands import new_parser, run
from preparation.sources import SourceFile, find
from preparation.writing import said_of, staged

from ncrf.data.text_files import TextFile
from ncrf.data.vector_text import TextRows
from ncrf.errors import InputError

logger = logging.getLogger("preparation.glove")

# "400K vocab, uncased, 50d, 100d, 200d, & 300d vectors": https://nlp.stanford.edu/projects/glove/
ROWS = 400_000
WIDTHS = (50, 100, 200, 300)


def main(arguments: Sequence[str] | None = None, rows: int = ROWS) -> int:
    parser = new_parser(__doc__, "glove.6B.zip, a folder, or a file of vectors", "data/glove")
    parser.add_argument(
        "--width",
        type=int,
        choices=WIDTHS,
        default=100,
        help="how many numbers a row has (default: %(default)s)",
    )

    def prepare(given: argparse.Namespace) -> None:
        name = f"glove.6B.{given.width}d.txt"
        # A single file may have any name; in a folder or archive it has its own.
        patterns = ["*"] if given.source.is_file() and given.source.suffix != ".zip" else [name]
        source = find(given.source, patterns, name)
        with staged(given.target, owned=()) as folder:
            with open(folder / name, "wb") as file:
                source.copy(file)
            found = _count(source, folder / name, given.width)
            _compare(source, found, rows, any_version=given.any_version)

    return run(prepare, parser.parse_args(arguments))


def _count(source: SourceFile, path: Path, width: int) -> int:
    """The number of rows; InputError for one that is at fault, or of another width."""
    with said_of(source.name), TextFile(path) as text:
        rows = TextRows(text)
        for _ in rows:
            pass
    logger.info("%s: %s rows of %d numbers", source.name, f"{rows.count:,}", rows.width)
    if rows.width != width:
        what = f"{rows.width} numbers in a row, not {width}"
        raise InputError(what, file=source.name, remedy="another --width")
    return rows.count


def _compare(source: SourceFile, found: int, rows: int, *, any_version: bool) -> None:
    what = f"{found:,} rows found, {rows:,} expected in GloVe 6B"
    if found == rows:
        return
    if not any_version:
        raise InputError(what, file=source.name, remedy="the file as distributed, or --any-version")
    logger.warning("%s: %s", source.name, what)


if __name__ == "__main__":
    sys.exit(main())
