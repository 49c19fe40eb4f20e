"""The model folder in training: what is there, what resume needs, and when it is written.

``training/`` stands only while a training is unfinished. It holds the state that ``resume`` needs,
as one file and so always that of one moment, and the description of the model in the making. The
model itself moves out of it when an epoch is the best: until then, an older model in the folder is
whole and in use.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncrf.config import Config
from ncrf.data.output_files import write_file
from ncrf.data.vocabulary import Vocabulary
from ncrf.errors import InputError, NcrfError
from ncrf.model.folder import (
    ALPHABETS,
    CONFIG,
    HISTORY,
    TEMPLATE_ARRAYS,
    TEMPLATES,
    TRAINING,
    VECTORS,
    WEIGHTS,
    write_description,
    write_tensors,
)

if TYPE_CHECKING:  # late: what is in a folder is seen without torch
    from torch import Tensor

STATE = f"{TRAINING}/state.safetensors"
_NEXT = "next."  # before the name of a file that is about to be moved into place
_DESCRIPTION = (CONFIG, ALPHABETS, TEMPLATES, TEMPLATE_ARRAYS)
_OWN = {*_DESCRIPTION, WEIGHTS, HISTORY, TRAINING, VECTORS}


def folder_state(folder: Path) -> str:
    """``absent``, ``unfinished``, ``finished`` or ``foreign``: what training finds there."""
    if not folder.exists():
        return "absent"
    if not folder.is_dir():
        return "foreign"
    try:
        names = {entry.name for entry in folder.iterdir() if not entry.name.endswith(".tmp")}
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=folder) from error
    if not names:
        return "absent"
    if not names <= _OWN:
        return "foreign"
    if TRAINING in names:
        return "unfinished"
    return "finished" if {CONFIG, ALPHABETS, WEIGHTS} <= names else "foreign"


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
    """InputError for a folder that cannot be made because something in its path is a file."""
    for parent in folder.absolute().parents:
        if parent.exists():
            if not parent.is_dir():
                raise InputError("cannot be made: a file is in the way", file=folder)
            return


def begin(folder: Path, config: Config, vocabulary: Vocabulary) -> None:
    """Mark a folder as an unfinished training and describe its model; drops an older attempt."""
    try:
        if (folder / TRAINING).exists():
            shutil.rmtree(folder / TRAINING)
        (folder / TRAINING).mkdir(parents=True)
    except OSError as error:
        raise NcrfError(f"{folder}: cannot be made: {error.strerror}") from error
    write_description(folder / TRAINING, config, vocabulary)


def publish(
    folder: Path,
    weights: Mapping[str, Tensor] | None = None,
    described: Path | None = None,
) -> None:
    """Make the model of this training, with new ``weights``, the model of the folder.

    ``described`` is where the model's description stands, if that is not ``training/``. All is
    written into ``training/`` first; what can fail for want of space fails there.
    """
    training = folder / TRAINING
    source = described or training
    names = [name for name in _DESCRIPTION if (source / name).exists()]
    for name in names:
        write_file(training / f"{_NEXT}{name}", (source / name).read_bytes())
    if weights is not None:
        write_tensors(training / f"{_NEXT}{WEIGHTS}", weights)
        names.append(WEIGHTS)
    try:
        for name in names:
            os.replace(training / f"{_NEXT}{name}", folder / name)
    except OSError as error:
        raise NcrfError(f"{folder}: cannot be written: {error.strerror}") from error


def finish(folder: Path, *, keeps_vectors: bool) -> None:
    """Remove what only an unfinished training needs, and files of an older model alone."""
    if not keeps_vectors:
        (folder / VECTORS).unlink(missing_ok=True)
    if (folder / TRAINING).exists() and not (folder / TRAINING / TEMPLATES).exists():
        for name in (TEMPLATES, TEMPLATE_ARRAYS):
            (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / TRAINING, ignore_errors=True)


def write_history(folder: Path, history: list[dict[str, Any]]) -> None:
    """Write ``history.jsonl``, one object an epoch."""
    lines = "".join(json.dumps(epoch) + "\n" for epoch in history)
    write_file(folder / HISTORY, lines.encode())
