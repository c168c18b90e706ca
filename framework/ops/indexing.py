"""Ops that pick entries: indexing with ``[]``, gather, one_hot, argmax, sorting out.

A basic index is kept as plain values: ints, ``[start, stop, step]`` for a slice,
``"newaxis"`` and ``"..."``.
"""

import math

import numpy as np

from .. import backend, dtypes
from ..errors import ShapeError
from ..primitive import Axes, DTypeName, Shape, primitive
from ..rules import normalize_axis
from ..tensor import (
    IndexedSlices,
    Tensor,
    TensorSpec,
    convert_to_tensor,
    is_tensor,
    new_tensor,
)
from .comparison import where
from .conversion import cast
from .joining import all_mapped, concat
from .shape import reshape, transpose

__all__ = ["argmax", "argmin", "boolean_mask", "gather", "getitem", "one_hot", "slice"]

_slice = slice


# --------------------------------------------------------------------- basic indexing


def Index(value):
    """A basic index as plain values; see the head of this file."""
    items = value if isinstance(value, tuple) else (value,)
    return tuple([_plain(item) for item in items])


def _plain(item):
    if item is None:
        return "newaxis"
    if item is Ellipsis:
        return "..."
    if isinstance(item, _slice):
        return [
            None if n is None else int(n) for n in (item.start, item.stop, item.step)
        ]
    if isinstance(item, list):
        return item  # plain already, as are the words
    if isinstance(item, str) and item in ("newaxis", "..."):
        return item
    if isinstance(item, bool) or not hasattr(item, "__index__"):
        raise TypeError(
            "An index must be made of integers, slices, ..., None, or one array of "
            f"integers or booleans, got {item!r}"
        )
    return item.__index__()


def _numpy_index(index):
    words = {"newaxis": None, "...": Ellipsis}
    return tuple(
        [
            words[i] if isinstance(i, str) else _slice(*i) if isinstance(i, list) else i
            for i in index
        ]
    )


@primitive(name="getitem", type_name="StridedSlice")
def _getitem(xp, x, *, index: Index):
    return x[_numpy_index(index)]


@_getitem.infer
def _(x, index):
    try:
        dims = _indexed(x.shape, index, 2**20)
    except IndexError as error:
        raise IndexError(f"{error}; the tensor has shape {x.shape}") from None
    if None in tuple(x.shape):
        for size in (2**20 + 1, 1):  # what follows from an unknown size is unknown
            try:
                other = _indexed(x.shape, index, size)
            except IndexError:  # there is no such entry in so small a tensor
                continue
            dims = [n if n == m else None for n, m in zip(dims, other)]
    return TensorSpec(dims, x.dtype)


def _indexed(shape, index, unknown):
    """The shape of an indexed tensor, by NumPy's own rules on an array of no weight."""
    shape = [unknown if n is None else n for n in shape]
    return np.broadcast_to(np.zeros((), np.int8), shape)[_numpy_index(index)].shape


@_getitem.vjp("x")
def _(g, x_shape, index):
    return _scatter_index(g, shape=x_shape, index=index)


@_getitem.batch
def _(mapped, x, *, index):
    return _getitem(x, index=([None, None, None], *index))


@_getitem.diagonal
def _(axes, x, *, index):
    shape, whole = x.array.shape, [None, None, None]
    words, used = list(index), len([i for i in index if i not in ("newaxis", "...")])
    at = words.index("...") if "..." in words else len(words)
    words[at : at + 1] = [whole] * (len(shape) - used)
    axis, outgoing, found = len(shape) + axes[0], [], None
    taken = 0  # axes of x that the words so far have used
    for word in words:
        if word == "newaxis":
            outgoing.append(None)
            continue
        if isinstance(word, list):
            outgoing.append(taken)
            if taken == axis and word == whole:
                found = len(outgoing) - 1
        taken += 1
    return None if found is None else found - len(outgoing)


@primitive(name="scatter_index")
def _scatter_index(xp, g, *, shape: Shape, index: Index):
    """The adjoint of basic indexing: zeros of ``shape`` with ``g`` at ``index``."""
    full = xp.zeros(shape, g.dtype)
    full[_numpy_index(index)] = g
    return full


@_scatter_index.infer
def _(g, shape, index):
    return TensorSpec(shape, g.dtype)


