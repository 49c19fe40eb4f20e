"""An error analysis as plain JSON values: the numbers of the report, scores as fractions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ncrf.evaluate.analysis import Analysis
from ncrf.evaluate.calibration import Reliability
from ncrf.evaluate.entity_errors import KINDS, EntityErrors
from ncrf.evaluate.frequent_errors import FrequentError, Mention
from ncrf.evaluate.spans import Score, TypeScore


def analysis_json(analysis: Analysis) -> dict[str, Any]:
    """The analysis as an object for ``json.dumps``; what does not apply is null."""
    return {
        "file": analysis.file,
        "task": analysis.task,
        "score": _score(analysis.score),
        "unknown_labels": analysis.unknown_labels,
        "errors": None if analysis.errors is None else _errors(analysis.errors),
        "confusion": [
            {"gold": pair.gold, "predicted": pair.predicted, "count": count}
            for pair, count in sorted(
                analysis.confusion.counts.items(), key=lambda x: (-x[1], list(map(str, x[0])))
            )
        ],
        "by_length": _scores(analysis.lengths),
        "by_vocabulary": {"source": analysis.class_source, "classes": _scores(analysis.classes)},
        "calibration": {
            "entities": _reliability(analysis.entity_calibration),
            "labels": _reliability(analysis.label_calibration),
        },
        "by_threshold": _scores(analysis.thresholds),
        "distinct_errors": analysis.distinct_errors,
        "frequent_errors": list(map(_frequent, analysis.frequent)),
    }


def _score(score: Score) -> dict[str, Any]:
    counts = ("gold", "predicted", "correct", "sentences", "tokens", "correct_tokens")
    shares = ("precision", "recall", "f1", "accuracy")
    values = {name: getattr(score, name) for name in (*counts, *shares)}
    return {**values, "per_type": _scores(score.per_type)}


def _scores(rows: Mapping[str, TypeScore]) -> dict[str, dict[str, float]]:
    return {
        name: {
            "gold": row.support,
            "predicted": row.predicted,
            "correct": row.correct,
            "precision": row.precision,
            "recall": row.recall,
            "f1": row.f1,
        }
        for name, row in rows.items()
    }


def _errors(errors: EntityErrors) -> dict[str, Any]:
    return {
        "counts": {kind: errors.of_kind(kind) for kind in KINDS},
        "overlapping": {kind: errors.overlapping[kind] for kind in ("missed", "spurious")},
        "by_type": {
            label: {kind: errors.counts[kind, label] for kind in KINDS} for label in errors.types
        },
    }


def _reliability(table: Reliability | None) -> dict[str, Any] | None:
    return None if table is None else asdict(table)


def _frequent(error: FrequentError) -> dict[str, Any]:
    kind, gold, predicted = error.key
    return {
        "kind": kind,
        "gold": _mention(gold),
        "predicted": _mention(predicted),
        "count": error.count,
        "example": error.example._asdict(),
    }


def _mention(mention: Mention | None) -> dict[str, str] | None:
    return None if mention is None else mention._asdict()
