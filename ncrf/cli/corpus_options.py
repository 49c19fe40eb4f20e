"""The options of commands that read corpora: config keys, with the texts that the keys have."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence

from ncrf.config import find_key

READING = (
    "columns",
    "column_separator",
    "comment_prefix",
    "file_format",
    "label_column",
    "label_delimiter",
    "input_scheme",
)


def add_key_options(parser: argparse.ArgumentParser, names: Iterable[str] = READING) -> None:
    """Let a parser take config keys as ``--key VALUE``; their values are checked as in a config."""
    group = parser.add_argument_group("config keys")
    for name in names:
        key = find_key(name)
        assert key is not None, name
        values = ", ".join(key.choices) or key.allowed
        text = f"{key.doc} ({values})" if values else key.doc
        group.add_argument(f"--{name}", metavar="VALUE", help=text.replace("%", "%%"))


def parsed(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """What a parser makes of a command line, in which ``--columns -,word,label`` may stand.

    argparse by itself takes every word that begins with a hyphen for an option. Files may stand
    before, between and after options, also where the last one may be left out.
    """
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] == "--columns" and re.match(r"-\s*,", argument):
            joined[-1] = f"--columns={argument}"
        else:
            joined.append(argument)
    return parser.parse_intermixed_args(joined)


def given_keys(options: argparse.Namespace, names: Iterable[str] = READING) -> dict[str, str]:
    """The keys that were given on the command line, for ``load_config``."""
    values = {name: getattr(options, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}
