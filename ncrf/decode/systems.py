"""What two systems to be compared are: predicted files, models, or the seeds of a sweep's row."""

from __future__ import annotations

import glob
import logging
import os
import re
from pathlib import Path

from ncrf.config import Config
from ncrf.errors import InputError
from ncrf.evaluate.comparison import System
from ncrf.evaluate.sentence_counts import SentenceCounts, count_files
from ncrf.model.folder import ALPHABETS, TRAINING, WEIGHTS

logger = logging.getLogger(__name__)

_SEED = re.compile(r"seed=(\d+)$")


def system_of(name: str, gold: str, config: Config, decode: Config) -> System:
    """A system by its name on the command line, with its counts for a gold file.

    For ``name`` see `outputs_of`. A predicted file is read as ``config`` says; a model, for which
    ``decode`` has what its own config may be changed in, labels the gold file now.
    Raises InputError for what is no system, or does not fit the gold file.
    """
    places = outputs_of(name)
    counts = [_counts(place, gold, config, decode) for place in places]
    return System(name, [str(place) for place in places], counts)


def outputs_of(name: str) -> list[Path]:
    """The predicted files or model folders that a name stands for, one for each seed.

    It is a file; a model folder; a row of a sweep, which is the path of its runs without the seed
    (``runs/sweep/ner/hidden_dim=100``, or ``runs/sweep/ner`` for the config as it is); or a
    pattern with ``*`` of files or model folders.
    """
    path = Path(name)
    if path.is_file() or _is_model(path):
        return [path]
    found = [*_models(f"{glob.escape(name.rstrip('/'))},seed=*"), *_models(path / "seed=*")]
    if not found and not path.exists():
        found = sorted(Path(place) for place in glob.glob(name))
        found = [place for place in found if place.is_file() or _is_model(place)]
    finished = [place for place in found if not (place / TRAINING).exists()]
    for place in found:
        if place not in finished:
            logger.warning("%s is left out: its training is unfinished", place)
    if not finished:
        raise InputError(
            f"{name}: neither a predicted file nor a model, nor the row of a sweep",
            remedy="a path as in runs/sweep/CONFIG/hidden_dim=100, without its seed",
        )
    return finished


def _models(pattern: str | Path) -> list[Path]:
    """The model folders of a row, in the order of their seeds."""
    escaped = pattern if isinstance(pattern, str) else f"{glob.escape(str(pattern)[:-6])}seed=*"
    found = [Path(place) for place in glob.glob(escaped) if os.path.isdir(place)]
    seeds = {p: int(match[1]) for p in found if (match := _SEED.search(p.name))}
    return sorted((p for p in seeds if _is_model(p)), key=lambda p: seeds[p])


def _is_model(place: Path) -> bool:
    return all((place / name).is_file() for name in (ALPHABETS, WEIGHTS))


def _counts(place: Path, gold: str, config: Config, decode: Config) -> SentenceCounts:
    if place.is_file():
        return count_files(config, gold, str(place))
    from ncrf.decode.model_counts import count_model  # torch, which files do without

    return count_model(place, gold, decode)
