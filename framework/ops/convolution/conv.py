"""Convolutions in one to three dimensions: plain, transposed, depthwise and separable.

The functions have TensorFlow's names and arguments and call the primitives of
`correlation`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tapewright.core.errors import ShapeError
from tapewright.core.rules import same_dtype
from tapewright.core.tensor import Tensor, convert_to_tensor, is_tensor
from tapewright.core.typing import IntLike, ShapeLike, TensorLike, as_shape

from ..array.shape import reshape, transpose
from .correlation import convolve, input_gradient
from .windows import CHANNELS_LAST, is_channels_first, positions, window_arguments

__all__ = [
    "atrous_conv2d",
    "atrous_conv2d_transpose",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "conv_transpose",
    "convolution",
    "depthwise_conv2d",
    "separable_conv2d",
]


# ------------------------------------------------------------- arguments, as in TensorFlow


def _moved(x, channels_to_front):
    """Move the channels from the last axis to the one behind the batch, or back."""
    rank = len(x.shape)
    last = rank - 1
    if channels_to_front:
        return transpose(x, (0, last, *range(1, last)))
    return transpose(x, (0, *range(2, rank), 1))


def _operands(who, rank, x, filters, kind="input"):
    """Return both as tensors of one dtype, with ranks checked and extra batch axes folded."""
    hint = filters.dtype if is_tensor(filters) else None
    x = convert_to_tensor(x, dtype_hint=hint)
    filters = convert_to_tensor(filters, dtype_hint=x.dtype)
    if len(x.shape) < rank + 2 or len(filters.shape) != rank + 2:
        raise ShapeError(who, f"{kind} must have rank {rank + 2} or more and filters rank "
                         f"{rank + 2}", **{kind: x, "filters": filters})  # fmt: skip
    same_dtype(who, **{kind: x, "filters": filters})
    if x.dtype.is_bool:
        raise TypeError(f"{who}: {kind} must be numbers, not {x.dtype.name}")
    lead = tuple(x.shape)[: -rank - 1]
    if len(lead) > 1:
        x = reshape(x, (math.prod(lead), *tuple(x.shape)[-rank - 1 :]))
    return x, filters, lead


def _filters_of_any_rank(who, input, filters):
    """Return the filters as a tensor, and their number of spatial axes."""
    hint = input.dtype if is_tensor(input) else None
    filters = convert_to_tensor(filters, dtype_hint=hint)
    rank = len(filters.shape) - 2
    if rank not in CHANNELS_LAST:
        raise ShapeError(who, "filters must have rank 3, 4 or 5", filters=filters)
    return filters, rank


def _unfolded(out, lead):
    return reshape(out, (*lead, *tuple(out.shape)[1:])) if len(lead) > 1 else out


def _convolve(
    who, rank, input, filters, strides, padding, data_format, dilations, depthwise=False
):
    first, strides, padding, dilations = window_arguments(
        who, rank, strides, padding, data_format, dilations
    )
    x, filters, lead = _operands(who, rank, input, filters)
    channels = x.shape[1 if first else -1]
    *window, depth, count = filters.shape
    if depthwise:
        groups, fits = depth, channels == depth
        rule = f"input must have {depth} channels, as axis -2 of the filter has"
        filters = reshape(filters, (*window, 1, depth * count))
    else:
        groups = max(channels // max(depth, 1), 1)
        fits = channels == groups * depth and count % groups == 0
        rule = f"input must have {depth} channels, as axis -2 of filters has" + (
            f", or a multiple of them that divides {count}" if depth < channels else ""
        )
    if not fits:
        raise ShapeError(who, rule, input=x, filters=filters)
    if first:
        x = _moved(x, False)
    size = tuple(x.shape)[1:-1]
    _, counts = positions(size, window, strides, padding, dilations)
    if 0 in counts and 0 not in size:
        raise ShapeError(who, f"filters with dilations {dilations} must not exceed the "
                         "input", input=x, filters=filters)  # fmt: skip
    out = convolve(x, filters, strides, padding, dilations, groups)
    return _unfolded(_moved(out, True) if first else out, lead)


# ---------------------------------------------------------------------------- convolution


def convolution(
    input: TensorLike,
    filters: TensorLike,
    strides: ShapeLike | None = None,
    padding: str | Sequence[Sequence[int]] = "VALID",
    data_format: str | None = None,
    dilations: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Convolution in one, two or three dimensions, by the rank of ``filters``.

    It calls `conv1d`, `conv2d` or `conv3d`.

    Args:
        input: Tensor ``[batch, *spatial, channels]``.
        filters: Tensor ``[*window, channels, filters]``; its rank selects the
            op.
        strides: Distance between windows: an int, or one per spatial axis; 1 by
            default.
        padding: "VALID" (no padding), "SAME" (zeros around the input, so that stride 1
            keeps the size), or a list of pairs ``(before, after)`` of zeros for all
            axes, batch and channels included.
        data_format: Layout of input and output, such as "NHWC" or "NCHW"; it must match
            the number of axes. Channels last by default.
        dilations: Distance between the entries of a window: an int, or one per spatial
            axis; 1 by default.

    Shapes:
        ``input`` ``[batch, *spatial, channels]``, ``filters``
        ``[*window, channels, filters]``, result ``[batch, *new_spatial, filters]``.

    Raises:
        ShapeError: If the channels of ``input`` and ``filters`` do not match, or a
            window is larger than the input.
        ValueError: If ``strides``, ``padding``, ``data_format`` or ``dilations`` is
            invalid.
    """
    filters, rank = _filters_of_any_rank("convolution", input, filters)
    return _convolve(
        "convolution", rank, input, filters, strides, padding, data_format, dilations
    )


