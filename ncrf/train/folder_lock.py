"""One training at a time in a model folder: a lock that says whose it is.

``lock.json`` stands in the folder while a training runs. It names process and machine, so that a
second training can say whom it would disturb, and so that a lock whose training was killed is
recognized: its process is gone, or its number belongs to another process by now, or the machine
was started anew. Whether a process of another machine still runs cannot be told from here.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

from ncrf.data.output_files import make_folder, reason, remove_empty, write_file
from ncrf.errors import InputError, NcrfError

logger = logging.getLogger(__name__)

LOCK = "lock.json"
_MOST_BYTES = 1 << 16
_held: set[str] = set()  # the locks of this process's own trainings, in whatever thread
_guard = threading.RLock()  # between threads, what flock is between processes


@dataclass(frozen=True)
class Owner:
    """A process, told from all others: ``began`` is its start time in ticks of its machine.

    ``machine`` changes when the machine starts, and is another one inside a container.
    """

    pid: int
    host: str
    machine: str
    began: str
    since: str

    @classmethod
    def this(cls) -> Owner:
        """The process that runs this code."""
        pid = os.getpid()
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        return cls(pid, socket.gethostname(), _machine(), _start_of(pid) or "", since)


@contextmanager
def held(folder: Path, check: Callable[[], None]) -> Iterator[None]:
    """Have a model folder to oneself; ``check`` says, by an error, that it cannot be used.

    The folder is made if it is missing, and goes again if nothing came into it. Raises
    InputError where another training has it, NcrfError where the lock cannot be written.
    """
    refuse_locked(folder)
    check()
    path, made = folder / LOCK, list[Path]()
    try:
        with _guard:
            _acquire(path, made)
        try:
            check()  # again: another training may have come and gone
            yield
        finally:
            _release(path)
    finally:
        remove_empty(made)


def refuse_locked(folder: Path) -> None:
    """InputError if a training has a folder, or may have it; touches nothing."""
    path = folder / LOCK
    owner = _owner(path)
    if owner is None:
        return
    whose = f"the training of process {owner.pid}"
    since = f"since {owner.since}"
    runs = _runs(owner, path)
    if runs is None:
        raise InputError(
            f"is in use by {whose} on {owner.host}, {since}",
            file=folder,
            remedy=f"if it does not run any more, remove {path}",
        )
    if runs:
        here = " (this one)" if owner.pid == os.getpid() else ""
        raise InputError(
            f"is in use by {whose}{here}, {since}",
            file=folder,
            remedy="wait for it, or name another model_dir",
        )


def _acquire(path: Path, made: list[Path]) -> None:
    """Write a lock of this process; of several at once, one comes first.

    Folders that had to be made are added to ``made``.
    """
    while True:
        number = _opened(path, made)
        try:
            with suppress(OSError):  # not every file system has it
                fcntl.flock(number, fcntl.LOCK_EX)
            if not _is_open_as(number, path):
                continue  # another one was first, and wrote a new file or removed its own
            refuse_locked(path.parent)
            stale = _owner(path)
            if stale is not None:
                logger.info("the lock of process %d, which is gone, is taken over", stale.pid)
            _held.add(os.path.realpath(path))
            try:
                write_file(path, json.dumps(asdict(Owner.this())).encode("ascii"))
            except BaseException:
                _release(path)
                raise
            return
        finally:
            os.close(number)


def _opened(path: Path, made: list[Path]) -> int:
    """The lock's file, opened; an empty one is made if there is none."""
    while True:
        try:
            made[:0] = make_folder(path.parent)
        except OSError as error:
            raise NcrfError(f"{path.parent}: cannot be made: {reason(error)}") from error
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            continue  # another training that made the folder has just removed it
        except OSError as error:
            raise NcrfError(f"{path}: cannot be written: {reason(error)}") from error


def _release(path: Path) -> None:
    """Remove the lock, unless somebody took it for stale and has it now."""
    with _guard:
        with suppress(OSError, InputError):
            owner = _owner(path)
            if owner is None or owner.pid == os.getpid():
                path.unlink(missing_ok=True)
        _held.discard(os.path.realpath(path))


def _is_open_as(number: int, path: Path) -> bool:
    """Whether an open file is the one that has this name now."""
    with suppress(OSError):
        return os.path.samestat(os.fstat(number), os.stat(path))
    return False


def _owner(path: Path) -> Owner | None:
    """Whose lock this is; None if there is none, or an empty one, which was never finished.

    Raises InputError for one that cannot be understood.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(_MOST_BYTES)
        if not content:
            return None
        owner = Owner(**json.loads(content))
        pid, *texts = astuple(owner)
        if type(pid) is not int or pid < 1 or not all(isinstance(text, str) for text in texts):
            raise ValueError("no process")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"cannot be read: {reason(error)}", file=path) from error
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(
            "is no lock of ncrf", file=path, remedy="if no training runs here, remove it"
        ) from error
    return owner


def _runs(owner: Owner, path: Path) -> bool | None:
    """Whether the owner of a lock still runs; None where that cannot be told from here."""
    if owner.host != socket.gethostname():
        return None
    if owner.machine != _machine():
        # Started anew, all processes of before are gone; in another container they may run.
        return None if owner.machine.split()[:1] == _machine().split()[:1] else False
    if owner.pid == os.getpid() and owner.began == (_start_of(owner.pid) or ""):
        with _guard:
            return os.path.realpath(path) in _held
    try:
        os.kill(owner.pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # another user's
    began = _start_of(owner.pid)
    return began is None or began == owner.began


def _machine() -> str:
    """What changes when the machine starts, and what is another one in every container."""
    parts = []
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def _start_of(pid: int) -> str | None:
    """When a process began, in ticks since the machine did; None where the system does not say.

    A process that has ended and is not yet buried began ``never``.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    state, *fields = stat[stat.rindex(b")") + 1 :].split()  # a name may hold spaces and brackets
    return "never" if state in (b"Z", b"X", b"x") else fields[18].decode("ascii")
