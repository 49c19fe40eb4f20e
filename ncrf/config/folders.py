"""Which folder a model lies in: NCRF++'s file names, and several keys for one folder."""

from __future__ import annotations

import itertools
import logging
import os
import re
from collections.abc import Mapping
from typing import Any

from ncrf.config.schema import Origin
from ncrf.errors import ConfigError

logger = logging.getLogger(__name__)

FOLDER_KEYS = ("model_dir", "load_model_dir", "dset_dir")


def model_folder(path: str) -> str:
    """The folder that a path names: PREFIX for PREFIX.dset, PREFIX.model and PREFIX.7.model.

    A folder that exists under the very name is meant as it stands.
    """
    legacy = re.fullmatch(r"(.*?[^/\\])(\.dset|(\.[0-9]+)?\.model)", path.rstrip("/"), re.DOTALL)
    return path if legacy is None or os.path.isdir(path) else legacy[1]


def settle_folders(values: dict[str, Any], origins: Mapping[str, Origin]) -> None:
    """Put the model folder where ``status`` looks for it, in ``values``.

    Legacy names become folders, said in the log. Raises ConfigError when two of the keys name
    different folders. Training finds the folder in ``model_dir``, decoding in
    ``load_model_dir``; ``dset_dir`` is then None.
    """
    for name in (*FOLDER_KEYS, "init_from"):
        path = values[name]
        if path is None:
            continue
        folder = model_folder(path)
        if folder != path:
            logger.info(
                "%s=%s is a file name of NCRF++; the model folder is %s", name, path, folder
            )
            values[name] = folder
    _refuse_different(values, origins)
    if values["status"] == "train":
        values["model_dir"] = values["model_dir"] or values["dset_dir"]
    else:
        named = (values[name] for name in ("load_model_dir", "dset_dir", "model_dir"))
        values["load_model_dir"] = next((folder for folder in named if folder), None)
    values["dset_dir"] = None


def _refuse_different(values: Mapping[str, Any], origins: Mapping[str, Origin]) -> None:
    given = [name for name in FOLDER_KEYS if values[name] is not None]
    for one, other in itertools.pairwise(given):
        if os.path.abspath(values[one]) == os.path.abspath(values[other]):
            continue
        file, line = origins.get(other, Origin())
        raise ConfigError(
            f"{other} names the folder {values[other]!r}, but {one} names {values[one]!r}",
            file=file,
            line=line,
            remedy="one folder for both",
        )
