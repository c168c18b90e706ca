"""Ops that change or return the shape of a tensor: reshape, transpose, broadcast, size.

Also the ops that move blocks of pixels to channels and back. `broadcast_to` and
`sum_to_shape` are adjoints of each other.
"""

from __future__ import annotations

import math

import numpy as np

from tapewright.core import dtypes
from tapewright.core.dispatch import composite
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.hardware import devices
from tapewright.core.hardware.blas import ROW
from tapewright.core.op_definition.costs import per_input
from tapewright.core.primitive import primitive
from tapewright.core.rules import (
    broadcast_shape,
    check_at_least,
    check_choice,
    checked_broadcast,
    known_rank,
    normalize_axis,
)
from tapewright.core.shapes.symbolic_shape import (
    agree,
    definitely_equal,
    divides,
    has_symbolic_shape,
    product,
)
from tapewright.core.shapes.tensor_shape import TensorShape, UnrankedShape
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    module_of,
    new_tensor,
)
from tapewright.core.typing import (
    Axes,
    Axis,
    DTypeLike,
    ShapeLike,
    StaticShapeLike,
    TensorLike,
    as_shape,
)

from .sizes import size_tensor

__all__ = [
    "broadcast_dynamic_shape",
    "broadcast_static_shape",
    "broadcast_to",
    "ensure_shape",
    "expand_dims",
    "rank",
    "reshape",
    "shape",
    "size",
    "squeeze",
    "transpose",
    "unravel_index",
]


# From so many entries on, sums over all axes, or along rows, go in parts.
MANY = 1 << 16


# ---------------------------------------------------------- reshape, and its relatives


@primitive(sizes=True, linear=True, moves=True, view=True)
def reshape(xp, tensor: TensorLike, shape: ShapeLike):
    """Reshape a tensor; its entries keep their row-major order.

    Args:
        tensor: Input tensor.
        shape: New shape; one size may be -1, to infer it from the others.

    Example:
        >>> tw.reshape([[1, 2], [3, 4]], [-1]).numpy()
        array([1, 2, 3, 4], dtype=int32)
    """
    shape = _of_nothing(tensor.shape, shape)
    result = tensor.reshape(shape)
    if result.shape != shape and -1 not in shape:  # NumPy takes any negative for -1
        raise ValueError
    return result


def _of_nothing(dims, shape):
    """Infer the -1 of ``shape`` where an axis has size 0: the other axes determine it."""
    plain = [n for n in shape if type(n) is int]  # formulas are not compared
    if 0 not in plain or plain.count(-1) != 1 or any([n is None for n in dims]):
        return shape
    entries = math.prod([n for n in dims if n != 0])
    rest = entries // -math.prod([n for n in shape if n != 0])
    return tuple([rest if n == -1 else n for n in shape])


