"""One training of a sweep in a process of its own, whose log lies beside its model folder."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ncrf.data.output_files import make_folder, reason
from ncrf.errors import NcrfError, printable
from ncrf.train.sweep_grid import Run

_MOST_READ = 1 << 16  # bytes from the end of a log
_ATTEMPT = b"--- "  # begins the line of a log before what an attempt said
_MOST_SHOWN = 500  # characters of an error's line


def train_command(run: Run, *, overwrite: bool) -> list[str]:
    """The command that trains a run; it goes on with what is there, unless it replaces it."""
    threads = run.config.run.threads
    return [
        "train",
        run.row.config_file,
        *run.arguments,
        f"--model_dir={run.model_dir}",
        "--load_model_dir=",
        "--dset_dir=",
        f"--resume={not overwrite}",
        f"--overwrite={overwrite}",
        *([] if threads is None else [f"--threads={threads}"]),
    ]


def score_command(run: Run) -> list[str]:
    """The command that scores a run's finished model on the test corpus and notes it there."""
    plugins = ",".join(run.config.run.plugins)
    return ["record-test", str(run.model_dir), str(run.config.files.test_dir), plugins]


def was_trained_here(log: Path) -> bool:
    """Whether a run's log tells of a training; another model was moved into its place."""
    try:
        with open(log, "rb") as file:
            return any(line.startswith(_ATTEMPT) and b": ncrf train " in line for line in file)
    except OSError:
        return False


class Child:
    """A running command of ncrf. It ends when this process does, whatever ends it (on Linux)."""

    def __init__(self, run: Run, command: Sequence[str]) -> None:
        """Start it; what it says is added to the run's log. Raises NcrfError."""
        self.run = run
        self._began = time.monotonic()
        program = [sys.executable, "-m", "ncrf.cli.child", str(os.getpid())]
        try:
            make_folder(run.log.parent)
            with open(run.log, "ab") as log:
                when = time.strftime("%Y-%m-%d %H:%M:%S")
                log.write(_ATTEMPT + f"{when}: ncrf {shlex.join(command)}\n".encode())
                log.flush()
                self._start = log.tell()
                self._process = subprocess.Popen(
                    [*program, *command],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=_environment(),
                    start_new_session=True,  # Ctrl-C reaches it from here alone
                )
        except OSError as error:
            raise NcrfError(f"{run.log}: cannot be started: {reason(error)}") from error

    @property
    def seconds(self) -> float:
        """How long ago it was started."""
        return time.monotonic() - self._began

    def ended(self) -> int | None:
        """Its exit status, None while it runs; minus the signal that killed it."""
        return self._process.poll()

    def interrupt(self) -> None:
        """Ask it to write what it has learned and to end, as Ctrl-C does."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """End it at once, and wait for that."""
        self._process.kill()
        self._process.wait()

    def last_line(self) -> str:
        """What it said last, which is its error if it failed."""
        status = self._process.returncode
        if status is not None and status < 0:
            with suppress(ValueError):
                return f"killed by signal {-status} ({signal.Signals(-status).name})"
        try:
            with open(self.run.log, "rb") as log:
                end = log.seek(0, os.SEEK_END)
                log.seek(max(self._start, end - _MOST_READ))
                lines = log.read().decode("utf-8", "replace").split("\n")
        except OSError:
            lines = []
        said = [line.strip() for line in lines if line.strip()]
        return printable(said[-1].removeprefix("ncrf: ")[:_MOST_SHOWN]) if said else "said nothing"


def _environment() -> dict[str, str]:
    """The environment of a child, in which it finds the same ncrf as this process."""
    root = str(Path(__file__).resolve().parents[2])
    environment = dict(os.environ)
    if root not in {sysconfig.get_paths()[name] for name in ("purelib", "platlib")}:
        given = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{root}{os.pathsep}{given}" if given else root
    return environment
