"""Medians, speeds and ratios of what scripts/bench.py has measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from benchmark.sides import Decoding, Training


def training_summary(runs: Sequence[Training], sentences: int, tokens: int) -> dict[str, Any]:
    """Medians of some trainings; the seconds of an epoch are those of its steps alone."""
    seconds = median(epoch for run in runs for epoch in run.epoch_seconds)
    return {
        **_speeds(seconds, sentences, tokens),
        "process_seconds": median(run.process_seconds for run in runs),
        "peak_mb": median(run.peak_mb for run in runs),
        "dev_f1": runs[-1].dev_f1,
        "runs": [asdict(run) for run in runs],
    }


def decoding_summary(runs: Sequence[Decoding], sentences: int, tokens: int) -> dict[str, Any]:
    """Medians of some decodings; seconds from file to file, without loading the model."""
    return {
        **_speeds(median(run.seconds for run in runs), sentences, tokens),
        "process_seconds": median(run.process_seconds for run in runs),
        "peak_mb": median(run.peak_mb for run in runs),
        "note": runs[-1].note,
        "runs": [asdict(run) for run in runs],
    }


def _speeds(seconds: float, sentences: int, tokens: int) -> dict[str, float]:
    return {
        "seconds": seconds,
        "sentences_per_second": sentences / max(seconds, 1e-9),
        "tokens_per_second": tokens / max(seconds, 1e-9),
    }


def with_ratios(sides: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The sides, and where there are two, how the first compares with the second.

    ``speed`` and ``process`` above 1 say that the first is faster, ``memory`` below 1 that it
    needs less.
    """
    if len(sides) < 2:
        return {"sides": dict(sides)}
    ours, peer = sides.values()
    ratios = {
        "speed": peer["seconds"] / ours["seconds"],
        "process": peer["process_seconds"] / ours["process_seconds"],
        "memory": ours["peak_mb"] / peer["peak_mb"],
    }
    return {"sides": dict(sides), "ratios": ratios}


def median_profile(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The medians of the seconds of every stage, and of all else that is a number."""
    first = runs[0]
    found: dict[str, Any] = {}
    for name, value in first.items():
        if isinstance(value, dict):
            stages = {stage: None for run in runs for stage in run[name]}
            found[name] = {
                stage: median(run[name].get(stage, 0.0) for run in runs) for stage in stages
            }
        elif isinstance(value, int | float):
            found[name] = median(run[name] for run in runs)
        else:
            found[name] = value
    return found


def memory_per_token(sizes: Sequence[dict[str, Any]]) -> dict[str, float] | None:
    """Bytes that each further word adds to peak memory, from the smallest to the largest corpus."""
    if len(sizes) < 2:
        return None
    first, last = sizes[0], sizes[-1]
    return {
        what: 1e6
        * (last[what]["peak_mb"] - first[what]["peak_mb"])
        / (last["tokens"] - first["tokens"])
        for what in ("training", "decoding")
    }
