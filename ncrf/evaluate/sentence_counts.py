"""What each sentence adds to a score: the counts from which F1 is made, sentence by sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ncrf.config import Config
from ncrf.data.label_tables import Ints
from ncrf.data.schemes import PLAIN
from ncrf.evaluate.files import read_pair
from ncrf.evaluate.spans import SpanReader, flatten


@dataclass(frozen=True)
class SentenceCounts:
    """The items of S sentences by one system: in gold, predicted, and correct, each ``[S]``.

    Items are spans, or labels where these mark none (``kind`` "spans" or "labels"); F1 is then the
    accuracy.
    """

    kind: str
    gold: Ints
    predicted: Ints
    correct: Ints

    @property
    def f1(self) -> float:
        """F1 of the corpus, a fraction; 0 where nothing is counted."""
        items = int(self.gold.sum()) + int(self.predicted.sum())
        return 2 * int(self.correct.sum()) / items if items else 0.0


def count_spans(reader: SpanReader, gold: Ints, predicted: Ints, offsets: Ints) -> SentenceCounts:
    """The counts of label ids ``[tokens]``; for ``offsets`` ``[S + 1]`` see `SpanReader.read`."""
    wanted, found, right = reader.compare(gold, predicted, offsets)
    starts = (wanted.start, found.start, found.start[right])
    rows = (np.searchsorted(offsets, start, side="right") - 1 for start in starts)
    counts = (np.bincount(row, minlength=len(offsets) - 1).astype(np.int64) for row in rows)
    return SentenceCounts("spans", *counts)


def count_labels(gold: Ints, predicted: Ints, offsets: Ints) -> SentenceCounts:
    """The counts of plain labels, each of which is one item."""
    right = np.concatenate(([0], np.cumsum(gold == predicted)))
    lengths = np.diff(offsets)
    return SentenceCounts("labels", lengths, lengths, right[offsets[1:]] - right[offsets[:-1]])


def count_label_strings(
    gold: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
    scheme: str,
    *,
    policy: str = "conlleval",
    delimiter: str = "-",
) -> SentenceCounts:
    """The counts of labels as text, one sequence a sentence; ``scheme`` is gold's."""
    flat = flatten(gold, predicted)
    if scheme == PLAIN:
        return count_labels(flat.gold, flat.predicted, flat.offsets)
    reader = SpanReader(flat.labels, policy=policy, scheme=scheme, delimiter=delimiter)
    return count_spans(reader, flat.gold, flat.predicted, flat.offsets)


def count_files(config: Config, gold: str, predicted: str) -> SentenceCounts:
    """The counts of a predicted file; how files are read is said at `read_pair`."""
    pair = read_pair(config, gold, predicted)
    return count_label_strings(
        pair.gold,
        pair.predicted,
        pair.scheme,
        policy=config.inference.score_policy,
        delimiter=config.corpus.label_delimiter,
    )
