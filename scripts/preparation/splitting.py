"""A dev set out of a training file that was distributed without one."""

from __future__ import annotations

import logging
import random
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


def drawn(total: int, wanted: int, seed: int) -> set[int]:
    """``wanted`` of the numbers below ``total``, drawn with a seed.

    Only ``random.random`` is used, whose numbers Python promises to keep from version to version.
    """
    numbers = random.Random(seed)
    order = sorted(range(total), key=[numbers.random() for _ in range(total)].__getitem__)
    return set(order[:wanted])


def split_off(train: Path, dev: Path, wanted: int, seed: int) -> None:
    """Move ``wanted`` sentences of the file ``train``, drawn at random, to a new file ``dev``.

    Both keep the order of the file. Raises InputError where it has no more sentences than that.
    """
    with open(train, encoding="utf-8", newline="\n") as file:
        sentences = list(blocks(line.rstrip("\n") for line in file))
    if not 0 < wanted < len(sentences):
        raise InputError(f"--dev {wanted}", remedy=f"1 to {len(sentences) - 1} sentences")
    chosen = drawn(len(sentences), wanted, seed)
    kept = [sentence for number, sentence in enumerate(sentences) if number not in chosen]
    moved = [sentence for number, sentence in enumerate(sentences) if number in chosen]
    for path, part in ((train, kept), (dev, moved)):
        write_lines(path, (line for sentence in part for line in [*sentence, ""]))
    logger.info(
        "%s and %s: %s and %s of these sentences, drawn with seed %d",
        train.name,
        dev.name,
        f"{len(kept):,}",
        f"{len(moved):,}",
        seed,
    )
