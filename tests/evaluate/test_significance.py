"""Significance tests against enumeration, SciPy, tables and counts by hand."""

import itertools
import math
import statistics
from fractions import Fraction

import numpy as np
import pytest

from ncrf.errors import InputError
from ncrf.evaluate.comparison import System, compare, comparison_lines
from ncrf.evaluate.sentence_counts import SentenceCounts
from ncrf.evaluate.significance import (
    bootstrap_interval,
    seed_permutation,
    sentence_randomization,
    welch_test,
)

MANY = 200_000


def outputs(seed, systems, sentences=7, gold=None):
    """Random counts of several systems for the same gold spans."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 4, sentences) if gold is None else gold
    made = []
    for _ in range(systems):
        predicted = rng.integers(0, 5, sentences)
        correct = rng.integers(0, np.minimum(gold, predicted) + 1)
        made.append(SentenceCounts("spans", gold, predicted, correct))
    return made


def f1(gold, predicted, correct):
    """Exactly; 0 where nothing is counted."""
    return Fraction(2 * correct, predicted + gold) if predicted + gold else Fraction(0)


def enumerated_randomization(a, b):
    """The p of all 2^S exchanges, with the means over each system's outputs of the counts."""
    sentences = range(len(a[0].gold))

    def mean(system, what, s):
        return Fraction(sum(int(getattr(one, what)[s]) for one in system), len(system))

    def difference(swapped):
        totals = []
        for mine, other in ((a, b), (b, a)):
            sides = [other if s in swapped else mine for s in sentences]
            counts = [
                sum(mean(side, what, s) for s, side in zip(sentences, sides, strict=True))
                for what in ("gold", "predicted", "correct")
            ]
            total = counts[0] + counts[1]
            totals.append(2 * counts[2] / total if total else Fraction(0))
        return abs(totals[1] - totals[0])

    observed = difference(set())
    subsets = itertools.chain.from_iterable(
        itertools.combinations(sentences, k) for k in range(len(sentences) + 1)
    )
    extreme = [difference(set(chosen)) >= observed for chosen in subsets]
    return sum(extreme) / len(extreme)


class TestRandomizationOverSentences:
    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 2), (3, 2)])
    def test_against_all_exchanges(self, seed, m, n):
        made = outputs(seed, m + n)
        a, b = made[:m], made[m:]
        p = sentence_randomization(a, b, shuffles=MANY, rng=np.random.default_rng(0))
        # four standard errors of a share among MANY
        assert p == pytest.approx(enumerated_randomization(a, b), abs=2 / math.sqrt(MANY))

    def test_equal_systems(self):
        (a,) = outputs(0, 1)
        assert sentence_randomization([a], [a], shuffles=100, rng=np.random.default_rng(0)) == 1.0

    def test_p_counts_the_observed_one(self):
        """Thirty sentences that A has right and B has not: chance does that twice in 2^30."""
        gold = np.ones(30, np.int64)
        a, b = (SentenceCounts("spans", gold, gold, gold * right) for right in (1, 0))
        p = sentence_randomization([a], [b], shuffles=999, rng=np.random.default_rng(0))
        assert p == 1 / 1000

    def test_copies_of_an_output_are_no_further_witnesses(self):
        a, b = outputs(3, 2)
        rng = np.random.default_rng(0)
        p = sentence_randomization([a] * 5, [b] * 5, shuffles=MANY, rng=rng)
        assert p == pytest.approx(enumerated_randomization([a], [b]), abs=2 / math.sqrt(MANY))


class TestBootstrap:
    @pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 1), (2, 2)])
    @pytest.mark.parametrize("seed", range(3))
    def test_against_all_samples(self, seed, m, n):
        """The distribution that the interval cuts is that of all S^S samples, and of seeds."""
        made = outputs(seed, m + n, sentences=4)
        a, b = made[:m], made[m:]
        values = []
        for rows in itertools.product(range(4), repeat=4):
            scores = [
                f1(*(sum(int(x[r]) for r in rows) for x in (one.gold, one.predicted, one.correct)))
                for one in made
            ]
            for one in itertools.product(range(m), repeat=m):
                for other in itertools.product(range(m, m + n), repeat=n):
                    mean_a = sum(scores[i] for i in one) / m
                    values.append(float(sum(scores[i] for i in other) / n - mean_a))
        level = 0.8
        rng = np.random.default_rng(1)
        low, high = bootstrap_interval(a, b, samples=50_000, rng=rng, level=level)
        near = [np.quantile(values, [p - 0.01, p + 0.01]) for p in (0.1, 0.9)]
        for found, (least, most) in zip((low, high), near, strict=True):
            assert least - 1e-9 <= found <= most + 1e-9

    def test_no_difference(self):
        a = outputs(0, 1)
        rng = np.random.default_rng(0)
        assert bootstrap_interval(a, a, samples=100, rng=rng) == (0.0, 0.0)


