"""Ops of arithmetic and analysis, entry by entry: sums to powers, logarithms, extremes.

In this order: arithmetic; sums of several, polynomials; powers, exponentials and
logarithms; extremes, clipping and rounding. Inputs broadcast by NumPy's rules and share
a dtype. Where a function has a corner, the rule returns a subgradient; a zero cotangent
results in a zero gradient where the derivative is infinite (`sqrt`, `log`, `power`,
`divide`, ... at zero).
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Unpack

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.hardware.devices import is_array
from tapewright.core.op_definition.costs import size_of
from tapewright.core.op_definition.traits import ElementwiseTraits
from tapewright.core.primitive import primitive
from tapewright.core.rules import elementwise
from tapewright.core.tensor import (
    IndexedSlices,
    Tensor,
    TensorSpec,
    convert_to_tensor,
)
from tapewright.core.typing import (
    DTypeLike,
    Kernel,
    Op,
    P,
    StaticShapeLike,
    TensorLike,
)

from ..array.conversion import cast, conj, real, real_dtype
from .comparison import (
    cleared,
    greater,
    greater_equal,
    is_finite,
    less,
    less_equal,
    logical_and,
    logical_or,
    masked,
    surely_finite,
)

__all__ = [
    "abs",
    "accumulate_n",
    "add",
    "add_n",
    "ceil",
    "clip_by_value",
    "divide",
    "divide_no_nan",
    "exp",
    "expm1",
    "floor",
    "floordiv",
    "floormod",
    "log",
    "log1p",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "multiply_no_nan",
    "negative",
    "nextafter",
    "polyval",
    "pow",
    "reciprocal",
    "reciprocal_no_nan",
    "rint",
    "round",
    "rsqrt",
    "scalar_mul",
    "sign",
    "sqrt",
    "square",
    "squared_difference",
    "subtract",
    "truediv",
    "truncatediv",
    "truncatemod",
]

# For the diagonal rule: which inputs, being zero, make the output zero.
UNARY = [{"x"}]
BOTH = [{"x", "y"}]
FIRST = [{"x"}, {"x", "y"}]


# ---------------------------------------------------------------------- arithmetic


def arithmetic(
    **traits: Unpack[ElementwiseTraits],
) -> Callable[[Kernel[P]], Op[P, Tensor]]:
    """Decorator: an exact `elementwise` op of numbers, including sizes."""
    own = ElementwiseTraits(kinds="iufc", sizes=True, exact=True)
    return elementwise(**own | traits)


@arithmetic(type_name="AddV2", kinds="iufcO", linear=True, commutative=True)
def add(xp, x: TensorLike, y: TensorLike):
    """Element-wise sum: ``x + y``.

    Args:
        x: Input tensor.
        y: Input tensor that broadcasts with ``x``.

    Example:
        >>> tw.add([1, 2], 3).numpy()
        array([4, 5], dtype=int32)
    """
    return xp.add(x, y)


@add.vjp("x", "y")
def _(g):
    return g


@arithmetic(type_name="Sub", linear=True)
def subtract(xp, x: TensorLike, y: TensorLike):
    """Element-wise difference: ``x - y``.

    Args:
        x: Input tensor.
        y: Input tensor that broadcasts with ``x``.

    Example:
        >>> tw.subtract([1, 2], 3).numpy()
        array([-2, -1], dtype=int32)
    """
    return xp.subtract(x, y)


@subtract.vjp("x")
def _(g):
    return g


@subtract.vjp("y")
def _(g):
    return -g


@arithmetic(type_name="Mul", linear="each", commutative=True)
def multiply(xp, x: TensorLike, y: TensorLike):
    """Element-wise product: ``x * y``.

    Args:
        x: Input tensor.
        y: Input tensor that broadcasts with ``x``.

    Example:
        >>> tw.multiply([1, 2], 3).numpy()
        array([3, 6], dtype=int32)
    """
    return xp.multiply(x, y)


@multiply.vjp("x")
def _(g, y):
    return g * y


@multiply.vjp("y")
def _(g, x):
    return g * x


def _quotient(dtype):
    if dtype.is_differentiable:
        return dtype
    return dtypes.float32 if dtype.size < 4 else dtypes.float64


def _divided(xp, x, y):
    if x.dtype.kind in "fc":
        return xp.divide(x, y)
    return xp.divide(x, y, dtype=_quotient(dtypes.as_dtype(x.dtype)).dtype)


@elementwise(
    type_name="RealDiv",
    result_dtype=_quotient,
    ignores_float_errors=True,
    kinds="iufc",
    linear=[{"x"}],
    exact=True,
    stable_form="math.divide_no_nan(x, y), which is 0 where y is 0",
)
def divide(xp, x: TensorLike, y: TensorLike):
    """Element-wise quotient: ``x / y``.

    The quotient of integers is float64, of 8 and 16 bit integers float32.

    Args:
        x: Numerator.
        y: Denominator that broadcasts with ``x``.

    Example:
        >>> tw.divide([1.0, 2.0], 4.0).numpy()
        array([0.25, 0.5 ], dtype=float32)
    """
    return _divided(xp, x, y)


@divide.vjp("x")
def _(g, y):
    return zero_safe_divide(g, y)


@divide.vjp("y")
def _(g, y, out):
    return -zero_safe_divide(zero_safe_multiply(g, out), y)


truediv = divide


@elementwise(
    type_name="DivNoNan",
    zero_when=[{"y"}, {"x", "y"}],
    result_dtype=_quotient,
    ignores_float_errors=True,
    linear=[{"x"}],
)
def divide_no_nan(xp, x: TensorLike, y: TensorLike):
    """Element-wise quotient ``x / y``, and 0 where ``y`` is 0.

    Args:
        x: Numerator.
        y: Denominator that broadcasts with ``x``.

    Example:
        >>> tw.divide_no_nan([1.0, 2.0], [0.0, 4.0]).numpy()
        array([0. , 0.5], dtype=float32)
    """
    if xp is np and not y.ndim and y != 0:  # a mean, say
        return _divided(xp, x, y)
    quotient = _divided(xp, x, y)
    if surely_finite(xp, quotient):
        return quotient
    return cleared(xp, quotient, y == 0)


@divide_no_nan.vjp("x")
def _(g, y):
    return divide_no_nan(g, y)


@divide_no_nan.vjp("y")
def _(g, y, out):
    return -divide_no_nan(zero_safe_multiply(g, out), y)


@elementwise(type_name="MulNoNan", ignores_float_errors=True, linear="each")
def multiply_no_nan(xp, x: TensorLike, y: TensorLike):
    """Element-wise product ``x * y``, and 0 where ``y`` is 0.

    The result is 0 there even if ``x`` is infinite or NaN.

    Args:
        x: Input tensor.
        y: Input tensor that broadcasts with ``x``.

    Example:
        >>> tw.math.multiply_no_nan([float("inf"), 3.0], [0.0, 2.0]).numpy()
        array([0., 6.], dtype=float32)
    """
    product = x * y
    if surely_finite(xp, product):
        return product
    return cleared(xp, product, y == 0)


@multiply_no_nan.vjp("x")
def _(g, y):
    return multiply_no_nan(g, y)


@multiply_no_nan.vjp("y")
def _(g, x):
    return multiply_no_nan(x, g)


@elementwise(
    zero_when=FIRST,
    ignores_float_errors=True,
    linear=[{"x"}],
    stable_form="a bound that keeps the forward pass away from the pole",
)
def zero_safe_divide(xp, x: TensorLike, y: TensorLike):
    """Compute ``x / y``, and 0 where ``x`` is 0 even if ``y`` is 0: for cotangents."""
    quotient = x / y
    if surely_finite(xp, quotient):
        return quotient
    return cleared(xp, quotient, x == 0)


@zero_safe_divide.vjp("x")
def _(g, y):
    return zero_safe_divide(g, y)


@zero_safe_divide.vjp("y")
def _(g, y, out):
    return -zero_safe_divide(zero_safe_multiply(g, out), y)


@elementwise(
    ignores_float_errors=True,
    linear="each",
    commutative=True,
    stable_form="a bound that keeps the forward pass away from the pole",
)
def zero_safe_multiply(xp, x: TensorLike, y: TensorLike):
    """Compute ``x * y``, and 0 where one of them is 0 even if the other is not finite."""
    product = x * y
    if surely_finite(xp, product):
        return product
    return cleared(xp, product, (x == 0) | (y == 0))


@zero_safe_multiply.vjp("x")
def _(g, y):
    return zero_safe_multiply(g, y)


@zero_safe_multiply.vjp("y")
def _(g, x):
    return zero_safe_multiply(g, x)


def division(
    op: str, **traits: Unpack[ElementwiseTraits]
) -> Callable[[Kernel[P]], Op[P, Tensor]]:
    """Decorator: an `elementwise` op that divides integers too, but not by 0."""
    advice = f"a divisor that is not 0: {op}(x, where(y == 0.0, 1.0, y))"
    own = ElementwiseTraits(
        ignores_float_errors=True, kinds="iuf", may_raise="iu", sizes=True,
        stable_form=advice,
    )  # fmt: skip
    return elementwise(**own | traits)


def _check_divisor(xp, who, y):
    if y.dtype.kind in "iu" and not xp.all(y):
        raise InvalidArgumentError(
            f"{who}: an integer cannot be divided by 0; y holds a 0"
        )


@division("floordiv", type_name="FloorDiv", no_gradient=True)
def floordiv(xp, x: TensorLike, y: TensorLike):
    """Element-wise floor division: ``floor(x / y)``; its gradient is None.

    Args:
        x: Numerator.
        y: Denominator that broadcasts with ``x``.

    Raises:
        ValueError: If integers are divided by 0.

    Example:
        >>> tw.floordiv([7, -7], 2).numpy()
        array([ 3, -4], dtype=int32)
    """
    if x.dtype.kind == "f":
        return xp.floor(xp.divide(x, y))
    _check_divisor(xp, "floordiv", y)
    return xp.floor_divide(x, y)


@division("floormod", type_name="FloorMod")
def floormod(xp, x: TensorLike, y: TensorLike):
    """Element-wise remainder with the sign of ``y``: ``x - floor(x / y) * y``.

    Args:
        x: Numerator.
        y: Denominator that broadcasts with ``x``.

    Raises:
        ValueError: If integers are divided by 0.

    Example:
        >>> tw.mod([7, -7], 2).numpy()
        array([1, 1], dtype=int32)
    """
    _check_divisor(xp, "floormod", y)
    return xp.remainder(x, y)


@floormod.vjp("x")
def _(g):
    return g


@floormod.vjp("y")
def _(g, x, y, out):
    return -(g * _whole_quotient(x, y, out))


def _whole_quotient(x, y, remainder):
    """Count how often ``y`` fits; ``x / y`` may be rounded up to the next integer."""
    return masked(round((x - remainder) / y), is_finite(y))


mod = floormod


@division("truncatediv", type_name="TruncateDiv", no_gradient=True)
def truncatediv(xp, x: TensorLike, y: TensorLike):
    """Element-wise quotient rounded towards zero, as in C; its gradient is None.

    Args:
        x: Numerator.
        y: Denominator that broadcasts with ``x``.

    Raises:
        ValueError: If integers are divided by 0.

    Example:
        >>> tw.truncatediv([7, -7], 2).numpy()
        array([ 3, -3], dtype=int32)
    """
    if x.dtype.kind in "iu":
        _check_divisor(xp, "truncatediv", y)
        return xp.floor_divide(x - xp.fmod(x, y), y)
    return xp.trunc(xp.divide(x, y))


@truncatediv.kernel_for("formulas")
def _(xp, x, y):
    return xp.frompyfunc(lambda x, y: (x - _remainder(x, y)) // y, 2, 1)(x, y)


def _remainder(x, y):
    rest = builtins.abs(x) % builtins.abs(y)
    return -rest if x < 0 else rest


@division("truncatemod", type_name="TruncateMod")
def truncatemod(xp, x: TensorLike, y: TensorLike):
    """Element-wise remainder with the sign of ``x``, as in C.

    It is ``x - truncatediv(x, y) * y``.

    Args:
        x: Numerator.
        y: Denominator that broadcasts with ``x``.

    Raises:
        ValueError: If integers are divided by 0.

    Example:
        >>> tw.truncatemod([7, -7], 2).numpy()
        array([ 1, -1], dtype=int32)
    """
    _check_divisor(xp, "truncatemod", y)
    return xp.fmod(x, y)


@truncatemod.kernel_for("formulas")
def _(xp, x, y):
    return xp.frompyfunc(_remainder, 2, 1)(x, y)


@truncatemod.vjp("x")
def _(g):
    return g


@truncatemod.vjp("y")
def _(g, x, y, out):
    return -(g * _whole_quotient(x, y, out))


@elementwise(type_name="Neg", kinds="iufc", sizes=True, linear=True)
def negative(xp, x: TensorLike):
    """Element-wise negative: ``-x``.

    Args:
        x: Input tensor.

    Example:
        >>> tw.negative([1, -2]).numpy()
        array([-1,  2], dtype=int32)
    """
    return xp.negative(x)


@negative.vjp("x")
def _(g):
    return -g


@elementwise(zero_when=UNARY, result_dtype=real_dtype, sizes=True)
def abs(xp, x: TensorLike):  # noqa: A001
    """Element-wise absolute value ``|x|``, or the modulus of a complex number.

    The derivative at 0 is 0.

    Args:
        x: Input tensor of numbers.

    Example:
        >>> tw.abs([-2.0, 3.0]).numpy()
        array([2., 3.], dtype=float32)
    """
    return xp.abs(x)


@abs.vjp("x")
def _(g, x, out, x_dtype):
    if x_dtype.kind == "c":
        return conj(x) * cast(divide_no_nan(g, out), x_dtype)
    return g * sign(x)


@elementwise(zero_when=UNARY, sizes=True, kinds="iufc")
def sign(xp, x: TensorLike):
    """Element-wise sign: -1, 0 or 1; for complex numbers ``x / |x|``, and 0 at 0.

    Args:
        x: Input tensor of numbers.

    Example:
        >>> tw.sign([-2.0, 0.0, 3.0]).numpy()
        array([-1.,  0.,  1.], dtype=float32)
    """
    return xp.sign(x)


@sign.vjp("x")
def _(g, x, x_dtype):
    if x_dtype.kind == "c":  # x / |x|, with |x| as a function of x and its conjugate
        unit = sign(x)
        radial = cast(real(g * unit), x_dtype)
        length = cast(abs(x), x_dtype)
        return divide_no_nan(g - radial * conj(unit), length)
    return zero_safe_multiply(g, 0.0)


@elementwise(
    zero_when=UNARY,
    kinds="iufc",
    sizes=True,
    stable_form="reduce_logsumexp, or norm, which scale before they square",
)
def square(xp, x: TensorLike):
    """Element-wise square: ``x * x``.

    Args:
        x: Input tensor.

    Example:
        >>> tw.square([2, 3]).numpy()
        array([4, 9], dtype=int32)
    """
    return xp.square(x)


@square.vjp("x")
def _(g, x):
    if type(g) is np.ndarray and not any(g.strides) and g.shape == x.shape and g.size:
        g = g[(0,) * g.ndim]  # of a mean or sum: one number throughout
    return (g + g) * x


multiply.primitive.on_itself = square


@elementwise(zero_when=BOTH, kinds="iufc", sizes=True, cost=(2, 0), commutative=True)
def squared_difference(xp, x: TensorLike, y: TensorLike):
    """Element-wise squared difference ``|x - y| ** 2``, in the dtype of the inputs.

    Args:
        x: Input tensor.
        y: Input tensor that broadcasts with ``x``.

    Example:
        >>> tw.math.squared_difference([1.0, 5.0], 3.0).numpy()
        array([4., 4.], dtype=float32)
    """
    return xp.square(xp.abs(x - y)).astype(x.dtype)


@squared_difference.kernel_for("formulas")
def _(xp, x, y):
    return (x - y) * (x - y)


@squared_difference.vjp("x")
def _(g, x, y, x_dtype):
    return _twice_difference(g, x, y, x_dtype)


@squared_difference.vjp("y")
def _(g, x, y, x_dtype):
    return -_twice_difference(g, x, y, x_dtype)


def _twice_difference(g, x, y, dtype):
    d = x - y
    if dtype.kind == "c":
        d, g = conj(d), cast(real(g), dtype)
    return (g + g) * d


@elementwise(
    ignores_float_errors=True,
    floating=True,
    stable_form="math.divide_no_nan(1.0, x), which is 0 where x is 0",
)
def reciprocal(xp, x: TensorLike):
    """Element-wise reciprocal: ``1 / x``.

    Args:
        x: Floating or complex tensor.

    Example:
        >>> tw.math.reciprocal([2.0, 4.0]).numpy()
        array([0.5 , 0.25], dtype=float32)
    """
    return xp.reciprocal(x)


@reciprocal.vjp("x")
def _(g, out):
    return -zero_safe_multiply(zero_safe_multiply(g, out), out)


def reciprocal_no_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """Element-wise reciprocal ``1 / x``, and 0 where ``x`` is 0.

    Args:
        x: Tensor of real numbers.

    Example:
        >>> tw.reciprocal_no_nan([2.0, 0.0]).numpy()
        array([0.5, 0. ], dtype=float32)
    """
    return divide_no_nan(1.0, x)


def scalar_mul(scalar: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Multiply a tensor by a scalar; `IndexedSlices` stay sparse.

    Args:
        scalar: Scalar factor.
        x: Tensor or `IndexedSlices`.

    Raises:
        ValueError: If ``scalar`` is not a scalar.

    Example:
        >>> tw.scalar_mul(2.0, [1.0, 3.0]).numpy()
        array([2., 6.], dtype=float32)
    """
    rank = getattr(scalar, "ndim", len(getattr(scalar, "shape", ())))
    if rank or isinstance(scalar, (list, tuple)):
        raise InvalidArgumentError(
            f"scalar_mul: scalar must be one number, got {scalar!r}"
        )
    if isinstance(x, IndexedSlices):
        return x.with_values(multiply(scalar, x.values))
    return multiply(scalar, convert_to_tensor(x))


