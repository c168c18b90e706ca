"""Ops that keep a value or part of it: casts, complex numbers, identities.

`cast` and its variants; a complex number from its parts, its parts and its conjugate;
the identity, with and without a gradient. A real input gets a real gradient, and a
complex input a complex one.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import DTypeError, InvalidArgumentError, ShapeError
from tapewright.core.primitive import primitive
from tapewright.core.rules import batch_leading, check_attributes, elementwise
from tapewright.core.tensor import (
    IndexedSlices,
    Tensor,
    TensorSpec,
    convert_to_tensor,
)
from tapewright.core.text import is_text
from tapewright.core.typing import DTypeLike, TensorLike

from ..math.comparison import greater_equal, less_equal, logical_and, masked

__all__ = [
    "bitcast",
    "cast",
    "complex",
    "conj",
    "identity",
    "identity_n",
    "imag",
    "real",
    "saturate_cast",
    "stop_gradient",
]


# -------------------------------------------------------------------------- dtypes


_ON_X86 = platform.machine().lower() in ("x86_64", "amd64")


@elementwise(name="cast", sizes=True, linear=True, moves=True, cost=(0, 0))
def cast_p(xp, x: TensorLike, dtype: DTypeLike):
    return _converted(xp, x, dtypes.as_dtype(dtype).dtype, _ON_X86)


@cast_p.kernel_for("cupy")
def _(xp, x, *, dtype):
    return _converted(xp, x, dtypes.as_dtype(dtype).dtype, False)


def _converted(xp, x, to, on_x86):
    if x.dtype.kind == "c" and to.kind != "c":
        x = x.real
    if is_text(x.dtype) != is_text(to):
        raise TypeError("strings are no numbers")  # NumPy would read them
    if to.kind not in "iu" or dtypes.kind_of(x.dtype) != "f":
        return x.astype(to)
    return _truncated(xp, x, to, on_x86)


def _truncated(xp, x, to, on_x86):
    """Convert floats to integers, with the same result out of range on every machine.

    C leaves it open. `astype` on x86 returns the lowest int32, or int64 for an int64,
    of which smaller dtypes keep the lowest bits; an unsigned one subtracts half of its
    range where ``x`` is in the upper half, and adds it again. In uint32 it depends on
    the length of the array, and other processors return the nearest number or 0.
    """
    if on_x86 and to != np.uint32:
        return x.astype(to)
    if x.dtype.itemsize == 2:
        x = x.astype(np.float32)
    wide = np.dtype(np.int64 if to.itemsize == 8 else np.int32)
    if to not in (np.uint32, np.uint64):
        return _signed(xp, x, wide, on_x86).astype(to)
    bound = x.dtype.type(2.0 ** (8 * to.itemsize - 1))
    upper = x >= bound
    whole = _signed(xp, xp.where(upper, x - bound, x), wide, on_x86)
    lowest = wide.type(np.iinfo(wide).min)
    return (whole ^ xp.where(upper, lowest, wide.type(0))).astype(to)


def _signed(xp, x, to, on_x86):
    if on_x86:
        return x.astype(to)
    inside = xp.abs(x) < x.dtype.type(2.0 ** (8 * to.itemsize - 1))
    whole = xp.where(inside, x, x.dtype.type(0)).astype(to)
    return xp.where(inside, whole, to.type(np.iinfo(to).min))


@cast_p.kernel_for("formulas")
def _(xp, x, *, dtype):
    return x


@cast_p.infer
def _(x, dtype):
    if x.dtype == dtypes.string and dtype != dtypes.string:
        raise DTypeError(
            "cast", f"cannot cast strings to {dtype}; use strings.to_number", x=x
        )
    if x.dtype != dtypes.string and dtype == dtypes.string:
        raise DTypeError("cast", "cannot cast numbers to strings; use "
                         "strings.as_string", x=x)  # fmt: skip
    return TensorSpec(x.shape, dtype)


@cast_p.vjp("x")
def _(g, x_dtype):
    return cast(g, x_dtype)


def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """Cast a tensor to another dtype.

    Floating numbers are truncated towards 0 for integers, complex numbers become their
    real part, and booleans 0 or 1. Gradients pass between floating and complex dtypes
    only.

    NaN and numbers out of the range of an integer dtype are converted as C does on x86,
    on every machine: to the lowest number of int32 or int64; int8, uint8, int16 and
    uint16 keep the lowest bits of an int32; uint32 and uint64 wrap negative numbers, up
    to half of their range, and return 0 above their range, else half of it. Use
    `saturate_cast` to clip numbers to the range.

    Args:
        x: Input tensor.
        dtype: Dtype of the result.

    Raises:
        DTypeError: If ``x`` or ``dtype`` is a string dtype and the other is not.

    Example:
        >>> tw.cast([1.9, -1.9], "int32").numpy()
        array([ 1, -1], dtype=int32)
    """
    dtype = dtypes.as_dtype(dtype)
    if isinstance(x, IndexedSlices):
        return x.with_values(cast(x.values, dtype))
    if getattr(x, "dtype", None) == dtype and hasattr(x, "shape"):
        return _as_it_is(x)
    if isinstance(x, np.ndarray | np.generic) or hasattr(x, "dtype"):
        return cast_p(x, dtype.name)
    return cast_p(convert_to_tensor(x), dtype.name)


def _as_it_is(x):
    """Return ``x`` as a tensor; in a backward pass on arrays, return the array unchanged."""
    return x if isinstance(x, Tensor) else identity(x)


@elementwise(linear=True, moves=True, cost=(0, 0))
def _saturate_cast(xp, value: TensorLike, dtype: DTypeLike):
    to = dtypes.as_dtype(dtype).dtype
    low, high = _limits(value.dtype, to)
    limited = xp.minimum(xp.maximum(value, low), high)
    return limited if limited.dtype == to else _converted(xp, limited, to, _ON_X86)


def _limits(given, to):
    """Return the smallest and largest number of ``given`` that dtype ``to`` can hold."""
    (low, high), (least, largest) = _range(given), _range(to)
    limits = []
    for own, other in ((low, least), (high, largest)):
        limit = own if abs(own) <= abs(other) else other
        is_floating = dtypes.kind_of(given) == "f"
        limit = given.type(float(limit) if is_floating else limit)
        if is_floating and abs(_exact(limit)) > abs(other):  # rounded outwards
            limit = np.nextafter(limit, given.type(0))
        limits.append(limit)
    return limits


def _range(dtype):
    info = np.iinfo(dtype) if dtype.kind in "iu" else dtypes.finfo(dtype)
    return _exact(info.min), _exact(info.max)


def _exact(number):
    """Return a Python int, or an infinite float: numbers of any two dtypes compare exactly."""
    number = number if isinstance(number, int) else float(number)
    return number if np.isinf(number) else int(number)


@_saturate_cast.infer
def _(value, dtype):
    return TensorSpec(value.shape, dtype)


def _check_saturated(dtype):
    _check_numeric("saturate_cast", dtype=dtypes.as_dtype(dtype))


check_attributes(_saturate_cast, _check_saturated)


@_saturate_cast.vjp("value")
def _(g, value, value_dtype, dtype):
    low, high = _limits(value_dtype, dtypes.as_dtype(dtype).dtype)
    inside = logical_and(
        greater_equal(value, float(low)), less_equal(value, float(high))
    )
    return masked(cast(g, value_dtype), inside)


def saturate_cast(
    value: TensorLike, dtype: DTypeLike, name: str | None = None
) -> Tensor:
    """Cast a tensor to another dtype, clipping values to its range.

    Gradients pass between floating dtypes, where the value is in range.

    Args:
        value: Input tensor of numbers.
        dtype: Dtype of the result, numeric.

    Raises:
        TypeError: If ``value`` or ``dtype`` is boolean.

    Example:
        >>> tw.saturate_cast([-3.0, 7.9, 300.0], "uint8").numpy()
        array([  0,   7, 255], dtype=uint8)
    """
    value, dtype = convert_to_tensor(value), dtypes.as_dtype(dtype)
    _check_numeric("saturate_cast", value=value.dtype, dtype=dtype)
    if not dtype.is_complex:
        return _saturate_cast(real(value), dtype=dtype.name)
    if value.dtype.is_complex and value.dtype.size <= dtype.size:
        return cast(value, dtype)
    parts = [_saturate_cast(part, dtype=dtype.real_dtype.name)
             for part in (real(value), imag(value))]  # fmt: skip
    return _complex(*parts)


def _check_numeric(who, **given):
    for name, dtype in given.items():
        if dtype.is_bool or dtype == dtypes.string:
            raise TypeError(f"{who}: {name} must be numeric, got {dtype.name}")


@primitive(moves=True, view=True, no_gradient=True, batch=batch_leading)
def _bitcast(xp, input: TensorLike, type: DTypeLike):
    to = dtypes.as_dtype(type).dtype
    size, new_size = input.dtype.itemsize, to.itemsize
    if size == new_size:
        return input.view(to)
    if size > new_size:
        return xp.ascontiguousarray(input).reshape(*input.shape, 1).view(to)
    if not input.ndim or input.shape[-1] * size != new_size:
        raise InvalidArgumentError(
            "bitcast: the last axis must fill one entry of the new type"
        )
    return xp.ascontiguousarray(input).view(to)[..., 0]


@_bitcast.infer
def _(input, type):
    to = dtypes.as_dtype(type)
    dims, size = list(input.shape), input.dtype.size
    if size > to.size:
        dims.append(size // to.size)
    elif size < to.size:
        if not dims or dims[-1] not in (None, to.size // size):
            what = f"to make {to.name} of it, the last axis must have size {to.size // size}"
            raise ShapeError("bitcast", what, input=input)
        dims.pop()
    return TensorSpec(dims, to)


def bitcast(input: TensorLike, type: DTypeLike, name: str | None = None) -> Tensor:
    """Reinterpret the bytes of a tensor as another dtype; the gradient is None.

    Args:
        input: Input tensor.
        type: Dtype of the result.

    Shapes:
        To a smaller dtype, ``[...]`` to ``[..., ratio]``, where ``ratio`` is the ratio
        of the sizes; to a larger one, ``[..., ratio]`` to ``[...]``.

    Raises:
        TypeError: If either dtype is bool or string.

    Example:
        >>> tw.bitcast(1.0, "int32").numpy()
        np.int32(1065353216)
        >>> tw.bitcast([1], "int16").numpy()
        array([[1, 0]], dtype=int16)
    """
    input, to = convert_to_tensor(input), dtypes.as_dtype(type)
    _check_numeric("bitcast", input=input.dtype, type=to)
    return _bitcast(input, type=to.name)


# ----------------------------------------------------------------- complex numbers


def _complex_of(dtype):
    return "complex64" if dtype == "float32" else "complex128"


@elementwise(result_dtype=_complex_of, half=False, linear=True, cost=(0, 0))
def _complex(xp, real: TensorLike, imag: TensorLike):
    if real.dtype.kind != "f" or real.dtype.itemsize < 4:
        what = "real and imag must be float32 or float64"
        raise DTypeError("complex", what, real=real, imag=imag)
    real, imag = xp.broadcast_arrays(real, imag)
    result = xp.empty(real.shape, _complex_of(real.dtype))
    result.real[...], result.imag[...] = real, imag  # 1j * inf has NaN for a real part
    return result


@_complex.vjp("real")
def _(g):
    return real(g)


@_complex.vjp("imag")
def _(g):
    return -imag(g)


def complex(real: TensorLike, imag: TensorLike, name: str | None = None) -> Tensor:  # noqa: A001
    """Make complex numbers: ``real + i * imag``.

    Args:
        real: Real parts, float32 or float64.
        imag: Imaginary parts, of the same dtype; broadcasts with ``real``.

    Example:
        >>> tw.complex([1.0, 2.0], 3.0).numpy()
        array([1.+3.j, 2.+3.j], dtype=complex64)
    """
    return _complex(real, imag)


def real_dtype(dtype):
    """Return the dtype of the parts of a complex dtype; a real dtype is returned unchanged."""
    return dtype.real_dtype


@elementwise(result_dtype=real_dtype, linear=True, moves=True, cost=(0, 0), view=True)
def _real(xp, input: TensorLike):
    return xp.real(input)


@_real.vjp("input")
def _(g, input_dtype):
    return cast(g, input_dtype)


def real(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the real part of a tensor; a real tensor is returned unchanged.

    Args:
        input: Input tensor of numbers.

    Example:
        >>> tw.math.real([1.0 + 2.0j]).numpy()
        array([1.])
    """
    return _real(input) if _is_complex(input) else _as_it_is(input)


