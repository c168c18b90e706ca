"""Reductions of `keras.ops`: sums, extremes, quantiles, and variants that ignore NaN."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from tapewright.core.dtypes import float32, float64, int32, is_half
from tapewright.core.hardware import devices
from tapewright.core.messages.docstrings import summary_of
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


_NAMES = ("x", "axis", "keepdims")


def _reduction(name, op, prepare, summary=None, **metadata):
    """Define the operation ``op(prepare(x))`` over ``axis``."""

    def function(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
        return op(prepare(x), axis, keepdims)

    summary = summary or summary_of(op, _NAMES)
    return operation.named(name, function, summary, **metadata)


def _in_float32(op):
    """Return ``op`` that computes float16 and bfloat16 in float32, without overflow."""

    @functools.wraps(op)
    def entry(x, axis, keepdims):
        if not is_half(x.dtype):
            return op(x, axis, keepdims)
        return cast(op(cast(x, float32), axis, keepdims), x.dtype)

    return entry


_sum = _in_float32(reduce_sum)

_SUMMED = {"x": "Input tensor; small integers and booleans are summed in 32 bits."}
_FLOATING = {"x": "Input tensor; integers are cast to `floatx`."}
_TRUTH = {"x": "Tensor of booleans; numbers other than 0 count as True."}

all = _reduction(  # noqa: A001
    "all", reduction.reduce_all, to_bool, args=_TRUTH, details="""
Example:
    >>> keras.ops.all([[True, False], [True, True]], axis=1).numpy()
    array([False,  True])
""",
)  # fmt: skip
any = _reduction(  # noqa: A001
    "any", reduction.reduce_any, to_bool, args=_TRUTH, details="""
Example:
    >>> keras.ops.any([[True, False], [False, False]], axis=1).numpy()
    array([ True, False])
""",
)  # fmt: skip
logsumexp = _reduction(
    "logsumexp", _in_float32(reduction.reduce_logsumexp), to_floating, module="math",
    same_as="reduce_logsumexp", kinds=FLOATS, args=_FLOATING,
)  # fmt: skip
mean = _reduction(
    "mean", _in_float32(reduction.reduce_mean), to_floating,
    "Compute the arithmetic mean over axes.", args=_FLOATING, details="""
Example:
    >>> keras.ops.mean([[1, 2], [3, 5]], axis=0).numpy()
    array([2. , 3.5], dtype=float32)
""",
)  # fmt: skip
std = _reduction(
    "std", _in_float32(reduction.reduce_std), to_floating,
    "Compute the standard deviation over axes, the square root of `var`.",
    args=_FLOATING, details="""
Example:
    >>> keras.ops.std([1.0, 3.0]).numpy()
    np.float32(1.0)
""",
)  # fmt: skip
sum = _reduction(  # noqa: A001
    "sum", _sum, to_accumulator, "Sum the entries over axes.", args=_SUMMED, details="""
Example:
    >>> keras.ops.sum([[1, 2], [3, 4]], axis=0).numpy()
    array([4, 6], dtype=int32)
""",
)  # fmt: skip
var = _reduction(
    "var", _in_float32(reduction.reduce_variance), to_floating,
    "Compute the variance over axes: ``mean(abs(x - mean(x)) ** 2)``.",
    args=_FLOATING, details="""
Example:
    >>> keras.ops.var([1.0, 3.0]).numpy()
    np.float32(1.0)
""",
)  # fmt: skip


def _extreme(name, of_numbers, of_bools):
    """Define an extreme over axes: each pair holds a reduction and an op for ``initial``."""

    def function(
        x: TensorLike, axis: Axes = None, keepdims: bool = False,
        initial: TensorLike | None = None,
    ) -> Tensor:  # fmt: skip
        x = convert_to_tensor(x)
        reduced, of_two = of_bools if x.dtype.is_bool else of_numbers
        result = reduced(x, axis, keepdims)
        return result if initial is None else of_two(result, cast(initial, x.dtype))

    details = f"""
Example:
    >>> keras.ops.{name}([[1, 7], [5, 2]], axis=1).numpy()
    array({[7, 5] if name == "max" else [1, 2]}, dtype=int32)
"""
    args = {"initial": "Value that each result is compared with as well, or None."}
    summary = summary_of(of_numbers[0], _NAMES)
    return operation.named(name, function, summary, details, args)


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
    """Multiply the entries over axes.

    Args:
        x: Input tensor; small integers and booleans are multiplied in 32 bits unless
            ``dtype`` is given.
        axis: Axis or tuple of axes to reduce; None reduces all axes.
        keepdims: If True, keep reduced axes with size 1.
        dtype: Dtype of the product, to which ``x`` is cast before.

    Example:
        >>> keras.ops.prod([[1, 2], [3, 4]], axis=1).numpy()
        array([ 2, 12], dtype=int32)
    """
    x = to_accumulator(x) if dtype is None else cast(x, dtype)
    return reduction.reduce_prod(x, axis, keepdims)


@operation
def ptp(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Compute the range of the entries over axes: maximum minus minimum.

    Args:
        x: Input tensor.
        axis: Axis or tuple of axes to reduce; None reduces all axes.
        keepdims: If True, keep reduced axes with size 1.

    Example:
        >>> keras.ops.ptp([[1, 5], [2, 3]], axis=1).numpy()
        array([4, 1], dtype=int32)
    """
    return reduce_max(x, axis, keepdims) - reduce_min(x, axis, keepdims)