# ------------------------------------------------------- sums of several, polynomials


def _sum_cost(inputs, outputs):
    return (len(inputs) - 1) * size_of(outputs[0])


@primitive(sizes=True, linear=True, cost=_sum_cost)
def _add_n(xp, *inputs: TensorLike):
    if any([x.shape != inputs[0].shape for x in inputs]):
        raise InvalidArgumentError("add_n: the inputs must have the same shape")
    if len(inputs) == 1:
        return inputs[0]
    total = inputs[0] + inputs[1]
    for x in inputs[2:]:
        total += x
    return total


@_add_n.kernel_for("formulas")
def _(xp, *inputs):
    return xp.stack(inputs).sum(axis=0)


@_add_n.infer
def _(*inputs):
    shape = inputs[0].shape
    for x in inputs[1:]:
        if not shape.is_compatible_with(x.shape):
            raise ShapeError(
                "add_n", "inputs must have the same shape", first=inputs[0], other=x
            )
        shape = shape.merge_with(x.shape)
    return TensorSpec(shape, inputs[0].dtype)


@_add_n.vjp("inputs")
def _(g, inputs_shape):
    return [g] * len(inputs_shape)


@_add_n.batch
def _(mapped, *inputs):
    total = inputs[0]
    for x in inputs[1:]:
        total = add(total, x)
    return total


