"""How a config key is declared: one dataclass field that readers, errors and tables share.

A key group is a frozen dataclass whose fields are made with :func:`key` and which is registered
with :func:`key_group`. Names of keys are unique over all groups, so that a config file is flat.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ncrf.errors import ConfigError

GroupClass = TypeVar("GroupClass", bound=type)

#: In ``used_when``: any value but None.
ANY_VALUE = "any value"


class UnknownNameError(ConfigError):
    """A key, or a choice of one, that nothing has declared: a typo, or a plugin is missing."""


@dataclass(frozen=True)
class Interval:
    """The numbers a key allows, written as mathematicians do: ``[0, 1)``, ``(0, inf)``."""

    low: float
    high: float
    open_low: bool
    open_high: bool

    @classmethod
    def parse(cls, text: str) -> Interval:
        """Read ``[1, inf)``; ValueError if that is not what stands there."""
        match = re.fullmatch(r"([\[(])\s*(\S+)\s*,\s*(\S+)\s*([\])])", text)
        if match is None:
            raise ValueError(f"not an interval: {text!r}")
        left, low, high, right = match.groups()
        return cls(float(low), float(high), left == "(", right == ")")

    def __contains__(self, number: float) -> bool:
        """Whether the number is allowed."""
        above = number > self.low if self.open_low else number >= self.low
        below = number < self.high if self.open_high else number <= self.high
        return above and below

    def __str__(self) -> str:
        """The interval in words, as errors and tables say it."""
        low, high = f"{self.low:.15g}", f"{self.high:.15g}"
        if math.isinf(self.high):
            return f"above {low}" if self.open_low else f"at least {low}"
        left = f"above {low}" if self.open_low else f"from {low}"
        return f"{left}, below {high}" if self.open_high else f"{left} to {high}"


@dataclass(frozen=True)
class Key:
    """All that is known about one key; made from its dataclass field.

    ``type`` is bool, int, float, str or tuple; ``optional`` says that None is a value too.
    ``used_when`` maps other keys to the values under which this key has any effect.
    """

    name: str
    group: str
    type: type
    optional: bool
    default: Any
    doc: str
    declared_choices: tuple[str, ...] = ()
    unit: str | None = None
    interval: Interval | None = None
    aliases: tuple[str, ...] = ()
    shapes_model: bool = False
    parse: Callable[[Any], Any] | None = None
    allowed: str | None = None
    used_when: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, hash=False)

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of an enumerated key, those that plugins added among them."""
        return tuple(_choices.get(self.name, ())) if self.declared_choices else ()


_groups: dict[str, type] = {}
_keys: dict[str, Key] = {}
_names: dict[str, str] = {}  # every canonical name and alias -> the key's name
_choices: dict[str, dict[str, str | None]] = {}  # key -> choice -> the group its layer reads


def key(
    default: Any,
    doc: str,
    *,
    choices: Iterable[str] = (),
    unit: str | None = None,
    interval: str | None = None,
    aliases: Iterable[str] = (),
    shapes_model: bool = False,
    parse: Callable[[Any], Any] | None = None,
    allowed: str | None = None,
    used_when: Mapping[str, tuple[Any, ...]] | None = None,
) -> Any:
    """Declare one config key as a dataclass field.

    ``doc`` is one or two sentences; ``interval`` bounds a number (``"[0, 1)"``); ``choices``
    are matched in any case; ``parse`` turns raw text into the value where the type alone does
    not say how, and raises ValueError with what would be right; ``allowed`` then describes the
    values. ``shapes_model`` marks a key that a decode config may not change.
    """
    metadata = {
        "doc": doc,
        "declared_choices": tuple(choices),
        "unit": unit,
        "interval": None if interval is None else Interval.parse(interval),
        "aliases": tuple(aliases),
        "shapes_model": shapes_model,
        "parse": parse,
        "allowed": allowed,
        "used_when": dict(used_when or {}),
    }
    return field(default=default, metadata=metadata)