@operation
def count_nonzero(x: TensorLike, axis: Axes = None) -> Tensor:
    """Count the entries other than 0 over axes.

    Args:
        x: Input tensor.
        axis: Axis or tuple of axes to reduce; None reduces all axes.

    Returns:
        Numbers of int32.

    Example:
        >>> keras.ops.count_nonzero([[0, 1], [2, 3]], axis=1).numpy()
        array([1, 2], dtype=int32)
    """
    return reduction.count_nonzero(x, axis, dtype=int32)


@operation(call="x weights")
def average(
    x: TensorLike, axis: Axes = None, weights: TensorLike | None = None
) -> Tensor:
    """Compute the weighted mean over axes: ``sum(x * weights) / sum(weights)``.

    Args:
        x: Input tensor.
        axis: Axis or tuple of axes to reduce; None reduces all axes.
        weights: Weights in the shape of ``x``, or a vector along the one ``axis``; None
            weighs all entries equally.

    Raises:
        ValueError: If ``weights`` has another shape.

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


_SEARCHED = {
    "axis": "Axis to search; None flattens ``x``.",
    "keepdims": "If True, keep the searched axis with size 1.",
}


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
The indices are int32; of equal entries the first index is returned.

Example:
    >>> keras.ops.{name}([[1, 7], [5, 2]], axis=1).numpy()
    array({[1, 0] if name == "argmax" else [0, 1]}, dtype=int32)
"""
    summary = f"Return the index of the {noun} entry along an axis."
    return operation.named(name, function, summary, details, _SEARCHED)


argmax = _arg_reduction("argmax", _argmax, "largest")
argmin = _arg_reduction("argmin", _argmin, "smallest")


# -------------------------------------------------------------------- running totals


_ACCUMULATED = {"axis": "Axis to accumulate along; None flattens ``x``."}


