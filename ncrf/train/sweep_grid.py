"""The runs of a sweep: configs, all combinations of the values given for keys, and seeds.

Nothing is trained or looked up here. Every run has a name, which is that of its folder and says
its values: ``hidden_dim=100,seed=2``.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ncrf.config import Config, Key, all_keys, find_key, load_config
from ncrf.config.keys import unknown_key
from ncrf.config.readers import COMMAND_LINE, Entry
from ncrf.errors import ConfigError

#: Keys that a sweep sets itself.
OWN_KEYS = ("status", "model_dir", "load_model_dir", "dset_dir", "resume", "overwrite")
_CORPORA = ("train_dir", "dev_dir", "test_dir")
_UNSAFE = re.compile(r"[^A-Za-z0-9._+=-]+")
_LONGEST = 80  # characters of one value in a name, and ...
_LONGEST_NAME = 180  # ... of a row's name: file systems take 255 bytes


@dataclass(frozen=True)
class Row:
    """One setting of a sweep, which is trained with every seed: a row of the table.

    ``settings`` holds the values of the grid's keys as text, in the order of the keys'
    declaration. ``folder`` is where the runs of its config lie.
    """

    config_file: str
    folder: Path
    settings: Mapping[str, str] = field(hash=False)

    @property
    def name(self) -> str:
        """What tells it from the other rows of its config; empty for the config as it is."""
        return row_name(self.settings)


@dataclass(frozen=True)
class Run:
    """One training of a sweep. ``config`` is complete, as the training will have it."""

    row: Row
    config: Config

    @property
    def seed(self) -> int:
        """Its seed."""
        return self.config.run.seed

    @property
    def name(self) -> str:
        """The name of its folder."""
        return run_name(self.row.name, self.seed)

    @property
    def model_dir(self) -> Path:
        """Its model folder."""
        return self.row.folder / self.name

    @property
    def log(self) -> Path:
        """Where what its training says is written."""
        return self.row.folder / f"{self.name}.log"

    @property
    def settings(self) -> dict[str, Any]:
        """The row's settings, each as its type where that is a number, a boolean or a choice."""
        given = self.row.settings
        return {k: self.config.value(k) if _parts_at_commas(k) else t for k, t in given.items()}

    @property
    def arguments(self) -> list[str]:
        """The keys that make it of its config file, for a command line."""
        settings = [f"--{key}={text}" for key, text in self.row.settings.items()]
        return [*settings, f"--seed={self.seed}"]


def row_name(settings: Mapping[str, object]) -> str:
    """The name of a row from its settings: ``hidden_dim=100,dropout=0.3``."""
    whole = ",".join(f"{key}={_safe(str(text))}" for key, text in settings.items())
    if len(whole) <= _LONGEST_NAME:
        return whole
    return f"{whole[:_LONGEST_NAME]}~{_digest(whole)}"


def run_name(row: str, seed: int) -> str:
    """The name of a run from that of its row."""
    return f"{row},seed={seed}" if row else f"seed={seed}"


def plan(
    config_files: Sequence[str],
    keys: Iterable[Entry],
    seeds: str | None,
    out: Path,
    *,
    check_files: bool = True,
) -> list[Run]:
    """All runs, each complete and checked: the first seed of every row, then the second ...

    ``keys`` are those of a command line. A comma parts the values of a key, unless they may hold
    commas themselves: texts, paths and lists are taken whole, and several are given by repeating
    the key. ``seeds`` is how many, from that of the config on, or has commas and says which ones.
    The runs of each config lie in a folder of its name in ``out``. Raises ConfigError for what
    cannot be trained; with ``check_files=False`` the corpora need not be there.
    """
    folders = _folders(config_files, out)
    bases = {file: base_config(file) for file in folders}  # this imports plugins, too
    values, seeds = _values(keys, seeds)
    by_row = [
        row
        for file, base in bases.items()
        for row in _rows(base, file, folders[file], values, seeds)
    ]
    in_turn = itertools.zip_longest(*by_row)
    found = {run.model_dir: run for turn in in_turn for run in turn if run is not None}
    if check_files:
        for run in found.values():
            load_config(run.config)
    return list(found.values())  # what means the same has one name


