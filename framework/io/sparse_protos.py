"""Sparse tensors as strings: indices, values and shape, each a `serialize_tensor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.dtypes import as_dtype, int64
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.tensor import TensorSpec
from tapewright.core.text import make_text
from tapewright.ops.array.joining import stack
from tapewright.ops.sparse.sparse_tensor import SparseTensor

from .host_ops import host_op, text_tensor, texts
from .tensor_protos import read_tensor_proto, serialize_tensor, tensor_proto

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, TensorLike


def serialize_sparse(
    sp_input: SparseTensor, out_type: DTypeLike = "string", name: str | None = None
) -> Tensor:
    """Serialize a sparse tensor to three strings in TensorFlow's format, ``[3]``.

    Args:
        sp_input: `SparseTensor` to serialize.
        out_type: Must be "string".

    Raises:
        TypeError: If ``sp_input`` is not a `SparseTensor`.
        ValueError: If ``out_type`` is not "string".

    Example:
        >>> strings = tw.io.serialize_sparse(tw.sparse.from_dense([0, 2]))
        >>> tw.io.parse_tensor(strings[1], "int32").numpy()
        array([2], dtype=int32)
    """
    _check("serialize_sparse", sp_input, out_type)
    parts = (sp_input.indices, sp_input.values, sp_input.dense_shape)
    return stack([serialize_tensor(part) for part in parts])


def serialize_many_sparse(
    sp_input: SparseTensor, out_type: DTypeLike = "string", name: str | None = None
) -> Tensor:
    """Serialize each row of a sparse tensor to three strings, see `serialize_sparse`.

    `deserialize_many_sparse` is the inverse.

    Args:
        sp_input: `SparseTensor` of rank 2 or higher.
        out_type: Must be "string".

    Shapes:
        ``[n, ...]`` to ``[n, 3]``.

    Raises:
        TypeError: If ``sp_input`` is not a `SparseTensor`.
        ValueError: If the rank is below 2, or ``out_type`` is not "string".

    Example:
        >>> sparse = tw.sparse.from_dense([[0, 1], [2, 0]])
        >>> tw.io.serialize_many_sparse(sparse).shape
        TensorShape([2, 3])
    """
    _check("serialize_many_sparse", sp_input, out_type)
    if sp_input.shape.rank is not None and sp_input.shape.rank < 2:
        raise ShapeError(
            "serialize_many_sparse",
            f"sp_input must have a rank of 2 or more, got the shape {sp_input.shape}",
        )

    def call(indices, values, shape):
        strings, tail = [], tensor_proto(shape[1:])
        for row in range(int(shape[0])):
            chosen = indices[:, 0] == row
            strings += [tensor_proto(indices[chosen, 1:]), tensor_proto(values[chosen])]
            strings.append(tail)
        return [make_text(strings, (int(shape[0]), 3))]

    inputs = [sp_input.indices, sp_input.values, sp_input.dense_shape]
    spec = TensorSpec((sp_input.shape[0], 3), "string")
    return host_op("serialize_many_sparse", call, inputs, [spec])[0]


def deserialize_many_sparse(
    serialized_sparse: TensorLike,
    dtype: DTypeLike,
    rank: int | None = None,
    name: str | None = None,
) -> SparseTensor:
    """Deserialize rows to a sparse tensor: the inverse of `serialize_many_sparse`.

    Rows of `serialize_sparse` are accepted as well. If sizes differ between rows, the
    result has the largest.

    Args:
        serialized_sparse: Strings, three for each row.
        dtype: Dtype of the values.
        rank: Expected rank of the result, or None for any.

    Shapes:
        ``[n, 3]`` to ``[n, ...]``.

    Raises:
        InvalidArgumentError: If the strings are invalid, the dtype differs, or there
            are no rows or rows of different ranks (also a ``ValueError``).
        ValueError: If ``serialized_sparse`` has another shape.

    Example:
        >>> sparse = tw.sparse.from_dense([[0, 1], [2, 0]])
        >>> strings = tw.io.serialize_many_sparse(sparse)
        >>> again = tw.io.deserialize_many_sparse(strings, "int32")
        >>> again.indices.numpy().tolist(), again.values.numpy()
        ([[0, 1], [1, 0]], array([1, 2], dtype=int32))
    """
    who, dtype = "deserialize_many_sparse", as_dtype(dtype)
    strings = text_tensor(who, "serialized_sparse", serialized_sparse)
    if strings.shape.rank != 2 or strings.shape[1] != 3:
        raise ShapeError(
            who, "serialized_sparse must be [n, 3]", serialized_sparse=strings
        )

    def call(strings):
        flat = texts(strings)
        rows = [_row(*flat[i : i + 3], dtype) for i in range(0, len(flat), 3)]
        ranks = {len(shape) + 1 for *_, shape in rows}
        if len(ranks) != 1 or rank not in (None, *ranks):
            raise InvalidArgumentError(
                f"{who}: there must be rows, all of the same rank, for a result of rank "
                f"{'n' if rank is None else rank}, got ranks {sorted(ranks)}"
            )
        batch_indices = [
            np.insert(indices, 0, i, 1) for i, (indices, *_) in enumerate(rows)
        ]
        sizes = np.max([shape for *_, shape in rows], axis=0)
        return [
            np.concatenate(batch_indices),
            np.concatenate([values for _, values, _ in rows]),
            np.array([len(rows), *sizes], np.int64),
        ]

    specs = [
        TensorSpec(None, int64),
        TensorSpec((None,), dtype),
        TensorSpec(None, int64),
    ]
    return SparseTensor(*host_op(who, call, [strings], specs))


def _row(indices, values, shape, dtype):
    """Return the validated arrays of a row."""
    indices, shape = read_tensor_proto(indices, int64), read_tensor_proto(shape, int64)
    values = read_tensor_proto(values, dtype)
    fits = shape.ndim == 1 and indices.shape == (len(values), len(shape))
    if values.ndim != 1 or not fits or ((indices < 0) | (indices >= shape)).any():
        raise InvalidArgumentError(
            f"deserialize_many_sparse: indices {indices.shape}, values {values.shape} "
            f"and shape {shape.tolist()} do not form a sparse tensor"
        )
    return indices, values, shape


def _check(who, sp_input, out_type):
    if not isinstance(sp_input, SparseTensor):
        raise TypeError(
            f"{who}: sp_input must be a SparseTensor, got {type(sp_input).__name__}"
        )
    if as_dtype(out_type).name != "string":
        raise ValueError(f"{who}: out_type must be string, got {out_type!r}")
