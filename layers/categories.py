"""Integers as categories: vectors with a place for each, for all layers that make them."""

from __future__ import annotations

from typing import Any

from tapewright.core.typing import Shape
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.indexing import one_hot
from tapewright.ops.array.shape import expand_dims, squeeze
from tapewright.ops.math.comparison import less, where
from tapewright.ops.math.counting import bincount
from tapewright.ops.math.reduction import reduce_max, reduce_sum

__all__ = ["dense_only", "encoded", "encoded_shape"]


def dense_only(layer: Any, sparse: Any) -> bool:
    """The argument ``sparse`` of a layer. Raises: ``ValueError`` unless it is False."""
    if sparse:
        raise ValueError(
            f"{type(layer).__name__}: sparse=True is not supported; outputs are dense"
        )
    return False


def encoded(
    indices: Any, mode: str, depth: int, dtype: Any, weights: Any = None
) -> Any:
    """Integers as "int", "one_hot", "multi_hot" or "count"; others are left out."""
    if mode == "int":
        return cast(indices, dtype)
    indices = cast(indices, "int64")
    if len(indices.shape) == 0:
        indices = expand_dims(indices, -1)
    rank = len(indices.shape)
    if mode == "one_hot":
        if rank > 1 and indices.shape[-1] == 1:
            indices = squeeze(indices, -1)
        return one_hot(indices, depth, dtype=dtype)
    if weights is None and rank <= 2:
        indices = where(less(indices, 0), depth, indices)
        bounds = {"minlength": depth, "maxlength": depth}
        counts = bincount(indices, **bounds, axis=-1, binary_output=mode == "multi_hot")
        return cast(counts, dtype)
    axis = 1 if rank > 1 else 0
    rows = one_hot(indices, depth, dtype=dtype)
    if mode == "multi_hot":
        return reduce_max(rows, axis)
    if weights is not None:
        rows = rows * expand_dims(cast(weights, dtype), -1)
    return reduce_sum(rows, axis)


def encoded_shape(shape: Any, mode: str, depth: int | None) -> Shape:
    """The shape of `encoded` integers of a shape."""
    shape = tuple(shape)
    if mode == "int":
        return shape
    if mode == "one_hot":
        return (*(shape[:-1] if len(shape) > 1 and shape[-1] == 1 else shape), depth)
    return (*shape[:1], *shape[2:], depth) if len(shape) > 1 else (depth,)
