"""Products and quotients that are 0 where their first factor is: xlogy, xlog1py, xdivy."""

from __future__ import annotations

from tapewright.core.errors import DTypeError
from tapewright.core.rules import elementwise
from tapewright.core.typing import TensorLike

from .comparison import (
    cleared,
    greater,
    logical_or,
    masked,
    not_equal,
    surely_finite,
)
from .elementwise import FIRST, log, log1p, zero_safe_divide, zero_safe_multiply

__all__ = ["xdivy", "xlog1py", "xlogy"]


def _zero_for_zero(who, xp, compute, x, y):
    """Compute ``compute(x, y)``, and 0 where ``x`` is 0."""
    if x.dtype.kind not in "fc":
        raise DTypeError(who, "x and y must be floating or complex", x=x, y=y)
    value = compute(x, y)
    return value if surely_finite(xp, value) else cleared(xp, value, x == 0)


def _where_known(g, x, y, edge, dtype):
    """Return ``g``, and 0 where ``x`` is 0 and ``y`` not within the domain, above ``edge``."""
    within = not_equal(y, edge) if dtype.kind == "c" else greater(y, edge)
    return masked(g, logical_or(not_equal(x, 0.0), within))


@elementwise(
    zero_when=FIRST,
    ignores_float_errors=True,
    linear=[{"x"}],
    cost=(1, 1),
    stable_form="a positive y: xlogy(x, maximum(y, epsilon))",
)
def xlogy(xp, x: TensorLike, y: TensorLike):
    """Element-wise ``x * log(y)``, and 0 where ``x`` is 0, for any ``y``.

    Args:
        x: Floating or complex tensor.
        y: Tensor of the same dtype that broadcasts with ``x``.

    Example:
        >>> tw.xlogy([0.0, 2.0], [0.0, 1.0]).numpy()
        array([0., 0.], dtype=float32)
    """
    return _zero_for_zero("xlogy", xp, lambda x, y: x * xp.log(y), x, y)


@xlogy.vjp("x")
def _(g, x, y, x_dtype):
    return zero_safe_multiply(_where_known(g, x, y, 0.0, x_dtype), log(y))


@xlogy.vjp("y")
def _(g, x, y):
    return zero_safe_multiply(g, xdivy(x, y))


@elementwise(
    type_name="Xlog1py",
    zero_when=[{"y"}, {"x", "y"}],
    ignores_float_errors=True,
    linear=[{"x"}],
    cost=(1, 1),
    stable_form="y above -1: xlog1py(x, maximum(y, epsilon - 1.0))",
)
def xlog1py(xp, x: TensorLike, y: TensorLike):
    """Element-wise ``x * log(1 + y)``, and 0 where ``x`` is 0, for any ``y``.

    Args:
        x: Floating or complex tensor.
        y: Tensor of the same dtype that broadcasts with ``x``.

    Example:
        >>> tw.math.xlog1py([0.0, 2.0], [-1.0, 0.0]).numpy()
        array([0., 0.], dtype=float32)
    """
    return _zero_for_zero("xlog1py", xp, lambda x, y: x * xp.log1p(y), x, y)


@xlog1py.vjp("x")
def _(g, x, y, x_dtype):
    return zero_safe_multiply(_where_known(g, x, y, -1.0, x_dtype), log1p(y))


@xlog1py.vjp("y")
def _(g, x, y):
    return zero_safe_multiply(g, xdivy(x, y + 1.0))


@elementwise(
    zero_when=FIRST,
    ignores_float_errors=True,
    linear=[{"x"}],
    stable_form="math.divide_no_nan(x, y), which is 0 where y is 0",
)
def xdivy(xp, x: TensorLike, y: TensorLike):
    """Element-wise ``x / y``, and 0 where ``x`` is 0, for any ``y``.

    Args:
        x: Floating or complex tensor.
        y: Tensor of the same dtype that broadcasts with ``x``.

    Example:
        >>> tw.math.xdivy([0.0, 2.0], [0.0, 4.0]).numpy()
        array([0. , 0.5], dtype=float32)
    """
    return _zero_for_zero("xdivy", xp, xp.divide, x, y)


@xdivy.vjp("x")
def _(g, x, y):
    return zero_safe_divide(
        masked(g, logical_or(not_equal(x, 0.0), not_equal(y, 0.0))), y
    )


@xdivy.vjp("y")
def _(g, y, out):
    return -zero_safe_divide(zero_safe_multiply(g, out), y)
