"""Calibration: reliability tables by hand, and against their definition."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncrf.evaluate.analysis_report import reliability_lines
from ncrf.evaluate.calibration import Bin, Reliability, reliability


def test_by_hand():
    table = reliability([(0.95, True), (0.97, True), (0.91, False), (0.25, False), (0.21, True)])
    low, high = table.bins
    assert (low.low, low.high, low.count, low.right) == (0.2, 0.3, 2, 0.5)
    assert (high.low, high.high, high.count) == (0.9, 1.0, 3)
    assert low.mean == pytest.approx(0.23) and high.mean == pytest.approx(2.83 / 3)
    assert high.right == pytest.approx(2 / 3)
    assert table.count == 5 and table.right == 0.6 and table.mean == pytest.approx(3.29 / 5)
    # 2 of 5 are off by 0.27, 3 of 5 by 2.83 / 3 - 2 / 3.
    assert table.error == pytest.approx(0.4 * 0.27 + 0.6 * (0.83 / 3))


def test_borders_belong_to_the_upper_bin_and_one_to_the_last():
    table = reliability([(k / 10, True) for k in range(11)])
    assert [x.count for x in table.bins] == [1] * 9 + [2]
    assert [x.low for x in table.bins] == [k / 10 for k in range(10)]


def test_rounding_beyond_the_ends_is_kept():
    table = reliability([(1.0000001, True), (-1e-9, False)])
    assert [(x.low, x.count) for x in table.bins] == [(0.0, 1), (0.9, 1)]


def test_nothing():
    assert reliability([]) == Reliability(0, 0.0, 0.0, 0.0, ())


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40))
def test_the_error_is_that_of_its_definition(said):
    expected = 0.0
    for k in range(10):
        own = [x for x in said if k / 10 <= x[0] < (k + 1) / 10 or (k == 9 and x[0] == 1)]
        if own:
            mean = math.fsum(p for p, _ in own) / len(own)
            right = sum(good for _, good in own) / len(own)
            expected += len(own) / len(said) * abs(mean - right)
    table = reliability(said)
    assert table.error == pytest.approx(expected, abs=1e-12)
    assert sum(x.count for x in table.bins) == table.count == len(said)


def test_a_table_in_markdown():
    table = Reliability(1200, 0.9, 0.8, 0.1234, (Bin(0.9, 1.0, 1200, 0.95, 0.8),))
    assert reliability_lines("Labels", table) == [
        "Labels (1,200):",
        "",
        "| probability | count | mean | right |",
        "|---|---:|---:|---:|",
        "| 0.9–1.0 | 1,200 | 0.950 | 0.800 |",
        "",
        "Expected calibration error: 0.123",
    ]
