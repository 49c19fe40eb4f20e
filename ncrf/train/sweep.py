"""Sweeps: what is missing of a grid of runs is trained, and every finished run recorded at once."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ncrf.errors import InputError, NcrfError
from ncrf.train.sweep_grid import Run, base_config, complete
from ncrf.train.sweep_identity import content_change, folder_standing, has_test_score, key_change
from ncrf.train.sweep_process import Child, score_command, train_command
from ncrf.train.sweep_results import (
    Record,
    append_result,
    locked,
    needs_test_score,
    read_results,
    record_of,
)

logger = logging.getLogger(__name__)

_PAUSE = 0.1  # seconds between two looks at the processes


@dataclass(frozen=True)
class Outcome:
    """How a run ended: with a record, or with an error's line; ``left`` runs are not done yet."""

    run: Run
    record: Record | None
    error: str
    left: int


@dataclass(frozen=True)
class _Task:
    """What is to be done for a run; ``whole`` says that its process is the whole training."""

    run: Run
    command: list[str] | None
    whole: bool = False


def run_sweep(
    runs: Sequence[Run],
    *,
    jobs: int = 1,
    retrain: bool = False,
    report: Callable[[Outcome], None],
) -> None:
    """Train the runs that are not finished, ``jobs`` at a time; ``report`` hears of each one.

    Each finished run is recorded in ``results.jsonl`` before it is reported; a failed one does
    not stop the others. With several jobs each training has one thread, unless its config says
    otherwise. Raises InputError, before anything is trained, where a run was trained with other
    values or files, unless ``retrain``, and where another sweep has a folder. KeyboardInterrupt
    ends the trainings in good order.
    """
    if jobs > 1:
        runs = [_with_one_thread(run) for run in runs]
    with ExitStack() as stack:
        for folder in dict.fromkeys(run.row.folder for run in runs):
            stack.enter_context(locked(folder))
        tasks = _tasks(runs, retrain=retrain)
        done = len(runs) - len(tasks)
        runs_word = "run" if len(runs) == 1 else "runs"
        logger.info("%d %s: %d finished before, %d to do", len(runs), runs_word, done, len(tasks))
        _Processes(jobs, report).work(tasks)


def current_records(folder: Path, config_file: str) -> list[Record]:
    """The records of a sweep's folder that the config, as it is now, would give.

    The others are said in the log: a table is to hold what can be compared.
    """
    base, current, strange = base_config(config_file), [], dict[str, str]()
    for record in read_results(folder).values():
        given = {key: str(text) for key, text in record["settings"].items()}
        try:
            run = complete(base, config_file, folder, given, str(record["seed"]))
            change = key_change(record, run) or content_change(record, run)
        except InputError as error:
            change = error.what
        if change is None:
            current.append({**record, "config": config_file})  # however it was named then
        else:
            strange[record["run"]] = change
    if strange:
        name, change = next(iter(strange.items()))
        count = f"{len(strange)} runs were" if len(strange) > 1 else "1 run was"
        logger.warning(
            "%s: %s trained with another config and left out of the table: %s: %s",
            *(folder, count, name, change),
        )
    return current


def _with_one_thread(run: Run) -> Run:
    return run if run.config.run.threads else Run(run.row, run.config.replace(threads=1))


def _tasks(runs: Sequence[Run], *, retrain: bool) -> list[_Task]:
    """What is to be done, in the order of the runs; InputError for runs that have changed."""
    tasks, changed = [], []
    records = {run.row.folder: read_results(run.row.folder) for run in runs}
    for run in runs:
        task, change = _task(run, records[run.row.folder])
        if change is not None:
            changed.append((run, change))
        if task is not None:
            tasks.append(task)
    if changed and not retrain:
        run, change = changed[0]
        more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
        raise InputError(
            f"was trained otherwise{more}: {change}",
            file=run.model_dir,
            remedy="--out FOLDER keeps both, --retrain replaces what was trained otherwise",
        )
    return tasks


def _task(run: Run, records: Mapping[str, Record]) -> tuple[_Task | None, str | None]:
    """What is to be done for a run, None if nothing, and how it was trained otherwise, if it was.

    The task for such a run is to train it anew.
    """
    record = records.get(run.name)
    keys = None if record is None else key_change(record, run)
    content = None if record is None else content_change(record, run)
    if record is not None and keys is content is None and has_test_score(record, run):
        return None, None
    state, difference = folder_standing(run)
    fits = difference is None
    if state == "unfinished" and fits:
        return _Task(run, train_command(run, overwrite=False)), content
    if state == "finished" and fits and content is None:
        again = record is not None and keys is None  # there is another test corpus now
        needed = again or needs_test_score(run)
        return _Task(run, score_command(run) if needed else None), None
    change = keys or content or difference
    if change is None and record is not None and state == "absent":
        change = "it was not scored on test_dir, and its model is gone"
    anew = train_command(run, overwrite=change is not None)
    return _Task(run, anew, whole=True), change


class _Processes:
    """Works off tasks in several processes at a time."""

    def __init__(self, jobs: int, report: Callable[[Outcome], None]) -> None:
        self._jobs = jobs
        self._report = report
        self._running: list[tuple[_Task, Child]] = []
        self._left = 0

    def work(self, tasks: Sequence[_Task]) -> None:
        """Do all tasks; processes that still run when this is left were interrupted."""
        waiting, self._left = deque(tasks), len(tasks)
        try:
            while waiting or self._running:
                while waiting and len(self._running) < self._jobs:
                    self._begin(waiting.popleft())
                if not self._bury():
                    time.sleep(_PAUSE)
        finally:
            self._stop()

    def _begin(self, task: _Task) -> None:
        if task.command is None:
            logger.info("%s was trained before, and is recorded", task.run.model_dir)
            self._record(task, None)
            return
        try:
            child = Child(task.run, task.command)
        except NcrfError as error:
            self._ended(task, None, str(error))
            return
        self._running.append((task, child))
        what = "training" if task.command[0] == "train" else "scoring"
        logger.info("%s %s, log in %s", what, task.run.model_dir, task.run.log.name)

    def _bury(self) -> bool:
        """Report what has ended; whether anything has."""
        ended = [(task, child) for task, child in self._running if child.ended() is not None]
        for pair in ended:
            self._running.remove(pair)
            task, child = pair
            if child.ended() == 0:
                self._record(task, child.seconds if task.whole else None)
            else:
                self._ended(task, None, child.last_line())
        return bool(ended)

    def _record(self, task: _Task, wall_seconds: float | None) -> None:
        try:
            record = record_of(task.run, wall_seconds)
        except InputError as error:
            self._ended(task, None, str(error))
            return
        append_result(task.run.row.folder, record)
        self._ended(task, record)

    def _ended(self, task: _Task, record: Record | None, error: str = "") -> None:
        self._left -= 1
        self._report(Outcome(task.run, record, error, self._left))

    def _stop(self) -> None:
        """End what runs, as Ctrl-C ends a training: what was learned is written first."""
        if not self._running:
            return
        logger.info("ending %d trainings; Ctrl-C again kills them", len(self._running))
        try:
            for _, child in self._running:
                child.interrupt()
            while any(child.ended() is None for _, child in self._running):
                time.sleep(_PAUSE)
        except KeyboardInterrupt:
            for _, child in self._running:
                child.kill()
        for task, child in self._running:
            if child.ended() == 0:  # it was done before it heard of it
                self._record(task, child.seconds if task.whole else None)
