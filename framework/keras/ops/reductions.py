"""Reductions of `keras.ops`: sums, extremes, quantiles, and those that skip NaN."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from tapewright.core import devices
from tapewright.core.dtypes import float32, float64, int32, is_half
from tapewright.core.rules import normalize_axis
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import Axes, Axis, DTypeLike, P, TensorLike
from tapewright.ops.array.conversion import cast, stop_gradient
from tapewright.ops.array.creation import fill
from tapewright.ops.array.gather import gather
from tapewright.ops.array.indexing import argmax as _argmax
from tapewright.ops.array.indexing import argmin as _argmin
from tapewright.ops.array.shape import (
    broadcast_to,
    expand_dims,
    reshape,
    transpose,
)
from tapewright.ops.array.sorting import sort
from tapewright.ops.math import reduction
from tapewright.ops.math import scan as scans
from tapewright.ops.math.comparison import (
    equal,
    is_finite,
    is_nan,
    logical_and,
    logical_not,
    logical_or,
    where,
)
from tapewright.ops.math.elementwise import (
    ceil,
    divide,
    floor,
    maximum,
    minimum,
    norm_sqrt,
)
from tapewright.ops.math.elementwise import round as _round
from tapewright.ops.math.reduction import reduce_max, reduce_min, reduce_sum

from .operation import FLOATS, OperationFamily
from .promotion import promote, to_accumulator, to_bool, to_floating, to_numbers

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "average",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "logsumexp",
    "max",
    "mean",
    "median",
    "min",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "percentile",
    "prod",
    "ptp",
    "quantile",
    "std",
    "sum",
    "var",
]

operation = OperationFamily(__name__, "numpy")

_range = range


_OVER_AXIS = """
Args: ``axis``: an int, a tuple, or None for all axes.

Shapes: the result lacks these axes, or has size 1 there with ``keepdims``.
"""
_AS_IN_SUM = "Shapes: as in `sum`."


def _reduction(name, op, prepare, doc=None, details=_AS_IN_SUM, **metadata):
    """``op(prepare(x))`` over ``axis``: None for all, an int or a tuple."""

    def function(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
        return op(prepare(x), axis, keepdims)

    return operation.named(name, function, doc or op.__doc__, details, **metadata)


def _in_float32(op):
    """``op``, for half precision computed in single, where no sum on the way overflows."""

    def entry(x, axis, keepdims):
        if not is_half(x.dtype):
            return op(x, axis, keepdims)
        return cast(op(cast(x, float32), axis, keepdims), x.dtype)

    entry.__doc__ = op.__doc__
    return entry


_sum = _in_float32(reduce_sum)

all = _reduction("all", reduction.reduce_all, to_bool)  # noqa: A001
any = _reduction("any", reduction.reduce_any, to_bool)  # noqa: A001
logsumexp = _reduction(
    "logsumexp", _in_float32(reduction.reduce_logsumexp), to_floating, module="math",
    same_as="reduce_logsumexp", kinds=FLOATS,
)  # fmt: skip
mean = _reduction(
    "mean", _in_float32(reduction.reduce_mean), to_floating,
    "The mean over ``axis``, a floating number for integers too.",
)  # fmt: skip
std = _reduction(
    "std", _in_float32(reduction.reduce_std), to_floating,
    "The standard deviation over ``axis``: the square root of `var`.",
)  # fmt: skip
sum = _reduction(  # noqa: A001
    "sum", _sum, to_accumulator, "The sum over ``axis``.",
    f"""{_OVER_AXIS}
>>> keras.ops.sum([[1, 2], [3, 4]], axis=0).numpy()
array([4, 6], dtype=int32)
""",
)  # fmt: skip
var = _reduction(
    "var", _in_float32(reduction.reduce_variance), to_floating,
    "The variance over ``axis``: ``mean(|x - mean(x)| ** 2)``.",
)  # fmt: skip


def _extreme(name, of_numbers, of_bools):
    """The first of a pair over ``axis``; the second joins ``initial`` to that."""

    def function(
        x: TensorLike, axis: Axes = None, keepdims: bool = False,
        initial: TensorLike | None = None,
    ) -> Tensor:  # fmt: skip
        x = convert_to_tensor(x)
        reduced, of_two = of_bools if x.dtype.is_bool else of_numbers
        result = reduced(x, axis, keepdims)
        return result if initial is None else of_two(result, cast(initial, x.dtype))

    details = f"""
``initial``: a number to compare with as well.

