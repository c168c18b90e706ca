"""Methods that create a `RaggedTensor` from values and a row partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.shapes.symbolic_shape import agree
from tapewright.core.tensor import convert_to_tensor
from tapewright.core.typing import IntLike, TensorLike

from ..array.creation import range as arange
from ..array.joining import concat, pad
from ..array.segment import known_values
from ..array.sorting import searchsorted
from .ragged_rows import RaggedRows, as_values, count_of
from .row_splits import (
    checked_rowids,
    checked_splits,
    row_numbers,
    splits_of_lengths,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self


class FactoryMethods(RaggedRows):
    """See `RaggedTensor`."""

    __slots__ = ()

    @classmethod
    def from_row_splits(
        cls,
        values: Any,
        row_splits: TensorLike,
        name: str | None = None,
        validate: bool = True,
    ) -> Self:
        """Create rows ``values[row_splits[i] : row_splits[i + 1]]``.

        Args:
            values: Values of all rows, concatenated: ``[n, ...]``, or ragged.
            row_splits: Start of each row, then the end of the last one: ``[rows + 1]``,
                from 0 to ``n``.
            validate: If False, skip the checks of the row partition.

        Raises:
            InvalidArgumentError: If ``row_splits`` decreases, or does not go from 0 to
                ``n``.

        Example:
            >>> tw.RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 2, 3])
            <tf.RaggedTensor [[1, 2], [], [3]]>
        """
        values = as_values(values)
        splits = row_numbers("from_row_splits", "row_splits", row_splits)
        if not splits.shape[0]:
            raise InvalidArgumentError("from_row_splits: row_splits must not be empty")
        if validate:
            splits = checked_splits(splits, count_of(values))
        return cls._of(values, splits)

    @classmethod
    def from_row_lengths(
        cls,
        values: Any,
        row_lengths: TensorLike,
        name: str | None = None,
        validate: bool = True,
    ) -> Self:
        """Create rows of the given lengths.

        Args:
            values: Values of all rows, concatenated: ``[n, ...]``, or ragged.
            row_lengths: Length of each row; they sum to the number of ``values``.
            validate: If False, skip the checks of the row partition.

        Example:
            >>> tw.RaggedTensor.from_row_lengths(["a", "b"], [0, 2]).to_list()
            [[], [b'a', b'b']]
        """
        lengths = row_numbers("from_row_lengths", "row_lengths", row_lengths)
        return cls.from_row_splits(
            values, splits_of_lengths(lengths), validate=validate
        )

    @classmethod
    def from_value_rowids(
        cls,
        values: Any,
        value_rowids: TensorLike,
        nrows: IntLike | None = None,
        name: str | None = None,
        validate: bool = True,
    ) -> Self:
        """Create rows from the row number of each value.

        Args:
            values: Values of all rows, concatenated: ``[n, ...]``, or ragged.
            value_rowids: Row of each value, ``[n]``, not decreasing.
            nrows: Number of rows, by default the row of the last value plus one; traced
                functions need it.
            validate: If False, skip the checks of the row partition.

        Example:
            >>> tw.RaggedTensor.from_value_rowids([1, 2, 3], [0, 0, 2])
            <tf.RaggedTensor [[1, 2], [], [3]]>
        """
        who = "from_value_rowids"
        values, ids = as_values(values), row_numbers(who, "value_rowids", value_rowids)
        if not agree(ids.shape[0], count_of(values)):
            raise ShapeError(who, "each value must have a row", value_rowids=ids)
        if nrows is None:
            array = known_values(who, "value_rowids", ids)
            nrows = int(array[-1]) + 1 if array.size else 0
        ids = checked_rowids(ids, int(nrows)) if validate else ids
        # A split before each row: the number of values in rows before it.
        rows = arange(int(nrows) + 1, dtype=dtypes.int64)
        return cls._of(values, searchsorted(ids, rows, out_type=dtypes.int64))

    @classmethod
    def from_row_starts(
        cls,
        values: Any,
        row_starts: TensorLike,
        name: str | None = None,
        validate: bool = True,
    ) -> Self:
        """Create rows from the position of the first value of each row.

        Args:
            values: Values of all rows, concatenated: ``[n, ...]``, or ragged.
            row_starts: Start of each row in ``values``, ``[rows]``, not decreasing.
            validate: If False, skip the checks of the row partition.
        """
        values = as_values(values)
        starts = row_numbers("from_row_starts", "row_starts", row_starts)
        end = convert_to_tensor([count_of(values)], dtype=starts.dtype)
        return cls.from_row_splits(values, concat([starts, end], 0), validate=validate)

    @classmethod
    def from_row_limits(
        cls,
        values: Any,
        row_limits: TensorLike,
        name: str | None = None,
        validate: bool = True,
    ) -> Self:
        """Create rows from the position behind the last value of each row.

        Args:
            values: Values of all rows, concatenated: ``[n, ...]``, or ragged.
            row_limits: End of each row in ``values``, ``[rows]``, not decreasing.
            validate: If False, skip the checks of the row partition.
        """
        limits = row_numbers("from_row_limits", "row_limits", row_limits)
        return cls.from_row_splits(values, pad(limits, [[1, 0]]), validate=validate)

    @classmethod
    def from_uniform_row_length(
        cls,
        values: Any,
        uniform_row_length: IntLike,
        nrows: IntLike | None = None,
        validate: bool = True,
        name: str | None = None,
    ) -> Self:
        """Create rows of equal length.

        Args:
            values: Values of all rows, concatenated: ``[n, ...]``, or ragged.
            uniform_row_length: Length of all rows.
            nrows: Number of rows, required if the length is 0.
            validate: If False, skip the checks of the row partition.
        """
        values, length = as_values(values), int(uniform_row_length)
        if nrows is None:
            if length <= 0:
                raise InvalidArgumentError(
                    "from_uniform_row_length: uniform_row_length must be above 0 if nrows "
                    f"is not given, got {length}"
                )
            nrows = count_of(values) // length
        splits = arange(int(nrows) + 1, dtype=dtypes.int64) * length
        return cls.from_row_splits(values, splits, validate=validate)

    @classmethod
    def from_nested_row_splits(
        cls,
        flat_values: TensorLike,
        nested_row_splits: Sequence[TensorLike],
        name: str | None = None,
        validate: bool = True,
    ) -> Self:
        """Create nested rows from the row splits of each ragged axis, the outermost first.

        Args:
            flat_values: Values within all ragged axes.
            nested_row_splits: Row splits of each ragged axis.
            validate: If False, skip the checks of the row partition.

        Example:
            >>> tw.RaggedTensor.from_nested_row_splits([1, 2, 3], [[0, 1, 3], [0, 2, 2, 3]])
            <tf.RaggedTensor [[[1, 2]], [[], [3]]]>
        """
        return _nested(cls.from_row_splits, flat_values, nested_row_splits, validate)

    @classmethod
    def from_nested_row_lengths(
        cls,
        flat_values: TensorLike,
        nested_row_lengths: Sequence[TensorLike],
        name: str | None = None,
        validate: bool = True,
    ) -> Self:
        """Create nested rows from the lengths along each ragged axis, the outermost first.

        Args:
            flat_values: Values within all ragged axes.
            nested_row_lengths: Row lengths of each ragged axis.
            validate: If False, skip the checks of the row partition.
        """
        return _nested(cls.from_row_lengths, flat_values, nested_row_lengths, validate)

    @classmethod
    def from_nested_value_rowids(
        cls,
        flat_values: TensorLike,
        nested_value_rowids: Sequence[TensorLike],
        nested_nrows: Sequence[IntLike] | None = None,
        name: str | None = None,
        validate: bool = True,
    ) -> Self:
        """Create nested rows by `from_value_rowids` for each ragged axis.

        The arguments list the outermost axis first.

        Args:
            flat_values: Values within all ragged axes.
            nested_value_rowids: Row numbers of the values of each ragged axis.
            nested_nrows: Number of rows of each ragged axis.
            validate: If False, skip the checks of the row partition.
        """
        counts = nested_nrows or [None] * len(nested_value_rowids)
        pairs = list(zip(nested_value_rowids, counts, strict=True))

        def make(values, pair, validate):
            return cls.from_value_rowids(values, *pair, validate=validate)

        return _nested(make, flat_values, pairs, validate)


def _nested(make, values, partitions, validate):
    if not partitions:
        raise ValueError("RaggedTensor: there must be a partition for each ragged axis")
    for each in reversed(list(partitions)):
        values = make(values, each, validate=validate)
    return values
