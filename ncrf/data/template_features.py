"""What a model knows of feature templates: attributes of words, and features with a weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncrf.data.attributes import AttributeVocabulary, TokenAttributes
from ncrf.data.column_layout import LABEL, SKIPPED, WORD
from ncrf.data.dataset import IntArray, InternedColumn, InternedCorpus
from ncrf.data.feature_index import FeatureIndex
from ncrf.data.templates import Templates
from ncrf.errors import InputError


@dataclass(frozen=True, eq=False)
class TemplateFeatures:
    """The templates of one model, met with its training corpus.

    ``columns`` are those that macros count, in the order of the corpus file without the label, as
    the key of that name writes them: ``word``, ``[NAME]``, and ``-`` for one that is skipped, which
    no macro may take. Features that are computed from the word come last.
    """

    columns: tuple[str, ...]
    attributes: AttributeVocabulary
    index: FeatureIndex

    def __eq__(self, other: object) -> bool:
        """Whether both have the same features, in the same order."""
        if not isinstance(other, TemplateFeatures):
            return NotImplemented
        mine, theirs = self.arrays(), other.arrays()
        return self.to_json() == other.to_json() and all(
            np.array_equal(mine[name], theirs[name]) for name in mine
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def templates(self) -> Templates:
        """The lines of the template file."""
        return self.attributes.templates

    def encode(self, corpus: InternedCorpus) -> TokenAttributes:
        """The attributes of every word of a corpus; those that training did not meet are none."""
        return self.attributes.encode(chosen_columns(self.columns, corpus), corpus.offsets)

    def check(self, num_labels: int, feature_names: tuple[str, ...]) -> None:
        """ValueError if this belongs to another model than one with these labels and features."""
        if self.index.num_labels != num_labels:
            raise ValueError("its labels are not those of the model")
        if not set(self.columns) <= {WORD, SKIPPED, *(f"[{name}]" for name in feature_names)}:
            raise ValueError("its columns are not those of the model")
        taken = [macro.column for template in self.templates.lines for macro in template.macros]
        if max(taken, default=-1) >= len(self.columns):
            raise ValueError("a template takes a column that there is not")

    def kept(self, keep: NDArray[np.bool_]) -> TemplateFeatures:
        """Without the features where ``keep [K]`` is False."""
        index, unigram, bigram = self.index.kept(keep)
        return TemplateFeatures(self.columns, self.attributes.kept(unigram, bigram), index)

    def to_json(self) -> dict[str, Any]:
        """Templates and strings as plain JSON values; ``arrays`` has the rest."""
        return {
            "columns": list(self.columns),
            "num_labels": self.index.num_labels,
            **self.attributes.to_json(),
        }

    def arrays(self) -> dict[str, NDArray[np.int32]]:
        """What ``from_json`` needs beside the JSON."""
        return {**self.attributes.arrays(), **self.index.arrays()}

    @classmethod
    def from_json(
        cls, data: Mapping[str, Any], arrays: Mapping[str, NDArray[np.int32]]
    ) -> TemplateFeatures:
        """What ``to_json`` and ``arrays`` gave; KeyError, TypeError, ValueError if damaged."""
        attributes = AttributeVocabulary.from_json(data, arrays)
        if type(data["num_labels"]) is not int or data["num_labels"] < 0:
            raise ValueError("a number of another type")
        index = FeatureIndex.from_arrays(data["num_labels"], arrays)
        sizes = len(index.state_offsets) - 1, len(index.bigram_offsets) - 1
        if sizes != (attributes.num_unigram, attributes.num_bigram):
            raise ValueError("the features do not fit their attributes")
        return cls(tuple(data["columns"]), attributes, index)


def build_features(
    templates: Templates,
    columns: tuple[str, ...],
    corpus: InternedCorpus,
    labels: IntArray,
    num_labels: int,
    *,
    cutoff: int = 1,
    all_possible_states: bool = False,
    all_possible_transitions: bool = False,
) -> TemplateFeatures:
    """The features of a training corpus whose words have ``labels [T]``, ids below ``num_labels``.

    Raises InputError, with the line, for a macro whose column there is not.
    """
    _refuse_skipped(templates, columns)
    vocabulary, attributes = AttributeVocabulary.build(
        templates, chosen_columns(columns, corpus), corpus.offsets, cutoff
    )
    index = FeatureIndex.build(
        attributes,
        labels,
        num_labels,
        (vocabulary.num_unigram, vocabulary.num_bigram),
        transitions=templates.transitions,
        all_possible_states=all_possible_states,
        all_possible_transitions=all_possible_transitions,
    )
    return TemplateFeatures(columns, vocabulary, index)


def template_columns(corpus: InternedCorpus) -> tuple[str, ...]:
    """The columns of a corpus that macros count."""
    there = [name for name in corpus.columns if name != LABEL] or [WORD]
    return (*there, *(f"[{n}]" for n in corpus.features if f"[{n}]" not in there))


def chosen_columns(columns: tuple[str, ...], corpus: InternedCorpus) -> dict[str, InternedColumn]:
    """The columns that macros count, by name; under one that is skipped there is no content."""
    found: dict[str, InternedColumn] = {}
    for place, name in enumerate(columns):
        if name == SKIPPED:
            found[f"{SKIPPED}{place}"] = corpus.words  # keeps the place; no macro takes it
        else:
            found[name] = corpus.words if name == WORD else corpus.features[name[1:-1]]
    return found


def _refuse_skipped(templates: Templates, columns: tuple[str, ...]) -> None:
    templates.check_columns(columns)
    for template in templates.lines:
        for macro in template.macros:
            if columns[macro.column] == SKIPPED:
                raise InputError(
                    f"column {macro.column} of the corpus is skipped by columns=",
                    file=templates.file,
                    line=template.line or None,
                    remedy="a name in its place, as in [POS]",
                )
