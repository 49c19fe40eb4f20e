"""The model folder: what a trained model is on disk. No pickle is ever written or read.

``config.yaml`` (resolved), ``alphabets.json``, ``model.safetensors``, ``history.jsonl``, of a model
with feature templates ``templates.json`` and ``templates.safetensors``, with ``vectors_in_model``
also ``vectors.safetensors``, and ``manifest.json`` with the checksums of all; ``training/``, with a
manifest of its own, stands beside them only while a training is unfinished.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ncrf.config import Config, config_text, parse_model_config
from ncrf.data.output_files import make_folder, reason, remove_empty
from ncrf.data.template_features import TemplateFeatures
from ncrf.data.vocabulary import Vocabulary
from ncrf.errors import InputError, NcrfError
from ncrf.model import manifest

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
#: What describes a model beside its weights; a model without templates has only the first two.
DESCRIPTION = (CONFIG, ALPHABETS, TEMPLATES, TEMPLATE_ARRAYS)


def tensor_bytes(tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """Tensors as the content of a safetensors file."""
    from safetensors.torch import save

    plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    content: bytes = save(plain, metadata)
    return content


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None
) -> None:
    """Write tensors as a safetensors file of its folder, or leave the old one as it was."""
    manifest.update(path.parent, {path.name: tensor_bytes(tensors, metadata)})


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file; InputError names a missing or damaged one."""
    from safetensors.torch import load

    content = read_file(path)
    try:
        return load(content)
    except Exception as error:  # whatever a damaged file makes of a third party's reader
        raise InputError(f"is damaged: {error or type(error).__name__}", file=path) from error


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The same without torch."""
    from safetensors.numpy import load

    content = read_file(path)
    try:
        return load(content)
    except Exception as error:  # as above
        raise InputError(f"is damaged: {error or type(error).__name__}", file=path) from error


def read_metadata(path: Path) -> dict[str, str]:
    """The strings stored beside the tensors of a safetensors file."""
    content = read_file(path)
    try:
        end = 8 + int.from_bytes(content[:8], "little")
        found: Any = json.loads(content[8:end]).get("__metadata__", {})
        return {name: text for name, text in found.items() if isinstance(text, str)}
    except (ValueError, AttributeError, RecursionError) as error:
        raise InputError("is damaged: it has no header", file=path) from error


def read_file(path: Path) -> bytes:
    """The content of a file of a model folder, checked; InputError names a missing or damaged one.

    ``path`` is that under which it stands when nothing is being written; see ``manifest``.
    """
    try:
        return manifest.read_file(path.parent, path.name)
    except OSError as error:
        raise unreadable(error, path) from error


def unreadable(error: OSError, path: Path) -> InputError:
    """The InputError for what the system says of a file of a model folder."""
    if isinstance(error, FileNotFoundError):
        return InputError("is missing: this is no whole model folder", file=path)
    place = error.filename or path
    return InputError(f"cannot be read: {error.strerror or error}", file=place)


def description_files(config: Config, vocabulary: Vocabulary) -> dict[str, bytes]:
    """The files that say what is known of a model beside its weights, those in DESCRIPTION."""
    alphabets = {"format": manifest.FORMAT, **vocabulary.to_json()}
    files = {
        CONFIG: config_text(config).encode("utf-8"),
        ALPHABETS: json.dumps(alphabets).encode("ascii"),
    }
    if vocabulary.templates is not None:
        from safetensors.numpy import save

        files[TEMPLATES] = json.dumps(vocabulary.templates.to_json()).encode("ascii")
        files[TEMPLATE_ARRAYS] = save(vocabulary.templates.arrays())
    return files


def write_model(folder: Path, files: Mapping[str, bytes]) -> None:
    """Put the files of a model into a new folder, all or none; NcrfError if that fails."""
    made: list[Path] = []
    try:
        made = make_folder(folder)
        manifest.update(folder, files)
    except BaseException as error:
        remove_empty(made)
        if isinstance(error, OSError):
            raise NcrfError(f"{folder}: cannot be made: {reason(error)}") from error
        raise


def history_of(folder: Path) -> bytes:
    """The content of ``history.jsonl``, nothing where there is none; InputError if unreadable."""
    try:
        return manifest.read_file(folder, HISTORY)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise unreadable(error, folder / HISTORY) from error


def has(folder: Path, name: str) -> bool:
    """Whether a model folder has a file of this name."""
    try:
        return name in manifest.names_of(folder)
    except OSError as error:
        raise unreadable(error, folder / name) from error


def read_description(folder: Path) -> tuple[Config, Vocabulary]:
    """Config, alphabets and templates of a folder; InputError for a missing or damaged one."""
    path = folder / ALPHABETS
    try:
        if not folder.is_dir():
            raise InputError("no such model folder", file=folder)
    except OSError as error:
        raise unreadable(error, folder) from error
    content = _alphabets(path)
    _refuse_format(content, folder)
    try:
        vocabulary = Vocabulary.from_json(content, path)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"is damaged: {error or type(error).__name__}", file=path) from error
    config = parse_model_config(read_file(folder / CONFIG), folder / CONFIG)
    _refuse_features(config, vocabulary, folder / CONFIG)
    if config.templates.template_file is not None:
        vocabulary = replace(vocabulary, templates=_templates(folder, vocabulary))
    return config, vocabulary


def _alphabets(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"is damaged: {error}", file=path) from error
    if not isinstance(content, dict):
        raise InputError("is damaged: it holds no alphabets", file=path)
    return content


def _refuse_format(alphabets: Mapping[str, Any], folder: Path) -> None:
    """InputError for a folder that another version of ncrf wrote in a way unknown here.

    The first format, without a manifest, is read.
    """
    found = alphabets.get("format")
    if type(found) is not int or not 1 <= found <= manifest.FORMAT:
        raise InputError(
            f"has format {found!r}, this program reads up to {manifest.FORMAT}",
            file=folder / ALPHABETS,
            remedy="a newer version of ncrf",
        )
    if found > 1 and manifest.manifest_of(folder) is None:
        raise InputError(
            "is missing: this is no whole model folder",
            file=folder / manifest.MANIFEST,
            remedy="copy the whole folder again",
        )


def _refuse_features(config: Config, vocabulary: Vocabulary, path: Path) -> None:
    """InputError where the config's feature columns are not those that have an alphabet."""
    named = [spec.name for spec in config.corpus.feature]
    if named != list(vocabulary.features):
        raise InputError(
            f"names the features {', '.join(named) or 'none'}, but {ALPHABETS} has "
            f"{', '.join(vocabulary.features) or 'none'}",
            file=path,
        )


def _templates(folder: Path, vocabulary: Vocabulary) -> TemplateFeatures:
    """The feature templates of a model with these alphabets; InputError for a damaged file."""
    arrays, path = read_arrays(folder / TEMPLATE_ARRAYS), folder / TEMPLATES
    content = read_file(path)
    try:
        features = TemplateFeatures.from_json(json.loads(content), arrays)
        features.check(len(vocabulary.labels), tuple(vocabulary.features))
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as e:
        raise InputError(f"is damaged: {e or type(e).__name__}", file=path) from e
    return features
