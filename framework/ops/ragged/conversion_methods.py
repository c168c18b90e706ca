"""Methods that convert other tensors to a `RaggedTensor`, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import DTypeError, ShapeError
from tapewright.core.shapes.tensor_shape import TensorShape
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import DTypeLike, TensorLike

from ..array.conversion import cast
from ..array.creation import range as arange
from ..array.gather import boolean_mask, gather
from ..array.joining import concat, stack
from ..array.shape import broadcast_to, reshape
from ..math.comparison import less, not_equal, where
from ..math.reduction import reduce_any, reduce_max
from ..sparse.sparse_tensor import SparseTensor
from ..strings.packing import packed_to_matrix, unpack
from .factory_methods import FactoryMethods
from .ragged_rows import RaggedRows, count_of
from .row_splits import check_equal, longest_row, row_numbers, splits_of_lengths

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self


class ConversionMethods(FactoryMethods):
    """See `RaggedTensor`."""

    __slots__ = ()

    # --- from other tensors

    @classmethod
    def from_tensor(
        cls,
        tensor: TensorLike,
        lengths: TensorLike | None = None,
        padding: TensorLike | None = None,
        ragged_rank: int = 1,
        name: str | None = None,
        row_splits_dtype: DTypeLike = dtypes.int64,
    ) -> Self:
        """Convert ``tensor [rows, width, ...]`` to ragged rows, without their padding.

        In traced functions, rows are kept whole.

        Args:
            tensor: Tensor of rank 2 or more.
            lengths: Number of entries of each row to keep.
            padding: Value that is removed at the end of rows.
            ragged_rank: 1, the only supported number of ragged axes.
            row_splits_dtype: Dtype of the row splits, int64 or int32.

        Raises:
            ValueError: If both ``lengths`` and ``padding`` are given, or
                ``ragged_rank`` is not 1.

        Example:
            >>> tw.RaggedTensor.from_tensor([[1, 2], [3, 0]], padding=0)
            <tf.RaggedTensor [[1, 2], [3]]>
        """
        who, tensor = "from_tensor", convert_to_tensor(tensor)
        if ragged_rank != 1:
            raise ValueError(f"{who}: ragged_rank must be 1, got {ragged_rank}")
        if lengths is not None and padding is not None:
            raise ValueError(f"{who}: give lengths or padding, not both")
        if tensor.shape.rank is None or tensor.shape.rank < 2:
            raise ShapeError(who, "tensor must have two axes or more", tensor=tensor)
        rows, width, *inner = tensor.shape
        if lengths is None and padding is None:
            values = reshape(tensor, (rows * width, *inner))
            splits = arange(rows + 1, dtype=dtypes.int64) * width
            return cls._of(values, cast(splits, row_splits_dtype))
        steps = arange(width, dtype=dtypes.int64)
        if padding is not None:
            padding = convert_to_tensor(padding, dtype_hint=tensor.dtype)
            counts = not_equal(tensor, padding)
            if inner:
                counts = reduce_any(counts, tuple(range(2, tensor.shape.rank)))
            ends = where(counts, steps + 1, cast(0, dtypes.int64))
            no_entry = cast(np.zeros((rows, 1)), dtypes.int64)
            lengths = reduce_max(ends if width else concat([ends, no_entry], 1), 1)
        lengths = row_numbers(who, "lengths", lengths)
        lengths = where(less(lengths, width), lengths, cast(width, dtypes.int64))
        lengths = where(less(lengths, 0), cast(0, dtypes.int64), lengths)
        kept = less(steps, reshape(lengths, (rows, 1)))
        values = boolean_mask(tensor, broadcast_to(kept, (rows, width)))
        return cls._of(values, cast(splits_of_lengths(lengths), row_splits_dtype))

    @classmethod
    def from_sparse(
        cls,
        st_input: SparseTensor,
        name: str | None = None,
        row_splits_dtype: DTypeLike = dtypes.int64,
    ) -> Self:
        """Convert a sparse matrix with the entries of each row at its start, in order.

        Args:
            st_input: `SparseTensor` of rank 2.
            row_splits_dtype: Dtype of the row splits, int64 or int32.

        Raises:
            InvalidArgumentError: If an entry is missing before another one.
        """
        who = "from_sparse"
        if not isinstance(st_input, SparseTensor):
            raise TypeError(f"{who}: st_input must be a SparseTensor, got {st_input!r}")
        if st_input.shape.rank != 2 or st_input.shape[0] is None:
            raise ShapeError(who, f"st_input must be a matrix, got {st_input.shape}")
        indices = st_input.indices
        ragged = cls.from_value_rowids(
            st_input.values, indices[:, 0], st_input.shape[0]
        )
        check_equal(ragged._positions(), indices[:, 1], f"{who}: SparseTensor is not "
                     "right-ragged: an entry is missing before another")  # fmt: skip
        return ragged.with_row_splits_dtype(row_splits_dtype)

    # --- to other tensors

    def to_tensor(
        self,
        default_value: TensorLike | None = None,
        name: str | None = None,
        shape: Sequence[int | None] | None = None,
    ) -> Tensor:
        """Convert to a dense tensor, with rows padded with ``default_value``.

        A traced function does not know the longest row, and needs the sizes of ragged
        axes.

        Args:
            default_value: Padding, 0 or "" by default.
            shape: Sizes to which rows are padded or cut, with None for sizes of
                `bounding_shape`.

        Example:
            >>> rows = tw.RaggedTensor.from_row_lengths([1, 2, 3], [2, 1])
            >>> rows.to_tensor(shape=(None, 3)).numpy()
            array([[1, 2, 0],
                   [3, 0, 0]], dtype=int32)
        """
        sizes = _wanted_sizes(shape, self.shape.rank)
        text = self.dtype == dtypes.string
        default = ("" if text else 0) if default_value is None else default_value
        default = convert_to_tensor(default, dtype_hint=self.dtype)
        if default.dtype != self.dtype:
            raise DTypeError(
                "to_tensor", f"default_value must be {self.dtype.name}", default=default
            )
        if self._packed is not None and sizes[0] is None:
            width = -1 if sizes[1] is None else sizes[1]
            return packed_to_matrix(self._packed, default, width)
        me, inner = self._unpacked(), self._unpacked()._values
        if isinstance(inner, RaggedRows):
            inner = inner.to_tensor(default, shape=[None, *sizes[2:]])
        lengths, starts = me.row_lengths(), me.row_starts()
        width = sizes[1]
        if width is None:
            width = longest_row("to_tensor (give it shape=(None, width))", lengths)
        rows = lengths.shape[0]
        if sizes[0] is not None and sizes[0] != rows:
            lengths, starts = [_resized(x, sizes[0]) for x in (lengths, starts)]
            rows = sizes[0]
        steps = arange(width, dtype=starts.dtype)
        inside = less(steps, reshape(lengths, (rows, 1)))
        # The padding is one more value, behind all others.
        behind = convert_to_tensor(count_of(inner), dtype=starts.dtype)
        picks = where(inside, reshape(starts, (rows, 1)) + steps, behind)
        filling = broadcast_to(default, (1, *inner.shape[1:]))
        dense = gather(concat([inner, filling], 0), picks)
        for axis, wanted in enumerate(sizes[2:], 2):
            if wanted is not None and dense.shape[axis] != wanted:
                raise ShapeError(
                    "to_tensor", f"shape must have size {dense.shape[axis]} along axis "
                    f"{axis}, got {wanted}"
                )  # fmt: skip
        return dense

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """Convert to a `SparseTensor` of shape `bounding_shape`.

        Not available in traced functions.

        Example:
            >>> tw.RaggedTensor.from_row_lengths([7, 8], [0, 2]).to_sparse().indices.numpy()
            array([[1, 0],
                   [1, 1]])
        """
        values = self.values
        if isinstance(values, RaggedRows) or values.shape.rank != 1:
            raise ShapeError(
                "to_sparse", "the RaggedTensor must have one ragged axis and no further axes, "
                f"got {self.shape}"
            )  # fmt: skip
        me = self._unpacked()
        indices = stack([me.value_rowids(), me._positions()], axis=1)
        return SparseTensor(indices, values, self._bounds())

    def to_list(self) -> list[Any]:
        """Convert to nested lists of Python numbers."""
        if self._packed is not None:
            return [unpack(row) for row in self._packed.numpy().tolist()]
        splits, inner = self._splits.numpy().tolist(), self._values
        is_ragged = isinstance(inner, RaggedRows)
        flat = inner.to_list() if is_ragged else inner.numpy().tolist()
        return [flat[a:b] for a, b in zip(splits, splits[1:])]

    def numpy(self) -> Any:
        """Convert to an array of objects, one per row; to a plain array if rows are equal.

        Rows are equal if all have the same length.
        """
        if not self._tw_row_count:
            return np.zeros((0, 0), self.dtype.as_numpy_dtype)
        splits = self.row_splits.numpy()
        rows = np.split(self.values.numpy(), splits[1:-1])
        if (np.diff(splits) == len(rows[0])).all():
            return np.stack(rows)
        array = np.empty(len(rows), object)
        array[:] = rows
        return array


def _wanted_sizes(shape, rank):
    shape = TensorShape([None] * rank if shape is None else shape)
    if shape.rank is None:
        return [None] * rank
    if shape.rank != rank:
        raise ShapeError(
            "to_tensor", f"shape must have {rank} sizes, got {tuple(shape)}"
        )
    return list(shape)


def _resized(x, count):
    """Return the first ``count`` entries, padded with zeros if there are fewer."""
    missing = count - x.shape[0]
    if missing <= 0:
        return x[:count]
    return concat([x, cast(np.zeros(missing, np.int64), x.dtype)], 0)
