"""Ops that move entries and change none: reshape, transpose, pad, join, split, broadcast.

`broadcast_to` and `sum_to_shape` are here, each the adjoint of the other.
"""

import math

import numpy as np

from .. import adjoint, dtypes, tensor
from ..errors import ShapeError
from ..primitive import Axes, Shape, primitive
from ..readers import BARE, active_reader
from ..rules import broadcast_shape, lift, normalize_axis
from ..tensor import TensorSpec, convert_to_tensor, new_tensor
from ..tensor_shape import TensorShape

__all__ = [
    "broadcast_to",
    "concat",
    "ensure_shape",
    "expand_dims",
    "pad",
    "rank",
    "repeat",
    "reshape",
    "reverse",
    "shape",
    "size",
    "split",
    "squeeze",
    "stack",
    "tile",
    "transpose",
    "unstack",
]


# ---------------------------------------------------------- reshape, and its relatives


@primitive(type_name="Reshape")
def reshape(xp, tensor, *, shape: Shape):
    """The same entries, in order, in another shape; one dimension may be -1.

    Raises: ``ShapeError`` if the number of entries differs.

    >>> reshape([[1, 2], [3, 4]], [-1]).numpy()
    array([1, 2, 3, 4], dtype=int32)
    """
    return tensor.reshape(shape)


@reshape.infer
def _(tensor, shape):
    count = tensor.shape.num_elements()
    known = math.prod(n for n in shape if n != -1)
    open_dims = list(shape).count(-1)
    fits = count is None or (
        known == count if not open_dims else known > 0 and count % known == 0
    )
    if open_dims > 1 or any(n < -1 for n in shape) or not fits:
        raise ShapeError("reshape", f"shape {tuple(shape)} does not hold {count} entries",
                         tensor=tensor)  # fmt: skip
    if open_dims:
        rest = None if count is None else count // known
        shape = [rest if n == -1 else n for n in shape]
    return TensorSpec(shape, tensor.dtype)


@reshape.vjp("tensor")
def _(g, tensor_shape):
    return reshape(g, tensor_shape)


@reshape.batch
def _(mapped, tensor, *, shape):
    return reshape(tensor, tensor.array.shape[:1] + tuple(shape))


