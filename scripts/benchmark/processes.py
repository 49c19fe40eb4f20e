"""Programs run as a user runs them, each in a process of its own: its time, memory and lines.

Who measures must stay small: a new process begins with the memory of the one that starts it, and
the kernel counts that into its peak. So nothing here, nor in the programs that use it, imports
torch or numpy.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


class Failed(Exception):
    """A program that should have worked did not; the text ends with what it said last."""


@dataclass(frozen=True)
class Finished:
    """A program that has ended: exit status, seconds from start to end, and peak memory.

    ``lines`` are those of both outputs, each with the second at which it came; ``peak_mb`` is the
    largest resident memory of the process, in 10^6 bytes.
    """

    status: int
    seconds: float
    peak_mb: float
    lines: tuple[tuple[float, str], ...]

    @property
    def text(self) -> str:
        """All it printed."""
        return "\n".join(line for _, line in self.lines)


def run(
    command: Sequence[object], folder: Path, environment: Mapping[str, str] | None = None
) -> Finished:
    """Run a command in ``folder`` to its end; ``environment`` is added to that of this process."""
    given = {**os.environ, **(environment or {})}
    start = time.perf_counter()
    with subprocess.Popen(
        [str(word) for word in command],
        cwd=folder,
        env=given,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout is not None
        lines = [(time.perf_counter() - start, line.rstrip("\n")) for line in process.stdout]
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    # Linux counts in units of 1024 bytes.
    return Finished(process.returncode, seconds, usage.ru_maxrss * 1024 / 1e6, tuple(lines))


def run_well(
    command: Sequence[object], folder: Path, environment: Mapping[str, str] | None = None
) -> Finished:
    """Like ``run``; raises Failed for an exit status other than 0."""
    finished = run(command, folder, environment)
    if finished.status:
        raise failure(command, finished)
    return finished


def failure(command: Sequence[object], finished: Finished) -> Failed:
    """What to raise for a program that did not do its work."""
    last = "\n  ".join(line for _, line in finished.lines[-12:])
    shown = " ".join(str(word) for word in command)
    return Failed(f"{shown}\nended with status {finished.status}:\n  {last}")
