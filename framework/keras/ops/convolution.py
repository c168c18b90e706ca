"""`keras.ops` that slide windows over one to three spatial axes: `conv`, `max_pool`, ...

``data_format`` is "channels_last" or "channels_first", as in Keras' layers; None means
`image_data_format`.
"""

from __future__ import annotations

from tapewright.core.tensor import Tensor
from tapewright.core.typing import ShapeLike, TensorLike
from tapewright.layers import pooling as pooling_layers
from tapewright.layers.base.spatial import (
    checked_format,
    format_of_ops,
    from_channels_last,
    to_channels_last,
    transposed_sizes,
)
from tapewright.ops.array import shape as shapes
from tapewright.ops.array.joining import pad
from tapewright.ops.convolution import conv as convolution_ops
from tapewright.ops.convolution import pooling, windows

from .operation import OperationFamily
from .promotion import keep_dtype, promote, to_floating

operation = OperationFamily(__name__, "nn")


def _prepare(who, inputs, data_format, *kernels):
    """Return tensors of one dtype, the number of spatial axes, and the ops' data format."""
    inputs, *kernels = promote(inputs, *kernels, at_least=float)
    rank = inputs.ndim - 2
    if rank not in (1, 2, 3):
        raise ValueError(
            f"{who}: inputs must have 3, 4 or 5 axes, got shape {tuple(inputs.shape)}"
        )
    layout = format_of_ops(checked_format(who, data_format), rank)
    return [inputs, *kernels], rank, layout


def _per_axis(value, rank):
    return (value,) * rank if isinstance(value, int) else tuple(value)


# ------------------------------------------------------------------------- pooling


