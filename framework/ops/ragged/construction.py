"""Create ragged tensors from lists, ranges of numbers, and other tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapewright.core import dtypes
from tapewright.core.dtypes import as_dtype
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.hardware import devices
from tapewright.core.tensor import Tensor, convert_to_tensor, module_of, new_tensor
from tapewright.core.typing import DTypeLike, IntLike, TensorLike

from ..array import gather as gathering
from ..array.conversion import cast
from ..array.creation import range as arange
from ..array.creation import zeros
from ..array.gather import flatnonzero
from ..array.joining import concat
from ..array.segment import known_values, unsorted_segment_sum
from ..array.shape import reshape
from ..array.sorting import argsort, searchsorted
from .elementwise import same_splits
from .ragged_tensor import RaggedTensor
from .row_splits import positions_in_rows

__all__ = [
    "boolean_mask",
    "constant",
    "map_flat_values",
    "range",
    "row_splits_to_segment_ids",
    "segment_ids_to_row_splits",
    "stack",
    "stack_dynamic_partitions",
]


def constant(
    pylist: Any,
    dtype: DTypeLike | None = None,
    ragged_rank: int | None = None,
    inner_shape: Sequence[int] | None = None,
    name: str | None = None,
    row_splits_dtype: DTypeLike = dtypes.int64,
) -> Any:
    """Create a ragged tensor from nested lists of different lengths.

    Args:
        pylist: Nested lists, tuples or arrays of numbers or strings.
        dtype: Dtype of the values, inferred by default.
        ragged_rank: Number of ragged axes, by default all but the first; lists within
            them must have equal lengths.
        inner_shape: Shape of an entry within the ragged axes.
        row_splits_dtype: Dtype of the row splits, int64 or int32.

    Returns:
        A `RaggedTensor`, or a tensor for a list of numbers.

    Raises:
        ValueError: If the lists are nested unevenly.

    Example:
        >>> tw.ragged.constant([[1, 2], [], [3]])
        <tf.RaggedTensor [[1, 2], [], [3]]>
        >>> tw.ragged.constant([[[1, 2]], [[3, 4], [5, 6]]], ragged_rank=1).shape
        TensorShape([2, None, 2])
    """
    who = "ragged.constant"
    depth, deepest = _depths(pylist)
    if inner_shape is not None:
        inner_shape = tuple([int(n) for n in inner_shape])
    inner = len(inner_shape or ())
    if ragged_rank is None:
        ragged_rank = max(0, depth - 1 - inner)
    if ragged_rank < 0 or (deepest is not None and ragged_rank >= max(deepest, 1)):
        raise ValueError(
            f"{who}: ragged_rank must be from 0 to {max((deepest or depth) - 1, 0)}, for "
            f"lists nested {depth} deep, got {ragged_rank}"
        )
    flat, lengths = pylist, []
    for _ in np.arange(ragged_rank):
        if not all([isinstance(row, (list, tuple, np.ndarray)) for row in flat]):
            raise ValueError(f"{who}: the lists must be nested evenly, got {pylist!r}")
        lengths.append([len(row) for row in flat])
        flat = [entry for row in flat for entry in row]
    if ragged_rank and deepest is None and not flat:
        shape = (0, *(inner_shape or [0] * max(0, depth - 1 - ragged_rank)))
        values = zeros(shape, dtype or dtypes.float32)
    else:
        try:
            values = convert_to_tensor(flat, dtype)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{who}: the lists within {ragged_rank} ragged axes must form a tensor: "
                f"{error}"
            ) from None
    if inner_shape is not None and tuple(values.shape[1:]) != inner_shape:
        if values.array.size:
            raise ValueError(
                f"{who}: entries have shape {tuple(values.shape[1:])}, not inner_shape "
                f"{inner_shape}"
            )
        values = reshape(values, (0, *inner_shape))
    if not ragged_rank:
        return values
    splits = [np.concatenate([[0], np.cumsum(n, dtype=np.int64)]) for n in lengths]
    splits = [cast(np.asarray(s, np.int64), row_splits_dtype) for s in splits]
    return RaggedTensor.from_nested_row_splits(values, splits)


def _depths(x):
    """Return the depth of nested lists, and the depth of the numbers; None without numbers."""
    if isinstance(x, np.ndarray) and x.dtype != object:
        return x.ndim, x.ndim if x.size else None
    if not isinstance(x, (list, tuple, np.ndarray)):
        return 0, 0
    depths = [_depths(item) for item in x]
    depth = 1 + max([d for d, _ in depths], default=0)
    known = {d for _, d in depths if d is not None}
    if len(known) > 1:
        raise ValueError(f"ragged.constant: the lists must be nested evenly, got {x!r}")
    deepest = 1 + known.pop() if known else None
    if deepest is not None and depth > deepest:
        raise ValueError(f"ragged.constant: the lists must be nested evenly, got {x!r}")
    return depth, deepest


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Apply ``op`` to the flat values of ragged arguments, which must have the same rows.

    Without ragged arguments, it is ``op(*args, **kwargs)``.

    Args:
        op: Function of tensors that keeps the number of values.
        *args: Arguments of ``op``; ragged tensors are replaced by their flat values.
        **kwargs: Keyword arguments of ``op``, treated in the same way.

    Raises:
        ValueError: If rows differ, or the result has another number of values.

    Example:
        >>> tw.ragged.map_flat_values(tw.square, tw.ragged.constant([[1, 2], [3]]))
        <tf.RaggedTensor [[1, 4], [9]]>
    """
    ragged = [x for x in (*args, *kwargs.values()) if isinstance(x, RaggedTensor)]
    if not ragged:
        return op(*args, **kwargs)
    like = ragged[0]
    for x in ragged[1:]:
        like = same_splits("map_flat_values", like, x)

    def flat(x):
        return x.flat_values if isinstance(x, RaggedTensor) else x

    result = op(*[flat(x) for x in args], **{k: flat(x) for k, x in kwargs.items()})
    return like.with_flat_values(result)


