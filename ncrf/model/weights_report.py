"""What a model has learned by templates: its strongest features, and the transition table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncrf.data.template_features import TemplateFeatures
from ncrf.errors import InputError
from ncrf.model.folder import WEIGHTS, has, read_arrays, read_description

_TRANSITIONS = "inference.crf.transitions"
_MOST_COLUMNS = 30  # labels of a table; with more, transitions come as a list
_LISTED = 50  # transitions of such a list, unless it is said how many

Weights = dict[str, NDArray[Any]]


def weight_lines(model_dir: str | os.PathLike[str], top: int = 10) -> Iterator[str]:
    """Lines: the transitions, and of every label the ``top`` strongest features for and against.

    Raises InputError for a folder that holds no whole model, or one without transitions.
    """
    folder = Path(model_dir)
    _, vocabulary = read_description(folder)
    weights, labels = _read(folder), vocabulary.labels.strings
    if _TRANSITIONS not in weights:
        raise InputError("has no transitions", file=folder / WEIGHTS)
    yield from _transition_lines(weights[_TRANSITIONS], labels)
    if vocabulary.templates is not None:
        yield from _feature_lines(vocabulary.templates, weights, labels, top)


def _read(folder: Path) -> Weights:
    if not has(folder, WEIGHTS):
        raise InputError("there are no weights", file=folder / WEIGHTS, remedy="train the model")
    return read_arrays(folder / WEIGHTS)


def _transition_lines(table: NDArray[Any], labels: tuple[str, ...]) -> Iterator[str]:
    """The transitions as a table, from the label of the row to that of the column."""
    if len(labels) > _MOST_COLUMNS:
        yield f"transitions, the {_LISTED} strongest (from, to)"
        order = np.argsort(-np.abs(table).reshape(-1), kind="stable")[:_LISTED]
        for place in order.tolist():
            before, label = divmod(place, len(labels))
            yield f"{table[before, label]:+10.4f}  {labels[before]} {labels[label]}"
        return
    yield "transitions, from the label of the row to that of the column"
    first = max(map(len, labels))
    widths = [max(8, len(label)) for label in labels]
    heads = (f"{label:>{width}}" for label, width in zip(labels, widths, strict=True))
    yield " ".join([" " * first, *heads])
    for label, row in zip(labels, table.tolist(), strict=True):
        cells = (f"{value:>{width}.4f}" for value, width in zip(row, widths, strict=True))
        yield " ".join([f"{label:<{first}}", *cells])


def _feature_lines(
    features: TemplateFeatures, weights: Weights, labels: tuple[str, ...], top: int
) -> Iterator[str]:
    index = features.index
    states, bigram = weights["templates.state_weights"], weights["templates.bigram_weights"]
    transitions = weights[_TRANSITIONS].reshape(-1)[index.transition_pairs]
    flat = np.concatenate([states, transitions, bigram])
    attribute, before, label = index.parts_of(np.arange(index.num_features))
    state, pair = index.parts[0], index.parts[2]
    for number, name in enumerate(labels):
        chosen = np.flatnonzero(label[state] == number)
        yield f"\nstate features of {name}: {len(chosen):,}"
        shown = _strongest(flat, chosen, top)
        texts = features.attributes.unigram_strings(attribute[shown].tolist())
        for place, text in zip(shown.tolist(), texts, strict=True):
            yield f"{flat[place]:+10.4f}  {text}"
    if len(bigram):
        yield f"\ntransition features with an observation: {len(bigram):,}"
        shown = _strongest(flat, np.arange(pair.start, pair.stop), top)
        texts = features.attributes.bigram_strings(attribute[shown].tolist())
        for place, text in zip(shown.tolist(), texts, strict=True):
            yield f"{flat[place]:+10.4f}  {labels[before[place]]} {labels[label[place]]}  {text}"


def _strongest(weights: NDArray[Any], chosen: NDArray[np.int64], top: int) -> NDArray[np.int64]:
    """Of the ``chosen`` features the ``top`` with the highest weights and the ``top`` lowest."""
    order = chosen[np.argsort(-weights[chosen], kind="stable")]
    if len(order) <= 2 * top:
        return order
    return np.concatenate([order[:top], order[len(order) - top :]])
