"""Cumulative sums, products and logarithms of sums along an axis.

With ``exclusive`` an entry does not include itself, with ``reverse`` the scan runs from
the end. The derivatives of products and logarithms are built on one op, `linear_scan`,
which is closed under differentiation: no division, so that zeros are exact at every
order.
"""

from __future__ import annotations

import numpy as np

from tapewright.core.errors import InvalidArgumentError
from tapewright.core.op_definition.costs import per_input
from tapewright.core.rules import (
    along_axis,
    beside_axis,
    normalize_axis,
    same_dtype,
)
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import Axis, IntLike, TensorLike

from ..array.creation import ones_like
from ..array.joining import pad, split
from .comparison import greater, masked, not_equal, surely_finite
from .elementwise import exp, zero_safe_multiply

__all__ = ["cumprod", "cumsum", "cumulative_logsumexp"]


# --------------------------------------------------------------------- sums, products


@along_axis(
    kinds="iufc",
    ignores_float_errors=True,
    sizes=True,
    linear=True,
    cost=per_input(1),
)
def cumsum(
    xp, x: TensorLike, axis: IntLike = 0, exclusive: bool = False, reverse: bool = False
):
    """Cumulative sum along an axis.

    Args:
        x: Input tensor of numbers.
        axis: Axis to sum along.
        exclusive: If True, leave out the entry itself, so that the first sum is 0.
        reverse: If True, sum from the end.

    Example:
        >>> tw.cumsum([1, 2, 3]).numpy(), tw.cumsum([1, 2, 3], exclusive=True).numpy()
        (array([1, 3, 6], dtype=int32), array([0, 1, 3], dtype=int32))
        >>> tw.cumsum([1, 2, 3], reverse=True).numpy()
        array([6, 5, 3], dtype=int32)
    """
    return _accumulated(xp.cumsum, 0, xp, x, axis, exclusive, reverse)


@along_axis(kinds="iufc", ignores_float_errors=True, sizes=True, cost=per_input(1))
def cumprod(
    xp, x: TensorLike, axis: IntLike = 0, exclusive: bool = False, reverse: bool = False
):
    """Cumulative product along an axis.

    Derivatives are exact at every order, with any number of zeros.

    Args:
        x: Input tensor of numbers.
        axis: Axis to multiply along.
        exclusive: If True, leave out the entry itself, so that the first product is 1.
        reverse: If True, multiply from the end.

    Example:
        >>> tw.cumprod([2, 3, 4]).numpy(), tw.cumprod([2, 3, 4], exclusive=True).numpy()
        (array([ 2,  6, 24], dtype=int32), array([1, 2, 6], dtype=int32))
    """
    return _accumulated(xp.cumprod, 1, xp, x, axis, exclusive, reverse)


def _accumulated(function, start, xp, x, axis, exclusive, reverse):
    if not x.shape[axis]:
        return x
    if reverse:
        x = xp.flip(x, axis)
    if exclusive:
        first, rest, but_last = _ends(x.ndim, axis)
        result = xp.empty(x.shape, x.dtype)
        result[first] = start
        result[rest] = function(x[but_last], axis=axis, dtype=x.dtype)
    else:
        result = function(x, axis=axis, dtype=x.dtype)
    return xp.flip(result, axis) if reverse else result


def _ends(ndim, axis):
    """Return indices of the first entry of an axis, all the others, and all but the last."""
    index = []
    for part in (slice(0, 1), slice(1, None), slice(None, -1)):
        full = [slice(None)] * ndim
        full[axis] = part
        index.append(tuple(full))
    return index


@cumsum.vjp("x")
def _(g, axis, exclusive, reverse):
    return cumsum(g, axis, exclusive, not reverse)


@cumprod.vjp("x")
def _(g, x, axis, exclusive, reverse):
    # The derivative by x[k] is the product of all before k, times s[k]: what comes of
    # the cotangents behind k, with s[k] = g[k] + x[k + 1] * s[k + 1].
    back = 1 if reverse else -1
    before = cumprod(x, axis, True, reverse)
    g = shift(g, axis, back) if exclusive else g
    behind = linear_scan(shift(x, axis, back), g, axis, not reverse)
    return zero_safe_multiply(before, behind)


@cumprod.diagonal
def _(axes, x, *, axis, exclusive, reverse):
    return None if exclusive else beside_axis(axes[0], x.shape.rank, axis)


# ---------------------------------------------------------------------- logarithms


@along_axis(kinds="f", ignores_float_errors=True, cost=per_input(3, 2))
def _cumulative_logsumexp(xp, x: TensorLike, axis: Axis = 0, reverse: bool = False):
    result = xp.flip(x, axis).copy() if reverse else x.copy()
    moved, done = xp.moveaxis(result, axis, 0), 1
    while done < moved.shape[0]:  # each entry stands for the `done` entries up to it
        moved[done:] = xp.logaddexp(moved[done:], moved[:-done])
        done *= 2
    return xp.flip(result, axis) if reverse else result


@_cumulative_logsumexp.kernel_for("numpy")
def _(xp, x, *, axis, reverse):
    x = np.flip(x, axis) if reverse else x
    result = np.logaddexp.accumulate(x, axis)
    return np.flip(result, axis) if reverse else result


