"""Features that are computed from the word instead of being read from a column."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from ncrf.config import FeatureSpec
from ncrf.data.dataset import InternedColumn, InternedCorpus, StringTable
from ncrf.errors import ConfigError


def capitalization(word: str) -> str:
    """The shape of a word's capitals: lower, initial, all, mixed, digits or other.

    >>> [capitalization(word) for word in ("left", "Anna", "EU", "McCoy", "1996", "-")]
    ['lower', 'initial', 'all', 'mixed', 'digits', 'other']
    """
    if any(character.isalpha() for character in word):
        if word == word.lower():
            return "lower"
        if word == word.upper() and len(word) > 1:
            return "all"
        if word[0].isupper() and word[1:] == word[1:].lower():
            return "initial"
        return "mixed"
    return "digits" if any(character.isdigit() for character in word) else "other"


COMPUTED: dict[str, Callable[[str], str]] = {"capitalization": capitalization}


def add_computed_feature(corpus: InternedCorpus, name: str, source: str) -> None:
    """Add the feature column ``name``, computed from the words as ``source`` says.

    Raises ConfigError for a source that is not known.
    """
    function = COMPUTED.get(source)
    if function is None:
        raise ConfigError(
            f"feature=[{name}] from={source}: unknown source",
            remedy=f"one of: {', '.join(COMPUTED)}",
        )
    table = StringTable()
    value_of_type = np.array([table[function(word)] for word in corpus.words.strings], np.int64)
    ids = value_of_type[corpus.words.ids] if len(value_of_type) else corpus.words.ids
    corpus.features[name] = InternedColumn(ids, table.strings())


def add_computed_features(corpus: InternedCorpus, specs: Iterable[FeatureSpec]) -> None:
    """Add every computed feature column that the config asks for."""
    for spec in specs:
        if spec.source:
            add_computed_feature(corpus, spec.name, spec.source)
