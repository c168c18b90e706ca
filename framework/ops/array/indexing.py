"""Ops that pick entries by position: indexing with ``[]``, slices, one_hot, argmax.

A basic index is stored as plain values: ints, ``[start, stop, step]`` for a slice,
``"newaxis"`` and ``"..."``. Arrays and masks in an index are converted to a gather.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, Unpack

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import (
    DTypeError,
    InvalidArgumentError,
    OutOfBoundsError,
    ShapeError,
)
from tapewright.core.hardware import devices
from tapewright.core.op_definition.costs import per_input
from tapewright.core.op_definition.traits import Traits
from tapewright.core.primitive import primitive
from tapewright.core.rules import (
    batch_along_axis,
    broadcast_shape,
    check_at_least,
    known_rank,
    normalize_axis,
)
from tapewright.core.shapes.symbolic_dim import is_symbolic
from tapewright.core.shapes.symbolic_operand import TracedOperand
from tapewright.core.shapes.symbolic_shape import as_size, has_symbolic_shape
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    is_tensor,
    module_of,
    new_tensor,
)
from tapewright.core.text import zeros
from tapewright.core.typing import (
    Axis,
    DTypeLike,
    IntLike,
    Kernel,
    Op,
    P,
    ShapeLike,
    TensorLike,
    as_int,
    as_shape,
)
from tapewright.core.variable import Variable

from ..math.comparison import where
from .conversion import cast, identity
from .creation import range as arange
from .gather import boolean_mask, flat_index, gather, gather_p, is_eager
from .joining import stack, unstack
from .shape import broadcast_to, reshape, transpose

__all__ = ["argmax", "argmin", "one_hot", "slice", "strided_slice"]

_slice = slice


# --------------------------------------------------------------------- basic indexing


def as_index(value):
    """Convert a basic index to plain values; see the head of this file."""
    items = value if isinstance(value, tuple) else (value,)
    return tuple([_plain(item) for item in items])


Index: TypeAlias = Annotated[Any, as_index]


def _plain(item):
    if type(item) is int:
        return item
    if isinstance(item, _slice):
        return [
            n if n is None or type(n) is int else as_size(n)
            for n in (item.start, item.stop, item.step)
        ]
    if item is None:
        return "newaxis"
    if item is Ellipsis:
        return "..."
    if isinstance(item, list):
        return item  # plain already, as are the words
    if isinstance(item, str) and item in ("newaxis", "..."):
        return item
    if is_symbolic(item):
        return item
    if isinstance(item, bool) or not hasattr(item, "__index__"):
        raise TypeError(
            "An index must consist of integers, slices, ..., None, and arrays of "
            f"integers or booleans, got {item!r}"
        )
    return as_size(item)


def _numpy_index(index):
    words = {"newaxis": None, "...": Ellipsis}
    return tuple(
        [
            words[i] if isinstance(i, str) else _slice(*i) if isinstance(i, list) else i
            for i in index
        ]
    )


@primitive(
    name="getitem",
    type_name="StridedSlice",
    sizes=True,
    linear=True,
    moves=True,
    view=True,
)
def getitem_p(xp, x: TensorLike, index: Index):
    return x[_numpy_index(index)]


@getitem_p.infer
def _(x, index):
    if has_symbolic_shape(tuple(x.shape)) or has_symbolic_shape(index):
        return TensorSpec(_indexed_sizes(x.shape, index), x.dtype)
    try:
        dims = _indexed(x.shape, index, 2**20)
    except IndexError as error:
        raise OutOfBoundsError(f"{error}; the tensor has shape {x.shape}") from None
    if None in tuple(x.shape):
        for size in (2**20 + 1, 1):  # what follows from an unknown size is unknown
            try:
                other = _indexed(x.shape, index, size)
            except IndexError:  # there is no such entry in so small a tensor
                continue
            dims = [n if n == m else None for n, m in zip(dims, other)]
    return TensorSpec(dims, x.dtype)


def _indexed(shape, index, unknown):
    """Return the shape of an indexed tensor, by indexing an array without data in NumPy."""
    shape = [unknown if n is None else n for n in shape]
    return np.broadcast_to(np.zeros((), np.int8), shape)[_numpy_index(index)].shape


def complete_index(index, rank):
    """Return the items of a basic index, with a full slice for each axis that it omits."""
    items = list(index)
    named = len([item for item in items if item not in ("newaxis", "...")])
    at = items.index("...") if "..." in items else len(items)
    items[at : at + 1] = [[None, None, None]] * (rank - named)
    return items


def _indexed_sizes(shape, index):
    """Return the shape of an indexed tensor whose sizes are formulas."""
    used = len([i for i in index if i not in ("newaxis", "...")])
    if used > len(shape) or list(index).count("...") > 1:
        raise OutOfBoundsError(f"too many indices for a tensor of shape {shape}")
    words, sizes, dims = complete_index(index, len(shape)), iter(shape), []
    for word in words:
        if word == "newaxis":
            dims.append(1)
            continue
        size = next(sizes)
        if isinstance(word, list):
            dims.append(_sliced(size, *word))
        elif not -size <= word < size:
            raise OutOfBoundsError(f"index {word} is out of range for a size of {size}")
    return dims


def _sliced(size, start, stop, step):
    """Return the number of entries of a Python slice; any argument may be a formula."""
    step = 1 if step is None else step
    if step == 0:
        raise InvalidArgumentError("slice step cannot be zero")
    low, high = (0, size) if step > 0 else (-1, size - 1)
    first, last = (low, high) if step > 0 else (high, low)
    start = first if start is None else _clipped(start, size, low, high)
    stop = last if stop is None else _clipped(stop, size, low, high)
    span = (stop - start) if step > 0 else (start - stop)
    return 0 if span < 0 else -(-span // (step if step > 0 else -step))


def _clipped(n, size, low, high):
    """Return an end of a slice, counted from the start and clipped to the bounds."""
    n = n + size if n < 0 else n
    return low if n < low else high if n > high else n


@getitem_p.vjp("x")
def _(g, x_shape, index):
    return scatter_index(g, shape=x_shape, index=index)


@getitem_p.batch
def _(mapped, x, *, index):
    return getitem_p(x, index=([None, None, None], *index))


@getitem_p.diagonal
def _(axes, x, *, index):
    shape, whole = x.array.shape, [None, None, None]
    words = complete_index(index, len(shape))
    axis, outgoing, position = len(shape) + axes[0], [], None
    taken = 0  # axes of x that the words so far have used
    for word in words:
        if word == "newaxis":
            outgoing.append(None)
            continue
        if isinstance(word, list):
            outgoing.append(taken)
            if taken == axis and word == whole:
                position = len(outgoing) - 1
        taken += 1
    return None if position is None else position - len(outgoing)


@primitive(linear=True, moves=True, strict=True)
def scatter_index(xp, g: TensorLike, shape: ShapeLike, index: Index):
    """Place ``g`` at ``index`` in zeros of ``shape``: the adjoint of basic indexing."""
    full = zeros(xp, shape, g.dtype)
    full[_numpy_index(index)] = g
    return full


@scatter_index.infer
def _(g, shape, index):
    whole = TensorSpec(shape, g.dtype)
    part = getitem_p.primitive.infer_rule(whole, index=index)
    if not part.shape.is_compatible_with(g.shape):
        raise ShapeError("scatter_index", f"g must have shape {part.shape}", g=g)
    return whole


@scatter_index.vjp("g")
def _(c, index):
    return getitem_p(c, index=index)


@scatter_index.batch
def _(mapped, g, *, shape, index):
    size = g.array.shape[0]
    return scatter_index(g, shape=(size, *shape), index=([None, None, None], *index))


# ------------------------------------------------------------- every index of Python's

_BASIC = frozenset([int, _slice, type(None), type(Ellipsis)])


def getitem(x, index):
    """Index a tensor by NumPy's rules: ints, slices, ``...``, ``None``, arrays and masks.

    Integer arrays broadcast together; their axes appear in the result in the same
    position, or in front if slices separate the arrays. A mask is replaced by the
    coordinates of its true entries. The gradient of one array along the first axis is
    `IndexedSlices`.

    Raises:
        IndexError: If an index is out of range, or there are too many.
        TypeError: If an item is not an index (True and False are not).
        ShapeError: If arrays do not broadcast, or a mask does not match the axes.
    """
    items = index if type(index) is tuple else (index,)
    for item in items:
        if type(item) not in _BASIC and _is_array_index(item):
            return _pick(x, items)
    return getitem_p.primitive.general((x,), {"index": as_index(items)})


def _is_array_index(item):
    if isinstance(item, (list, tuple, np.ndarray, np.bool_)):
        return True
    return is_tensor(item) and (
        len(item.shape) > 0 or item.dtype.is_bool or not is_number(item)
    )


def is_number(item):
    """Return whether a tensor of rank 0 is a known number or a size, for use in an index."""
    if isinstance(item, TracedOperand):
        return item.known_sizes() is not None
    return is_eager(item)


def _pick(x, items):
    """Index with arrays among the items."""
    x = convert_to_tensor(x)
    if len(items) == 1 and x.array.ndim:  # the common case, in half the time
        array = _index_array(items[0], x)
        if not array.dtype.is_bool:
            if not array.shape.rank:  # as for a number, no slices come back
                x = identity(x)
            return gather_p(x, _from_the_start(array, x, 0), 0)
    basic, arrays, order = _sorted_out(x, items)
    if any(item != _WHOLE for item in basic):
        x = getitem_p.primitive.general((x,), {"index": as_index(basic)})
    if len(arrays) > 1:
        arrays = [entry for at, array in arrays for entry in _coordinates(x, at, array)]
    first = arrays[0][0]
    if len(arrays) > 1:
        picked, depth = _pick_together(x, arrays)
    elif arrays[0][1].dtype.is_bool:
        picked, depth = boolean_mask(x, arrays[0][1], first), 1
    else:
        depth = len(arrays[0][1].shape)
        picked = gather_p(x, _from_the_start(arrays[0][1], x, first), first)
    between = _slice(order.index(True), len(order) - order[::-1].index(True))
    if first and not all(order[between]):  # their axes go in front, as in NumPy
        rank = len(picked.shape)
        moved = range(first, first + depth)
        picked = transpose(picked, [*moved, *range(first), *range(first + depth, rank)])
    return picked


_WHOLE = _slice(None)


def _sorted_out(x, items):
    """Separate an index into its basic part and its arrays.

    Returns the basic part, the arrays with their axes in its result, and a mask of the
    items that count as arrays (ints do, next to arrays), for the order of the axes.
    """
    basic, arrays, order, axis = [], [], [], 0
    for item in _spelled_out(x, items):
        if isinstance(item, Tensor):
            depth = len(item.shape) if item.dtype.is_bool else 1
            if not depth:  # a single truth value: an axis of size 1, kept or not
                item = reshape(item, (1,))
            arrays.append((axis, item))
            basic += [_WHOLE] * depth if depth else [None]
            order.append(True)
            axis += max(depth, 1)
        elif item is Ellipsis:  # it stands for no axis, but between arrays it counts
            order.append(False)
        else:
            is_int = item is not None and not isinstance(item, _slice)
            basic.append(item)
            order.append(is_int)
            axis += not is_int
    return tuple(basic), arrays, order


def _spelled_out(x, items):
    """Convert arrays to tensors, and ``...`` to slices if there are axes left for it."""
    rank, used, entries = len(x.shape), 0, []
    for item in items:
        if type(item) not in _BASIC and _is_array_index(item):
            item = _index_array(item, x)
            used += len(item.shape) if item.dtype.is_bool else 1
        elif item is not None and item is not Ellipsis:
            used += 1
        entries.append(item)
    if used > rank:
        raise OutOfBoundsError(
            f"The index names {used} axes, the tensor has shape {x.shape}"
        )
    ellipses = [i for i, item in enumerate(entries) if item is Ellipsis]
    if len(ellipses) > 1:
        raise OutOfBoundsError("An index may contain only one ellipsis (...)")
    left = [_WHOLE] * (rank - used)
    if not ellipses:
        return entries + left
    return entries[: ellipses[0]] + (left or [...]) + entries[ellipses[0] + 1 :]


def _index_array(item, x):
    """Convert an array or list in an index to a tensor on the device of ``x``."""
    if is_tensor(item):
        array = convert_to_tensor(item)
    else:
        with devices.use_module(module_of(x)):
            array = convert_to_tensor(list(item) if isinstance(item, tuple) else item)
        if isinstance(item, (list, tuple)) and not array.array.size:
            array = cast(array, dtypes.int64)
    if not (array.dtype.is_bool or array.dtype.is_integer):
        raise DTypeError("getitem", "an index must be integer or boolean", index=array)
    return array


def _coordinates(x, at, array):
    """Convert a mask to one array of coordinates per axis; return integers unchanged."""
    if not array.dtype.is_bool:
        return [(at, array)]
    shape = tuple(x.shape[at : at + len(array.shape)])
    if shape != tuple(array.shape):
        raise ShapeError(
            "getitem",
            f"a mask must have the sizes of its axes, {shape}",
            mask=array,
        )
    columns = unstack(where(array), axis=1, num=len(shape))
    return [(at + i, column) for i, column in enumerate(columns)]


def _pick_together(x, arrays):
    """Gather the entries at coordinates along several axes, which become one.

    Also returns the number of axes of the coordinates.
    """
    dims, given = tuple(x.shape), dict(arrays)
    first, last = min(given), max(given)
    try:
        shape = tuple(broadcast_shape(*[tuple(a.shape) for a in given.values()]))
    except ValueError as error:
        raise ShapeError("getitem", f"the arrays of an index: {error}") from None
    # A whole axis between them becomes an array too: all lie side by side then.
    between = [axis for axis in range(first, last + 1) if axis not in given]
    full = (*shape, *[dims[axis] for axis in between])
    coordinates = []
    for axis in range(first, last + 1):
        if axis in given:
            coordinate = cast(given[axis], dtypes.int64)
            coordinate = reshape(coordinate, (*coordinate.shape, *(1,) * len(between)))
        else:
            behind = len(between) - between.index(axis) - 1
            coordinate = new_tensor(module_of(x).arange(dims[axis]))
            coordinate = reshape(coordinate, (dims[axis], *(1,) * behind))
        coordinates.append(broadcast_to(coordinate, full))
    flat = flat_index(
        stack(coordinates, axis=-1),
        dims=dims[first : last + 1],
        wrap=True,
        who="getitem",
    )
    count = math.prod(dims[first : last + 1])
    rows = reshape(x, (*dims[:first], count, *dims[last + 1 :]))
    return gather_p(rows, flat, first), len(shape)


def _from_the_start(indices, x, axis):
    """Convert indices that may count from the end to indices from the start."""
    size, array = x.shape[axis], indices.array
    if array.dtype.kind == "u":
        return indices
    if is_eager(indices):
        if not array.size or (low := int(array.min())) >= 0:
            return indices
        if low < -size or array.max() >= size:
            wrong = low if low < -size else int(array.max())
            raise OutOfBoundsError(
                f"index {wrong} is out of range for axis {axis} of the shape {x.shape}"
            )
    indices = cast(indices, dtypes.int64)
    return where(indices < 0, indices + size, indices)


def slice(
    input_: TensorLike, begin: ShapeLike, size: ShapeLike, name: str | None = None
) -> Tensor:  # noqa: A001
    """Extract a block of ``size[i]`` entries from ``begin[i]`` on, along each axis ``i``.

    Args:
        input_: Input tensor.
        begin: First index along each axis; in traced functions the numbers may be
            tensors.
        size: Number of entries along each axis; -1 extends to the end of the axis.

    Raises:
        ShapeError: If the block extends beyond ``input_``.
        OutOfBoundsError: On the CPU, if it does so because of a tensor in ``begin``.

    Example:
        >>> tw.slice([[1, 2, 3], [4, 5, 6]], [0, 1], [-1, 2]).numpy()
        array([[2, 3],
               [5, 6]], dtype=int32)
    """
    x, begin, size = convert_to_tensor(input_), _starts(begin), as_shape(size)
    if not len(begin) == len(size) == len(x.shape):
        raise ShapeError(
            "slice", f"begin {begin} and size {size} must have one entry for each axis",
            input_=x,
        )  # fmt: skip
    index, traced = [], []
    for axis, (b, n, full) in enumerate(zip(begin, size, x.shape)):
        if is_tensor(b):
            if n == -1:
                raise ShapeError(
                    "slice", f"size -1 of axis {axis} needs a begin whose value is known",
                    input_=x,
                )  # fmt: skip
            traced.append((axis, b, n))
            index.append([None, None, None])
            continue
        if b < 0 or n < -1 or b + max(n, 0) > full:
            raise ShapeError(
                "slice", f"begin {b} and size {n} exceed axis {axis}", input_=x
            )
        index.append([b, None if n == -1 else b + n, None])
    x = getitem_p(x, index=tuple(index))
    for axis, b, n in traced:
        x = gather(x, b + arange(n, dtype=b.dtype), axis=axis)
    return x


def _starts(begin):
    """Return the numbers in ``begin``; numbers without a value yet stay tensors."""
    if is_tensor(begin) and not is_number(begin):
        begin = unstack(begin)
    if isinstance(begin, (list, tuple)):
        unknown = [is_tensor(n) and not is_number(n) for n in begin]
        if any(unknown):
            return [n if un else as_size(n) for n, un in zip(begin, unknown)]
    return as_shape(begin)


def strided_slice(
    input_: TensorLike,
    begin: ShapeLike,
    end: ShapeLike,
    strides: ShapeLike | None = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Variable | None = None,
    name: str | None = None,
) -> Tensor:
    """Extract a strided slice: ``input_[begin[0]:end[0]:strides[0], ...]``.

    Bit ``i`` of a mask changes item ``i`` of the index.

    Args:
        input_: Input tensor.
        begin: Start of each slice.
        end: End of each slice, excluded.
        strides: Step of each slice, not 0; None means 1 for all.
        begin_mask: Bits of items whose ``begin`` is ignored: the slice starts at the
            first entry.
        end_mask: Bits of items whose ``end`` is ignored: the slice extends to the last
            entry.
        ellipsis_mask: Bit of the item that acts as ``...``.
        new_axis_mask: Bits of items that insert a new axis of size 1.
        shrink_axis_mask: Bits of items that select the single entry at ``begin[i]`` and
            remove the axis.
        var: Not supported; must be None.

    Raises:
        ValueError: If a stride is 0, or the lists differ in length.
        IndexError: If there are more items than axes.

    Example:
        >>> tw.strided_slice([1, 2, 3, 4], [-1], [0], [-2]).numpy()
        array([4, 2], dtype=int32)
        >>> tw.strided_slice([[1, 2], [3, 4]], [0, 1], [2, 2], shrink_axis_mask=2).numpy()
        array([2, 4], dtype=int32)
    """
    if var is not None:
        raise InvalidArgumentError(
            "strided_slice: var, for sliced assignment, must be None"
        )
    begin, end = as_shape(begin), as_shape(end)
    strides = (1,) * len(begin) if strides is None else as_shape(strides)
    if not len(begin) == len(end) == len(strides):
        raise InvalidArgumentError(
            "strided_slice: begin, end and strides must have the same length, got "
            f"{len(begin)}, {len(end)} and {len(strides)}"
        )
    index = []
    for i, (first, last, step) in enumerate(zip(begin, end, strides)):
        bit = 1 << i
        if ellipsis_mask & bit:
            index.append("...")
        elif new_axis_mask & bit:
            index.append("newaxis")
        elif shrink_axis_mask & bit:
            index.append(first)
        elif not step:
            raise InvalidArgumentError(f"strided_slice: strides[{i}] must not be 0")
        else:
            open_first, open_last = begin_mask & bit, end_mask & bit
            index.append(
                [None if open_first else first, None if open_last else last, step]
            )
    return getitem_p(input_, index=tuple(index))


# ------------------------------------------------------------------- whole numbers


@primitive(
    name="one_hot",
    kinds="iuf",
    ignores_float_errors=True,
    may_raise="f",
    grows=True,
    no_gradient=True,
)
def one_hot_p(
    xp, indices: TensorLike, depth: int, axis: Axis = -1, dtype: DTypeLike = "float32"
):
    if depth < 0:
        raise ValueError
    if indices.dtype.kind == "f" and not (indices == xp.floor(indices)).all():
        raise InvalidArgumentError("one_hot: floating indices must be whole numbers")
    hits = indices[..., None] == xp.arange(depth)
    return xp.moveaxis(hits.astype(dtype), -1, axis)


@one_hot_p.infer
def _(indices, depth, axis, dtype):
    check_at_least("one_hot", 0, depth=depth)
    rank = known_rank("one_hot", "indices", indices)
    (at,) = normalize_axis("one_hot", axis, rank + 1)
    return TensorSpec(indices.shape[:at] + (depth,) + indices.shape[at:], dtype)


@one_hot_p.batch
def _(mapped, indices, *, depth, axis, dtype):
    return one_hot_p(indices, depth, axis % indices.array.ndim + 1, dtype)


def one_hot(
    indices: TensorLike,
    depth: IntLike,
    on_value: TensorLike | None = None,
    off_value: TensorLike | None = None,
    axis: Axis | None = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """One-hot encoding of indices along a new axis.

    Entries are ``on_value`` at the index and ``off_value`` elsewhere. An index out of
    range results in ``off_value`` only.

    Args:
        indices: Integer tensor; floating indices must be whole numbers.
        depth: Size of the new axis.
        on_value: Value at the index, a scalar; defaults to 1.
        off_value: Value elsewhere, a scalar; defaults to 0.
        axis: Position of the new axis; defaults to the last.
        dtype: Dtype of the result; defaults to the dtype of the values, or float32.

    Shapes:
        ``indices`` ``[...]``, result ``[..., depth]``.

    Raises:
        TypeError: If ``on_value``, ``off_value`` and ``dtype`` differ in dtype.
        ValueError: If ``depth`` is negative.

    Example:
        >>> tw.one_hot([1, 0], 3).numpy()
        array([[0., 1., 0.],
               [1., 0., 0.]], dtype=float32)
    """
    axis = -1 if axis is None else axis
    if on_value is None and off_value is None:
        return one_hot_p(indices, as_int(depth), axis, dtype or dtypes.float32)
    dtype = None if dtype is None else dtypes.as_dtype(dtype)
    on, off = _values_of_one_hot(on_value, off_value, dtype)
    return where(one_hot_p(indices, as_int(depth), axis, dtypes.bool), on, off)


def _values_of_one_hot(on_value, off_value, dtype):
    """Convert both to tensors of ``dtype``, or else of the dtype of the values given."""
    given = {"on_value": on_value, "off_value": off_value}
    given = {n: convert_to_tensor(v, dtype_hint=dtype) for n, v in given.items()
             if v is not None}  # fmt: skip
    dtypes_given = {x.dtype for x in given.values()} | ({dtype} - {None})
    if len(dtypes_given) > 1:
        what = "on_value, off_value and dtype must be the same dtype"
        raise DTypeError("one_hot", what, **given)
    (dtype,) = dtypes_given
    for name, default in (("on_value", 1), ("off_value", 0)):
        if name not in given:
            given[name] = convert_to_tensor(default, dtype)
    return given["on_value"], given["off_value"]


def _infer_place(op):
    def _(input, axis, output_type):
        (at,) = normalize_axis(op.name, axis, input.shape.rank)
        if type(input.shape[at]) is int and not input.shape[at]:
            what = f"axis {axis} must not be empty: it has no largest and no smallest entry"
            raise ShapeError(op.name, what, input=input)
        dims = [n for i, n in enumerate(input.shape) if i != at]
        return TensorSpec(dims, output_type)

    return _


def place_op(**traits: Unpack[Traits]) -> Callable[[Kernel[P]], Op[P, Tensor]]:
    """Decorator: an op that finds a position along an axis."""
    own = Traits(
        cost=per_input(1), no_gradient=True, infer=_infer_place, batch=batch_along_axis
    )
    return primitive(**own | traits)


@place_op(type_name="ArgMax")
def _argmax(xp, input: TensorLike, axis: Axis = 0, output_type: DTypeLike = "int64"):
    _check_ordered("argmax", input)
    return xp.argmax(input, axis=axis).astype(output_type)


@place_op(type_name="ArgMin")
def _argmin(xp, input: TensorLike, axis: Axis = 0, output_type: DTypeLike = "int64"):
    _check_ordered("argmin", input)
    return xp.argmin(input, axis=axis).astype(output_type)


def _check_ordered(who, input):
    if input.dtype.kind in "cO":
        what = "input must hold real numbers"
        raise DTypeError(who, what, input=input)
    if not input.ndim:  # NumPy takes a scalar for a vector
        normalize_axis(who, 0, 0)


def argmax(
    input: TensorLike,
    axis: Axis | None = None,
    output_type: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Return the index of the largest entry along an axis.

    Of equal entries the first is returned.

    Args:
        input: Input tensor.
        axis: Axis to search along; defaults to 0.
        output_type: Integer dtype of the result.

    Shapes:
        ``input.shape`` without ``axis``.

    Raises:
        ShapeError: If the axis is empty.
        TypeError: If ``output_type`` is not an integer type.

    Example:
        >>> tw.argmax([[1, 7], [5, 2]], axis=1).numpy()
        array([1, 0])
    """
    axis, output_type = _check_output("argmax", axis, output_type)
    return _argmax(input, axis=axis, output_type=output_type)


def argmin(
    input: TensorLike,
    axis: Axis | None = None,
    output_type: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Return the index of the smallest entry along an axis.

    Of equal entries the first is returned.

    Args:
        input: Input tensor.
        axis: Axis to search along; defaults to 0.
        output_type: Integer dtype of the result.

    Shapes:
        ``input.shape`` without ``axis``.

    Raises:
        ShapeError: If the axis is empty.
        TypeError: If ``output_type`` is not an integer type.

    Example:
        >>> tw.argmin([[1, 7], [5, 2]], axis=1).numpy()
        array([0, 1])
    """
    axis, output_type = _check_output("argmin", axis, output_type)
    return _argmin(input, axis=axis, output_type=output_type)


def _check_output(who, axis, output_type):
    output_type = dtypes.int64 if output_type is None else dtypes.as_dtype(output_type)
    if not output_type.is_integer:
        raise TypeError(f"{who}: output_type must be integer, got {output_type.name}")
    return 0 if axis is None else axis, output_type
