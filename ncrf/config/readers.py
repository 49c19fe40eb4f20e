"""Config files, command lines and mappings -> a list of entries, each with its place.

Nothing is known here of which keys exist; that and the values are checked in ``load.py``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ncrf.config.keys import canonical, find_key, shown
from ncrf.config.schema import Origin
from ncrf.errors import ConfigError

COMMAND_LINE = "command line"
MOST_BYTES = 1 << 18  # of a config file; PyYAML needs some seconds for as many
_MOST_NODES = 100_000  # of a YAML file whose aliases are followed; they can multiply without end


@dataclass(frozen=True)
class Entry:
    """One key with its raw value and where it was given. ``adds`` marks a line of a list."""

    name: str
    raw: Any
    origin: Origin
    adds: bool = False


def read_file(path: str | os.PathLike[str]) -> list[Entry]:
    """The entries of a config file: YAML by its ending, ``key=value`` lines otherwise."""
    name = os.fspath(path)
    text = decoded(read_bytes(name), name)
    is_yaml = Path(name).suffix.lower() in (".yaml", ".yml")
    return read_yaml(text, name) if is_yaml else read_key_values(text, name)


def read_key_values(text: str, file: str) -> list[Entry]:
    """The entries of ``key=value`` lines; a line without ``=`` is an error with its number."""
    entries = []
    for number, line in enumerate(text.split("\n"), start=1):
        # A # in the middle of a word, as in a path, is no comment.
        content = re.split(r"(?:^|\s)#", line.strip(), maxsplit=1)[0].strip()
        if not content:
            continue
        name, equals, value = content.partition("=")
        if not equals or not name.strip():
            raise ConfigError(
                f"{shown(content)} is no setting", file=file, line=number, remedy="key=value"
            )
        adds = canonical(name) == "feature"
        entries.append(Entry(name.strip(), value.strip(), Origin(file, number), adds))
    return entries


def read_yaml(text: str, file: str) -> list[Entry]:
    """The entries of a YAML mapping, flat or with one level of sections, which are ignored.

    All scalars stay text, so that a value means the same as in a ``key=value`` file.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        raise ConfigError(
            f"is not YAML: {error.problem}",
            file=file,
            line=line,
            remedy="quote values that begin with [ or hold ': '",
        ) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 1
        raise ConfigError(
            f"is not YAML: {error.reason}", file=file, line=line, remedy="printable characters"
        ) from error
    except (RecursionError, ValueError, OverflowError) as error:
        raise ConfigError("is not YAML that a config may hold", file=file) from error
    if root is None or (isinstance(root, yaml.ScalarNode) and root.tag.endswith(":null")):
        return []
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(
            "holds no mapping", file=file, line=_line(root), remedy="lines of key: value"
        )
    return list(_YamlReader(file).entries(root, may_nest=True))


def read_command_line(arguments: Sequence[str]) -> list[Entry]:
    """The entries of ``--key value`` and ``--key=value``; a boolean key alone means True."""
    entries = []
    position = 0
    while position < len(arguments):
        name, equals, value = arguments[position].partition("=")
        position += 1
        if not name.startswith("--") or not name.strip("-"):
            raise ConfigError(
                f"{shown(name + equals + value)} is no setting",
                file=COMMAND_LINE,
                remedy="--key value",
            )
        name = name[2:]
        if not equals:
            if position < len(arguments) and not arguments[position].startswith("--"):
                value = arguments[position]
                position += 1
            else:
                value = _value_of_bare_option(name)
        adds = canonical(name) == "feature"
        entries.append(Entry(name, value.strip(), Origin(COMMAND_LINE), adds))
    return entries


def read_mapping(mapping: Mapping[str, Any]) -> list[Entry]:
    """The entries of a Python mapping of flat keys; values may be typed already."""
    return [Entry(str(name), raw, Origin()) for name, raw in mapping.items()]


def _value_of_bare_option(name: str) -> str:
    declared = find_key(name)
    # An unknown key passes here, to be named with its nearest one.
    if declared is not None and declared.type is not bool:
        raise ConfigError(f"--{name} has no value", file=COMMAND_LINE, remedy=f"--{name} VALUE")
    return "True"


def read_bytes(name: str) -> bytes:
    """The content of a config file; ConfigError if it cannot be read, or is far too long."""
    try:
        with open(name, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"cannot be read: {reason}", file=name, remedy="the path of a config file"
        ) from error
    if len(data) > MOST_BYTES:
        raise ConfigError(
            f"is larger than {MOST_BYTES:,} bytes", file=name, remedy="the path of a config file"
        )
    return data


def decoded(data: bytes, name: str) -> str:
    """The content of a config file as text: UTF-8 with or without BOM, any line ends."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            "is not UTF-8", file=name, line=line, remedy="save it as UTF-8"
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


class _YamlReader:
    """Turns the nodes of one YAML file into entries."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._nodes = 0

    def entries(self, node: yaml.MappingNode, *, may_nest: bool) -> Iterator[Entry]:
        """The entries of a mapping; of the sections in it where it may have some."""
        for key_node, value_node in node.value:
            place = Origin(self._file, _line(key_node))
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._error("a key is no word", key_node, "key: value")
            self._count(key_node)
            name = str(key_node.value)
            is_mapping = isinstance(value_node, yaml.MappingNode)
            if is_mapping and not (canonical(name) == "feature" and _names_feature(value_node)):
                if not may_nest:
                    what = f"the section {shown(name)} stands inside another"
                    raise self._error(what, key_node, "one level of sections at most")
                yield from self.entries(value_node, may_nest=False)
            else:
                yield Entry(name, self._plain(value_node, depth=0), place)

    def _plain(self, node: yaml.Node, depth: int) -> Any:
        """Text, None, or a list or mapping of them; anchors that contain themselves end here."""
        self._count(node)
        if isinstance(node, yaml.ScalarNode):
            return None if node.tag.endswith(":null") else str(node.value)
        if depth >= 3:
            raise self._error("lists within lists", node, "a flat list")
        if isinstance(node, yaml.SequenceNode):
            return [self._plain(item, depth + 1) for item in node.value]
        pairs = node.value
        return {str(self._plain(k, depth + 1)): self._plain(v, depth + 1) for k, v in pairs}

    def _count(self, node: yaml.Node) -> None:
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise self._error("its aliases stand for too much", node, "no aliases")

    def _error(self, what: str, node: yaml.Node, remedy: str) -> ConfigError:
        return ConfigError(what, file=self._file, line=_line(node), remedy=remedy)


def _names_feature(node: yaml.MappingNode) -> bool:
    return any(
        isinstance(k, yaml.ScalarNode) and canonical(k.value) == "name" for k, _ in node.value
    )


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
