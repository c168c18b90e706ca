"""Arithmetic of `IndexedSlices`, the sparse gradients of `gather`."""

from __future__ import annotations

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.tensor import IndexedSlices, convert_to_tensor

from .conversion import cast
from .gather import gather_p, scatter_rows
from .joining import concat


def dense(slices):
    """Convert `IndexedSlices` to a dense tensor, or to an array if they hold arrays.

    Raises:
        ValueError: If there is no ``dense_shape``.
    """
    if slices.dense_shape is None:
        raise InvalidArgumentError(
            "IndexedSlices need a dense_shape to be converted to a tensor, got None"
        )
    return scatter_rows(
        slices.values, slices.indices, shape=tuple(slices.shape), axis=0
    )


def add_slices(slices, other):
    """Add to a sparse gradient: sparse with another sparse one, dense with a dense one."""
    if not isinstance(other, IndexedSlices):
        return dense(slices) + other
    values = concat([slices.values, other.values], axis=0)
    both = [slices.indices, other.indices]
    if both[0].dtype != both[1].dtype:
        both = [cast(indices, dtypes.int64) for indices in both]
    indices = concat(both, axis=0)
    shape = slices.dense_shape
    return IndexedSlices(values, indices, other.dense_shape if shape is None else shape)


def sum_repeated(slices):
    """Sum repeated rows: the first of equal indices gets the sum, the others zeros.

    The number of rows stays the same, so that it is static in a traced function.

    Args:
        slices: `IndexedSlices` with indices in any order.
    """
    values, indices = (
        convert_to_tensor(each) for each in (slices.values, slices.indices)
    )
    from .sorting import argsort, searchsorted  # takes 2 ms

    order = argsort(indices, stable=True)
    first = gather_p(order, searchsorted(gather_p(indices, order, 0), indices), 0)
    sums = scatter_rows(values, first, shape=tuple(values.shape), axis=0)
    return IndexedSlices(sums, indices, slices.dense_shape)
