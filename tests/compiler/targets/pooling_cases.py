"""Windows and arrays for the tests of pooling on each target."""

import numpy as np

from tapewright.ops.convolution.pooling import (
    pick_at_maxima_p,
    spread_means_p,
    spread_to_maxima_p,
    window_max_p,
    window_mean_p,
)
from tapewright.ops.convolution.windows import resized, window_positions

FORWARD = window_max_p, window_mean_p
MEANS = window_mean_p, spread_means_p
BACKWARD = spread_means_p, spread_to_maxima_p, pick_at_maxima_p
POOLS = *FORWARD, *BACKWARD
INTEGERS = ["i1", "u1", "u2", "i4", "i8", "u8"]


def values(rng, shape, dtype):
    """Few numbers, so that maxima are equal; with NaN and infinities among them."""
    dtype = np.dtype(dtype)
    if dtype.kind != "f":
        limits = np.iinfo(dtype)
        kinds = [limits.min, limits.max, 0, 1, 2, 3]
    else:
        kinds = [-np.inf, np.inf, np.nan, 0.0, -0.0, *rng.normal(size=8)]
    return np.array(kinds, dtype)[rng.integers(0, len(kinds), shape)]


def numbers(rng, shape, dtype):
    """Many numbers, all of them finite."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return rng.normal(size=shape).astype(dtype)
    return rng.integers(0, 100, shape).astype(dtype)


def window_of(rng):
    """``(extent, size, stride, padding, dilation)`` of which there is a window."""
    while True:
        extent, size, stride = [int(rng.integers(1, n)) for n in (13, 6, 5)]
        dilation = int(rng.choice([1, 1, 1, 2, 3]))
        padding = ("VALID", "SAME", tuple(map(int, rng.integers(0, 9, 2))))
        window = extent, size, stride, padding[rng.integers(3)], dilation
        if rng.random() < 0.15:
            window = extent, 2, 2, "VALID", 1
        if window_positions(*window)[-1]:
            return window


def attributes_of(window, axis):
    """The attributes of an op that pools windows along an axis."""
    names = ("size", "stride", "padding", "dilation")
    return dict(zip(names, window[1:], strict=True), axis=axis)


def operands_of(op, rng, shape, axis, window, dtype, other):
    """``(arrays, attributes)`` of an op; before pooling, the arrays have this shape.

    Cotangents and what is picked are of the dtype ``other``.
    """
    pooled = resized(shape, axis, window_positions(*window)[-1])
    attributes, x = attributes_of(window, axis), values(rng, shape, dtype)
    if op in FORWARD:
        return [x], attributes
    if op is spread_means_p:
        return [values(rng, pooled, dtype)], {**attributes, "extent": window[0]}
    with np.errstate(all="ignore"):
        maxima = window_max_p.primitive.kernel(np, x, **attributes)
    first = pooled if op is spread_to_maxima_p else shape
    made = values if rng.random() < 0.5 else numbers
    return [made(rng, first, other), x, np.ascontiguousarray(maxima)], attributes


def case_of(op, seed):
    """`operands_of` an op for a drawn window, and arrays of a drawn shape and dtype."""
    rng = np.random.default_rng(seed)
    window, rank = window_of(rng), int(rng.integers(1, 5))
    axis = -int(rng.integers(1, rank + 1))
    shape = tuple(map(int, rng.choice([1, 2, 3, 5, 17], rank)))
    shape = resized(shape, axis, window[0])
    dtype = rng.choice(["f4", "f8"] + INTEGERS * (op not in MEANS))
    other = rng.choice(["f4", "f8", "i1", "i4", "i8"])
    return operands_of(op, rng, shape, axis, window, dtype, other)