def range(
    starts: TensorLike,
    limits: TensorLike | None = None,
    deltas: TensorLike = 1,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    row_splits_dtype: DTypeLike = dtypes.int64,
) -> RaggedTensor:
    """Rows of numbers from ``starts[i]`` to below ``limits[i]``, in steps of ``deltas[i]``.

    Not available in traced functions.

    Args:
        starts: First number of each row; if it is the only argument, it is the limits,
            and rows start at 0.
        limits: End of each row, exclusive.
        deltas: Step of each row, not 0.
        dtype: Dtype of the numbers, by default the widest dtype of the arguments.
        row_splits_dtype: Dtype of the row splits, int64 or int32.

    Raises:
        InvalidArgumentError: If a step is 0.
        ShapeError: If the arguments have different sizes.

    Example:
        >>> tw.ragged.range([2, 0, 3])
        <tf.RaggedTensor [[0, 1], [], [0, 1, 2]]>
    """
    who = "ragged.range"
    if limits is None:
        starts, limits = 0, starts
    given = {"starts": starts, "limits": limits, "deltas": deltas}
    tensors = {k: convert_to_tensor(v, dtype=None) for k, v in given.items()}
    if dtype is None:
        kinds = [x.array.dtype for x in tensors.values()]
        order = [np.dtype(name) for name in ("int32", "int64", "float32", "float64")]
        if any([kind not in order for kind in kinds]):
            raise TypeError(
                f"{who}: numbers must be int32, int64, float32 or float64, got {kinds}"
            )
        natural = order[max(map(order.index, kinds))]
    else:
        natural = as_dtype(dtype).dtype
    arrays = {k: known_values(who, k, x).astype(natural) for k, x in tensors.items()}
    sizes = {a.shape[0] for a in arrays.values() if a.ndim}
    if any([a.ndim > 1 for a in arrays.values()]) or len(sizes) > 1:
        raise ShapeError(who, "starts, limits and deltas must be numbers, or vectors of "
                         "one size", **tensors)  # fmt: skip
    count = sizes.pop() if sizes else 1
    wide = np.int64 if natural.kind == "i" else natural  # differences need more bits
    first, last, step = [
        np.broadcast_to(devices.to_numpy(a), (count,)).astype(wide)
        for a in arrays.values()
    ]
    if (step == 0).any():
        raise InvalidArgumentError(f"{who}: deltas must not be 0")
    lengths = np.ceil((last - first) / step).clip(0).astype(np.int64)
    positions, splits = positions_in_rows(lengths)
    values = np.repeat(first, lengths) + positions * np.repeat(step, lengths)
    xp = module_of(next(iter(tensors.values())))
    values = new_tensor(xp.asarray(values.astype(natural)))
    return RaggedTensor.from_row_splits(values, cast(splits, row_splits_dtype))


def stack(
    values: Sequence[Any], axis: int = 0, name: str | None = None
) -> RaggedTensor:
    """Stack tensors and ragged tensors along a new first axis, as rows of a ragged tensor.

    Args:
        values: Tensors or ragged tensors of one rank, 1 or more.
        axis: 0, the only supported axis.

    Raises:
        ValueError: If ``axis`` is not 0, or the ranks differ.

    Example:
        >>> tw.ragged.stack([tw.convert_to_tensor([1, 2]), tw.convert_to_tensor([3])])
        <tf.RaggedTensor [[1, 2], [3]]>
    """
    if axis != 0:
        raise ValueError(f"ragged.stack: axis must be 0, got {axis}")
    rows = [x if isinstance(x, RaggedTensor) else convert_to_tensor(x) for x in values]
    if not rows:
        raise ValueError("ragged.stack: values must not be empty")
    ranks = {x.shape.rank for x in rows}
    if len(ranks) > 1 or ranks == {0}:
        raise ValueError(
            "ragged.stack: values must have the same rank, 1 or more; got the shapes "
            f"{[tuple(x.shape) for x in rows]}"
        )
    (rank,) = ranks
    if any([isinstance(x, RaggedTensor) for x in rows]):
        rows = [x if isinstance(x, RaggedTensor) else RaggedTensor.from_tensor(x)
                for x in rows]  # fmt: skip
    lengths = [
        x._tw_row_count if isinstance(x, RaggedTensor) else x.shape[0] for x in rows
    ]
    joined = concat(rows, 0)
    if rank > 1 and not isinstance(joined, RaggedTensor):
        joined = RaggedTensor.from_tensor(joined)
    return RaggedTensor.from_row_lengths(joined, np.array(lengths, np.int64))


