"""The convolution and its two adjoints: primitives for one to three dimensions.

Each of the three is linear in both inputs and each is the adjoint of the others, which
gives derivatives of every order: the convolution, its gradient by the input (which is
the transposed convolution), and its gradient by the filters. They are primitives because a
window is a copy and a matrix product, far from what ops could compose.

Kernels work in the memory order ``[channels, width, height, batch]``, the exact reverse of
TensorFlow's: windows, bias and pooling then move long runs of neighbours (pooling takes
the width first). What they return is a view in TensorFlow's order, and elementwise ops keep
the strides of their inputs, so that the memory order travels through a network.
"""

import itertools
import math

import numpy as np

from ..errors import ShapeError
from ..primitive import Shape, primitive
from ..rules import same_dtype
from ..tensor import TensorSpec
from .shape import reshape, transpose
from .sliding import Padding, positions

__all__ = []  # the public names are those of `convolution`


# ----------------------------------------------------------------------- array kernels

# Numbers in one block of columns: enough for a product at full speed, no more memory.
BLOCK, GPU_BLOCK = 1 << 22, 1 << 26


def _turned(xp, x):
    """``[n, h, w, c]`` as ``[c, w, h, n]``; the batch is contiguous in memory."""
    view = x.transpose()
    if xp is not np:
        return xp.ascontiguousarray(view)
    count = len(x)
    if view.strides[-1] == x.itemsize and count > 1:
        return view
    if count < 8 or not x.flags.c_contiguous:
        return np.ascontiguousarray(view)
    rows = x.reshape(count, -1)  # in pieces: a third of the time of one large transpose
    turned = np.empty((rows.shape[1], count), x.dtype)
    for i in range(0, len(turned), 1024):
        turned[i : i + 1024] = rows[:, i : i + 1024].T
    return np.moveaxis(turned.reshape(*x.shape[1:], count).T, 0, -1)


def _flattened(xp, x, groups):
    """``[n, h, w, c]`` as the matrices ``[groups, c / groups, w * h * n]``."""
    flat = xp.ascontiguousarray(_turned(xp, x))
    channels = x.shape[-1]
    return flat.reshape(
        groups, channels // groups, math.prod(x.shape[1:-1]) * x.shape[0]
    )


def _matrices(filters, groups, shifts=1):
    """Filters ``[*window, c / groups, o]`` as matrices, one for each shift.

    Shape: ``[shifts, groups, taps * c / groups, o / groups]``; see `_columns`.
    """
    *window, depth, count = filters.shape
    taps, each = math.prod(window) // shifts, count // groups
    split = filters.reshape(taps, shifts, depth, groups, each)
    return split.transpose(1, 3, 0, 2, 4).reshape(shifts, groups, taps * depth, each)


def _margined(xp, x, margins):
    """``[c, w, h, n]`` inside zeros; the margins of h come first."""
    if not any(map(any, margins)):
        return x
    margins = margins[::-1]
    size = [n + b + a for n, (b, a) in zip(x.shape[1:-1], margins)]
    padded = xp.zeros((x.shape[0], *size, x.shape[-1]), x.dtype)
    inside = [slice(b, b + n) for n, (b, _) in zip(x.shape[1:-1], margins)]
    padded[(slice(None), *inside)] = x
    return padded