def _cumulative(name, op, noun, example):
    def function(
        x: TensorLike, axis: Axis | None = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        x = to_numbers(x if dtype is None else cast(x, dtype))
        return op(reshape(x, [-1]), 0) if axis is None else op(x, axis)

    summary = f"Compute the cumulative {noun} along an axis."
    details = f"""
Example:
    >>> keras.ops.{name}([1, 2, 3]).numpy()
    array({example}, dtype=int32)
"""
    return operation.named(
        name, function, summary, details, _ACCUMULATED, same_as=name, kinds=FLOATS
    )


cumsum = _cumulative("cumsum", scans.cumsum, "sum", [1, 3, 6])
cumprod = _cumulative("cumprod", scans.cumprod, "product", [1, 2, 6])


# ---------------------------------------------------------------------- without NaN


def _without_nan(
    name, function: Callable[P, Tensor], stand_in, summary, args=None
) -> Callable[P, Tensor]:
    """Define the operation ``function`` with ``stand_in`` for NaN."""

    @functools.wraps(function)
    def call(x, *args, **kwargs):
        x = convert_to_tensor(x)
        if x.dtype.is_differentiable:
            x = where(is_nan(x), stand_in, x)
        return function(x, *args, **kwargs)

    return operation.named(name, call, summary, args=args)


def _nan_reduction(name, function, stand_in, nothing, summary, args=None):
    """Define ``function`` of the entries other than NaN; ``nothing`` if all are NaN."""

    def call(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
        x = convert_to_tensor(x)
        if not x.dtype.is_floating:
            return function(x, axis, keepdims)
        nan = is_nan(x)
        result = function(where(nan, stand_in, x), axis, keepdims)
        return where(reduction.reduce_all(nan, axis, keepdims), nothing, result)

    return operation.named(name, call, summary, args=args)


nansum = _without_nan(
    "nansum", sum, 0.0, "Sum the entries over axes, ignoring NaN.", _SUMMED
)
nanprod = _without_nan(
    "nanprod", prod, 1.0, "Multiply the entries over axes, ignoring NaN.",
    {"dtype": "Dtype of the product, to which ``x`` is cast before."},
)  # fmt: skip
nancumsum = _without_nan(
    "nancumsum", cumsum, 0.0,
    "Compute the cumulative sum along an axis, counting NaN as 0.", _ACCUMULATED,
)  # fmt: skip
nancumprod = _without_nan(
    "nancumprod", cumprod, 1.0,
    "Compute the cumulative product along an axis, counting NaN as 1.", _ACCUMULATED,
)  # fmt: skip
nanmax = _nan_reduction(
    "nanmax", max, -math.inf, math.nan,
    "Return the largest entry over axes, ignoring NaN; NaN if all entries are NaN.",
)  # fmt: skip
nanmin = _nan_reduction(
    "nanmin", min, math.inf, math.nan,
    "Return the smallest entry over axes, ignoring NaN; NaN if all entries are NaN.",
)  # fmt: skip
nanargmax = _nan_reduction(
    "nanargmax", argmax, -math.inf, -1,
    "Return the index of the largest entry along an axis, ignoring NaN; -1 if all are.",
    _SEARCHED,
)  # fmt: skip
nanargmin = _nan_reduction(
    "nanargmin", argmin, math.inf, -1,
    "Return the index of the smallest entry along an axis, ignoring NaN; -1 if all are.",
    _SEARCHED,
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
    """Compute the mean over axes, ignoring NaN; NaN if all entries are NaN.

    Args:
        x: Input tensor; integers are cast to `floatx`.
        axis: Axis or tuple of axes to reduce; None reduces all axes.
        keepdims: If True, keep reduced axes with size 1.

    Example:
        >>> import math
        >>> keras.ops.nanmean([1.0, math.nan, 3.0]).numpy()
        np.float32(2.0)
    """
    return _nanmean(to_floating(x), axis, keepdims)


@operation
def nanvar(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Compute the variance over axes, ignoring NaN; NaN if all entries are NaN.

    Args:
        x: Input tensor; integers are cast to `floatx`.
        axis: Axis or tuple of axes to reduce; None reduces all axes.
        keepdims: If True, keep reduced axes with size 1.
    """
    return _nanvar(to_floating(x), axis, keepdims)


@operation
def nanstd(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Compute the standard deviation over axes, ignoring NaN; NaN if all entries are NaN.

    Args:
        x: Input tensor; integers are cast to `floatx`.
        axis: Axis or tuple of axes to reduce; None reduces all axes.
        keepdims: If True, keep reduced axes with size 1.
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
    """Compute quantiles over axes.

    A share ``q`` of the entries is below the quantile ``q``.

    Args:
        x: Input tensor; integers are cast to `floatx`.
        q: Quantiles from 0 to 1, a number or a tensor.
        axis: Axis or tuple of axes to reduce; None reduces all axes.
        method: Value between two entries: "linear", "lower", "higher", "midpoint" or
            "nearest".
        keepdims: If True, keep reduced axes with size 1.

    Shapes:
        The axes of ``q`` precede the axes of the result.

    Raises:
        ValueError: If ``method`` is unknown, or ``q`` is out of range.

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
    """Compute quantiles over axes, ignoring NaN; NaN if all entries are NaN.

    Args:
        x: Input tensor; integers are cast to `floatx`.
        q: Quantiles from 0 to 1, a number or a tensor.
        axis: Axis or tuple of axes to reduce; None reduces all axes.
        method: Value between two entries: "linear", "lower", "higher", "midpoint" or
            "nearest".
        keepdims: If True, keep reduced axes with size 1.

    Raises:
        ValueError: If ``method`` is unknown, or ``q`` is out of range.
    """
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
    """Return the quantiles ``[..., len(q)]`` of sorted rows ``[..., n]`` that end in NaN."""
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
    """Compute percentiles over axes; see `quantile`.

    Args:
        x: Input tensor; integers are cast to `floatx`.
        q: Percentiles from 0 to 100, a number or a tensor.
        axis: Axis or tuple of axes to reduce; None reduces all axes.
        method: Value between two entries: "linear", "lower", "higher", "midpoint" or
            "nearest".
        keepdims: If True, keep reduced axes with size 1.

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
    """Compute percentiles over axes, ignoring NaN; NaN if all entries are NaN.

    Args:
        x: Input tensor; integers are cast to `floatx`.
        q: Percentiles from 0 to 100, a number or a tensor.
        axis: Axis or tuple of axes to reduce; None reduces all axes.
        method: Value between two entries: "linear", "lower", "higher", "midpoint" or
            "nearest".
        keepdims: If True, keep reduced axes with size 1.
    """
    return nanquantile(x, to_floating(q) / 100.0, axis, method, keepdims)


@operation
def median(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Compute the median over axes.

    It is the middle entry, or the mean of the two middle entries.

    Args:
        x: Input tensor; integers are cast to `floatx`.
        axis: Axis or tuple of axes to reduce; None reduces all axes.
        keepdims: If True, keep reduced axes with size 1.

    Example:
        >>> keras.ops.median([3.0, 1.0, 2.0]).numpy()
        np.float32(2.0)
    """
    return quantile(x, 0.5, axis, keepdims=keepdims)


@operation
def nanmedian(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Compute the median over axes, ignoring NaN; NaN if all entries are NaN.

    Args:
        x: Input tensor; integers are cast to `floatx`.
        axis: Axis or tuple of axes to reduce; None reduces all axes.
        keepdims: If True, keep reduced axes with size 1.
    """
    return nanquantile(x, 0.5, axis, keepdims=keepdims)
