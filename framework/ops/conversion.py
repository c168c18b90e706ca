"""Ops that keep a value or a part of it: dtypes, complex numbers, passing on.

`cast`; a complex number from its parts, its parts and its conjugate; the identity, with
and without a gradient. A real input gets a real gradient, and a complex one a complex one.
"""

import numpy as np

from .. import dtypes
from ..primitive import DTypeName
from ..rules import elementwise
from ..tensor import TensorSpec, convert_to_tensor

__all__ = [
    "cast",
    "complex",
    "conj",
    "identity",
    "imag",
    "real",
    "stop_gradient",
]


# -------------------------------------------------------------------------- dtypes


@elementwise(name="cast", type_name="Cast", zero_when=[{"x"}])
def _cast(xp, x, *, dtype: DTypeName):
    if x.dtype.kind == "c" and dtypes.as_dtype(dtype).dtype.kind != "c":
        x = x.real
    return x.astype(dtypes.as_dtype(dtype).dtype)


@_cast.infer
def _(x, dtype):
    return TensorSpec(x.shape, dtype)


@_cast.vjp("x")
def _(g, x_dtype):
    return cast(g, x_dtype)


def cast(x, dtype, name=None):
    """``x`` in another dtype; of a complex number cast to a real one, the real part.

    Only between floating and complex numbers do gradients pass.
    """
    dtype = dtypes.as_dtype(dtype)
    if getattr(x, "dtype", None) == dtype and hasattr(x, "shape"):
        return x if not hasattr(type(x), "__tensor__") else convert_to_tensor(x)
    if isinstance(x, np.ndarray | np.generic) or hasattr(x, "dtype"):
        return _cast(x, dtype=dtype.name)
    return _cast(convert_to_tensor(x), dtype=dtype.name)


# ----------------------------------------------------------------- complex numbers


def _complex_of(dtype):
    return "complex64" if dtype == "float32" else "complex128"


@elementwise(
    name="complex",
    type_name="Complex",
    zero_when=[{"real", "imag"}],
    result_dtype=_complex_of,
)
def _complex(xp, real, imag):
    return real + xp.multiply(imag, xp.asarray(1j, dtype=_complex_of(real.dtype)))


@_complex.vjp("real")
def _(g):
    return real(g)


@_complex.vjp("imag")
def _(g):
    return -imag(g)


def complex(real, imag, name=None):  # noqa: A001
    """``real + i * imag`` of two float32 or float64 tensors."""
    return _complex(real, imag)


def real_dtype(dtype):
    """The dtype of the parts of a complex number; of a real one, its own."""
    return dtype.real_dtype


@elementwise(
    name="real", type_name="Real", zero_when=[{"input"}], result_dtype=real_dtype
)
def _real(xp, input):
    return xp.real(input)


@_real.vjp("input")
def _(g, input_dtype):
    return cast(g, input_dtype)


def real(input, name=None):
    """The real part; a real tensor is returned as it is."""
    return _real(input) if _is_complex(input) else input


@elementwise(
    name="imag", type_name="Imag", zero_when=[{"input"}], result_dtype=real_dtype
)
def _imag(xp, input):
    return xp.imag(input)


@_imag.vjp("input")
def _(g, input_dtype):
    return cast(g, input_dtype) * -1j


def imag(input, name=None):
    """The imaginary part; zeros for a real tensor."""
    return _imag(input)


@elementwise(name="conj", type_name="Conj", zero_when=[{"x"}])
def _conj(xp, x):
    return xp.conj(x)


@_conj.vjp("x")
def _(g):
    return conj(g)


def conj(x, name=None):
    """The complex conjugate; a real tensor is returned as it is."""
    return _conj(x) if _is_complex(x) else x


def _is_complex(x):
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return convert_to_tensor(x).dtype.is_complex
    return dtype.kind == "c" if isinstance(dtype, np.dtype) else dtype.is_complex


# ---------------------------------------------------------------------- passing on


@elementwise(type_name="Identity", zero_when=[{"input"}])
def identity(xp, input):
    """``input`` as another tensor; gradients pass."""
    return input


@identity.vjp("input")
def _(g):
    return g


@elementwise(type_name="StopGradient", zero_when=[{"input"}])
def stop_gradient(xp, input):
    """``input``, through which no gradient passes: it counts as a constant."""
    return input


stop_gradient.no_gradient()
