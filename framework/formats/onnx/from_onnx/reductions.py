"""Reductions over axes: an attribute of old opsets, an input of newer ones."""

from __future__ import annotations

from tapewright.ops.math.elementwise import abs, log, sqrt, square
from tapewright.ops.math.reduction import (
    reduce_all,
    reduce_any,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
)

from .static import axes_of, dims, formulas, sized


def _reduction(op):
    """Return a reduction ``op(x, axes, keepdims)`` over all axes if none are given."""

    def reduce(x, axes=None, keepdims=1, noop_with_empty_axes=0):
        rank = len(dims(x))
        axes = [] if axes is None else axes_of(axes, rank)
        if not axes and not noop_with_empty_axes:
            axes = list(range(rank))
        return op(x, axes, bool(keepdims))

    return reduce


def _of_squares(x, axes, keepdims):
    return reduce_sum(square(x), axes, keepdims)


def _extreme(op, of_bools):
    def reduce(x, axes, keepdims):
        return (of_bools if x.dtype.is_bool else op)(x, axes, keepdims)

    return reduce


def _prod(x, axes, keepdims):
    sizes = formulas(x)
    if sizes is None:
        return reduce_prod(x, axes, keepdims)
    return sized(sizes[0].prod(tuple(axes), keepdims=keepdims), x.dtype.name)


OPS = {
    f"Reduce{name}": _reduction(op)
    for name, op in {
        "L1": lambda x, axes, keepdims: reduce_sum(abs(x), axes, keepdims),
        "L2": lambda x, axes, keepdims: sqrt(_of_squares(x, axes, keepdims)),
        "LogSum": lambda x, axes, keepdims: log(reduce_sum(x, axes, keepdims)),
        "LogSumExp": reduce_logsumexp,
        "Max": _extreme(reduce_max, reduce_any),
        "Mean": reduce_mean,
        "Min": _extreme(reduce_min, reduce_all),
        "Prod": _prod,
        "Sum": reduce_sum,
        "SumSquare": _of_squares,
    }.items()
}
