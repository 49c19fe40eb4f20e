"""Two systems compared on one gold file: scores, tests, and how they are told."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ncrf.errors import InputError
from ncrf.evaluate.sentence_counts import SentenceCounts
from ncrf.evaluate.significance import (
    SeedPermutation,
    Welch,
    bootstrap_interval,
    seed_permutation,
    sentence_randomization,
    welch_test,
)


@dataclass(frozen=True)
class System:
    """A system's outputs for the gold file, one for each seed, and where each came from."""

    name: str
    places: list[str]
    counts: list[SentenceCounts]

    @property
    def scores(self) -> list[float]:
        """F1 of each output, or its accuracy where labels mark no spans; fractions."""
        return [one.f1 for one in self.counts]


@dataclass(frozen=True)
class Comparison:
    """The scores of A and B, fractions, and what the tests of their difference say.

    ``difference`` is B's mean score less A's. The tests over seeds are None where a system has
    only one output; what each p means stands with its function.
    """

    kind: str
    sentences: int
    items: int
    scores_a: list[float]
    scores_b: list[float]
    difference: float
    interval: tuple[float, float]
    level: float
    shuffles: int
    p_sentences: float
    permutation: SeedPermutation | None
    welch: Welch | None


def compare(
    a: System, b: System, *, shuffles: int = 10_000, seed: int = 1, level: float = 0.95
) -> Comparison:
    """Score two systems and test their difference; the same ``seed`` gives the same p.

    Raises InputError where their outputs are not for the same sentences.
    """
    _check(a, b)
    first = a.counts[0]
    several = min(len(a.counts), len(b.counts)) > 1
    sentences, sampled, seeds = (np.random.default_rng([seed, test]) for test in range(3))
    return Comparison(
        kind=first.kind,
        sentences=len(first.gold),
        items=int(first.gold.sum()),
        scores_a=a.scores,
        scores_b=b.scores,
        difference=statistics.fmean(b.scores) - statistics.fmean(a.scores),
        interval=bootstrap_interval(a.counts, b.counts, samples=shuffles, rng=sampled, level=level),
        level=level,
        shuffles=shuffles,
        p_sentences=sentence_randomization(a.counts, b.counts, shuffles=shuffles, rng=sentences),
        permutation=seed_permutation(a.scores, b.scores, shuffles=shuffles, rng=seeds)
        if several
        else None,
        welch=welch_test(a.scores, b.scores) if several else None,
    )


def comparison_lines(result: Comparison, a: System, b: System) -> list[str]:
    """What was found, as people read it."""
    metric = "FB1" if result.kind == "spans" else "accuracy"
    items = "phrases" if result.kind == "spans" else "labels"
    lines = [
        f"{result.sentences:,} sentences, {result.items:,} {items}",
        *(_system_line(letter, one, metric) for letter, one in (("A", a), ("B", b))),
        f"B - A: {_signed(result.difference)}",
        *_sentence_lines(result),
    ]
    if result.permutation is not None:
        lines += _seed_lines(result.permutation, result.welch)
    elif max(len(result.scores_a), len(result.scores_b)) > 1:
        lines.append("there is no test over seeds: one system has a single output")
    return lines


def _sentence_lines(result: Comparison) -> list[str]:
    low, high = map(_signed, result.interval)
    several = max(len(result.scores_a), len(result.scores_b)) > 1
    sampled = "sentences and seeds" if several else "sentences"
    return [
        f"{100 * result.level:g} % interval of B - A: {low} to {high}, paired bootstrap of the "
        f"{sampled} ({result.shuffles:,} samples)",
        f"p = {_p(result.p_sentences)}: approximate randomization over sentences "
        f"({result.shuffles:,} shuffles)",
    ]


def _seed_lines(permutation: SeedPermutation, welch: Welch | None) -> list[str]:
    lines = [
        f"p = {_p(permutation.p)}: permutation of the seeds' scores "
        f"({permutation.arrangements:,} arrangements; the least p possible is "
        f"{_p(permutation.smallest)})"
    ]
    if welch is not None:
        lines.append(
            f"p = {_p(welch.p)}: Welch's t-test of the seeds' scores "
            f"(t = {welch.t:.2f}, {welch.degrees:.1f} degrees of freedom)"
        )
    return lines


def _system_line(letter: str, system: System, metric: str) -> str:
    scores = [100 * score for score in system.scores]
    text = f"{letter}: {metric} {statistics.fmean(scores):.2f}"
    if len(scores) > 1:
        each = ", ".join(f"{score:.2f}" for score in scores)
        text += f" ± {statistics.stdev(scores):.2f} over {len(scores)} outputs ({each})"
    return f"{text}  {system.name}"


def _signed(share: float) -> str:
    return f"{100 * share:+.2f}"


def _p(p: float) -> str:
    return f"{p:.4f}" if p >= 0.001 else f"{p:.2g}"


def _check(a: System, b: System) -> None:
    """InputError where two outputs are not for the same gold items, sentence by sentence."""
    first = a.counts[0]
    if not len(first.gold):
        raise InputError("holds no sentence to compare", file=a.places[0])
    outputs: Sequence[tuple[str, SentenceCounts]] = [
        pair for one in (a, b) for pair in zip(one.places, one.counts, strict=True)
    ]
    for place, counts in outputs:
        if counts.kind != first.kind:
            raise InputError(
                f"is scored by {counts.kind}, {a.places[0]} by {first.kind}",
                file=place,
                remedy="systems that were both trained to mark spans, or both not",
            )
        if not np.array_equal(counts.gold, first.gold):
            raise InputError(
                f"gold has other items for it than for {a.places[0]}",
                file=place,
                remedy="one gold file, read in one way (columns=)",
            )
