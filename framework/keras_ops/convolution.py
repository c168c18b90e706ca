"""`keras.ops` that slide windows over one to three spatial axes: `conv`, `max_pool`, ...

``data_format`` is "channels_last" (None) or "channels_first", as for Keras' layers.
"""

from tapewright.layers import adaptive_pooling
from tapewright.layers.spatial import format_of_ops

from ..ops import convolution, pooling, sliding
from ..ops import shape as shapes
from ..ops.joining import pad
from .arrays import moveaxis
from .promotion import floating, one_node, together

__all__ = [
    "adaptive_average_pool",
    "adaptive_max_pool",
    "average_pool",
    "conv",
    "conv_transpose",
    "depthwise_conv",
    "fold",
    "max_pool",
    "separable_conv",
    "unfold",
]


def _prepared(who, inputs, data_format, *kernels):
    """The tensors in one dtype, the number of spatial axes, and the ops' data format."""
    inputs, *kernels = together(inputs, *kernels, at_least=float)
    rank = inputs.ndim - 2
    if rank not in (1, 2, 3):
        raise ValueError(
            f"{who}: inputs must have 3, 4 or 5 axes, got shape {tuple(inputs.shape)}"
        )
    data_format = data_format or "channels_last"
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(
            f"{who}: data_format must be 'channels_last' or 'channels_first', got "
            f"{data_format!r}"
        )
    return [inputs, *kernels], rank, format_of_ops(data_format, rank)


def _several(value, rank):
    return (value,) * rank if isinstance(value, int) else tuple(value)


# ------------------------------------------------------------------------- pooling


@one_node
def max_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    """The largest entry of each window; ``strides``: by default the ``pool_size``."""
    (inputs,), _, layout = _prepared("max_pool", inputs, data_format)
    strides = pool_size if strides is None else strides
    return pooling.max_pool(inputs, pool_size, strides, padding.upper(), layout)


@one_node
def average_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    """The mean of each window; ``strides``: by default the ``pool_size``."""
    (inputs,), _, layout = _prepared("average_pool", inputs, data_format)
    strides = pool_size if strides is None else strides
    return pooling.avg_pool(inputs, pool_size, strides, padding.upper(), layout)


@one_node
def adaptive_average_pool(inputs, output_size, data_format=None):
    """The means of ``output_size`` windows that cover each spatial axis."""
    return _adapted("Average", inputs, output_size, data_format)


@one_node
def adaptive_max_pool(inputs, output_size, data_format=None):
    """The largest entries of ``output_size`` windows that cover each spatial axis."""
    return _adapted("Max", inputs, output_size, data_format)


def _adapted(kind, inputs, output_size, data_format):
    name = f"Adaptive{kind}Pooling"
    (inputs,), rank, _ = _prepared(name, inputs, data_format)
    layer = getattr(adaptive_pooling, f"{name}{rank}D")
    return layer(output_size, data_format, name=name).call(inputs)


# --------------------------------------------------------------------- convolution


@one_node
def conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    """Each output is the product of its window of ``inputs`` with ``kernel``.

    Shapes: ``inputs`` ``[batch, *spatial, channels]``, ``kernel`` ``[*window, channels /
    groups, filters]``.

    >>> conv([[[1.0], [2.0], [4.0]]], [[[1.0]], [[1.0]]]).numpy().ravel()
    array([3., 6.], dtype=float32)
    """
    (inputs, kernel), _, layout = _prepared("conv", inputs, data_format, kernel)
    return convolution.convolution(
        inputs, kernel, strides, padding.upper(), layout, dilation_rate
    )


@one_node
def depthwise_conv(
    inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1
):
    """Each channel convolved with filters of its own.

    Shapes: ``kernel`` ``[*window, channels, multiplier]`` with one or two axes of windows;
    channel c makes the output channels ``c * multiplier`` and following.
    """
    (inputs, kernel), rank, _ = _prepared("depthwise_conv", inputs, data_format, kernel)
    first = data_format == "channels_first"
    return _in_two_axes(
        "depthwise_conv", inputs, rank, strides, dilation_rate, first,
        lambda x, steps, holes, flat: convolution.depthwise_conv2d(
            x, kernel[None] if flat else kernel, steps, padding.upper(), "NHWC", holes
        ),
    )  # fmt: skip


@one_node
def separable_conv(
    inputs,
    depthwise_kernel,
    pointwise_kernel,
    strides=1,
    padding="valid",
    data_format=None,
    dilation_rate=1,
):
    """`depthwise_conv`, then a `conv` with windows of size 1 that mixes the channels."""
    found = depthwise_conv(
        inputs, depthwise_kernel, strides, padding, data_format, dilation_rate
    )
    return conv(found, pointwise_kernel, 1, "valid", data_format)