@operation
@keep_dtype
def max_pool(
    inputs: TensorLike,
    pool_size: ShapeLike,
    strides: ShapeLike | None = None,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """Max pooling: take the maximum of each window.

    Args:
        inputs: Input tensor with one to three spatial axes.
        pool_size: Size of the windows: an int, or one for each spatial axis.
        strides: Distance between windows, an int or one for each spatial axis; None
            means ``pool_size``.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.

    Shapes:
        ``[batch, *spatial, channels]``, input and result.

    Raises:
        ValueError: If ``padding`` or ``data_format`` is unknown.

    Example:
        >>> keras.ops.max_pool([[[1.0], [4.0], [2.0], [3.0]]], 2).numpy().ravel()
        array([4., 3.], dtype=float32)
    """
    (inputs,), _, layout = _prepare("max_pool", inputs, data_format)
    strides = pool_size if strides is None else strides
    return pooling.max_pool(inputs, pool_size, strides, padding.upper(), layout)


@operation
def average_pool(
    inputs: TensorLike,
    pool_size: ShapeLike,
    strides: ShapeLike | None = None,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """Average pooling: take the mean of each window.

    With "same" padding, the padding does not count for the mean.

    Args:
        inputs: Input tensor with one to three spatial axes.
        pool_size: Size of the windows: an int, or one for each spatial axis.
        strides: Distance between windows, an int or one for each spatial axis; None
            means ``pool_size``.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.

    Shapes:
        ``[batch, *spatial, channels]``, input and result.

    Raises:
        ValueError: If ``padding`` or ``data_format`` is unknown.

    Example:
        >>> keras.ops.average_pool([[[1.0], [4.0], [2.0], [3.0]]], 2).numpy().ravel()
        array([2.5, 2.5], dtype=float32)
    """
    (inputs,), _, layout = _prepare("average_pool", inputs, data_format)
    strides = pool_size if strides is None else strides
    return pooling.avg_pool(inputs, pool_size, strides, padding.upper(), layout)


@operation
def adaptive_average_pool(
    inputs: TensorLike, output_size: ShapeLike, data_format: str | None = None
) -> Tensor:
    """Average pooling with a given output size.

    Args:
        inputs: Input tensor with one to three spatial axes.
        output_size: Number of windows: an int, or one for each spatial axis.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.

    Shapes:
        ``[batch, *spatial, channels]`` to ``[batch, *output_size, channels]``.

    Example:
        >>> x = [[[1.0], [4.0], [2.0], [3.0]]]
        >>> keras.ops.adaptive_average_pool(x, 2).numpy().ravel()
        array([2.5, 2.5], dtype=float32)
    """
    return _adaptive_pool("Average", inputs, output_size, data_format)


@operation
@keep_dtype
def adaptive_max_pool(
    inputs: TensorLike, output_size: ShapeLike, data_format: str | None = None
) -> Tensor:
    """Max pooling with a given output size.

    Args:
        inputs: Input tensor with one to three spatial axes.
        output_size: Number of windows: an int, or one for each spatial axis.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.

    Shapes:
        ``[batch, *spatial, channels]`` to ``[batch, *output_size, channels]``.

    Example:
        >>> keras.ops.adaptive_max_pool([[[1.0], [4.0], [2.0], [3.0]]], 2).numpy().ravel()
        array([4., 3.], dtype=float32)
    """
    return _adaptive_pool("Max", inputs, output_size, data_format)


def _adaptive_pool(reduction, inputs, output_size, data_format):
    name = f"Adaptive{reduction}Pooling"
    (inputs,), rank, _ = _prepare(name, inputs, data_format)
    layer = getattr(pooling_layers, f"{name}{rank}D")
    return layer(output_size, data_format, name=name).call(inputs)


# --------------------------------------------------------------------- convolution


@operation(call="inputs kernel")
def conv(
    inputs: TensorLike,
    kernel: TensorLike,
    strides: ShapeLike = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: ShapeLike = 1,
) -> Tensor:
    """N-dimensional convolution: multiply each window of the inputs by a kernel.

    Args:
        inputs: Input tensor with one to three spatial axes.
        kernel: Kernel; with fewer input channels than ``inputs``, the channels are
            convolved in groups.
        strides: Distance between windows: an int, or one for each spatial axis.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.
        dilation_rate: Distance between the entries of a window: an int, or one for each
            spatial axis.

    Shapes:
        ``inputs`` ``[batch, *spatial, channels]``, ``kernel`` ``[*window, channels /
        groups, filters]``, result ``[batch, *new_spatial, filters]``.

    Raises:
        ShapeError: If the channels do not match, or a window is larger than the input.
        ValueError: If ``padding`` or ``data_format`` is unknown.

    Example:
        >>> keras.ops.conv([[[1.0], [2.0], [4.0]]], [[[1.0]], [[1.0]]]).numpy().ravel()
        array([3., 6.], dtype=float32)
    """
    (inputs, kernel), _, layout = _prepare("conv", inputs, data_format, kernel)
    return convolution_ops.convolution(
        inputs, kernel, strides, padding.upper(), layout, dilation_rate
    )


@operation(call="inputs kernel")
def depthwise_conv(
    inputs: TensorLike,
    kernel: TensorLike,
    strides: ShapeLike = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: ShapeLike = 1,
) -> Tensor:
    """Depthwise convolution: convolve each channel with separate filters.

    Args:
        inputs: Input tensor with one to three spatial axes.
        kernel: Kernel ``[*window, channels, multiplier]``.
        strides: Distance between windows: an int, or one for each spatial axis.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.
        dilation_rate: Distance between the entries of a window: an int, or one for each
            spatial axis.

    Shapes:
        ``inputs`` ``[batch, *spatial, channels]``; channel c makes ``multiplier``
        output channels, from ``c * multiplier`` on.

    Raises:
        ShapeError: If the channels do not match, or a window is larger than the input.
        ValueError: If ``padding`` or ``data_format`` is unknown.
    """
    tensors, _, layout = _prepare("depthwise_conv", inputs, data_format, kernel)
    inputs, kernel = tensors
    *window, channels, multiplier = kernel.shape
    kernel = shapes.reshape(kernel, [*window, 1, channels * multiplier])
    return convolution_ops.convolution(
        inputs, kernel, strides, padding.upper(), layout, dilation_rate
    )


@operation(call="inputs depthwise_kernel pointwise_kernel")
def separable_conv(
    inputs: TensorLike,
    depthwise_kernel: TensorLike,
    pointwise_kernel: TensorLike,
    strides: ShapeLike = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: ShapeLike = 1,
) -> Tensor:
    """Separable convolution: `depthwise_conv`, then a pointwise `conv`.

    Args:
        inputs: Input tensor with one to three spatial axes.
        depthwise_kernel: Kernel ``[*window, channels, multiplier]``.
        pointwise_kernel: Kernel ``[*ones, channels * multiplier, filters]``, which
            mixes the channels.
        strides: Distance between windows: an int, or one for each spatial axis.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.
        dilation_rate: Distance between the entries of a window: an int, or one for each
            spatial axis.

    Shapes:
        ``inputs`` ``[batch, *spatial, channels]``, result ``[batch, *new_spatial,
        filters]``.

    Raises:
        ShapeError: If the channels do not match, or a window is larger than the input.
        ValueError: If ``padding`` or ``data_format`` is unknown.
    """
    result = depthwise_conv(
        inputs, depthwise_kernel, strides, padding, data_format, dilation_rate
    )
    return conv(result, pointwise_kernel, 1, "valid", data_format)


@operation(call="inputs kernel")
def conv_transpose(
    inputs: TensorLike,
    kernel: TensorLike,
    strides: ShapeLike = 1,
    padding: str = "valid",
    output_padding: ShapeLike | None = None,
    data_format: str | None = None,
    dilation_rate: ShapeLike = 1,
) -> Tensor:
    """Transposed convolution, the adjoint of `conv`.

    Each input adds its product with the kernel to a window of the result.

    Args:
        inputs: Input tensor with one to three spatial axes.
        kernel: Kernel ``[*window, filters, channels]``.
        strides: Distance between windows: an int, or one for each spatial axis.
        padding: "valid" or "same".
        output_padding: Number of further entries at the end of each spatial axis.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.
        dilation_rate: Distance between the entries of a window: an int, or one for each
            spatial axis.

    Shapes:
        ``inputs`` ``[batch, *spatial, channels]``. Without ``output_padding`` an axis
        of the result has ``size * strides`` entries with "same" padding, and all
        entries that a window reaches with "valid".

    Example:
        >>> x, kernel = [[[1.0], [2.0]]], [[[1.0]], [[3.0]]]
        >>> keras.ops.conv_transpose(x, kernel, strides=2).numpy().ravel()
        array([1., 3., 2., 6.], dtype=float32)
    """
    tensors, rank, layout = _prepare("conv_transpose", inputs, data_format, kernel)
    inputs, kernel = tensors
    strides, dilations = _per_axis(strides, rank), _per_axis(dilation_rate, rank)
    more = None if output_padding is None else _per_axis(output_padding, rank)
    data_format = checked_format("conv_transpose", data_format)
    _, *sizes, _ = to_channels_last(tuple(inputs.shape), data_format)
    sizes, margins = transposed_sizes(
        sizes, kernel.shape[:rank], strides, dilations, padding.lower(), more
    )
    margins = from_channels_last(((0, 0), *margins, (0, 0)), data_format)
    return convolution_ops.conv_transpose(
        inputs, kernel, sizes, strides, margins, layout, dilations
    )


# ------------------------------------------------------------------- images as columns


@operation
@keep_dtype
def unfold(
    x: TensorLike,
    kernel_size: ShapeLike,
    dilation: ShapeLike = 1,
    padding: ShapeLike = 0,
    stride: ShapeLike = 1,
) -> Tensor:
    """Extract the windows of images as columns (im2col).

    Args:
        x: Images with the channels first.
        kernel_size: Size of the windows: an int, or ``(height, width)``.
        dilation: Distance between the entries of a window: an int, or a pair.
        padding: Number of zeros on both sides: an int, or a pair.
        stride: Distance between windows: an int, or a pair.

    Shapes:
        ``[batch, channels, height, width]`` to ``[batch, channels * kernel_height *
        kernel_width, windows]``.

    Example:
        >>> keras.ops.unfold([[[[1, 2], [3, 4]]]], kernel_size=(1, 2)).numpy().tolist()
        [[[1, 3], [2, 4]]]
    """
    x = to_floating(x)
    (high, wide), dilation, padding, stride = _pairs(
        kernel_size, dilation, padding, stride
    )
    x = pad(x, [(0, 0), (0, 0), *[(n, n) for n in padding]])
    x = windows.unfold(x, -1, wide, stride[1], (0, 0), dilation[1])
    x = windows.unfold(x, -3, high, stride[0], (0, 0), dilation[0])
    batch, channels, rows, _, columns, _ = x.shape
    x = shapes.transpose(x, (0, 1, 3, 5, 2, 4))
    return shapes.reshape(x, [batch, channels * high * wide, rows * columns])


@operation
@keep_dtype
def fold(
    x: TensorLike,
    output_size: ShapeLike,
    kernel_size: ShapeLike,
    dilation: ShapeLike = 1,
    padding: ShapeLike = 0,
    stride: ShapeLike = 1,
) -> Tensor:
    """Add columns into images (col2im), the adjoint of `unfold`.

    Args:
        x: Columns, each the entries of a window.
        output_size: Size of the images: an int, or ``(height, width)``.
        kernel_size: Size of the windows: an int, or ``(height, width)``.
        dilation: Distance between the entries of a window: an int, or a pair.
        padding: Number of zeros on both sides: an int, or a pair.
        stride: Distance between windows: an int, or a pair.

    Shapes:
        ``[batch, channels * kernel_height * kernel_width, windows]`` to ``[batch,
        channels, *output_size]``.

    Example:
        >>> columns = [[[1, 3], [2, 4]]]
        >>> keras.ops.fold(columns, output_size=(2, 2), kernel_size=(1, 2)).numpy().tolist()
        [[[[1, 2], [3, 4]]]]
    """
    x = to_floating(x)
    (high, wide), dilation, padding, stride = _pairs(
        kernel_size, dilation, padding, stride
    )
    sizes = [n + 2 * p for n, p in zip(_per_axis(output_size, 2), padding)]
    rows, columns = (
        (n - d * (k - 1) - 1) // s + 1
        for n, d, k, s in zip(sizes, dilation, (high, wide), stride)
    )
    batch, depth, _ = x.shape
    channels = depth // (high * wide)
    x = shapes.reshape(x, [batch, channels, high, wide, rows, columns])
    x = shapes.transpose(x, (0, 1, 4, 2, 5, 3))
    x = windows.fold(x, sizes[1], -1, stride[1], (0, 0), dilation[1])
    x = windows.fold(x, sizes[0], -2, stride[0], (0, 0), dilation[0])
    top, left = padding
    return x[:, :, top : sizes[0] - top, left : sizes[1] - left]


def _pairs(*values):
    return [_per_axis(value, 2) for value in values]