@_cumulative_logsumexp.vjp("x")
def _(g, x, out, axis, reverse):
    # The sum of g[i] * exp(x[k] - out[i]) over the positions i that count k. It is exp(x[k] -
    # out[k]) * s[k] with s[k] = g[k] + exp(out[k] - out[k + 1]) * s[k + 1], where no
    # exponent is positive. -inf counts as 0 where it is subtracted: -inf - -inf is NaN.
    # The last position has none behind it: its exponent must not overflow, for derivatives.
    total = masked(out, not_equal(out, -np.inf))
    back = 1 if reverse else -1
    has_next = greater(shift(ones_like(out), axis, back), 0.0)
    decay = exp(masked(out - shift(total, axis, back), has_next))
    return exp(x - total) * linear_scan(decay, g, axis, not reverse)


def cumulative_logsumexp(
    x: TensorLike,
    axis: Axis = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Cumulative logarithm of the sum of exponentials along an axis, without overflow.

    It is ``log(cumsum(exp(x)))``. Where all entries so far are -inf, or there are none,
    the value is -inf and the derivative 0.

    Args:
        x: Floating tensor.
        axis: Axis to sum along.
        exclusive: If True, leave out the entry itself.
        reverse: If True, sum from the end.

    Example:
        >>> tw.cumulative_logsumexp([0.0, 0.0, 0.0]).numpy()
        array([0.       , 0.6931472, 1.0986123], dtype=float32)
    """
    x, axis = convert_to_tensor(x), int(axis)
    if not exclusive:
        return _cumulative_logsumexp(x, axis, reverse)
    result = _cumulative_logsumexp(x, axis, reverse)
    if not x.shape[axis]:
        return result
    pieces = split(result, [1, -1] if reverse else [-1, 1], axis)
    margin = [(0, 0)] * x.shape.rank
    margin[axis] = (0, 1) if reverse else (1, 0)
    return pad(pieces[1 if reverse else 0], margin, constant_values=-np.inf)


# ----------------------------------------------------------------- for the rules above


@along_axis(sizes=True, linear=True)
def shift(xp, x: TensorLike, axis: Axis, by: int):
    """Move each entry one step along ``axis`` (``by`` 1) or back (-1), with 0 at the end."""
    first, rest, but_last = _ends(x.ndim, axis)
    result = xp.zeros(x.shape, x.dtype)
    if by > 0:
        result[rest] = x[but_last]
    else:
        result[but_last] = x[rest]
    return result


@shift.vjp("x")
def _(g, axis, by):
    return shift(g, axis, -by)


@along_axis(ignores_float_errors=True, linear=[{"b"}], cost=per_input(2))
def linear_scan(xp, a: TensorLike, b: TensorLike, axis: Axis, reverse: bool = False):
    """Compute ``h[k] = b[k] + a[k] * h[k - 1]`` along an axis (with ``reverse``, h[k + 1]).

    The first factor has nothing to multiply and is not used.
    """
    return _scan(xp, _by_doubling, a, b, axis, reverse)


@linear_scan.kernel_for("numpy")
def _(xp, a, b, *, axis, reverse):
    # One step after another, if each has enough to do to be worth a call.
    steps = b.shape[axis]
    method = _step_by_step if b.size > 256 * steps or steps < 8 else _by_doubling
    result = _scan(np, method, a, b, axis, reverse)
    if surely_finite(np, result):
        return result
    return _scan(np, _guarded, a, b, axis, reverse)


def _scan(xp, method, a, b, axis, reverse):
    if a.shape != b.shape:
        raise ValueError("shapes differ")
    a, b = xp.moveaxis(a, axis, 0), xp.moveaxis(b, axis, 0)
    if reverse:
        a, b = xp.flip(a, 0), xp.flip(b, 0)
    result = method(xp, a, b)
    return xp.moveaxis(xp.flip(result, 0) if reverse else result, 0, axis)


def _step_by_step(xp, a, b):
    h = xp.array(b)
    for k in range(1, len(h)):
        h[k] += a[k] * h[k - 1]
    return h


def _guarded(xp, a, b):
    """Compute the same with 0 for 0 times infinity."""
    h = xp.array(b)
    product = zero_safe_multiply.primitive.kernel
    for k in range(1, len(h)):
        h[k] += product(xp, a[k], h[k - 1])
    return h


def _by_doubling(xp, a, b):
    """Scan in log2(n) steps: each entry holds the result of the ``done`` entries up to it."""
    a, h, done = xp.array(a), xp.array(b), 1
    while done < len(h):
        h[done:] += _product(xp, a[done:], h[:-done])
        a[done:] = _product(xp, a[done:], a[:-done])
        done *= 2
    return h


def _product(xp, x, y):
    """Compute ``x * y``; where the result is not checked, with 0 for 0 times infinity."""
    return x * y if xp is np else zero_safe_multiply.primitive.kernel(xp, x, y)


@linear_scan.infer
def _(a, b, axis, reverse):
    dtype = same_dtype("linear_scan", a=a, b=b)
    normalize_axis("linear_scan", axis, b.shape.rank)
    if not a.shape.is_compatible_with(b.shape):
        raise InvalidArgumentError(
            f"linear_scan: a and b must have the same shape, got {a.shape} and {b.shape}"
        )
    return TensorSpec(b.shape, dtype)


@linear_scan.vjp("a")
def _(g, a, out, axis, reverse):
    back = 1 if reverse else -1
    return linear_scan(shift(a, axis, back), g, axis, not reverse) * shift(
        out, axis, -back
    )


@linear_scan.vjp("b")
def _(g, a, axis, reverse):
    return linear_scan(shift(a, axis, 1 if reverse else -1), g, axis, not reverse)


@linear_scan.diagonal
def _(axes, a, b, *, axis, reverse):
    if axes[1] is None or axes[0] not in (None, axes[1]):
        return None
    return beside_axis(axes[1], b.shape.rank, axis)
