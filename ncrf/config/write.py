"""A resolved config as YAML, in groups, fit to be read back."""

from __future__ import annotations

import os
from typing import Any

import yaml

from ncrf.config.checks import layer_chosen
from ncrf.config.keys import all_keys, groups
from ncrf.config.schema import BUILT_IN_GROUPS, Config
from ncrf.data.output_files import replacing


def config_text(config: Config) -> str:
    """The YAML text of a config: every key under a comment for its group, plugins left out."""
    flat = config.flat()
    parts = []
    for name, group_class in groups().items():
        keys = [k.name for k in all_keys() if k.group == name and k.name in flat]
        if not _belongs(config, name, keys):
            continue
        heading = (group_class.__doc__ or name).strip().splitlines()[0]
        parts.append(f"# {name}: {heading}\n{_yaml({k: flat[k] for k in keys})}")
    return "\n".join(parts)


def write_config(config: Config, path: str | os.PathLike[str]) -> None:
    """Write :func:`config_text` to ``path``, whole or not at all; NcrfError if that fails."""
    with replacing(os.fspath(path)) as file:
        file.write(config_text(config))


def _yaml(values: dict[str, Any]) -> str:
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=10**6)
    # PyYAML writes U+0085 as it stands and then reads it as a line end.
    if "\x85" in text:
        return yaml.safe_dump(values, sort_keys=False, allow_unicode=False, width=10**6)
    return text


def _belongs(config: Config, group: str, keys: list[str]) -> bool:
    """A plugin's group stands in the file only if its layer is chosen or a key was given.

    Another plugin that this process happens to have imported must not be needed to read it.
    """
    if group in BUILT_IN_GROUPS or group in config.plugin_groups:
        return True
    return bool(layer_chosen(config, group)) or any(config.is_set(k) for k in keys)
