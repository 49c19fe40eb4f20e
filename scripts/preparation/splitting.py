"""A dev set out of a training file that was distributed without one."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

from ncrf.errors import InputError
from preparation.writing import write_lines

logger = logging.getLogger(__name__)


def blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """The sentences of a file of columns, each with its lines and without the blank ones."""
    block: list[str] = []
    for line in lines:
        if line.strip(" \t"):
            block.append(line)
        elif block:
            yield block
            block = []
    if block:
        yield block


def split_off(train: Path, dev: Path, wanted: int) -> None:
    """Move the last ``wanted`` sentences of the file ``train`` to a new file ``dev``.

    Raises InputError where it has no more sentences than that.
    """
    with open(train, encoding="utf-8", newline="\n") as file:
        sentences = list(blocks(line.rstrip("\n") for line in file))
    if not 0 < wanted < len(sentences):
        raise InputError(f"--dev {wanted}", remedy=f"1 to {len(sentences) - 1} sentences")
    parts = ((train, sentences[:-wanted]), (dev, sentences[-wanted:]))
    for path, part in parts:
        write_lines(path, (line for sentence in part for line in [*sentence, ""]))
        logger.info("%s: %s of these sentences", path.name, f"{len(part):,}")
