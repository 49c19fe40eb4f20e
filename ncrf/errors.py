"""The errors that ncrf raises: one line of text that names file, line and remedy."""

from __future__ import annotations

from pathlib import Path

_MOST = 1000  # characters of what is said of a place; a word may have millions


class NcrfError(Exception):
    """Work that could not be finished; the command line ends with ``exit_status``."""

    exit_status = 1

    def __init__(self, text: str) -> None:
        super().__init__(_one_line(text))


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
        text = f"{place}: {_shortened(what)}" if place else _shortened(what)
        super().__init__(f"{text} ({_shortened(remedy)})" if remedy else text)


class ConfigError(InputError):
    """A wrong key, value or path in a config file or on the command line."""


def _shortened(text: str, most: int = _MOST) -> str:
    return text if len(text) <= most else f"{text[: most - 100]} ... {text[-90:]}"


def _one_line(text: str) -> str:
    return printable(" ".join(_shortened(text, 4 * _MOST).splitlines()))


def printable(line: str) -> str:
    """A line as a terminal may show it: what would move its cursor is written as an escape."""
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
