"""Rows of different lengths: `RaggedTensor`, what `split` returns.

Its rows are packed, one string for each: the sizes of the entries, then the entries. So
a traced function, which must know the shape of every value, can make and use them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError, MappingError, ShapeError
from tapewright.core.primitive import primitive
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.text import make_text
from tapewright.core.typing import IntLike, TensorLike

from ..array.joining import concat
from ..math.scan import cumsum
from .entries import map_numbers, string_op

__all__ = ["RaggedTensor", "pack", "refuse_to_map", "unpack"]


def pack(entries: Sequence[bytes]) -> bytes:
    """One string of many, from which `unpack` gets them."""
    sizes = [len(entry) for entry in entries]
    return struct.pack(f"<{len(sizes) + 1}I", len(sizes), *sizes) + b"".join(entries)


def unpack(packed: bytes) -> list[bytes]:
    """The strings that were packed."""
    count = int.from_bytes(packed[:4], "little")
    at, entries = 4 * (count + 1), []
    for size in struct.unpack_from(f"<{count}I", packed, 4):
        entries.append(packed[at : at + size])
        at += size
    return entries


class RaggedTensor:
    """A matrix of strings whose rows have different lengths, as `tw.strings.split` makes.

    It has one ragged axis, the second. Ops take its `values`, or `to_tensor`.

    >>> rows = RaggedTensor.from_row_lengths(["a", "b", "c"], [1, 0, 2])
    >>> rows.to_list()
    [[b'a'], [], [b'b', b'c']]
    >>> rows.to_tensor("-").numpy().tolist()
    [[b'a', b'-'], [b'-', b'-'], [b'b', b'c']]
    """

    def __init__(self, packed: Tensor):
        self.packed = packed

    @property
    def dtype(self) -> dtypes.DType:
        """`tw.string`."""
        return dtypes.string

    @classmethod
    def from_row_lengths(cls, values: TensorLike, row_lengths: TensorLike):
        """Cut ``values [n]`` into rows of these lengths, which sum up to ``n``."""
        values = convert_to_tensor(values, dtypes.string)
        return cls(_packed(values, convert_to_tensor(row_lengths)))

    @property
    def shape(self) -> Any:
        """``(rows, None)``."""
        return TensorSpec([*self.packed.shape, None], self.dtype).shape

    @property
    def values(self) -> Tensor:
        """All strings, row after row: ``[n]``. Not in traced functions."""
        return _values(self.packed)

    flat_values = values

    @property
    def row_splits(self) -> Tensor:
        """The begin of each row in `values`, then the end of the last one: int64."""
        return concat([np.zeros(1, np.int64), cumsum(self.row_lengths())], 0)

    def row_lengths(self) -> Tensor:
        """The length of each row: int64."""
        return _row_lengths(self.packed)

    def nrows(self) -> int:
        """The number of rows."""
        return self.packed.shape[0]

    def to_tensor(
        self, default_value: TensorLike = "", shape: Sequence[int | None] | None = None
    ) -> Tensor:
        """The rows in a matrix, filled up with ``default_value``.

        Args: ``shape``: ``(None, width)`` cuts rows, or fills them up, to ``width``
        entries; by default it is the length of the longest row, which a traced
        function does not know.
        """
        width = None if shape is None else shape[-1]
        default = convert_to_tensor(default_value, dtypes.string)
        return _to_matrix(self.packed, default, -1 if width is None else width)

    def to_list(self) -> list[list[bytes]]:
        """The rows as lists."""
        return [unpack(row) for row in self.packed.numpy().tolist()]

    def __len__(self) -> int:
        return len(self.packed.numpy())

    def __getitem__(self, row: int) -> Tensor:
        return _values(self.packed[row])

    def __repr__(self) -> str:
        return f"<tw.RaggedTensor {self.to_list()}>"


@primitive(
    name="pack_rows",
    kinds="O",
    same_dtype=("values",),
    no_gradient=True,
    may_raise=True,
)
def _packed(xp, values: TensorLike, row_lengths: TensorLike):
    ends = np.cumsum(row_lengths).tolist()
    entries = values.tolist()
    if (row_lengths < 0).any() or (ends[-1] if ends else 0) != len(entries):
        raise InvalidArgumentError(
            f"RaggedTensor: row_lengths must sum up to {len(entries)}, the number of "
            f"values, got {row_lengths}"
        )
    rows = [entries[a:b] for a, b in zip([0, *ends], ends)]
    return make_text([pack(row) for row in rows], row_lengths.shape)


@_packed.infer
def _(values, row_lengths):
    if values.shape.rank != 1 or row_lengths.shape.rank != 1:
        raise ShapeError(
            "RaggedTensor",
            "values and row_lengths must have one axis",
            values=values,
            row_lengths=row_lengths,
        )
    return TensorSpec(row_lengths.shape, dtypes.string)


@string_op(name="row_lengths", result_dtype=dtypes.int64)
def _row_lengths(xp, packed: TensorLike):
    return map_numbers(lambda row: int.from_bytes(row[:4], "little"), packed, np.int64)


@primitive(name="unpack_rows", kinds="O", no_gradient=True)
def _values(xp, packed: TensorLike):
    entries = [each for row in packed.ravel().tolist() for each in unpack(row)]
    return make_text(entries, (len(entries),))


@_values.infer
def _(packed):
    return TensorSpec([None], dtypes.string)


@primitive(name="rows_to_matrix", kinds="O", no_gradient=True, may_raise=True)
def _to_matrix(xp, packed: TensorLike, default: TensorLike, width: IntLike):
    rows = [unpack(row) for row in packed.ravel().tolist()]
    if width < 0:
        width = max(map(len, rows), default=0)
    fill = [default.item()] * width
    entries = [x for row in rows for x in (row + fill)[:width]]
    return make_text(entries, (*packed.shape, width))


@_to_matrix.infer
def _(packed, default, width):
    if default.shape.rank != 0:
        raise ShapeError("to_tensor", "default_value must be a scalar", default=default)
    return TensorSpec([*packed.shape, None if width < 0 else width], dtypes.string)


def refuse_to_map(mapped: Any, *inputs: Any, **attributes: Any) -> Any:
    """The batch rule of ops whose outputs have a size of their own."""
    raise MappingError("RaggedTensor: each mapped value has rows of its own")


for _op in (_packed, _values, _to_matrix):
    _op.batch(refuse_to_map)
