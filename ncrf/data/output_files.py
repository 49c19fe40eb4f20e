"""Output files that appear under their name only when they are whole."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from ncrf.errors import NcrfError


@contextmanager
def replacing(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open ``path`` for writing; the old file stays until the new one is complete.

    What is written goes to a temporary file beside it, which is flushed to the disk and then
    renamed. Where anything fails, the temporary file goes and the old one is as it was. The
    folder is made if it is missing. ``mode`` is ``w`` (UTF-8 text) or ``wb``; a name that ends in
    ``.gz`` is packed. A pipe or a device is written as it stands. Raises NcrfError that names the
    file where it cannot be written.
    """
    target = Path(os.path.realpath(path))  # a link stays, what it names is replaced
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        if target.exists() and not target.is_file():
            with _open(target, mode, packed=False) as file:
                yield file
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with _open(temporary, mode, packed=target.suffix == ".gz") as file:
                yield file
            with open(temporary, "rb") as written:
                os.fsync(written.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise NcrfError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def _open(path: Path, mode: str, *, packed: bool) -> Iterator[IO[Any]]:
    with open(path, "wb") as raw, ExitStack() as stack:
        binary: Any = raw
        if packed:
            # Neither name nor time stands in the file: the same text gives the same bytes.
            binary = stack.enter_context(gzip.GzipFile("", "wb", fileobj=raw, mtime=0))
        if "b" in mode:
            yield binary
        else:
            with io.TextIOWrapper(binary, encoding="utf-8", newline="\n") as text:
                yield text


def write_file(path: str | Path, content: bytes) -> None:
    """Write a whole file, or leave the old one as it was; see ``replacing``."""
    with replacing(path, "wb") as file:
        file.write(content)
