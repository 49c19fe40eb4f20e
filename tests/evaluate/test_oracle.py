"""The labeling of a sentence that is most like gold, against every other one."""

from itertools import product

import pytest
from seqeval.metrics import f1_score

from ncrf.evaluate.oracle import best_labeling

LABELS = ("O", "B-X", "I-X", "B-Y")
ALL = [list(labels) for labels in product(LABELS, repeat=3)]


@pytest.mark.filterwarnings("ignore")  # seqeval's, of sentences without entities
@pytest.mark.parametrize("gold", ["B-X I-X O", "O O O", "B-Y B-X B-X", "B-X O B-Y"])
def test_no_other_has_a_higher_f1(gold):
    gold = gold.split()
    labelings = [labeling for labeling in ALL if labeling != gold][::5]
    found = best_labeling(gold, labelings, "IOB2")
    scores = [f1_score([gold], [labeling]) for labeling in labelings]
    if gold == ["O"] * 3:  # seqeval has no score for it
        scores = [float(all(x == "O" for x in labeling)) for labeling in labelings]
    assert found is labelings[scores.index(max(scores))]
    assert best_labeling(gold, ALL, "IOB2") == gold


def test_the_policy_counts():
    gold, labelings = ["O", "B-X", "I-X"], [["O", "I-X", "I-X"], ["B-X", "B-X", "I-X"]]
    assert best_labeling(gold, labelings, "IOB2") is labelings[0]
    assert best_labeling(gold, labelings, "IOB2", policy="strict") is labelings[1]
