"""A factor and a summand per channel: `bias_add`, and the last step of a normalization."""

from __future__ import annotations

from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.rules import elementwise
from tapewright.core.tensor import Tensor, convert_to_tensor, is_tensor
from tapewright.core.typing import TensorLike

from ..array.shape import reshape
from ..math.elementwise import add

__all__ = ["bias_add"]


def bias_add(
    value: TensorLike,
    bias: TensorLike,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Add a bias to each channel: ``value + bias``.

    Args:
        value: Input tensor.
        bias: Vector with one entry per channel.
        data_format: "N...C", or "NC..." for channels on axis 1; None means "N...C".

    Shapes:
        ``value`` ``[batch, ..., channels]``, ``bias`` ``[channels]``.

    Raises:
        ValueError: If ``data_format`` is unknown.

    Example:
        >>> tw.nn.bias_add([[1.0, 2.0]], [10.0, 20.0]).numpy()
        array([[11., 22.]], dtype=float32)
    """
    value = convert_to_tensor(value, dtype_hint=bias.dtype if is_tensor(bias) else None)
    bias = convert_to_tensor(bias, dtype_hint=value.dtype)
    dims, own = value.array.shape, bias.array.shape
    at = -1 if data_format is None else _channel_axis(data_format)
    if len(dims) < 2 or own != (dims[at],):
        what = f"bias must be a vector, an entry for each channel of value (axis {at})"
        raise ShapeError("bias_add", what, value=value, bias=bias)
    if at == 1 and len(dims) > 2:
        bias = reshape(bias, own + (1,) * (len(dims) - 2))
    return add(value, bias)


def _channel_axis(data_format):
    if data_format.startswith("NC"):
        return 1
    if data_format.startswith("N") and data_format.endswith("C"):
        return -1
    raise InvalidArgumentError(
        "bias_add: data_format must be of the form 'N...C' or 'NC...', "
        f"got {data_format!r}"
    )


@elementwise(linear=[{"x", "offset"}, {"scale", "offset"}], cost=(2, 0), exact=True)
def multiply_add(xp, x: TensorLike, scale: TensorLike, offset: TensorLike):
    """Compute ``x * scale + offset``: the sum in place saves a pass compared with two ops."""
    product = x * scale
    if product.ndim and _broadcasts_to(offset.shape, product.shape):
        return xp.add(product, offset, out=product)
    return product + offset


def _broadcasts_to(shape, whole):
    """Return whether an array of a shape broadcasts to the shape ``whole``."""
    extra = len(whole) - len(shape)
    last = whole[extra:]
    return extra >= 0 and (
        shape == last or all([n in (1, m) for n, m in zip(shape, last)])
    )


@multiply_add.vjp("x")
def _(g, scale):
    return g * scale


@multiply_add.vjp("scale")
def _(g, x):
    return g * x


@multiply_add.vjp("offset")
def _(g):
    return g
