"""Quantized numbers: integers with a scale and a zero point, for a tensor or an axis."""

from __future__ import annotations

import numpy as np

from tapewright.ops.array.conversion import cast
from tapewright.ops.array.gather import repeat
from tapewright.ops.array.shape import reshape
from tapewright.ops.linalg.matmul import matmul
from tapewright.ops.math.elementwise import maximum, minimum, rint

from .static import axes_of, dims

__all__ = ["OPS"]


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
    zero_point = cast(zero_point, "float64")
    return x - (zero_point[:, None] if len(dims(zero_point)) == 1 and axis == 0
                else zero_point)  # fmt: skip


def _matmul_integer(a, b, a_zero_point=None, b_zero_point=None):
    product = matmul(_integers(a, a_zero_point, 0), _integers(b, b_zero_point, 1))
    return cast(product, "int32")


def _qlinear_matmul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero):
    product = matmul(_integers(a, a_zero, 0), _integers(b, b_zero, 1))
    scale = (
        cast(a_scale, "float64") * cast(b_scale, "float64") / cast(y_scale, "float64")
    )
    return _limited(rint(product * scale) + cast(y_zero, "float64"), y_zero.dtype)


OPS = {
    "DequantizeLinear": _dequantize,
    "MatMulInteger": _matmul_integer,
    "QLinearMatMul": _qlinear_matmul,
    "QuantizeLinear": _quantize,
}
