"""Prepared files: written aside, counted, and put in place when all of them are right."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ncrf.data.output_files import make_folder, remove_empty
from ncrf.errors import InputError, NcrfError
from preparation.counts import Counts, count, described

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Published:
    """Counts that somebody published, and where; ``version`` says of what."""

    counts: Counts
    version: str


@dataclass(frozen=True)
class Part:
    """One file that is made: its name, the lines, what they are taken from, what was published."""

    name: str
    source: str
    lines: Iterable[str]
    published: Published | None = None


PARTS = ("train.txt", "dev.txt", "all.txt", "test.txt")


@contextmanager
def staged(target: Path, owned: Collection[str] = PARTS) -> Iterator[Path]:
    """Yield an empty folder whose files replace those of ``target`` in the end.

    Those of the names ``owned`` that were not made are removed there: they would be of another
    preparation. Where anything fails nothing is replaced, and no new folder stays.
    Every file is put in place in one step. Raises NcrfError where something cannot be written.
    """
    made: list[Path] = []
    try:
        made = make_folder(target)
        with TemporaryDirectory(dir=target, prefix=".preparing-") as folder:
            yield Path(folder)
            new = sorted(Path(folder).iterdir())
            for path in new:
                os.replace(path, target / path.name)
            for name in set(owned).difference(path.name for path in new):
                (target / name).unlink(missing_ok=True)
    except OSError as error:
        remove_empty(made)
        raise NcrfError(f"{target}: cannot be written: {error.strerror or error}") from error
    except BaseException:
        remove_empty(made)
        raise


@contextmanager
def said_of(source: str) -> Iterator[None]:
    """Let an InputError of a file that was made name the one it was made from."""
    try:
        yield
    except InputError as error:
        raise InputError(error.what, file=source, line=error.line, remedy=error.remedy) from error


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines, each with an LF, as UTF-8."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def write_parts(
    folder: Path, parts: Iterable[Part], reading: Mapping[str, str], *, any_version: bool
) -> None:
    """Write and count the parts; the log has a line for each.

    ``reading`` are the config keys by which ncrf reads them. Raises InputError for the first
    file whose counts are not the published ones, or with ``any_version`` only warns.
    """
    for part in parts:
        path = folder / part.name
        write_lines(path, part.lines)
        with said_of(part.source):
            found = count(path, reading)
        logger.info("%s: %s", part.source, described(found))
        check(part.source, found, part.published, any_version=any_version)


def check(source: str, found: Counts, published: Published | None, *, any_version: bool) -> None:
    """Compare counts with the published ones.

    Raises InputError where they differ, or with ``any_version`` only warns.
    """
    if published is None:
        logger.warning("%s: no published counts to compare with", source)
        return
    differences = found.differences(published.counts)
    if not differences:
        return
    ours = ", ".join(f"{own:,} {name}" for name, own, _ in differences)
    theirs = ", ".join(f"{count:,}" for _, _, count in differences)
    what = f"{ours} found, {theirs} expected in {published.version}"
    if any_version:
        logger.warning("%s: %s", source, what)
        return
    raise InputError(what, file=source, remedy="the files as distributed, or --any-version")
