"""Scoring of predicted labels against gold ones, and its reports."""

from ncrf.evaluate.pairing import paired
from ncrf.evaluate.report import conlleval_lines, history_scores, report_lines
from ncrf.evaluate.spans import (
    Score,
    SpanReader,
    SpanScorer,
    TypeScore,
    score_accuracy,
    score_label_ids,
    score_spans,
)

__all__ = [
    "Score",
    "SpanReader",
    "SpanScorer",
    "TypeScore",
    "conlleval_lines",
    "history_scores",
    "paired",
    "report_lines",
    "score_accuracy",
    "score_label_ids",
    "score_spans",
]
