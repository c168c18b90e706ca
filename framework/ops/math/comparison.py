"""Ops that ask and choose: comparisons, logic, bits, tests for NaN, selection.

Inputs broadcast by NumPy's rules. Answers are booleans, or integers where bits are
asked for, and no gradient passes through them; `where`, `masked` and `where_positive` pass
gradients to what they select.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import DTypeError, InvalidArgumentError, ShapeError
from tapewright.core.primitive import primitive
from tapewright.core.rules import elementwise
from tapewright.core.tensor import Tensor, TensorSpec
from tapewright.core.typing import Kernel, Op, P, TensorLike

__all__ = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "equal",
    "greater",
    "greater_equal",
    "invert",
    "is_finite",
    "is_inf",
    "is_nan",
    "left_shift",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
    "right_shift",
    "where",
]


# ------------------------------------------------------ comparisons, logic, bits


def predicate(**options: Any) -> Callable[[Kernel[P]], Op[P, Tensor]]:
    """Decorator: an `elementwise` op that answers with booleans."""
    return elementwise(result_dtype=dtypes.bool, no_gradient=True, **options)


@predicate(kinds="biufcO", commutative=True, exact=True)
def equal(xp, x: TensorLike, y: TensorLike):
    """``x == y``, entry by entry."""
    return xp.equal(x, y)


@predicate(kinds="biufcO", commutative=True, exact=True)
def not_equal(xp, x: TensorLike, y: TensorLike):
    """``x != y``, entry by entry."""
    return xp.not_equal(x, y)


@predicate(kinds="iuf", exact=True)
def less(xp, x: TensorLike, y: TensorLike):
    """``x < y``, entry by entry."""
    return xp.less(x, y)


@predicate(kinds="iuf", exact=True)
def less_equal(xp, x: TensorLike, y: TensorLike):
    """``x <= y``, entry by entry."""
    return xp.less_equal(x, y)


@predicate(kinds="iuf", exact=True)
def greater(xp, x: TensorLike, y: TensorLike):
    """``x > y``, entry by entry."""
    return xp.greater(x, y)


@predicate(kinds="iuf", exact=True)
def greater_equal(xp, x: TensorLike, y: TensorLike):
    """``x >= y``, entry by entry."""
    return xp.greater_equal(x, y)


@predicate(kinds="b", commutative=True, exact=True)
def logical_and(xp, x: TensorLike, y: TensorLike):
    """``x and y``, entry by entry."""
    return xp.logical_and(x, y)


@predicate(kinds="b", commutative=True, exact=True)
def logical_or(xp, x: TensorLike, y: TensorLike):
    """``x or y``, entry by entry."""
    return xp.logical_or(x, y)


@predicate(kinds="b", commutative=True, exact=True)
def logical_xor(xp, x: TensorLike, y: TensorLike):
    """True where exactly one of ``x`` and ``y`` is true."""
    return xp.logical_xor(x, y)


@predicate(kinds="b")
def logical_not(xp, x: TensorLike):
    """``not x``, entry by entry."""
    return xp.logical_not(x)


@elementwise(commutative=True, exact=True, no_gradient=True)
def bitwise_and(xp, x: TensorLike, y: TensorLike):
    """The bits that are set in both integers; for booleans, logical and.

    Example:
        >>> tw.bitwise_and([6, 12], 10).numpy()
        array([2, 8], dtype=int32)
    """
    return xp.bitwise_and(x, y)


@elementwise(commutative=True, exact=True, no_gradient=True)
def bitwise_or(xp, x: TensorLike, y: TensorLike):
    """The bits that are set in one of both integers, or in both; for booleans, logical or.

    Example:
        >>> tw.bitwise_or([6, 12], 10).numpy()
        array([14, 14], dtype=int32)
    """
    return xp.bitwise_or(x, y)


@elementwise(commutative=True, exact=True, no_gradient=True)
def bitwise_xor(xp, x: TensorLike, y: TensorLike):
    """The bits that are set in exactly one of both integers; for booleans, exclusive or.

    Example:
        >>> tw.bitwise_xor([6, 12], 10).numpy()
        array([12,  6], dtype=int32)
    """
    return xp.bitwise_xor(x, y)


@elementwise(kinds="iu", no_gradient=True)
def invert(xp, x: TensorLike):
    """The integer with all bits inverted: ``-x - 1`` where it has a sign.

    Example:
        >>> tw.invert([5, -1]).numpy()
        array([-6,  0], dtype=int32)
    """
    return xp.invert(x)


@elementwise(kinds="iu", no_gradient=True)
def left_shift(xp, x: TensorLike, y: TensorLike):
    """The bits of ``x`` moved up by ``y`` places: ``x * 2 ** y``, wrapped.

    A ``y`` that is negative, or not below the number of bits, gives 0.

    Example:
        >>> tw.left_shift([1, 3], 2).numpy()
        array([ 4, 12], dtype=int32)
    """
    return xp.left_shift(x, y)


@elementwise(kinds="iu", no_gradient=True)
def right_shift(xp, x: TensorLike, y: TensorLike):
    """The bits of ``x`` moved down by ``y`` places: ``floor(x / 2 ** y)``.

    Example:
        >>> tw.right_shift([4, 13], 2).numpy()
        array([1, 3], dtype=int32)
    """
    return xp.right_shift(x, y)


@predicate()
def is_nan(xp, x: TensorLike):
    """True where ``x`` is not a number."""
    return xp.isnan(x)


@predicate()
def is_inf(xp, x: TensorLike):
    """True where ``x`` is infinite."""
    return xp.isinf(x)


@predicate()
def is_finite(xp, x: TensorLike):
    """True where ``x`` is neither infinite nor NaN."""
    return xp.isfinite(x)


# ----------------------------------------------------------------------- selection


@elementwise(
    zero_when=[{"x", "mask"}],
    kinds="biufc",
    same_dtype=("x",),
    linear=[{"x"}],
    moves=True,
    no_gradient=("mask",),
)
def masked(xp, x: TensorLike, mask: TensorLike):
    """``x`` where the boolean ``mask`` is true, else 0."""
    return _kept(xp, x, mask)


_WHOLE = {2: np.int16, 4: np.int32, 8: np.int64}  # of so many bytes


def _kept(xp, x, mask):
    """``x`` where the mask is true, else 0, not -0.0."""
    if xp is np and x.itemsize in _WHOLE:  # `where` takes many times as long
        bits = x.view(_WHOLE[x.itemsize])
        return np.multiply(bits, mask).view(x.dtype)
    return xp.where(mask, x, xp.zeros((), x.dtype))


@masked.vjp("x")
def _(g, mask):
    return masked(g, mask)


@elementwise(
    zero_when=[{"x", "y"}], same_dtype=("x",), linear=[{"x"}], no_gradient=("y",)
)
def where_positive(xp, x: TensorLike, y: TensorLike):
    """``x`` where ``y`` is positive, else 0."""
    return _kept(xp, x, y > 0)


@where_positive.vjp("x")
def _(g, y):
    return where_positive(g, y)


def surely_finite(xp, values):
    """Return whether no entry is infinite or NaN; False on a GPU, which would have to wait."""
    if xp is not np:
        return False
    flat = values if values.flags.c_contiguous else values.ravel("K")  # no copy
    total = np.vdot(flat, flat)  # the cheapest pass over all entries
    return total * 0 == 0


def cleared(xp, values, at):
    """``values``, an array that nobody else holds, set to 0 where ``at``."""
    if xp is np and values.ndim:  # in place: `where` takes five times as long
        np.copyto(values, 0, where=at)
        return values
    return xp.where(at, xp.zeros_like(values), values)


@elementwise(
    name="where",
    type_name="SelectV2",
    same_dtype=("x", "y"),
    linear=[{"x", "y"}],
    moves=True,
    no_gradient=("condition",),
)
def where_p(xp, condition: TensorLike, x: TensorLike, y: TensorLike):
    if condition.dtype.kind != "b":  # NumPy would ask for every number if it is not 0
        raise DTypeError("where", "condition must be boolean", condition=condition)
    return xp.where(condition, x, y)


@where_p.vjp("x")
def _(g, condition):
    return masked(g, condition)


@where_p.vjp("y")
def _(g, condition):
    return masked(g, logical_not(condition))


def where(
    condition: TensorLike,
    x: TensorLike | None = None,
    y: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """``x`` where ``condition`` is true, else ``y``.

    Shapes: all three broadcast. Without ``x`` and ``y`` the result is ``[count,
    rank]``, int64: the coordinates of the true entries.

    Raises: ``ValueError`` if only one of ``x`` and ``y`` is given.

    Example:
        >>> tw.where([True, False], [1.0, 2.0], 0.0).numpy()
        array([1., 0.], dtype=float32)
        >>> tw.where([[True, False], [False, True]]).numpy()
        array([[0, 0],
               [1, 1]])
    """
    if (x is None) != (y is None):
        raise InvalidArgumentError("where: x and y must both be given, or neither")
    if x is None:
        return _nonzero(condition)
    if isinstance(condition, np.ndarray | np.generic):
        condition = condition.astype(np.bool_)
    return where_p(condition, x, y)


@primitive(type_name="Where", no_gradient=True)
def _nonzero(xp, condition: TensorLike):
    if not condition.ndim:
        raise ShapeError("where", "condition must have an axis", condition=condition)
    return xp.stack(xp.nonzero(condition), axis=-1).astype(xp.int64)


@_nonzero.infer
def _(condition):
    return TensorSpec([None, condition.shape.rank], dtypes.int64)
