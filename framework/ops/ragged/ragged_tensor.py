"""`RaggedTensor`: concatenated rows of different lengths; and its spec.

Its methods are grouped by purpose in separate files, over `RaggedRows`, which holds the
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapewright.core import dtypes
from tapewright.core.composite import CompositeSpec
from tapewright.core.dtypes import as_dtype
from tapewright.core.hardware import devices
from tapewright.core.shapes.tensor_shape import TensorShape
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import DTypeLike, StaticShapeLike, TensorLike

from ..array.conversion import cast
from ..array.joining import concat
from .conversion_methods import ConversionMethods
from .elementwise import OpMethods
from .indexing_methods import IndexingMethods
from .printing import text_of_rows


class RaggedTensor(ConversionMethods, IndexingMethods, OpMethods):
    """Tensor with rows of different lengths: concatenated `values`, cut at `row_splits`.

    The second axis is ragged; if `values` are ragged themselves, several axes are.
    Create one with a ``from_`` method or with `tw.ragged.constant`; the constructor
    always raises. Operators and element-wise ops accept it together with numbers,
    tensors ``[rows, 1, ...]``, and ragged tensors with the same rows. Traced functions,
    `cond`, `while_loop` and data sets accept and return it. Gradients pass through the
    values.

    In a traced function the number of values must be known. Rows of strings from
    `tw.strings.split` are kept packed there, and support everything except `values`.

    Args:
        values: Not supported; use a ``from_`` method.
        row_partition: Not supported; use a ``from_`` method.
        internal: Not supported; use a ``from_`` method.

    Raises:
        ValueError: Always, if called directly.

    Example:
        >>> rows = tw.RaggedTensor.from_row_lengths([1.0, 2.0, 3.0], [2, 0, 1])
        >>> rows
        <tf.RaggedTensor [[1.0, 2.0], [], [3.0]]>
        >>> (rows * 2.0).to_tensor(default_value=-1.0).numpy()
        array([[ 2.,  4.],
               [-1., -1.],
               [ 6., -1.]], dtype=float32)
    """

    __slots__ = ()

    def __init__(self, values: Any, row_partition: Any = None, internal: bool = False):
        raise ValueError(
            "RaggedTensor: use a function such as RaggedTensor.from_row_splits, or "
            "tw.ragged.constant"
        )

    def _tw_static_key(self) -> Any:
        """Return the class, the number of ragged axes, and whether rows are packed."""
        return RaggedTensor, len(self._tw_components())

    def _tw_gradient_part(self) -> Tensor:
        """Return the flat values."""
        return self.flat_values

    def _tw_with_gradient(self, gradient: TensorLike) -> RaggedTensor:
        """Return the gradient of the flat values in the rows of this tensor.

        Args:
            gradient: Gradient with respect to the flat values.
        """
        return self.with_flat_values(convert_to_tensor(gradient))

    # --- as an element of a data set

    def _tw_spec(self) -> RaggedTensorSpec:
        """Return the `RaggedTensorSpec`."""
        return RaggedTensorSpec.from_value(self)

    def _tw_unstacked(self) -> list[Any]:
        """Return a list of the rows."""
        return list(self)

    def _tw_stacked(self, rows: Sequence[RaggedTensor]) -> RaggedTensor:
        """Stack ragged tensors along a new first axis, which adds one ragged axis.

        Args:
            rows: Ragged tensors of one spec.
        """
        lengths = np.array([x._tw_row_count for x in rows], np.int64)
        return RaggedTensor.from_row_lengths(concat(list(rows), 0), lengths)

    def __repr__(self) -> str:
        parts = self._tw_components()
        if all([type(x) is Tensor and devices.is_array(x.array) for x in parts]):
            return f"<tf.RaggedTensor {text_of_rows(self)}>"
        if self._packed is not None:
            return f"tf.RaggedTensor(packed={self._packed})"
        return f"tf.RaggedTensor(values={self._values}, row_splits={self._splits})"


class RaggedTensorSpec(CompositeSpec):
    """Shape, dtype and ragged axes of a `RaggedTensor`.

    Args:
        shape: Shape with None for ragged axes and unknown sizes, or None for an unknown
            rank.
        dtype: Dtype of the values.
        ragged_rank: Number of ragged axes, by default all but the first. 0 describes a
            tensor with an unknown first size: a row of a ragged tensor.
        row_splits_dtype: Dtype of the row splits, int64 or int32.
        flat_values_spec: None; other values are not supported.

    Raises:
        ValueError: If neither a rank nor ``ragged_rank`` is given.

    Example:
        >>> tw.RaggedTensorSpec([None, None], "int32")
        RaggedTensorSpec(TensorShape([None, None]), tf.int32, 1, tf.int64)
    """

    __slots__ = ("shape", "dtype", "ragged_rank", "row_splits_dtype")

    def __init__(
        self,
        shape: StaticShapeLike = None,
        dtype: DTypeLike = dtypes.float32,
        ragged_rank: int | None = None,
        row_splits_dtype: DTypeLike = dtypes.int64,
        flat_values_spec: Any = None,
    ):
        if flat_values_spec is not None:
            raise ValueError("RaggedTensorSpec: flat_values_spec must be None")
        self.shape = TensorShape(shape)
        self.dtype, self.row_splits_dtype = as_dtype(dtype), as_dtype(row_splits_dtype)
        rank = self.shape.rank
        if rank is None and ragged_rank is None:
            raise ValueError(
                "RaggedTensorSpec: ragged_rank or a shape of known rank must be given, got "
                "neither"
            )
        self.ragged_rank: int = rank - 1 if ragged_rank is None else int(ragged_rank)
        if rank is not None and not 0 <= self.ragged_rank < max(rank, 1):
            raise ValueError(
                f"RaggedTensorSpec: ragged_rank must be from 0 to {rank - 1}, got "
                f"{ragged_rank}"
            )

    @property
    def value_type(self) -> type[Any]:
        """`RaggedTensor`, or `Tensor` without ragged axes."""
        return RaggedTensor if self.ragged_rank else Tensor

    @classmethod
    def from_value(cls, value: RaggedTensor) -> RaggedTensorSpec:
        """Create the spec of a ragged tensor.

        Args:
            value: Ragged tensor to describe.
        """
        splits = value.row_splits.dtype
        return cls(value.shape, value.dtype, value.ragged_rank, splits)

    def _tw_components(self) -> list[Any]:
        """Return the specs of the flat values, and of the row splits of each ragged axis."""
        if self.shape.rank is None or not self.ragged_rank:
            raise ValueError(
                "RaggedTensorSpec: a traced function needs a shape of known rank, and a "
                f"ragged axis; got {self}"
            )
        depth, rows = self.ragged_rank, self.shape[0]
        rows = None if rows is None else rows + 1
        splits = [TensorSpec([rows if i == 0 else None], self.row_splits_dtype)
                  for i in range(depth)]  # fmt: skip
        return [TensorSpec([None, *self.shape[depth + 1 :]], self.dtype), *splits]

    def _tw_with_components(self, components: Sequence[Any]) -> RaggedTensor:
        """Create a ragged tensor from its components.

        Args:
            components: Flat values, then the row splits of each ragged axis, or packed
                rows.
        """
        return RaggedTensor._of(None, None)._tw_with_components(components)

    def _tw_static_key(self) -> Any:
        """Return the static key of a ragged tensor with this number of ragged axes."""
        return RaggedTensor, self.ragged_rank + 1

    def is_compatible_with(self, value: Any) -> bool:
        """Return whether a value or spec has this dtype and a compatible shape.

        Args:
            value: Ragged tensor or spec to compare.
        """
        if isinstance(value, (Tensor, TensorSpec)):
            depth = 0
        elif isinstance(value, (RaggedTensor, RaggedTensorSpec)):
            depth = value.ragged_rank
        else:
            return False
        same = self.dtype == value.dtype and depth == self.ragged_rank
        return same and self.shape.is_compatible_with(value.shape)

    def _tw_with_shape(self, shape: StaticShapeLike) -> RaggedTensorSpec:
        """Return the same spec with another shape.

        Args:
            shape: New shape, with None for ragged axes and unknown sizes.
        """
        splits = self.row_splits_dtype
        return RaggedTensorSpec(shape, self.dtype, self.ragged_rank, splits)

    def _tw_batched(self, count: int | None) -> RaggedTensorSpec:
        """Return the spec of a batch.

        Args:
            count: Batch size, or None if unknown.
        """
        shape, more = [count, *self.shape], self.ragged_rank + 1
        return RaggedTensorSpec(shape, self.dtype, more, self.row_splits_dtype)

    def _tw_stack_rows(self, rows: Sequence[Any]) -> RaggedTensor:
        """Stack rows of this spec along a new first axis.

        Args:
            rows: Ragged tensors, or tensors.
        """
        if self.ragged_rank:
            return rows[0]._tw_stacked(rows)
        lengths = np.array([x.shape[0] for x in rows], np.int64)
        values = concat(list(rows), 0)
        return RaggedTensor.from_row_lengths(
            values, cast(lengths, self.row_splits_dtype)
        )

    def _tw_of_a_row(self) -> Any:
        """Return the spec of a row, with one ragged axis less."""
        shape = self.shape[1:]
        if self.ragged_rank < 1:
            return TensorSpec(shape, self.dtype)
        less = self.ragged_rank - 1
        return RaggedTensorSpec(shape, self.dtype, less, self.row_splits_dtype)

    def _tw_fitted(self, value: Any) -> Any:
        """Return the same rows, unpacked, with row splits of the dtype of this spec.

        Args:
            value: Ragged tensor to convert.
        """
        if not isinstance(value, RaggedTensor):
            return value
        return value._unpacked().with_row_splits_dtype(self.row_splits_dtype)

    def _key(self):
        rank = self.shape.rank
        return rank, *self.shape, self.dtype, self.ragged_rank, self.row_splits_dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RaggedTensorSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"RaggedTensorSpec({self.shape!r}, {self.dtype!r}, {self.ragged_rank}, "
            f"{self.row_splits_dtype!r})"
        )


def from_packed(packed: Tensor) -> RaggedTensor:
    """Create a ragged tensor from packed rows of strings."""
    return RaggedTensor._of(None, None, packed)