def conv1d(
    input: TensorLike,
    filters: TensorLike,
    stride: ShapeLike,
    padding: str | Sequence[Sequence[int]],
    data_format: str | None = "NWC",
    dilations: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """1-D convolution over sequences: `conv2d` with one spatial axis.

        out[n, i, o] = sum_{j, c} input[n, i * stride + j * dilation, c] * filters[j, c, o]

    Args:
        input: Tensor ``[batch, length, channels]``.
        filters: Tensor ``[window, channels, filters]``.
        stride: Distance between windows.
        padding: "VALID" (no padding), "SAME" (zeros around the input, so that stride 1
            keeps the size), or a list of pairs ``(before, after)`` of zeros for all
            axes, batch and channels included.
        data_format: "NWC" or "NCW", the layout of input and output.
        dilations: Distance between the entries of a window: an int, or one per spatial
            axis; 1 by default.

    Shapes:
        ``input`` ``[batch, length, channels]``, ``filters``
        ``[window, channels, filters]``, result ``[batch, new_length, filters]``. The
        input may have more leading axes.

    Raises:
        ShapeError: If the channels of ``input`` and ``filters`` do not match, or a
            window is larger than the input.
        ValueError: If ``strides``, ``padding``, ``data_format`` or ``dilations`` is
            invalid.

    Example:
        >>> x = [[[1.0], [2.0], [4.0]]]
        >>> tw.nn.conv1d(x, [[[1.0]], [[1.0]]], 1, "VALID").numpy().ravel()
        array([3., 6.], dtype=float32)
    """
    return _convolve(
        "conv1d", 1, input, filters, stride, padding, data_format, dilations
    )


def conv2d(
    input: TensorLike,
    filters: TensorLike,
    strides: ShapeLike,
    padding: str | Sequence[Sequence[int]],
    data_format: str | None = "NHWC",
    dilations: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """2-D convolution of images: each output pixel is a window multiplied by the filters.

        out[n, y, x, o] = sum_{i, j, c} input[n, y * s + i * d, x * s + j * d, c]
                                        * filters[i, j, c, o]

    with strides ``s`` and dilations ``d``.

    Args:
        input: Images, a tensor ``[batch, height, width, channels]``.
        filters: Tensor ``[window_height, window_width, channels, filters]``.
        strides: Distance between windows: an int, or one per spatial axis (or one per
            axis, with 1 for batch and channels).
        padding: "VALID" (no padding), "SAME" (zeros around the input, so that stride 1
            keeps the size), or a list of pairs ``(before, after)`` of zeros for all
            axes, batch and channels included.
        data_format: "NHWC" or "NCHW", the layout of input and output.
        dilations: Distance between the entries of a window: an int, or one per spatial
            axis; 1 by default.

    Shapes:
        ``input`` ``[batch, height, width, channels]``, ``filters``
        ``[window_height, window_width, channels, filters]``, result
        ``[batch, new_height, new_width, filters]``. If the filters have fewer channels
        than the input, by a factor ``g``, the convolution is grouped: part i of the
        input channels produces part i of the output channels.

    Raises:
        ShapeError: If the channels of ``input`` and ``filters`` do not match, or a
            window is larger than the input.
        ValueError: If ``strides``, ``padding``, ``data_format`` or ``dilations`` is
            invalid.

    Example:
        >>> image = [[[[1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0]]]]
        >>> tw.nn.conv2d(image, [[[[1.0]], [[-1.0]]]], 1, "VALID").numpy()[0, :, :, 0]
        array([[-1., -1.],
               [-1., -1.]], dtype=float32)
    """
    return _convolve(
        "conv2d", 2, input, filters, strides, padding, data_format, dilations
    )


def conv3d(
    input: TensorLike,
    filters: TensorLike,
    strides: ShapeLike,
    padding: str | Sequence[Sequence[int]],
    data_format: str | None = "NDHWC",
    dilations: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """3-D convolution over volumes: `conv2d` with a third spatial axis, depth.

    Args:
        input: Tensor ``[batch, depth, height, width, channels]``.
        filters: Tensor
            ``[window_depth, window_height, window_width, channels, filters]``.
        strides: Distance between windows: an int, or one per spatial axis (or one per
            axis, with 1 for batch and channels).
        padding: "VALID" (no padding), "SAME" (zeros around the input, so that stride 1
            keeps the size), or a list of pairs ``(before, after)`` of zeros for all
            axes, batch and channels included.
        data_format: "NDHWC" or "NCDHW", the layout of input and output.
        dilations: Distance between the entries of a window: an int, or one per spatial
            axis; 1 by default.

    Shapes:
        ``input`` ``[batch, depth, height, width, channels]``, ``filters``
        ``[window_depth, window_height, window_width, channels, filters]``, result
        ``[batch, new_depth, new_height, new_width, filters]``.

    Raises:
        ShapeError: If the channels of ``input`` and ``filters`` do not match, or a
            window is larger than the input.
        ValueError: If ``strides``, ``padding``, ``data_format`` or ``dilations`` is
            invalid.

    Example:
        >>> volume, filters = tw.ones([1, 4, 4, 4, 2]), tw.ones([3, 3, 3, 2, 8])
        >>> tw.nn.conv3d(volume, filters, 1, "SAME").shape
        TensorShape([1, 4, 4, 4, 8])
    """
    return _convolve(
        "conv3d", 3, input, filters, strides, padding, data_format, dilations
    )


def atrous_conv2d(
    value: TensorLike,
    filters: TensorLike,
    rate: IntLike,
    padding: str | Sequence[Sequence[int]],
    name: str | None = None,
) -> Tensor:
    """Dilated (atrous) 2-D convolution: `conv2d` with ``dilations=rate`` and stride 1.

    Args:
        value: Images, a tensor ``[batch, height, width, channels]``.
        filters: Tensor ``[window_height, window_width, channels, filters]``.
        rate: Distance between the entries of a window, 1 or more.
        padding: "VALID" (no padding), "SAME" (zeros around the input, so that stride 1
            keeps the size), or a list of pairs ``(before, after)`` of zeros for all
            axes, batch and channels included.

    Raises:
        ValueError: If ``rate`` is less than 1.
    """
    return _convolve("atrous_conv2d", 2, value, filters, 1, padding, "NHWC", rate)


def depthwise_conv2d(
    input: TensorLike,
    filter: TensorLike,
    strides: ShapeLike,
    padding: str | Sequence[Sequence[int]],
    data_format: str | None = None,
    dilations: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Depthwise 2-D convolution: each channel is convolved with ``multiplier`` filters.

        out[n, y, x, c * multiplier + m] =
            sum_{i, j} input[n, y * s + i * d, x * s + j * d, c] * filter[i, j, c, m]

    with strides ``s`` and dilations ``d``.

    Args:
        input: Images, a tensor ``[batch, height, width, channels]``.
        filter: Tensor ``[window_height, window_width, channels, multiplier]``.
        strides: Distance between windows: an int, or one per spatial axis (or one per
            axis, with 1 for batch and channels).
        padding: "VALID" (no padding), "SAME" (zeros around the input, so that stride 1
            keeps the size), or a list of pairs ``(before, after)`` of zeros for all
            axes, batch and channels included.
        data_format: "NHWC" (the default) or "NCHW", the layout of input and output.
        dilations: Distance between the entries of a window: an int, or one per spatial
            axis; 1 by default.

    Shapes:
        ``input`` ``[batch, height, width, channels]``, ``filter``
        ``[window_height, window_width, channels, multiplier]``, result
        ``[batch, new_height, new_width, channels * multiplier]``.

    Raises:
        ShapeError: If the channels of ``input`` and ``filter`` do not match, or a
            window is larger than the input.
        ValueError: If ``strides``, ``padding``, ``data_format`` or ``dilations`` is
            invalid.

    Example:
        >>> image, filters = tw.ones([1, 4, 4, 3]), tw.ones([3, 3, 3, 2])
        >>> tw.nn.depthwise_conv2d(image, filters, 1, "VALID").shape
        TensorShape([1, 2, 2, 6])
    """
    return _convolve(
        "depthwise_conv2d", 2, input, filter, strides, padding, data_format, dilations,
        depthwise=True,
    )  # fmt: skip


def separable_conv2d(
    input: TensorLike,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorLike,
    strides: ShapeLike,
    padding: str | Sequence[Sequence[int]],
    data_format: str | None = None,
    dilations: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Separable 2-D convolution: a depthwise convolution, then a 1 x 1 convolution.

    It is a `depthwise_conv2d` followed by a `conv2d` with window 1 x 1, which mixes the
    channels.

    Args:
        input: Images, a tensor ``[batch, height, width, channels]``.
        depthwise_filter: Tensor
            ``[window_height, window_width, channels, multiplier]``.
        pointwise_filter: Tensor ``[1, 1, channels * multiplier, filters]``.
        strides: Distance between the windows of the depthwise convolution: an int, or
            one per spatial axis (or one per axis, with 1 for batch and channels).
        padding: "VALID" (no padding), "SAME" (zeros around the input, so that stride 1
            keeps the size), or a list of pairs ``(before, after)`` of zeros for all
            axes, batch and channels included.
        data_format: "NHWC" (the default) or "NCHW", the layout of input and output.
        dilations: Distance between the entries of a depthwise window: an int, or one
            per spatial axis; 1 by default.

    Shapes:
        ``input`` ``[batch, height, width, channels]``, ``depthwise_filter``
        ``[window_height, window_width, channels, multiplier]``, ``pointwise_filter``
        ``[1, 1, channels * multiplier, filters]``, result
        ``[batch, new_height, new_width, filters]``.

    Example:
        >>> image, depthwise = tw.ones([1, 4, 4, 3]), tw.ones([3, 3, 3, 1])
        >>> pointwise = tw.ones([1, 1, 3, 8])
        >>> tw.nn.separable_conv2d(image, depthwise, pointwise, 1, "SAME").shape
        TensorShape([1, 4, 4, 8])
    """
    pointwise = convert_to_tensor(pointwise_filter)
    if len(pointwise.shape) != 4 or tuple(pointwise.shape)[:2] != (1, 1):
        raise ShapeError("separable_conv2d", "pointwise_filter must be [1, 1, channels * "
                         "multiplier, filters]", pointwise_filter=pointwise)  # fmt: skip
    between = depthwise_conv2d(
        input, depthwise_filter, strides, padding, data_format, dilations
    )
    first = is_channels_first("separable_conv2d", data_format, 2)
    if between.shape[1 if first else -1] != pointwise.shape[2]:
        raise ShapeError("separable_conv2d", "axis -2 of pointwise_filter must have size "
                         f"channels * multiplier, {between.shape[1 if first else -1]}",
                         pointwise_filter=pointwise)  # fmt: skip
    return conv2d(between, pointwise, 1, "VALID", data_format or "NHWC")


# --------------------------------------------------------------- transposed convolution


def _convolve_transpose(
    who, rank, input, filters, output_shape, strides, padding, data_format, dilations
):
    first, strides, padding, dilations = window_arguments(
        who, rank, strides, padding, data_format, dilations
    )
    g, filters, lead = _operands(who, rank, input, filters)
    if first:
        g = _moved(g, False)
    dims = as_shape(output_shape)
    window = tuple(filters.shape)[:-2]
    if len(dims) in (rank, rank + 2):
        size = dims if len(dims) == rank else dims[2:] if first else dims[1:-1]
        _, counts = positions(size, window, strides, padding, dilations)
    else:
        size, counts = None, ()
    depth, count = tuple(filters.shape)[-2:]
    batch = g.shape[0] if len(lead) > 1 else lead[0]
    others = (dims[0], dims[1 if first else -1]) if len(dims) == rank + 2 else None
    if counts != tuple(g.shape)[1:-1] or others not in (None, (batch, depth)):
        sized = None if size is None else ", which requires an input of size"
        raise ShapeError(
            who,
            "output_shape must have the batch size of the input, the channels of axis -2 "
            "of filters, and a spatial size that a convolution maps to the size of the "
            f"input; got {dims}" + (f"{sized} {counts}" if sized else ""),
            input=g,
            filters=filters,
        )
    if g.shape[-1] != count:
        raise ShapeError(who, f"input must have as many channels as axis -1 of filters, "
                         f"{count}", input=g, filters=filters)  # fmt: skip
    out = input_gradient(g, filters, size, strides, padding, dilations, 1)
    return _unfolded(_moved(out, True) if first else out, lead)


def conv_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: ShapeLike,
    strides: ShapeLike,
    padding: str | Sequence[Sequence[int]] = "SAME",
    data_format: str | None = None,
    dilations: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Transposed convolution in one, two or three dimensions, by the rank of ``filters``.

    It calls `conv1d_transpose`, `conv2d_transpose` or `conv3d_transpose`.

    Args:
        input: Tensor ``[batch, *spatial, channels]``.
        filters: Tensor ``[*window, filters, channels]``; its rank selects the
            op.
        output_shape: Shape of the output, in full or its spatial part only. It is
            required, since inputs of several sizes have convolutions of the same size.
        strides: Distance between windows: an int, or one per spatial axis (or one per
            axis, with 1 for batch and channels).
        padding: "VALID" (no padding), "SAME" (zeros around the input, so that stride 1
            keeps the size), or a list of pairs ``(before, after)`` of zeros for all
            axes, batch and channels included.
        data_format: Layout of input and output, such as "NHWC" or "NCHW"; it must match
            the number of axes. Channels last by default.
        dilations: Distance between the entries of a window: an int, or one per spatial
            axis; 1 by default.

    Raises:
        ShapeError: If a forward convolution would not map ``output_shape`` to the shape
            of ``input``.
        ValueError: If ``strides``, ``padding``, ``data_format`` or ``dilations`` is
            invalid.
    """
    filters, rank = _filters_of_any_rank("conv_transpose", input, filters)
    return _convolve_transpose(
        "conv_transpose", rank, input, filters, output_shape, strides, padding,
        data_format, dilations,
    )  # fmt: skip


def conv1d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: ShapeLike,
    strides: ShapeLike,
    padding: str | Sequence[Sequence[int]] = "SAME",
    data_format: str | None = "NWC",
    dilations: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Transposed 1-D convolution: `conv2d_transpose` with one spatial axis.

    Args:
        input: Tensor ``[batch, length, channels]``.
        filters: Tensor ``[window, filters, channels]``.
        output_shape: Shape of the output, in full or its spatial part only. It is
            required, since inputs of several sizes have convolutions of the same size.
        strides: Distance between windows: an int, or one per spatial axis (or one per
            axis, with 1 for batch and channels).
        padding: "VALID" (no padding), "SAME" (zeros around the input, so that stride 1
            keeps the size), or a list of pairs ``(before, after)`` of zeros for all
            axes, batch and channels included.
        data_format: "NWC" or "NCW", the layout of input and output.
        dilations: Distance between the entries of a window: an int, or one per spatial
            axis; 1 by default.

    Shapes:
        ``input`` ``[batch, length, channels]``, ``filters``
        ``[window, filters, channels]``, result ``[batch, new_length, filters]``.

    Raises:
        ShapeError: If a forward convolution would not map ``output_shape`` to the shape
            of ``input``.
        ValueError: If ``strides``, ``padding``, ``data_format`` or ``dilations`` is
            invalid.

    Example:
        >>> x, filters = [[[1.0], [2.0]]], [[[1.0]], [[3.0]]]
        >>> tw.nn.conv1d_transpose(x, filters, [4], 2).numpy().ravel()
        array([1., 3., 2., 6.], dtype=float32)
    """
    return _convolve_transpose(
        "conv1d_transpose", 1, input, filters, output_shape, strides, padding,
        data_format, dilations,
    )  # fmt: skip


def conv2d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: ShapeLike,
    strides: ShapeLike,
    padding: str | Sequence[Sequence[int]] = "SAME",
    data_format: str | None = "NHWC",
    dilations: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Transposed 2-D convolution: the gradient of `conv2d` with respect to its input.

        out[n, y, x, o] = sum_{i, j, c} input[n, (y - i * d) / s, (x - j * d) / s, c]
                                        * filters[i, j, o, c]   where s divides

    with strides ``s`` and dilations ``d``; ``input`` is the cotangent of the
    convolution.

    Args:
        input: Images, a tensor ``[batch, height, width, channels]``.
        filters: Tensor ``[window_height, window_width, filters, channels]``.
        output_shape: Shape of the output, in full or its spatial part only. It is
            required, since inputs of several sizes have convolutions of the same size.
        strides: Distance between windows: an int, or one per spatial axis (or one per
            axis, with 1 for batch and channels).
        padding: "VALID" (no padding), "SAME" (zeros around the input, so that stride 1
            keeps the size), or a list of pairs ``(before, after)`` of zeros for all
            axes, batch and channels included.
        data_format: "NHWC" or "NCHW", the layout of input and output.
        dilations: Distance between the entries of a window: an int, or one per spatial
            axis; 1 by default.

    Shapes:
        ``input`` ``[batch, height, width, channels]``, ``filters``
        ``[window_height, window_width, filters, channels]``, result
        ``[batch, new_height, new_width, filters]``.

    Raises:
        ShapeError: If a forward convolution would not map ``output_shape`` to the shape
            of ``input``.
        ValueError: If ``strides``, ``padding``, ``data_format`` or ``dilations`` is
            invalid.

    Example:
        >>> x, filters = [[[[1.0], [2.0]]]], [[[[1.0]], [[3.0]]]]
        >>> tw.nn.conv2d_transpose(x, filters, (1, 1, 4, 1), (1, 2)).numpy().ravel()
        array([1., 3., 2., 6.], dtype=float32)
    """
    return _convolve_transpose(
        "conv2d_transpose", 2, input, filters, output_shape, strides, padding,
        data_format, dilations,
    )  # fmt: skip


def conv3d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: ShapeLike,
    strides: ShapeLike,
    padding: str | Sequence[Sequence[int]] = "SAME",
    data_format: str | None = "NDHWC",
    dilations: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Transposed 3-D convolution: `conv2d_transpose` with a third spatial axis, depth.

    Args:
        input: Tensor ``[batch, depth, height, width, channels]``.
        filters: Tensor
            ``[window_depth, window_height, window_width, filters, channels]``.
        output_shape: Shape of the output, in full or its spatial part only. It is
            required, since inputs of several sizes have convolutions of the same size.
        strides: Distance between windows: an int, or one per spatial axis (or one per
            axis, with 1 for batch and channels).
        padding: "VALID" (no padding), "SAME" (zeros around the input, so that stride 1
            keeps the size), or a list of pairs ``(before, after)`` of zeros for all
            axes, batch and channels included.
        data_format: "NDHWC" or "NCDHW", the layout of input and output.
        dilations: Distance between the entries of a window: an int, or one per spatial
            axis; 1 by default.

    Shapes:
        ``input`` ``[batch, depth, height, width, channels]``, ``filters``
        ``[window_depth, window_height, window_width, filters, channels]``, result
        ``[batch, new_depth, new_height, new_width, filters]``.

    Raises:
        ShapeError: If a forward convolution would not map ``output_shape`` to the shape
            of ``input``.
        ValueError: If ``strides``, ``padding``, ``data_format`` or ``dilations`` is
            invalid.
    """
    return _convolve_transpose(
        "conv3d_transpose", 3, input, filters, output_shape, strides, padding,
        data_format, dilations,
    )  # fmt: skip


def atrous_conv2d_transpose(
    value: TensorLike,
    filters: TensorLike,
    output_shape: ShapeLike,
    rate: IntLike,
    padding: str | Sequence[Sequence[int]],
    name: str | None = None,
) -> Tensor:
    """Transposed dilated convolution: the gradient of `atrous_conv2d` by its input.

    Args:
        value: Images, a tensor ``[batch, height, width, channels]``.
        filters: Tensor ``[window_height, window_width, filters, channels]``.
        output_shape: Shape of the output, in full or its spatial part only. It is
            required, since inputs of several sizes have convolutions of the same size.
        rate: Distance between the entries of a window, 1 or more.
        padding: "VALID" (no padding), "SAME" (zeros around the input, so that stride 1
            keeps the size), or a list of pairs ``(before, after)`` of zeros for all
            axes, batch and channels included.
    """
    return _convolve_transpose(
        "atrous_conv2d_transpose", 2, value, filters, output_shape, 1, padding, "NHWC",
        rate,
    )  # fmt: skip
