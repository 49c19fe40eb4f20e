"""Input that is read more than once: pipes and standard input are copied to a file first."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ncrf.data.text_files import STANDARD_INPUT, open_bytes
from ncrf.errors import InputError, NcrfError


@contextmanager
def spooled(path: str | Path) -> Iterator[str]:
    """Yield a path under which the content of ``path`` can be read again and again.

    That is ``path`` itself for a file. What can be read only once - ``-`` (standard input), a
    named pipe - is copied to a temporary file, which costs disk and no memory. An InputError
    that names the copy, inside the ``with`` block, leaves it as one that names ``path``.
    """
    if not _is_read_once(path):
        yield str(path)
        return
    with TemporaryDirectory(prefix="ncrf-") as folder:
        # The copy keeps the name, by whose end a packed file is known.
        copy = os.path.join(folder, "stdin" if str(path) == STANDARD_INPUT else Path(path).name)
        _copy(path, copy)
        try:
            yield copy
        except InputError as error:
            if error.file != copy:
                raise
            name = display_name(path)
            raise type(error)(error.what, file=name, line=error.line, remedy=error.remedy) from None


@contextmanager
def unpacked(path: str | Path) -> Iterator[str]:
    """Yield a path with the content of a ``.gz`` file, for a reader that needs it unpacked.

    That is a temporary file, or ``path`` itself if it is not packed. Raises NcrfError where it
    cannot be unpacked.
    """
    if not str(path).endswith(".gz"):
        yield str(path)
        return
    with TemporaryDirectory(prefix="ncrf-") as folder:
        copy = os.path.join(folder, "unpacked")
        try:
            with open_bytes(path) as source, open(copy, "wb") as target:
                shutil.copyfileobj(source, target)
        except (OSError, EOFError, zlib.error) as error:
            raise NcrfError(f"{path}: cannot be unpacked to {copy}: {error}") from error
        yield copy


def display_name(path: str | Path) -> str:
    """What a file is called in messages: ``-`` is ``<stdin>``, as the readers have it."""
    return "<stdin>" if str(path) == STANDARD_INPUT else str(path)


def _is_read_once(path: str | Path) -> bool:
    if str(path) == STANDARD_INPUT:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False  # whoever opens it says what is wrong
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _copy(path: str | Path, copy: str) -> None:
    try:
        with open(copy, "wb") as target:
            if str(path) == STANDARD_INPUT:
                shutil.copyfileobj(sys.stdin.buffer, target)
            else:
                with open(path, "rb") as source:
                    shutil.copyfileobj(source, target)
    except OSError as error:
        reason = error.strerror or error
        raise NcrfError(f"{display_name(path)}: cannot be copied to {copy}: {reason}") from error
