"""`RaggedRows`: values and row splits, derived quantities, and replacing the values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tapewright.core import dtypes
from tapewright.core.composite import CompositeTensor
from tapewright.core.dtypes import DType, as_dtype
from tapewright.core.errors import ShapeError
from tapewright.core.operators import Operators
from tapewright.core.shapes.symbolic_shape import agree
from tapewright.core.shapes.tensor_shape import TensorShape
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import DTypeLike, TensorLike

from ..array.conversion import cast
from ..array.creation import range as arange
from ..array.gather import gather
from ..array.sorting import searchsorted
from ..strings.packing import pack_rows, packed_lengths, packed_values
from .row_splits import longest_row, splits_of_lengths

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self


class RaggedRows(CompositeTensor, Operators):
    """Base of `RaggedTensor`: values and row splits, or packed rows of strings."""

    __slots__ = ("_values", "_splits", "_packed", "__weakref__")
    _tw_advice = (
        "tw.ragged.map_flat_values applies an op to its values, and to_tensor makes it "
        "dense"
    )
    _values: Any
    _splits: Any
    _packed: Any

    @classmethod
    def _of(cls, values, splits, packed=None):
        """Create from parts that are known to match, without checks."""
        ragged = object.__new__(cls)
        ragged._values, ragged._splits, ragged._packed = values, splits, packed
        return ragged

    # --- what it is

    @property
    def dtype(self) -> DType:
        """`DType` of the values."""
        return dtypes.string if self._values is None else self._values.dtype

    @property
    def shape(self) -> TensorShape:
        """Static shape ``(rows, None, ...)``."""
        if self._packed is not None:
            return TensorShape([*self._packed.shape, None])
        rows = self._splits.shape[0]
        rows = None if rows is None else rows - 1
        return TensorShape([rows, None, *self._values.shape[1:]])

    def get_shape(self) -> TensorShape:
        """Return ``shape``: TensorFlow's older name."""
        return self.shape

    @property
    def ragged_rank(self) -> int:
        """Number of ragged axes."""
        inner = self._values
        return 1 + (inner.ragged_rank if isinstance(inner, RaggedRows) else 0)

    @property
    def uniform_row_length(self) -> None:
        """None: rows have no uniform length by construction."""
        return None

    @property
    def values(self) -> Any:
        """Values of all rows, concatenated: ``[n, ...]``, or ragged.

        Not available in traced functions for packed rows.
        """
        return self._unpacked()._values

    @property
    def flat_values(self) -> Tensor:
        """Tensor of the `values` within all ragged axes."""
        values = self.values
        return values.flat_values if isinstance(values, RaggedRows) else values

    @property
    def row_splits(self) -> Tensor:
        """Start of each row in `values`, then the end of the last one, int64."""
        if self._packed is not None:
            return splits_of_lengths(packed_lengths(self._packed))
        return self._splits

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """Row splits of each ragged axis, the outermost first."""
        inner = self._values
        more = inner.nested_row_splits if isinstance(inner, RaggedRows) else ()
        return (self.row_splits, *more)

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """Return the length of each row: ``[rows]``, or ragged along a further ragged axis.

        Args:
            axis: Ragged axis, 1 or more.

        Example:
            >>> tw.ragged.constant([[1, 2], [], [3]]).row_lengths().numpy()
            array([2, 0, 1])
        """
        if axis != 1:
            if 1 < axis <= self.ragged_rank:
                return self.with_values(self.values.row_lengths(axis - 1))
            raise ValueError(f"row_lengths: axis must be a ragged axis, got {axis}")
        if self._packed is not None:
            return packed_lengths(self._packed)
        return self._splits[1:] - self._splits[:-1]

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        """Return the lengths along each ragged axis, the outermost first."""
        return tuple([splits[1:] - splits[:-1] for splits in self.nested_row_splits])

    def row_starts(self, name: str | None = None) -> Tensor:
        """Return the position of the first value of each row."""
        return self.row_splits[:-1]

    def row_limits(self, name: str | None = None) -> Tensor:
        """Return the position behind the last value of each row."""
        return self.row_splits[1:]

    def value_rowids(self, name: str | None = None) -> Tensor:
        """Return the row number of each value: ``[n]``."""
        count = count_of(self.values)
        limits = self.row_limits()
        numbers = arange(count, dtype=limits.dtype)
        return searchsorted(limits, numbers, side="right", out_type=limits.dtype)

    def nested_value_rowids(self, name: str | None = None) -> tuple[Tensor, ...]:
        """Return the `value_rowids` of each ragged axis, the outermost first."""
        values = self.values
        more = values.nested_value_rowids() if isinstance(values, RaggedRows) else ()
        return (self.value_rowids(), *more)

    @property
    def _tw_row_count(self) -> Any:
        """Number of rows: an int, or a symbolic size in a trace."""
        if self._packed is not None:
            return self._packed.shape[0]
        return self._splits.shape[0] - 1

    def nrows(
        self, out_type: DTypeLike | None = None, name: str | None = None
    ) -> Tensor:
        """Return the number of rows as a tensor.

        Args:
            out_type: Dtype of the result, int64 by default.
        """
        return convert_to_tensor(self._tw_row_count, dtype=out_type or dtypes.int64)

    def bounding_shape(
        self,
        axis: Any = None,
        name: str | None = None,
        out_type: DTypeLike | None = None,
    ) -> Tensor:
        """Return the shape of `to_tensor`: number of rows, longest row, inner sizes.

        Not available in traced functions.

        Args:
            axis: One axis, or several, to return the sizes of; all by default.
            out_type: Dtype of the result, int64 by default.
        """
        sizes = convert_to_tensor(self._bounds(), dtype=out_type or dtypes.int64)
        return sizes if axis is None else gather(sizes, axis)

    def _bounds(self):
        longest = longest_row("bounding_shape", self.row_lengths())
        values = self.values
        inner = values._bounds() if isinstance(values, RaggedRows) else values.shape
        return [self._tw_row_count, longest, *inner[1:]]

    def _positions(self):
        """Return the position of each value in its row."""
        rows = self.value_rowids()
        return arange(count_of(self._values), dtype=rows.dtype) - gather(
            self.row_starts(), rows
        )

    # --- other values

    def with_values(self, new_values: Any) -> Self:
        """Return a ragged tensor with the same rows and new values.

        Args:
            new_values: Values, as many as before.

        Raises:
            ShapeError: If the number of values differs.

        Example:
            >>> tw.ragged.constant([[1, 2], [3]]).with_values([4, 5, 6])
            <tf.RaggedTensor [[4, 5], [6]]>
        """
        me, new_values = self._unpacked(), as_values(new_values)
        if not agree(count_of(me._values), count_of(new_values)):
            raise ShapeError(
                "with_values", f"there must be {count_of(me._values)} values, got "
                f"{count_of(new_values)}"
            )  # fmt: skip
        return self._of(new_values, me._splits)

    def with_flat_values(self, new_values: TensorLike) -> Self:
        """Return a ragged tensor with the same rows and new `flat_values`.

        Args:
            new_values: Values, as many as before.
        """
        inner = self.values
        if isinstance(inner, RaggedRows):
            return self.with_values(inner.with_flat_values(new_values))
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype: DTypeLike) -> Self:
        """Return a ragged tensor with `row_splits` of another dtype.

        Args:
            dtype: int32 or int64.
        """
        if as_dtype(dtype) not in (dtypes.int32, dtypes.int64):
            raise ValueError(
                f"with_row_splits_dtype: dtype must be int32 or int64, got {dtype}"
            )
        me = self._unpacked() if as_dtype(dtype) != dtypes.int64 else self
        if me._packed is not None:
            return me
        inner = me._values
        if isinstance(inner, RaggedRows):
            inner = inner.with_row_splits_dtype(dtype)
        return self._of(inner, cast(me._splits, dtype))

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """Merge the axes from ``outer_axis`` to ``inner_axis`` into one.

        Args:
            outer_axis: First axis to merge.
            inner_axis: Last axis to merge.

        Raises:
            ValueError: If the axes are not consecutive ragged axes.

        Example:
            >>> tw.RaggedTensor.from_row_lengths([1, 2, 3], [2, 1]).merge_dims(0, 1).numpy()
            array([1, 2, 3], dtype=int32)
        """
        rank = self.shape.rank
        first, last = [a + rank if a < 0 else a for a in (outer_axis, inner_axis)]
        if not 0 <= first < last <= self.ragged_rank:
            raise ValueError(
                "merge_dims: axes must increase, and be from 0 to the last ragged axis, "
                f"{self.ragged_rank}; got {outer_axis} and {inner_axis}"
            )
        me = self._unpacked()
        if first > 1:
            return me.with_values(me._values.merge_dims(first - 1, last - 1))
        merged, splits = me._values, me._splits
        for _ in range(last - 1):
            splits, merged = gather(merged._splits, splits), merged._values
        return merged if first == 0 else self._of(merged, splits)

    # --- as a structure

    def _tw_components(self) -> list[Any]:
        """Return the flat values and the splits of each ragged axis, or the packed rows."""
        if self._packed is not None:
            return [self._packed]
        inner, splits = self._values, [self._splits]
        while isinstance(inner, RaggedRows):
            splits.append(inner._splits)
            inner = inner._values
        return [inner, *splits]

    def _tw_with_components(self, components: Sequence[Any]) -> Self:
        """Return a ragged tensor with these components."""
        if len(components) == 1:
            return self._of(None, None, components[0])
        values, *splits = components
        for each in reversed(splits):
            values = self._of(values, each)
        return values

    # --- packed rows of strings

    def _unpacked(self):
        if self._packed is None:
            return self
        return self._of(packed_values(self._packed), self.row_splits)

    @property
    def _tw_packed(self) -> Tensor:
        """Packed rows of strings: one string per row. See `tw.strings`."""
        if self._packed is not None:
            return self._packed
        if isinstance(self._values, RaggedRows) or self.dtype != dtypes.string:
            raise TypeError(
                "the RaggedTensor must hold strings and have one ragged axis, got "
                f"{self.dtype.name} {self.shape}"
            )
        return pack_rows(self._values, self.row_lengths())


def as_values(values: Any) -> Any:
    """Convert values to a tensor of rank 1 or more, or to rows."""
    if isinstance(values, RaggedRows):
        return values
    values = convert_to_tensor(values)
    if not values.shape.rank:
        raise ShapeError("RaggedTensor", "values must have an axis", values=values)
    return values


def count_of(values: Any) -> Any:
    """Return the number of values, or of rows."""
    if isinstance(values, RaggedRows):
        return values._tw_row_count
    return values.shape[0]
