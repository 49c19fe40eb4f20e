"""All of a configuration in one frozen object, one attribute per group of keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ncrf.config.data_keys import Corpus, Decoding, Files, Run
from ncrf.config.keys import all_keys, find_key, groups, shown, unknown_key
from ncrf.config.network_keys import Chars, Inference, Network, Training, WordLayer, Words
from ncrf.config.template_keys import TemplateKeys, WholeCorpus
from ncrf.config.values import BadValueError, FeatureSpec, is_unset, parse_value
from ncrf.errors import ConfigError

__all__ = [
    "BUILT_IN_GROUPS",
    "Chars",
    "Config",
    "Corpus",
    "Decoding",
    "Files",
    "Inference",
    "Network",
    "Origin",
    "Run",
    "TemplateKeys",
    "Training",
    "WholeCorpus",
    "WordLayer",
    "Words",
]


class Origin(NamedTuple):
    """Where a value was given: a config file and line, ``command line``, or nothing (Python)."""

    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Config:
    """A whole configuration, frozen; one attribute per group of keys.

    ``origins`` holds the keys that were given explicitly and where (for features each one too,
    under ``feature [NAME]``); it does not count when configs are compared. Groups of plugins
    are reached through :meth:`group`.
    """

    run: Run = field(default_factory=Run)
    files: Files = field(default_factory=Files)
    corpus: Corpus = field(default_factory=Corpus)
    words: Words = field(default_factory=Words)
    chars: Chars = field(default_factory=Chars)
    word_layer: WordLayer = field(default_factory=WordLayer)
    network: Network = field(default_factory=Network)
    inference: Inference = field(default_factory=Inference)
    training: Training = field(default_factory=Training)
    templates: TemplateKeys = field(default_factory=TemplateKeys)
    whole_corpus: WholeCorpus = field(default_factory=WholeCorpus)
    decoding: Decoding = field(default_factory=Decoding)
    plugin_groups: Mapping[str, Any] = field(default_factory=dict, hash=False)
    origins: Mapping[str, Origin] = field(
        default_factory=dict, compare=False, repr=False, hash=False
    )

    @classmethod
    def from_values(cls, values: Mapping[str, Any], origins: Mapping[str, Origin]) -> Config:
        """A config of parsed values by key name; keys that are missing have their defaults."""
        built, plugin_groups = {}, {}
        for name, group_class in groups().items():
            own = {
                k.name: values[k.name] for k in all_keys() if k.group == name and k.name in values
            }
            group = group_class(**own)
            if name in BUILT_IN_GROUPS:
                built[name] = group
            elif group != group_class():  # else it is left out: importing changes no config
                plugin_groups[name] = group
        return cls(**built, plugin_groups=plugin_groups, origins=dict(origins))

    def group(self, name: str) -> Any:
        """The dataclass of one key group, a plugin's too; KeyError if there is none."""
        if name in BUILT_IN_GROUPS:
            return getattr(self, name)
        return self.plugin_groups[name] if name in self.plugin_groups else groups()[name]()

    def value(self, name: str) -> Any:
        """The value of one key by its flat name; ConfigError with the nearest name if unknown."""
        declared = find_key(name)
        if declared is None:
            raise unknown_key(name)
        return getattr(self.group(declared.group), declared.name)

    def values(self) -> dict[str, Any]:
        """Every key with its typed value."""
        return {k.name: self.value(k.name) for k in all_keys()}

    def is_set(self, name: str) -> bool:
        """Whether the key was given in the file, on the command line or in Python."""
        declared = find_key(name)
        if declared is None:
            raise unknown_key(name)
        return declared.name in self.origins

    @property
    def classical(self) -> bool:
        """Whether templates are all that the model knows of words: no network beside them."""
        neural = self.words.use_word_emb or self.chars.use_char or self.word_layer.use_word_seq
        return self.templates.template_file is not None and not neural

    def error(self, name: str, what: str, remedy: str | None = None) -> ConfigError:
        """A ConfigError that stands at the file and line where the key was given."""
        file, line = self.origins.get(name, Origin())
        return ConfigError(what, file=file, line=line, remedy=remedy)

    def replace(self, **changes: Any) -> Config:
        """A copy with other values for some flat keys, checked; None means the default.

        What :meth:`is_set` says does not change.
        """
        values = self.values()
        for name, raw in changes.items():
            declared = find_key(name)
            if declared is None:
                raise unknown_key(name)
            if is_unset(raw, declared):
                values[declared.name] = declared.default
                continue
            try:
                values[declared.name] = parse_value(declared, raw)
            except BadValueError as error:
                raise ConfigError(
                    f"{declared.name}={shown(raw)} {error.what}", remedy=error.remedy
                ) from error
        return Config.from_values(values, self.origins)

    def flat(self) -> dict[str, Any]:
        """Every key with a plain value, fit for YAML or JSON; plugins are left out."""
        values = self.values()
        del values["plugins"]
        return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, FeatureSpec):
        return value.flat()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


#: The groups that are attributes of Config; all others come from plugins.
BUILT_IN_GROUPS = tuple(groups())
