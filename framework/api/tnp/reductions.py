"""`tw.experimental.numpy`: sums, means, extremes, cumulative sums, and sorting."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tapewright.core.messages.docstrings import summary_of
from tapewright.core.dtypes import int64, uint64
from tapewright.core.rules import normalize_axis
from tapewright.core.tensor import Tensor
from tapewright.core.typing import Axes, Axis, DTypeLike, TensorLike
from tapewright.keras import ops
from tapewright.ops.array import conversion, creation, indexing, sorting
from tapewright.ops.array import shape as shapes
from tapewright.ops.math import comparison, reduction

from .definition import define
from .promotion import arrays, asarray, bools, floats, promote_floats, result_type

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "average",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "max",
    "mean",
    "min",
    "nanmean",
    "nanprod",
    "nansum",
    "prod",
    "ptp",
    "sort",
    "std",
    "sum",
    "var",
]

_A = {"a": "Input tensor."}
_DTYPE = {"dtype": "Dtype in which to compute, and dtype of the result."}


def _wide(a, dtype=None):
    """Return ``a`` in ``dtype``, or with None booleans and integers in 64 bits."""
    a = asarray(a, dtype)
    if dtype is not None or a.dtype.is_differentiable:
        return a
    return conversion.cast(a, uint64 if a.dtype.is_unsigned else int64)


def _floating(a, dtype=None):
    return floats(a)[0] if dtype is None else asarray(a, dtype)


def _reduction(name, op, prepare, of_bools=None):
    """Define a reduction by ``op``, applied to ``prepare(a, dtype)``.

    ``of_bools`` replaces ``op`` if the dtype is bool.
    """

    def function(
        a: TensorLike,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        keepdims: bool | None = None,
    ) -> Tensor:
        a = prepare(a, dtype)
        reduced = of_bools if of_bools is not None and a.dtype.is_bool else op
        return reduced(a, axis, bool(keepdims))

    summary = summary_of(op, ["a"])
    args = {**_A, **_DTYPE}
    return define(function, lambda a: [a], "a", summary, name=name, args=args)


def _without_dtype(name, op, prepare):
    def function(
        a: TensorLike, axis: Axes = None, keepdims: bool | None = None
    ) -> Tensor:
        return op(*prepare(a), axis, bool(keepdims))

    summary = summary_of(op, ["a"])
    return define(function, lambda a: [a], "a", summary, name=name, args=_A)


sum = _reduction("sum", ops.sum, _wide, reduction.reduce_any)  # noqa: A001
prod = _reduction("prod", ops.prod, _wide, reduction.reduce_all)
nansum = _reduction("nansum", ops.nansum, _wide, reduction.reduce_any)
nanprod = _reduction("nanprod", ops.nanprod, _wide, reduction.reduce_all)
nanmean = _reduction("nanmean", ops.nanmean, _floating)
all = _without_dtype("all", reduction.reduce_all, bools)  # noqa: A001
any = _without_dtype("any", reduction.reduce_any, bools)  # noqa: A001
ptp = _without_dtype("ptp", ops.ptp, arrays)
std = _without_dtype("std", ops.std, floats)
max = _without_dtype("max", ops.max, arrays)  # noqa: A001
min = _without_dtype("min", ops.min, arrays)  # noqa: A001


def _refuse_out(who, out):
    if out is not None:
        raise ValueError(
            f"{who}: out must be None, since tensors are immutable; got {out!r}"
        )


def amax(
    a: TensorLike, axis: Axes = None, out: None = None, keepdims: bool | None = None
) -> Tensor:
    """Return the largest entry over axes; see `max`.

    Args:
        a: Input tensor.
        axis: Axis or tuple of axes to reduce; None reduces all axes.
        out: Must be None.
        keepdims: If True, keep reduced axes with size 1.
    """
    _refuse_out("amax", out)
    return max(a, axis, keepdims)


def amin(
    a: TensorLike, axis: Axes = None, out: None = None, keepdims: bool | None = None
) -> Tensor:
    """Return the smallest entry over axes; see `min`.

    Args:
        a: Input tensor.
        axis: Axis or tuple of axes to reduce; None reduces all axes.
        out: Must be None.
        keepdims: If True, keep reduced axes with size 1.
    """
    _refuse_out("amin", out)
    return min(a, axis, keepdims)


def mean(
    a: TensorLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Compute the mean over axes, float64 for integers.

    Args:
        a: Input tensor.
        axis: Axis or tuple of axes to reduce; None reduces all axes.
        dtype: Dtype in which to compute, and dtype of the result.
        out: Must be None.
        keepdims: If True, keep reduced axes with size 1.

    Example:
        >>> tw.experimental.numpy.mean([[1, 2], [3, 4]], axis=0).numpy()
        array([2., 3.])
    """
    _refuse_out("mean", out)
    return ops.mean(_floating(a, dtype), axis, bool(keepdims))


def var(
    a: TensorLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool | None = None,
) -> Tensor:
    """Compute the variance over axes: ``sum(|a - mean(a)| ** 2) / (n - ddof)``.

    Args:
        a: Input tensor.
        axis: Axis or tuple of axes to reduce; None reduces all axes.
        dtype: Dtype of the result; None for the dtype of ``a``, or float64 for
            integers.
        out: Must be None.
        ddof: Number that is subtracted from the count ``n`` of entries.
        keepdims: If True, keep reduced axes with size 1.

    Example:
        >>> tw.experimental.numpy.var([1, 2, 3, 4]).numpy()
        np.float64(1.25)
        >>> tw.experimental.numpy.var([1, 2, 3, 4], ddof=1).numpy().round(3)
        np.float64(1.667)
    """
    _refuse_out("var", out)
    a = _floating(a, None if dtype is None else result_type(asarray(a), dtype))
    result = ops.var(a, axis, bool(keepdims))
    if ddof:
        count = math.prod([a.shape[i] for i in normalize_axis("var", axis, a.ndim)])
        result = result * (count / (count - ddof))
    return result if dtype is None else conversion.cast(result, result_type(dtype))


