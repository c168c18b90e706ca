"""Rows of strings of different lengths, packed into one string per row.

A packed row holds the sizes of the entries, then the entries. A traced function, which
must know the shape of every value, can thereby create and use rows with lengths that
depend on their contents.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError, MappingError, ShapeError
from tapewright.core.primitive import primitive
from tapewright.core.tensor import TensorSpec
from tapewright.core.text import make_text, to_bytes
from tapewright.core.typing import IntLike, TensorLike

from .entries import map_numbers, map_text, string_op


def pack(entries: Sequence[bytes]) -> bytes:
    """Pack strings into one, from which `unpack` restores them."""
    sizes = [len(entry) for entry in entries]
    return struct.pack(f"<{len(sizes) + 1}I", len(sizes), *sizes) + b"".join(entries)


def unpack(packed: bytes) -> list[bytes]:
    """Unpack the strings of `pack`."""
    count = int.from_bytes(packed[:4], "little")
    at, entries = 4 * (count + 1), []
    for size in struct.unpack_from(f"<{count}I", packed, 4):
        entries.append(packed[at : at + size])
        at += size
    return entries


@primitive(
    kinds="O", same_dtype=("values",), no_gradient=True, may_raise=True,
)  # fmt: skip
def pack_rows(xp, values: TensorLike, row_lengths: TensorLike):
    """Pack concatenated strings into rows of the given lengths."""
    ends = np.cumsum(row_lengths).tolist()
    entries = values.tolist()
    if (row_lengths < 0).any() or (ends[-1] if ends else 0) != len(entries):
        raise InvalidArgumentError(
            f"RaggedTensor: row_lengths must sum to {len(entries)}, the number of "
            f"values, got {row_lengths}"
        )
    rows = [entries[a:b] for a, b in zip([0, *ends], ends)]
    return make_text([pack(row) for row in rows], row_lengths.shape)


@pack_rows.infer
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
def packed_lengths(xp, packed: TensorLike):
    """Return the number of strings in each row."""
    return map_numbers(lambda row: int.from_bytes(row[:4], "little"), packed, np.int64)


@string_op(name="join_rows")
def packed_joined(xp, packed: TensorLike, separator: str = ""):
    """Join the strings of each row."""
    join = to_bytes(separator).join
    return map_text(lambda row: join(unpack(row)), packed)


@primitive(name="unpack_rows", kinds="O", no_gradient=True)
def packed_values(xp, packed: TensorLike):
    """Return the strings of all rows, concatenated."""
    entries = [each for row in packed.ravel().tolist() for each in unpack(row)]
    return make_text(entries, (len(entries),))


@packed_values.infer
def _(packed):
    return TensorSpec([None], dtypes.string)


@primitive(name="rows_to_matrix", kinds="O", no_gradient=True, may_raise=True)
def packed_to_matrix(xp, packed: TensorLike, default: TensorLike, width: IntLike):
    """Return the rows as a matrix of this width; -1 is the width of the longest row."""
    rows = [unpack(row) for row in packed.ravel().tolist()]
    if width < 0:
        width = max(map(len, rows), default=0)
    fill = [default.item()] * width
    entries = [x for row in rows for x in (row + fill)[:width]]
    return make_text(entries, (*packed.shape, width))


@packed_to_matrix.infer
def _(packed, default, width):
    if default.shape.rank != 0:
        raise ShapeError("to_tensor", "default_value must be a scalar", default=default)
    return TensorSpec([*packed.shape, None if width < 0 else width], dtypes.string)


def refuse_to_map(mapped: Any, *inputs: Any, **attributes: Any) -> Any:
    """Batch rule of ops with an output size that depends on the data."""
    raise MappingError("RaggedTensor: mapped values may have different rows")


for _op in (pack_rows, packed_values, packed_to_matrix):
    _op.batch(refuse_to_map)
