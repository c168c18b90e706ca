"""Ops that compare and select: comparisons, logic, bits, tests for NaN, selection.

Inputs broadcast by NumPy's rules. Results are booleans, or integers for bitwise ops,
and no gradient passes through them; `where`, `masked` and `where_positive` pass
gradients to the entries they select.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import DTypeError, InvalidArgumentError, ShapeError
from tapewright.core.op_definition.traits import ElementwiseTraits
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


def predicate(
    **traits: Unpack[ElementwiseTraits],
) -> Callable[[Kernel[P]], Op[P, Tensor]]:
    """Decorator: an `elementwise` op that returns booleans."""
    own = ElementwiseTraits(result_dtype=dtypes.bool, no_gradient=True)
    return elementwise(**own | traits)


@predicate(kinds="biufcO", commutative=True, exact=True)
def equal(xp, x: TensorLike, y: TensorLike):
    """Element-wise comparison ``x == y``.

    Args:
        x: Input tensor.
        y: Input tensor that broadcasts with ``x``.

    Example:
        >>> tw.equal([1, 2, 3], [1, 5, 3]).numpy()
        array([ True, False,  True])
    """
    return xp.equal(x, y)


@predicate(kinds="biufcO", commutative=True, exact=True)
def not_equal(xp, x: TensorLike, y: TensorLike):
    """Element-wise comparison ``x != y``.

    Args:
        x: Input tensor.
        y: Input tensor that broadcasts with ``x``.

    Example:
        >>> tw.not_equal([1, 2, 3], [1, 5, 3]).numpy()
        array([False,  True, False])
    """
    return xp.not_equal(x, y)


@predicate(kinds="iuf", exact=True)
def less(xp, x: TensorLike, y: TensorLike):
    """Element-wise comparison ``x < y``.

    Args:
        x: Input tensor.
        y: Input tensor that broadcasts with ``x``.

    Example:
        >>> tw.less([1, 2, 3], 2).numpy()
        array([ True, False, False])
    """
    return xp.less(x, y)


@predicate(kinds="iuf", exact=True)
def less_equal(xp, x: TensorLike, y: TensorLike):
    """Element-wise comparison ``x <= y``.

    Args:
        x: Input tensor.
        y: Input tensor that broadcasts with ``x``.

    Example:
        >>> tw.less_equal([1, 2, 3], 2).numpy()
        array([ True,  True, False])
    """
    return xp.less_equal(x, y)


@predicate(kinds="iuf", exact=True)
def greater(xp, x: TensorLike, y: TensorLike):
    """Element-wise comparison ``x > y``.

    Args:
        x: Input tensor.
        y: Input tensor that broadcasts with ``x``.

    Example:
        >>> tw.greater([1, 2, 3], 2).numpy()
        array([False, False,  True])
    """
    return xp.greater(x, y)


@predicate(kinds="iuf", exact=True)
def greater_equal(xp, x: TensorLike, y: TensorLike):
    """Element-wise comparison ``x >= y``.

    Args:
        x: Input tensor.
        y: Input tensor that broadcasts with ``x``.

    Example:
        >>> tw.greater_equal([1, 2, 3], 2).numpy()
        array([False,  True,  True])
    """
    return xp.greater_equal(x, y)


@predicate(kinds="b", commutative=True, exact=True)
def logical_and(xp, x: TensorLike, y: TensorLike):
    """Element-wise logical and: ``x and y``.

    Args:
        x: Boolean tensor.
        y: Boolean tensor that broadcasts with ``x``.

    Example:
        >>> tw.logical_and([True, True], [True, False]).numpy()
        array([ True, False])
    """
    return xp.logical_and(x, y)


@predicate(kinds="b", commutative=True, exact=True)
def logical_or(xp, x: TensorLike, y: TensorLike):
    """Element-wise logical or: ``x or y``.

    Args:
        x: Boolean tensor.
        y: Boolean tensor that broadcasts with ``x``.

    Example:
        >>> tw.logical_or([True, False], [False, False]).numpy()
        array([ True, False])
    """
    return xp.logical_or(x, y)


@predicate(kinds="b", commutative=True, exact=True)
def logical_xor(xp, x: TensorLike, y: TensorLike):
    """Element-wise exclusive or: True where exactly one of ``x`` and ``y`` is True.

    Args:
        x: Boolean tensor.
        y: Boolean tensor that broadcasts with ``x``.

    Example:
        >>> tw.math.logical_xor([True, True], [True, False]).numpy()
        array([False,  True])
    """
    return xp.logical_xor(x, y)


@predicate(kinds="b")
def logical_not(xp, x: TensorLike):
    """Element-wise logical not: ``not x``.

    Args:
        x: Boolean tensor.

    Example:
        >>> tw.logical_not([True, False]).numpy()
        array([False,  True])
    """
    return xp.logical_not(x)


@elementwise(commutative=True, exact=True, no_gradient=True)
def bitwise_and(xp, x: TensorLike, y: TensorLike):
    """Element-wise bitwise and: the bits that are set in both integers.

    Args:
        x: Integer or boolean tensor; for booleans, the result is the logical and.
        y: Tensor of the same dtype that broadcasts with ``x``.

    Example:
        >>> tw.bitwise_and([6, 12], 10).numpy()
        array([2, 8], dtype=int32)
    """
    return xp.bitwise_and(x, y)


@elementwise(commutative=True, exact=True, no_gradient=True)
def bitwise_or(xp, x: TensorLike, y: TensorLike):
    """Element-wise bitwise or: the bits that are set in at least one of two integers.

    Args:
        x: Integer or boolean tensor; for booleans, the result is the logical or.
        y: Tensor of the same dtype that broadcasts with ``x``.

    Example:
        >>> tw.bitwise_or([6, 12], 10).numpy()
        array([14, 14], dtype=int32)
    """
    return xp.bitwise_or(x, y)


@elementwise(commutative=True, exact=True, no_gradient=True)
def bitwise_xor(xp, x: TensorLike, y: TensorLike):
    """Element-wise bitwise exclusive or: the bits that are set in exactly one integer.

    Args:
        x: Integer or boolean tensor; for booleans, the result is the exclusive or.
        y: Tensor of the same dtype that broadcasts with ``x``.

    Example:
        >>> tw.bitwise_xor([6, 12], 10).numpy()
        array([12,  6], dtype=int32)
    """
    return xp.bitwise_xor(x, y)


@elementwise(kinds="iu", no_gradient=True)
def invert(xp, x: TensorLike):
    """Element-wise bitwise not: all bits inverted, ``-x - 1`` for signed integers.

    Args:
        x: Integer tensor.

    Example:
        >>> tw.invert([5, -1]).numpy()
        array([-6,  0], dtype=int32)
    """
    return xp.invert(x)


@elementwise(kinds="iu", no_gradient=True)
def left_shift(xp, x: TensorLike, y: TensorLike):
    """Element-wise shift of bits to the left: ``x * 2 ** y``, with wraparound.

    Args:
        x: Integer tensor.
        y: Number of bits, an integer tensor that broadcasts with ``x``; the result is 0
            if it is negative, or not less than the number of bits.

    Example:
        >>> tw.left_shift([1, 3], 2).numpy()
        array([ 4, 12], dtype=int32)
    """
    return xp.left_shift(x, y)


@elementwise(kinds="iu", no_gradient=True)
def right_shift(xp, x: TensorLike, y: TensorLike):
    """Element-wise shift of bits to the right: ``floor(x / 2 ** y)``.

    Args:
        x: Integer tensor.
        y: Number of bits, an integer tensor that broadcasts with ``x``.

    Example:
        >>> tw.right_shift([4, 13], 2).numpy()
        array([1, 3], dtype=int32)
    """
    return xp.right_shift(x, y)


@predicate()
def is_nan(xp, x: TensorLike):
    """Element-wise test for NaN.

    Args:
        x: Input tensor of numbers.

    Example:
        >>> tw.math.is_nan([1.0, float("nan")]).numpy()
        array([False,  True])
    """
    return xp.isnan(x)


@predicate()
def is_inf(xp, x: TensorLike):
    """Element-wise test for infinity.

    Args:
        x: Input tensor of numbers.

    Example:
        >>> tw.math.is_inf([1.0, float("-inf")]).numpy()
        array([False,  True])
    """
    return xp.isinf(x)


@predicate()
def is_finite(xp, x: TensorLike):
    """Element-wise test for finite numbers: neither infinite nor NaN.

    Args:
        x: Input tensor of numbers.

    Example:
        >>> tw.math.is_finite([1.0, float("inf")]).numpy()
        array([ True, False])
    """
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
    """Return ``x`` where the boolean ``mask`` is True, else 0."""
    return _kept(xp, x, mask)


_WHOLE = {2: np.int16, 4: np.int32, 8: np.int64}  # of so many bytes


def _kept(xp, x, mask):
    """Return ``x`` where the mask is true, else 0, not -0.0."""
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
    """Return ``x`` where ``y`` is positive, else 0."""
    return _kept(xp, x, y > 0)


@where_positive.vjp("x")
def _(g, y):
    return where_positive(g, y)


def surely_finite(xp, values):
    """Return whether all entries are finite; False on a GPU, which would synchronize."""
    if xp is not np:
        return False
    flat = values if values.flags.c_contiguous else values.ravel("K")  # no copy
    total = np.vdot(flat, flat)  # the cheapest pass over all entries
    return total * 0 == 0


def cleared(xp, values, at):
    """Set ``values`` to 0 where ``at``, in place; there must be no other reference to it."""
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
    """Select from ``x`` where ``condition`` is True, else from ``y``.

    Without ``x`` and ``y``, return the coordinates of the true entries.

    Args:
        condition: Boolean tensor.
        x: Values where ``condition`` is True.
        y: Values where it is False.

    Shapes:
        All three broadcast. Without ``x`` and ``y`` the result is ``[count, rank]``,
        int64.

    Raises:
        ValueError: If only one of ``x`` and ``y`` is given.

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