@_scatter_index.vjp("g")
def _(c, index):
    return _getitem(c, index=index)


@_scatter_index.batch
def _(mapped, g, *, shape, index):
    size = g.array.shape[0]
    return _scatter_index(g, shape=(size, *shape), index=([None, None, None], *index))


def getitem(x, index):
    """``x[index]``: ints, slices, ``...``, ``None``; a boolean mask; integer tensors.

    One integer tensor or array (in the place of one axis) gathers along that axis.

    Raises: ``TypeError`` for several arrays in one index.
    """
    items = index if isinstance(index, tuple) else (index,)
    arrays = [i for i, item in enumerate(items) if _is_array_index(item)]
    if not arrays:
        return _getitem(x, index=items)
    x = convert_to_tensor(x)
    if len(arrays) > 1:
        raise TypeError(
            "Index with one array or mask at a time; gather_nd takes several"
        )
    (at,) = arrays
    picks = convert_to_tensor(items[at])
    if picks.dtype.is_bool:
        if len(items) > 1:
            raise TypeError("A boolean mask must be the only index")
        return boolean_mask(x, picks)
    if not picks.dtype.is_integer:
        raise TypeError(
            f"An index must be of integers or booleans, not {picks.dtype.name}"
        )
    before, after = items[:at], items[at + 1 :]
    if any(
        item is not Ellipsis and not isinstance(item, _slice) for item in before + after
    ):
        raise TypeError("Beside an array only slices and ... can stand in an index")
    x = _getitem(x, index=(*before, _slice(None), *after))
    axis = at if Ellipsis not in before else at - len(items)
    return gather(x, where(picks < 0, picks + x.shape[axis], picks), axis=axis)


def _is_array_index(item):
    if isinstance(item, (list, np.ndarray)):
        return True
    return is_tensor(item) and (len(item.shape) > 0 or item.dtype.is_bool)


def slice(input_, begin, size, name=None):  # noqa: A001
    """``size[i]`` entries from ``begin[i]`` on along axis ``i``; size -1 takes the rest."""
    begin, size = Shape(begin), Shape(size)
    index = [
        _slice(b, None if n == -1 else b + n) for b, n in zip(begin, size, strict=True)
    ]
    x = convert_to_tensor(input_)
    for axis, (b, n, full) in enumerate(zip(begin, size, x.shape)):
        if b < 0 or b + max(n, 0) > full:
            raise ShapeError(
                "slice", f"begin {b} and size {n} leave axis {axis}", input_=x
            )
    return _getitem(x, index=tuple(index))


# ---------------------------------------------------------------------------- gather


@primitive(name="gather", type_name="GatherV2", alike=())
def _gather(xp, params, indices, *, axis: Axes = 0):
    return xp.take(params, indices, axis=axis)


_gather.no_gradient("indices")


@_gather.infer
def _(params, indices, axis):
    (at,) = normalize_axis("gather", axis, params.shape.rank)
    if not indices.dtype.is_integer:
        raise TypeError(f"gather: indices must be integers, not {indices.dtype.name}")
    dims = params.shape[:at] + indices.shape + params.shape[at + 1 :]
    return TensorSpec(dims, params.dtype)


@_gather.vjp("params")
def _(g, indices, indices_shape, params_shape, axis):
    if axis % len(params_shape) == 0 and _is_eager(g):
        flat = reshape(indices, (-1,))
        rows = reshape(g, (math.prod(indices_shape), *params_shape[1:]))
        return IndexedSlices(rows, flat, params_shape)
    return scatter_rows(g, indices, shape=params_shape, axis=axis)


def _is_eager(g):
    """Not under a batcher or tracer, whose values are tensors of another class."""
    return not isinstance(g, Tensor) or type(g) is Tensor


@_gather.batch
def _(mapped, params, indices, *, axis):
    if not mapped[1]:
        return _gather(params, indices, axis=axis % (params.array.ndim - 1) + 1)
    if not mapped[0]:
        moved = _gather(params, indices, axis=axis)
        at = axis % params.array.ndim
        order = [at, *range(at), *range(at + 1, moved.array.ndim)]
        return transpose(moved, order)
    count, at = params.array.shape[0], axis % (params.array.ndim - 1)
    lead = list(range(1, at + 1))
    tail = list(range(at + 2, params.array.ndim))
    rows = transpose(params, [0, at + 1, *lead, *tail])
    size, rest = params.array.shape[at + 1], rows.array.shape[2:]
    picked = _gather(
        reshape(rows, (count * size, *rest)), _offset(indices, size), axis=0
    )
    depth = indices.array.ndim
    where_lead = list(range(depth, depth + at))
    where_tail = list(range(depth + at, picked.array.ndim))
    return transpose(picked, [0, *where_lead, *range(1, depth), *where_tail])