class TestSeeds:
    def test_by_hand(self):
        """Of the 20 ways to part six scores, two have means as far apart as 1, 2, 3 | 4, 5, 6."""
        rng = np.random.default_rng(0)
        assert seed_permutation([1, 2, 3], [4, 5, 6], shuffles=9, rng=rng) == (0.1, 0.1, 20)
        assert seed_permutation([4, 10], [1, 2, 3], shuffles=9, rng=rng) == (0.1, 0.1, 10)
        assert seed_permutation([1, 1], [1, 1], shuffles=9, rng=rng).p == 1

    def test_all_arrangements_and_some_of_them(self):
        scores = np.random.default_rng(2).normal(size=20).tolist()
        a, b = scores[:10], [s + 0.5 for s in scores[10:]]
        stats = pytest.importorskip("scipy.stats")

        def difference(x, y, axis):
            return y.mean(axis) - x.mean(axis)

        exact = stats.permutation_test((a, b), difference, vectorized=True, n_resamples=200_000)
        found = seed_permutation(a, b, shuffles=MANY, rng=np.random.default_rng(0))
        assert found.arrangements == MANY and found.smallest == 1 / (MANY + 1)
        assert found.p == pytest.approx(exact.pvalue, abs=2 / math.sqrt(MANY))
        few = seed_permutation(a[:5], b[:4], shuffles=1, rng=np.random.default_rng(0))
        exact = stats.permutation_test((a[:5], b[:4]), difference, vectorized=True)
        enumerated = [
            abs(statistics.fmean(c) - (sum(a[:5] + b[:4]) - sum(c)) / 4)
            for c in itertools.combinations(a[:5] + b[:4], 5)
        ]
        assert few.p == pytest.approx(np.mean(np.array(enumerated) >= enumerated[0] - 1e-12))

    @pytest.mark.parametrize("seed", range(5))
    def test_welch_against_scipy(self, seed):
        stats = pytest.importorskip("scipy.stats")
        rng = np.random.default_rng(seed)
        a, b = rng.normal(0, 1, 3 + seed), rng.normal(seed, 4, 5)
        found, expected = welch_test(a.tolist(), b.tolist()), stats.ttest_ind(b, a, equal_var=False)
        assert found.t == pytest.approx(expected.statistic)
        assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
        assert found.degrees == pytest.approx(expected.df)

    @pytest.mark.parametrize(("degrees", "t"), [(2, 4.303), (4, 2.776), (10, 2.228), (120, 1.980)])
    def test_the_printed_table_of_t(self, degrees, t):
        """Two samples of one size and variance have 2n - 2 degrees of freedom; p is 0.05 there."""
        n = degrees // 2 + 1
        base = [0.0] * (n - n % 2) + [1.0] * (n % 2)
        base = [float(i) for i in range(n)]
        spread = math.sqrt(2 * statistics.variance(base) / n)
        found = welch_test(base, [x + t * spread for x in base])
        assert found.degrees == pytest.approx(degrees)
        assert found.p == pytest.approx(0.05, abs=1e-4)

    def test_welch_needs_two_scores_that_differ(self):
        assert welch_test([1.0], [1.0, 2.0]) is None
        assert welch_test([1.0, 1.0], [2.0, 2.0]) is None
        assert welch_test([1.0, 1.0], [2.0, 3.0]) is not None


class TestComparison:
    def test_what_is_told(self):
        made = outputs(4, 5)
        a, b = System("one", ["x"] * 3, made[:3]), System("two", ["y"] * 2, made[3:])
        result = compare(a, b, shuffles=500)
        assert result == compare(a, b, shuffles=500)
        assert result.difference == pytest.approx(np.mean(b.scores) - np.mean(a.scores))
        assert result.welch == welch_test(a.scores, b.scores)
        lines = comparison_lines(result, a, b)
        assert lines[0] == f"7 sentences, {made[0].gold.sum()} phrases" and len(lines) == 8
        assert f"{100 * np.mean(a.scores):.2f} ± {100 * np.std(a.scores, ddof=1):.2f}" in lines[1]
        single = compare(System("one", ["x"], made[:1]), b, shuffles=500)
        assert single.permutation is None and single.welch is None
        assert "no test over seeds" in comparison_lines(single, a, b)[-1]

    def test_outputs_for_other_sentences(self):
        a, b = outputs(0, 1), outputs(1, 1)
        with pytest.raises(InputError, match="y: gold has other items for it than for x"):
            compare(System("a", ["x"], a), System("b", ["y"], b))
        labels = [SentenceCounts("labels", a[0].gold, a[0].predicted, a[0].correct)]
        with pytest.raises(InputError, match="y: is scored by labels, x by spans"):
            compare(System("a", ["x"], a), System("b", ["y"], labels))
