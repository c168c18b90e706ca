"""Dilation and erosion of images: convolutions that take a maximum instead of a sum."""

from __future__ import annotations

from collections.abc import Sequence

from tapewright.core.errors import ShapeError
from tapewright.core.rules import check_choice
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import TensorLike

from ..array.joining import pad, reverse
from ..convolution.windows import spatial_numbers
from ..math.elementwise import maximum

__all__ = ["dilation2d", "erosion2d"]


def dilation2d(
    input: TensorLike,
    filters: TensorLike,
    strides: int | Sequence[int],
    padding: str,
    data_format: str,
    dilations: int | Sequence[int],
    name: str | None = None,
) -> Tensor:
    """Grayscale dilation: the maximum of ``input + filters`` in each window.

    It is the maximum of ``input[y + dy, x + dx, c] + filters[dy, dx, c]``. The first of
    equal sums gets the gradient. Padding is below all numbers.

    Args:
        input: Batch of images.
        filters: Values to add to each window.
        strides: Distance between windows: a number, a pair, or four numbers with 1 at
            the ends.
        padding: "SAME" or "VALID".
        data_format: Must be "NHWC".
        dilations: Distance between the entries of a window: a number, a pair, or four
            numbers with 1 at the ends.

    Shapes:
        ``[batch, height, width, channels]`` and ``[rows, columns, channels]`` to
        ``[batch, out_height, out_width, channels]``.

    Raises:
        ValueError: If shapes do not match, or an option is invalid.

    Example:
        >>> x = [[[[1.0], [3.0], [2.0]]]]
        >>> tw.nn.dilation2d(x, [[[0.0], [0.5]]], 1, "SAME", "NHWC", 1).numpy().ravel()
        array([3.5, 3. , 2. ], dtype=float32)
    """
    who = "dilation2d"
    x = convert_to_tensor(input)
    filters = convert_to_tensor(filters, dtype_hint=x.dtype)
    check_choice(who, "data_format", data_format, ("NHWC",))
    check_choice(who, "padding", padding, ("SAME", "VALID"))
    fits = len(x.shape) == 4 and len(filters.shape) == 3
    if not fits or x.shape[-1] != filters.shape[-1]:
        what = (
            "input must be [batch, height, width, channels], and filters [rows, columns, "
            "channels]"
        )
        raise ShapeError(who, what, input=x, filters=filters)
    strides = spatial_numbers(who, "strides", strides, 2, False)
    dilations = spatial_numbers(who, "dilations", dilations, 2, False)
    rows, columns = filters.shape[:2]
    margins, specs = [], []
    for axis, taps in enumerate((rows, columns)):
        size = x.shape[1 + axis]
        reach = (taps - 1) * dilations[axis] + 1
        if padding == "SAME":
            count = -(-size // strides[axis])
            missing = max((count - 1) * strides[axis] + reach - size, 0)
            margins.append((missing // 2, missing - missing // 2))
        else:
            count = max(-(-(size - reach + 1) // strides[axis]), 0)
            margins.append((0, 0))
        specs.append((count, strides[axis], dilations[axis]))
    x = pad(x, [(0, 0), *margins, (0, 0)], constant_values=x.dtype.min)
    result = None
    for i in range(rows):
        for j in range(columns):
            window = x[:, _tap(i, *specs[0]), _tap(j, *specs[1])] + filters[i, j]
            result = window if result is None else maximum(result, window)
    return result


def _tap(at, count, stride, dilation):
    start = at * dilation
    return slice(start, start + max((count - 1) * stride + 1, 0), stride)


def erosion2d(
    value: TensorLike,
    filters: TensorLike,
    strides: int | Sequence[int],
    padding: str,
    data_format: str,
    dilations: int | Sequence[int],
    name: str | None = None,
) -> Tensor:
    """Grayscale erosion: the minimum of ``value - filters`` in each window.

    It is the minimum of ``value[y + dy, x + dx, c] - filters[-dy, -dx, c]``, or
    ``-dilation2d(-value, rotated)`` with the filters rotated by 180 degrees.

    Args:
        value: Batch of images.
        filters: Values to subtract from each window.
        strides: Distance between windows: a number, a pair, or four numbers with 1 at
            the ends.
        padding: "SAME" or "VALID".
        data_format: Must be "NHWC".
        dilations: Distance between the entries of a window: a number, a pair, or four
            numbers with 1 at the ends.

    Shapes:
        As in `dilation2d`.

    Raises:
        ValueError: If shapes do not match, or an option is invalid.

    Example:
        >>> x = [[[[1.0], [3.0], [2.0]]]]
        >>> tw.nn.erosion2d(x, [[[0.0], [0.5]]], 1, "SAME", "NHWC", 1).numpy().ravel()
        array([0.5, 2. , 1.5], dtype=float32)
    """
    turned = reverse(filters, [0, 1])
    value = convert_to_tensor(value)
    return -dilation2d(-value, turned, strides, padding, data_format, dilations)