def _offset(indices, size):
    """Mapped indices into rows of ``size`` as indices into all rows, one after another."""
    array = indices.array
    xp = backend.array_module(type(array))
    starts = xp.arange(array.shape[0], dtype=xp.int64) * size
    return new_tensor(array + starts.reshape((-1,) + (1,) * (array.ndim - 1)))


@primitive(name="scatter_rows", alike=())
def scatter_rows(xp, g, indices, *, shape: Shape, axis: Axes = 0):
    """The adjoint of `gather`: zeros of ``shape`` with ``g`` added at ``indices``."""
    full = xp.zeros(shape, g.dtype)
    at = axis % len(shape)
    index = (_slice(None),) * at + (indices,)
    xp.add.at(full, index, g)
    return full


scatter_rows.no_gradient("indices")


@scatter_rows.infer
def _(g, indices, shape, axis):
    return TensorSpec(shape, g.dtype)


@scatter_rows.vjp("g")
def _(c, indices, axis):
    return _gather(c, indices, axis=axis)


@scatter_rows.batch
def _(mapped, g, indices, *, shape, axis):
    at = axis % len(shape)
    if not mapped[1]:
        full = (g.array.shape[0], *shape)
        return scatter_rows(g, indices, shape=full, axis=at + 1)
    g, indices = all_mapped(mapped, (g, indices))
    count, depth, rank = g.array.shape[0], indices.array.ndim, g.array.ndim
    lead, tail = list(range(1, at + 1)), list(range(at + depth, rank))
    rows = transpose(g, [0, *range(at + 1, at + depth), *lead, *tail])
    rest = (*shape[:at], *shape[at + 1 :])
    picks = _offset(indices, shape[at])
    full = scatter_rows(rows, picks, shape=(count * shape[at], *rest), axis=0)
    full = reshape(full, (count, shape[at], *rest))
    after = list(range(at + 2, len(shape) + 1))
    return transpose(full, [0, *range(2, at + 2), 1, *after])


def gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None):
    """The slices of ``params`` along ``axis`` (default 0) that ``indices`` names.

    Shape: that of ``params`` with the axis replaced by the shape of ``indices``. Along
    axis 0 the gradient is `IndexedSlices`.

    Raises: ``IndexError`` for an index out of range, ``ValueError`` for ``batch_dims``
    other than 0.

    >>> gather([10, 20, 30], [2, 0]).numpy()
    array([30, 10], dtype=int32)
    """
    if batch_dims:
        raise ValueError(f"gather: batch_dims must be 0, got {batch_dims}")
    axis = 0 if axis is None else int(axis)
    params, indices = convert_to_tensor(params), convert_to_tensor(indices)
    picks, size = indices.array, params.shape[axis] if params.shape else 0
    if (
        indices.dtype.is_integer
        and hasattr(picks, "min")
        and _is_eager(indices)
        and picks.size
    ):
        low, high = int(picks.min()), int(picks.max())
        if low < 0 or high >= size:
            raise IndexError(
                f"gather: indices must be from 0 to {size - 1}, got {low if low < 0 else high}"
            )
    return _gather(params, indices, axis=axis)


def boolean_mask(tensor, mask, axis=None, name="boolean_mask"):
    """The entries where ``mask``, a prefix of the shape from ``axis`` on, is true.

    >>> boolean_mask([1, 2, 3], [True, False, True]).numpy()
    array([1, 3], dtype=int32)
    """
    tensor, mask = convert_to_tensor(tensor), convert_to_tensor(mask)
    axis, depth = int(axis or 0), len(mask.shape)
    shape = tuple(tensor.shape)
    if (
        not mask.dtype.is_bool
        or depth == 0
        or shape[axis : axis + depth] != tuple(mask.shape)
    ):
        raise ShapeError("boolean_mask", "mask must be boolean, with the sizes of the axes "
                         f"from {axis} on", tensor=tensor, mask=mask)  # fmt: skip
    flat = reshape(tensor, (*shape[:axis], -1, *shape[axis + depth :]))
    xp = backend.array_module(type(mask.array))
    return gather(flat, xp.flatnonzero(mask.array).astype(xp.int64), axis=axis)