def boolean_mask(data: Any, mask: Any, name: str | None = None) -> RaggedTensor:
    """Select the entries of each row of ``data`` where ``mask`` is true.

    Not available in traced functions.

    Args:
        data: Tensor ``[rows, width, ...]``, or a ragged tensor.
        mask: Booleans ``[rows, width]``, or a ragged tensor with the same rows.

    Shapes:
        ``data`` ``[rows, width, ...]`` or ragged; ``mask`` ``[rows, width]``, or ragged
        with the same rows.

    Example:
        >>> tw.ragged.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]])
        <tf.RaggedTensor [[1], [3, 4]]>
    """
    who = "ragged.boolean_mask"
    data, mask = [
        x if isinstance(x, RaggedTensor) else RaggedTensor.from_tensor(_matrix(who, x))
        for x in (data, mask)
    ]
    if (
        mask.dtype != dtypes.bool
        or mask.ragged_rank != 1
        or mask.values.shape.rank != 1
    ):
        raise ShapeError(who, "mask must be rows of booleans")
    data = same_splits(who, data, mask) if data.ragged_rank == 1 else data
    if data.ragged_rank != 1:
        raise ShapeError(who, "data must have one ragged axis")
    kept, rows = mask.values, data.value_rowids()
    lengths = unsorted_segment_sum(cast(kept, dtypes.int64), rows, data._tw_row_count)
    values = gathering.gather(data.values, flatnonzero(kept))
    return RaggedTensor.from_row_lengths(values, lengths)


def _matrix(who, x):
    x = convert_to_tensor(x)
    if x.shape.rank is None or x.shape.rank < 2:
        raise ShapeError(who, "data and mask must have two axes or more", given=x)
    return x


def row_splits_to_segment_ids(
    splits: TensorLike, name: str | None = None, out_type: DTypeLike | None = None
) -> Tensor:
    """Convert row splits to segment ids: the row of each value.

    Not available in traced functions.

    Args:
        splits: Row splits ``[rows + 1]``.
        out_type: Dtype of the ids, int64 by default.

    Example:
        >>> tw.ragged.row_splits_to_segment_ids([0, 2, 2, 3]).numpy()
        array([0, 0, 2])
    """
    splits = convert_to_tensor(splits)
    array = known_values("row_splits_to_segment_ids", "splits", splits)
    if not array.size:
        raise InvalidArgumentError(
            "row_splits_to_segment_ids: splits must not be empty"
        )
    wide = splits.dtype if splits.dtype == dtypes.int64 else dtypes.int64
    numbers = arange(int(array[-1]), dtype=wide)
    rows = searchsorted(cast(splits[1:], wide), numbers, side="right")
    return cast(rows, out_type or wide)


def segment_ids_to_row_splits(
    segment_ids: TensorLike,
    num_segments: IntLike | None = None,
    out_type: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Convert sorted segment ids to row splits: the start of each row, then the last end.

    Args:
        segment_ids: Sorted ids ``[n]``.
        num_segments: Number of rows, by default the last id plus one.
        out_type: Dtype of the row splits, int64 by default.

    Example:
        >>> tw.ragged.segment_ids_to_row_splits([0, 0, 2]).numpy()
        array([0, 2, 2, 3])
    """
    ids = cast(segment_ids, dtypes.int64)
    splits = RaggedTensor.from_value_rowids(ids, ids, num_segments).row_splits
    return cast(splits, out_type or dtypes.int64)


def stack_dynamic_partitions(
    data: Any, partitions: TensorLike, num_partitions: IntLike, name: str | None = None
) -> RaggedTensor:
    """Group the entries of ``data`` into rows by their number in ``partitions``.

    Args:
        data: Tensor or ragged tensor of entries ``[n, ...]``.
        partitions: Row of each entry, ``[n]``.
        num_partitions: Number of rows.

    Example:
        >>> tw.ragged.stack_dynamic_partitions([1, 2, 3], [1, 0, 1], 3)
        <tf.RaggedTensor [[2], [1, 3], []]>
    """
    who = "stack_dynamic_partitions"
    data, numbers = convert_to_tensor(data), convert_to_tensor(partitions)
    if numbers.shape.rank != 1 or data.shape[:1] != numbers.shape:
        raise ShapeError(who, "partitions must be [n], one for each row of data",
                         data=data, partitions=numbers)  # fmt: skip
    order = argsort(numbers, stable=True)
    rows = gathering.gather(data, order)
    ids = cast(gathering.gather(numbers, order), dtypes.int64)
    return RaggedTensor.from_value_rowids(rows, ids, num_partitions)
