"""Quantized numbers: integers with a scale and a zero point, for a tensor or an axis."""

from __future__ import annotations

import numpy as np

from tapewright.ops.array.conversion import cast
from tapewright.ops.array.gather import repeat
from tapewright.ops.array.shape import reshape
from tapewright.ops.linalg.matmul import matmul
from tapewright.ops.math.elementwise import maximum, minimum, rint

from .static import axes_of, dims
from .windows import conv


def _spread(values, x, axis, block_size):
    """Return a number for each entry along an axis, or each block, as it broadcasts to x."""
    if len(dims(values)) == 0:
        return values
    (axis,) = axes_of(axis, len(dims(x)))
    if block_size:
        return repeat(values, block_size, axis)[
            tuple([slice(0, n) for n in dims(x)])
        ]  # fmt: skip
    if dims(values) == (1,):
        return reshape(values, ())
    return reshape(values, [-1 if i == axis else 1 for i in range(len(dims(x)))])


def _quantize(
    x, scale, zero_point=None, axis=1, block_size=0, output_dtype=None, precision=None,
    saturate=1,
):  # fmt: skip
    kind = output_dtype or ("uint8" if zero_point is None else zero_point.dtype)
    scale = _spread(scale, x, axis, block_size)
    y = rint(cast(x, "float32") / cast(scale, "float32"))
    if zero_point is not None:
        y = y + cast(_spread(zero_point, x, axis, block_size), "float32")
    return _limited(y, kind)


def _limited(y, kind):
    limits = np.iinfo(np.dtype(kind))
    return cast(minimum(maximum(y, float(limits.min)), float(limits.max)), kind)


def _dequantize(x, scale, zero_point=None, axis=1, block_size=0, output_dtype=None):
    y = cast(x, "float32")
    if zero_point is not None:
        y = y - cast(_spread(zero_point, x, axis, block_size), "float32")
    y = y * cast(_spread(scale, x, axis, block_size), "float32")
    return cast(y, output_dtype or scale.dtype)


def _integers(x, zero_point, axis):
    """Return integers less their zero point, in float64: products of 8 bits are exact."""
    x = cast(x, "float64")
    if zero_point is None:
        return x
    return x - cast(_spread(zero_point, x, axis, 0), "float64")


def _matmul_integer(a, b, a_zero=None, b_zero=None):
    product = matmul(_integers(a, a_zero, -2), _integers(b, b_zero, -1))
    return cast(product, "int32")


def _conv_integer(x, w, x_zero=None, w_zero=None, **window):
    return cast(
        conv(_integers(x, x_zero, 1), _integers(w, w_zero, 0), **window), "int32"
    )


def _scaled(y, a_scale, b_scale, y_scale, y_zero, axis):
    """Return products of integers in the scale of the result, as its dtype."""
    a_scale, b_scale, y_scale = [
        cast(s, "float64") for s in (a_scale, b_scale, y_scale)
    ]
    y = y * _spread(a_scale * b_scale / y_scale, y, axis, 0)
    return _limited(rint(y) + cast(y_zero, "float64"), y_zero.dtype)


def _qlinear_matmul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero):
    product = matmul(_integers(a, a_zero, -2), _integers(b, b_zero, -1))
    return _scaled(product, a_scale, b_scale, y_scale, y_zero, -1)


def _qlinear_conv(
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b=None, **window
):  # fmt: skip
    b = None if b is None else cast(b, "float64")
    y = conv(_integers(x, x_zero, 1), _integers(w, w_zero, 0), b, **window)
    return _scaled(y, x_scale, w_scale, y_scale, y_zero, 1)


OPS = {
    "ConvInteger": _conv_integer,
    "DequantizeLinear": _dequantize,
    "MatMulInteger": _matmul_integer,
    "QLinearConv": _qlinear_conv,
    "QLinearMatMul": _qlinear_matmul,
    "QuantizeLinear": _quantize,
}
