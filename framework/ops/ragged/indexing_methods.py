"""Methods of `RaggedTensor` that select rows, and parts of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tapewright.core.hardware import devices
from tapewright.core.tensor import convert_to_tensor, module_of, new_tensor

from ..array.gather import gather
from ..array.segment import known_values
from ..strings.packing import packed_values
from .ragged_rows import RaggedRows
from .row_splits import positions_in_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self


class IndexingMethods(RaggedRows):
    """See `RaggedTensor`."""

    __slots__ = ()

    def __len__(self) -> int:
        if self._packed is not None:
            return len(self._packed)
        return len(self._splits) - 1

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> NoReturn:
        raise TypeError("RaggedTensor may not be used as a boolean")

    def __getitem__(self, key: Any) -> Any:
        """Select a row, rows, or a part of each row.

            r[i], r[a:b], r[:, a:b], r[i, j]

        Raises:
            ValueError: For one entry of each row, ``r[:, j]``, which some rows may not
                have.
            IndexError: If a row is out of range.

        Example:
            >>> rows = tw.ragged.constant([[1, 2], [3]])
            >>> rows[0].numpy(), rows[:, :1].to_list()
            (array([1, 2], dtype=int32), [[1], [3]])
        """
        key = key if isinstance(key, tuple) else (key,)
        if any([k is None for k in key]):
            raise ValueError("RaggedTensor: a new axis is not supported")
        key = _without_ellipsis(key, self.shape.rank)
        first, *rest = key
        if not isinstance(first, slice):
            row = self._row(first)
            return row[tuple(rest)] if rest else row
        rows = self if first == slice(None) else self._rows(first)
        if not rest:
            return rows
        part, *inner = rest
        if not isinstance(part, slice):
            raise ValueError(
                "RaggedTensor: cannot index into an inner ragged dimension"
            )
        rows = rows if part == slice(None) else rows._part_of_rows(part)
        if inner:
            return rows.with_values(rows.values[(slice(None), *inner)])
        return rows

    def _row(self, number):
        number = convert_to_tensor(number)
        if self._packed is not None:
            return packed_values(self._packed[number])
        at = int(known_values("RaggedTensor[row]", "the number of a row", number))
        count = len(self)
        if not -count <= at < count:
            raise IndexError(f"RaggedTensor: row {at} is out of range, of {count} rows")
        at %= count
        splits = known_values("RaggedTensor[row]", "row_splits", self._splits)
        return self._values[int(splits[at]) : int(splits[at + 1])]

    def _rows(self, part):
        if self._packed is not None:
            return self._of(None, None, self._packed[part])
        return self._tw_rows_at(np.arange(len(self))[part])

    def _tw_rows_at(self, numbers: Any) -> Self:
        """Select rows by their numbers. Not available in traced functions.

        Args:
            numbers: NumPy array of row numbers.
        """
        splits = devices.to_numpy(
            known_values("RaggedTensor: rows", "row_splits", self._splits)
        )
        lengths = splits[1:] - splits[:-1]
        return self._picked(splits[:-1][numbers], lengths[numbers])

    def _part_of_rows(self, part):
        me = self._unpacked()
        splits = devices.to_numpy(
            known_values("RaggedTensor[:, part]", "row_splits", me._splits)
        )
        ranges = [range(a, b)[part] for a, b in zip(splits[:-1], splits[1:])]
        starts = np.array([r.start for r in ranges], np.int64)
        lengths = np.array([len(r) for r in ranges], np.int64)
        return me._picked(starts, lengths, part.step or 1)

    def _picked(self, starts, lengths, step=1):
        """Return rows that begin at the given values, with the given lengths."""
        positions, splits = positions_in_rows(lengths)
        picks = (np.repeat(starts, lengths) + step * positions).astype(np.int64)
        splits = splits.astype(self._splits.array.dtype)
        xp, values = module_of(self._splits), self._values
        if isinstance(values, RaggedRows):
            values = values._tw_rows_at(picks)
        else:
            values = gather(values, new_tensor(xp.asarray(picks)))
        return self._of(values, new_tensor(xp.asarray(splits)))


def _without_ellipsis(key, rank):
    """Return the key with ``...`` replaced by slices."""
    at = [i for i, k in enumerate(key) if k is Ellipsis]
    if not at:
        return key
    if len(at) > 1 or len(key) - 1 > rank:
        raise IndexError(
            f"RaggedTensor: the key must have one ... and {rank} indices at most, got {key}"
        )
    others = [slice(None)] * (rank - len(key) + 1)
    return (*key[: at[0]], *others, *key[at[0] + 1 :])
