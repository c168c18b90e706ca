"""Ops that give a tensor another shape: reshape, transpose, broadcast, diagonals.

Also in here: what asks for a shape. `broadcast_to` and `sum_to_shape` are each the adjoint
of the other, and so are `embed_diagonal` and `take_diagonal`, which Jacobians use.
"""

import math

import numpy as np

from .. import adjoint, dtypes
from ..errors import ShapeError
from ..primitive import Axes, Shape, primitive
from ..rules import broadcast_shape, normalize_axis
from ..tensor import TensorSpec, convert_to_tensor, module_of, new_tensor
from ..tensor_shape import TensorShape

__all__ = [
    "broadcast_to",
    "ensure_shape",
    "expand_dims",
    "rank",
    "reshape",
    "shape",
    "size",
    "squeeze",
    "transpose",
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
    return expand_dims(input, from_the_end(axis, input.array.ndim - 1, grows=True))


def from_the_end(axis, rank, grows=False):
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
    return squeeze(input, from_the_end(axis, len(shape) - 1))


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


# ------------------------------------------------------------------------ asking


def shape(input, out_type=dtypes.int32, name=None):
    """The shape as an integer tensor."""
    input = convert_to_tensor(input)
    return _beside(input, tuple(input.shape), out_type)


def size(input, out_type=dtypes.int32, name=None):
    """The number of entries, as an integer tensor."""
    input = convert_to_tensor(input)
    return _beside(input, input.array.size, out_type)


def rank(input, name=None):
    """The number of axes, as an integer tensor."""
    input = convert_to_tensor(input)
    return _beside(input, input.array.ndim, dtypes.int32)


def _beside(tensor, numbers, dtype):
    """Numbers as a tensor on the device of another."""
    array = np.array(numbers, dtypes.as_dtype(dtype).dtype)
    return new_tensor(module_of(tensor).asarray(array))


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
