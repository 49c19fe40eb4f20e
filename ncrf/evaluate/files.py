"""Scoring a file of predicted labels against a gold file."""

from __future__ import annotations

from ncrf.data.columns import CorpusReader, read_columns
from ncrf.data.schemes import PLAIN, SchemeDetector
from ncrf.evaluate.pairing import paired
from ncrf.evaluate.spans import Score, score_accuracy, score_spans


def score_files(
    gold: str,
    predicted: str,
    *,
    columns: str | None = None,
    separator: str = "auto",
    comment_prefix: str | None = None,
    delimiter: str = "-",
    policy: str = "conlleval",
) -> Score:
    """Score ``predicted`` against ``gold``: by spans, or by accuracy where labels mark none.

    ``columns`` lays out the gold file, and the predicted one if it has as many columns;
    otherwise its word is first and its label last, as decoding writes it. Raises InputError
    where the words of the two differ, with the line.
    """

    def reader(path: str, layout: str | None) -> CorpusReader:
        return read_columns(
            path, columns=layout, separator=separator, comment_prefix=comment_prefix
        )

    detector = SchemeDetector(delimiter)
    wanted, found = [], []
    for ours, theirs in paired(reader(gold, columns), reader(predicted, None)):
        detector.feed(ours)
        wanted.append(ours)
        found.append(theirs)
    scheme = detector.scheme()
    if scheme == PLAIN:
        return score_accuracy(wanted, found)
    return score_spans(wanted, found, policy=policy, scheme=scheme, delimiter=delimiter)
