#!/usr/bin/env python3
"""How well a model's probabilities are calibrated, as Markdown tables.

    scripts/calibration.py MODEL FILE

For the predicted entities and for the predicted labels of all words: in ten bins of the probability
that the model gives, how many there are, their mean probability, and the share that is right.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable

import numpy as np

from ncrf import Tagger
from ncrf.data.corpora import open_corpus
from ncrf.data.schemes import spans

BINS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a model folder")
    parser.add_argument("file", help="a labelled file, laid out like the training file")
    arguments = parser.parse_args()
    tagger = Tagger.load(arguments.model)
    gold = [s for s in open_corpus(tagger.config, arguments.file) if not s.boundary]
    features = tagger.vocabulary.features
    sentences = [{"words": s.words, **{n: s.features[n] for n in features}} for s in gold]
    entities, words = [], []
    for sentence, found in zip(gold, tagger.predict(sentences, marginals=True), strict=True):
        right = set(spans(sentence.labels, tagger.vocabulary.scheme.delimiter))
        entities += [(s.probability, (s.label, s.start, s.end) in right) for s in found.spans]
        labels = zip(found.marginals or (), found.labels, sentence.labels, strict=True)
        words += [(p, ours == theirs) for p, ours, theirs in labels]
    print(table("Predicted entities", entities))
    print(table("Predicted labels", words))


def table(title: str, pairs: Iterable[tuple[float, bool]]) -> str:
    """A reliability table; the last line has the expected calibration error."""
    array = np.array(list(pairs), dtype=float).reshape(-1, 2)
    bins = np.minimum((array[:, 0] * BINS).astype(int), BINS - 1)
    lines = [
        f"{title} ({len(array):,}):",
        "",
        "| probability | count | mean | right |",
        "|---|---|---|---|",
    ]
    gap = 0.0
    for number in range(BINS):
        own = array[bins == number]
        if len(own):
            mean, right = own.mean(axis=0)
            gap += len(own) / len(array) * abs(mean - right)
            cells = f"{number / BINS:.1f}–{(number + 1) / BINS:.1f} | {len(own):,}"
            lines.append(f"| {cells} | {mean:.3f} | {right:.3f} |")
    return "\n".join([*lines, "", f"Expected calibration error: {gap:.3f}", ""])


if __name__ == "__main__":
    main()
