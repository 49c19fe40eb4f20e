"""The model folder in training: what is there, what resume needs, and when it is written.

``training/`` stands only while a training is unfinished. It holds the state that ``resume`` needs,
as one file and so always that of one moment, and the description of the model in the making. The
model itself comes into the folder when an epoch is the best: until then, an older model in the
folder is whole and in use.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncrf.config import Config
from ncrf.data.output_files import TEMPORARY, flush_folder, reason, temporary_name
from ncrf.data.vocabulary import Vocabulary
from ncrf.errors import InputError, NcrfError
from ncrf.model.description import kept_epoch
from ncrf.model.folder import (
    ALPHABETS,
    CONFIG,
    DESCRIPTION,
    HISTORY,
    TEMPLATE_ARRAYS,
    TEMPLATES,
    TRAINING,
    VECTORS,
    WEIGHTS,
    description_files,
    has,
    read_file,
    tensor_bytes,
)
from ncrf.model.manifest import MANIFEST, WAITING, Checksum, manifest_of, names_of, update, waiting
from ncrf.train.folder_lock import LOCK

if TYPE_CHECKING:  # late: what is in a folder is seen without torch
    from torch import Tensor

_STATE = "state.safetensors"
STATE = f"{TRAINING}/{_STATE}"
_OWN = {*DESCRIPTION, WEIGHTS, HISTORY, TRAINING, VECTORS, MANIFEST}


def folder_state(folder: Path) -> str:
    """``absent``, ``unfinished``, ``finished`` or ``foreign``: what training finds there."""
    if not folder.exists():
        return "absent"
    if not folder.is_dir():
        return "foreign"
    try:
        names = _names(folder)
    except OSError as error:
        raise InputError(f"cannot be read: {reason(error)}", file=folder) from error
    if not names:
        return "absent"
    if not names <= _OWN:
        return "foreign"
    if TRAINING in names:
        return "unfinished"
    return "finished" if {CONFIG, ALPHABETS, WEIGHTS} <= names else "foreign"


def _names(folder: Path) -> set[str]:
    """The names in a folder, but for those of a lock and of files that were never finished."""
    names = {entry.name for entry in folder.iterdir()}
    with suppress(InputError):  # a damaged manifest names no files
        names |= names_of(folder)
    return {name for name in names - {LOCK} if not _is_unfinished(name)}


def _is_unfinished(name: str) -> bool:
    return name.startswith(".") and name.endswith((TEMPORARY, WAITING))


def check_folder(folder: Path, *, resume: bool, overwrite: bool) -> None:
    """Refuse to train into a folder whose content would be lost; contract of the model folder.

    Raises InputError; touches nothing.
    """
    _refuse_place(folder)
    state = folder_state(folder)
    if state == "foreign":
        raise InputError(
            "is not a model folder and not empty", file=folder, remedy="name another model_dir"
        )
    if state == "unfinished" and not (resume or overwrite):
        raise InputError(
            "holds an unfinished training",
            file=folder,
            remedy="resume=True goes on with it, overwrite=True starts anew",
        )
    if state == "finished" and not overwrite:
        raise InputError("holds a finished model", file=folder, remedy="overwrite=True replaces it")


def _refuse_place(folder: Path) -> None:
    """InputError for a folder that cannot be made: for a file in its path, or its name."""
    try:
        folder.exists()
        there = next((parent for parent in folder.absolute().parents if parent.exists()), None)
    except OSError as error:
        raise InputError(f"cannot be made: {reason(error)}", file=folder) from error
    if there is not None and not there.is_dir():
        raise InputError("cannot be made: a file is in the way", file=folder)


def begin(folder: Path, config: Config, vocabulary: Vocabulary) -> None:
    """Mark a folder as an unfinished training and describe its model; drops an older attempt."""
    new = folder / temporary_name(TRAINING)
    try:
        _sweep(folder)
        new.mkdir(parents=True)
        update(new, description_files(config, vocabulary))
        _remove_training(folder)
        os.replace(new, folder / TRAINING)
        flush_folder(folder)
    except OSError as error:
        raise NcrfError(f"{folder}: cannot be made: {reason(error)}") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Remove what killed trainings left half-written, and a manifest that is damaged.

    Whoever overwrites a model does not need its manifest, and without it nothing holds for it.
    """
    if not folder.is_dir():
        return
    for entry in folder.iterdir():
        if entry.name.startswith(".") and entry.name.endswith(TEMPORARY):
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
    try:
        manifest_of(folder)
    except InputError:
        for name in (MANIFEST, waiting(MANIFEST)):
            (folder / name).unlink(missing_ok=True)


