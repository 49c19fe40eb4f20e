"""What a sweep knows of its runs: ``results.jsonl``, and model folders that it has not recorded.

``results.jsonl`` has one object for each finished run; a run that was trained again has a later
line, which counts. Lines are only ever added, each in one write that is flushed to the disk. A last
line that a kill left half-written is passed over and its run recorded again from its folder.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ncrf import __version__
from ncrf.data.output_files import make_folder, reason
from ncrf.errors import InputError, NcrfError
from ncrf.model.description import kept_epoch, read_history
from ncrf.model.folder import HISTORY
from ncrf.train.machine import machine_in_words
from ncrf.train.sweep_grid import Run
from ncrf.train.sweep_identity import contents, identity, is_tested
from ncrf.train.sweep_process import was_trained_here

RESULTS = "results.jsonl"
_LOCK = ".sweep.lock"

Record = dict[str, Any]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Have a sweep's folder to oneself; InputError if another sweep has it. Ends with the process.

    The folder is made if it is missing.
    """
    try:
        make_folder(folder)
        number = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise NcrfError(f"{folder}: cannot be made: {reason(error)}") from error
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                "another sweep runs here", file=folder, remedy="wait for it, or name another --out"
            ) from error
        except OSError:
            pass  # not every file system has it
        yield
    finally:
        os.close(number)


def read_results(folder: Path) -> dict[str, Record]:
    """The last record of each run in a sweep's folder, by name; InputError for a damaged line."""
    path = folder / RESULTS
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"cannot be read: {reason(error)}", file=path) from error
    records: dict[str, Record] = {}
    lines = content[: _end_of_lines(content)].splitlines()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            _check(record)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(
                "is no result of a run",
                file=path,
                line=number,
                remedy="remove the line; its run is recorded again from its folder, or trained",
            ) from error
        records[record["run"]] = record
    return records


def _check(record: Any) -> None:
    """Raise one of many errors for what is no record of this program."""
    texts = [record[name] for name in ("run", "config")]
    numbers = [record[name] for name in ("seed", "best_epoch", "epochs", "seconds")]
    for scores in filter(None, (record["dev"], record["test"])):
        numbers += [scores[name] for name in ("precision", "recall", "f1", "accuracy")]
    for mapping in ("settings", "keys", "files"):
        record[mapping].items()
    if not all(isinstance(text, str) for text in texts):
        raise TypeError
    if not all(type(number) in (int, float) for number in numbers):
        raise TypeError


def append_result(folder: Path, record: Mapping[str, Any]) -> None:
    """Add a record to ``results.jsonl``; it is on the disk when this returns."""
    path = folder / RESULTS
    line = json.dumps(record).encode("ascii") + b"\n"
    try:
        number = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            end = os.fstat(number).st_size
            if end and os.pread(number, 1, end - 1) != b"\n":
                os.ftruncate(number, _end_of_lines(path.read_bytes()))
            _write(number, line)
            os.fsync(number)
        finally:
            os.close(number)
    except OSError as error:
        raise NcrfError(f"{path}: cannot be written: {reason(error)}") from error


def _end_of_lines(content: bytes) -> int:
    """Where the last whole line ends."""
    return content.rfind(b"\n") + 1


def _write(number: int, line: bytes) -> None:
    while line:
        line = line[os.write(number, line) :]


def record_of(run: Run, wall_seconds: float | None) -> Record:
    """The record of a run whose model folder is finished.

    ``wall_seconds`` is how long its process took from start to end, None if it was not one
    process. A folder that the sweep has not trained itself has no machine. Raises InputError
    for a folder that does not say how its training went.
    """
    history = read_history(run.model_dir / HISTORY)
    if not history:
        raise InputError("has no history of its training", file=run.model_dir)
    kept = kept_epoch(history)
    return {
        "run": run.name,
        "config": run.row.config_file,
        "settings": run.settings,
        "seed": run.seed,
        "best_epoch": kept["epoch"],
        "epochs": len(history),
        "dev": kept.get("dev"),
        "test": kept.get("test") if run.config.files.test_dir else None,
        "seconds": round(sum(entry["seconds"] for entry in history), 1),
        "wall_seconds": None if wall_seconds is None else round(wall_seconds, 1),
        "machine": machine_in_words(run.config) if was_trained_here(run.log) else None,
        "version": __version__,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "keys": identity(run.config),
        "files": contents(run.config),
    }


def needs_test_score(run: Run) -> bool:
    """Whether the finished model of a run has yet to be scored on the test corpus."""
    if run.config.files.test_dir is None:
        return False
    history = read_history(run.model_dir / HISTORY)
    return bool(history) and not (kept_epoch(history).get("test") and is_tested(run))
