"""Commands in processes that a sweep starts: they end with it, however it ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress

from ncrf.errors import ConfigError

_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)


def main() -> int:
    """Run ``PARENT COMMAND ...``: a command of ncrf for the process PARENT."""
    parent, *arguments = sys.argv[1:]
    _end_with(int(parent))
    from ncrf.cli import main as run_command

    return run_command(arguments)


def _end_with(parent: int) -> None:
    """Have the system kill this process when its parent ends; without Linux nothing happens.

    What a training loses by it is the epoch under way: its folder is always whole.
    """
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):  # a C library without it
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that
        raise SystemExit(1)


def record_test(arguments: list[str]) -> int:
    """Score a finished model on a labelled file, and note that in its ``history.jsonl``."""
    if len(arguments) != 3:
        raise ConfigError("record-test is for sweeps", remedy="ncrf sweep")
    model, test, plugins = arguments
    from ncrf.cli.run import imports
    from ncrf.config import import_plugins

    import_plugins(plugins)
    with imports():
        from ncrf.train.late_score import score_late
    score_late(model, test)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
