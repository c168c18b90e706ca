"""Ops that pick entries by index: gather, masks, repetition.

Ops that pick along several axes at once number the entries of these axes row by row
(`flat_index`) and gather along the result. `scatter_rows` is the adjoint of gather.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Unpack

import numpy as np

from tapewright.core import dtypes
from tapewright.core.dispatch import composite
from tapewright.core.errors import (
    DTypeError,
    InvalidArgumentError,
    OutOfBoundsError,
    ShapeError,
    TracingError,
)
from tapewright.core.hardware import devices
from tapewright.core.hardware.combine_at import combine_at
from tapewright.core.op_definition.costs import per_input
from tapewright.core.op_definition.traits import Traits
from tapewright.core.primitive import primitive
from tapewright.core.rules import all_mapped, normalize_axis
from tapewright.core.shapes.symbolic_shape import agree
from tapewright.core.tensor import (
    IndexedSlices,
    Tensor,
    TensorSpec,
    convert_to_tensor,
    module_of,
    new_tensor,
)
from tapewright.core.typing import (
    Axes,
    Axis,
    IntLike,
    Kernel,
    Op,
    P,
    ShapeLike,
    TensorLike,
    as_shape,
)

from ..math.comparison import where
from ..math.elementwise import floormod
from ..math.reduction import clip_by_norm
from .conversion import cast
from .joining import concat, roll_p, unstack
from .shape import broadcast_to, expand_dims, reshape, squeeze, transpose
from .sizes import arange

__all__ = ["boolean_mask", "gather", "gather_nd", "repeat", "reverse_sequence", "roll"]


# ---------------------------------------------------------------------------- gather


def index_op(**traits: Unpack[Traits]) -> Callable[[Kernel[P]], Op[P, Tensor]]:
    """Decorator: an op that moves entries to the positions in ``indices``, or from there."""
    own = Traits(same_dtype=(), may_raise=True, linear=True, no_gradient=("indices",))
    return primitive(**own | traits)


@index_op(name="gather", type_name="GatherV2", sizes=True, moves=True, new_memory=True)
def gather_p(xp, params: TensorLike, indices: TensorLike, axis: Axis = 0):
    _refuse_others(indices)
    check_indices("gather", indices, params.shape[axis])
    return xp.take(params, indices, axis=axis)


def check_indices(who, indices, size):
    """Raise ``IndexError`` for an index that is out of range; waits for a GPU."""
    if ((indices < 0) | (indices >= size)).any():
        raise OutOfBoundsError(
            f"{who}: indices must be from 0 to {size - 1}, got {_misfit(indices)}"
        )


def _refuse_others(indices):
    """Reject indices that are not integers; False and True would be 0 and 1.

    Raises:
        TypeError: If they are not integers.
    """
    if indices.dtype.kind not in "iu":
        raise TypeError


@gather_p.kernel_for("formulas")
def _(xp, params, indices, *, axis=0):
    return xp.take(params, indices.astype(int), axis=axis)


@gather_p.kernel_for("numpy")
def _(xp, params, indices, *, axis=0):
    _refuse_others(indices)
    if not indices.size or indices.min() >= 0:
        try:
            return np.take(params, indices, axis=axis)
        except np.exceptions.AxisError:
            raise
        except IndexError:  # told with what was given, below
            pass
    check_indices("gather", indices, params.shape[axis])
    return np.take(params, indices, axis=axis)


def _misfit(indices):
    """Return one of the indices that are out of range."""
    low = int(indices.min())
    return low if low < 0 else int(indices.max())


@gather_p.infer
def _(params, indices, axis):
    (at,) = normalize_axis("gather", axis, params.shape.rank)
    _check_whole("gather", indices)
    dims = params.shape[:at] + indices.shape + params.shape[at + 1 :]
    return TensorSpec(dims, params.dtype)


def _check_whole(who, indices, name="indices"):
    if not indices.dtype.is_integer:
        raise DTypeError(who, f"{name} must be integers", **{name: indices})


@gather_p.vjp("params")
def _(g, indices, indices_shape, params_shape, axis):
    if axis % len(params_shape) == 0 and may_be_sparse(g):
        flat = reshape(indices, (math.prod(indices_shape),))
        rows = reshape(g, (math.prod(indices_shape), *params_shape[1:]))
        return IndexedSlices(rows, flat, params_shape)
    return scatter_rows(g, indices, shape=params_shape, axis=axis)


def is_eager(tensor):
    """Return False under a batcher or tracer, whose values are tensors of another class."""
    return not isinstance(tensor, Tensor) or type(tensor) is Tensor


def may_be_sparse(tensor):
    """Return False under a batcher: a batched tensor has no rows to name."""
    return not hasattr(tensor, "owner")


@gather_p.batch
def _(mapped, params, indices, *, axis):
    if not mapped[1]:
        return gather_p(params, indices, axis % (params.array.ndim - 1) + 1)
    if not mapped[0]:
        moved = gather_p(params, indices, axis)
        at = axis % params.array.ndim
        order = [at, *range(at), *range(at + 1, moved.array.ndim)]
        return transpose(moved, order)
    count, at = params.array.shape[0], axis % (params.array.ndim - 1)
    lead = list(range(1, at + 1))
    tail = list(range(at + 2, params.array.ndim))
    rows = transpose(params, [0, at + 1, *lead, *tail])
    size, rest = params.array.shape[at + 1], rows.array.shape[2:]
    picked = gather_p(reshape(rows, (count * size, *rest)), offset(indices, size), 0)
    depth = indices.array.ndim
    where_lead = list(range(depth, depth + at))
    where_tail = list(range(depth + at, picked.array.ndim))
    return transpose(picked, [0, *where_lead, *range(1, depth), *where_tail])


@gather_p.diagonal
def _(axes, params, indices, *, axis):
    rank = len(params.shape)
    if axes[1] is not None or axes[0] + rank == axis % rank:
        return None
    in_front = axes[0] + rank < axis % rank
    return axes[0] - (len(indices.shape) - 1 if in_front else 0)


def offset(indices, size):
    """Convert mapped indices into rows of ``size`` to indices into all rows, in order."""
    array = indices.array
    xp = devices.array_module(type(array))
    starts = xp.arange(array.shape[0], dtype=xp.int64) * size
    return new_tensor(array + starts.reshape((-1,) + (1,) * (array.ndim - 1)))


@index_op(grows=True, strict=True, cost=per_input(1))
def scatter_rows(
    xp, g: TensorLike, indices: TensorLike, shape: ShapeLike, axis: Axis = 0
):
    """Add ``g`` at ``indices`` to zeros of ``shape``: the adjoint of `gather`."""
    full, (lead, size, tail) = xp.zeros(shape, g.dtype), _around(shape, axis)
    check_indices("scatter_rows", indices, size)
    rows = xp.moveaxis(g.reshape(lead, indices.size, tail), 1, 0)
    target = xp.moveaxis(full.reshape(lead, size, tail), 1, 0)  # a view
    combine_at(xp, xp.add, target, indices.reshape(-1), rows)
    return full


def _around(shape, axis):
    """Return the sizes before, along and after an axis."""
    at = axis % len(shape)
    return math.prod(shape[:at]), shape[at], math.prod(shape[at + 1 :])


@scatter_rows.kernel_for("numpy")
def _(xp, g, indices, *, shape, axis=0):
    """Faster kernel: a thirtieth of the time where no index occurs twice, else a fifth."""
    (lead, size, tail), picks = _around(shape, axis), np.reshape(indices, -1)
    full = np.zeros((lead, size, tail), g.dtype)
    rows = np.reshape(g, (lead, picks.size, tail))
    if _are_distinct(picks, size):
        full[:, picks] = rows
    else:
        for part, row in zip(full, rows):
            combine_at(np, np.add, part, picks, row)
    return full.reshape(shape)


def _are_distinct(picks, size):
    """Return whether no index occurs twice.

    Raises:
        IndexError: If an index is out of range.
    """
    if not picks.size:
        return True
    check_indices("scatter_rows", picks, size)
    if 8 * picks.size < size:
        ordered = np.sort(picks)
        return not (ordered[1:] == ordered[:-1]).any()
    return np.bincount(picks.astype(np.intp, copy=False)).max() <= 1


@scatter_rows.infer
def _(g, indices, shape, axis):
    (at,) = normalize_axis("scatter_rows", axis, len(shape))
    _check_whole("scatter_rows", indices)
    wanted = shape[:at] + tuple(indices.shape) + shape[at + 1 :]
    if not g.shape.is_compatible_with(wanted):
        raise ShapeError("scatter_rows", f"g must have shape {wanted}",
                         g=g, indices=indices)  # fmt: skip
    return TensorSpec(shape, g.dtype)


@scatter_rows.vjp("g")
def _(c, indices, axis):
    return gather_p(c, indices, axis)


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
    picks = offset(indices, shape[at])
    full = scatter_rows(rows, picks, shape=(count * shape[at], *rest), axis=0)
    full = reshape(full, (count, shape[at], *rest))
    after = list(range(at + 2, len(shape) + 1))
    return transpose(full, [0, *range(2, at + 2), 1, *after])


@scatter_rows.diagonal
def _(axes, g, indices, *, shape, axis):
    at, behind = axis % len(shape), len(shape) - axis % len(shape) - 1
    if axes[1] is not None:
        return None
    if -axes[0] <= behind:
        return axes[0]
    in_front = axes[0] + len(g.shape)
    return in_front - len(shape) if in_front < at else None


# ------------------------------------------------------- several axes as one


@primitive(may_raise=True, no_gradient=True, strict=True)
def flat_index(
    xp,
    indices: TensorLike,
    dims: ShapeLike,
    batch: ShapeLike = (),
    wrap: bool = False,
    who: str = "flat_index",
):
    """Compute the flat indices of entries, counted row by row, from their coordinates.

    The last axis of ``indices`` holds coordinates along axes of the sizes ``dims``. Its
    first axes are ``batch``, and each of them counts separately. With ``wrap``,
    negative coordinates count from the end. ``who`` is the op to name in errors.
    """
    coordinates = indices.astype(xp.int64)
    _check_range(coordinates, dims, wrap, who)
    total = xp.zeros(coordinates.shape[:-1], xp.int64)
    for i, size in enumerate(dims):
        coordinate = coordinates[..., i]
        if wrap:
            coordinate = xp.where(coordinate < 0, coordinate + size, coordinate)
        total = total * size + coordinate
    if batch:
        starts = xp.arange(math.prod(batch)) * math.prod(dims)
        ahead = total.ndim - len(batch)
        total = total + starts.reshape(tuple(batch) + (1,) * ahead)
    return total


def _check_range(coordinates, dims, wrap, who):
    if not coordinates.size:
        return
    axes = tuple(range(coordinates.ndim - 1))
    lows, highs = [
        devices.to_numpy(extreme(axis=axes))
        for extreme in (coordinates.min, coordinates.max)
    ]
    for axis, (low, high, size) in enumerate(zip(lows, highs, dims)):
        least = -size if wrap else 0
        if low < least or high >= size:
            raise OutOfBoundsError(
                f"{who}: indices must be from {least} to {size - 1} along the axis "
                f"{axis} of {tuple(dims)}, got {low if low < least else high}"
            )


@flat_index.infer
def _(indices, dims, batch, wrap, who):
    _check_whole(who, indices)
    if indices.shape[-1] not in (None, len(dims)):
        raise ShapeError(
            who, f"the last axis of indices must have size {len(dims)}", indices=indices
        )
    if not indices.shape[: len(batch)].is_compatible_with(batch) or (
        indices.shape.rank <= len(batch)
    ):
        raise ShapeError(
            who, f"indices must begin with the axes {batch}", indices=indices
        )
    return TensorSpec(indices.shape[:-1], dtypes.int64)


@flat_index.batch
def _(mapped, indices, *, dims, batch, wrap, who):
    depth, rank = len(batch), indices.array.ndim
    if depth:  # the batch axes stay in front
        rest = range(depth + 1, rank)
        indices = transpose(indices, [*range(1, depth + 1), 0, *rest])
    flat = flat_index(indices, dims=dims, batch=batch, wrap=wrap, who=who)
    if depth:
        flat = transpose(flat, [depth, *range(depth), *range(depth + 1, rank - 1)])
    return flat


@primitive(no_gradient=True)
def flatnonzero(xp, condition: TensorLike):
    """Return the flat indices of the entries that are true, counted row by row."""
    return xp.flatnonzero(condition).astype(xp.int64)


@flatnonzero.infer
def _(condition):
    return TensorSpec([None], dtypes.int64)


def gather(
    params: TensorLike,
    indices: TensorLike,
    validate_indices: bool | None = None,
    axis: Axis | None = None,
    batch_dims: IntLike = 0,
    name: str | None = None,
) -> Tensor:
    """Gather slices of ``params`` along an axis.

    Along axis 0 the gradient of ``params`` is `IndexedSlices`.

    Args:
        params: Tensor to gather from.
        indices: Integers from 0 to the size of the axis less 1.
        validate_indices: Ignored; indices are always checked.
        axis: Axis to gather along; defaults to ``batch_dims``.
        batch_dims: Number of leading batch axes that ``params`` and ``indices`` share;
            each batch entry gathers from its slice.

    Shapes:
        ``params.shape`` with the axis replaced by ``indices.shape[batch_dims:]``.

    Raises:
        IndexError: If an index is negative or too large.

    Example:
        >>> tw.gather([10, 20, 30], [2, 0]).numpy()
        array([30, 10], dtype=int32)
        >>> tw.gather([[1, 2], [3, 4]], [[1], [0]], batch_dims=1).numpy()
        array([[2],
               [3]], dtype=int32)
    """
    if not batch_dims:
        return gather_p(params, indices, 0 if axis is None else axis)
    params, indices = convert_to_tensor(params), whole_numbers("gather", indices)
    dims, index_dims = tuple(params.shape), tuple(indices.shape)
    rank = len(index_dims)
    common = int(batch_dims) + (rank if batch_dims < 0 else 0)
    if not 0 <= common <= rank:
        raise InvalidArgumentError(
            f"gather: batch_dims must be from {-rank} to {rank}, the rank "
            f"of indices; got {batch_dims}"
        )
    axis = common if axis is None else int(axis)
    (at,) = normalize_axis("gather", axis, len(dims))
    if at < common or dims[:common] != index_dims[:common]:
        raise ShapeError(
            "gather", f"the first batch_dims={common} axes must be the same, and axis="
            f"{axis} must not be one of them", params=params, indices=indices,
        )  # fmt: skip
    inner = dims[common:at]  # axes between, each entry of which takes the same picks
    if inner:
        index_dims = (*index_dims[:common], *(1,) * len(inner), *index_dims[common:])
        wide = (*index_dims[:common], *inner, *index_dims[at:])
        indices = broadcast_to(reshape(indices, index_dims), wide)
    flat = flat_index(
        expand_dims(indices, -1), dims=(dims[at],), batch=dims[:at], who="gather"
    )
    rows = reshape(params, (math.prod(dims[: at + 1]), *dims[at + 1 :]))
    return gather_p(rows, flat, 0)


def whole_numbers(who, value, name="indices"):
    """Convert a value to a tensor and check that it holds integers.

    Raises:
        DTypeError: If the dtype is not an integer type.
    """
    indices = convert_to_tensor(value)
    _check_whole(who, indices, name)
    return indices


def gather_nd(
    params: TensorLike,
    indices: TensorLike,
    batch_dims: IntLike = 0,
    name: str | None = None,
) -> Tensor:
    """Gather entries or slices of ``params`` at coordinates.

    Args:
        params: Tensor to gather from.
        indices: Integers with the coordinates in the last axis.
        batch_dims: Number of leading batch axes that ``params`` and ``indices`` share;
            the coordinates do not include them.

    Shapes:
        ``indices`` ``[..., k]``, result ``indices.shape[:-1] + params.shape[k:]``
        without ``batch_dims``.

    Raises:
        IndexError: If a coordinate is out of range.

    Example:
        >>> tw.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]]).numpy()
        array([2, 3], dtype=int32)
    """
    params, indices = convert_to_tensor(params), whole_numbers("gather_nd", indices)
    dims, index_dims, common = (
        tuple(params.shape),
        tuple(indices.shape),
        int(batch_dims),
    )
    count = index_dims[-1] if index_dims else 0
    if not index_dims or common + count > len(dims):
        raise ShapeError(
            "gather_nd", "the last axis of indices must hold at most "
            f"{len(dims) - common} coordinates", params=params, indices=indices,
        )  # fmt: skip
    if not 0 <= common < len(index_dims) or dims[:common] != index_dims[:common]:
        raise ShapeError("gather_nd", f"the first batch_dims={common} axes must be the "
                         "same", params=params, indices=indices)  # fmt: skip
    if count == 1 and not common:
        return gather_p(params, squeeze(indices, -1), 0)
    depth = common + count
    flat = flat_index(
        indices, dims=dims[common:depth], batch=dims[:common], who="gather_nd"
    )
    return gather_p(reshape(params, (math.prod(dims[:depth]), *dims[depth:])), flat, 0)


# ------------------------------------------------------------- what picks by gathering


@composite
def boolean_mask(
    tensor: TensorLike,
    mask: TensorLike,
    axis: Axis | None = None,
    name: str | None = "boolean_mask",
) -> Tensor:
    """Select the entries of ``tensor`` where ``mask`` is True.

    Args:
        tensor: Tensor to select from.
        mask: Boolean tensor.
        axis: First axis of ``tensor`` to which ``mask`` applies; defaults to 0.

    Shapes:
        ``mask`` has the sizes of the axes of ``tensor`` from ``axis`` on; in the result
        these axes become one, with the number of true entries as its size.

    Example:
        >>> tw.boolean_mask([1, 2, 3], [True, False, True]).numpy()
        array([1, 3], dtype=int32)
        >>> tw.boolean_mask([[1, 2, 3], [4, 5, 6]], [True, False, True], axis=1).numpy()
        array([[1, 3],
               [4, 6]], dtype=int32)
    """
    tensor, mask = convert_to_tensor(tensor), convert_to_tensor(mask)
    shape, depth = tuple(tensor.shape), len(mask.shape)
    (at,) = normalize_axis("boolean_mask", int(axis or 0), len(shape) or 1)
    if (
        not mask.dtype.is_bool
        or depth == 0
        or shape[at : at + depth] != tuple(mask.shape)
    ):
        raise ShapeError("boolean_mask", "mask must be boolean, with the sizes of tensor "
                         f"from axis {at} on", tensor=tensor, mask=mask)  # fmt: skip
    flat = reshape(tensor, (*shape[:at], math.prod(mask.shape), *shape[at + depth :]))
    try:
        indices = flatnonzero(mask)
    except TracingError as error:
        what = str(error).replace("flatnonzero", "boolean_mask")
        raise type(error)(what) from None
    return gather_p(flat, indices, at)


@composite
def repeat(
    input: TensorLike,
    repeats: TensorLike,
    axis: Axis | None = None,
    name: str | None = None,
) -> Tensor:
    """Repeat each entry along an axis.

    Args:
        input: Input tensor.
        repeats: Number of repetitions: one number, or one for each entry along the
            axis.
        axis: Axis to repeat along; None flattens ``input`` first.

    Raises:
        ValueError: If a number in ``repeats`` is negative.

    Example:
        >>> tw.repeat([1, 2], 2).numpy()
        array([1, 1, 2, 2], dtype=int32)
        >>> tw.repeat([[1, 2], [3, 4]], [2, 1], axis=0).numpy()
        array([[1, 2],
               [1, 2],
               [3, 4]], dtype=int32)
    """
    input, repeats = convert_to_tensor(input), as_shape(repeats)
    if axis is None:
        input, axis = reshape(input, [-1]), 0
    (axis,) = normalize_axis("repeat", int(axis), input.shape.rank)
    dims = tuple(input.shape)
    if any(n < 0 for n in repeats):
        raise InvalidArgumentError(
            f"repeat: repeats must not be negative, got {repeats}"
        )
    if len(repeats) == 1:
        wide = (*dims[: axis + 1], repeats[0], *dims[axis + 1 :])
        spread = broadcast_to(expand_dims(input, axis + 1), wide)
        return reshape(
            spread, (*dims[:axis], dims[axis] * repeats[0], *dims[axis + 1 :])
        )
    if not agree(len(repeats), dims[axis]):
        raise ShapeError(
            "repeat", f"repeats must be one number, or {dims[axis]}, one for each entry "
            f"along axis {axis}; got {len(repeats)}", input=input,
        )  # fmt: skip
    picks = np.repeat(np.arange(len(repeats)), repeats)
    return gather_p(input, new_tensor(module_of(input).asarray(picks)), axis)


def reverse_sequence(
    input: TensorLike,
    seq_lengths: TensorLike,
    seq_axis: Axis | None = None,
    batch_axis: Axis | None = None,
    name: str | None = None,
) -> Tensor:
    """Reverse the first ``seq_lengths[i]`` entries of example ``i``.

    Args:
        input: Input tensor.
        seq_lengths: Length of each sequence, one integer per example; entries beyond it
            stay in place.
        seq_axis: Axis of the time steps; required.
        batch_axis: Axis of the examples; defaults to 0.

    Raises:
        ValueError: If ``seq_axis`` is None, or a length exceeds the size of that axis.

    Example:
        >>> tw.reverse_sequence([[1, 2, 3], [4, 5, 6]], [2, 3], seq_axis=1).numpy()
        array([[2, 1, 3],
               [6, 5, 4]], dtype=int32)
    """
    if seq_axis is None:
        raise InvalidArgumentError("reverse_sequence: seq_axis must be given")
    input = convert_to_tensor(input)
    lengths = whole_numbers("reverse_sequence", seq_lengths, "seq_lengths")
    rank = len(input.shape)
    steps, examples = normalize_axis(
        "reverse_sequence", (int(seq_axis), int(batch_axis or 0)), rank
    )
    size = input.shape[steps]
    if tuple(lengths.shape) != (input.shape[examples],):
        raise ShapeError(
            "reverse_sequence", "seq_lengths must be one number for each example",
            input=input, seq_lengths=lengths,
        )  # fmt: skip
    order = [examples, steps, *(i for i in range(rank) if i not in (examples, steps))]
    _check_lengths(lengths.array, size)
    lengths = expand_dims(cast(lengths, dtypes.int64), 1)
    step = new_tensor(module_of(input).arange(size))
    picks = where(step < lengths, lengths - 1 - step, step)
    turned = gather(transpose(input, order), picks, batch_dims=1)
    return transpose(turned, [order.index(i) for i in range(rank)])


def _check_lengths(lengths, size):
    if devices.is_array(lengths) and not ((lengths >= 0) & (lengths <= size)).all():
        raise InvalidArgumentError(
            f"reverse_sequence: seq_lengths must be from 0 to {size}, "
            f"got {devices.to_numpy(lengths)}"
        )


def roll(input: TensorLike, shift: Axes, axis: Axes, name: str | None = None) -> Tensor:
    """Shift entries along an axis; entries shifted beyond the end reappear at the start.

    Args:
        input: Input tensor.
        shift: Number of positions to shift, or a list with one number for each axis in
            ``axis``.
        axis: Axis or list of axes; an axis that occurs twice is shifted by both
            numbers.

    Raises:
        ValueError: If the lists differ in length.

    Example:
        >>> tw.roll([0, 1, 2, 3, 4], shift=2, axis=0).numpy()
        array([3, 4, 0, 1, 2], dtype=int32)
    """
    if not isinstance(shift, Tensor) or devices.is_array(shift.array):
        return roll_p(input, shift, axis)
    # The values of the shifts are unknown, but the entries can be picked by them.
    _check_whole("roll", shift, "shift")
    shifts = unstack(shift) if shift.shape.rank else [shift]
    axes = [axis] if isinstance(axis, int) else list(axis)
    if len(shifts) != len(axes):
        raise InvalidArgumentError(
            f"roll: shift and axis must be two numbers or two lists of the same length, got "
            f"{len(shifts)} and {len(axes)}"
        )
    input = convert_to_tensor(input)
    axes = [normalize_axis("roll", a, input.shape.rank)[0] for a in axes]
    input = expand_dims(input, 0)  # along axis 0 the gradient would be sparse
    for amount, a in zip(shifts, [a + 1 for a in axes]):
        numbers = arange(count=input.shape[a], dtype=shift.dtype)
        input = gather_p(input, floormod(numbers - amount, input.shape[a]), a)
    return squeeze(input, 0)


@composite
def embedding_lookup(
    params: TensorLike,
    ids: TensorLike,
    max_norm: float | None = None,
    name: str | None = None,
) -> Tensor:
    """Look up embeddings: the rows of ``params`` at ``ids``.

    The gradient of ``params`` is `IndexedSlices`.

    Args:
        params: Table of embeddings, one per row, or a list of its parts, in order.
        ids: Integer indices of rows.
        max_norm: Rows with a larger Euclidean norm are scaled down to this norm; None
            keeps all rows.

    Shapes:
        ``params`` ``[rows, ...]``, result ``ids.shape + params.shape[1:]``.

    Raises:
        IndexError: If an id is out of range.

    Example:
        >>> tw.nn.embedding_lookup([[1.0, 2.0], [3.0, 4.0]], [1, 1]).numpy()
        array([[3., 4.],
               [3., 4.]], dtype=float32)
    """
    if isinstance(params, (list, tuple)) and params and np.ndim(params[0]) > 1:
        params = params[0] if len(params) == 1 else concat(params, axis=0)
    ids = whole_numbers("embedding_lookup", ids, "ids")
    rows = gather_p(params, ids, 0)
    if max_norm is None:
        return rows
    return clip_by_norm(rows, max_norm, list(range(len(ids.shape), len(rows.shape))))
