"""Importing the user's own modules, which may declare keys and register layers."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable

from ncrf.config.keys import shown
from ncrf.config.schema import Origin
from ncrf.config.values import BadValueError, is_unset, parse_names
from ncrf.errors import ConfigError


def import_plugins(plugins: str | Iterable[str], origin: Origin | None = None) -> None:
    """Import modules by name, from the current directory too; ConfigError if one fails."""
    file, line = origin or Origin()
    here = os.getcwd()
    added = here not in sys.path
    if added:
        sys.path.append(here)
    try:
        for name in module_names(plugins):
            importlib.invalidate_caches()
            try:
                importlib.import_module(name)
            except Exception as error:  # a plugin fails in any way it likes; the user gets one line
                raise ConfigError(
                    f"the plugin {name!r} cannot be imported: {type(error).__name__}: {error}",
                    file=file,
                    line=line,
                    remedy="a module that Python finds",
                ) from error
    finally:
        if added and here in sys.path:
            sys.path.remove(here)


def module_names(plugins: str | Iterable[str]) -> tuple[str, ...]:
    """``"a,b"`` or an iterable of names as a tuple; ConfigError for anything else."""
    raw = plugins if isinstance(plugins, str) else list(plugins)
    try:
        return () if is_unset(raw) else parse_names(raw)
    except BadValueError as error:
        raise ConfigError(f"plugins={shown(raw)} {error.what}", remedy=error.remedy) from error