def key_group(name: str) -> Callable[[GroupClass], GroupClass]:
    """Register a frozen dataclass of keys under ``name``; the class docstring is its heading.

    Raises ValueError when the name or one of the keys is already declared by another class.
    """

    def register(cls: GroupClass) -> GroupClass:
        known = _groups.get(name)
        if known is not None and _origin(known) != _origin(cls):
            raise ValueError(f"the key group {name!r} is already declared by {known.__qualname__}")
        keys = _keys_of(name, cls)
        for declared in keys:
            for spelling in (declared.name, *declared.aliases):
                holder = _names.get(canonical(spelling))
                if holder is not None and _keys[holder].group != name:
                    raise ValueError(f"the key {spelling!r} is already in {_keys[holder].group!r}")
        _forget(name)
        _groups[name] = cls
        for declared in keys:
            _keys[declared.name] = declared
            _names.update({canonical(s): declared.name for s in (declared.name, *declared.aliases)})
            for choice in declared.declared_choices:
                _choices.setdefault(declared.name, {}).setdefault(choice, None)
        return cls

    return register


def add_choice(key_name: str, choice: str, *, group: str | None = None) -> None:
    """Add a value to an enumerated key, as a plugin's layer does.

    ``group`` names the key group that this choice reads; its keys are idle under other choices.
    Adding a choice again is no error. ``key_name`` may be ``from``, the computed features.
    """
    key_name = canonical(key_name)
    declared = _keys.get(key_name)
    if key_name not in _choices or (declared is not None and not declared.declared_choices):
        raise ValueError(f"{key_name!r} is not a key with choices")
    known = _choices[key_name]
    spelling = next((c for c in known if c.lower() == choice.lower()), choice)
    known[spelling] = group if group is not None else known.get(spelling)


def declare_choices(name: str, choices: Iterable[str]) -> None:
    """Open a set of choices that belongs to no key of its own (``from=`` of a feature line)."""
    _choices.setdefault(name, {}).update(dict.fromkeys(choices))


def choices_of(name: str) -> Mapping[str, str | None]:
    """The choices under ``name``, each with the key group its layer reads."""
    return _choices.get(name, {})


def all_keys() -> tuple[Key, ...]:
    """Every declared key, group by group, in the order of declaration."""
    return tuple(k for group in _groups for k in _keys.values() if k.group == group)


def groups() -> Mapping[str, type]:
    """The registered key groups: name -> dataclass."""
    return dict(_groups)


def find_key(name: str) -> Key | None:
    """The key with this name or alias, in any case; None if there is none."""
    found = _names.get(canonical(name))
    return None if found is None else _keys[found]


def canonical(name: str) -> str:
    """The one spelling of a key's name: lower case, underscores."""
    return name.strip().lower().replace("-", "_")


def nearest(word: str, candidates: Iterable[str]) -> str:
    """The candidate most like ``word``, however unlike; letter case does not count."""
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    best = difflib.get_close_matches(word.lower()[:100], by_lower, n=1, cutoff=0.0)
    return by_lower[best[0]]


def unknown_key(name: str, *, file: str | None = None, line: int | None = None) -> UnknownNameError:
    """The error for a key that does not exist, with the nearest one that does."""
    close = _names[nearest(canonical(name), _names)]
    return UnknownNameError(
        f"unknown key {shown(name)}", file=file, line=line, remedy=f"the nearest name is {close}"
    )


def shown(value: object) -> str:
    """A value as an error shows it: on one line, quoted if it is text, never long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}…{text[-15:]}"


def _keys_of(group: str, cls: type) -> list[Key]:
    """Read the declared keys off a dataclass; ValueError where a field is no key."""
    if not dataclasses.is_dataclass(cls):
        raise ValueError(f"the key group {group!r} must be a frozen dataclass")
    hints = typing.get_type_hints(cls)
    keys = []
    for item in dataclasses.fields(cls):
        if "doc" not in item.metadata:
            raise ValueError(f"{cls.__qualname__}.{item.name} is not declared with key(...)")
        kind, optional = _kind(hints[item.name])
        keys.append(Key(item.name, group, kind, optional, item.default, **item.metadata))
    return keys


def _kind(hint: Any) -> tuple[type, bool]:
    """``int | None`` -> (int, True); the first type counts where there are several."""
    members = (
        typing.get_args(hint)
        if typing.get_origin(hint) in (typing.Union, types.UnionType)
        else (hint,)
    )
    kinds = [m for m in members if m is not types.NoneType]
    kind = typing.get_origin(kinds[0]) or kinds[0]
    return kind, len(kinds) < len(members)


def _origin(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__


def _forget(group: str) -> None:
    """Drop a group that is declared anew (its module was imported again)."""
    for name in [k.name for k in _keys.values() if k.group == group]:
        del _keys[name]
        for spelling in [s for s, target in _names.items() if target == name]:
            del _names[spelling]