# ------------------------------------------------------------------- whole numbers


@primitive(name="one_hot", type_name="OneHot")
def _one_hot(xp, indices, *, depth: int, axis: Axes = -1, dtype: DTypeName = "float32"):
    hits = indices[..., None] == xp.arange(depth)
    return xp.moveaxis(hits.astype(dtype), -1, axis)


_one_hot.no_gradient()


@_one_hot.infer
def _(indices, depth, axis, dtype):
    if not indices.dtype.is_integer:
        raise TypeError(f"one_hot: indices must be integers, not {indices.dtype.name}")
    (at,) = normalize_axis("one_hot", axis, indices.shape.rank + 1)
    return TensorSpec(indices.shape[:at] + (depth,) + indices.shape[at:], dtype)


@_one_hot.batch
def _(mapped, indices, *, depth, axis, dtype):
    return _one_hot(indices, depth, axis % indices.array.ndim + 1, dtype)


def one_hot(
    indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None
):
    """``on_value`` (1) at each index, ``off_value`` (0) elsewhere, along a new ``axis``.

    The new axis has size ``depth`` and is the last unless ``axis`` says otherwise. An
    index out of range gives a row of ``off_value``.

    >>> one_hot([1, 0], 3).numpy()
    array([[0., 1., 0.],
           [1., 0., 0.]], dtype=float32)
    """
    axis = -1 if axis is None else axis
    if on_value is None and off_value is None:
        return _one_hot(indices, int(depth), axis, dtype or dtypes.float32)
    on = convert_to_tensor(1 if on_value is None else on_value, dtype_hint=dtype)
    off = convert_to_tensor(0 if off_value is None else off_value, dtype_hint=on.dtype)
    hits = _one_hot(indices, int(depth), axis, dtypes.bool)
    picked = where(hits, on, cast(off, on.dtype))
    return picked if dtype is None else cast(picked, dtype)


@primitive(name="argmax", type_name="ArgMax")
def _argmax(xp, input, *, axis: Axes = 0, output_type: DTypeName = "int64"):
    return xp.argmax(input, axis=axis).astype(output_type)


@primitive(name="argmin", type_name="ArgMin")
def _argmin(xp, input, *, axis: Axes = 0, output_type: DTypeName = "int64"):
    return xp.argmin(input, axis=axis).astype(output_type)


for _op in (_argmax, _argmin):
    _op.no_gradient()

    @_op.infer
    def _(input, axis, output_type):
        (at,) = normalize_axis("argmax", axis, input.shape.rank)
        dims = [n for i, n in enumerate(input.shape) if i != at]
        return TensorSpec(dims, output_type)

    @_op.batch
    def _(mapped, input, *, axis, output_type, op=_op):
        return op(
            input, axis=axis % (input.array.ndim - 1) + 1, output_type=output_type
        )


def argmax(input, axis=None, output_type=dtypes.int64, name=None):
    """The index of the largest entry along ``axis`` (default 0), the first of equals."""
    return _argmax(input, axis=0 if axis is None else axis, output_type=output_type)


def argmin(input, axis=None, output_type=dtypes.int64, name=None):
    """The index of the smallest entry along ``axis`` (default 0), the first of equals."""
    return _argmin(input, axis=0 if axis is None else axis, output_type=output_type)


# ----------------------------------------------------------------- sparse gradients


def dense(slices):
    """`IndexedSlices` as the tensor (in a bare walk: the array) that it stands for."""
    return scatter_rows(
        slices.values, slices.indices, shape=tuple(slices.shape), axis=0
    )


def add_slices(slices, other):
    """Two sparse gradients stay sparse; with a dense one the sum is dense."""
    if not isinstance(other, IndexedSlices):
        return dense(slices) + other
    values = concat([slices.values, other.values], axis=0)
    indices = concat([slices.indices, other.indices], axis=0)
    return IndexedSlices(values, indices, slices.dense_shape)