def _blocks(xp, depth, counts, batch):
    """Blocks ``(first, rows)`` of the first of the spatial axes in memory."""
    count, each = counts[-1], depth * math.prod(counts[:-1]) * batch
    fit = max(1, (BLOCK if xp is np else GPU_BLOCK) // max(each, 1))
    rows = -(-count // -(-count // fit))
    return [(i, min(rows, count - i)) for i in range(0, count, rows)]


def _window_slices(window, strides, dilations, counts, first, rows):
    """For each tap of the window, where the entries lie that a block's windows see."""
    for tap in itertools.product(*[range(n) for n in window]):
        index = []
        for i, stride, dilation, count in zip(tap, strides, dilations, counts):
            start = i * dilation
            index.append(slice(start, start + (count - 1) * stride + 1, stride))
        start = tap[-1] * dilations[-1] + first * strides[-1]
        index[-1] = slice(start, start + (rows - 1) * strides[-1] + 1, strides[-1])
        yield tap, (slice(None), slice(None), *index[::-1])


def _shifts(window, strides, depth, count):
    """How many taps share columns: those along the width, where it pays.

    Sharing saves copies of the input, but the output is summed up from several products.
    """
    pays = math.prod(window[:-1]) * depth >= count
    return window[-1] if strides[-1] == 1 and pays else 1


def _columns(xp, x, window, strides, dilations, counts, groups, shifts):
    """What the windows see, a block at a time: ``(start, stop, matrices)``.

    A matrix is ``[groups, taps * depth, places]``. With stride 1 a tap further along the
    width sees what its neighbour sees one place later: the same columns, shifted.
    """
    channels, batch = x.shape[0], x.shape[-1]
    depth, rest = channels // groups, math.prod(counts[:-1]) * batch
    if shifts > 1:
        window = (*window[:-1], 1)
    taps, more = math.prod(window), (shifts - 1) * dilations[-1]

    def shifted(cols, rows):
        cols = cols.reshape(groups, taps * depth, (rows + more) * rest)
        starts = [j * dilations[-1] * rest for j in range(shifts)]
        return [cols[:, :, i : i + rows * rest] for i in starts]

    if taps == 1 and set(strides) == {1}:  # there is nothing to copy
        yield 0, counts[-1] * rest, shifted(x, counts[-1])
        return
    blocks = _blocks(xp, channels * taps, counts, batch)
    room = xp.empty(channels * taps * (blocks[0][1] + more) * rest, x.dtype)
    x = x.reshape(groups, depth, *x.shape[1:])
    for first, rows in blocks:
        cols = room[: channels * taps * (rows + more) * rest]
        cols = cols.reshape(groups, *window, depth, rows + more, *counts[-2::-1], batch)
        for tap, seen in _window_slices(
            window, strides, dilations, counts, first, rows + more
        ):
            cols[(slice(None), *tap)] = x[seen]
        yield first * rest, (first + rows) * rest, shifted(cols, rows)


def _product(xp, a, b, out=None):
    """``a @ b``; NumPy has no fast product of halves, so these are made in single."""
    if a.dtype.name == "float16":
        a, b = a.astype(xp.float32), b.astype(xp.float32)
    elif xp is np and out is not None:
        return np.matmul(a, b, out=out)
    product = a @ b
    if out is None:
        return product
    out[...] = product
    return out


# ---------------------------------------------------------------------- the three ops


@primitive(name="convolution", type_name="Conv2D")
def convolve(
    xp,
    input,
    filters,
    *,
    strides: Shape,
    padding: Padding,
    dilations: Shape,
    groups: int = 1,
):
    """``[n, *spatial, c]`` and ``[*window, c / groups, o]`` to ``[n, *places, o]``."""
    *window, depth, count = filters.shape
    if input.shape[-1] != depth * groups or count % groups:
        raise ValueError("channels do not fit")  # `infer` says it better
    margins, counts = positions(input.shape[1:-1], window, strides, padding, dilations)
    batch = input.shape[0]
    shifts = _shifts(window, strides, depth, count // groups)
    weights = _matrices(filters, groups, shifts).swapaxes(2, 3)
    out = xp.empty((groups, count // groups, math.prod(counts) * batch), input.dtype)
    if not out.size:
        return out.reshape(batch, *counts, count)
    x = _margined(xp, _turned(xp, input), margins)
    for start, stop, columns in _columns(
        xp, x, window, strides, dilations, counts, groups, shifts
    ):
        part = out[:, :, start:stop]
        _product(xp, weights[0], columns[0], part)
        for matrix, cols in zip(weights[1:], columns[1:]):
            part += _product(xp, matrix, cols)
    return out.reshape(count, *counts[::-1], batch).transpose()


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
    """The window and the spatial axes, after checks that the three ops share."""
    rank = len(strides)
    for name, value in (("input", images), ("filters", filters)):
        if value.shape.rank != rank + 2:
            raise ShapeError(who, f"{name} must have rank {rank + 2}",
                             input=images, filters=filters)  # fmt: skip
    count = filters.shape[-1]
    if count is not None and count % groups:
        raise ShapeError(who, f"filters must make a multiple of {groups} channels, one "
                         f"share for each group of input channels, not {count}",
                         input=images, filters=filters)  # fmt: skip
    return tuple(filters.shape)[:-2], tuple(images.shape)[1:-1]


@primitive(name="convolution_input_gradient", type_name="Conv2DBackpropInput")
def input_gradient(
    xp,
    g,
    filters,
    *,
    size: Shape,
    strides: Shape,
    padding: Padding,
    dilations: Shape,
    groups: int = 1,
):
    """The adjoint of `convolution` in its input, whose spatial axes have ``size``."""
    *window, depth, count = filters.shape
    margins, counts = positions(size, window, strides, padding, dilations)
    if tuple(g.shape[1:-1]) != counts or g.shape[-1] != count or count % groups:
        raise ValueError("shapes do not fit")  # `infer` says it better
    batch, taps = g.shape[0], math.prod(window)
    weights, flat = _matrices(filters, groups)[0], _flattened(xp, g, groups)
    full = [n + b + a for n, (b, a) in zip(size, margins)][::-1]
    if taps == 1 and set(strides) == {1}:
        out = _product(xp, weights, flat).astype(g.dtype, copy=False)
    else:
        out = xp.zeros((groups, depth, *full, batch), g.dtype)
        rest = math.prod(counts[:-1]) * batch
        blocks = _blocks(xp, groups * depth * taps, counts, batch) if g.size else ()
        for first, rows in blocks:
            places = slice(first * rest, (first + rows) * rest)
            cols = _product(xp, weights, flat[:, :, places])
            cols = cols.reshape(groups, *window, depth, rows, *counts[-2::-1], batch)
            for tap, seen in _window_slices(
                window, strides, dilations, counts, first, rows
            ):
                out[seen] += cols[(slice(None), *tap)]
    out = out.reshape(groups * depth, *full, batch)
    inside = [slice(b, b + n) for n, (b, _) in zip(size, margins)]
    return out.transpose()[(slice(None), *inside)]


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
                f"the convolution of an input of size {tuple(size)} has size {counts} and "
                f"{filters.shape[-1]} channels, which is not what is given",
                g=g,
                filters=filters,
            )
    depth = filters.shape[-2]
    return TensorSpec(
        (g.shape[0], *size, None if depth is None else depth * groups), dtype
    )


@primitive(name="convolution_filter_gradient", type_name="Conv2DBackpropFilter")
def filter_gradient(
    xp,
    input,
    g,
    *,
    window: Shape,
    strides: Shape,
    padding: Padding,
    dilations: Shape,
    groups: int = 1,
):
    """The adjoint of `convolution` in its filters, whose spatial axes are ``window``."""
    margins, counts = positions(input.shape[1:-1], window, strides, padding, dilations)
    channels, count = input.shape[-1], g.shape[-1]
    if tuple(g.shape[:-1]) != (input.shape[0], *counts) or channels % groups:
        raise ValueError("shapes do not fit")  # `infer` says it better
    depth, shape = channels // groups, (*window, channels // groups, count)
    if not (g.size and depth):
        return xp.zeros(shape, g.dtype)
    shifts = _shifts(window, strides, depth, count // groups)
    flat = _flattened(xp, g, groups).swapaxes(1, 2)
    x = _margined(xp, _turned(xp, input), margins)
    total = None
    for start, stop, columns in _columns(
        xp, x, window, strides, dilations, counts, groups, shifts
    ):
        parts = [_product(xp, cols, flat[:, start:stop]) for cols in columns]
        total = parts if total is None else [t + p for t, p in zip(total, parts)]
    split = (len(total), groups, -1, depth, count // groups)
    total = xp.stack(total).astype(g.dtype, copy=False).reshape(split)
    return total.transpose(2, 0, 3, 1, 4).reshape(shape)


@filter_gradient.infer
def _(input, g, window, strides, padding, dilations, groups):
    who = "convolution_filter_gradient"
    dtype = same_dtype(who, input=input, g=g)
    channels = input.shape[-1]
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
    """The mapped axis in front joins an axis, inside each of ``groups`` equal parts."""
    shape = x.array.shape
    rank, size = len(shape) - 1, shape[0]
    at = axis % rank
    dims = list(shape[1:])
    split = [size, *dims[:at], groups, dims[at] // groups, *dims[at + 1 :]]
    order = [*range(1, at + 2), 0, *range(at + 2, rank + 2)]
    dims[at] *= size
    return reshape(transpose(reshape(x, split), order), dims)


def _out_of_axis(x, size, each, axis, groups):
    """The inverse of `_into_axis`: ``size`` values whose axis has size ``each``."""
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
