"""Calibration: are the things said with probability p right in a share p of the cases?

`reliability` sorts them into ten bins of equal width and compares, in each, the mean probability
with the share that is right. The expected calibration error is the mean of the differences over
all things, each bin weighted by how many it has (Naeini, Cooper and Hauskrecht 2015, "Obtaining
well calibrated probabilities using Bayesian binning").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """What was said with a probability from ``low`` on and below ``high`` (1 is in the last bin).

    ``mean`` is the mean of the probabilities, ``right`` the share that is right; both are
    fractions.
    """

    low: float
    high: float
    count: int
    mean: float
    right: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """A reliability table: the bins that hold anything, and the expected calibration error.

    ``mean`` and ``right`` are those of everything; all are 0 where nothing was counted.
    """

    count: int
    mean: float
    right: float
    error: float
    bins: tuple[Bin, ...]


def reliability(said: Iterable[tuple[float, bool]]) -> Reliability:
    """The table for pairs of a probability and whether what was said with it is right.

    A probability on the border of two bins belongs to the upper one.
    """
    pairs = np.array(list(said), dtype=np.float64).reshape(-1, 2)
    if not len(pairs):
        return Reliability(0, 0.0, 0.0, 0.0, ())
    borders = np.arange(1, BINS) / BINS
    place = np.searchsorted(borders, pairs[:, 0], side="right")
    bins = []
    for number in range(BINS):
        own = pairs[place == number]
        if len(own):
            mean, right = own.mean(axis=0).tolist()
            bins.append(Bin(number / BINS, (number + 1) / BINS, len(own), mean, right))
    error = sum(x.count * abs(x.mean - x.right) for x in bins) / len(pairs)
    mean, right = pairs.mean(axis=0).tolist()
    return Reliability(len(pairs), mean, right, error, tuple(bins))