@elementwise(result_dtype=real_dtype, linear=True, cost=(0, 0), view=True)
def _imag(xp, input: TensorLike):
    return xp.imag(input)


@_imag.vjp("input")
def _(g, input_dtype):
    return cast(g, input_dtype) * -1j


def imag(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the imaginary part of a tensor: zeros without a gradient if it is real.

    Args:
        input: Input tensor of numbers.

    Example:
        >>> tw.math.imag([1.0 + 2.0j]).numpy()
        array([2.])
    """
    return _imag(input if _is_complex(input) else stop_gradient(input))


@elementwise(kinds="iufc", linear=True)
def _conj(xp, x: TensorLike):
    return xp.conj(x)


@_conj.vjp("x")
def _(g):
    return conj(g)


def conj(x: TensorLike, name: str | None = None) -> Tensor:
    """Element-wise complex conjugate; a real tensor is returned unchanged.

    Args:
        x: Input tensor of numbers.

    Example:
        >>> tw.math.conj([1.0 + 2.0j]).numpy()
        array([1.-2.j])
    """
    return _conj(x) if _is_complex(x) else _as_it_is(x)


def _is_complex(x):
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return convert_to_tensor(x).dtype.is_complex
    return dtype.kind == "c" if isinstance(dtype, np.dtype) else dtype.is_complex


# ---------------------------------------------------------------------- passing on


@elementwise(sizes=True, linear=True, moves=True, cost=(0, 0), view=True)
def identity(xp, input: TensorLike):
    """Return a new tensor with the same value; gradients pass.

    Args:
        input: Input tensor.
    """
    return input


@identity.vjp("input")
def _(g):
    return g


@elementwise(sizes=True, linear=True, moves=True, cost=(0, 0), view=True)
def set_apart(xp, input: TensorLike):
    """Return ``input`` as a separate tensor, in traced functions too.

    Computations on the result are repeated: they are neither merged with the same
    computations on ``input`` nor kept for them.
    """
    return input[...]


@set_apart.vjp("input")
def _(g):
    return g


def identity_n(input: Sequence[TensorLike], name: str | None = None) -> list[Tensor]:
    """Return each tensor of a list as a new tensor; gradients pass.

    Args:
        input: List of tensors.
    """
    return [identity(each) for each in input]


@elementwise(
    zero_when=[{"input"}],
    sizes=True,
    moves=True,
    cost=(0, 0),
    view=True,
    no_gradient=True,
)
def stop_gradient(xp, input: TensorLike):
    """Return ``input`` as a constant: no gradient passes through it.

    Args:
        input: Input tensor.

    Example:
        >>> x = tw.Variable(3.0)
        >>> with tw.GradientTape() as tape:
        ...     y = x * tw.stop_gradient(x)
        >>> tape.gradient(y, x).numpy()
        np.float32(3.0)
    """
    return input
