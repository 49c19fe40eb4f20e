"""The model folder: what a trained model is on disk. No pickle is ever written or read.

``config.yaml`` (resolved), ``alphabets.json``, ``model.safetensors``, ``history.jsonl``;
``training/`` stands beside them only while a training is unfinished.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open

from ncrf.config import Config, read_model_config, write_config
from ncrf.data.output_files import write_file
from ncrf.data.vocabulary import Vocabulary
from ncrf.errors import InputError

if TYPE_CHECKING:  # late: a model is described without torch
    from torch import Tensor

CONFIG = "config.yaml"
ALPHABETS = "alphabets.json"
WEIGHTS = "model.safetensors"
VECTORS = "vectors.safetensors"
HISTORY = "history.jsonl"
TRAINING = "training"
FORMAT = 1  # of the folder; a program refuses what it does not know


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None
) -> None:
    """Write tensors as safetensors, atomically."""
    from safetensors.torch import save

    plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    write_file(path, save(plain, metadata))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file; InputError names a missing or damaged one."""
    from safetensors.torch import load

    try:
        return load(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from error
    except SafetensorError as error:
        raise InputError(f"is damaged: {error}", file=path) from error


def read_metadata(path: Path) -> dict[str, str]:
    """The strings stored beside the tensors of a safetensors file."""
    try:
        with safe_open(path, framework="numpy") as file:
            return dict(file.metadata() or {})
    except (OSError, SafetensorError) as error:
        raise InputError(f"is damaged: {error}", file=path) from error


def write_description(folder: Path, config: Config, vocabulary: Vocabulary) -> None:
    """Write what is known of a model beside its weights: config and alphabets."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {"format": FORMAT, **vocabulary.to_json()}
    write_file(folder / ALPHABETS, json.dumps(content).encode("ascii"))
    write_config(config, folder / CONFIG)


def read_description(folder: Path) -> tuple[Config, Vocabulary]:
    """Config and alphabets of a model folder; InputError for a missing or damaged one."""
    if not folder.is_dir():
        raise InputError("no such model folder", file=folder)
    path = folder / ALPHABETS
    try:
        content = json.loads(path.read_bytes())
        if content["format"] != FORMAT:
            raise InputError(f"has format {content['format']}, not {FORMAT}", file=path)
        return read_model_config(folder), Vocabulary.from_json(content, path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"is missing or damaged: {error}", file=path) from error
