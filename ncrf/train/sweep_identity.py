"""What a run was trained with, and whether that is what its config says now.

A record of ``results.jsonl`` says it to the letter: keys, and digests of the corpora. A model
folder that no record tells of says it by its own config.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ncrf.config import Config, all_keys, is_used, parse_model_config
from ncrf.model.folder import CONFIG, TRAINING, read_file
from ncrf.train.checkpoint import folder_state
from ncrf.train.sweep_grid import Run

_CORPORA = ("train_dir", "dev_dir", "test_dir")
_VECTORS = ("word_emb_dir", "char_emb_dir")
_PATHS = (*_CORPORA, *_VECTORS, "init_from")
#: Keys that do not change what is learned, beside those of the group decoding.
_FREE = {"status", "gpu", "threads", "checkpoint_every"}
_FREE |= {"raw_dir", "decode_dir", "model_dir", "load_model_dir", "dset_dir"}
_FREE |= {"vector_cache", "resume", "overwrite"}


def identity(config: Config) -> dict[str, Any]:
    """What a run was trained with: the keys that change it, where they are not the default."""
    default, flat = Config().flat(), config.flat()
    return {
        key.name: flat[key.name]
        for key in all_keys()
        if key.name in flat
        and key.group != "decoding"
        and key.name not in _FREE
        and flat[key.name] != default.get(key.name)
    }


def contents(config: Config) -> dict[str, str]:
    """What tells the content of the files that a run is trained with, by key.

    A digest for a corpus, the size for vectors, which may be very large.
    """
    found = {}
    for key in _CORPORA:
        path = config.value(key)
        if path is not None:
            found[key] = _content_digest(path)
    for key in _VECTORS:
        path = config.value(key)
        if path is not None and is_used(config, key):
            with suppress(OSError):
                found[key] = f"{os.path.getsize(path)} bytes"
    return {key: text for key, text in found.items() if text}


def _content_digest(path: str) -> str:
    """A digest of a file's content, empty if it cannot be read; each version is read once."""
    try:
        status = os.stat(path)
        return _digest_of(os.path.realpath(path), status.st_size, status.st_mtime_ns)
    except OSError:
        return ""


@cache
def _digest_of(path: str, size: int, changed: int) -> str:
    digest = blake2b(digest_size=16)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def key_change(record: Mapping[str, Any], run: Run) -> str | None:
    """A key that a recorded run was trained with, and that has another value now."""
    before, now, default = record["keys"], identity(run.config), Config().flat()
    for name in sorted({**before, **now}.keys() - {"test_dir"}):
        old, new = (keys.get(name, default.get(name)) for keys in (before, now))
        if old != new:
            return f"{name} was {old}, now it is {new}"
    return None


def content_change(record: Mapping[str, Any], run: Run) -> str | None:
    """A file that a recorded run was trained with, and that has another content now."""
    now = contents(run.config)
    for name, text in record["files"].items():
        if name != "test_dir" and now.get(name, text) != text:
            return f"{name}={run.config.value(name)} has another content now"
    return None


def has_test_score(record: Mapping[str, Any], run: Run) -> bool:
    """Whether a record has the score of the test corpus that the config names, if it does."""
    if run.config.files.test_dir is None:
        return True
    now = contents(run.config).get("test_dir")
    return bool(record["test"]) and record["files"].get("test_dir") in (now, None)


def folder_standing(run: Run) -> tuple[str, str | None]:
    """The state of a run's model folder, and how the config there differs from what it is now.

    States are those of `folder_state`. A folder may have been trained outside the sweep, and
    elsewhere: files count as the same if their names are.
    """
    state = folder_state(run.model_dir)
    if state == "finished":
        return state, _difference(_config_of(run.model_dir), run.config)
    if state == "unfinished":
        return state, _difference(_config_of(run.model_dir / TRAINING), run.config)
    return state, None


def is_tested(run: Run) -> bool:
    """Whether the test score in a finished model folder is that of the corpus of this name."""
    return same_file(_config_of(run.model_dir).files.test_dir, run.config.files.test_dir)


def _config_of(folder: Path) -> Config:
    return parse_model_config(read_file(folder / CONFIG), folder / CONFIG)


def _difference(before: Config, now: Config) -> str | None:
    """How two configs differ; ``before`` is settled, as training writes it into its folder."""
    old, new = identity(before), identity(now)
    default = Config().flat()
    settled = {"feature", "test_dir"}
    settled |= {"partial_labels"} if now.corpus.partial_labels == "auto" else set()
    settled |= {"word_emb_dim"} if now.words.word_emb_dir else set()
    settled |= {"char_emb_dim"} if now.chars.char_emb_dir else set()
    for name in {**old, **new}.keys() - settled:
        was, wanted = (keys.get(name, default.get(name)) for keys in (old, new))
        if was != wanted and not (name in _PATHS and same_file(was, wanted)):
            return f"{name} was {was}, now it is {wanted}"
    columns = {spec.name: spec for spec in before.corpus.feature}
    for spec in now.corpus.feature:
        was = columns.get(spec.name)
        if was is None or (spec.source, spec.emb_norm) != (was.source, was.emb_norm):
            return f"feature [{spec.name}] is another"
        if spec.emb_size != was.emb_size and spec.emb_dir is None:
            return f"feature [{spec.name}] was {was.emb_size} wide, now {spec.emb_size}"
    return None


def same_file(one: str | None, other: str | None) -> bool:
    """Whether two paths are taken for the same corpus: wherever it lies, its name tells it."""
    return one is not None and other is not None and Path(one).name == Path(other).name
