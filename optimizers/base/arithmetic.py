"""Arithmetic of updates: block operations, sums of gradients, averages of variables.

Sums and averages are stored in the segments of their variables, as ``extras``.
"""

from functools import partial

import numpy as np

from tapewright.core.hardware import blas

from .gradients import SparseRows
from .recording import Recorded, Recorder

# From this many elements on, two passes fewer outweigh the cost of the call, 4 us and
# more: 100,000 to 2 million elements are updated in 0.8 of the time.
WORTH = 32768
# The names that Keras gives to the variables.
AVERAGE, ACCUMULATOR = "average", "gradient_accumulator"


def update(rule, method, xp, arrays, scratch, numbers, decays=False, factor=1.0):
    """Update one block: let the variable decay, then call the method `update_block`.

    Args:
        rule: Settings of the rule.
        method: Its `update_block`, bound.
        xp: Module of the arrays.
        arrays: Gradient, variable and slots.
        scratch: As many arrays as `scratch_count`.
        numbers: Share by which the variable decays, then the coefficients.
        decays: If False, the variable does not decay.
        factor: Factor of the gradient, for a rule that takes one.
    """
    gradient, variable, *slots = arrays
    decay, *coefficients = numbers
    if decays:
        xp.multiply(variable, decay, out=scratch[0])
        xp.subtract(variable, scratch[0], out=variable)
    if rule._tw_takes_factor:
        coefficients.append(factor)
    scratch = tuple(scratch) if rule.needs_two else scratch[0]
    method(xp, gradient, variable, scratch, coefficients, *slots)


def scratch_count(rule):
    """Return the number of scratch arrays that a rule needs."""
    return 2 if rule.needs_two else 1


def approach(xp, mean, x, weight, scratch, factor=1):
    """Compute ``mean <- mean + weight * (factor * x - mean)``; ``scratch`` may be ``x``.

    The mean of a constant is that constant: the rounded weights of the old and the new
    value add up to 1.
    """
    if pays(mean):
        _axpby(xp, partial(_shares, mean.dtype.type, factor), weight, x, mean)
        return
    if factor != 1:
        x = xp.multiply(x, factor, out=scratch)
    xp.subtract(x, mean, out=scratch)
    xp.multiply(scratch, weight, out=scratch)
    xp.add(mean, scratch, out=mean)


def subtract_scaled(xp, y, x, factor, scratch):
    """Compute ``y <- y - factor * x``; ``scratch`` may be ``x``."""
    if pays(y):
        _axpby(xp, _subtracted, factor, x, y)
        return
    xp.multiply(x, factor, out=scratch)
    xp.subtract(y, scratch, out=y)


def pays(y):
    """Return whether a BLAS call is worthwhile for a block like ``y``."""
    is_numpy = type(y) is np.ndarray or type(y) is Recorded
    return is_numpy and y.size >= WORTH and blas.handles(y.dtype)


def _shares(real, factor, weight):
    """Return the coefficients of `approach` for `blas.axpby`."""
    keep = real(1) - real(weight)
    new = float(real(1) - keep)  # exact: they add up to 1
    return new * factor, keep


def _subtracted(factor):
    return -float(factor), 1.0


def _axpby(xp, numbers, coefficient, x, y):
    """Compute ``y <- alpha * x + beta * y`` with ``alpha, beta = numbers(coefficient)``."""
    if type(xp) is Recorder:
        recorder = xp
        recorder.axpby(numbers, coefficient, x, y)
        return
    alpha, beta = numbers(coefficient)
    blas.axpby(alpha, x, beta, y)


def accumulate(groups, gradients, share, steps=None) -> list:
    """Add ``share`` of each gradient to its sum, and return the sums instead.

    With ``steps`` the sums become means over that many steps.
    """
    sums = list(gradients)
    for group in groups:
        xp = group.segment.workspace.xp
        accumulators = group.segment.views(ACCUMULATOR)
        for m, n in group.members:
            sums[n] = accumulators[m]
            _add(xp, sums[n], gradients[n], share)
            if steps:
                sums[n] /= steps
    return sums


def _add(xp, total, gradient, share):
    if type(gradient) is SparseRows:
        rows, values = gradient
        total[rows] += values if share == 1 else values * share
    elif share == 1:
        xp.add(total, gradient, out=total)
    else:
        total += gradient * share


def clear(segments) -> None:
    """Set the sums to zero."""
    for segment in segments:
        segment.extra(ACCUMULATOR).fill(0)


def average(segments, weight, overwrite) -> None:
    """Move each average toward its variable by ``weight`` of the difference.

    With ``overwrite`` the variables become the averages.
    """
    for segment in segments:
        mean, flat = segment.extra(AVERAGE), segment.flats[0]
        xp, scratch = segment.workspace.xp, segment.workspace.scratch
        for i in range(0, flat.size, segment.block):
            old, new = mean[i : i + segment.block], flat[i : i + segment.block]
            if weight == 1:
                old[...] = new
            else:
                approach(xp, old, new, weight, scratch[: old.size])
            if overwrite:
                new[...] = old
