"""Arithmetic of updates: passes over a block, sums of gradients, averages of variables.

Sums and averages lie next to the variables in their segments, as ``extras``.
"""

import numpy as np

from tapewright.core import blas

from .gradients import SparseRows

__all__ = [
    "ACCUMULATOR",
    "AVERAGE",
    "accumulate",
    "approach",
    "average",
    "clear",
    "pays",
    "subtract_scaled",
]

# Elements from which on two passes less are worth more than the making of the call, which
# takes 4 us and more: 100,000 to 2 million elements are updated in 0.8 of the time.
WORTH = 32768
# The names that Keras gives to the variables.
AVERAGE, ACCUMULATOR = "average", "gradient_accumulator"


def approach(xp, mean, x, part, scratch, factor=1):
    """``mean <- mean + part * (factor * x - mean)``; ``scratch`` may be ``x``.

    The mean of a constant is that constant, however the weights of old and new, which
    have to add up to 1, are rounded.
    """
    if pays(mean):
        real = mean.dtype.type
        keep = real(1) - real(part)
        new = float(real(1) - keep)  # exact: they add up to 1
        blas.axpby(new * factor, x, keep, mean)
        return
    if factor != 1:
        x = xp.multiply(x, factor, out=scratch)
    xp.subtract(x, mean, out=scratch)
    xp.multiply(scratch, part, out=scratch)
    xp.add(mean, scratch, out=mean)


def subtract_scaled(xp, y, x, factor, scratch):
    """``y <- y - factor * x``; ``scratch`` may be ``x``."""
    if pays(y):
        blas.axpby(-float(factor), x, 1.0, y)
        return
    xp.multiply(x, factor, out=scratch)
    xp.subtract(y, scratch, out=y)


def pays(y):
    """Return whether a call of BLAS pays for a block like ``y``."""
    return type(y) is np.ndarray and y.size >= WORTH and blas.handles(y.dtype)


def accumulate(parts, gradients, share, steps=None) -> list:
    """Add ``share`` of each gradient to its sum, and return the sums in their place.

    With ``steps`` the sums become means over so many steps.
    """
    sums = list(gradients)
    for part in parts:
        xp = part.segment.workspace.xp
        accumulators = part.segment.views(ACCUMULATOR)
        for m, n in part.members:
            sums[n] = accumulators[m]
            _add(xp, sums[n], gradients[n], share)
            if steps:
                sums[n] /= steps
    return sums


def _add(xp, total, gradient, share):
    if type(gradient) is SparseRows:
        rows, values = gradient.merged(xp)
        total[rows] += values if share == 1 else values * share
    elif share == 1:
        xp.add(total, gradient, out=total)
    else:
        total += gradient * share


def clear(segments) -> None:
    """Set the sums to zero."""
    for segment in segments:
        segment.extra(ACCUMULATOR).fill(0)


def average(segments, part, overwrite) -> None:
    """Move each average by ``part`` of the way to its variable.

    With ``overwrite`` the variables become the averages.
    """
    for segment in segments:
        mean, flat = segment.extra(AVERAGE), segment.flats[0]
        xp, scratch = segment.workspace.xp, segment.workspace.scratch
        for i in range(0, flat.size, segment.block):
            old, new = mean[i : i + segment.block], flat[i : i + segment.block]
            if part == 1:
                old[...] = new
            else:
                approach(xp, old, new, part, scratch[: old.size])
            if overwrite:
                new[...] = old
