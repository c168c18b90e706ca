"""`make_tensor_proto` and `make_ndarray`: conversions of arrays to messages and back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tapewright.core.dtypes import as_dtype
from tapewright.core.tensor import convert_to_tensor
from tapewright.core.typing import as_shape
from tapewright.storage.records.wire import (
    LENGTH,
    VARINT,
    fields,
    packed_varints,
    put_bytes,
    put_int,
    put_packed_varints,
    signed,
)

from .host_ops import texts
from .messages import Message, escaped
from .tensor_protos import (
    FLOATS,
    NUMBERS,
    put_shape,
    read_shape,
    read_tensor_proto,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tapewright.core.typing import DTypeLike, ShapeLike, TensorLike

NAMES = {number: name for name, number in NUMBERS.items()}
PROTO_NAMES = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "HALF"}
# The fields of tensor.proto for single values, and the one for each dtype of numbers.
VALUES = {
    5: "float_val", 6: "double_val", 7: "int_val", 8: "string_val", 9: "scomplex_val",
    10: "int64_val", 11: "bool_val", 12: "dcomplex_val", 13: "half_val",
    16: "uint32_val", 17: "uint64_val",
}  # fmt: skip
FIELDS = dict(
    float32=5, float64=6, complex64=9, int64=10, bool=11, complex128=12, float16=13,
    bfloat16=13, uint32=16, uint64=17,
)  # fmt: skip
LISTED = (
    "string",
    "bool",
    "complex64",
    "complex128",
)  # TensorFlow lists all their values


class SerializableMessage(Protocol):
    """A protocol buffer message of any library."""

    def SerializeToString(self) -> bytes:
        """The message as bytes."""


class SizeFields(NamedTuple):
    """The size of an axis."""

    size: int
    name: str = ""


class ShapeFields(NamedTuple):
    """The sizes of all axes."""

    dim: list[SizeFields]
    unknown_rank: bool = False


class TensorProto(Message):
    """An array as a protocol buffer message.

    `make_tensor_proto` creates it, `make_ndarray` converts it to an array.

    Example:
        >>> print(tw.make_tensor_proto(1.5))
        dtype: DT_FLOAT
        tensor_shape {
        }
        float_val: 1.5
        <BLANKLINE>
    """

    def __init__(self):
        self._data = b""

    @property
    def dtype(self) -> int:
        """The number of the dtype in ``types.proto``; 0 for an empty message."""
        return self._last(1, VARINT, 0)

    @property
    def tensor_shape(self) -> ShapeFields:
        """The shape: ``tensor_shape.dim[i].size``."""
        sizes = read_shape(self._last(2, LENGTH, b""))
        return ShapeFields([SizeFields(size) for size in sizes])

    @property
    def tensor_content(self) -> bytes:
        """The bytes of the array; empty if its values are listed."""
        return bytes(self._last(4, LENGTH, b""))

    def _last(self, field, kind, default):
        values = [x for n, k, x in fields(self._data) if n == field and k == kind]
        return values[-1] if values else default

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        """The message as bytes."""
        return self._data

    def Clear(self) -> None:
        """Remove all contents of the message."""
        self._data = b""

    def _merge(self, data):
        for _ in fields(data):  # raises for other bytes
            pass
        self._data += bytes(data)

    def _lines(self):
        lines = []
        for number, kind, value in fields(self._data):
            if number == 1:
                name = NAMES.get(value, str(value))
                lines.append(f"dtype: DT_{PROTO_NAMES.get(name, name.upper())}")
            elif number == 2:
                sizes = [[f"    size: {n}"] if n else [] for n in read_shape(value)]
                dims = [line for size in sizes for line in ("  dim {", *size, "  }")]
                lines += ["tensor_shape {", *dims, "}"]
            elif number == 4:
                lines.append(f'tensor_content: "{escaped(bytes(value))}"')
            elif number in VALUES:
                shown = _shown(number, kind, value)
                lines += [f"{VALUES[number]}: {each}" for each in shown]
        return lines


def _shown(field, kind, value):
    """Return the values of a field as text."""
    if field == 8:
        return [f'"{escaped(bytes(value))}"']
    if field in FLOATS:
        part = {"<c8": "<f4", "<c16": "<f8"}.get(FLOATS[field], FLOATS[field])
        return [
            f"{x:g}" if float(f"{x:g}") == x else str(x)
            for x in np.frombuffer(value, part)
        ]
    numbers = [signed(value)] if kind == VARINT else packed_varints(value).tolist()
    return [str(bool(x)).lower() if field == 11 else str(x) for x in numbers]


def make_tensor_proto(
    values: TensorLike | TensorProto,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    verify_shape: bool = False,
    allow_broadcast: bool = False,
) -> TensorProto:
    """Convert an array to a ``TensorProto`` message in TensorFlow's format.

    `tw.io.parse_tensor` parses its ``SerializeToString()``; `make_ndarray` converts the
    message.

    Args:
        values: Anything that `tw.constant` accepts, or a message. NumPy arrays are cast
            to ``dtype``.
        dtype: Dtype of the message, or None to infer it.
        shape: Shape, by default the shape of the values. If there are fewer values, the
            last one is repeated.
        verify_shape: If True, the values must have the given shape.
        allow_broadcast: If True, the values must be a single one or fill the shape.

    Raises:
        ValueError: If there are too many values, or ``verify_shape`` and
            ``allow_broadcast`` are both True.
        TypeError: If the values do not fit ``dtype`` or, with ``verify_shape``, the
            shape.

    Example:
        >>> message = tw.make_tensor_proto([[1, 2]])
        >>> tw.io.parse_tensor(message.SerializeToString(), "int32").numpy()
        array([[1, 2]], dtype=int32)
    """
    if allow_broadcast and verify_shape:
        raise ValueError(
            "make_tensor_proto: allow_broadcast and verify_shape cannot both be True"
        )
    if isinstance(values, TensorProto):
        return values
    if values is None:
        raise ValueError(
            "make_tensor_proto: values must be numbers or strings, got None"
        )
    array = _array(values, dtype)
    sizes = array.shape if shape is None else tuple(map(int, as_shape(shape)))
    size = math.prod(sizes)
    if array.size > size and not allow_broadcast and not verify_shape:
        raise ValueError(
            f"make_tensor_proto: there must be at most {size} values for the shape "
            f"{sizes}, got {array.size}"
        )
    wanted = sizes if verify_shape else array.shape
    single = array.shape in ((), (1,))
    if allow_broadcast and not single and array.size != size or wanted != array.shape:
        raise TypeError(
            f"make_tensor_proto: values must have the shape {sizes}, got {array.shape}"
        )
    name = as_dtype(array.dtype).name
    message = TensorProto()
    message.MergeFromString(
        put_int(1, NUMBERS[name])
        + put_shape(sizes)
        + _put_values(array, name, is_whole=array.size == size)
    )
    return message


def _array(values, dtype):
    if isinstance(values, np.ndarray | np.generic):
        array = np.asarray(values)
        if dtype is None:
            return (
                array if array.dtype.kind != "U" else convert_to_tensor(array).numpy()
            )
        return array.astype(as_dtype(dtype).as_numpy_dtype)
    return np.asarray(convert_to_tensor(values, dtype))


def _put_values(array, name, is_whole):
    """Return the bytes of an array, or its values as a list, like TensorFlow."""
    if name == "string":
        return b"".join([put_bytes(8, text) for text in texts(array)])
    if is_whole and array.size > 1 and name not in LISTED:
        return put_bytes(4, array.astype(array.dtype.newbyteorder("<")).tobytes())
    if not array.size:
        return b""
    field = FIELDS.get(name, 7)
    if field in FLOATS:
        return put_bytes(field, array.astype(FLOATS[field]).tobytes())
    bits = array.view(np.uint16) if field == 13 else array
    return put_bytes(field, put_packed_varints(bits.astype(np.int64).reshape(-1)))


def make_ndarray(tensor: SerializableMessage) -> NDArray:
    """Convert a ``TensorProto`` message to a NumPy array.

    Args:
        tensor: Message of `make_tensor_proto` or of another library, such as a value
            read by TensorBoard's ``EventAccumulator``.

    Raises:
        TypeError: If ``tensor`` is not a message, or its dtype is unsupported.
        InvalidArgumentError: If the bytes are not a tensor (also a ``ValueError``).

    Example:
        >>> tw.make_ndarray(tw.make_tensor_proto(7, shape=[2, 2]))
        array([[7, 7],
               [7, 7]], dtype=int32)
    """
    if not hasattr(tensor, "SerializeToString"):
        raise TypeError(
            "make_ndarray: tensor must be a TensorProto, such as make_tensor_proto "
            f"returns; got {type(tensor).__name__}"
        )
    data = tensor.SerializeToString()
    number = TensorProto.FromString(data).dtype
    if number not in NAMES:
        raise TypeError(f"make_ndarray: the dtype number {number} is not supported")
    return read_tensor_proto(data, as_dtype(NAMES[number]))
