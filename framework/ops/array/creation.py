"""Tensors from a shape alone: zeros, ones, ranges, identity matrices.

They are constants: no gradient passes, except through the value of `fill` and the ends
of `linspace`.
"""

from __future__ import annotations

import math

import numpy as np

from tapewright.core import dtypes, text
from tapewright.core.dispatch import composite
from tapewright.core.dtypes import kind_of
from tapewright.core.errors import (
    DTypeError,
    InvalidArgumentError,
    MappingError,
)
from tapewright.core.hardware import devices
from tapewright.core.interpreters import (
    ARRAY_EVAL,
    active_interpreter,
    active_tracer,
)
from tapewright.core.messages.source_lines import user_line
from tapewright.core.rules import (
    check_at_least,
    check_choice,
    checked_broadcast,
    known_rank,
    normalize_axis,
)
from tapewright.core.shapes.symbolic_dim import NeedsValue
from tapewright.core.shapes.symbolic_shape import has_symbolic_shape
from tapewright.core.tensor import (
    Tensor,
    convert_to_tensor,
    module_of,
    new_tensor,
)
from tapewright.core.typing import (
    Axis,
    DTypeLike,
    IntLike,
    ShapeLike,
    TensorLike,
    as_int,
    as_shape,
)

from ..math.comparison import equal, less
from .conversion import cast
from .shape import broadcast_to, expand_dims, reshape
from .sizes import arange, filled, known_as_sizes

__all__ = [
    "eye",
    "fill",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "range",
    "sequence_mask",
    "zeros",
    "zeros_like",
]

_range = range  # the name is ours below


