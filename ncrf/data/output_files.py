"""Output files that appear under their name only when they are whole and on the disk."""

from __future__ import annotations

import errno
import gzip
import io
import itertools
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ncrf.errors import NcrfError

TEMPORARY = ".tmp"  # how the name of a file ends that nobody is to read
_SHOWN = 40  # characters of a file's name that stand in that of its temporary file
_numbers = itertools.count()
#: What some file systems answer when a folder is to be flushed, which they need not be asked.
_NOT_FLUSHED = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EBADF)


@contextmanager
def replacing(
    path: str | Path, mode: str = "w", *, name: str | Path | None = None
) -> Iterator[IO[Any]]:
    """Open ``path`` for writing; the old file stays until the new one is complete.

    What is written goes to a temporary file beside it, which is flushed to the disk and then
    renamed. Where anything fails, the temporary file goes and the old one is as it was. The
    folder is made if it is missing, and a new file has the permissions of the one it replaces.
    ``mode`` is ``w`` (UTF-8 text) or ``wb``; a name that ends in ``.gz`` is packed. A pipe or a
    device is written as it stands. Raises NcrfError that names the file where it cannot be written.
    ``name`` is the file that this one is to become, and whose name and permissions count.
    """
    target = Path(os.path.realpath(path))  # a link stays, what it names is replaced
    try:
        if target.exists() and not target.is_file():
            with open(target, "wb") as device, _layers(device, mode, packed=False) as file:
                yield file
            return
        made = make_folder(target.parent)
        temporary, raw = _new_beside(target)
        try:
            _copy_permissions(name or target, raw)
            with raw, _layers(raw, mode, packed=target.suffix == ".gz") as file:
                yield file
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            remove_empty(made)
            raise
        flush_folder(target.parent)
    except OSError as error:
        raise NcrfError(f"{name or path}: cannot be written: {reason(error)}") from error


def write_file(path: str | Path, content: bytes, *, name: str | Path | None = None) -> None:
    """Write a whole file, or leave the old one as it was; see ``replacing``."""
    with replacing(path, "wb", name=name) as file:
        file.write(content)


def temporary_name(name: str) -> str:
    """A name for a file or folder that is to become ``name``: hidden, new in this process."""
    return f".{name.lstrip('.')[:_SHOWN]}.{os.getpid()}-{next(_numbers)}{TEMPORARY}"


def make_folder(folder: Path) -> list[Path]:
    """Make a folder and those above it; returns the new ones, innermost first. Raises OSError."""
    missing = list(itertools.takewhile(lambda place: not place.exists(), [folder, *folder.parents]))
    try:
        if missing:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        remove_empty(missing)
        raise
    return missing


def remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders, innermost first, as far as they are there and empty."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def flush_folder(folder: Path) -> None:
    """Flush a folder's list of files to the disk, so that a rename outlives a loss of power."""
    try:
        number = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(number)
        finally:
            os.close(number)
    except OSError as error:
        if error.errno not in _NOT_FLUSHED:
            raise


def reason(error: OSError) -> str:
    """What the system says of an error, without the file's name."""
    return error.strerror or str(error) or type(error).__name__


def _new_beside(target: Path) -> tuple[Path, IO[bytes]]:
    """A new file in the folder of ``target``, open for writing."""
    while True:
        temporary = target.with_name(temporary_name(target.name))
        with suppress(FileExistsError):  # of another machine, or left by a process that was killed
            return temporary, open(temporary, "xb")


def _copy_permissions(target: str | Path, file: IO[bytes]) -> None:
    with suppress(OSError):
        os.fchmod(file.fileno(), stat.S_IMODE(os.stat(target).st_mode))


@contextmanager
def _layers(raw: IO[bytes], mode: str, *, packed: bool) -> Iterator[IO[Any]]:
    """What packs and encodes on the way to ``raw``; at the end all is on the disk."""
    with ExitStack() as stack:
        binary: Any = raw
        if packed:
            # Neither name nor time stands in the file: the same text gives the same bytes.
            binary = stack.enter_context(gzip.GzipFile("", "wb", fileobj=raw, mtime=0))
        if "b" in mode:
            yield binary
        else:
            text = stack.enter_context(io.TextIOWrapper(binary, encoding="utf-8", newline="\n"))
            yield text
            text.flush()
        if packed:
            binary.close()
        raw.flush()
        if stat.S_ISREG(os.fstat(raw.fileno()).st_mode):  # a pipe has no disk behind it
            os.fsync(raw.fileno())
