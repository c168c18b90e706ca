"""Tensors as bytes, in the format of TensorFlow's ``TensorProto``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.dtypes import as_dtype
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.tensor import TensorSpec, convert_to_tensor
from tapewright.core.text import is_text, make_text
from tapewright.storage.records.wire import (
    LENGTH,
    VARINT,
    check,
    fields,
    packed_varints,
    put_bytes,
    put_int,
    read_varint,
    signed,
)

from .host_ops import host_op, scalar_text, texts

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, TensorLike

# types.proto
NUMBERS = dict(
    float32=1, float64=2, int32=3, uint8=4, int16=5, int8=6, string=7, complex64=8,
    int64=9, bool=10, bfloat16=14, uint16=17, complex128=18, float16=19, uint32=22,
    uint64=23,
)  # fmt: skip
# The fields of tensor.proto that hold single values, with the dtype of these.
FLOATS = {5: "<f4", 6: "<f8", 9: "<c8", 12: "<c16"}
INTEGERS = 7, 10, 11, 13, 16, 17
MOST_REPEATED = 1 << 26  # bytes that one value in the file may fill


def serialize_tensor(tensor: TensorLike) -> Tensor:
    """Serialize a tensor to a string, the bytes of a ``TensorProto``.

    `parse_tensor` is the inverse.

    Args:
        tensor: Tensor to serialize.

    Example:
        >>> tw.io.parse_tensor(tw.io.serialize_tensor([[1, 2]]), "int32").numpy()
        array([[1, 2]], dtype=int32)
    """

    def call(array):
        return [make_text([tensor_proto(array)], ())]

    inputs = [convert_to_tensor(tensor)]
    return host_op("serialize_tensor", call, inputs, [TensorSpec((), "string")])[0]


def tensor_proto(array):
    """Return the bytes of the ``TensorProto`` of an array."""
    array = np.asarray(array)
    number = NUMBERS[as_dtype(array.dtype).name]
    proto = put_int(1, number) + put_shape(array.shape)
    if is_text(array.dtype):
        proto += b"".join([put_bytes(8, text) for text in texts(array)])
    elif array.size:
        proto += put_bytes(4, array.astype(array.dtype.newbyteorder("<")).tobytes())
    return proto


def put_shape(shape):
    """Return the field of a shape."""
    sizes = [put_bytes(2, put_int(1, size) if size else b"") for size in shape]
    return put_bytes(2, b"".join(sizes))


def parse_tensor(serialized: TensorLike, out_type: DTypeLike) -> Tensor:
    """Parse a serialized ``TensorProto``: the inverse of `serialize_tensor`.

    Args:
        serialized: Scalar string, created by tapewright or TensorFlow.
        out_type: Dtype of the tensor.

    Raises:
        InvalidArgumentError: If the bytes are invalid, or the tensor has another dtype
            (also a ``ValueError``).

    Example:
        >>> tw.io.parse_tensor(tw.io.serialize_tensor([1.5]), "float32").numpy()
        array([1.5], dtype=float32)
    """
    dtype = as_dtype(out_type)

    def call(serialized):
        return [read_tensor_proto(serialized.item(), dtype)]

    inputs = [scalar_text("parse_tensor", "serialized", serialized)]
    return host_op("parse_tensor", call, inputs, [TensorSpec(None, dtype)])[0]


def read_tensor_proto(data, dtype):
    """Return the array of a ``TensorProto``; raise the errors of `parse_tensor`."""
    number, shape, content, single, strings = 0, (), None, [], []
    for field, kind, value in fields(data):
        if field in (1, 3):
            check(kind == VARINT, "a dtype is not an integer")
            number = value if field == 1 else number
        elif field in (2, 4, 8):
            check(kind == LENGTH, "a shape or content is an integer")
            if field == 2:
                shape = read_shape(value)
            elif field == 4:
                content = value
            else:
                strings.append(bytes(value))
        elif field in FLOATS:
            single.append(np.frombuffer(_whole(value, FLOATS[field]), FLOATS[field]))
        elif field in INTEGERS:
            is_one = kind == VARINT
            single.append([signed(value)] if is_one else packed_varints(value))
    if number != NUMBERS[dtype.name]:
        names = {n: name for name, n in NUMBERS.items()}
        raise InvalidArgumentError(
            f"parse_tensor: out_type is {dtype.name}, but the tensor has dtype "
            f"{names.get(number, f'number {number}')}"
        )
    if dtype.name == "string" and content is not None:
        return _checked_content(content, shape)
    if dtype.name == "string":
        return _filled(np.array([*strings, None], object)[:-1], shape, dtype)
    numpy_dtype = np.dtype(dtype.as_numpy_dtype)
    if content is not None:
        values = np.frombuffer(
            _whole(content, numpy_dtype), numpy_dtype.newbyteorder("<")
        )
        return values.astype(numpy_dtype).reshape(_checked(values, shape))
    values = np.concatenate(single) if single else np.zeros(0, np.int64)
    if dtype.name in ("float16", "bfloat16"):  # their bits, as integers
        values = values.astype(np.uint16).view(numpy_dtype)
    return _filled(values.astype(numpy_dtype), shape, dtype)


def _checked_content(data, shape):
    """Decode strings: all lengths, then the bytes, as in TensorFlow's sparse tensors."""
    offset, lengths, strings = 0, [], []
    for _ in range(math.prod(shape)):
        length, offset = read_varint(data, offset)
        lengths.append(length)
    check(
        sum(lengths) == len(data) - offset,
        f"{len(data)} bytes do not match the lengths of the strings",
    )
    for length in lengths:
        strings.append(bytes(data[offset : offset + length]))
        offset += length
    return np.array([*strings, None], object)[:-1].reshape(shape)


def _whole(data, dtype):
    size = np.dtype(dtype).itemsize
    check(
        len(data) % size == 0,
        f"{len(data)} bytes are not a multiple of the size of {dtype}",
    )
    return data


def read_shape(data):
    """Return the shape in the value of its field."""
    sizes = []
    for field, kind, value in fields(data):
        check(field != 3 or not value, "the shape of a tensor is unknown")
        if field == 2:
            check(kind == LENGTH, "a size is no message")
            size = 0
            for part, kind, number in fields(value):
                if part == 1:
                    check(kind == VARINT, "a size is no integer")
                    size = signed(number)
            check(size >= 0, f"an axis has the size {size}")
            sizes.append(size)
    check(len(sizes) <= 32, f"a tensor has {len(sizes)} axes")
    return tuple(sizes)


def _checked(values, shape):
    size = math.prod(shape)
    check(
        len(values) == size, f"{len(values)} values do not fit into the shape {shape}"
    )
    return shape


def _filled(values, shape, dtype):
    """Reshape the values; the last one is repeated as needed, as in TensorFlow."""
    size = math.prod(shape)
    if len(values) < size:
        wanted = size * values.dtype.itemsize
        check(wanted <= MOST_REPEATED, f"{len(values)} values for the shape {shape}")
        empty = b"" if dtype.name == "string" else 0
        last = values[-1] if len(values) else empty
        rest = np.full(size - len(values), last, values.dtype)
        values = np.concatenate([values, rest])
    return values.reshape(_checked(values, shape))
