"""Parts of updates, each in one pass of BLAS over a block where that pays."""

import numpy as np

from tapewright.core import blas

__all__ = ["approach", "pays", "subtract_scaled"]

# Elements from which on two passes less are worth more than the making of the call, which
# takes 4 us and more: 100,000 to 2 million elements are updated in 0.8 of the time.
WORTH = 32768


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