@reshape.diagonal
def _(axes, tensor, *, shape):
    # The axis survives if the entries before it and behind it are grouped as they were.
    old, (axis,) = tuple(tensor.shape), axes
    size, behind = old[axis], math.prod(old[len(old) + axis + 1 :])
    if -1 in shape:
        rest = -math.prod(shape)
        shape = tuple(math.prod(old) // rest if n == -1 else n for n in shape)
    for i in range(-1, -len(shape) - 1, -1):
        if shape[i] == size and math.prod(shape[len(shape) + i + 1 :]) == behind:
            return i
    return None


@primitive(type_name="ExpandDims")
def expand_dims(xp, input, *, axis: Axes):
    """A dimension of size 1 at ``axis`` of the result (several with a list of axes)."""
    if isinstance(axis, int):
        rank = input.ndim + 1
        if -rank <= axis < rank:
            at = axis % rank
            return input.reshape(input.shape[:at] + (1,) + input.shape[at:])
    return xp.expand_dims(input, axis)


@expand_dims.infer
def _(input, axis):
    axes = (axis,) if isinstance(axis, int) else axis
    rank = input.shape.rank + len(axes)
    axes = normalize_axis("expand_dims", axis, rank)
    rest = iter(input.shape)
    return TensorSpec(
        [1 if i in axes else next(rest) for i in range(rank)], input.dtype
    )


@expand_dims.vjp("input")
def _(g, axis):
    return squeeze(g, axis)


@expand_dims.batch
def _(mapped, input, *, axis):
    return expand_dims(input, _from_the_end(axis, input.array.ndim - 1, grows=True))


def _from_the_end(axis, rank, grows=False):
    """Axes counted from the end, where a mapped axis in front does not disturb them."""
    several = isinstance(axis, (tuple, list))
    rank += (len(axis) if several else 1) if grows else 0
    negative = [a if a < 0 else a - rank for a in (axis if several else (axis,))]
    return tuple(negative) if several else negative[0]


@primitive(type_name="Squeeze")
def squeeze(xp, input, *, axis: Axes = None):
    """Without the dimensions of size 1, all or those named by ``axis``."""
    return xp.squeeze(input, axis)


@squeeze.infer
def _(input, axis):
    if axis is None or axis == ():
        known = None not in tuple(input.shape)
        dims = [n for n in input.shape if n != 1] if known else None
        return TensorSpec(dims, input.dtype)
    axes = normalize_axis("squeeze", axis, input.shape.rank)
    if any(input.shape[a] not in (1, None) for a in axes):
        raise ShapeError("squeeze", f"the axes {axes} must have size 1", input=input)
    return TensorSpec(
        [n for i, n in enumerate(input.shape) if i not in axes], input.dtype
    )


@squeeze.vjp("input")
def _(g, input_shape):
    return reshape(g, input_shape)


@squeeze.batch
def _(mapped, input, *, axis):
    shape = input.array.shape
    if axis is None:
        return reshape(input, shape[:1] + tuple(n for n in shape[1:] if n != 1))
    return squeeze(input, _from_the_end(axis, len(shape) - 1))


@squeeze.diagonal
def _(axes, input, *, axis):
    gone = normalize_axis("squeeze", axis, input.shape.rank) if axis is not None else [
        i for i, n in enumerate(input.shape) if n == 1
    ]  # fmt: skip
    at = input.shape.rank + axes[0]
    return None if at in gone else axes[0] + len([a for a in gone if a > at])


@expand_dims.diagonal
def _(axes, input, *, axis):
    count = 1 if isinstance(axis, int) else len(axis)
    rank = input.shape.rank + count
    new = normalize_axis("expand_dims", axis, rank)
    kept = [i for i in range(rank) if i not in new]
    return kept[axes[0]] - rank


# ------------------------------------------------------------------------ transpose


@primitive(type_name="Transpose")
def transpose(xp, a, *, perm: Axes = None, conjugate=False):
    """Axis ``i`` of the result is axis ``perm[i]`` of ``a``; without perm, reversed.

    >>> transpose([[1, 2, 3]]).shape
    TensorShape([3, 1])
    """
    moved = xp.transpose(a, perm)
    return xp.conj(moved) if conjugate and a.dtype.kind == "c" else moved


@transpose.infer
def _(a, perm, conjugate):
    rank = a.shape.rank
    perm = tuple(range(rank))[::-1] if perm is None else tuple(perm)
    if sorted(p % rank if -rank <= p < rank else p for p in perm) != list(range(rank)):
        raise ShapeError("transpose", f"perm {perm} must name each axis once", a=a)
    return TensorSpec([a.shape[p] for p in perm], a.dtype)


@transpose.vjp("a")
def _(g, perm, conjugate):
    if perm is not None:
        rank, inverse = len(perm), [0] * len(perm)
        for i, p in enumerate(perm):
            inverse[p % rank] = i
        perm = inverse
    return transpose(g, perm, conjugate=conjugate)


@transpose.batch
def _(mapped, a, *, perm, conjugate):
    rank = a.array.ndim - 1
    perm = range(rank)[::-1] if perm is None else [p % rank for p in perm]
    return transpose(a, [0] + [p + 1 for p in perm], conjugate=conjugate)


@transpose.diagonal
def _(axes, a, *, perm, conjugate):
    rank = a.shape.rank
    perm = list(range(rank))[::-1] if perm is None else [p % rank for p in perm]
    return perm.index(rank + axes[0]) - rank


# ------------------------------------------------------------- broadcasting and sums


@primitive(type_name="BroadcastTo")
def broadcast_to(xp, input, *, shape: Shape):
    """``input`` repeated along new axes, and along axes of size 1."""
    return xp.broadcast_to(input, shape)


@broadcast_to.kernel_for("numpy")
def _(xp, input, *, shape):
    """As above in a tenth of the time: cotangents of sums come this way at each step."""
    x = np.asarray(input)
    lead = len(shape) - x.ndim
    fits = lead >= 0 and all(m in (n, 1) for m, n in zip(x.shape, shape[lead:]))
    if not fits or not x.flags.c_contiguous or not x.size:
        return np.broadcast_to(x, shape)
    strides = [0 if m == 1 else step for m, step in zip(x.shape, x.strides)]
    view = np.ndarray(shape, x.dtype, x, 0, (0,) * lead + tuple(strides))
    view.flags.writeable = False
    return view


@broadcast_to.infer
def _(input, shape):
    try:
        if broadcast_shape(input.shape, shape) != tuple(shape):
            raise ValueError
    except ValueError:
        raise ShapeError(
            "broadcast_to",
            f"the input does not broadcast to {tuple(shape)}",
            input=input,
        ) from None
    return TensorSpec(shape, input.dtype)


@broadcast_to.vjp("input")
def _(g, input_shape):
    return sum_to_shape(g, input_shape)


@broadcast_to.batch
def _(mapped, input, *, shape):
    old = input.array.shape
    filler = (1,) * (len(shape) - len(old) + 1)
    return broadcast_to(
        reshape(input, old[:1] + filler + old[1:]), old[:1] + tuple(shape)
    )


@broadcast_to.diagonal
def _(axes, input, *, shape):
    return axes[0] if input.shape[axes[0]] == shape[axes[0]] else None


@primitive
def sum_to_shape(xp, x, *, shape: Shape):
    """The adjoint of `broadcast_to`: ``x`` summed over the axes that it would repeat."""
    lead = x.ndim - len(shape)
    axes = tuple(range(lead))
    axes += tuple([i for i, n in enumerate(shape, lead) if n == 1 and x.shape[i] != 1])
    if axes == (0,) and x.ndim == 2 and x.dtype.kind == "f":
        total = xp.ones(x.shape[0], x.dtype) @ x  # a third of the time that sum takes
        return total.reshape(shape)
    return x.sum(axis=axes).reshape(shape)


@sum_to_shape.infer
def _(x, shape):
    if not broadcast_shape(x.shape, shape).is_compatible_with(x.shape):
        raise ShapeError("sum_to_shape", f"{tuple(shape)} does not broadcast to x", x=x)
    return TensorSpec(shape, x.dtype)


@sum_to_shape.vjp("x")
def _(g, x_shape):
    return broadcast_to(g, x_shape)


@sum_to_shape.batch
def _(mapped, x, *, shape):
    size, rank = x.array.shape[0], x.array.ndim - 1
    full = (1,) * (rank - len(shape)) + tuple(shape)
    return reshape(sum_to_shape(x, (size, *full)), (size, *shape))


@sum_to_shape.diagonal
def _(axes, x, *, shape):
    (axis,) = axes
    return axis if len(shape) >= -axis and shape[axis] != 1 else None


adjoint.sum_to_shape = sum_to_shape


# -------------------------------------------------------------------- joining, splitting


@primitive(type_name="ConcatV2")
def concat(xp, *values, axis: Axes):
    """The tensors of a list, one behind the other along an existing axis.

    >>> concat([[1, 2], [3]], axis=0).numpy()
    array([1, 2, 3], dtype=int32)
    """
    return xp.concatenate(values, axis=axis)


@concat.infer
def _(*values, axis):
    first = values[0]
    (at,) = normalize_axis("concat", axis, first.shape.rank)
    for value in values[1:]:
        same_rank = value.shape.rank == first.shape.rank
        if not same_rank or any(
            a != b and None not in (a, b) and i != at
            for i, (a, b) in enumerate(zip(value.shape, first.shape))
        ):
            raise ShapeError("concat", f"all axes but {at} must have the same size",
                             first=first, other=value)  # fmt: skip
    dims = list(first.shape)
    sizes = [v.shape[at] for v in values]
    dims[at] = None if None in sizes else sum(sizes)
    return TensorSpec(dims, first.dtype)


@concat.vjp("values")
def _(g, values_shape, axis):
    return split(g, [s[axis] for s in values_shape], axis=axis)


@concat.batch
def _(mapped, *values, axis):
    rank = values[0].array.ndim - mapped[0]
    return concat(all_mapped(mapped, values), axis=axis % rank + 1)


def all_mapped(mapped, values):
    """The values, those without a mapped axis repeated along one."""
    size = next(v.array.shape[0] for v, m in zip(values, mapped) if m)
    return [
        v if m else broadcast_to(v, (size, *v.array.shape))
        for v, m in zip(values, mapped)
    ]


@primitive(type_name="Pack")
def stack(xp, *values, axis: Axes = 0):
    """The tensors of a list, all of one shape, along a new axis.

    >>> stack([[1, 2], [3, 4]], axis=1).numpy()
    array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return xp.stack(values, axis=axis)


@stack.infer
def _(*values, axis):
    first = values[0]
    for value in values[1:]:
        if not value.shape.is_compatible_with(first.shape):
            raise ShapeError(
                "stack", "all shapes must be the same", first=first, other=value
            )
    (at,) = normalize_axis("stack", axis, first.shape.rank + 1)
    dims = list(first.shape)
    return TensorSpec(dims[:at] + [len(values)] + dims[at:], first.dtype)


@stack.vjp("values")
def _(g, axis):
    return unstack(g, axis=axis)


@stack.batch
def _(mapped, *values, axis):
    rank = values[0].array.ndim - mapped[0] + 1
    return stack(all_mapped(mapped, values), axis=axis % rank + 1)


tensor.pack_hook = stack


@primitive(name="split", type_name="SplitV", multiple=True)
def _split(xp, value, *, sizes: Shape, axis: Axes = 0):
    ends = np.cumsum(sizes)
    index = [slice(None)] * value.ndim
    parts = []
    for size, end in zip(sizes, ends):
        index[axis] = slice(int(end) - size, int(end))
        parts.append(value[tuple(index)])
    return tuple(parts)


@_split.infer
def _(value, sizes, axis):
    (at,) = normalize_axis("split", axis, value.shape.rank)
    if value.shape[at] not in (None, sum(sizes)):
        raise ShapeError(
            "split",
            f"sizes {sizes} do not add up to the size of axis {at}",
            value=value,
        )
    shapes = [list(value.shape) for _ in sizes]
    for dims, size in zip(shapes, sizes):
        dims[at] = size
    return tuple([TensorSpec(dims, value.dtype) for dims in shapes])


@_split.vjp("value")
def _(g, axis):
    return concat(list(g), axis=axis)


@_split.batch
def _(mapped, value, *, sizes, axis):
    return _split(value, sizes=sizes, axis=axis % (value.array.ndim - 1) + 1)


def split(value, num_or_size_splits, axis=0, num=None, name=None):
    """A list of pieces along ``axis``: of equal size (an int) or of the sizes listed.

    Raises: ``ShapeError`` if the sizes do not add up to the size of the axis.
    """
    bare = active_reader() is BARE
    value = value if bare else convert_to_tensor(value)
    size = value.shape[axis]
    if isinstance(num_or_size_splits, int):
        if num_or_size_splits < 1 or size % num_or_size_splits:
            raise ShapeError(
                "split",
                f"axis {axis} does not divide into {num_or_size_splits}",
                value=value,
            )
        sizes = (size // num_or_size_splits,) * num_or_size_splits
    else:
        sizes = list(Shape(num_or_size_splits))
        if -1 in sizes:
            sizes[sizes.index(-1)] = size - sum(n for n in sizes if n != -1)
    if sum(sizes) != size:
        raise ShapeError("split", f"sizes {tuple(sizes)} do not add up to {size}, the size of "
                         f"axis {axis}", value=value)  # fmt: skip
    return list(_split(value, sizes=sizes, axis=axis))


@primitive(name="unstack", type_name="Unpack", multiple=True)
def _unstack(xp, value, *, axis: Axes = 0):
    return tuple(xp.moveaxis(value, axis, 0))


@_unstack.infer
def _(value, axis):
    (at,) = normalize_axis("unstack", axis, value.shape.rank)
    dims = list(value.shape)
    count = dims.pop(at)
    if count is None:
        raise ShapeError("unstack", f"the size of axis {at} must be known", value=value)
    return tuple([TensorSpec(dims, value.dtype)] * count)


@_unstack.vjp("value")
def _(g, axis):
    return stack(list(g), axis=axis)


@_unstack.batch
def _(mapped, value, *, axis):
    return _unstack(value, axis=axis % (value.array.ndim - 1) + 1)


def unstack(value, num=None, axis=0, name=None):
    """A list of the slices of ``value`` along ``axis``, which disappears."""
    return list(_unstack(value, axis=axis))


# ------------------------------------------------------------------- padding, repeating


def Paddings(value):
    """Pairs (before, after), one for each axis, as plain ints."""
    return tuple([(int(before), int(after)) for before, after in value])


@primitive(name="pad", type_name="PadV2", alike=("tensor", "constant_values"))
def _pad(xp, tensor, constant_values, *, paddings: Paddings):
    dims = [n + b + a for n, (b, a) in zip(tensor.shape, paddings, strict=True)]
    padded = xp.empty(dims, tensor.dtype)
    padded[...] = constant_values
    padded[tuple([slice(b, b + n) for n, (b, a) in zip(tensor.shape, paddings)])] = (
        tensor
    )
    return padded


@_pad.infer
def _(tensor, constant_values, paddings):
    if len(paddings) != tensor.shape.rank or any(
        n < 0 for pair in paddings for n in pair
    ):
        raise ShapeError("pad", f"paddings must be one pair of numbers >= 0 for each axis, got "
                         f"{paddings}", tensor=tensor)  # fmt: skip
    if constant_values.shape.rank != 0:
        raise ShapeError("pad", "constant_values must be a scalar",
                         constant_values=constant_values)  # fmt: skip
    dims = [None if n is None else n + sum(p) for n, p in zip(tensor.shape, paddings)]
    return TensorSpec(dims, tensor.dtype)


@_pad.vjp("tensor")
def _(g, tensor_shape, paddings):
    return _crop(g, paddings=paddings)


@_pad.vjp("constant_values")
def _(g, paddings, constant_values_dtype):
    inside = _crop(g, paddings=paddings)
    return sum_to_shape(g, ()) - sum_to_shape(inside, ())


@_pad.batch
def _(mapped, tensor, constant_values, *, paddings):
    if mapped[1]:
        tensor, constant_values = lift(
            (True, True), *all_mapped(mapped, (tensor, constant_values))
        )
        ring = _pad(tensor * 0, 1, paddings=((0, 0), *paddings))
        return _pad(tensor, 0, paddings=((0, 0), *paddings)) + ring * constant_values
    return _pad(tensor, constant_values, paddings=((0, 0), *paddings))


@_pad.diagonal
def _(axes, tensor, constant_values, *, paddings):
    return None if axes[1] is not None or paddings[axes[0]] != (0, 0) else axes[0]


@primitive(name="crop")
def _crop(xp, x, *, paddings: Paddings):
    """The adjoint of `pad`: ``x`` without a margin."""
    return x[tuple([slice(b, n - a) for n, (b, a) in zip(x.shape, paddings)])]


@_crop.infer
def _(x, paddings):
    dims = [None if n is None else n - sum(p) for n, p in zip(x.shape, paddings)]
    return TensorSpec(dims, x.dtype)


@_crop.vjp("x")
def _(g, paddings):
    return pad(g, paddings)


@_crop.batch
def _(mapped, x, *, paddings):
    return _crop(x, paddings=((0, 0), *paddings))


def pad(tensor, paddings, mode="CONSTANT", constant_values=0, name=None):
    """``tensor`` with a margin: ``paddings[i] = (before, after)`` entries on axis ``i``.

    ``mode``: "CONSTANT" (filled with ``constant_values``), "REFLECT" (mirrored, the edge
    once) or "SYMMETRIC" (mirrored, the edge twice).

    >>> pad([1, 2], [[1, 1]]).numpy()
    array([0, 1, 2, 0], dtype=int32)
    """
    mode = str(mode).upper()
    if mode == "CONSTANT":
        return _pad(tensor, constant_values, paddings=paddings)
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise ValueError(
            f"pad: mode must be 'CONSTANT', 'REFLECT' or 'SYMMETRIC', got {mode!r}"
        )
    edge = 1 if mode == "REFLECT" else 0
    tensor = convert_to_tensor(tensor)
    for axis, (before, after) in enumerate(Paddings(paddings)):
        size = tensor.shape[axis]
        if max(before, after) > size - edge:
            raise ShapeError(
                "pad", f"mode {mode} mirrors at most {size - edge} entries of axis {axis}",
                tensor=tensor,
            )  # fmt: skip
        head, rest = split(tensor, [before + edge, size - before - edge], axis)
        tail = split(tensor, [size - after - edge, after + edge], axis)[1]
        head = split(head, [edge, before], axis)[1]
        tail = split(tail, [after, edge], axis)[0]
        tensor = concat([reverse(head, axis), tensor, reverse(tail, axis)], axis=axis)
    return tensor


@primitive(type_name="ReverseV2")
def reverse(xp, tensor, *, axis: Axes):
    """The entries in opposite order along one or several axes."""
    return xp.flip(tensor, axis)


@reverse.infer
def _(tensor, axis):
    normalize_axis("reverse", axis, tensor.shape.rank)
    return tensor


@reverse.vjp("tensor")
def _(g, axis):
    return reverse(g, axis)


@reverse.batch
def _(mapped, tensor, *, axis):
    return reverse(tensor, _from_the_end(axis, tensor.array.ndim - 1))


def tile(input, multiples, name=None):
    """``input`` repeated ``multiples[i]`` times along axis ``i``.

    >>> tile([1, 2], [2]).numpy()
    array([1, 2, 1, 2], dtype=int32)
    """
    input, multiples = convert_to_tensor(input), Shape(multiples)
    dims = tuple(input.shape)
    if len(multiples) != len(dims):
        raise ShapeError("tile", f"multiples {multiples} must have one entry for each axis",
                         input=input)  # fmt: skip
    spread = [n for m, d in zip(multiples, dims) for n in (1, d)]
    full = [n for m, d in zip(multiples, dims) for n in (m, d)]
    tiled = broadcast_to(reshape(input, spread), full)
    return reshape(tiled, [m * d for m, d in zip(multiples, dims)])


def repeat(input, repeats, axis=None, name=None):
    """Each entry ``repeats`` times (an int) along ``axis``; without one, flattened.

    >>> repeat([1, 2], 2).numpy()
    array([1, 1, 2, 2], dtype=int32)
    """
    input, repeats = convert_to_tensor(input), int(repeats)
    if axis is None:
        input, axis = reshape(input, [-1]), 0
    (axis,) = normalize_axis("repeat", axis, input.shape.rank)
    dims = tuple(input.shape)
    wide = broadcast_to(
        expand_dims(input, axis + 1), (*dims[: axis + 1], repeats, *dims[axis + 1 :])
    )
    return reshape(wide, (*dims[:axis], dims[axis] * repeats, *dims[axis + 1 :]))


# ------------------------------------------------------------------------ asking


def shape(input, out_type=dtypes.int32, name=None):
    """The shape as an integer tensor."""
    dims = convert_to_tensor(input).shape
    return new_tensor(np.array(tuple(dims), dtypes.as_dtype(out_type).dtype))


def size(input, out_type=dtypes.int32, name=None):
    """The number of entries, as an integer tensor."""
    count = convert_to_tensor(input).array.size
    return new_tensor(np.array(count, dtypes.as_dtype(out_type).dtype))


def rank(input, name=None):
    """The number of axes, as an integer tensor."""
    return new_tensor(np.array(convert_to_tensor(input).array.ndim, np.int32))


def ensure_shape(x, shape, name=None):
    """``x``, checked against ``shape``. Raises: ``ShapeError`` if it does not fit."""
    x = convert_to_tensor(x)
    if not x.shape.is_compatible_with(shape):
        raise ShapeError("ensure_shape", f"the shape must be {TensorShape(shape)}", x=x)
    return x


# -------------------------------------------------------- diagonals, for Jacobians


@primitive
def embed_diagonal(xp, x, *, axis: Axes):
    """``x`` once for each index of ``axis``, zero but at that index: a new axis in front.

    ``axis`` is counted from the end. Shape: ``[n, *x.shape]`` with ``n = x.shape[axis]``.
    """
    count = x.shape[axis]
    full = xp.zeros((count, *x.shape), x.dtype)
    picks = xp.arange(count)
    xp.moveaxis(full, axis, 1)[picks, picks] = xp.moveaxis(x, axis, 0)
    return full


@embed_diagonal.infer
def _(x, axis):
    normalize_axis("embed_diagonal", axis, x.shape.rank)
    return TensorSpec((x.shape[axis], *x.shape), x.dtype)


@embed_diagonal.vjp("x")
def _(g, axis):
    return take_diagonal(g, axis)


@embed_diagonal.batch
def _(mapped, x, *, axis):
    full = embed_diagonal(x, axis)
    return transpose(full, (1, 0, *range(2, full.array.ndim)))


@primitive
def take_diagonal(xp, x, *, axis: Axes):
    """The adjoint of `embed_diagonal`: from each entry of the first axis its own index."""
    picks = xp.arange(x.shape[0])
    return xp.moveaxis(xp.moveaxis(x, axis, 1)[picks, picks], 0, axis)


@take_diagonal.infer
def _(x, axis):
    if None not in (x.shape[0], x.shape[axis]) and x.shape[0] != x.shape[axis]:
        raise ShapeError("take_diagonal", f"axes 0 and {axis} must have one size", x=x)
    return TensorSpec(x.shape[1:], x.dtype)


@take_diagonal.vjp("x")
def _(g, axis):
    return embed_diagonal(g, axis)


@take_diagonal.batch
def _(mapped, x, *, axis):
    return take_diagonal(transpose(x, (1, 0, *range(2, x.array.ndim))), axis)