def _values(keys: Iterable[Entry], seeds: str | None) -> tuple[dict[str, list[str]], str | None]:
    """The values of each key, and the seeds, which may be given as a key too."""
    values: dict[str, list[str]] = {}
    for entry in keys:
        key = _declared(entry)
        if key.name == "seed":
            if seeds is not None:
                raise _error("the seeds are given twice", "--seeds 5, or --seeds 1,2,7")
            seeds = f"{entry.raw},"
            continue
        parts = str(entry.raw).split(",") if _parts_at_commas(key.name) else [str(entry.raw)]
        values.setdefault(key.name, []).extend(part.strip() for part in parts)
    return values, seeds


def _rows(
    base: Config, file: str, folder: Path, values: Mapping[str, list[str]], seeds: str | None
) -> list[list[Run]]:
    """The runs of one config, row by row."""
    order = [key.name for key in all_keys() if key.name in values]
    numbers = _numbers(seeds, base.run.seed)
    return [
        [complete(base, file, folder, dict(zip(order, texts, strict=True)), n) for n in numbers]
        for texts in itertools.product(*(values[name] for name in order))
    ]


def _numbers(seeds: str | None, first: int) -> list[str]:
    """The seeds as texts, which the config checks; ``first`` is the config's own."""
    if seeds is None:
        return [str(first)]
    if "," in seeds:
        return [part.strip() for part in seeds.split(",") if part.strip()]
    if not re.fullmatch(r"[1-9][0-9]{0,5}", seeds.strip()):
        raise _error(f"--seeds {seeds}", "how many, as in 5, or which ones, as in 1,2,7")
    return [str(first + i) for i in range(int(seeds))]


def base_config(file: str) -> Config:
    """A config file as it stands, not yet complete."""
    return load_config(file, {"status": "train"}, check_files=False)


def complete(
    base: Config,
    file: str,
    folder: Path,
    given: Mapping[str, str],
    seed: str,
) -> Run:
    """The run of a config file with values for some keys, and a seed; ConfigError for wrong ones.

    No file need be there.
    Values are written in one way, so that 0.10 and 0.1 make one run.
    """
    arguments = [f"--{key}={text}" for key, text in given.items()]
    own = [f"--seed={seed}", f"--model_dir={folder / 'any'}", "--load_model_dir=", "--dset_dir="]
    config = load_config(base, [*arguments, *own], check_files=False)
    for key in _CORPORA:
        if config.value(key) == "-":
            raise config.error(key, f"{key}: a sweep reads it more than once", "a file's path")
    settings = {key: _canonical(config, key, text) for key, text in given.items()}
    run = Run(Row(file, folder, settings), config)
    return Run(run.row, config.replace(model_dir=str(run.model_dir)))


def _parts_at_commas(name: str) -> bool:
    """Whether a comma parts values of this key: for numbers, booleans and fixed choices."""
    key = find_key(name)
    assert key is not None, name
    return key.type in (bool, int, float) or bool(key.choices)


def _declared(entry: Entry) -> Key:
    key = find_key(entry.name)
    if key is None:
        raise unknown_key(entry.name, file=COMMAND_LINE)
    if key.name in OWN_KEYS:
        raise _error(f"{key.name} is set by the sweep itself", "--out FOLDER says where runs go")
    if key.name == "plugins":
        raise _error("plugins are the same for all runs", "name them in the config")
    return key


def _folders(config_files: Sequence[str], out: Path) -> dict[str, Path]:
    """Each config file with the folder of its runs, which has its name."""
    folders: dict[str, Path] = {}
    for file in config_files:
        folder = out / _safe(Path(file).stem)
        other = next((f for f, taken in folders.items() if taken == folder), None)
        if other is not None and not os.path.samefile(other, file):
            raise _error(f"{other} and {file} would have one folder, {folder}", "another name")
        if other is None:
            folders[file] = folder
    return folders


def _canonical(config: Config, name: str, text: str) -> str:
    """The one way to write a value that was given as ``text``."""
    key = find_key(name)
    assert key is not None
    return str(config.value(name)) if _parts_at_commas(name) else text


def _safe(text: str) -> str:
    """A text as part of a file's name; one that had to be changed is told apart by a digest."""
    plain = _UNSAFE.sub("_", text)[:_LONGEST]
    return text if plain == text else f"{plain}~{_digest(text)}"


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()


def _error(what: str, remedy: str) -> ConfigError:
    return ConfigError(what, file=COMMAND_LINE, remedy=remedy)
