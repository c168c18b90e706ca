"""The convolution and its two adjoints: primitives for one to three dimensions.

There are three primitives: the convolution, its gradient with respect to the input (the
transposed convolution), and its gradient with respect to the filters. Each is linear in
both inputs and the adjoint of the other two, which provides derivatives of every order.
They are primitives because a window is a copy and a matrix product, far from anything
that ops could compose.

Kernels work in the memory order ``[channels, width, height, batch]``, the exact reverse
of TensorFlow's: windows, bias and pooling then move long contiguous runs (pooling along
the width first). The result is a view in TensorFlow's order, and elementwise ops keep
the strides of their inputs, so that the memory order propagates through a network.
"""

from __future__ import annotations

import math

import numpy as np

from tapewright.core.errors import ShapeError
from tapewright.core.op_definition.costs import size_of
from tapewright.core.primitive import primitive
from tapewright.core.rules import same_dtype
from tapewright.core.tensor import TensorSpec
from tapewright.core.typing import ShapeLike, TensorLike

from ..array.shape import reshape, transpose
from .grouped import (
    are_small,
    by_groups,
    convolve_groups,
    filter_gradient_of_groups,
    input_gradient_of_groups,
)
from .im2col import (
    Room,
    as_adjoint,
    blocks_of,
    clear_around,
    columns,
    has_thin_output,
    matrices,
    meetings,
    product,
    shared_taps,
    turned,
)
from .windows import Padding, positions

# ---------------------------------------------------------------------- the three ops


def _convolution_cost(inputs, outputs, **attributes):
    return 2 * size_of(outputs[0]) * math.prod(inputs[1].shape[:-1])


def _input_gradient_cost(inputs, outputs, **attributes):
    return 2 * size_of(inputs[0]) * math.prod(inputs[1].shape[:-1])


def _filter_gradient_cost(inputs, outputs, **attributes):
    return 2 * size_of(inputs[1]) * math.prod(outputs[0].shape[:-1])


@primitive(
    name="convolution", type_name="Conv2D", linear="each", cost=_convolution_cost
)
def convolve(
    xp,
    input: TensorLike,
    filters: TensorLike,
    strides: ShapeLike,
    padding: Padding,
    dilations: ShapeLike,
    groups: int = 1,
):
    """Convolve ``[n, *spatial, c]`` with ``[*window, c / groups, o]``: ``[n, *outputs, o]``."""
    return convolve_into(xp, input, filters, None, None, strides, padding, dilations,
                         groups)  # fmt: skip


def convolve_into(
    xp, input, filters, space, out, strides, padding, dilations, groups=1
):
    """Kernel of `convolution`, writing to given memory, or to new memory if it is None.

    ``out`` has the shape of the result, in reverse order in memory; ``space`` is a
    vector of scratch memory.
    """
    *window, depth, count = filters.shape
    if input.shape[-1] != depth * groups or count % groups:
        raise ValueError("channels do not fit")  # `infer` says it better
    margins, counts = positions(input.shape[1:-1], window, strides, padding, dilations)
    batch, room = input.shape[0], Room(xp, input.dtype, space)
    if out is None:
        out = xp.empty((count, *counts[::-1], batch), input.dtype).transpose()
    if not out.size:
        return out
    geometry = strides, dilations, [before for before, _ in margins], counts
    x, target = _split(turned(xp, input, room), groups), _split(out.transpose(), groups)
    filters = _split_filters(filters, groups)
    if are_small(xp, filters.shape, counts, batch):
        by_groups(convolve_groups, xp, (x, filters, target), *geometry, room=room)
        return out
    for each in zip(x, filters, target):
        _convolve_one(xp, *each, *geometry, room.remaining())
    return out


def _convolve_one(xp, x, filters, out, strides, dilations, befores, counts, room):
    """Convolve ``x`` into ``out``, ``[channels, width, ..., batch]``."""
    if has_thin_output(filters.shape, strides):
        flipped, befores = as_adjoint(filters, dilations, befores)
        _add_products(xp, x, flipped, out, strides, dilations, befores, room)
    else:
        _multiply_columns(
            xp, x, filters, out, strides, dilations, befores, counts, room
        )


