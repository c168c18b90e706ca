"""Lowering rules of convolution and pooling, whose arrays are not in C order.

Their kernels work on ``[channels, width, height, batch]`` and return a transposed view
of it; so the buffers have that shape, and computations between two convolutions stay in
this order (`Builder.entrywise`). Columns and masks are scratch memory of single
instructions.
"""

import math

import numpy as np

from tapewright.ops.convolution.correlation import (
    convolve,
    convolve_into,
    filter_gradient,
    filter_gradient_into,
    input_gradient,
    input_gradient_into,
)
from tapewright.ops.convolution.grouped import group_columns_size
from tapewright.ops.convolution.im2col import turn_into
from tapewright.ops.convolution.pooling import (
    add_to_maxima_p,
    maxima_of_sum,
    pick_at_maxima_p,
    spread_means_p,
    spread_to_maxima_p,
    window_max_p,
    window_mean_p,
)
from tapewright.ops.convolution.windows import (
    is_everywhere,
    positions,
    taps,
)
from tapewright.ops.nn.activation import relu

from ..index_maps import IndexMaps, convolution_maps
from ..instructions.array_instructions import Contract, Copy, Routine, permutation
from ..instructions.call_instructions import Opaque
from ..program import Kind
from .array_functions import NotTraceable

# Entries of the rows of zeros that `relu` compares with: long runs, and in the cache.
ZEROS = 1 << 10
# Entries of filters from which on windows of one entry are left to products of matrices.
LARGE = 1 << 18


# ------------------------------------------------------------------------ convolution


def run_convolution(x, filters, space, out=None, **attributes):
    """`convolution` into ``[channels, width, height, batch]``."""
    out = None if out is None else out.transpose()
    return convolve_into(np, x, filters, space, out, **attributes).transpose()


def run_input_gradient(g, filters, space, out=None, **attributes):
    """`convolution_input_gradient` into ``[channels, width, height, batch]``."""
    out = None if out is None else out.transpose()
    return input_gradient_into(np, g, filters, space, out, **attributes).transpose()


def run_filter_gradient(x, g, space, out=None, **attributes):
    """`convolution_filter_gradient`."""
    return filter_gradient_into(np, x, g, space, out, **attributes)


def turned_copy(x, out=None):
    """Copy ``[c, w, h, n]``, a view of an array ``[n, h, w, c]``, into C order."""
    out = np.empty(x.shape, x.dtype) if out is None else out
    return turn_into(x.transpose(), out)


def _turned_input(builder, x, window):
    """Return an input of the program in the order of convolutions: transposed just once.

    Filters of one entry read it in place. Images are transposed for each convolution
    and again for its filters unless channels are in groups, where transposing takes
    longer than the sums: the images would need twice their memory from the forward pass
    on.
    """
    if (
        _is_reversed(x)
        or x.buffer.base.kind is not Kind.INPUT
        or math.prod(window) == 1
    ):
        return x
    view = x.transpose()
    instruction = Copy(turned_copy, (view.buffer,), builder.node)
    return builder.emit(instruction, view.shape, x.dtype).transpose()


def _is_reversed(x):
    """Return whether an array has the memory order of convolutions."""
    return permutation(x.buffer) == tuple(range(x.ndim))[::-1]


def _check_plain(*arrays):
    if not all([x.size and x.dtype.kind in "fc" for x in arrays]):
        raise NotTraceable