def average(
    a: TensorLike,
    axis: int | None = None,
    weights: TensorLike | None = None,
    returned: bool = False,
) -> Any:
    """Compute the weighted mean over an axis: ``sum(a * weights) / sum(weights)``.

    Args:
        a: Input tensor.
        axis: Axis to reduce; None reduces all axes.
        weights: Weights, of the shape of ``a`` or a vector along ``axis``; None for
            equal weights.
        returned: If True, also return the sum of the weights.

    Returns:
        The mean; with ``returned``, a pair of the mean and the sum of the weights.

    Raises:
        ValueError: If ``weights`` has another shape.

    Example:
        >>> tw.experimental.numpy.average([1, 2, 3], weights=[3, 1, 0]).numpy()
        np.float64(1.25)
    """
    (a,) = floats(a)
    if weights is not None:
        a, weights = promote_floats(a, weights)
    result = ops.average(a, axis, weights)
    if not returned:
        return result
    if weights is None:
        weights = creation.ones_like(a)
    total = ops.sum(weights, axis if weights.ndim == a.ndim else None)
    return result, shapes.broadcast_to(total, result.shape)


def count_nonzero(a: TensorLike, axis: Axes = None) -> Tensor:
    """Count the nonzero entries over axes, as int64.

    Args:
        a: Input tensor.
        axis: Axis or tuple of axes to reduce; None reduces all axes.

    Example:
        >>> tw.experimental.numpy.count_nonzero([[0, 1], [2, 3]], axis=1).numpy()
        array([1, 2])
    """
    return reduction.count_nonzero(asarray(a), axis, dtype=int64)


# ------------------------------------------------------------- running totals, orders


def _cumulative(name: str, op: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def function(
        a: TensorLike, axis: Axis | None = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        return op(_wide(a, dtype), axis)

    summary = summary_of(op, ["a"])
    args = {**_A, "axis": "Axis to accumulate along; None flattens ``a``.", **_DTYPE}
    return define(function, lambda a: [a], "a", summary, name=name, args=args)


cumsum = _cumulative("cumsum", ops.cumsum)
cumprod = _cumulative("cumprod", ops.cumprod)


def _flat(a, axis):
    """Return ``(a, axis)``, with ``a`` flattened if ``axis`` is None or ``a`` a scalar."""
    a = asarray(a)
    return (a, axis) if a.ndim and axis is not None else (shapes.reshape(a, [-1]), 0)


def argmax(a: TensorLike, axis: Axis | None = None) -> Tensor:
    """Return the index of the largest entry along an axis, int64.

    Args:
        a: Input tensor.
        axis: Axis to search along; None flattens ``a``.

    Example:
        >>> tw.experimental.numpy.argmax([[1, 7], [5, 2]], axis=1).numpy()
        array([1, 0])
    """
    return indexing.argmax(*_order(a, axis), int64)


def argmin(a: TensorLike, axis: Axis | None = None) -> Tensor:
    """Return the index of the smallest entry along an axis, int64.

    Args:
        a: Input tensor.
        axis: Axis to search along; None flattens ``a``.
    """
    return indexing.argmin(*_order(a, axis), int64)


def _order(a, axis):
    a, axis = _flat(a, axis)
    return (conversion.cast(a, "int8") if a.dtype.is_bool else a), axis


def _refuse_kinds(who, kind, kinds, order):
    if kind not in kinds or order is not None:
        raise ValueError(
            f"{who}: kind must be {' or '.join(map(repr, kinds))} and order None, got "
            f"{kind!r} and {order!r}"
        )


def argsort(
    a: TensorLike, axis: Axis | None = -1, kind: str = "quicksort", order: None = None
) -> Tensor:
    """Return the int64 indices that sort an array along an axis.

    Equal entries keep their order.

    Args:
        a: Input tensor.
        axis: Axis to sort along; None flattens ``a``.
        kind: "quicksort" or "stable", which are the same.
        order: Must be None.

    Raises:
        ValueError: If ``kind`` is unknown, or ``order`` is given.

    Example:
        >>> tw.experimental.numpy.argsort([3, 1, 2]).numpy()
        array([1, 2, 0])
    """
    _refuse_kinds("argsort", kind, ("quicksort", "stable"), order)
    return conversion.cast(sorting.argsort(*_order(a, axis)), int64)


def sort(
    a: TensorLike, axis: Axis | None = -1, kind: str = "quicksort", order: None = None
) -> Tensor:
    """Sort an array along an axis, in ascending order.

    Args:
        a: Input tensor.
        axis: Axis to sort along; None flattens ``a``.
        kind: Must be "quicksort".
        order: Must be None.

    Raises:
        ValueError: If ``kind`` is unknown, or ``order`` is given.

    Example:
        >>> tw.experimental.numpy.sort([3, 1, 2]).numpy()
        array([1, 2, 3])
    """
    _refuse_kinds("sort", kind, ("quicksort",), order)
    return sorting.sort(*_flat(a, axis))
