"""Printed scores. scripts/check_conlleval.py compares them with the Perl program's own output."""

from ncrf.evaluate.report import conlleval_lines, history_scores, report_lines
from ncrf.evaluate.spans import score_accuracy, score_spans

GOLD = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-GOODS-X"], ["B-PER"]]
PREDICTED = [["B-PER", "I-PER", "O", "B-ORG"], ["I-ORG", "O"], ["B-PER"]]


def test_conllevals_own_lines():
    # As conlleval.pl (version 2004-01-26) prints them for these seven tokens.
    assert conlleval_lines(score_spans(GOLD, PREDICTED)) == [
        "processed 7 tokens with 4 phrases; found: 4 phrases; correct: 2.",
        "accuracy:  57.14%; precision:  50.00%; recall:  50.00%; FB1:  50.00",
        "          GOODS-X: precision:   0.00%; recall:   0.00%; FB1:   0.00  0",
        "              LOC: precision:   0.00%; recall:   0.00%; FB1:   0.00  0",
        "              ORG: precision:   0.00%; recall:   0.00%; FB1:   0.00  2",
        "              PER: precision: 100.00%; recall: 100.00%; FB1: 100.00  2",
    ]


def test_an_empty_corpus_has_one_line():
    assert report_lines(score_spans([], [])) == [
        "processed 0 tokens with 0 phrases; found: 0 phrases; correct: 0."
    ]
    assert report_lines(score_accuracy([], [])) == ["processed 0 tokens; correct: 0."]


def test_the_accuracy_report_has_a_line_for_each_label():
    score = score_accuracy([["NOUN", "VERB", "NOUN"]], [["NOUN", "NOUN", "NOUN"]])
    assert report_lines(score) == [
        "processed 3 tokens; correct: 2.",
        "accuracy:  66.67%",
        "             NOUN: precision:  66.67%; recall: 100.00%; FB1:  80.00  3",
        "             VERB: precision:   0.00%; recall:   0.00%; FB1:   0.00  0",
    ]


def test_classification_counts_sentences():
    score = score_accuracy([["good"], ["bad"]], [["good"], ["good"]])
    assert report_lines(score)[0] == "processed 2 sentences; correct: 1."
    assert conlleval_lines(score_spans([["O"]], [["O"]]))[0].startswith("processed 1 tokens with ")


def test_the_report_fits_the_score():
    score = score_spans(GOLD, PREDICTED)
    assert report_lines(score) == conlleval_lines(score)


def test_history_holds_fractions():
    score = score_spans(GOLD, PREDICTED)
    assert history_scores(score) == {
        "precision": 0.5,
        "recall": 0.5,
        "f1": 0.5,
        "accuracy": 4 / 7,
    }