def _multiply_columns(xp, x, filters, out, strides, dilations, befores, counts, room):
    """`_convolve_one`: copy the entries of all windows, and multiply them by the filters."""
    *window, depth, count = filters.shape
    shifts = shared_taps(window, strides, depth, count)
    weights, flat = matrices(filters, shifts).swapaxes(1, 2), _flat(out)
    for start, stop, parts in columns(
        xp, x, window, strides, dilations, befores, counts, shifts, room
    ):
        for i, (matrix, cols) in enumerate(zip(weights, parts)):
            product(xp, matrix, cols, flat[:, start:stop], add=i > 0)


def _split(x, groups):
    """Reshape ``[channels, ...]`` to ``[groups, channels / groups, ...]``."""
    return x.reshape(groups, len(x) // groups, *x.shape[1:])


def _split_filters(filters, groups):
    """Reshape ``[*window, depth, count]`` to ``[groups, *window, depth, count / groups]``."""
    *window, depth, count = filters.shape
    split = filters.reshape(*window, depth, groups, count // groups)
    return split.transpose(len(window) + 1, *range(len(window) + 1), len(window) + 2)


def _flat(x):
    """Reshape ``[channels, width, ..., batch]`` to a matrix with a row for each channel."""
    return x.reshape(len(x), math.prod(x.shape[1:]))


@convolve.infer
def _(input, filters, strides, padding, dilations, groups):
    dtype = same_dtype("convolution", input=input, filters=filters)
    window, spatial = _checked(
        "convolution", input, filters, strides, dilations, groups
    )
    if input.shape[-1] not in (None, (filters.shape[-2] or 0) * groups) and (
        filters.shape[-2] is not None
    ):
        raise ShapeError(
            "convolution",
            f"input must have {groups} x {filters.shape[-2]} channels, as filters have",
            input=input,
            filters=filters,
        )
    if None in window:
        counts = [None] * len(window)
    else:
        _, counts = positions(spatial, window, strides, padding, dilations)
    return TensorSpec((input.shape[0], *counts, filters.shape[-1]), dtype)


def _checked(who, images, filters, strides, dilations, groups):
    """Return the window and the spatial axes, after the checks that the three ops share."""
    _check_geometry(who, strides, dilations, groups, input=images, filters=filters)
    rank = len(strides)
    for name, value in (("input", images), ("filters", filters)):
        if value.shape.rank != rank + 2:
            raise ShapeError(who, f"{name} must have rank {rank + 2}",
                             input=images, filters=filters)  # fmt: skip
    count = filters.shape[-1]
    if count is not None and count % groups:
        raise ShapeError(who, f"filters must have a multiple of {groups} output channels, "
                         f"the same number for each group, got {count}",
                         input=images, filters=filters)  # fmt: skip
    return tuple(filters.shape)[:-2], tuple(images.shape)[1:-1]


def _check_geometry(who, strides, dilations, groups, **given):
    numbers = (groups, *strides, *dilations)
    if len(strides) != len(dilations) or min(numbers) < 1:
        raise ShapeError(
            who, "groups, strides and dilations must be positive, and there must be a "
            f"stride and a dilation for each spatial axis, got {groups}, {strides} and "
            f"{dilations}", **given,
        )  # fmt: skip


@primitive(
    name="convolution_input_gradient",
    type_name="Conv2DBackpropInput",
    linear="each",
    cost=_input_gradient_cost,
)
def input_gradient(
    xp,
    g: TensorLike,
    filters: TensorLike,
    size: ShapeLike,
    strides: ShapeLike,
    padding: Padding,
    dilations: ShapeLike,
    groups: int = 1,
):
    """The adjoint of `convolution` in its input, which has spatial axes ``size``."""
    return input_gradient_into(xp, g, filters, None, None, size, strides, padding,
                               dilations, groups)  # fmt: skip


def input_gradient_into(
    xp, g, filters, space, out, size, strides, padding, dilations, groups=1
):
    """Kernel of `input_gradient`, with memory as for `convolve_into`."""
    *window, depth, count = filters.shape
    margins, counts = positions(size, window, strides, padding, dilations)
    if tuple(g.shape[1:-1]) != counts or g.shape[-1] != count or count % groups:
        raise ValueError("shapes do not fit")  # `infer` says it better
    batch, room = g.shape[0], Room(xp, g.dtype, space)
    if out is None:
        out = xp.empty((groups * depth, *size[::-1], batch), g.dtype).transpose()
    if not g.size:
        out[...] = 0
        return out
    befores = [before for before, _ in margins]
    g, target = _split(turned(xp, g, room), groups), _split(out.transpose(), groups)
    filters = _split_filters(filters, groups)
    if are_small(xp, filters.shape, counts, batch):
        by_groups(
            input_gradient_of_groups, xp, (g, filters, target), strides, dilations, befores,
            room=room,
        )  # fmt: skip
        return out
    for each in zip(g, filters, target):
        _input_gradient_of_one(xp, *each, strides, dilations, befores, room.remaining())
    return out


def _input_gradient_of_one(xp, g, filters, out, strides, dilations, befores, room):
    if has_thin_output(filters.shape, strides):
        flipped, befores = as_adjoint(filters, dilations, befores)
        size = out.shape[-2:0:-1]
        _multiply_columns(xp, g, flipped, out, strides, dilations, befores, size, room)
    else:
        _add_products(xp, g, filters, out, strides, dilations, befores, room)


def _add_products(xp, g, filters, out, strides, dilations, befores, room):
    """`_input_gradient_of_one`: add the filters times each output to the entries it covers."""
    *window, depth, count = filters.shape
    size, counts, batch = out.shape[-2:0:-1], g.shape[-2:0:-1], g.shape[-1]
    flat = _flat(g)
    if set(window) == {1} and set(strides) == {1} and counts == size:
        product(xp, matrices(filters)[0], flat, _flat(out))
        return
    shifts = shared_taps(window, strides, depth, count)
    weights = matrices(filters, shifts)
    if shifts > 1:
        window = (*window[:-1], 1)
    more, rest = (shifts - 1) * dilations[-1], math.prod(counts[:-1]) * batch
    blocks = blocks_of(xp, depth * math.prod(window), counts, batch)
    space = room.take(weights.shape[1], (blocks[0][1] + more) * rest)
    each, fresh = out[None], None  # what the first tap reaches needs no zeros
    for first, rows in blocks:
        cols = space[:, : (rows + more) * rest]
        cols[:, rows * rest :] = 0
        part = flat[:, first * rest : (first + rows) * rest]
        for i, matrix in enumerate(weights):
            start = i * dilations[-1] * rest
            product(xp, matrix, part, cols[:, start : start + rows * rest], add=i > 0)
        cols = cols.reshape(1, *window, depth, rows + more, *counts[-2::-1], batch)
        for tap, windows, entries in meetings(
            size, window, strides, dilations, befores, counts, first, rows + more
        ):
            if windows is None:
                continue
            seen = cols[(slice(None), *tap)][windows]
            if fresh is None:
                fresh = entries
                clear_around(each, entries)
                each[entries] = seen
            else:
                each[entries] += seen
    if fresh is None:
        out[...] = 0


@input_gradient.infer
def _(g, filters, size, strides, padding, dilations, groups):
    who = "convolution_input_gradient"
    dtype = same_dtype(who, g=g, filters=filters)
    window, spatial = _checked(who, g, filters, strides, dilations, groups)
    if None not in window:
        _, counts = positions(size, window, strides, padding, dilations)
        fits = TensorSpec((*counts, filters.shape[-1])).shape.is_compatible_with(
            (*spatial, g.shape[-1])
        )
        if not fits:
            raise ShapeError(
                who,
                f"g must have size {counts} and {filters.shape[-1]} channels, as the "
                f"convolution of an input of size {tuple(size)}",
                g=g,
                filters=filters,
            )
    depth = filters.shape[-2]
    return TensorSpec(
        (g.shape[0], *size, None if depth is None else depth * groups), dtype
    )


@primitive(
    name="convolution_filter_gradient",
    type_name="Conv2DBackpropFilter",
    linear="each",
    cost=_filter_gradient_cost,
)
def filter_gradient(
    xp,
    input: TensorLike,
    g: TensorLike,
    window: ShapeLike,
    strides: ShapeLike,
    padding: Padding,
    dilations: ShapeLike,
    groups: int = 1,
):
    """The adjoint of `convolution` in its filters, which have spatial axes ``window``."""
    return filter_gradient_into(xp, input, g, None, None, window, strides, padding,
                                dilations, groups)  # fmt: skip


def filter_gradient_into(
    xp, input, g, space, out, window, strides, padding, dilations, groups=1
):
    """Kernel of `filter_gradient`; ``out`` is in plain order."""
    margins, counts = positions(input.shape[1:-1], window, strides, padding, dilations)
    channels, count = input.shape[-1], g.shape[-1]
    if tuple(g.shape[:-1]) != (input.shape[0], *counts) or (
        channels % groups or count % groups
    ):
        raise ValueError("shapes do not fit")  # `infer` says it better
    depth, room = channels // groups, Room(xp, g.dtype, space)
    if out is None:
        out = xp.empty((*window, depth, count), g.dtype)
    if not (g.size and depth):
        out[...] = 0
        return out
    if groups == 1 and _are_pixels_alone(xp, input, g, window, margins):
        pixels, cotangents = input.reshape(-1, channels), g.reshape(-1, count)
        product(xp, pixels.T, cotangents, out.reshape(channels, count))
        return out
    geometry = strides, dilations, [before for before, _ in margins], counts
    x = _split(turned(xp, input, room), groups)
    g = _split(turned(xp, g, room), groups)
    target = _split_filters(out, groups)
    if are_small(xp, target.shape, counts, input.shape[0]):
        by_groups(filter_gradient_of_groups, xp, (x, g, target), *geometry, room=room)
        return out
    for each in zip(x, g, target):
        _filter_gradient_of_one(xp, *each, *geometry, room.remaining())
    return out


def _are_pixels_alone(xp, input, g, window, margins):
    """Return whether each pixel contributes to one position only, and both are in C order."""
    if xp is not np or math.prod(window) > 1 or any(map(any, margins)):
        return False
    same = input.shape[:-1] == g.shape[:-1]
    return same and input.flags.c_contiguous and g.flags.c_contiguous


def _filter_gradient_of_one(xp, x, g, out, strides, dilations, befores, counts, room):
    *window, depth, count = out.shape
    if has_thin_output(out.shape, strides):
        flipped, befores = as_adjoint(out, dilations, befores)
        x, g, out, counts = g, x, flipped, x.shape[-2:0:-1]
        depth, count = count, depth
    shifts = shared_taps(window, strides, depth, count)
    flat = _flat(g).T
    total = room.take(shifts, math.prod(window) // shifts * depth, count)
    for start, stop, parts in columns(
        xp, x, window, strides, dilations, befores, counts, shifts, room
    ):
        for part, cols in zip(total, parts):
            product(xp, cols, flat[start:stop], part, add=start > 0)
    split = total.reshape(shifts, *window[:-1], window[-1] // shifts, depth, count)
    out[...] = xp.moveaxis(split, 0, len(window) - 1).reshape(out.shape)


@filter_gradient.infer
def _(input, g, window, strides, padding, dilations, groups):
    who = "convolution_filter_gradient"
    dtype = same_dtype(who, input=input, g=g)
    _check_geometry(who, strides, dilations, groups, input=input, g=g)
    channels, count = input.shape[-1], g.shape[-1]
    if any([n is not None and n % groups for n in (channels, count)]):
        raise ShapeError(who, f"input and g must have a multiple of {groups} channels",
                         input=input, g=g)  # fmt: skip
    _, counts = positions(tuple(input.shape)[1:-1], window, strides, padding, dilations)
    if not TensorSpec((input.shape[0], *counts)).shape.is_compatible_with(g.shape[:-1]):
        raise ShapeError(who, f"g must have the batch of the input and size {counts}",
                         input=input, g=g)  # fmt: skip
    depth = None if channels is None else channels // groups
    return TensorSpec((*window, depth, g.shape[-1]), dtype)


@convolve.vjp("input")
def _(g, filters, input_shape, strides, padding, dilations, groups):
    return input_gradient(
        g, filters, input_shape[1:-1], strides, padding, dilations, groups
    )


@convolve.vjp("filters")
def _(g, input, filters_shape, strides, padding, dilations, groups):
    return filter_gradient(
        input, g, filters_shape[:-2], strides, padding, dilations, groups
    )


@input_gradient.vjp("g")
def _(g, filters, strides, padding, dilations, groups):
    return convolve(g, filters, strides, padding, dilations, groups)


@input_gradient.vjp("filters")
def _(c, g, filters_shape, strides, padding, dilations, groups):
    return filter_gradient(
        c, g, filters_shape[:-2], strides, padding, dilations, groups
    )


@filter_gradient.vjp("input")
def _(c, g, input_shape, strides, padding, dilations, groups):
    return input_gradient(g, c, input_shape[1:-1], strides, padding, dilations, groups)


@filter_gradient.vjp("g")
def _(c, input, strides, padding, dilations, groups):
    return convolve(input, c, strides, padding, dilations, groups)


# ------------------------------------------------------------------------------ batching
#
# A mapped axis joins the batch where that is all that is mapped, else the channels: as
# further channels of each group, or, where both inputs are mapped, as further groups.


def _into_batch(x):
    shape = x.array.shape
    return reshape(x, (shape[0] * shape[1], *shape[2:]))


def _out_of_batch(x, like):
    return reshape(x, (*like.array.shape[:2], *x.array.shape[1:]))


def _into_axis(x, axis, groups):
    """Merge the leading mapped axis into an axis, inside each of ``groups`` equal parts."""
    shape = x.array.shape
    rank, size = len(shape) - 1, shape[0]
    at = axis % rank
    dims = list(shape[1:])
    split = [size, *dims[:at], groups, dims[at] // groups, *dims[at + 1 :]]
    order = [*range(1, at + 2), 0, *range(at + 2, rank + 2)]
    dims[at] *= size
    return reshape(transpose(reshape(x, split), order), dims)


def _out_of_axis(x, size, each, axis, groups):
    """Invert `_into_axis`: ``size`` values with an axis of size ``each``."""
    dims = list(x.array.shape)
    at = axis % len(dims)
    dims[at] = each
    split = [*dims[:at], groups, size, each // groups, *dims[at + 1 :]]
    order = [at + 1, *range(at + 1), *range(at + 2, len(split))]
    return reshape(transpose(reshape(x, split), order), (size, *dims))


@convolve.batch
def _(mapped, input, filters, *, groups, **attributes):
    if not mapped[1]:
        out = convolve(_into_batch(input), filters, groups=groups, **attributes)
        return _out_of_batch(out, input)
    size, each = filters.array.shape[0], filters.array.shape[-1]
    if not mapped[0]:
        filters = _into_axis(filters, -1, groups)
        out = convolve(input, filters, groups=groups, **attributes)
        return _out_of_axis(out, size, each, -1, groups)
    input, filters = _into_axis(input, -1, 1), _into_axis(filters, -1, 1)
    out = convolve(input, filters, groups=groups * size, **attributes)
    return _out_of_axis(out, size, each, -1, 1)


@input_gradient.batch
def _(mapped, g, filters, *, groups, **attributes):
    if not mapped[1]:
        out = input_gradient(_into_batch(g), filters, groups=groups, **attributes)
        return _out_of_batch(out, g)
    size, each = filters.array.shape[0], filters.array.shape[-2] * groups
    if not mapped[0]:
        filters = _into_axis(filters, -2, 1)
        out = input_gradient(g, filters, groups=groups, **attributes)
        return _out_of_axis(out, size, each, -1, groups)
    g, filters = _into_axis(g, -1, 1), _into_axis(filters, -1, 1)
    out = input_gradient(g, filters, groups=groups * size, **attributes)
    return _out_of_axis(out, size, each, -1, 1)


@filter_gradient.batch
def _(mapped, input, g, *, groups, **attributes):
    depth, count = input.array.shape[-1] // groups, g.array.shape[-1]
    size = (input if mapped[0] else g).array.shape[0]
    if not mapped[1]:
        input = _into_axis(input, -1, groups)
        out = filter_gradient(input, g, groups=groups, **attributes)
        return _out_of_axis(out, size, depth, -2, 1)
    if not mapped[0]:
        g = _into_axis(g, -1, groups)
        out = filter_gradient(input, g, groups=groups, **attributes)
        return _out_of_axis(out, size, count, -1, groups)
    input, g = _into_axis(input, -1, 1), _into_axis(g, -1, 1)
    out = filter_gradient(input, g, groups=groups * size, **attributes)
    return _out_of_axis(out, size, count, -1, 1)


def _example_by_example(axes, x, filters, **attributes):
    rank = x.array.ndim
    return -rank if axes == (-rank, None) else None


convolve.diagonal(_example_by_example)
input_gradient.diagonal(_example_by_example)
