"""A disk that fails, or a process that dies, at any one of its file operations.

``Disk`` watches the operations that change files in a folder: opening for writing, each write,
fsync, rename, remove, making and removing folders. Python's own audit events tell of them, so that
none is overlooked, whatever code does it; writes and fsync, which have no event, are watched
where files are opened.
"""

import builtins
import errno
import io
import os
import resource
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

_EVENTS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "os.symlink"}
_listener = None
_hooked = False


def _hook(event, arguments):
    if _listener is not None:
        _listener(event, arguments)


@contextmanager
def events_go_to(listener):
    """Python's audit events of a ``with`` block go to a function, which may refuse by an error."""
    global _listener, _hooked
    if not _hooked:
        sys.addaudithook(_hook)  # for good: Python takes none back
        _hooked = True
    _listener = listener
    try:
        yield
    finally:
        _listener = None


class Disk:
    """Counts the operations below ``folder``; ``at`` is called with the number of each."""

    def __init__(self, folder: Path, at=lambda number, what: None) -> None:
        self.folder = os.path.realpath(folder)
        self.operations: list[str] = []
        self.unflushed: set[int] = set()
        self._at = at
        self._quiet = False

    @contextmanager
    def watched(self, monkeypatch):
        """Watch the operations of a ``with`` block; fsync itself is left out."""
        with monkeypatch.context() as patch, events_go_to(self._event):
            patch.setattr("ncrf.data.output_files.open", self._open, raising=False)
            patch.setattr(os, "fsync", self._fsync)
            yield self

    def _event(self, event, arguments):
        if self._quiet or (event != "open" and event not in _EVENTS):
            return
        if event == "open":
            path, _, flags = arguments
            if not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                return
        else:
            path = arguments[0]
        inside = isinstance(path, (str, os.PathLike)) and os.path.realpath(path).startswith(
            self.folder
        )
        relative = isinstance(path, str) and not os.path.isabs(path)  # to a folder that is open
        if inside or relative:
            if event == "os.rename" and os.path.isfile(path):
                assert os.stat(path).st_ino not in self.unflushed, f"{path} is not on the disk yet"
            self.operation(f"{event} {path}")

    def operation(self, what):
        number = len(self.operations)
        self.operations.append(what)
        quiet, self._quiet = self._quiet, True
        try:
            self._at(number, what)
        finally:
            self._quiet = quiet

    def _open(self, path, mode="r", *arguments, **keys):
        if "b" in mode and mode[0] in "wxa":
            return io.BufferedWriter(_WatchedFile(path, mode.replace("b", ""), self))
        return builtins.open(path, mode, *arguments, **keys)

    def _fsync(self, number):
        self.operation("fsync")
        self.unflushed.discard(os.fstat(number).st_ino)


class _WatchedFile(io.FileIO):
    """A file whose writes are operations of a disk; one that fails has written the half."""

    def __init__(self, path, mode, disk):
        super().__init__(path, mode)
        self.disk = disk

    def write(self, data):
        data = bytes(data)
        half = len(data) // 2
        self.disk.unflushed.add(os.fstat(self.fileno()).st_ino)
        super().write(data[:half])
        self.disk.operation(f"write {len(data)}")
        super().write(data[half:])
        return len(data)


def operations_of(work, folder, monkeypatch):
    """What a piece of work does to the files of a folder, one entry an operation."""
    with Disk(folder).watched(monkeypatch) as disk:
        work()
    return disk.operations


def crashes(work, folder, snapshots, monkeypatch):
    """The folder as it is when the work is cut off before each of its operations, and at the end.

    A process that is killed leaves behind what it has written so far, and that alone. Files are
    linked, which is quicker than to copy them: only temporary ones are ever written to again.
    """

    def copy(number, what):
        shutil.copytree(folder, snapshots / f"{number:04}", copy_function=os.link)

    with Disk(folder, copy).watched(monkeypatch) as disk:
        work()
    copy(len(disk.operations), "end")
    return sorted(snapshots.iterdir())


@contextmanager
def largest_file(size):
    """No file may grow beyond ``size`` bytes: what a full disk does, done by the system itself."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def failing(number, *, ever_after=False):
    """For a Disk: the disk is full at one operation, or from it on."""

    def fail(at, what):
        if at == number or (ever_after and at > number and not what.startswith("os.r")):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return fail
