"""The model folder: what a trained model is on disk. No pickle is ever written or read.

``config.yaml`` (resolved), ``alphabets.json``, ``model.safetensors``, ``history.jsonl``; of a model
with feature templates ``templates.json`` and ``templates.safetensors`` too. ``training/`` stands
beside them only while a training is unfinished.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open

from ncrf.config import Config, read_model_config, write_config
from ncrf.data.output_files import write_file
from ncrf.data.template_features import TemplateFeatures
from ncrf.data.vocabulary import Vocabulary
from ncrf.errors import InputError, NcrfError

if TYPE_CHECKING:  # late: a model is described without torch
    from torch import Tensor

CONFIG = "config.yaml"
ALPHABETS = "alphabets.json"
TEMPLATES = "templates.json"
TEMPLATE_ARRAYS = "templates.safetensors"
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
    """Write what is known of a model beside its weights: config, alphabets and templates."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {"format": FORMAT, **vocabulary.to_json()}
    write_file(folder / ALPHABETS, json.dumps(content).encode("ascii"))
    if vocabulary.templates is not None:
        from safetensors.numpy import save

        text = json.dumps(vocabulary.templates.to_json()).encode("ascii")
        write_file(folder / TEMPLATES, text)
        write_file(folder / TEMPLATE_ARRAYS, save(vocabulary.templates.arrays()))
    write_config(config, folder / CONFIG)


@contextmanager
def whole(place: Path) -> Iterator[Path]:
    """A folder to write a model into; its files come to ``place`` at the end, or none do.

    ``place`` is made if it is missing. Raises NcrfError where the system refuses.
    """
    there = place.is_dir()  # then it may be a link, or the root of a disk: it stays what it is
    name = f".{place.name}.{os.getpid()}.tmp"
    temporary = place / name if there else place.with_name(name)
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        yield temporary
        if there:
            for file in sorted(temporary.iterdir()):
                file.replace(place / file.name)
        else:
            temporary.replace(place)
    except OSError as error:
        raise NcrfError(f"{place}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def history_of(folder: Path) -> bytes:
    """The content of ``history.jsonl``, nothing where there is none; InputError if unreadable."""
    path = folder / HISTORY
    try:
        return path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from error


def read_description(folder: Path) -> tuple[Config, Vocabulary]:
    """Config, alphabets and templates of a folder; InputError for a missing or damaged one."""
    path = folder / ALPHABETS
    try:
        if not folder.is_dir():
            raise InputError("no such model folder", file=folder)
        content = json.loads(path.read_bytes())
        if content["format"] != FORMAT:
            raise InputError(f"has format {content['format']}, not {FORMAT}", file=path)
        config, vocabulary = read_model_config(folder), Vocabulary.from_json(content, path)
        if config.templates.template_file is None:
            return config, vocabulary
        path = folder / TEMPLATES
        features = _read_templates(folder)
        if features.index.num_labels != len(vocabulary.labels):
            raise ValueError("its labels are not those of the model")
        return config, replace(vocabulary, templates=features)
    except FileNotFoundError as error:
        raise InputError("is missing: this is no whole model folder", file=path) from error
    except OSError as error:
        place = error.filename or folder
        raise InputError(f"cannot be read: {error.strerror or error}", file=place) from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"is damaged: {error}", file=path) from error


def _read_templates(folder: Path) -> TemplateFeatures:
    """The feature templates of a model; as read_description raises, and with the file."""
    from safetensors.numpy import load

    content = json.loads((folder / TEMPLATES).read_bytes())
    try:
        arrays = load((folder / TEMPLATE_ARRAYS).read_bytes())
    except SafetensorError as error:
        raise InputError(f"is damaged: {error}", file=folder / TEMPLATE_ARRAYS) from error
    return TemplateFeatures.from_json(content, arrays)
