"""A folder that keeps what was made of other files, found again by their content.

It holds, for each content, ``DIGEST.safetensors`` and, for each path, a record in JSON: the
digest that its content had, and size, times and inode then. A file whose state is still the
recorded one need not be read. Any other is digested, so that a copy, or a file that was only
touched, finds what is kept of its content, and a changed one does not.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple

from ncrf.errors import InputError

FORMAT = b"ncrf cache 1"  # part of every digest: another format finds nothing of this one
SETTLED = 2_000_000_000  # nanoseconds; of a file changed later, a second change may not show
STALE = 86_400  # seconds; an unfinished file older than this was left by a killed process
BLOCK_BYTES = 1 << 18
# What tells backups and git to leave the folder alone. Source: https://bford.info/cachedir/
MARKS = {
    "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n",
    ".gitignore": "*\n",
}


class FileState(NamedTuple):
    """What changes with a file. ``ctime_ns`` does so even where the mtime is set back."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


def file_state(path: str | Path) -> FileState:
    """Return the state of a file; -1 everywhere if it cannot be looked at."""
    try:
        found = os.stat(path)
    except OSError:
        return FileState(-1, -1, -1, -1)
    return FileState(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def changed_file(path: str | Path) -> InputError:
    """Return the error for a file that is not what it was when it was first looked at."""
    return InputError("the file was changed while it was in use", file=path, remedy="start again")


@dataclass(frozen=True)
class SourceFile:
    """A file of which something is kept: its name, and its state at a time."""

    name: str | Path
    path: Path
    state: FileState
    seen_ns: int = field(default_factory=time.time_ns)

    @classmethod
    def at(cls, name: str | Path) -> SourceFile:
        """Look at a file; links are followed."""
        path = Path(os.path.realpath(name))
        seen_ns = time.time_ns()
        return cls(name, path, file_state(path), seen_ns)

    @cached_property
    def digest(self) -> str:
        """A hash of the content, and of the ending that says whether it is packed."""
        packed = b".gz" if str(self.name).endswith(".gz") else b""
        digest = hashlib.blake2b(digest_size=16, person=FORMAT, salt=packed)
        try:
            with open(self.path, "rb", buffering=0) as file:
                while block := file.read(BLOCK_BYTES):
                    digest.update(block)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file=self.name) from error
        return digest.hexdigest()

    def refuse_change(self) -> None:
        """InputError if the file is not what it was when it was looked at."""
        if file_state(self.path) != self.state:
            raise changed_file(self.name)


class CacheFolder:
    """One such folder. Files come into it whole or not at all, whoever else writes there."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def kept(self, digest: str) -> Path:
        """Where that is which was made of a content."""
        return self.path / f"{digest}.safetensors"

    def recorded(self, source: SourceFile) -> str | None:
        """The digest of a file, if its state is the one it had when the digest was taken.

        None also where it had been changed so shortly before that a later change may not show.
        """
        record = _read_record(self._record(source))
        if record.get("state") != list(source.state):
            return None
        settled = source.state.ctime_ns + SETTLED < record.get("seen_ns", 0)
        return str(record.get("digest")) if settled else None

    def record(self, source: SourceFile) -> None:
        """Note state and digest of a file; OSError where the folder cannot be written."""
        content = {
            "path": os.fspath(source.path),
            "state": source.state,
            "seen_ns": source.seen_ns,
            "digest": source.digest,
        }
        place = self._record(source)
        before = _read_record(place).get("digest")
        with self.replacing(place) as file:
            file.write(json.dumps(content).encode("ascii"))
        if before is not None and before != source.digest:
            self._drop(str(before))

    def prepare(self) -> None:
        """Make the folder, or tidy up in it; OSError where it cannot be written."""
        if not self.path.is_dir():
            self.path.mkdir(parents=True, exist_ok=True)
            for name, text in MARKS.items():
                (self.path / name).write_text(text, encoding="ascii")
        for left in self.path.glob("*.tmp"):
            with suppress(OSError):  # somebody else tidies up as well
                if left.stat().st_mtime + STALE < time.time():
                    left.unlink()

    @contextmanager
    def replacing(self, target: Path) -> Iterator[IO[bytes]]:
        """Open a file that takes its place in the folder when it is complete.

        It is not forced onto the disk: readers find out what a crash has made of it.
        """
        name = f"{target.name}.{os.getpid()}.{threading.get_ident()}.tmp"
        temporary = target.with_name(name)
        try:
            with open(temporary, "wb") as file:
                yield file
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)

    def _record(self, source: SourceFile) -> Path:
        name = hashlib.blake2b(os.fsencode(source.path), digest_size=8).hexdigest()
        return self.path / f"{name}.json"

    def _drop(self, digest: str) -> None:
        """Remove what no file's content is any more."""
        if all(_read_record(path).get("digest") != digest for path in self.path.glob("*.json")):
            with suppress(OSError):
                self.kept(digest).unlink()


def _read_record(path: Path) -> dict[str, Any]:
    """A record, empty where there is none or it is damaged."""
    try:
        record = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) and isinstance(record.get("seen_ns"), int) else {}
