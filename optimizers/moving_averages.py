"""Running sums and means beside an update: gradients added up, variables averaged.

Both lie next to the variables in their segments, as ``extras``.
"""

from .blas_kernels import approach
from .gradients import SparseRows

__all__ = ["ACCUMULATOR", "AVERAGE", "accumulate", "average", "clear"]

# The names that Keras gives to the variables.
AVERAGE, ACCUMULATOR = "average", "gradient_accumulator"


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
