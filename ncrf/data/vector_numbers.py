"""Many plain decimal numbers at once: text to float32 without a Python object for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

MARGIN = 16  # bytes in front of the text, so that 16 bytes can be read before any of its ends
EXACT = 2.0**53  # whole numbers below it are exact in float64
SPACE, MINUS, DOT, ZERO = (np.uint8(ord(character)) for character in " -.0")
TENS = 10.0 ** np.arange(23)  # all exact in float64
LARGEST = float(np.finfo(np.float32).max)

_U64 = np.uint64
_ZEROS = _U64(0x3030303030303030)  # "00000000"
_PAIRS = _U64(0x000000FF000000FF)
_EVEN, _ODD = _U64(1_000_000 << 32 | 100), _U64(10_000 << 32 | 1)
# Byte masks that keep the last k of 8 characters; the first one stands in the lowest byte.
_LAST = np.array([(1 << 64) - (1 << 8 * (8 - k)) for k in range(9)], np.uint64)

_UInts = npt.NDArray[np.uint64]
_Places = npt.NDArray[np.int64]


def plain_numbers(text: bytes) -> npt.NDArray[np.float32] | None:
    """Read numbers of the form ``-12.345`` with one space between them: float32 [n].

    Each is rounded as ``np.float32(float(cell))`` does. None where any cell has another form
    (no point, an exponent, a letter, nothing at all) or is beyond float32: whoever asks then
    looks at the cells one by one.

    The digits before and after the point are read as one whole number, eight to a 64-bit word
    [D. Lemire, "Quickly parsing eight digits", 2022], and divided by a power of ten. Below 2^53
    both are exact in float64, so their quotient is rounded right [W. Clinger, "How to read
    floating point numbers accurately", 1990]; larger ones are left to ``float``.
    """
    padded = b" " * MARGIN + text + b" "
    characters = np.frombuffer(padded, np.uint8)
    own = characters[MARGIN:]
    ends = np.flatnonzero(own == SPACE) + MARGIN
    points = np.flatnonzero(own == DOT) + MARGIN
    if len(points) != len(ends):
        return None
    starts = np.concatenate([[MARGIN], ends[:-1] + 1])
    negative = characters[starts] == MINUS
    digits = np.count_nonzero(own - ZERO < 10)  # what is below "0" wraps around
    if digits + len(ends) + len(points) + np.count_nonzero(negative) != len(own):
        return None
    whole, decimals = points - starts - negative, ends - points - 1
    if whole.min() < 0 or decimals.min() < 0:  # two points in one cell, and none in another
        return None
    values = _values(padded, points, ends, whole, decimals)
    np.negative(values, out=values, where=negative)
    for cell in np.flatnonzero(np.isnan(values)).tolist():
        try:
            values[cell] = float(padded[starts[cell] : ends[cell]])
        except ValueError:  # a lone point
            return None
        if abs(values[cell]) > LARGEST:
            return None
    return values.astype(np.float32)


def _values(
    padded: bytes, points: _Places, ends: _Places, whole: _Places, decimals: _Places
) -> npt.NDArray[np.float64]:
    """Absolute values of cells, NaN for those that have too few or too many digits for this."""
    # Eight characters from every offset on, as one number that overlaps the next.
    eights: npt.NDArray[np.uint64] = np.ndarray((len(padded) - 7,), "<u8", padded, 0, (1,))
    hard = (whole < 1) | (whole > 8) | (decimals < 1) | (decimals > 16)
    if whole.max() == 1:  # as is usual
        before = (np.frombuffer(padded, np.uint8)[points - 1] - ZERO).astype(np.float64)
    else:
        before = _digits(eights[points - 8], np.clip(whole, 0, 8)).astype(np.float64)
    after = _digits(eights[ends - 8], np.clip(decimals, 0, 8)).astype(np.float64)
    if decimals.max() > 8:
        upper = _digits(eights[ends - 16], np.clip(decimals - 8, 0, 8))
        after += upper.astype(np.float64) * TENS[8]
    scale = TENS[np.minimum(decimals, 16)]
    # Every term is exact if the sum is below 2^53; if it is not, the rounded sum shows it.
    number = before * scale + after
    values: npt.NDArray[np.float64] = number / scale
    hard |= number >= EXACT
    values[hard] = np.nan
    return values


def _digits(eight: _UInts, count: npt.NDArray[Any]) -> _UInts:
    """The number that the last ``count`` of eight characters write, each a digit."""
    digits = (eight ^ _ZEROS) & _LAST[count]
    pairs = digits * _U64(10) + (digits >> _U64(8))
    even, odd = (pairs & _PAIRS) * _EVEN, ((pairs >> _U64(16)) & _PAIRS) * _ODD
    number: _UInts = (even + odd) >> _U64(32)
    return number
