"""Quadrants: ``|x|`` minus the nearest multiple of ``pi / 2``, for all floats.

Payne and Hanek, "Radian Reduction for Trigonometric Functions" (1983): of ``2 / pi``
only those digits matter that, times ``x``, are neither whole turns nor below the last
digit of the result; they are selected by the exponent of ``x``, and multiplied as
integers.
"""

import numpy as np

from .floats import bits_of, float_of, layout, magnitude

_TWO_OVER_PI = 0.6366197723675814
_HALF_PI_PARTS = (1.5707963267341256, 6.077100506506192e-11)
# the digits of 2 / pi, 64 bits each, after 64 zeros
# fmt: off
_DIGITS = (
    0,
    0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041,
    0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0, 0x06492EEA09D1921C,
    0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41,
    0x3991D639835339F4, 0x9C845F8BBDF9283B, 0x1FF897FFDE05980F,
    0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08,
    0x56033046FC7B6BAB,
)
# fmt: on
# pi / 2 * 2**-62 in two parts
_UNIT = (3.4061215800865545e-19, 1.3277647201629795e-35)
_LOW = (1 << 32) - 1


def reduced_float32(x):
    """The number of a quadrant of ``|x|``, and the remainder in float64."""
    write, a = x.writer, magnitude(x)
    near, near_rest = _by_parts(write.cast(a, np.float64))
    far, far_rest = _by_digits_of_float32(a)
    is_far = a >= 2.0**20
    quadrant = write.select(is_far, far, near)
    return quadrant, write.select(is_far, far_rest, near_rest)


def reduced_float64(x):
    """The number of a quadrant of ``|x|``, and the remainder as an unevaluated sum of two."""
    write, a = x.writer, magnitude(x)
    quadrant, high, low = _by_digits_of_float64(a)
    near = a < np.pi / 4
    quadrant = write.select(near, 0, quadrant)
    return quadrant, write.select(near, a, high), write.select(near, 0.0, low)


def _by_parts(a):
    """``pi / 2`` in two parts, the first of 33 bits (Cody and Waite)."""
    rounder = layout(a).rounder
    shifted = a * _TWO_OVER_PI + rounder
    n = shifted - rounder
    first, second = _HALF_PI_PARTS
    return bits_of(shifted), (a - n * first) - n * second


def _by_digits_of_float32(a):
    """``a = m 2**e`` in units of 2**-64 turns: ``m`` times 96 binary digits of ``2 / pi``."""
    write, bits = a.writer, bits_of(a)
    first = (bits >> 23) - (150 - 30)  # of these digits in the table
    table = [0, *[half for d in _DIGITS[1:5] for half in (d >> 32, d & _LOW)]]
    digits = _window(table, first, (2, 1, 1), 4)
    m = write.cast((bits & 0x7FFFFF) | 0x800000, np.uint64)
    high, middle, low = [m * write.cast(d, np.uint64) for d in digits]
    turns = (high << 32) + middle + (low >> 32)
    quadrant, rest = _nearest_quadrant(turns)
    return quadrant, write.cast(write.cast(rest, np.int64), np.float64) * _UNIT[0]


def _by_digits_of_float64(a):
    """The same with 192 digits; a remainder of 128 bits is a sum of two floats."""
    write, bits = a.writer, bits_of(a)
    first = (bits >> 52) - (1075 - 62)
    digits = [
        half
        for d in _window(_DIGITS, first, (8, 4, 2, 1, 1), 4)
        for half in (d >> 32, d & _LOW)
    ]
    m = (bits & ((1 << 52) - 1)) | (1 << 52)
    by_low = [(m & _LOW) * d for d in digits]
    by_high = [(m >> 32) * d for d in digits]
    # columns of 32 bits, from the highest on, with their carries above
    columns = [
        (by_low[i] & _LOW)
        + (by_low[i + 1] >> 32)
        + (by_high[i + 1] & _LOW)
        + (by_high[i + 2] >> 32)
        for i in range(4)
    ]
    fifth = (by_low[4] & _LOW) + (by_low[5] >> 32) + (by_high[5] & _LOW)
    fourth = columns[3] + (fifth >> 32)
    third = columns[2] + (fourth >> 32)
    turns = (columns[0] << 32) + columns[1] + (third >> 32)
    quadrant, rest = _nearest_quadrant(turns)
    with write.exact():
        top = _whole((rest + (1 << 63)) >> 32) - 2.0**31
        below = _whole(third & _LOW) * 2.0**-32 + _whole(fourth & _LOW) * 2.0**-64
        high, low = _sum(top * 2.0**32, _whole(rest & _LOW))
        high, low = _sum(high, low + below)
        product = high * _UNIT[0]
        lost = write.fma(high, _UNIT[0], -product)
        lost = lost + (high * _UNIT[1] + low * _UNIT[0])
    return quadrant, product, lost


def _window(table, first, steps, count):
    """``count - 1`` words of digits that begin at bit ``first`` of a table.

    ``steps`` add up to the highest word.
    """
    write = first.writer
    width = 8 * first.dtype.itemsize
    shift = first & (width - 1)
    word = first >> (5 if width == 32 else 6)
    words = [write.const(d, first.dtype) for d in table[: sum(steps) + count]]
    for step in steps:
        further = word >= step
        words = [write.select(further, b, a) for a, b in zip(words, words[step:])]
        word = write.select(further, word - step, word)
    return [write.intrinsic("fshl", a, b, shift) for a, b in zip(words, words[1:])]


def _nearest_quadrant(turns):
    """The nearest quarter of a turn, modulo 4, and the signed remainder."""
    quadrant = (turns + (1 << 61)) >> 62
    return quadrant, turns - (quadrant << 62)


def _whole(n):
    """Convert an integer below 2**52 to float64, as AVX2 cannot convert 64-bit integers."""
    return float_of(n | ((1023 + 52) << 52)) - 2.0**52


def _sum(a, b):
    """``a + b`` and its rounding error, for ``|a| >= |b|`` (Dekker, 1971)."""
    total = a + b
    return total, b - (total - a)
