"""Convert dense tensors to sparse ones, and back."""

from __future__ import annotations

from tapewright.core import dtypes
from tapewright.core.errors import (
    DTypeError,
    ShapeError,
)
from tapewright.core.rules import check_at_least
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import DTypeLike, IntLike, TensorLike

from ..array.conversion import cast
from ..array.creation import fill, ones, range, zeros
from ..array.gather import gather_nd
from ..array.joining import stack
from ..array.scatter import tensor_scatter_nd_update
from ..array.shape import expand_dims, reshape
from ..math.comparison import not_equal, where
from .coordinates import (
    columns_of,
    linear_indices,
    sizes_of,
)
from .sparse_tensor import SparseTensor, as_sparse


def from_dense(tensor: TensorLike, name: str | None = None) -> SparseTensor:
    """Convert a dense tensor to a sparse tensor of its nonzero entries.

    Of strings, the nonempty entries are kept. Not available in traced functions, where
    the number of entries is unknown.

    Args:
        tensor: Dense tensor.

    Example:
        >>> tw.sparse.from_dense([[0, 3], [1, 0]]).indices.numpy()
        array([[0, 1],
               [1, 0]])
    """
    tensor = convert_to_tensor(tensor)
    empty = "" if tensor.dtype == dtypes.string else cast(0, tensor.dtype)
    if not tensor.shape.rank:
        raise ShapeError("from_dense", "tensor must have an axis", tensor=tensor)
    indices = where(not_equal(tensor, empty))
    return SparseTensor(indices, gather_nd(tensor, indices), tuple(tensor.shape))


def to_dense(
    sp_input: SparseTensor,
    default_value: TensorLike | None = None,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """Convert a sparse tensor to a dense tensor.

    Args:
        sp_input: `SparseTensor`.
        default_value: Value where there is no entry, 0 or "" by default.
        validate_indices: If True, entries must be in order (see `reorder`) without
            duplicate indices. If False, they may be in any order, and the last of
            duplicate entries is used.

    Raises:
        InvalidArgumentError: If entries are not in order (a ``ValueError``).
        IndexError: If an index is out of range.

    Example:
        >>> x = tw.SparseTensor([[0], [2]], [1, 2], [4])
        >>> tw.sparse.to_dense(x, default_value=-1).numpy()
        array([ 1, -1,  2, -1], dtype=int32)
    """
    sp_input = as_sparse("to_dense", sp_input)
    shape, values = sizes_of("to_dense", sp_input), sp_input.values
    if default_value is None:
        dense = zeros(shape, sp_input.dtype)
    else:
        default = convert_to_tensor(default_value, dtype_hint=sp_input.dtype)
        if default.shape.rank != 0 or default.dtype != sp_input.dtype:
            raise DTypeError(
                "to_dense", f"default_value must be a {sp_input.dtype.name} scalar",
                default_value=default,
            )  # fmt: skip
        dense = fill(shape, default)
    if not shape:  # of rank 0
        return reshape(values, ())
    linear = linear_indices(
        "to_dense", sp_input.indices, shape, ordered=validate_indices
    )
    dense = tensor_scatter_nd_update(
        reshape(dense, [-1]), expand_dims(linear, 1), values
    )
    return reshape(dense, shape)


def to_indicator(
    sp_input: SparseTensor, vocab_size: IntLike, name: str | None = None
) -> Tensor:
    """Convert rows of ids to multi-hot booleans ``[..., vocab_size]``.

    The result is True at the values of each row. The last axis of the input, of any
    size, is replaced by one of size ``vocab_size``.

    Args:
        sp_input: `SparseTensor` of integer ids.
        vocab_size: Size of the last axis of the result.

    Raises:
        IndexError: If a value is not below ``vocab_size``.

    Example:
        >>> ids = tw.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 3, 0], [2, 2])
        >>> tw.sparse.to_indicator(ids, 4).numpy()
        array([[False,  True, False,  True],
               [ True, False, False, False]])
    """
    who = "to_indicator"
    sp_input = as_sparse(who, sp_input)
    if not sp_input.dtype.is_integer:
        raise DTypeError(who, "values must be integers", values=sp_input.values)
    lead, columns = sizes_of(who, sp_input)[:-1], columns_of(sp_input)[:-1]
    numbers = cast(sp_input.values, dtypes.int64)
    indices, shape = stack([*columns, numbers], axis=1), (*lead, int(vocab_size))
    linear = linear_indices(who, indices, shape)
    flat = tensor_scatter_nd_update(
        reshape(zeros(shape, dtypes.bool), [-1]),
        expand_dims(linear, 1),
        ones((linear.shape[0],), dtypes.bool),
    )
    return reshape(flat, shape)


def eye(
    num_rows: IntLike,
    num_columns: IntLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> SparseTensor:
    """Create a sparse matrix with ones on the diagonal.

    Args:
        num_rows: Number of rows.
        num_columns: Number of columns, by default the number of rows.
        dtype: Dtype of the ones.

    Example:
        >>> tw.sparse.eye(2, 3).indices.numpy()
        array([[0, 0],
               [1, 1]])
    """
    rows = int(num_rows)
    columns = rows if num_columns is None else int(num_columns)
    check_at_least("eye", 0, num_rows=rows, num_columns=columns)
    diagonal = range(min(rows, columns), dtype=dtypes.int64)
    indices = stack([diagonal, diagonal], axis=1)
    return SparseTensor(indices, ones((min(rows, columns),), dtype), (rows, columns))
