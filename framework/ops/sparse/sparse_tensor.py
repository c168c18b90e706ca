"""`SparseTensor`: a tensor stored as indices and values of some entries; and its spec."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapewright.core import dtypes
from tapewright.core.composite import CompositeSpec
from tapewright.core.dtypes import DType, as_dtype
from tapewright.core.errors import (
    DTypeError,
    ShapeError,
    TracingError,
)
from tapewright.core.hardware import devices
from tapewright.core.shapes.symbolic_dim import is_symbolic
from tapewright.core.shapes.symbolic_shape import agree
from tapewright.core.shapes.tensor_shape import TensorShape
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    new_tensor,
)
from tapewright.core.typing import DTypeLike, ShapeLike, StaticShapeLike, TensorLike
from tapewright.core.typing import as_shape as as_sizes

from ..array.conversion import cast
from ..array.creation import zeros_like
from ..array.joining import concat
from .elementwise import OpMethods


class SparseTensor(OpMethods):
    """Sparse tensor, stored as the indices and values of some entries; all others are zero.

    Traced functions, `cond`, `while_loop` and data sets accept and return it. A
    function is retraced for another number of entries, and for another dense shape.
    Gradients pass through `values`. ``*`` and ``/`` accept a dense tensor that
    broadcasts to the shape; other ops are in `tw.sparse`.

    Args:
        indices: Coordinates of each entry, int64 ``[n, rank]``. Most ops require the
            order of `tw.sparse.reorder`. Coordinates out of range raise in the ops.
        values: Value of each entry, ``[n]``.
        dense_shape: Shape of the whole tensor, ``[rank]``.

    Raises:
        ShapeError: If the sizes do not agree (a ``ValueError``).
        DTypeError: If the indices are not integers (a ``TypeError``).

    Example:
        >>> x = tw.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], dense_shape=[3, 2])
        >>> x.shape, x.dtype, x.values.numpy()
        (TensorShape([3, 2]), tf.float32, array([1., 2.], dtype=float32))
        >>> tw.sparse.to_dense(x * 10.0).numpy()
        array([[ 0., 10.],
               [ 0.,  0.],
               [20.,  0.]], dtype=float32)
    """

    __slots__ = ("_indices", "_values", "_shape", "_dense_shape", "__weakref__")

    def __init__(self, indices: TensorLike, values: TensorLike, dense_shape: ShapeLike):
        who = "SparseTensor"
        indices, values = convert_to_tensor(indices), convert_to_tensor(values)
        if indices.dtype != dtypes.int64:
            if math.prod(tuple(indices.shape)) and not indices.dtype.is_integer:
                raise DTypeError(who, "indices must be integers", indices=indices)
            indices = cast(indices, dtypes.int64)
        shape, traced = _sizes_or_tensor(dense_shape)
        if indices.shape.rank != 2:
            raise ShapeError(who, "indices must be [n, rank]", indices=indices)
        count, rank = indices.shape
        if values.shape.rank != 1 or not agree(count, values.shape[0]):
            raise ShapeError(
                who, "values must be [n], one for each of the indices",
                indices=indices, values=values,
            )  # fmt: skip
        if not agree(rank, len(shape)):
            raise ShapeError(
                who, f"dense_shape {tuple(shape)} must have a size for each column of "
                "indices", indices=indices,
            )  # fmt: skip
        if any([type(n) is int and n < 0 for n in shape]):
            raise ShapeError(
                who, f"dense_shape must not be negative, got {shape}", indices=indices
            )
        self._fill(indices, values, shape, traced)

    def _fill(self, indices, values, shape, dense_shape=None):
        self._indices, self._values = indices, values
        self._shape = tuple(shape)  # numbers, formulas of sizes, or None
        self._dense_shape = dense_shape  # a tensor, if there is None in the shape
        return self

    @classmethod
    def _of(cls, indices, values, shape, dense_shape=None):
        """Create from parts that are known to match, without checks."""
        return object.__new__(cls)._fill(indices, values, shape, dense_shape)

    # --- what it is

    @property
    def indices(self) -> Tensor:
        """Coordinates of the entries, int64 ``[n, rank]``."""
        return self._indices

    @property
    def values(self) -> Tensor:
        """Values of the entries, ``[n]``."""
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        """Shape as a tensor, int64 ``[rank]``."""
        if self._dense_shape is not None:
            return self._dense_shape
        return convert_to_tensor(list(self._shape) or [], dtype=dtypes.int64)

    @property
    def shape(self) -> TensorShape:
        """Static shape, a `TensorShape`."""
        return TensorShape(self._shape)

    @property
    def dtype(self) -> DType:
        """`DType` of the values."""
        return as_dtype(self._values.dtype)

    def get_shape(self) -> TensorShape:
        """Return ``shape``: TensorFlow's older name."""
        return self.shape

    def set_shape(self, shape: StaticShapeLike) -> None:
        """Check that the shape is compatible with ``shape``.

        Args:
            shape: Static shape, with None for unknown sizes.

        Raises:
            ValueError: If the shapes are not compatible.
        """
        self.shape.assert_is_compatible_with(shape)

    def with_values(self, new_values: TensorLike) -> SparseTensor:
        """Return a sparse tensor with the same indices and new values.

        Args:
            new_values: Values, as many as before.

        Raises:
            ShapeError: If the number of values differs.

        Example:
            >>> x = tw.SparseTensor([[0], [2]], [1.0, 2.0], [3])
            >>> x.with_values([5.0, 6.0]).values.numpy()
            array([5., 6.], dtype=float32)
        """
        new_values = convert_to_tensor(new_values)
        if tuple(new_values.shape) != tuple(self._values.shape):
            raise ShapeError(
                "with_values", f"new_values must have shape {self._values.shape}",
                new_values=new_values,
            )  # fmt: skip
        return self._of(self._indices, new_values, self._shape, self._dense_shape)

    # --- as a structure

    def _tw_components(self) -> list[Any]:
        """Return indices and values, and the dense shape if it is not static."""
        parts = [self._indices, self._values]
        return parts if self._is_static() else [*parts, self.dense_shape]

    def _tw_with_components(self, components: Sequence[Any]) -> SparseTensor:
        """Return a sparse tensor with these components.

        Args:
            components: Indices, values, and the dense shape if it is not static.
        """
        indices, values, *rest = components
        if not rest:
            return self._of(indices, values, self._shape)
        shape, dense_shape = self._plain_shape(), rest[0]
        if isinstance(dense_shape, Tensor):
            sizes, dense_shape = _sizes_or_tensor(dense_shape)
            shape = shape if dense_shape is not None else sizes
        return self._of(indices, values, shape, dense_shape)

    def _tw_static_key(self) -> Any:
        """Return the class and the dense shape, with None for sizes unknown in a trace."""
        return SparseTensor, self._is_static(), self._plain_shape()

    def _is_static(self):
        return all([type(n) is int for n in self._shape])

    def _plain_shape(self):
        return tuple([n if type(n) is int else None for n in self._shape])

    def _tw_gradient_part(self) -> Tensor:
        """Return the values."""
        return self._values

    def _tw_with_gradient(self, gradient: TensorLike) -> SparseTensor:
        """Return the gradient of the values, at their indices.

        Args:
            gradient: Gradient with respect to the values.
        """
        return self.with_values(convert_to_tensor(gradient))

    # --- as an element of a data set

    def _tw_spec(self) -> SparseTensorSpec:
        """Return the `SparseTensorSpec`."""
        return SparseTensorSpec.from_value(self)

    def _tw_unstacked(self) -> list[SparseTensor]:
        """Return a list of the rows, each with one axis less."""
        count, *inner = self.dense_shape.numpy().tolist()
        rows = devices.to_numpy(self._indices.array)
        order = np.argsort(rows[:, 0], kind="stable")
        splits = np.searchsorted(rows[order, 0], np.arange(count + 1))
        indices, values = rows[order, 1:], devices.to_numpy(self._values.array)[order]
        return [
            self._of(new_tensor(indices[a:b]), new_tensor(values[a:b]), inner)
            for a, b in zip(splits, splits[1:])
        ]

    def _tw_stacked(self, rows: Sequence[SparseTensor]) -> SparseTensor:
        """Stack sparse tensors along a new first axis.

        Args:
            rows: Sparse tensors of one shape.
        """
        if any([x._shape != self._shape for x in rows]):
            raise ShapeError(
                "batch", "sparse tensors of a batch must have the same dense shape, got "
                f"{sorted({tuple(x._shape) for x in rows})}"
            )  # fmt: skip
        numbered = [
            concat([zeros_like(x.indices[:, :1]) + i, x.indices], 1)
            for i, x in enumerate(rows)
        ]
        values = concat([x.values for x in rows], 0)
        return self._of(concat(numbered, 0), values, (len(rows), *self._shape))

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self._indices!s}, values={self._values!s}, "
            f"dense_shape={self.dense_shape!s})"
        )