@_add_n.diagonal
def _(axes, *inputs):
    return axes[0] if len(set(axes)) == 1 else None


def add_n(inputs: Sequence[TensorLike], name: str | None = None) -> Tensor:
    """Sum a list of tensors element-wise.

    Args:
        inputs: List of tensors with the same shape and dtype.

    Raises:
        ValueError: If the list is empty.

    Example:
        >>> tw.add_n([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).numpy()
        array([ 9., 12.], dtype=float32)
    """
    inputs = list(inputs)
    if not inputs:
        raise InvalidArgumentError(
            "add_n: inputs must hold at least one tensor, got none"
        )
    return _add_n(inputs)


def accumulate_n(
    inputs: Sequence[TensorLike],
    shape: StaticShapeLike = None,
    tensor_dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Sum a list of tensors element-wise, after a check of their shape and dtype.

    Args:
        inputs: List of tensors with the same shape and dtype.
        shape: Expected shape, or None.
        tensor_dtype: Expected dtype, or None.

    Raises:
        ValueError: If the shape is not ``shape``.
        TypeError: If the dtype is not ``tensor_dtype``.

    Example:
        >>> tw.accumulate_n([[1.0, 2.0], [3.0, 4.0]], shape=[2]).numpy()
        array([4., 6.], dtype=float32)
    """
    total = add_n(inputs)
    if shape is not None and not total.shape.is_compatible_with(shape):
        raise InvalidArgumentError(
            f"accumulate_n: the inputs must have shape {tuple(shape)}, got "
            f"{tuple(total.shape)}"
        )
    if tensor_dtype is not None and total.dtype != tensor_dtype:
        raise TypeError(
            "accumulate_n: the inputs must have dtype "
            f"{dtypes.as_dtype(tensor_dtype).name}, got {total.dtype.name}"
        )
    return total


def polyval(
    coeffs: Sequence[TensorLike], x: TensorLike, name: str | None = None
) -> Tensor:
    """Evaluate a polynomial, ``coeffs[0] * x ** (n - 1) + ... + coeffs[n - 1]``.

    It is computed by Horner's scheme.

    Args:
        coeffs: List of coefficients, numbers or tensors that broadcast with ``x``, the
            highest power first.
        x: Points at which to evaluate the polynomial.

    Raises:
        ValueError: If ``coeffs`` is not a list or tuple.

    Example:
        >>> tw.polyval([1.0, 0.0, -2.0], [3.0]).numpy()
        array([7.], dtype=float32)
    """
    if not isinstance(coeffs, (list, tuple)):
        raise InvalidArgumentError(
            f"polyval: coeffs must be a list or tuple, got {type(coeffs).__name__}"
        )
    x = convert_to_tensor(x)
    if not coeffs:
        return multiply_no_nan(x, 0.0)
    value = convert_to_tensor(coeffs[0], dtype_hint=x.dtype)
    for coefficient in coeffs[1:]:
        value = value * x + coefficient
    return value


# -------------------------------------------------------------- powers, exponentials


def transcendental(
    **traits: Unpack[ElementwiseTraits],
) -> Callable[[Kernel[P]], Op[P, Tensor]]:
    """Decorator: an `elementwise` op like `exp`, with infinities and NaN as valid results."""
    own = ElementwiseTraits(floating=True, ignores_float_errors=True, cost=(0, 1))
    return elementwise(**own | traits)


@transcendental(
    zero_when=UNARY,
    stable_form="sqrt(maximum(x, 0.0)); norm(x) for sqrt(reduce_sum(x ** 2))",
)
def sqrt(xp, x: TensorLike):
    """Element-wise square root.

    A zero cotangent results in a zero gradient, even at ``x == 0``.

    Args:
        x: Floating or complex tensor; NaN for negative numbers.

    Example:
        >>> tw.sqrt([4.0, 9.0]).numpy()
        array([2., 3.], dtype=float32)
    """
    return xp.sqrt(x)


@sqrt.vjp("x")
def _(g, out):
    return zero_safe_divide(g * 0.5, out)


@transcendental(zero_when=UNARY)
def norm_sqrt(xp, x: TensorLike):
    """Compute ``sqrt(x)`` with zero derivatives at 0: the last step of a norm."""
    return xp.sqrt(x)


@norm_sqrt.vjp("x")
def _(g, out):
    return divide_no_nan(g * 0.5, out)


@transcendental(cost=(1, 1), stable_form="rsqrt(x + epsilon)")
def rsqrt(xp, x: TensorLike):
    """Element-wise reciprocal of the square root: ``1 / sqrt(x)``.

    Args:
        x: Floating or complex tensor.

    Example:
        >>> tw.math.rsqrt([4.0, 16.0]).numpy()
        array([0.5 , 0.25], dtype=float32)
    """
    return xp.reciprocal(xp.sqrt(x))


@rsqrt.vjp("x")
def _(g, x, out):
    return zero_safe_divide(zero_safe_multiply(g * -0.5, out), x)


@elementwise(
    type_name="Pow",
    ignores_float_errors=True,
    kinds="iufc",
    may_raise="iu",
    sizes=True,
    cost=(0, 1),
    stable_form="pow(maximum(x, epsilon), y) for powers that are no whole numbers",
)
def power(xp, x: TensorLike, y: TensorLike):
    """Compute ``x ** y``, with derivatives that are limits at ``x == 0``."""
    return xp.power(x, y)


def _root(xp, x, y):
    return xp.where(x == -xp.inf, x.dtype.type(xp.inf), xp.sqrt(x + x.dtype.type(0)))


# Exponent -> the power by products and roots, within 2 ulp: a tenth of the time, or less.
# The powers of -0.0 and of infinities are those of the general function.
_POWERS = {
    -2.0: lambda xp, x, y: xp.square(xp.reciprocal(x)),
    -1.0: lambda xp, x, y: xp.reciprocal(x),
    -0.5: lambda xp, x, y: xp.reciprocal(_root(xp, x, y)),
    0.5: _root,
    2.0: lambda xp, x, y: xp.square(x),
    3.0: lambda xp, x, y: xp.square(x) * x,
    4.0: lambda xp, x, y: xp.square(xp.square(x)),
}


def power_of(x, y):
    """Return a kernel for the power of ``x`` by an array with one common exponent, or None."""
    # Of one number the general function is fast enough, and more exact: `1 - beta**t`.
    if y.ndim or not x.ndim or x.dtype.char not in "fd" or x.dtype != y.dtype:
        return None
    return _POWERS.get(y.item())


@power.kernel_for("numpy")
def _(xp, x, y):
    kernel = power_of(x, y)
    return np.power(x, y) if kernel is None else kernel(np, x, y)


@power.vjp("x")
def _(g, x, y):
    return zero_safe_multiply(g, zero_safe_multiply(y, power(x, y - 1.0)))


@power.vjp("y")
def _(g, x, out):
    return zero_safe_multiply(g, zero_safe_multiply(out, _log_or_zero(x)))


def _is_integer(x):
    dtype = getattr(x, "dtype", None)
    return type(x) is int if dtype is None else dtypes.as_dtype(dtype).is_integer


def pow(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:  # noqa: A001
    """Element-wise power: ``x ** y``.

    The derivative by ``x`` is ``y * x ** (y - 1)``, 0 where ``y`` is 0; by ``y`` it is
    ``x ** y * log(x)``, 0 where ``x`` is not positive.

    Args:
        x: Base.
        y: Exponent that broadcasts with ``x``.

    Raises:
        ValueError: If integers have a negative integer exponent.

    Example:
        >>> tw.pow(3.0, 2.0).numpy()
        np.float32(9.0)
    """
    if (type(y) is int or (type(y) is float and not _is_integer(x))) and y == 2:
        return square(x)  # exact, and the common case
    return power(x, y)


@elementwise(kinds="f", zero_when=UNARY, ignores_float_errors=True, cost=(0, 1))
def cbrt(xp, x: TensorLike):
    """Compute the cube root, negative for a negative ``x``."""
    return xp.cbrt(x)


@cbrt.vjp("x")
def _(g, out):
    return zero_safe_divide(zero_safe_divide(g * (1.0 / 3.0), out), out)


@elementwise(zero_when=UNARY, ignores_float_errors=True, cost=(0, 1))
def _log_or_zero(xp, x: TensorLike):
    """Compute ``log(x)`` where x is positive (nonzero, if complex), else 0."""
    valid = x != 0 if x.dtype.kind == "c" else x > 0
    return xp.where(
        valid, xp.log(xp.where(valid, x, xp.ones_like(x))), xp.zeros_like(x)
    )


@_log_or_zero.vjp("x")
def _(g, x, x_dtype):
    return divide_no_nan(g, x if x_dtype.kind == "c" else maximum(x, 0.0))


@transcendental(
    stable_form="nn.softplus(x) for log(1 + exp(x)), reduce_logsumexp(x) for "
    "log(reduce_sum(exp(x))), nn.softmax(x) for a quotient of them, or "
    "subtract the largest x first"
)
def exp(xp, x: TensorLike):
    """Element-wise exponential function: ``e ** x``.

    Args:
        x: Floating or complex tensor.

    Example:
        >>> tw.exp([0.0, 1.0]).numpy().round(4)
        array([1.    , 2.7183], dtype=float32)
    """
    return xp.exp(x)


@exp.vjp("x")
def _(g, out):  # an overflow shows, as NaN: TensorFlow's guide has log(1 + exp(100)) so
    return g * out


@transcendental()
def exp2(xp, x: TensorLike):
    """Compute ``2 ** x``."""
    return xp.exp2(x) if x.dtype.kind == "f" else xp.exp(x * math.log(2.0))


@exp2.vjp("x")
def _(g, x):  # not by the output, which overflows where its multiple by log(2) does not
    return g * exp2(x - 1.0) * (2.0 * math.log(2.0))


@transcendental(
    zero_when=UNARY, stable_form="a bound from above: expm1(minimum(x, bound))"
)
def expm1(xp, x: TensorLike):
    """Element-wise ``exp(x) - 1``, exact for small ``x``.

    Args:
        x: Floating or complex tensor.

    Example:
        >>> tw.math.expm1([0.0, 1.0]).numpy().round(4)
        array([0.    , 1.7183], dtype=float32)
    """
    return xp.expm1(x)


@expm1.vjp("x")
def _(g, x):
    return zero_safe_multiply(g, exp(x))


@transcendental(
    stable_form="log1p(x) for log(1 + x), nn.log_softmax(x) for log(softmax(x)), "
    "nn.log_sigmoid(x) for log(sigmoid(x)), math.xlogy(a, x) for a * "
    "log(x), or a bound from below: log(maximum(x, epsilon))"
)
def log(xp, x: TensorLike):
    """Element-wise natural logarithm.

    A zero cotangent results in a zero gradient, even at ``x == 0``.

    Args:
        x: Floating or complex tensor; NaN for negative numbers.

    Example:
        >>> tw.math.log([1.0, 10.0]).numpy().round(4)
        array([0.    , 2.3026], dtype=float32)
    """
    return xp.log(x)


@log.vjp("x")
def _(g, x):
    return zero_safe_divide(g, x)


@transcendental(
    type_name="Log1p",
    zero_when=UNARY,
    stable_form="a bound from below: log1p(maximum(x, epsilon - 1.0))",
)
def log1p(xp, x: TensorLike):
    """Element-wise ``log(1 + x)``, exact for small ``x``.

    Args:
        x: Floating or complex tensor.

    Example:
        >>> tw.math.log1p([0.0, 1.0]).numpy().round(4)
        array([0.    , 0.6931], dtype=float32)
    """
    return xp.log1p(x)


@log1p.vjp("x")
def _(g, x):
    return zero_safe_divide(g, x + 1.0)


# ----------------------------------------------------------- extremes and rounding


@elementwise(zero_when=BOTH, kinds="iuf", sizes=True)
def maximum(xp, x: TensorLike, y: TensorLike):
    """Element-wise maximum; where ``x`` and ``y`` are equal, ``x`` gets the gradient.

    Args:
        x: Input tensor of real numbers.
        y: Input tensor that broadcasts with ``x``.

    Example:
        >>> tw.maximum([1.0, 5.0], 3.0).numpy()
        array([3., 5.], dtype=float32)
    """
    return xp.maximum(x, y)


@maximum.vjp("x")
def _(g, x, y):
    return masked(g, greater_equal(x, y))


@maximum.vjp("y")
def _(g, x, y):
    return masked(g, less(x, y))


@elementwise(zero_when=BOTH, kinds="iuf", sizes=True)
def minimum(xp, x: TensorLike, y: TensorLike):
    """Element-wise minimum; where ``x`` and ``y`` are equal, ``x`` gets the gradient.

    Args:
        x: Input tensor of real numbers.
        y: Input tensor that broadcasts with ``x``.

    Example:
        >>> tw.minimum([1.0, 5.0], 3.0).numpy()
        array([1., 3.], dtype=float32)
    """
    return xp.minimum(x, y)


@minimum.vjp("x")
def _(g, x, y):
    return masked(g, less_equal(x, y))


@minimum.vjp("y")
def _(g, x, y):
    return masked(g, greater(x, y))


@elementwise(same_dtype=("t", "low", "high"), sizes=True, cost=(2, 0))
def _clip_by_value(xp, t: TensorLike, low: TensorLike, high: TensorLike):
    return xp.minimum(xp.maximum(t, low), high)


@_clip_by_value.kernel_for("formulas")
def _(xp, t, low, high):
    return xp.minimum(xp.asarray(xp.maximum(t, low), object), high)


@_clip_by_value.vjp("t")
def _(g, t, low, high):
    return masked(g, logical_and(greater_equal(t, low), less_equal(t, high)))


@_clip_by_value.vjp("low")
def _(g, t, low, high):
    return masked(g, logical_and(less(t, low), less(low, high)))


@_clip_by_value.vjp("high")
def _(g, t, low, high):
    return masked(g, logical_or(greater(t, high), greater_equal(low, high)))


def clip_by_value(
    t: TensorLike,
    clip_value_min: TensorLike,
    clip_value_max: TensorLike,
    name: str | None = None,
) -> Tensor:
    """Clip the entries of a tensor to a range.

    Entries at a bound pass gradients, entries beyond it do not. `IndexedSlices` stay
    sparse where the range includes 0; rows with the same index are added first.

    Args:
        t: Tensor or `IndexedSlices`.
        clip_value_min: Lower bound, a number or a tensor that broadcasts with ``t``.
        clip_value_max: Upper bound, a number or a tensor that broadcasts with ``t``.

    Example:
        >>> tw.clip_by_value([-1.0, 0.5, 9.0], 0.0, 1.0).numpy()
        array([0. , 0.5, 1. ], dtype=float32)
    """
    if isinstance(t, IndexedSlices):
        if _keeps_zero(clip_value_min, clip_value_max):
            t = t._tw_sum_repeated()
            values = _clip_by_value(t.values, clip_value_min, clip_value_max)
            return t.with_values(values)
        t = convert_to_tensor(t)  # the rows that are not there are clipped, too
    return _clip_by_value(t, clip_value_min, clip_value_max)


def _keeps_zero(low, high):
    """Return whether 0 is known to lie in the range, at all its entries."""
    low, high = (convert_to_tensor(bound).array for bound in (low, high))
    known = is_array(low) and is_array(high)
    return known and bool((low <= 0).all() and (high >= 0).all())


@elementwise(zero_when=UNARY, no_gradient=True)
def round(xp, x: TensorLike):  # noqa: A001
    """Round element-wise to the nearest integer, halves to even; its gradient is None.

    Args:
        x: Input tensor.

    Example:
        >>> tw.round([0.5, 1.5, 2.6]).numpy()
        array([0., 2., 3.], dtype=float32)
    """
    return xp.rint(x) if x.dtype.kind in "fc" else x


@elementwise(zero_when=UNARY, no_gradient=True)
def floor(xp, x: TensorLike):
    """Element-wise floor: the largest integer not above ``x``; its gradient is None.

    Args:
        x: Input tensor of real numbers.

    Example:
        >>> tw.floor([1.5, -1.5]).numpy()
        array([ 1., -2.], dtype=float32)
    """
    return xp.floor(x)


@elementwise(zero_when=UNARY, no_gradient=True)
def ceil(xp, x: TensorLike):
    """Element-wise ceiling: the smallest integer not below ``x``; its gradient is None.

    Args:
        x: Input tensor of real numbers.

    Example:
        >>> tw.math.ceil([1.5, -1.5]).numpy()
        array([ 2., -1.], dtype=float32)
    """
    return xp.ceil(x)


rint = round


@elementwise(type_name="NextAfter", kinds="f", no_gradient=("x2",))
def nextafter(xp, x1: TensorLike, x2: TensorLike):
    """Element-wise next floating number after ``x1`` in the direction of ``x2``.

    No gradient passes to ``x2``.

    Args:
        x1: Floating tensor.
        x2: Tensor of the same dtype that broadcasts with ``x1``.

    Example:
        >>> tw.math.nextafter(1.0, 2.0).numpy()
        np.float32(1.0000001)
    """
    return xp.nextafter(x1, x2)


@nextafter.vjp("x1")
def _(g):
    return g
