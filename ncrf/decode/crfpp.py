"""Labelled files in the layout of CRF++'s crf_test: the input's own columns, then the label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ncrf.data.columns import Sentence, read_columns
from ncrf.decode.predict import Predictor
from ncrf.decode.prediction import Labeling, Prediction, Wanted
from ncrf.errors import ConfigError

_ALL = 2  # the verbosity that asks for the probabilities of all labels


def crfpp_text(
    predictor: Predictor, path: str, nbest: int | None = None, verbose: int = 0
) -> Iterator[str]:
    """The labelled sentences of ``path``, some at a time, as text.

    Each is a block of rows: all cells of the input, then the label, with tabs between them, and a
    blank line. ``verbose`` 1 puts ``# P(labeling)`` before a block and writes ``label/P(label)``; 2
    adds ``label/P`` for each label of the model, in alphabetical order. With ``nbest`` there are so
    many blocks for each sentence, under ``# rank P``.

    Raises InputError for what cannot be read; ConfigError if probabilities are asked for of labels
    that are not in the model's own scheme.
    """
    scheme = predictor.vocabulary.scheme.target
    if verbose and predictor.output_scheme != scheme:
        raise ConfigError(
            f"-v: labels are written in {predictor.output_scheme}, the model has them in {scheme}",
            remedy="a model that was trained with input_scheme=plain, or no -v",
        )
    keys = predictor.config.corpus
    reader = read_columns(
        path,
        columns=keys.columns,
        separator=keys.column_separator,
        comment_prefix=keys.comment_prefix,
        labels="optional",
        features=tuple(predictor.vocabulary.features),
        file_format=keys.file_format,
        label_column=keys.label_column,
        keep_rows=True,
    )
    wanted = Wanted(nbest=nbest, probability=bool(nbest or verbose), spans=False)
    labels = predictor.vocabulary.labels.strings
    for window in predictor.windows(reader, wanted):
        marginals: Sequence[NDArray[np.float64] | None] = [None] * len(window)
        if verbose:
            marginals = predictor.label_marginals(window)
        for sentence, prediction, of_words in zip(
            window, predictor.predict(window, wanted), marginals, strict=True
        ):
            columns = _columns(of_words, labels, verbose)
            yield "".join(_blocks(sentence, prediction, columns, verbose))


def _blocks(
    sentence: Sentence, prediction: Prediction, columns: _Columns | None, verbose: int
) -> Iterator[str]:
    best = Labeling(prediction.labels, prediction.probability)
    for rank, labeling in enumerate(prediction.nbest or [best]):
        if prediction.nbest is not None:
            yield f"# {rank} {labeling.probability:g}\n"
        elif verbose:
            yield f"# {labeling.probability:g}\n"
        for place, row in enumerate(sentence.rows or ()):
            label = labeling.labels[place]
            cells = [label] if columns is None else columns.cells(place, label)
            yield "\t".join([*row, *cells]) + "\n"
        yield "\n"


class _Columns:
    """The labels of one sentence with their probabilities, as cells."""

    def __init__(
        self, marginals: NDArray[np.float64], labels: tuple[str, ...], everything: bool
    ) -> None:
        self._marginals = marginals
        self._places = {label: place for place, label in enumerate(labels)}
        self._order = sorted(labels) if everything else []

    def cells(self, place: int, label: str) -> list[str]:
        """What is written at a word whose label is ``label``."""
        return [self._cell(place, label), *(self._cell(place, other) for other in self._order)]

    def _cell(self, place: int, label: str) -> str:
        return f"{label}/{self._marginals[place, self._places[label]]:g}"


def _columns(
    marginals: NDArray[np.float64] | None, labels: tuple[str, ...], verbose: int
) -> _Columns | None:
    """None where no probabilities are asked for, or the sentence has no distribution."""
    if marginals is None:
        return None
    return _Columns(marginals, labels, verbose >= _ALL)
