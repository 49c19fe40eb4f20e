"""From a config file, a command line or a mapping to one checked, frozen Config."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ncrf.config import checks
from ncrf.config.folders import model_folder, settle_folders
from ncrf.config.keys import Key, UnknownNameError, canonical, find_key, shown, unknown_key
from ncrf.config.plugins import import_plugins, module_names
from ncrf.config.readers import (
    Entry,
    decoded,
    read_bytes,
    read_command_line,
    read_file,
    read_mapping,
    read_yaml,
)
from ncrf.config.schema import Config, Origin
from ncrf.config.template_keys import NO_WORD_LAYER
from ncrf.config.values import (
    BadValueError,
    FeatureSpec,
    UnknownChoiceError,
    is_unset,
    parse_value,
)
from ncrf.errors import ConfigError

logger = logging.getLogger(__name__)

#: Endings of keys that NCRF++'s later branch has; what they switch on, ncrf has not.
_LATER_BRANCH = ("_transformer", "_finetune")


def load_config(
    source: Config | str | os.PathLike[str] | Mapping[str, Any],
    overrides: Sequence[str] | Mapping[str, Any] | None = None,
    *,
    base: Config | None = None,
    plugins: str | Iterable[str] = (),
    check_files: bool = True,
) -> Config:
    """Read and check a whole configuration: defaults (or ``base``), then source, then overrides.

    ``source`` is a config file, a mapping of flat keys, or a Config to change; ``overrides`` are
    the arguments of a command line (``["--iteration", "5"]``) or a mapping. ``plugins`` are
    modules to import first, besides those that the config names. With ``check_files=False`` no
    file need exist and no key need be set. Raises ConfigError, one line with file, line and
    remedy.
    """
    if isinstance(source, Config):
        base, given = source, []
    else:
        given = read_mapping(source) if isinstance(source, Mapping) else read_file(source)
    if isinstance(overrides, Mapping):
        given_over = read_mapping(overrides)
    else:
        given_over = read_command_line(overrides or ())
    import_plugins(plugins)
    _import_named_plugins([*given, *given_over])
    config = _build([given, given_over], base, plugins)
    checks.check_combinations(config)
    if check_files:
        checks.check_files(config)
    return config


def read_model_config(
    folder: str | os.PathLike[str], *, plugins: str | Iterable[str] = ()
) -> Config:
    """The config that a model was trained with, from its folder.

    The files it names are not looked for. A model's config that names plugins is refused:
    nothing is imported because a downloaded folder says so.
    """
    path = model_folder(os.fspath(folder))
    checks.check_model_folder(path)
    file = os.path.join(path, checks.MODEL_CONFIG)
    return parse_model_config(read_bytes(file), file, plugins=plugins)


def parse_model_config(
    content: bytes, file: str | os.PathLike[str], *, plugins: str | Iterable[str] = ()
) -> Config:
    """As :func:`read_model_config`, from the content of the file."""
    name = os.fspath(file)
    entries = read_yaml(decoded(content, name), name)
    for entry in entries:
        if canonical(entry.name) == "plugins":
            raise ConfigError(
                "a model may not name plugins",
                file=entry.origin.file,
                line=entry.origin.line,
                remedy="remove the line, and pass plugins= if you trust them",
            )
    import_plugins(plugins)
    try:
        config = _build([entries], None, plugins)
    except UnknownNameError as error:
        remedy = f"{error.remedy}; if a plugin declares it, pass plugins="
        raise ConfigError(error.what, file=error.file, line=error.line, remedy=remedy) from error
    checks.check_widths(config)
    return config


def _import_named_plugins(entries: Sequence[Entry]) -> None:
    """Import what the last ``plugins`` entry names, before anything else is checked."""
    named = [entry for entry in entries if canonical(entry.name) == "plugins"]
    declared = find_key("plugins")
    if declared is not None and named and not is_unset(named[-1].raw):
        import_plugins(_parsed(declared, named[-1]), named[-1].origin)


def _build(
    layers: Sequence[Sequence[Entry]], base: Config | None, plugins: str | Iterable[str]
) -> Config:
    """A config from layers of entries; a later layer goes before an earlier one."""
    values = (base or Config()).values()
    origins: dict[str, Origin] = dict(base.origins) if base else {}
    for name, (declared, entries) in _settle(layers).items():
        given = [entry for entry in entries if not is_unset(entry.raw, declared)]
        if not given:
            values[name] = declared.default
            origins.pop(name, None)
            continue
        if name == "feature":
            # Lines add to what the base had, as the command line's add to the file's.
            kept = values[name] if given == entries and given[0].adds else ()
            values[name] = _joined_features(kept, declared, given, origins)
        else:
            values[name] = _parsed(declared, given[-1])
        origins[name] = given[-1].origin
    values["plugins"] = tuple(dict.fromkeys((*values["plugins"], *module_names(plugins))))
    if "status" not in origins:
        values["status"] = _status(values)
    settle_folders(values, origins)
    _settle_network(values, origins)
    return Config.from_values(values, origins)


def _settle_network(values: dict[str, Any], origins: Mapping[str, Origin]) -> None:
    """What ``word_seq_feature=none`` means: no word layer, with templates no embeddings either."""
    if values["word_seq_feature"] != NO_WORD_LAYER:
        return
    values["use_word_seq"] = False
    if values["template_file"] is not None:
        for name in ("use_word_emb", "use_char"):
            values[name] = values[name] and name in origins


def _settle(layers: Sequence[Sequence[Entry]]) -> dict[str, tuple[Key, list[Entry]]]:
    """What counts for each key: its last entry, or all lines of ``feature`` from an empty one."""
    settled: dict[str, tuple[Key, list[Entry]]] = {}
    for layer in layers:
        seen: dict[str, Entry] = {}
        for entry in layer:
            declared = find_key(entry.name)
            if declared is None:
                _accept_later_branch(entry)
                continue
            name = declared.name
            if name in seen and not entry.adds:
                _warn_repeated(name, seen[name], entry)
            seen[name] = entry
            if entry.adds and not is_unset(entry.raw, declared):
                settled.setdefault(name, (declared, []))[1].append(entry)
            else:
                settled[name] = (declared, [entry])
    return settled


def _accept_later_branch(entry: Entry) -> None:
    """Let ``*_transformer=None`` pass; ConfigError for every other unknown key."""
    file, line = entry.origin
    if not canonical(entry.name).endswith(_LATER_BRANCH):
        raise unknown_key(entry.name, file=file, line=line)
    if not is_unset(entry.raw) and str(entry.raw).strip().lower() != "false":
        raise ConfigError(
            f"{entry.name}={shown(entry.raw)} is not supported",
            file=file,
            line=line,
            remedy="None or False",
        )


def _warn_repeated(name: str, first: Entry, second: Entry) -> None:
    logger.warning("%s is given twice: %s replaces %s", name, _spoken(second), _spoken(first))


def _spoken(entry: Entry) -> str:
    file, line = entry.origin
    place = ":".join(str(part) for part in (file, line) if part is not None)
    return f"{shown(entry.raw)} ({place})" if place else shown(entry.raw)


def _parsed(declared: Key, entry: Entry) -> Any:
    """The value of an entry; ConfigError with its file and line if the key does not allow it."""
    try:
        return parse_value(declared, entry.raw)
    except BadValueError as error:
        kind = UnknownNameError if isinstance(error, UnknownChoiceError) else ConfigError
        raise kind(
            f"{declared.name}={shown(entry.raw)} {error.what}",
            file=entry.origin.file,
            line=entry.origin.line,
            remedy=error.remedy,
        ) from error


def _joined_features(
    kept: Sequence[FeatureSpec],
    declared: Key,
    entries: Sequence[Entry],
    origins: dict[str, Origin],
) -> tuple[FeatureSpec, ...]:
    """The features of all lines, each with its own origin, after those ``kept``.

    One that is named again is replaced, with a warning if that happens within one file.
    """
    specs = {spec.name: spec for spec in kept}
    places: dict[str, Entry] = {}
    for entry in entries:
        for spec in _parsed(declared, entry):
            if spec.name in places and places[spec.name].origin.file == entry.origin.file:
                _warn_repeated(f"feature [{spec.name}]", places[spec.name], entry)
            specs[spec.name] = spec
            places[spec.name] = entry
            origins[f"feature [{spec.name}]"] = entry.origin
    return tuple(specs.values())


def _status(values: Mapping[str, Any]) -> str:
    """What to do when the config does not say it."""
    model = values["load_model_dir"] or values["dset_dir"]
    return "decode" if values["raw_dir"] and model and not values["train_dir"] else "train"