def _in_two_axes(who, x, rank, strides, dilations, first, function):
    """``function(x, strides, dilations, flat)`` on two spatial axes, channels last."""
    if rank > 2:
        raise ValueError(
            f"{who}: inputs must have 3 or 4 axes, got shape {tuple(x.shape)}"
        )
    strides, dilations = _several(strides, rank), _several(dilations, rank)
    x = moveaxis(x, 1, -1) if first else x
    flat = rank == 1
    if flat:
        x = shapes.expand_dims(x, 1)
        strides, dilations = strides * 2, (1, *dilations)
    out = function(x, strides, dilations, flat)
    out = shapes.squeeze(out, 1) if flat else out
    return moveaxis(out, -1, 1) if first else out


@one_node
def conv_transpose(
    inputs,
    kernel,
    strides=1,
    padding="valid",
    output_padding=None,
    data_format=None,
    dilation_rate=1,
):
    """The adjoint of a `conv`: each input adds its product with ``kernel`` to a window.

    Shapes: ``kernel`` ``[*window, filters, channels]``; the outputs have ``size *
    strides`` entries on an axis with ``padding`` "same", all that a window reaches with
    "valid", and others with ``output_padding``.
    """
    tensors, rank, layout = _prepared("conv_transpose", inputs, data_format, kernel)
    inputs, kernel = tensors
    strides, dilations = _several(strides, rank), _several(dilation_rate, rank)
    more = (None,) * rank if output_padding is None else _several(output_padding, rank)
    first = data_format == "channels_first"
    sizes, margins = inputs.shape[2:] if first else inputs.shape[1:-1], []
    wanted = []
    for i, n in enumerate(sizes):
        reach = (kernel.shape[i] - 1) * dilations[i] + 1
        excess = _excess(reach, strides[i], padding.lower() == "same", more[i])
        wanted.append((n - 1) * strides[i] + reach - excess)
        margins.append((max(excess, 0) // 2, max(excess, 0) - max(excess, 0) // 2))
    pairs = [(0, 0), (0, 0), *margins] if first else [(0, 0), *margins, (0, 0)]
    return convolution.conv_transpose(
        inputs, kernel, wanted, strides, pairs, layout, dilations
    )


def _excess(reach, stride, same, more):
    """By how many entries the outputs are fewer than the windows reach over."""
    if more is not None:
        return reach - (reach % 2 if same else reach) - more
    return reach - stride if same else min(reach - stride, 0)


# ------------------------------------------------------------------- images as columns


@one_node
def unfold(x, kernel_size, dilation=1, padding=0, stride=1):
    """The windows of images ``[batch, channels, height, width]`` as columns.

    Shape: ``[batch, channels * kernel height * kernel width, windows]``.
    """
    x = floating(x)
    (high, wide), dilation, padding, stride = _pairs(
        kernel_size, dilation, padding, stride
    )
    x = pad(x, [(0, 0), (0, 0), *[(n, n) for n in padding]])
    x = sliding.unfold(x, -1, wide, stride[1], (0, 0), dilation[1])
    x = sliding.unfold(x, -3, high, stride[0], (0, 0), dilation[0])
    batch, channels, rows, _, columns, _ = x.shape
    x = shapes.transpose(x, (0, 1, 3, 5, 2, 4))
    return shapes.reshape(x, [batch, channels * high * wide, rows * columns])


@one_node
def fold(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The adjoint of `unfold`: columns added into images of ``output_size``."""
    x = floating(x)
    (high, wide), dilation, padding, stride = _pairs(
        kernel_size, dilation, padding, stride
    )
    sizes = [n + 2 * p for n, p in zip(_several(output_size, 2), padding)]
    rows, columns = (
        (n - d * (k - 1) - 1) // s + 1
        for n, d, k, s in zip(sizes, dilation, (high, wide), stride)
    )
    batch, depth, _ = x.shape
    channels = depth // (high * wide)
    x = shapes.reshape(x, [batch, channels, high, wide, rows, columns])
    x = shapes.transpose(x, (0, 1, 4, 2, 5, 3))
    x = sliding.fold(x, sizes[1], -1, stride[1], (0, 0), dilation[1])
    x = sliding.fold(x, sizes[0], -2, stride[0], (0, 0), dilation[0])
    top, left = padding
    return x[:, :, top : sizes[0] - top, left : sizes[1] - left]


def _pairs(*values):
    return [_several(value, 2) for value in values]
