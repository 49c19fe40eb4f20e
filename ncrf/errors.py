"""The errors that ncrf raises: one line of text that names file, line and remedy."""

from __future__ import annotations

from pathlib import Path


class NcrfError(Exception):
    """Work that could not be finished; the command line ends with ``exit_status``."""

    exit_status = 1


class InputError(NcrfError):
    """A user's mistake in a file or an argument.

    The text is always one line, ``file:line: what is wrong (what would be right)``; the parts
    that are not known are left out.
    """

    exit_status = 2

    def __init__(
        self,
        what: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        remedy: str | None = None,
    ) -> None:
        self.what = what
        self.file = None if file is None else str(file)
        self.line = line
        self.remedy = remedy
        place = ":".join(str(part) for part in (self.file, line) if part is not None)
        text = f"{place}: {what}" if place else what
        super().__init__(" ".join((f"{text} ({remedy})" if remedy else text).splitlines()))


class ConfigError(InputError):
    """A wrong key, value or path in a config file or on the command line."""