@reshape.infer
def _(tensor, shape):
    if isinstance(shape, UnrankedShape):  # of unknown rank
        if product(tensor.shape) != shape.size:
            raise ShapeError(
                "reshape", "the number of entries must not change", tensor=tensor
            )
        return TensorSpec(shape, tensor.dtype)
    dims = tensor.shape
    shape = _of_nothing(dims, shape)
    is_open = dims.rank is None or any([n is None for n in dims])
    count = None if is_open and not isinstance(dims, UnrankedShape) else product(dims)
    known = math.prod(n for n in shape if n != -1)
    open_dims = list(shape).count(-1)
    fits = count is None or (
        agree(count, known) if not open_dims else known > 0 and divides(known, count)
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
    shape = _of_nothing(tensor.array.shape[1:], shape)
    return reshape(tensor, tensor.array.shape[:1] + tuple(shape))


@reshape.diagonal
def _(axes, tensor, *, shape):
    # The axis survives if the entries before it and behind it are grouped as they were.
    old, (axis,) = tuple(tensor.shape), axes
    size, behind = old[axis], math.prod(old[len(old) + axis + 1 :])
    shape = _of_nothing(old, shape)
    if -1 in shape:
        rest = -math.prod(shape)
        shape = tuple(math.prod(old) // rest if n == -1 else n for n in shape)
    for i in range(-1, -len(shape) - 1, -1):
        if shape[i] == size and math.prod(shape[len(shape) + i + 1 :]) == behind:
            return i
    return None


@primitive(sizes=True, linear=True, moves=True, view=True)
def expand_dims(xp, input: TensorLike, axis: Axis):
    """Insert an axis of size 1.

    Args:
        input: Input tensor.
        axis: Position of the new axis in the result, or a list of positions.

    Example:
        >>> tw.expand_dims([1, 2], 0).shape, tw.expand_dims([1, 2], -1).shape
        (TensorShape([1, 2]), TensorShape([2, 1]))
    """
    if isinstance(axis, int):
        rank = input.ndim + 1
        if -rank <= axis < rank:
            at = axis % rank
            return input.reshape(input.shape[:at] + (1,) + input.shape[at:])
    return xp.expand_dims(input, axis)


@expand_dims.infer
def _(input, axis):
    axes = (axis,) if isinstance(axis, int) else axis
    rank = known_rank("expand_dims", "input", input) + len(axes)
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
    return expand_dims(input, from_the_end(axis, input.array.ndim - 1, grows=True))


def from_the_end(axis, rank, grows=False):
    """Count axes from the end, where a mapped axis in front does not shift them."""
    several = isinstance(axis, (tuple, list))
    rank += (len(axis) if several else 1) if grows else 0
    negative = [a if a < 0 else a - rank for a in (axis if several else (axis,))]
    return tuple(negative) if several else negative[0]


@primitive(sizes=True, linear=True, moves=True, view=True)
def squeeze(xp, input: TensorLike, axis: Axes = None):
    """Remove axes of size 1.

    Args:
        input: Input tensor.
        axis: Axes to remove; None removes all axes of size 1.

    Raises:
        ShapeError: If an axis in ``axis`` has another size.

    Example:
        >>> tw.squeeze([[[1], [2]]]).shape, tw.squeeze([[[1], [2]]], axis=[0]).shape
        (TensorShape([2]), TensorShape([2, 1]))
    """
    return xp.squeeze(input, None if axis == () else axis)


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
    if axis is None or axis == ():
        return reshape(input, shape[:1] + tuple(n for n in shape[1:] if n != 1))
    return squeeze(input, from_the_end(axis, len(shape) - 1))


@squeeze.diagonal
def _(axes, input, *, axis):
    if axis is None or axis == ():
        gone = [i for i, n in enumerate(input.shape) if n == 1]
    else:
        gone = normalize_axis("squeeze", axis, input.shape.rank)
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


@primitive(sizes=True, linear=True, moves=True, view=True)
def transpose(xp, a: TensorLike, perm: Axes = None, conjugate: bool = False):
    """Permute the axes of a tensor.

    Args:
        a: Input tensor.
        perm: Order of the axes: axis ``i`` of the result is axis ``perm[i]`` of ``a``;
            None reverses them.
        conjugate: If True, also take the complex conjugate.

    Example:
        >>> tw.transpose([[1, 2, 3]]).shape
        TensorShape([3, 1])
        >>> tw.transpose([[[1, 2, 3]]], perm=[0, 2, 1]).shape
        TensorShape([1, 3, 1])
    """
    moved = xp.transpose(a, perm)
    return xp.conj(moved) if conjugate and a.dtype.kind == "c" else moved


@transpose.infer
def _(a, perm, conjugate):
    rank = known_rank("transpose", "a", a)
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


# -------------------------------------------------------------- blocks as channels


def space_to_depth(
    input: TensorLike,
    block_size: int,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """Move blocks of ``block_size`` times ``block_size`` pixels into the channels.

    Args:
        input: Batch of images.
        block_size: Height and width of a block, at least 2.
        data_format: "NHWC", or "NCHW" where the channels are axis 1.

    Shapes:
        ``[batch, height, width, channels]`` to ``[batch, height / block_size, width /
        block_size, channels * block_size ** 2]``.

    Raises:
        ValueError: If ``block_size`` is less than 2, or ``data_format`` is unknown.

    Example:
        >>> tw.nn.space_to_depth([[[[1], [2]], [[3], [4]]]], 2).numpy()
        array([[[[1, 2, 3, 4]]]], dtype=int32)
    """
    x, b = convert_to_tensor(input), int(block_size)
    count, height, width, channels = _image_dims("space_to_depth", x, b, data_format)
    if not (divides(b, height) and divides(b, width)):
        raise ShapeError(
            "space_to_depth", f"height and width must be multiples of {b}", input=x
        )
    rows, cols = height // b, width // b
    if data_format == "NHWC":
        blocks = reshape(x, (count, rows, b, cols, b, channels))
        moved = transpose(blocks, (0, 1, 3, 2, 4, 5))
        return reshape(moved, (count, rows, cols, b * b * channels))
    blocks = reshape(x, (count, channels, rows, b, cols, b))
    moved = transpose(blocks, (0, 3, 5, 1, 2, 4))
    return reshape(moved, (count, b * b * channels, rows, cols))


def depth_to_space(
    input: TensorLike,
    block_size: int,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """Move the channels of each pixel into a block of pixels; undoes `space_to_depth`.

    Args:
        input: Batch of images.
        block_size: Height and width of a block, at least 2.
        data_format: "NHWC", or "NCHW" where the channels are axis 1.

    Shapes:
        ``[batch, height, width, channels]`` to ``[batch, height * block_size, width *
        block_size, channels / block_size ** 2]``.

    Raises:
        ValueError: If ``block_size`` is less than 2, or ``data_format`` is unknown.

    Example:
        >>> tw.nn.depth_to_space([[[[1, 2, 3, 4]]]], 2).numpy().tolist()
        [[[[1], [2]], [[3], [4]]]]
    """
    x, b = convert_to_tensor(input), int(block_size)
    count, rows, cols, channels = _image_dims("depth_to_space", x, b, data_format)
    if not divides(b * b, channels):
        raise ShapeError(
            "depth_to_space", f"the channels must be a multiple of {b * b}", input=x
        )
    rest = channels // (b * b)
    if data_format == "NHWC":
        blocks = reshape(x, (count, rows, cols, b, b, rest))
        moved = transpose(blocks, (0, 1, 3, 2, 4, 5))
        return reshape(moved, (count, rows * b, cols * b, rest))
    blocks = reshape(x, (count, b, b, rest, rows, cols))
    moved = transpose(blocks, (0, 3, 4, 1, 5, 2))
    return reshape(moved, (count, rest, rows * b, cols * b))


def _image_dims(who, x, block_size, data_format):
    """Return batch, height, width and channels of a batch of images."""
    check_choice(who, "data_format", data_format, ("NHWC", "NCHW"))
    check_at_least(who, 2, block_size=block_size)
    if len(x.shape) != 4:
        raise ShapeError(who, f"input must have four axes, {data_format}", input=x)
    first, second, third, last = x.shape
    if data_format == "NHWC":
        return first, second, third, last
    return first, third, last, second


# ------------------------------------------------------------- broadcasting and sums


@primitive(sizes=True, grows=True, linear=True, moves=True, view=True)
def broadcast_to(xp, input: TensorLike, shape: ShapeLike):
    """Broadcast a tensor to a shape: repeat it along new first axes and axes of size 1.

    Args:
        input: Input tensor.
        shape: Shape of the result.

    Example:
        >>> tw.broadcast_to([1, 2], [2, 2]).numpy()
        array([[1, 2],
               [1, 2]], dtype=int32)
    """
    return xp.broadcast_to(input, shape)


@broadcast_to.kernel_for("numpy")
def _(xp, input, *, shape):
    """Faster kernel, in a tenth of the time: cotangents of sums are broadcast at each step."""
    x = np.asarray(input)
    lead = len(shape) - x.ndim
    fits = lead >= 0 and all(m in (n, 1) for m, n in zip(x.shape, shape[lead:]))
    if not fits or not x.flags.c_contiguous or not x.size or -1 in shape:
        # `broadcast_to` rejects -1, where a view would infer it.
        return np.broadcast_to(x, shape)
    strides = [0 if m == 1 else step for m, step in zip(x.shape, x.strides)]
    view = np.ndarray(shape, x.dtype, x, 0, (0,) * lead + tuple(strides))
    view.flags.writeable = False
    return view


@broadcast_to.infer
def _(input, shape):
    try:
        full = broadcast_shape(input.shape, shape)
        if not definitely_equal(full, shape) and full != tuple(shape):
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


@primitive(sizes=True, linear=True, cost=per_input(1))
def sum_to_shape(xp, x: TensorLike, shape: ShapeLike):
    """Sum ``x`` over the axes that `broadcast_to` would repeat: its adjoint."""
    if x.shape == shape:
        return x
    lead = x.ndim - len(shape)
    axes = [*range(lead)]
    if x.shape[lead:] != shape:
        axes += [i for i, n in enumerate(shape, lead) if n == 1 and x.shape[i] != 1]
        kept = len([n for n, m in zip(shape, x.shape[lead:]) if n == m])
        if lead < 0 or x.ndim - len(axes) != kept:
            raise ValueError("shapes do not broadcast")  # `infer` says it better
    return summed(xp, x, axes).reshape(shape)


def summed(xp, x, axes):
    """Sum ``x`` over axes, named in ascending order, which stay with size 1.

    On NumPy neighbouring axes are summed by a product with ones: in a third of the time
    of ``sum`` over the first axis, a tenth over all but the last, half over all axes.
    """
    axes, all_axes = [a % x.ndim for a in axes], len(axes) == x.ndim
    if xp is not np:
        return x.sum(axis=tuple(axes), dtype=x.dtype, keepdims=True)
    least = MANY if all_axes else 4096
    if x.size < least or x.dtype.char not in "fd" or (all_axes and x.ndim > 2):
        return x.sum(axis=tuple(axes), dtype=x.dtype, keepdims=True)
    # A matrix is summed in one way however it lies.
    if not (x.ndim < 3 and not all_axes or x.flags.c_contiguous):
        return _summed_as_it_lies(xp, x, axes)
    shape, at = list(x.shape), 0
    while at < len(axes):
        first = last = axes[at]
        while at < len(axes) and axes[at] == last:
            at, last = at + 1, last + 1
        lead, tail = math.prod(shape[:first]), math.prod(shape[last:])
        x = summed_axis(xp, x, lead, math.prod(shape[first:last]), tail)
        shape[first:last] = [1] * (last - first)
    return x.reshape(shape)


def _summed_as_it_lies(xp, x, axes):
    """Apply `summed` to an array that is not in C order: transpose it, and transpose back."""
    order = sorted(range(x.ndim), key=lambda a: (-x.strides[a], a))
    back = x.transpose(order)
    if back.flags.c_contiguous:
        total = summed(xp, back, sorted([order.index(a) for a in axes]))
        return total.transpose(sorted(range(x.ndim), key=order.__getitem__))
    if math.prod([x.shape[a] for a in axes]) >= MANY:  # NumPy would add one by one
        return summed(xp, xp.ascontiguousarray(x), axes)
    return x.sum(axis=tuple(axes), keepdims=True)


def summed_axis(xp, x, lead, count, tail):
    """Sum ``x`` as ``[lead, count, tail]`` over the axis in the middle.

    A product adds entry to entry: over 16 million of them the sum would be 4 % off. So
    a long axis is summed in parts, and then these sums are added. Along rows BLAS adds
    with several accumulators, so that parts pay for very long or single rows only.
    """
    x = x.reshape(lead, count, tail)
    if count > (MANY if tail == 1 < lead else 4 * ROW):
        parts, rest = divmod(count, ROW)
        rows = (x[:, : count - rest] if rest else x).reshape(lead, parts, ROW, tail)
        if lead == tail == 1:
            sums = xp.dot(rows.reshape(parts, ROW), xp.ones(ROW, x.dtype))
        elif tail == 1:
            sums = xp.matmul(rows.reshape(lead, parts, ROW), xp.ones((ROW, 1), x.dtype))
        else:
            sums = xp.matmul(xp.ones((1, ROW), x.dtype), rows)
        total = summed_axis(xp, sums, lead, parts, tail)
        if not rest:
            return total
        return total + summed_axis(xp, x[:, count - rest :], lead, rest, tail)
    ones = xp.ones(count, x.dtype)
    if tail == 1:
        return xp.dot(x.reshape(lead, count), ones).reshape(lead, 1)
    if lead == 1:
        return xp.dot(ones, x.reshape(count, tail)).reshape(1, tail)
    return xp.matmul(ones.reshape(1, count), x).reshape(lead, tail)


@sum_to_shape.infer
def _(x, shape):
    full = broadcast_shape(x.shape, shape)
    if not definitely_equal(full, x.shape) and not full.is_compatible_with(x.shape):
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


@sum_to_shape.densify
def _(position, axis, x, shape):
    full = x.shape[1:]
    lead = len(full) - len(shape)
    summed = {*range(lead)}
    summed |= {a for a, n in enumerate(shape, lead) if n == 1 and full[a] != 1}
    return sum_sparse(x, axis + len(full), summed, shape)


def sum_sparse(x, axis, summed, shape):
    """Sum ``[n, ...]``, sparse along ``axis``, over axes: ``[n, m, *shape]``, or None.

    The entries along the sparse axis are not added but become the second axis, one by
    one.
    """
    if axis not in summed:
        return None
    rest = [a for a in range(x.ndim - 1) if a != axis]
    moved = x.transpose(axis + 1, 0, *[a + 1 for a in rest])
    others = tuple([rest.index(a) + 2 for a in summed if a != axis])
    moved = moved.sum(axis=others) if others else moved
    return moved.reshape(*moved.shape[:2], *shape)


# ------------------------------------------------------------------------ asking


@composite
def shape(
    input: TensorLike, out_type: DTypeLike = dtypes.int32, name: str | None = None
) -> Tensor:
    """Return the shape of a tensor as an integer tensor.

    In a traced function it includes the sizes that are unknown while tracing.

    Args:
        input: Input tensor.
        out_type: Integer dtype of the result.

    Shapes:
        Result ``[rank]``.

    Example:
        >>> tw.shape([[1, 2, 3], [4, 5, 6]]).numpy()
        array([2, 3], dtype=int32)
    """
    input = convert_to_tensor(input)
    return _beside(input, tuple(input.shape), out_type)


@composite
def size(
    input: TensorLike, out_type: DTypeLike = dtypes.int32, name: str | None = None
) -> Tensor:
    """Return the number of entries of a tensor, a scalar.

    Args:
        input: Input tensor.
        out_type: Integer dtype of the result.

    Example:
        >>> tw.size([[1, 2, 3], [4, 5, 6]]).numpy()
        np.int32(6)
    """
    input = convert_to_tensor(input)
    return _beside(input, input.array.size, out_type)


@composite
def rank(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the number of axes of a tensor, an int32 scalar.

    Args:
        input: Input tensor.

    Example:
        >>> tw.rank([[1, 2], [3, 4]]).numpy()
        np.int32(2)
    """
    input = convert_to_tensor(input)
    return _beside(input, input.array.ndim, dtypes.int32)


def _beside(tensor, numbers, dtype):
    """Convert numbers to a tensor on the device of another; strings are always on the host."""
    if has_symbolic_shape(numbers):
        return size_tensor(numbers, dtype)
    array = np.array(numbers, dtypes.as_dtype(dtype).dtype)
    is_string = tensor.dtype == dtypes.string
    module = devices.current_module() if is_string else module_of(tensor)
    return new_tensor(module.asarray(array))


def ensure_shape(
    x: TensorLike, shape: StaticShapeLike, name: str | None = None
) -> Tensor:
    """Check that a tensor has a given shape, and return it.

    In a traced function, sizes that are unknown while tracing are checked in each call,
    and the result has the known shape.

    Args:
        x: Input tensor.
        shape: Expected shape; None allows any size.

    Raises:
        ShapeError: If the shape is different (a ``ValueError``).

    Example:
        >>> tw.ensure_shape([[1, 2]], [None, 2]).shape
        TensorShape([1, 2])
    """
    x = convert_to_tensor(x)
    if not x.shape.is_compatible_with(shape):
        raise ShapeError("ensure_shape", f"the shape must be {TensorShape(shape)}", x=x)
    return x


def broadcast_static_shape(
    shape_x: StaticShapeLike, shape_y: StaticShapeLike
) -> TensorShape:
    """Return the `TensorShape` to which two shapes broadcast.

    Args:
        shape_x: First shape.
        shape_y: Second shape.

    Raises:
        ShapeError: If they do not broadcast (a ``ValueError``).

    Example:
        >>> tw.broadcast_static_shape([1, 2, 3], [5, 1, 3])
        TensorShape([5, 2, 3])
    """
    shapes = TensorShape(shape_x), TensorShape(shape_y)
    return checked_broadcast("broadcast_static_shape", *shapes)


def broadcast_dynamic_shape(shape_x: ShapeLike, shape_y: ShapeLike) -> Tensor:
    """Return the shape to which two shapes broadcast, as an integer tensor.

    Args:
        shape_x: First shape, an integer vector.
        shape_y: Second shape, an integer vector.

    Raises:
        ShapeError: If they do not broadcast (a ``ValueError``).

    Example:
        >>> tw.broadcast_dynamic_shape([1, 2, 3], [5, 1, 3]).numpy()
        array([5, 2, 3], dtype=int32)
    """
    x, y = convert_to_tensor(shape_x), convert_to_tensor(shape_y)
    dims = checked_broadcast("broadcast_dynamic_shape", as_shape(x), as_shape(y))
    return _beside(x, tuple(dims), x.dtype)


@primitive(kinds="iu", may_raise=True, no_gradient=True)
def unravel_index(xp, indices: TensorLike, dims: ShapeLike):
    """Convert flat, row-major indices to coordinates in a tensor of shape ``dims``.

    Args:
        indices: Flat indices, integers.
        dims: Shape of the tensor.

    Shapes:
        ``indices`` ``[...]``, result ``[len(dims), ...]``.

    Raises:
        ValueError: If an index is out of range.

    Example:
        >>> tw.unravel_index([2, 5, 7], [3, 3]).numpy()
        array([[0, 1, 2],
               [2, 2, 1]], dtype=int32)
    """
    if any([n < 0 for n in dims]):
        raise ValueError
    count = math.prod(dims)
    if not ((indices >= 0) & (indices < count)).all():
        raise InvalidArgumentError(
            f"unravel_index: indices must be from 0 to {count - 1}, "
            f"got {devices.to_numpy(indices)}"
        )
    coordinates = xp.unravel_index(indices, tuple(dims))
    if not coordinates:
        return xp.zeros((0, *indices.shape), indices.dtype)
    return xp.stack(coordinates).astype(indices.dtype)


@unravel_index.infer
def _(indices, dims):
    if any(n < 0 for n in dims):
        raise InvalidArgumentError(
            f"unravel_index: dims must be 0 or more, got {tuple(dims)}"
        )
    return TensorSpec((len(dims), *indices.shape), indices.dtype)


@unravel_index.batch
def _(mapped, indices, *, dims):
    coordinates = unravel_index(indices, dims)
    return transpose(coordinates, [1, 0, *range(2, coordinates.array.ndim)])
