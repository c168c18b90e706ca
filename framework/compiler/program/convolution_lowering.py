"""Convolution and pooling in a plan: their memory is the plan's, in an order of their own.

Their kernels work on ``[channels, width, height, batch]`` and what they return is that,
transposed; so the plan's buffers have that shape, and the work between two convolutions
stays in this order (`Writer.entrywise`). Columns and masks are scratch of single calls.
"""

import math

import numpy as np

from tapewright.ops.array.shape import summed_axis
from tapewright.ops.convolution.correlation import (
    convolve_into,
    filter_gradient_into,
    input_gradient_into,
)
from tapewright.ops.convolution.im2col import columns_size
from tapewright.ops.convolution.pooling import (
    in_halves,
    maxima_of_sum,
    spread_to_halves,
)
from tapewright.ops.convolution.windows import positions, resized

from .lowering import NotRecorded, Recorded, form_of, turn

__all__ = []

# Entries of the rows of zeros that `relu` compares with: long runs, and in the cache.
ZEROS = 1 << 10


# ------------------------------------------------------------------------ convolution


def convolved(x, filters, space, out=None, **attributes):
    """`convolution` into ``[channels, width, height, batch]``."""
    out = None if out is None else out.transpose()
    return convolve_into(np, x, filters, space, out, **attributes).transpose()


def convolved_back(g, filters, space, out=None, **attributes):
    """`convolution_input_gradient` into ``[channels, width, height, batch]``."""
    out = None if out is None else out.transpose()
    return input_gradient_into(np, g, filters, space, out, **attributes).transpose()


def filter_gradient(x, g, space, out=None, **attributes):
    """`convolution_filter_gradient`."""
    return filter_gradient_into(np, x, g, space, out, **attributes)


def _is_reversed(x):
    """Whether an array has the order in memory that convolutions work in."""
    return turn(x.array) == tuple(range(x.ndim))[::-1]


def _is_plain(*arrays):
    return all([x.size and x.dtype.kind in "fc" for x in arrays])


def _write(writer, function, x, y, size, shape, attributes):
    space = writer.scratch((size,), x.dtype)
    args = (x.array, y.array, space)
    return writer.made("out", function, args, attributes, shape, x.dtype)


def _turned_size(x):
    return 0 if _is_reversed(x) else -(-x.size // 16) * 16


@form_of("convolution")
def _(writer, input, filters, **attributes):
    if not _is_plain(input, filters):
        raise NotRecorded
    *window, _, count = filters.shape
    spatial = input.shape[1:-1]
    _, counts = positions(
        spatial, window, attributes["strides"], attributes["padding"],
        attributes["dilations"],
    )  # fmt: skip
    if 0 in counts:
        raise NotRecorded
    size = _turned_size(input) + columns_size(input.shape, filters.shape, **attributes)
    shape = (count, *counts[::-1], input.shape[0])
    made = _write(writer, convolved, input, filters, size, shape, attributes)
    return made.transpose()


@form_of("convolution_input_gradient")
def _(writer, g, filters, *, size, **attributes):
    if not _is_plain(g, filters):
        raise NotRecorded
    channels = filters.shape[-2] * attributes["groups"]
    image = (g.shape[0], *size, channels)
    space = _turned_size(g) + columns_size(image, filters.shape, **attributes)
    attributes["size"] = size
    shape = (channels, *size[::-1], g.shape[0])
    made = _write(writer, convolved_back, g, filters, space, shape, attributes)
    return made.transpose()


@form_of("convolution_filter_gradient")
def _(writer, input, g, *, window, **attributes):
    if not _is_plain(input, g):
        raise NotRecorded
    shape = (*window, input.shape[-1] // attributes["groups"], g.shape[-1])
    size = _turned_size(input) + _turned_size(g) + -(-math.prod(shape) // 16) * 16
    size += columns_size(input.shape, shape, **attributes)
    attributes["window"] = window
    return _write(writer, filter_gradient, input, g, size, shape, attributes)


# ---------------------------------------------------------------------------- pooling


def spread(g, input, wins, out=None, *, axis):
    """`spread_to_maxima` for windows of two, in place of ``input`` if that ends here."""
    return spread_to_halves(g, input, wins, out, axis=axis)


spread.overwrites = 1  # the number of the argument in whose place the result may be


@form_of("spread_to_maxima")
def _(writer, g, input, maxima, *, axis, size, stride, padding, dilation):
    window = size, stride, padding, dilation
    pooled = resized(input.shape, axis, input.shape[axis] // 2)
    if not in_halves(input.shape, g.dtype, axis, *window) or g.shape != pooled:
        raise NotRecorded
    axes = turn(input.array)
    if axes is None:
        axes = tuple(range(input.ndim))
        back = axes
    else:
        back = tuple(sorted(axes, key=axes.__getitem__))
        input, g = input.transpose(back), g.transpose(back)
        axis = back.index(axis % input.ndim) - input.ndim
    wins = writer.scratch(g.shape, bool)
    args = (g.array, input.array, wins)
    made = writer.made("out", spread, args, {"axis": axis}, input.shape, g.dtype)
    return made.transpose(axes)


def with_nan(total, bias, input, out=None, *, windows, axes):
    """`add_to_maxima`, given the sum ``total``, whose axes lie in this order."""
    if out is None:
        out = total.copy()
    elif not np.may_share_memory(out, total):
        np.copyto(out, total)
    if (bias == np.inf).any():
        out.transpose(axes)[...] = maxima_of_sum(np, input, bias, windows)
    return out


with_nan.overwrites = 0  # `out` may be `total`


@form_of("add_to_maxima")
def _(writer, maxima, bias, input, *, windows):
    total = maxima + bias
    axes = turn(total.array)
    array, order = total.array, tuple(range(total.ndim))
    if axes is not None:
        array, order = array.call.args[0], axes
    kwargs = {"windows": windows, "axes": order}
    args = (array, bias.array, input.array)
    made = writer.made("out", with_nan, args, kwargs, array.shape, array.dtype)
    return made if axes is None else made.transpose(axes)


# --------------------------------------------------------- what stands between the two


@form_of("relu")
def _(writer, features):
    if features.ndim < 3 or features.dtype.kind != "f":
        raise NotRecorded
    return np.maximum(features, _zeros(features))


def _zeros(x):
    """Zeros of the shape of the last axes in memory, in the order of memory."""
    axes = turn(x.array) or tuple(range(x.ndim))
    size, shape = 1, [1] * x.ndim  # in memory
    back = sorted(range(x.ndim), key=axes.__getitem__)
    for i in reversed(range(x.ndim)):
        if size >= ZEROS:
            break
        shape[i] = x.shape[back[i]]
        size *= shape[i]
    return np.zeros(shape, x.dtype).transpose(axes)


@form_of("sum_to_shape")
def _(writer, x, *, shape):
    """Sums over all axes but one, of images: a product with ones."""
    axes = turn(x.array)
    kept = [i for i, n in enumerate(shape, x.ndim - len(shape)) if n != 1]
    simple = axes is not None and len(kept) == 1 and x.dtype.char in "fd"
    if not simple or x.size < 4096 or axes[kept[0]] != 0:
        raise NotRecorded
    inner = Recorded(x.array.call.args[0], writer)
    count = x.shape[kept[0]]
    return summed_axis(np, inner, count, x.size // count, 1).reshape(shape)
