"""Vectors of a file that was read once, kept to be mapped into memory the next time."""

from __future__ import annotations

import logging
import os
import shutil
import stat
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from ncrf.data.cache_folder import CacheFolder, SourceFile
from ncrf.data.mapped_vectors import DamagedError, MappedVectors, VectorRows
from ncrf.data.vector_text import warn_of_count

logger = logging.getLogger(__name__)

AUTO, OFF = "auto", "off"
BESIDE = ".ncrf_cache"  # the folder beside a vector file
SMALLEST = 5_000_000  # bytes; a smaller file is read in no time

OpenRows = Callable[[], AbstractContextManager[VectorRows]]


def cached_vectors(path: str | Path, setting: str, open_rows: OpenRows) -> MappedVectors | None:
    """Map what is kept of a vector file; where nothing is, read it through and keep it.

    ``setting`` is ``auto`` (beside the file or, where that cannot be written, in the user's cache
    folder), ``off`` or a folder. None where nothing can be kept, and for a small file. Raises
    what reading the rows raises.
    """
    if setting == OFF or not _worth_keeping(path):
        return None
    source = SourceFile.at(path)
    folders = [CacheFolder(place) for place in _places(source.path, setting)]
    found = _kept(source, folders)
    if found is not None:
        warn_of_count(str(path), found.announced, len(found))
        return found
    reason = "there is no folder for them"
    for folder in folders:
        try:
            return _keep(source, folder, open_rows)
        except (OSError, ValueError) as error:
            reason = f"{folder.path}: {getattr(error, 'strerror', None) or error}"
    level = logging.INFO if setting == AUTO else logging.WARNING
    logger.log(level, "%s: its vectors cannot be kept for later starts (%s)", path, reason)
    return None


def _worth_keeping(path: str | Path) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size >= SMALLEST


def _places(path: Path, setting: str) -> list[Path]:
    """The folders that may keep the vectors of a file, best first."""
    if setting != AUTO:
        return [Path(setting)]
    places = [path.parent / BESIDE]
    users = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(users):  # then it does not count, says its specification
        users = os.path.expanduser("~/.cache")
    return [*places, Path(users, "ncrf")] if os.path.isabs(users) else places


def _kept(source: SourceFile, folders: list[CacheFolder]) -> MappedVectors | None:
    """Map what one of the folders keeps of a file's content."""
    for folder in folders:
        digest = folder.recorded(source)
        if digest is not None and (found := _mapped(folder.kept(digest))) is not None:
            return found
    for folder in folders:
        if not folder.path.is_dir():
            continue
        if (found := _mapped(folder.kept(source.digest))) is not None:
            with suppress(OSError):  # it is digested again the next time
                folder.record(source)
            return found
    return None


def _mapped(path: Path) -> MappedVectors | None:
    try:
        return MappedVectors(path)
    except DamagedError as error:
        logger.warning("%s: damaged, and made anew (%s)", path, error)
        with suppress(OSError):
            path.unlink()
    except OSError:
        pass
    return None


def _keep(source: SourceFile, folder: CacheFolder, open_rows: OpenRows) -> MappedVectors:
    """Read all rows and keep them; OSError or ValueError where they cannot be kept."""
    start = time.perf_counter()
    folder.prepare()
    if shutil.disk_usage(folder.path).free < source.state.size:
        raise OSError("too little room on the disk")
    target = folder.kept(source.digest)
    with folder.replacing(target) as file, open_rows() as rows:
        MappedVectors.write(file, rows)
        source.refuse_change()
    found = MappedVectors(target)
    folder.record(source)
    seconds = time.perf_counter() - start
    logger.info("%s: read in %.1f s and kept in %s", source.name, seconds, target)
    return found