class SparseTensorSpec(CompositeSpec):
    """Shape and dtype of a `SparseTensor`, for an ``input_signature`` or data.

    If a size is unknown, a traced function that converts the tensor to dense runs
    eagerly.

    Args:
        shape: Shape with None for unknown sizes, or None for an unknown rank.
        dtype: Dtype of the values.

    Example:
        >>> tw.SparseTensorSpec([3, 2], "float32")
        SparseTensorSpec(TensorShape([3, 2]), tf.float32)
    """

    __slots__ = ("shape", "dtype")

    def __init__(
        self, shape: StaticShapeLike = None, dtype: DTypeLike = dtypes.float32
    ):
        self.shape = TensorShape(shape)
        self.dtype = as_dtype(dtype)

    @property
    def value_type(self) -> type[SparseTensor]:
        """`SparseTensor`."""
        return SparseTensor

    @classmethod
    def from_value(cls, value: SparseTensor) -> SparseTensorSpec:
        """Create the spec of a sparse tensor.

        Args:
            value: Sparse tensor to describe.
        """
        return cls(value.shape, value.dtype)

    def _tw_components(self) -> list[Any]:
        """Return the specs of indices and values, and of a dense shape that is not static."""
        rank = self.shape.rank
        if rank is None:
            raise ValueError(
                "SparseTensorSpec: the rank must be known for a traced function; give a "
                "shape, with None for unknown sizes"
            )
        parts = [
            TensorSpec([None, rank], dtypes.int64), TensorSpec([None], self.dtype)
        ]  # fmt: skip
        known = self.shape.is_fully_defined()
        return parts if known else [*parts, TensorSpec([rank], dtypes.int64)]

    def _tw_with_components(self, components: Sequence[Any]) -> SparseTensor:
        """Create a sparse tensor of this shape from its components.

        Args:
            components: Indices, values, and the dense shape if it is not static.
        """
        stand_in = SparseTensor._of(None, None, tuple(self.shape))
        return stand_in._tw_with_components(components)

    def _tw_static_key(self) -> Any:
        """Return the static key of a sparse tensor of this shape."""
        return SparseTensor._of(None, None, tuple(self.shape))._tw_static_key()

    def is_compatible_with(self, value: Any) -> bool:
        """Return whether a sparse tensor or spec has this dtype and a compatible shape.

        Args:
            value: Sparse tensor or spec to compare.
        """
        if not isinstance(value, (SparseTensor, SparseTensorSpec)):
            return False
        return self.dtype == value.dtype and self.shape.is_compatible_with(value.shape)

    def _tw_with_shape(self, shape: StaticShapeLike) -> SparseTensorSpec:
        """Return the same spec with another shape.

        Args:
            shape: New shape, with None for unknown sizes.
        """
        return SparseTensorSpec(shape, self.dtype)

    def _tw_batched(self, count: int | None) -> SparseTensorSpec:
        """Return the spec of a batch.

        Args:
            count: Batch size, or None if unknown.
        """
        return SparseTensorSpec([count, *self.shape], self.dtype)

    def _tw_of_a_row(self) -> SparseTensorSpec:
        """Return the spec of a row, with one axis less."""
        return SparseTensorSpec(self.shape[1:], self.dtype)

    def _tw_fitted(self, value: Any) -> Any:
        """Return the same value, with a tensor as dense shape if sizes are unknown.

        Args:
            value: Sparse tensor to convert.
        """
        if self.shape.is_fully_defined() or self.shape.rank is None:
            return value
        if isinstance(value, SparseTensorSpec):
            return self
        return SparseTensor._of(
            value.indices, value.values, tuple(self.shape), value.dense_shape
        )

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, SparseTensorSpec) and self.dtype == other.dtype
        return same and (self.shape.rank, *self.shape) == (
            other.shape.rank, *other.shape
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.shape.rank, *self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"SparseTensorSpec({self.shape!r}, {self.dtype!r})"


def as_sparse(who: str, value: Any, name: str = "sp_input") -> SparseTensor:
    """Return ``value``, which must be a `SparseTensor`.

    Raises:
        TypeError: If it is not a `SparseTensor`.
    """
    if not isinstance(value, SparseTensor):
        raise TypeError(
            f"{who}: {name} must be a SparseTensor, got {type(value).__name__}; "
            "convert it with tw.sparse.from_dense"
        )
    return value


def _sizes_or_tensor(dense_shape):
    """Return a dense shape as sizes and None, or as Nones and the tensor of a trace."""
    try:
        return as_sizes(dense_shape), None
    except TracingError:
        tensor = cast(convert_to_tensor(dense_shape), dtypes.int64)
        if tensor.shape.rank != 1 or is_symbolic(tensor.shape[0]):
            raise
        return (None,) * tensor.shape[0], tensor
