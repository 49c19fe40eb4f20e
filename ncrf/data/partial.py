"""Labels that are known in part: ``?`` for any label, ``A|B`` for one of several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ncrf.data.alphabet import Alphabet

UNKNOWN_LABEL = "?"
_BETWEEN = "|"


def is_partial(label: str, partial_labels: str) -> bool:
    """Whether a label stands for several under ``partial_labels``; auto is read as unknown."""
    if label == UNKNOWN_LABEL:
        return partial_labels != "none"
    return partial_labels == "sets" and _BETWEEN in label


def settled(partial_labels: str, *, marks_spans: bool) -> str:
    """What ``partial_labels=auto`` means once it is known whether the labels mark spans.

    Where they do not, ``?`` may well be a label, such as the tag of a question mark.
    """
    if partial_labels != "auto":
        return partial_labels
    return "unknown" if marks_spans else "none"


def without_partial(labels: Sequence[str], partial_labels: str) -> list[str]:
    """The labels with ``?`` for each that stands for several, sets among them.

    ``?`` marks no span and says nothing of its neighbours, whereas ``B-PER|O`` could be read as
    the begin of a ``PER|O``.
    """
    return [UNKNOWN_LABEL if is_partial(label, partial_labels) else label for label in labels]


def set_of(label: str) -> set[str]:
    """The labels that ``A|B`` names; none for ``?``, which stands for all."""
    return set() if label == UNKNOWN_LABEL else set(label.split(_BETWEEN))


def possible_labels(strings: Sequence[str], labels: Alphabet) -> NDArray[np.bool_]:
    """Which of the model's labels each string stands for, ``[len(strings), Y]``.

    A label of the model stands for itself, ``?`` for all, ``A|B`` for its parts; anything else
    for none.
    """
    possible = np.zeros((len(strings), len(labels)), np.bool_)
    for row, string in zip(possible, strings, strict=True):
        if string in labels:
            row[labels.id(string)] = True
        elif string == UNKNOWN_LABEL:
            row[:] = True
        else:
            parts = labels.ids(set_of(string))
            row[parts[parts >= 0]] = True
    return possible