def _reordered_size(x):
    return 0 if _is_reversed(x) else -(-x.size // 16) * 16


def _contract(builder, function, x, y, size, shape, attributes, maps):
    """Append a contraction of two arrays with ``size`` entries of scratch memory."""
    space = builder.scratch((size,), x.dtype)
    operands = (x.buffer, y.buffer, space)
    instruction = Contract(function, operands, builder.node, attributes, maps)
    return builder.emit(instruction, shape, x.dtype)


def _maps(images, filters, attributes):
    """Return ``(loops, images, filters, outputs)``, see `convolution_maps`."""
    *window, _, count = filters
    strides, dilations = attributes["strides"], attributes["dilations"]
    padding, groups = attributes["padding"], attributes["groups"]
    margins, counts = positions(images[1:-1], window, strides, padding, dilations)
    befores = [before for before, _ in margins]
    return convolution_maps(
        images, window, counts, count, strides, befores, dilations, groups
    )


def lower_convolution(builder, input, filters, **attributes):
    """Lower to one contraction; the result is in reverse memory order."""
    _check_plain(input, filters)
    *window, _, count = filters.shape
    spatial = input.shape[1:-1]
    _, counts = positions(
        spatial, window, attributes["strides"], attributes["padding"],
        attributes["dilations"],
    )  # fmt: skip
    if 0 in counts:
        raise NotTraceable
    if attributes["groups"] > 1:
        input = _turned_input(builder, input, window)
    size = group_columns_size(input.shape, filters.shape, **attributes)
    size += _reordered_size(input)
    shape = (count, *counts[::-1], input.shape[0])

    def maps():
        all_maps = _maps(input.shape, filters.shape, attributes)
        loops, of_input, of_filters, out = all_maps
        return IndexMaps(loops, (of_input, of_filters), out[::-1])

    made = _contract(
        builder, run_convolution, input, filters, size, shape, attributes, maps
    )
    return made.transpose()


def lower_input_gradient(builder, g, filters, *, size, **attributes):
    """Lower to one contraction; the result is in reverse memory order."""
    _check_plain(g, filters)
    channels = filters.shape[-2] * attributes["groups"]
    images = (g.shape[0], *size, channels)
    g = _turned_input(builder, g, filters.shape[:-2])
    space = _reordered_size(g) + group_columns_size(images, filters.shape, **attributes)
    shape = (channels, *size[::-1], g.shape[0])

    def maps():
        loops, of_images, of_filters, of_out = _maps(images, filters.shape, attributes)
        return IndexMaps(loops, (of_out, of_filters), of_images[::-1])

    made = _contract(
        builder, run_input_gradient, g, filters, space, shape, {**attributes, "size": size},
        maps,
    )  # fmt: skip
    return made.transpose()


def lower_filter_gradient(builder, input, g, *, window, **attributes):
    """Lower to one contraction, into C order."""
    _check_plain(input, g)
    shape = (*window, input.shape[-1] // attributes["groups"], g.shape[-1])
    g = _turned_input(builder, g, window)
    if attributes["groups"] > 1:
        input = _turned_input(builder, input, window)
    size = _reordered_size(input) + _reordered_size(g) + -(-math.prod(shape) // 16) * 16
    size += group_columns_size(input.shape, shape, **attributes)

    def maps():
        loops, of_images, of_filters, of_out = _maps(input.shape, shape, attributes)
        return IndexMaps(loops, (of_images, of_out), of_filters)

    return _contract(
        builder, run_filter_gradient, input, g, size, shape,
        {**attributes, "window": window}, maps,
    )  # fmt: skip


# ---------------------------------------------------------------------------- pooling


def _in_memory_order(like, axis, *arrays):
    """Return ``(axis, axes, arrays)`` in the memory order of one array, and the way back."""
    axes, rank = permutation(like.buffer), like.ndim
    if axes is None:
        return axis, tuple(range(rank)), arrays
    back = tuple(sorted(range(rank), key=axes.__getitem__))
    axis = back.index(axis % rank) - rank
    return axis, axes, [x.transpose(back) for x in arrays]


def lower_windows(builder, *arrays, axis, size, stride, padding, dilation, **keywords):
    """Lower to the kernel, in the memory order of the array that windows lie in.

    Windows without padding are left to the kernel, which computes them as maps.
    """
    (out,), op = builder.node.outputs, builder.node.op
    like = arrays[min(1, len(arrays) - 1)]
    window = size, stride, padding, dilation
    if {len(x.shape) for x in arrays} != {len(out.shape)} or 0 in out.shape:
        raise NotTraceable
    if op in (window_max_p.primitive, window_mean_p.primitive):
        count, slices = taps(like.shape[axis], *window)
        if is_everywhere(slices, count):
            raise NotTraceable
    axis, axes, arrays = _in_memory_order(like, axis, *arrays)
    keywords |= dict(size=size, stride=stride, padding=padding, dilation=dilation)
    operands = tuple([x.buffer for x in arrays])
    shape = [0] * len(axes)
    for i, a in enumerate(axes):
        shape[a] = out.shape[i]
    instruction = Opaque(
        op.kernels.plain(np.ndarray), operands, builder.node, {"axis": axis, **keywords},
        op.new_memory,
    )  # fmt: skip
    return builder.emit(instruction, tuple(shape), arrays[0].dtype).transpose(axes)


def with_nan(total, bias, input, out=None, *, windows, axes):
    """`add_to_maxima`, given the sum ``total``, whose axes are in this order."""
    if out is None:
        out = total.copy()
    elif not np.may_share_memory(out, total):
        np.copyto(out, total)
    if (bias == np.inf).any():
        out.transpose(axes)[...] = maxima_of_sum(np, input, bias, windows)
    return out


def lower_add_to_maxima(builder, maxima, bias, input, *, windows):
    """Lower to the sum, and check it where the bias may hide a NaN."""
    total = maxima + bias
    axes = permutation(total.buffer)
    inner, order = total.buffer, tuple(range(total.ndim))
    if axes is not None:
        inner, order = inner.instruction.viewed, axes
    keywords = {"windows": windows, "axes": order}
    operands = (inner, bias.buffer, input.buffer)
    instruction = Routine(with_nan, operands, builder.node, keywords, in_place=0)
    made = builder.emit(instruction, inner.shape, inner.dtype)
    return made if axes is None else made.transpose(axes)


# ---------------------------------------------------------- between two convolutions


def lower_relu(builder, features):
    """Lower to the maximum with rows of zeros, which is faster than with a scalar."""
    if features.ndim < 3 or features.dtype.kind != "f":
        raise NotTraceable
    return np.maximum(features, _zeros(features))


def _zeros(x):
    """Return zeros of the shape of the last axes in memory, in memory order."""
    axes = permutation(x.buffer) or tuple(range(x.ndim))
    size, shape = 1, [1] * x.ndim  # in memory
    back = sorted(range(x.ndim), key=axes.__getitem__)
    for i in reversed(range(x.ndim)):
        if size >= ZEROS:
            break
        shape[i] = x.shape[back[i]]
        size *= shape[i]
    return np.zeros(shape, x.dtype).transpose(axes)


LOWERING_RULES = {
    convolve.primitive: lower_convolution,
    filter_gradient.primitive: lower_filter_gradient,
    input_gradient.primitive: lower_input_gradient,
    relu.primitive: lower_relu,
}

# -------------------------------------------------------- where contractions are loops


def _in_c_order(op):
    """Run the kernel of a convolution or of a gradient, with its result in C order."""

    def contract(x, y, out=None, **attributes):
        made = op.kernel(np, x, y, **attributes)
        if out is None:
            return np.ascontiguousarray(made)
        out[...] = made
        return out

    contract.__name__ = op.name
    return contract


def lower_contraction(builder, x, y, **attributes):
    """Lower to one contraction in C order, or a product if windows have one entry."""
    _check_plain(x, y)
    (out,), op = builder.node.outputs, builder.node.op
    if x.dtype.char == "e":  # on a GPU; elsewhere kernels are given float32
        wide = x.astype(np.float32), y.astype(np.float32)
        return lower_contraction(builder, *wide, **attributes).astype(np.float16)
    if x.dtype.char not in "fd":
        raise NotTraceable
    roles = _ROLES[op]
    images, filters, outputs = [(x.shape, y.shape, out.shape)[i] for i in roles]
    if not math.prod(out.shape):
        raise NotTraceable
    if _is_large_product(images, filters, outputs, attributes):
        return _product(op, x, y, out.shape)
    shape = out.shape
    if len(shape) == 3:
        x, y, shape, attributes = _as_images(op, x, y, shape, attributes)
        images, filters, outputs = [(x.shape, y.shape, shape)[i] for i in roles]
    loops, *by_role = _maps(images, filters, attributes)
    maps = dict(zip(roles, by_role))
    maps = IndexMaps(tuple(loops), (maps[0], maps[1]), maps[2])
    instruction = Contract(
        _IN_C_ORDER[op], (x.buffer, y.buffer), builder.node, attributes, lambda: maps
    )  # fmt: skip
    return builder.emit(instruction, shape, x.dtype).reshape(out.shape)


# op -> the numbers of images, filters and outputs among its inputs and its output
_ROLES = {
    convolve.primitive: (0, 1, 2),
    input_gradient.primitive: (2, 1, 0),
    filter_gradient.primitive: (0, 2, 1),
}
_IN_C_ORDER = {op: _in_c_order(op) for op in _ROLES}


def _is_large_product(images, filters, outputs, attributes):
    """Return whether this is a matrix product for which packing panels is fastest."""
    return (
        math.prod(filters) > LARGE
        and set(filters[:-2]) == set(attributes["strides"]) == {1}
        and attributes["groups"] == 1
        and images[:-1] == outputs[:-1]
    )


def _product(op, x, y, shape):
    """Return a convolution with windows of one entry, as a product of two matrices."""
    x, y = x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1])
    if op is input_gradient.primitive:
        y = y.transpose()
    if op is filter_gradient.primitive:
        x = x.transpose()
    return (x @ y).reshape(shape)


def _as_images(op, x, y, shape, attributes):
    """Return a convolution along one axis as one of images with one row."""
    filters = _ROLES[op][1]
    arrays = []
    for i, before in enumerate((x.shape, y.shape, shape)):
        arrays.append((1, *before) if i == filters else (before[0], 1, *before[1:]))
    made = dict(attributes)
    for name in ("strides", "dilations", "size", "window"):
        if name in made:
            made[name] = (1, *made[name])
    if not isinstance(made["padding"], str):
        made["padding"] = ((0, 0), *made["padding"])
    return x.reshape(arrays[0]), y.reshape(arrays[1]), arrays[2], made


# Rules for targets that compile loops.
LOOP_RULES = {
    add_to_maxima_p.primitive: lower_add_to_maxima,
    **dict.fromkeys(_ROLES, lower_contraction),
    **dict.fromkeys(
        [
            each.primitive
            for each in (
                pick_at_maxima_p,
                spread_means_p,
                spread_to_maxima_p,
                window_max_p,
                window_mean_p,
            )
        ],
        lower_windows,
    ),
}