{_AS_IN_SUM}
"""
    return operation.named(name, function, of_numbers[0].__doc__, details)


max = _extreme(  # noqa: A001
    "max", (reduce_max, maximum), (reduction.reduce_any, logical_or)
)
min = _extreme(  # noqa: A001
    "min", (reduce_min, minimum), (reduction.reduce_all, logical_and)
)
amax = _reduction("amax", max, convert_to_tensor)
amin = _reduction("amin", min, convert_to_tensor)


@operation
def prod(
    x: TensorLike,
    axis: Axes = None,
    keepdims: bool = False,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The product over ``axis``, in ``dtype`` if one is given.

    Shapes: as in `sum`.

    Example:
        >>> keras.ops.prod([[1, 2], [3, 4]], axis=1).numpy()
        array([ 2, 12], dtype=int32)
    """
    x = to_accumulator(x) if dtype is None else cast(x, dtype)
    return reduction.reduce_prod(x, axis, keepdims)


@operation
def ptp(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The largest entry over ``axis`` minus the smallest.

    Shapes: as in `sum`.

    Example:
        >>> keras.ops.ptp([[1, 5], [2, 3]], axis=1).numpy()
        array([4, 1], dtype=int32)
    """
    return reduce_max(x, axis, keepdims) - reduce_min(x, axis, keepdims)


@operation
def count_nonzero(x: TensorLike, axis: Axes = None) -> Tensor:
    """The number of entries over ``axis`` that are not 0, int32.

    Shapes: the result lacks the axes of ``axis``.

    Example:
        >>> keras.ops.count_nonzero([[0, 1], [2, 3]], axis=1).numpy()
        array([1, 2], dtype=int32)
    """
    return reduction.count_nonzero(x, axis, dtype=int32)


@operation(call="x weights")
def average(
    x: TensorLike, axis: Axes = None, weights: TensorLike | None = None
) -> Tensor:
    """The weighted mean over ``axis``: ``sum(x * weights) / sum(weights)``.

    Shapes: ``weights`` has the shape of ``x``, or one number for each entry of the one
    ``axis``; the result lacks ``axis``.

    Raises: ``ValueError`` for other ``weights``.

    Example:
        >>> keras.ops.average([1.0, 2.0, 6.0], weights=[1.0, 1.0, 0.0]).numpy()
        np.float32(1.5)
    """
    if weights is None:
        return mean(x, axis)
    x, weights = promote(x, weights, at_least=float)
    if weights.ndim != x.ndim:
        if weights.ndim != 1 or not isinstance(axis, int):
            raise ValueError(
                "average: weights must have the shape of x, or be a vector for one axis; "
                f"got shapes {tuple(weights.shape)} and {tuple(x.shape)}, axis {axis}"
            )
        (axis,) = normalize_axis("average", axis, x.ndim)
        weights = reshape(weights, [-1 if i == axis else 1 for i in _range(x.ndim)])
    dtype = x.dtype
    if is_half(dtype):  # whose sums overflow
        x, weights = cast(x, float32), cast(weights, float32)
    total = reduce_sum(x * weights, axis)
    return cast(total / reduce_sum(weights, axis), dtype)


# --------------------------------------------------------------- indices of extremes


def _arg_reduction(name, op, noun):
    def function(
        x: TensorLike, axis: Axis | None = None, keepdims: bool = False
    ) -> Tensor:
        x = to_numbers(x)
        if axis is not None:
            result = op(x, axis, int32)
            return expand_dims(result, axis) if keepdims else result
        result = op(reshape(x, [-1]), 0, int32)
        return reshape(result, [1] * x.ndim) if keepdims else result

    details = f"""
It is an int32: the first one of equal entries. None flattens ``x``.

Shapes: the result lacks ``axis``, or has size 1 there with ``keepdims``.

>>> keras.ops.{name}([[1, 7], [5, 2]], axis=1).numpy()
array({[1, 0] if name == "argmax" else [0, 1]}, dtype=int32)
"""
    doc = f"The index of the {noun} entry along ``axis``."
    return operation.named(name, function, doc, details)


argmax = _arg_reduction("argmax", _argmax, "largest")
argmin = _arg_reduction("argmin", _argmin, "smallest")


# -------------------------------------------------------------------- running totals


def _cumulative(name, op, noun, example):
    def function(
        x: TensorLike, axis: Axis | None = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        x = to_numbers(x if dtype is None else cast(x, dtype))
        return op(reshape(x, [-1]), 0) if axis is None else op(x, axis)

    doc = f"The {noun} of the entries along ``axis`` up to each one."
    details = f"""
None flattens ``x``; ``dtype``: that of the result.

>>> keras.ops.{name}([1, 2, 3]).numpy()
array({example}, dtype=int32)
"""
    return operation.named(name, function, doc, details, same_as=name, kinds=FLOATS)


cumsum = _cumulative("cumsum", scans.cumsum, "sum", [1, 3, 6])
cumprod = _cumulative("cumprod", scans.cumprod, "product", [1, 2, 6])


# ---------------------------------------------------------------------- without NaN


def _without_nan(
    name, function: Callable[P, Tensor], stand_in, doc, details=""
) -> Callable[P, Tensor]:
    """``function`` of ``x`` with ``stand_in`` for NaN."""

    @functools.wraps(function)
    def call(x, *args, **kwargs):
        x = convert_to_tensor(x)
        if x.dtype.is_differentiable:
            x = where(is_nan(x), stand_in, x)
        return function(x, *args, **kwargs)

    return operation.named(name, call, doc, details)


def _nan_reduction(name, function, stand_in, nothing, doc):
    """``function`` of entries other than NaN, and ``nothing`` where all are NaN."""

    def call(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
        x = convert_to_tensor(x)
        if not x.dtype.is_floating:
            return function(x, axis, keepdims)
        nan = is_nan(x)
        result = function(where(nan, stand_in, x), axis, keepdims)
        return where(reduction.reduce_all(nan, axis, keepdims), nothing, result)

    return operation.named(name, call, doc, _AS_IN_SUM)


nansum = _without_nan(
    "nansum", sum, 0.0, "The sum over ``axis`` of the entries that are not NaN.",
    _AS_IN_SUM,
)  # fmt: skip
nanprod = _without_nan(
    "nanprod", prod, 1.0, "The product over ``axis`` of the entries that are not NaN.",
    _AS_IN_SUM,
)  # fmt: skip
nancumsum = _without_nan("nancumsum", cumsum, 0.0, "`cumsum`, with 0 for NaN.")
nancumprod = _without_nan("nancumprod", cumprod, 1.0, "`cumprod`, with 1 for NaN.")
nanmax = _nan_reduction(
    "nanmax", max, -math.inf, math.nan,
    "The largest entry over ``axis`` that is not NaN; NaN if all are.",
)  # fmt: skip
nanmin = _nan_reduction(
    "nanmin", min, math.inf, math.nan,
    "The smallest entry over ``axis`` that is not NaN; NaN if all are.",
)  # fmt: skip
nanargmax = _nan_reduction(
    "nanargmax", argmax, -math.inf, -1,
    "The index of the largest entry along ``axis`` that is not NaN; -1 if all are.",
)  # fmt: skip
nanargmin = _nan_reduction(
    "nanargmin", argmin, math.inf, -1,
    "The index of the smallest entry along ``axis`` that is not NaN; -1 if all are.",
)  # fmt: skip


@_in_float32
def _nanmean(x, axis, keepdims):
    count = reduce_sum(cast(logical_not(is_nan(x)), x.dtype), axis, keepdims)
    return divide(nansum(x, axis, keepdims), count)


@_in_float32
def _nanvar(x, axis, keepdims):
    nan = is_nan(x)
    away = where(nan, 0.0, x - _nanmean(x, axis, True))
    count = reduce_sum(cast(logical_not(nan), x.dtype), axis, keepdims)
    return divide(reduce_sum(away * away, axis, keepdims), count)


@operation
def nanmean(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The mean over ``axis`` of the entries that are not NaN; NaN if all are.

    Shapes: as in `sum`.

    Example:
        >>> import math
        >>> keras.ops.nanmean([1.0, math.nan, 3.0]).numpy()
        np.float32(2.0)
    """
    return _nanmean(to_floating(x), axis, keepdims)


@operation
def nanvar(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The variance over ``axis`` of the entries that are not NaN; NaN if all are.

    Shapes: as in `sum`.
    """
    return _nanvar(to_floating(x), axis, keepdims)


@operation
def nanstd(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The standard deviation over ``axis`` of the entries that are not NaN.

    Shapes: as in `sum`.
    """
    x = to_floating(x)
    # Taken from an entry on, as by `reduce_std`: equal numbers then deviate by 0.
    first = reduce_max(where(is_nan(x), -math.inf, x), axis, True)
    shifted = x - stop_gradient(where(is_finite(first), first, 0.0))
    return norm_sqrt(_nanvar(shifted, axis, keepdims))


# ------------------------------------------------------------------------- quantiles

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


@operation(call="x q")
def quantile(
    x: TensorLike,
    q: TensorLike,
    axis: Axes = None,
    method: str = "linear",
    keepdims: bool = False,
) -> Tensor:
    """The quantiles ``q`` over ``axis``: values with a share ``q`` of the entries below.

    Args: ``q``: from 0 to 1, a number or a tensor; ``method``: the value between two
    entries, "linear", "lower", "higher", "midpoint" or "nearest".

    Shapes: as in `sum`, with the axes of ``q`` in front.

    Raises: ``ValueError`` for another ``method``, or ``q`` out of range.

    Example:
        >>> keras.ops.quantile([1.0, 2.0, 4.0], [0.5, 0.75]).numpy()
        array([2., 3.], dtype=float32)
    """
    return _quantile(x, q, axis, method, keepdims, False)


@operation(call="x q")
def nanquantile(
    x: TensorLike,
    q: TensorLike,
    axis: Axes = None,
    method: str = "linear",
    keepdims: bool = False,
) -> Tensor:
    """`quantile` of the entries that are not NaN; NaN if all are."""
    return _quantile(x, q, axis, method, keepdims, True)


def _quantile(x, q, axis, method, keepdims, without_nan):
    if method not in _METHODS:
        raise ValueError(
            f"quantile: method must be one of {', '.join(_METHODS)}, got {method!r}"
        )
    x = to_floating(x)
    q = cast(q, float64)  # float32 cannot index many entries
    if devices.is_array(q.array) and not ((q.array >= 0) & (q.array <= 1)).all():
        raise ValueError(f"quantile: q must be from 0 to 1, got {q.numpy()}")
    rank, lead = x.ndim, q.ndim
    axes = sorted(normalize_axis("quantile", axis, rank))
    kept = [a for a in _range(rank) if a not in axes]
    rows = transpose(x, kept + axes)
    lead_sizes = [x.shape[a] for a in kept]
    rows = sort(reshape(rows, [*lead_sizes, math.prod([x.shape[a] for a in axes])]))
    result = _interpolate(rows, reshape(q, [-1]), method, without_nan)
    result = transpose(result, [len(kept), *_range(len(kept))])
    sizes = [1 if a in axes else x.shape[a] for a in _range(rank)]
    sizes = sizes if keepdims else lead_sizes
    return reshape(result, [*q.shape, *sizes] if lead else sizes)


def _interpolate(rows, q, method, without_nan):
    """``[..., len(q)]``: the quantiles of sorted rows ``[..., n]``, NaN behind."""
    if rows.shape[-1] == 0:
        return fill([*rows.shape[:-1], q.shape[0]], cast(math.nan, rows.dtype))
    nan = is_nan(rows)
    valid = reduce_sum(cast(logical_not(nan), float64), -1, True)
    positions = q * (valid - 1.0)
    low, high = floor(positions), ceil(positions)
    if method == "nearest":
        low = high = _round(positions)
    first = _take(rows, low if method != "higher" else high)
    last = _take(rows, high if method != "lower" else low)
    shares = {"linear": positions - low, "midpoint": 0.5}
    share = cast(shares.get(method, 0.0), rows.dtype)
    # No difference: that of two infinities is NaN, and of large numbers infinite.
    same, finite = equal(first, last), is_finite(first)
    endless = logical_and(same, logical_not(finite))
    share, last = where(endless, 0.0, share), where(endless, 0.0, last)
    result = first * (1.0 - share) + last * share
    # Equal entries share the gradient, but the value is theirs, without rounding.
    tie = logical_and(same, finite)
    rounding = where(tie, result, 0.0) - where(tie, first, 0.0)
    result = result - stop_gradient(rounding)
    reduce_nan = reduction.reduce_all if without_nan else reduction.reduce_any
    return where(reduce_nan(nan, -1, True), math.nan, result)


def _take(rows, positions):
    positions = cast(maximum(positions, 0.0), int32)
    positions = broadcast_to(positions, [*rows.shape[:-1], positions.shape[-1]])
    return gather(rows, positions, batch_dims=rows.ndim - 1)


@operation(call="x q")
def percentile(
    x: TensorLike,
    q: TensorLike,
    axis: Axes = None,
    method: str = "linear",
    keepdims: bool = False,
) -> Tensor:
    """`quantile`, with ``q`` from 0 to 100.

    Example:
        >>> keras.ops.percentile([1.0, 2.0, 4.0], 50).numpy()
        np.float32(2.0)
    """
    return quantile(x, to_floating(q) / 100.0, axis, method, keepdims)


@operation(call="x q")
def nanpercentile(
    x: TensorLike,
    q: TensorLike,
    axis: Axes = None,
    method: str = "linear",
    keepdims: bool = False,
) -> Tensor:
    """`nanquantile`, with ``q`` from 0 to 100."""
    return nanquantile(x, to_floating(q) / 100.0, axis, method, keepdims)


@operation
def median(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The entry in the middle over ``axis``, or the mean of the two there.

    Shapes: as in `sum`.

    Example:
        >>> keras.ops.median([3.0, 1.0, 2.0]).numpy()
        np.float32(2.0)
    """
    return quantile(x, 0.5, axis, keepdims=keepdims)


@operation
def nanmedian(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """`median` of the entries that are not NaN; NaN if all are."""
    return nanquantile(x, 0.5, axis, keepdims=keepdims)