def zeros(
    shape: ShapeLike, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Return a tensor of zeros, or of empty strings.

    Args:
        shape: Shape of the tensor.
        dtype: Dtype of the tensor.

    Raises:
        ValueError: If a size is negative.

    Example:
        >>> tw.zeros([2, 2]).numpy()
        array([[0., 0.],
               [0., 0.]], dtype=float32)
    """
    dims = as_shape(shape)
    if has_symbolic_shape(dims):
        return filled(dims, 0, dtype)
    _check_dims("zeros", dims, dtype)
    return new_tensor(text.zeros(devices.current_module(), dims, _numpy(dtype)))


def ones(
    shape: ShapeLike, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Return a tensor of ones.

    Args:
        shape: Shape of the tensor.
        dtype: Dtype of the tensor, not string.

    Raises:
        ValueError: If a size is negative.
        TypeError: If ``dtype`` is string.

    Example:
        >>> tw.ones([2, 2]).numpy()
        array([[1., 1.],
               [1., 1.]], dtype=float32)
    """
    dims = as_shape(shape)
    if dtypes.as_dtype(dtype) == dtypes.string:
        raise DTypeError("ones", "dtype must be numeric or bool, got string")
    if has_symbolic_shape(dims):
        return filled(dims, 1, dtype)
    _check_dims("ones", dims, dtype)
    return new_tensor(devices.current_module().ones(dims, _numpy(dtype)))


def _check_dims(who, dims, dtype):
    """Check sizes and reject those that are negative or too large.

    Raises:
        ValueError: If a size is negative.
        MemoryError: If the sizes are too large.
    """
    if dims and min(dims) < 0:
        raise InvalidArgumentError(f"{who}: sizes must be 0 or more, got {dims}")
    devices.check_fits(who, dims, _numpy(dtype))


def fill(dims: ShapeLike, value: TensorLike, name: str | None = None) -> Tensor:
    """Return a tensor filled with a scalar.

    Args:
        dims: Shape of the tensor.
        value: Value of all entries, a scalar.

    Raises:
        ValueError: If a size is negative, or ``value`` is not a scalar.

    Example:
        >>> tw.fill([2, 2], 7).numpy()
        array([[7, 7],
               [7, 7]], dtype=int32)
    """
    value = convert_to_tensor(value)
    if known_rank("fill", "value", value) != 0:
        raise InvalidArgumentError(
            f"fill: value must be a scalar, got shape {value.shape}"
        )
    dims = as_shape(dims)
    if any([n < 0 for n in dims]):
        raise InvalidArgumentError(f"fill: dims must be 0 or more, got {dims}")
    return broadcast_to(value, dims)


@composite
def zeros_like(
    input: TensorLike, dtype: DTypeLike | None = None, name: str | None = None
) -> Tensor:
    """Return a tensor of zeros with the shape of another tensor.

    Args:
        input: Tensor with the shape of the result.
        dtype: Dtype of the result; defaults to the dtype of ``input``.

    Example:
        >>> tw.zeros_like([[1, 2]]).numpy()
        array([[0, 0]], dtype=int32)
    """
    return _like("zeros_like", input, dtype)


@composite
def ones_like(
    input: TensorLike, dtype: DTypeLike | None = None, name: str | None = None
) -> Tensor:
    """Return a tensor of ones with the shape of another tensor.

    Args:
        input: Tensor with the shape of the result.
        dtype: Dtype of the result; defaults to the dtype of ``input``.

    Example:
        >>> tw.ones_like([[1, 2]]).numpy()
        array([[1, 1]], dtype=int32)
    """
    return _like("ones_like", input, dtype)


def _like(function, input, dtype):
    on_arrays = active_interpreter() is ARRAY_EVAL
    like = new_tensor(input) if on_arrays else convert_to_tensor(input)
    array = like.array
    if has_symbolic_shape(array.shape):
        number = 0 if function == "zeros_like" else 1
        return filled(array.shape, number, array.dtype if dtype is None else dtype)
    wanted = array.dtype if dtype is None else _numpy(dtype)
    if function == "zeros_like":
        result = text.zeros(module_of(like), array.shape, wanted)
    elif text.is_text(wanted):
        raise DTypeError("ones_like", "dtype must be numeric or bool, got string")
    else:
        result = module_of(like).ones(array.shape, wanted)
    return result if on_arrays else new_tensor(result)


def eye(
    num_rows: IntLike,
    num_columns: IntLike | None = None,
    batch_shape: ShapeLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Return identity matrices: ones on the diagonal, zeros elsewhere.

    Args:
        num_rows: Number of rows.
        num_columns: Number of columns; defaults to ``num_rows``.
        batch_shape: Shape of the batch of matrices; None means a single matrix.
        dtype: Dtype of the matrices.

    Shapes:
        Result ``[*batch_shape, num_rows, num_columns]``.

    Raises:
        ValueError: If a size is negative.

    Example:
        >>> tw.eye(2, 3).numpy()
        array([[1., 0., 0.],
               [0., 1., 0.]], dtype=float32)
    """
    xp = devices.current_module()
    rows = as_int(num_rows)
    columns = rows if num_columns is None else as_int(num_columns)
    lead = () if batch_shape is None else as_shape(batch_shape)
    if has_symbolic_shape((*lead, rows, columns)):
        matrix = equal(expand_dims(_steps(rows), 1), _steps(columns))
        matrix = cast(matrix, dtype)
        return broadcast_to(matrix, (*lead, rows, columns))
    _check_dims("eye", (*lead, rows, columns), dtype)
    matrix = xp.eye(rows, columns, dtype=_numpy(dtype))
    if batch_shape is not None:
        matrix = xp.array(xp.broadcast_to(matrix, lead + matrix.shape))
    return new_tensor(matrix)


def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: IntLike,
    name: str | None = None,
    axis: Axis = 0,
) -> Tensor:
    """Return ``num`` evenly spaced values from ``start`` to ``stop``, both included.

    Integers result in float64.

    Args:
        start: First value.
        stop: Last value; broadcasts with ``start``.
        num: Number of values, at least 1.
        axis: Position of the new axis in the result.

    Shapes:
        The shape to which ``start`` and ``stop`` broadcast, with a new ``axis`` of size
        ``num``.

    Raises:
        ValueError: If ``num`` is less than 1.

    Example:
        >>> tw.linspace(0.0, 1.0, 5).numpy()
        array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    start = convert_to_tensor(start)
    stop = convert_to_tensor(stop, dtype_hint=start.dtype)
    num = as_int(num)
    check_at_least("linspace", 1, num=num)
    devices.check_fits("linspace", (num,), start.dtype.dtype)
    if not start.dtype.is_differentiable:
        start, stop = cast(start, dtypes.float64), cast(stop, dtypes.float64)
    shares = np.linspace(0.0, 1.0, num).astype(start.dtype.dtype)
    dims = checked_broadcast(
        "linspace", start.shape, stop.shape, start=start, stop=stop
    )
    start, stop = broadcast_to(start, dims), broadcast_to(stop, dims)
    rank = len(dims) + 1
    (at,) = normalize_axis("linspace", axis, rank)
    xp = module_of(start)
    shares = new_tensor(
        xp.asarray(shares.reshape([-1 if i == at else 1 for i in _range(rank)]))
    )
    # Both ends are met exactly, and so is the middle of what is symmetric.
    return expand_dims(start, at) * (1.0 - shares) + expand_dims(stop, at) * shares


@composite
def range(
    start: TensorLike,
    limit: TensorLike | None = None,
    delta: TensorLike = 1,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:  # noqa: A001
    """Return the numbers ``start, start + delta, ...`` below ``limit``.

    ``range(limit)`` starts at 0. With a negative ``delta`` the numbers decrease and
    stay above ``limit``.

    Args:
        start: First number, a scalar; the limit, if ``limit`` is None.
        limit: Limit of the numbers, excluded.
        delta: Distance between numbers, not 0.
        dtype: Dtype of the result; defaults to the common dtype of the arguments.

    Raises:
        ValueError: If ``delta`` is 0 or leads away from ``limit``.

    Example:
        >>> tw.range(3).numpy(), tw.range(1.0, 2.0, 0.5).numpy()
        (array([0, 1, 2], dtype=int32), array([1. , 1.5], dtype=float32))
        >>> tw.range(3, 0, -1).numpy()
        array([3, 2, 1], dtype=int32)
    """
    if limit is None:
        start, limit = 0, start
    if known_as_sizes(start, limit, delta):
        return _range_of_sizes(start, limit, delta, dtype)
    parts = [convert_to_tensor(v, dtype_hint=dtype) for v in (start, limit, delta)]
    if dtype is None:  # integers beside floating numbers take their dtype
        given = [p.array.dtype for p in parts]
        dtype = np.result_type(*([d for d in given if kind_of(d) == "f"] or given))
    start, limit, delta = (_number(p) for p in parts)
    values = _stepped(start, limit, delta, _numpy(dtype))
    return new_tensor(devices.current_module().asarray(values))


def _number(x):
    """Return the Python number in a tensor of rank 0."""
    if not devices.is_array(x.array):
        x.__index__()  # it has no value, and says so
    return devices.to_numpy(x.array).item()


def _stepped(start, limit, delta, dtype):
    """Return the array of a range with TensorFlow's numbers, each rounded separately."""
    whole = all([type(n) is int for n in (start, limit, delta)])
    if not whole and kind_of(dtype) == "f":
        start, limit, delta = (dtype.type(n) for n in (start, limit, delta))
    if delta == 0:
        raise InvalidArgumentError("range: delta must not be 0")
    if not (whole or np.isfinite([start, limit, delta]).all()):
        raise InvalidArgumentError(
            f"range: start, limit and delta must be finite, got {start}, {limit}, {delta}"
        )
    if (limit > start) if delta < 0 else (limit < start):
        way = "<=" if delta > 0 else ">="
        raise InvalidArgumentError(
            f"range: start must be {way} limit where delta is {delta}, got start {start} "
            f"and limit {limit}"
        )
    count = -((start - limit) // delta) if whole else math.ceil((limit - start) / delta)
    devices.check_fits("range", (count,), np.int64)
    steps = np.arange(count)
    if not whole:
        steps = steps.astype(type(delta))
    return (steps * delta + start).astype(dtype)


def _range_of_sizes(start, limit, delta, dtype):
    """Return a range of integers, some of which depend on unknown sizes."""
    given = [getattr(v, "dtype", None) for v in (start, limit, delta)]
    dtypes_given = [d.dtype for d in given if d is not None]
    if dtype is None:
        dtype = np.result_type(*dtypes_given) if dtypes_given else dtypes.int32
    start, limit, delta = as_int(start), as_int(limit), as_int(delta)
    if delta == 0:
        raise InvalidArgumentError("range: delta must not be 0")
    if (limit - start) * delta < 0:
        way = "<=" if delta > 0 else ">="
        raise InvalidArgumentError(
            f"range: start must be {way} limit where delta is {delta}"
        )
    steps = _steps(-((start - limit) // delta))
    return cast(steps * delta + start, dtype)


def _steps(count):
    """Return ``count`` whole numbers: ``0, 1, ...``."""
    if has_symbolic_shape(count):
        return arange(count=count)
    devices.check_fits("range", (count,), np.int64)
    return new_tensor(devices.current_module().arange(count, dtype=np.int64))


def meshgrid(
    *args: TensorLike, indexing: str = "xy", name: str | None = None
) -> list[Tensor]:
    """Return coordinate tensors of a grid, one per vector.

    Each vector is repeated along the axes of all the others.

    Args:
        *args: Vectors, the coordinates along each axis.
        indexing: "xy" (Cartesian) exchanges the first two axes of the results; "ij"
            (matrix indexing) does not.

    Shapes:
        From vectors of ``m``, ``n``, ... entries, tensors ``[n, m, ...]``, or
        ``[m, n, ...]`` with "ij".

    Raises:
        ValueError: If ``indexing`` is unknown.

    Example:
        >>> x, y = tw.meshgrid([1, 2, 3], [4, 5])
        >>> x.numpy()
        array([[1, 2, 3],
               [1, 2, 3]], dtype=int32)
        >>> y.numpy()
        array([[4, 4, 4],
               [5, 5, 5]], dtype=int32)
    """
    check_choice("meshgrid", "indexing", indexing, ("xy", "ij"))
    vectors = [reshape(convert_to_tensor(v), [-1]) for v in args]
    axes = list(_range(len(vectors)))  # the axis along which each goes
    if indexing == "xy":
        axes[:2] = axes[:2][::-1]
    dims = [0] * len(vectors)
    for vector, axis in zip(vectors, axes):
        dims[axis] = vector.shape[0]
    lines = [[1] * a + [-1] + [1] * (len(dims) - a - 1) for a in axes]
    return [broadcast_to(reshape(v, line), dims) for v, line in zip(vectors, lines)]


def sequence_mask(
    lengths: TensorLike,
    maxlen: TensorLike | None = None,
    dtype: DTypeLike = dtypes.bool,
    name: str | None = None,
) -> Tensor:
    """Return a mask that is True in the first ``lengths[i]`` entries of row ``i``.

    Args:
        lengths: Length of each sequence, integers.
        maxlen: Size of the last axis of the result; defaults to the greatest length.
        dtype: Dtype of the result; a numeric one holds ones and zeros.

    Shapes:
        ``lengths`` ``[...]``, result ``[..., maxlen]``.

    Example:
        >>> tw.sequence_mask([1, 3, 2]).numpy()
        array([[ True, False, False],
               [ True,  True,  True],
               [ True,  True, False]])
    """
    lengths = convert_to_tensor(lengths)
    wide = dtypes.float64 if lengths.dtype.is_floating else dtypes.int64
    lengths = cast(lengths, wide)
    if maxlen is None:
        if not devices.is_array(lengths.array):
            kind = MappingError if active_tracer() is None else NeedsValue
            raise kind(
                f"{user_line(always=True)}: sequence_mask: maxlen must be given where "
                "lengths is mapped or traced"
            )
        maxlen = lengths.array.max() if lengths.array.size else 0
    with devices.use_module(module_of(lengths)):
        count = as_int(cast(convert_to_tensor(maxlen), dtypes.int64))
        steps = cast(_steps(count), lengths.dtype)
    return cast(less(steps, expand_dims(lengths, -1)), dtype)


def _numpy(dtype):
    return dtypes.as_dtype(dtype).dtype
