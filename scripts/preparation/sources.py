"""Distributed files: in a folder, packed with gzip, or members of a zip archive."""

from __future__ import annotations

import gzip
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO

from ncrf.data.text_files import BOM
from ncrf.errors import InputError

_UNREADABLE = (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError)


@dataclass(frozen=True)
class SourceFile:
    """A file that was distributed: its name for messages, and the way to its bytes, unpacked."""

    name: str
    open: Callable[[], IO[bytes]]

    @property
    def base(self) -> str:
        """The file's own name, without folder, archive and ``.gz``."""
        return self.name.rsplit("/", 1)[-1].removesuffix(".gz")

    def lines(self, encoding: str = "utf-8") -> Iterator[str]:
        """Yield the lines without their ends (LF or CRLF) and without a byte order mark.

        Raises InputError, with file and line, for bytes that are not of the encoding, and for a
        file that cannot be unpacked.
        """
        try:
            with closing(self.open()) as stream:
                for number, line in enumerate(stream, 1):
                    if number == 1:
                        line = line.removeprefix(BOM)
                    yield self._decoded(line, number, encoding).rstrip("\r\n")
        except _UNREADABLE as error:
            raise InputError(f"cannot be read: {error}", file=self.name) from error

    def copy(self, target: IO[bytes]) -> None:
        """Copy the bytes, unpacked; InputError for a file that cannot be unpacked."""
        try:
            with closing(self.open()) as stream:
                shutil.copyfileobj(stream, target)
        except _UNREADABLE as error:
            raise InputError(f"cannot be read: {error}", file=self.name) from error

    def _decoded(self, line: bytes, number: int, encoding: str) -> str:
        try:
            return line.decode(encoding)
        except UnicodeDecodeError as error:
            raise InputError(
                f"byte 0x{line[error.start]:02x} is not {encoding}",
                file=self.name,
                line=number,
                remedy="give its encoding, as in --encoding latin-1",
            ) from None


def listed(source: Path) -> list[SourceFile]:
    """The files of a folder (and of the folders in it, one deep), of a zip archive, or one file.

    Raises InputError where there is nothing of the kind.
    """
    if source.is_dir():
        paths = sorted(p for p in [*source.iterdir(), *source.glob("*/*")] if p.is_file())
        return [_plain(path) for path in paths if not path.name.startswith(".")]
    if not source.is_file():
        raise InputError("no such file or folder", file=source, remedy="check the path")
    if source.suffix == ".zip":
        return _members(source)
    return [_plain(source)]


def find(source: Path, patterns: Sequence[str], what: str) -> SourceFile:
    """The one file that fits a pattern; an earlier pattern goes before a later one.

    Patterns are those of shells, for the file's own name; ``.gz`` is looked for by itself. The
    files of a folder go before those in zip archives that lie in it.
    Raises InputError where no file fits, or several fit one pattern.
    """
    found = find_optional(source, patterns)
    if found is None:
        raise InputError(
            f"there is no {patterns[0]} in it", file=source, remedy=f"SOURCE holds {what}"
        )
    return found


def find_optional(source: Path, patterns: Sequence[str]) -> SourceFile | None:
    """As ``find``, and None where no file fits."""
    for files in _places(source):
        for pattern in patterns:
            fitting = [file for file in files if fnmatchcase(file.base, pattern)]
            if len(fitting) > 1:
                names = " and ".join(file.name for file in fitting[:2])
                raise InputError(
                    f"{names} both fit {pattern}", file=source, remedy="a folder with one of them"
                )
            if fitting:
                return fitting[0]
    return None


def _places(source: Path) -> Iterator[list[SourceFile]]:
    """What lies in the source as it is; then, in a folder, what its zip archives hold."""
    yield listed(source)
    if source.is_dir():
        for archive in sorted(source.glob("*.zip")):
            yield _members(archive)


def _plain(path: Path) -> SourceFile:
    if path.suffix == ".gz":
        return SourceFile(str(path), lambda: gzip.open(path, "rb"))  # type: ignore[return-value]
    return SourceFile(str(path), lambda: open(path, "rb"))


def _members(archive: Path) -> list[SourceFile]:
    """The files of a zip archive; nothing of it is written anywhere."""

    def member(name: str) -> SourceFile:
        def opened() -> IO[bytes]:
            with zipfile.ZipFile(archive) as packed:  # the member keeps the file open
                return packed.open(name)

        return SourceFile(f"{archive}/{name}", opened)

    try:
        with zipfile.ZipFile(archive) as packed:
            names = [info.filename for info in packed.infolist() if not info.is_dir()]
    except _UNREADABLE as error:
        raise InputError(f"cannot be read: {error}", file=archive) from error
    return [member(name) for name in names if not name.startswith("__MACOSX/")]
