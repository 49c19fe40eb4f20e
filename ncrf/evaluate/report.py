"""Scores as people and files read them: conlleval's lines, the history's fractions."""

from __future__ import annotations

from ncrf.evaluate.spans import Score


def percent(part: int, whole: int) -> float:
    """A share in percent, 0 of nothing."""
    # From the counts and in this order, as conlleval does it: the last digit printed is its own.
    return 100 * part / whole if whole else 0.0


def percentages(gold: int, predicted: int, correct: int) -> tuple[float, float, float]:
    """Precision, recall and F1 in percent, computed in conlleval's order."""
    precision, recall = percent(correct, predicted), percent(correct, gold)
    return precision, recall, 2 * precision * recall / (precision + recall) if correct else 0.0


def _rates(gold: int, predicted: int, correct: int) -> str:
    precision, recall, f1 = percentages(gold, predicted, correct)
    return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"


def _type_lines(score: Score) -> list[str]:
    return [
        f"{name:>17}: {_rates(row.support, row.predicted, row.correct)}  {row.predicted}"
        for name, row in score.per_type.items()
    ]


def conlleval_lines(score: Score) -> list[str]:
    """What conlleval prints for these counts, to the letter; the last column counts found spans."""
    lines = [
        f"processed {score.tokens} tokens with {score.gold} phrases; "
        f"found: {score.predicted} phrases; correct: {score.correct}."
    ]
    if score.tokens:
        accuracy = percent(score.correct_tokens, score.tokens)
        rates = _rates(score.gold, score.predicted, score.correct)
        lines.append(f"accuracy: {accuracy:6.2f}%; {rates}")
    return lines + _type_lines(score)


def accuracy_lines(score: Score) -> list[str]:
    """The same for plain labels: one rate over all of them, then a line for each label."""
    lines = [f"processed {score.tokens} {score.unit}; correct: {score.correct_tokens}."]
    if score.tokens:
        lines.append(f"accuracy: {percent(score.correct_tokens, score.tokens):6.2f}%")
    return lines + _type_lines(score)


def report_lines(score: Score) -> list[str]:
    """`conlleval_lines` for a span score, `accuracy_lines` for one of plain labels."""
    return accuracy_lines(score) if score.kind == "labels" else conlleval_lines(score)


def history_scores(score: Score) -> dict[str, float]:
    """The four fractions that an epoch's line in ``history.jsonl`` holds."""
    return {
        "precision": score.precision,
        "recall": score.recall,
        "f1": score.f1,
        "accuracy": score.accuracy,
    }
