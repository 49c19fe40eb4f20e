"""Folders whose files have checksums and change together: a model folder and its ``training/``.

``manifest.json`` names the files of its folder, each with its size and checksum. Files are replaced
in one step (``update``), in the manner of a journal: the new ones are written beside the old ones
under names of their own, then the new manifest, whose appearing is the step; then all are renamed,
the manifest last. Whoever reads in between, or after the writer was killed there, finds the new
manifest, and each file by its checksum under the one name or the other. Readers write nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from errno import ENOENT
from hashlib import blake2b
from itertools import starmap
from pathlib import Path
from typing import Any

from ncrf.data.output_files import flush_folder, reason, write_file
from ncrf.errors import InputError, NcrfError

MANIFEST = "manifest.json"
FORMAT = 2  # of the folder; the first had no manifest and no checksums
WAITING = ".next"  # how a hidden name ends under which a file waits for its place
_MOST_BYTES = 1 << 20  # of a manifest; more is none of ours
_ATTEMPTS = 20  # to read a folder that is being written
_COPY_AGAIN = "copy the whole folder again, or train again"


@dataclass(frozen=True)
class Checksum:
    """By what the content of a file is known: its size in bytes and a digest."""

    size: int
    blake2b: str

    @classmethod
    def of(cls, content: bytes) -> Checksum:
        """The checksum of a content."""
        return cls(len(content), blake2b(content, digest_size=16).hexdigest())


@dataclass(frozen=True)
class Manifest:
    """The files of a folder. ``waiting`` says that they may not all have their names yet."""

    files: Mapping[str, Checksum]
    waiting: bool = False

    def to_json(self) -> bytes:
        """The content of the file; its own checksum stands in it."""
        files = {name: vars(checksum) for name, checksum in self.files.items()}
        whole = {"format": FORMAT, "files": files, "blake2b": _digest_of(files)}
        return (json.dumps(whole, indent=1) + "\n").encode("ascii")


def read_file(folder: Path, name: str) -> bytes:
    """The content of a file of a folder, as it was written.

    In a folder without a manifest, which older programs wrote, nothing is checked. Raises
    InputError for a damaged file or manifest, FileNotFoundError for a file that is not there or
    that the manifest does not name, OSError for one that cannot be read.
    """
    manifest = manifest_of(folder)
    if manifest is None:
        return (folder / name).read_bytes()
    for _ in range(_ATTEMPTS):
        if name not in manifest.files:
            raise FileNotFoundError(ENOENT, f"is not in {MANIFEST}", str(folder / name))
        contents = _contents(folder, name, manifest)
        for content in contents:
            if Checksum.of(content) == manifest.files[name]:
                return content
        before, now = manifest, manifest_of(folder)
        if now is None or now == before:
            break
        manifest = now  # the folder was written meanwhile
    if not contents:
        raise FileNotFoundError(ENOENT, "is missing", str(folder / name))
    raise _damaged(folder / name, manifest.files[name], len(contents[-1]))


def names_of(folder: Path) -> set[str]:
    """The names of the files of a folder that are not hidden, those that wait included."""
    manifest = manifest_of(folder)
    if manifest is None:
        return {entry.name for entry in folder.iterdir() if _is_plain(entry)}
    return {n for n in manifest.files if (folder / n).exists() or (folder / waiting(n)).exists()}


def place_of(folder: Path, name: str) -> Path:
    """Where a file of the folder lies at this moment, which need not be under its name."""
    manifest = manifest_of(folder)
    hidden = folder / waiting(name)
    return hidden if manifest and manifest.waiting and hidden.exists() else folder / name


def update(folder: Path, files: Mapping[str, bytes], *, drop: Collection[str] = ()) -> None:
    """Replace files of a folder, or add them, in one step; those in ``drop`` go.

    The files of the manifest that nothing is said of stay. What is there with the same content is
    not written again; the others come into their places in the order of ``files``. Raises
    NcrfError if the system refuses; the folder is then as it was, or as it was to become.
    """
    checksums = {name: Checksum.of(content) for name, content in files.items()}
    try:
        _complete(folder)
        before = manifest_of(folder)
        known = {} if before is None else before.files
        kept = {n: checksum for n, checksum in known.items() if n not in {*files, *drop}}
        new = {n: c for n, c in files.items() if not _is_there(folder / n, known, checksums[n])}
        manifest = Manifest({**kept, **checksums})
        if new or before != manifest:
            _make_step(folder, new, manifest)
            _complete(folder)
    except OSError as error:
        raise NcrfError(f"{folder}: cannot be written: {reason(error)}") from error
    for name in drop:
        with suppress(OSError):
            (folder / name).unlink(missing_ok=True)


def _make_step(folder: Path, new: Mapping[str, bytes], manifest: Manifest) -> None:
    """Write new files beside the old ones, and the manifest that makes them those that count."""
    _remove_waiting(folder)
    try:
        for name, content in {**new, MANIFEST: manifest.to_json()}.items():
            write_file(folder / waiting(name), content, name=folder / name)
    except BaseException:
        if not (folder / waiting(MANIFEST)).exists():
            _remove_waiting(folder)
        raise


def manifest_of(folder: Path) -> Manifest | None:
    """The manifest that holds for a folder; None where there is none. Raises InputError, OSError.

    InputError names one that is damaged or that a newer program wrote.
    """
    for name in (waiting(MANIFEST), MANIFEST):
        try:
            with open(folder / name, "rb") as file:
                content = file.read(_MOST_BYTES + 1)
        except FileNotFoundError:
            continue
        return Manifest(_parsed(content, folder / name), waiting=name != MANIFEST)
    return None


def waiting(name: str) -> str:
    """The name under which a file waits for its place."""
    return f".{name}{WAITING}"


def _complete(folder: Path) -> None:
    """Give the files of a step that was made their names. Raises OSError."""
    manifest = manifest_of(folder)
    if manifest is None or not manifest.waiting:
        return
    here = {entry.name for entry in folder.iterdir()}
    for name in [*manifest.files, MANIFEST]:
        if waiting(name) in here:
            os.replace(folder / waiting(name), folder / name)
    flush_folder(folder)


def _remove_waiting(folder: Path) -> None:
    """Remove the files of a step that was never made."""
    for entry in folder.iterdir():
        if entry.name.startswith(".") and entry.name.endswith(WAITING):
            with suppress(OSError):
                entry.unlink()


def _is_plain(place: Path) -> bool:
    return place.is_file() and not place.name.startswith(".")


def _is_there(path: Path, known: Mapping[str, Checksum], checksum: Checksum) -> bool:
    """Whether a file has a content already, as far as the manifest and its size tell."""
    try:
        return known.get(path.name) == checksum and os.stat(path).st_size == checksum.size
    except OSError:
        return False


def _contents(folder: Path, name: str, manifest: Manifest) -> list[bytes]:
    """What lies under the names that a file may have now; first where it comes from."""
    contents = []
    for place in ([waiting(name)] if manifest.waiting else []) + [name]:
        with suppress(FileNotFoundError):
            contents.append((folder / place).read_bytes())
    return contents


def _parsed(content: bytes, path: Path) -> dict[str, Checksum]:
    """The files that a manifest names; InputError, with its path, if it is none of ours."""
    try:
        if len(content) > _MOST_BYTES:
            raise ValueError("too long")
        whole: Any = json.loads(content)
        if type(whole["format"]) is int and whole["format"] > FORMAT:
            raise InputError(
                f"has format {whole['format']}, this program reads up to {FORMAT}",
                file=path,
                remedy="a newer version of ncrf",
            )
        files = {name: Checksum(**checksum) for name, checksum in whole["files"].items()}
        right = whole["format"] == FORMAT and whole["blake2b"] == _digest_of(whole["files"])
        if not right or not all(starmap(_is_sound, files.items())):
            raise ValueError("its checksum differs")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError("is damaged", file=path, remedy=_COPY_AGAIN) from error
    return files


def _is_sound(name: str, checksum: Checksum) -> bool:
    """Whether an entry has the types it should, and names a file of the folder itself."""
    plain = name.isprintable() and Path(name).name == name and name[:1] not in ("", ".")
    return plain and type(checksum.size) is int and isinstance(checksum.blake2b, str)


def _digest_of(files: Mapping[str, Any]) -> str:
    return blake2b(json.dumps(files, sort_keys=True).encode("ascii"), digest_size=16).hexdigest()


def _damaged(path: Path, expected: Checksum, found: int) -> InputError:
    what = "is damaged: its content is not what was written"
    if found != expected.size:
        what = f"is damaged: it has {found:,} bytes, {expected.size:,} were written"
    return InputError(what, file=path, remedy=_COPY_AGAIN)