def can_resume(folder: Path) -> bool:
    """Whether a training in this folder has come so far that it can go on from there."""
    return (folder / TRAINING).is_dir() and has(folder / TRAINING, _STATE)


def describe_again(folder: Path, config: Config, vocabulary: Vocabulary) -> None:
    """Note that an unfinished training goes on with other values of keys that may change."""
    for part in (folder, folder / TRAINING):
        if manifest_of(part) is None:  # an older program began it
            names = sorted(names_of(part) & {*_OWN, _STATE})
            if names:
                update(part, {name: read_file(part / name) for name in names})
    update(folder / TRAINING, description_files(config, vocabulary))


def publish(
    folder: Path,
    weights: Mapping[str, Tensor] | None = None,
    history: list[dict[str, Any]] | None = None,
    description: Mapping[str, bytes] | None = None,
) -> None:
    """Make the model of this training, with new ``weights``, the model of the folder, in one step.

    ``description``: the files that describe it, if they are not those in ``training/``. What
    another training left in the folder, its history and stored vectors, and templates where this
    one has none, goes in the same step.
    """
    files = dict(_described(folder) if description is None else description)
    before = manifest_of(folder)
    known = before.files if before else {}
    same = all(known.get(name) == Checksum.of(content) for name, content in files.items())
    drop = set() if same else {HISTORY, VECTORS, TEMPLATES, TEMPLATE_ARRAYS}
    if history is not None:
        files[HISTORY] = _lines(history)
    if weights is not None:
        files[WEIGHTS] = tensor_bytes(weights)  # last: without them a new folder has no model yet
    update(folder, files, drop=drop - set(files))


def _described(folder: Path) -> dict[str, bytes]:
    """The files in ``training/`` that describe the model in the making."""
    training = folder / TRAINING
    there = names_of(training) | {CONFIG, ALPHABETS}
    return {name: read_file(training / name) for name in DESCRIPTION if name in there}


def finish(folder: Path, vectors: bytes | None) -> None:
    """Store vectors, if there are any, and remove what only an unfinished training needs."""
    update(folder, {} if vectors is None else {VECTORS: vectors}, drop=() if vectors else [VECTORS])
    try:
        _remove_training(folder)
    except OSError as error:
        raise NcrfError(f"{folder / TRAINING}: cannot be removed: {reason(error)}") from error


def _remove_training(folder: Path) -> None:
    """Remove ``training/``, as a whole in one moment. Raises OSError."""
    with suppress(FileNotFoundError):
        old = folder / temporary_name(TRAINING)
        os.replace(folder / TRAINING, old)
        flush_folder(folder)
        shutil.rmtree(old, ignore_errors=True)


def write_history(folder: Path, history: list[dict[str, Any]]) -> None:
    """Write ``history.jsonl``, one object an epoch."""
    update(folder, {HISTORY: _lines(history)})


def record_test(folder: Path, scores: Mapping[str, float]) -> None:
    """Note the score of the test corpus in ``history.jsonl``, with the epoch that was kept."""
    history = [json.loads(line) for line in read_file(folder / HISTORY).splitlines()]
    for entry in history:
        entry.pop("test", None)
    kept_epoch(history)["test"] = dict(scores)
    write_history(folder, history)


def _lines(history: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(epoch) + "\n" for epoch in history).encode("ascii")
