"""Counts by sentence: they add up to the score, and each is that of its sentence alone."""

import random

import numpy as np
import pytest

from ncrf.evaluate import score_accuracy, score_spans
from ncrf.evaluate.sentence_counts import count_label_strings

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "E-LOC", "S-LOC", "b-per"]


def corpus(seed, labels=LABELS, sentences=60):
    rng = random.Random(seed)
    lengths = [rng.choice([1, 1, 2, 5, 9]) for _ in range(sentences)]
    return [[[rng.choice(labels) for _ in range(n)] for n in lengths] for _ in range(2)]


@pytest.mark.parametrize("policy", ["conlleval", "strict"])
@pytest.mark.parametrize("seed", range(5))
def test_spans(seed, policy):
    gold, predicted = corpus(seed)
    keys = {"policy": policy, "scheme": "BIOES"}
    counts = count_label_strings(gold, predicted, **keys)
    whole = score_spans(gold, predicted, **keys)
    sums = [int(x.sum()) for x in (counts.gold, counts.predicted, counts.correct)]
    assert sums == [whole.gold, whole.predicted, whole.correct] and counts.f1 == whole.f1
    for row, (ours, theirs) in enumerate(zip(gold, predicted, strict=True)):
        one = score_spans([ours], [theirs], **keys)
        found = [int(x[row]) for x in (counts.gold, counts.predicted, counts.correct)]
        assert found == [one.gold, one.predicted, one.correct]


def test_plain_labels():
    gold, predicted = corpus(1, labels=["NOUN", "VERB", "X"])
    counts = count_label_strings(gold, predicted, "plain")
    assert counts.kind == "labels"
    assert counts.f1 == score_accuracy(gold, predicted).accuracy
    expected = [sum(a == b for a, b in zip(x, y, strict=True)) for x, y in zip(gold, predicted)]  # noqa: B905
    assert counts.correct.tolist() == expected
    assert np.array_equal(counts.gold, [len(x) for x in gold])


def test_nothing_at_all():
    counts = count_label_strings([["O"]], [["O"]], "BIO")
    assert counts.f1 == 0.0 and counts.gold.tolist() == [0]
