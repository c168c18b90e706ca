"""`decode_proto`: fields of any protocol buffer message, as tensors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tapewright.core.dtypes import as_dtype
from tapewright.core.errors import DataLossError, InvalidArgumentError
from tapewright.core.messages.argument_validation import one_of
from tapewright.core.tensor import TensorSpec
from tapewright.core.text import make_text
from tapewright.storage.records.wire import (
    FIXED32,
    FIXED64,
    LENGTH,
    VARINT,
    check,
    fields,
    packed_varints,
    signed,
)

from .host_ops import host_op, text_tensor, texts

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, TensorLike


class Kind(NamedTuple):
    """The encoding of a field type, and the dtypes that can hold its values."""

    name: str
    wire: int
    dtypes: tuple[str, ...]
    numpy: str = ""  # of fixed sizes


# descriptor.proto: the types of fields. Groups are obsolete.
KINDS = {
    1: Kind("double", FIXED64, ("float64",), "<f8"),
    2: Kind("float", FIXED32, ("float32", "float64"), "<f4"),
    3: Kind("int64", VARINT, ("int64",)),
    4: Kind("uint64", VARINT, ("uint64",)),
    5: Kind("int32", VARINT, ("int32", "int64")),
    6: Kind("fixed64", FIXED64, ("uint64",), "<u8"),
    7: Kind("fixed32", FIXED32, ("uint32", "uint64"), "<u4"),
    8: Kind("bool", VARINT, ("bool",)),
    9: Kind("string", LENGTH, ("string",)),
    11: Kind("message", LENGTH, ("string",)),
    12: Kind("bytes", LENGTH, ("string",)),
    13: Kind("uint32", VARINT, ("uint32", "uint64")),
    14: Kind("enum", VARINT, ("int32",)),
    15: Kind("sfixed32", FIXED32, ("int32", "int64"), "<i4"),
    16: Kind("sfixed64", FIXED64, ("int64",), "<i8"),
    17: Kind("sint32", VARINT, ("int32", "int64")),
    18: Kind("sint64", VARINT, ("int64",)),
}
NARROW = {"int32": np.int32, "enum": np.int32, "uint32": np.uint32}  # 10 bytes may come
REPEATED = 3
DEEPEST = 64  # messages inside of messages


class Field(NamedTuple):
    """A field of a message."""

    name: str
    number: int
    kind: Kind
    repeated: bool
    default: Any


def _local(**kinds):
    """Return the fields of a message of ``tensorflow.Example``."""
    return {
        name: Field(name, number, KINDS[kind], repeated, None)
        for number, (name, (kind, repeated)) in enumerate(kinds.items(), 1)
    }


MESSAGE = 11, False
LOCAL = {
    "tensorflow.BytesList": _local(value=(12, True)),
    "tensorflow.FloatList": _local(value=(2, True)),
    "tensorflow.Int64List": _local(value=(3, True)),
    "tensorflow.Feature": _local(
        bytes_list=MESSAGE, float_list=MESSAGE, int64_list=MESSAGE
    ),
    "tensorflow.Features": _local(feature=(11, True)),
    "tensorflow.FeatureList": _local(feature=(11, True)),
    "tensorflow.FeatureLists": _local(feature_list=(11, True)),
    "tensorflow.Example": _local(features=MESSAGE),
    "tensorflow.SequenceExample": _local(context=MESSAGE, feature_lists=MESSAGE),
}


class DecodedProto(NamedTuple):
    """The number of values of each field, and the values."""

    sizes: Tensor
    values: list[Tensor]


def decode_proto(
    bytes: TensorLike,  # noqa: A002
    message_type: str,
    field_names: Sequence[str],
    output_types: Sequence[DTypeLike],
    descriptor_source: str | bytes | os.PathLike[str] = "local://",
    message_format: str = "binary",
    sanitize: bool = False,
    name: str | None = None,
) -> DecodedProto:
    """Decode fields of serialized protocol buffer messages to tensors.

    Traced functions cannot call it, since they do not know the number of values; use it
    in ``Dataset.map``.

    Args:
        bytes: Messages, a tensor of strings.
        message_type: Full name of the message type, such as "package.Person".
        field_names: Names of the fields to decode.
        output_types: Dtype of each field: float32 or float64 for float, int32 or int64
            for int32, sint32 and sfixed32, uint32 or uint64 for uint32 and fixed32,
            int32 for enum, string for string, bytes and messages, and the dtype of the
            same name for the others.
        descriptor_source: Path of a file written by ``protoc --descriptor_set_out=FILE
            --include_imports``, or b"bytes://" followed by its contents; "local://" for
            the messages of ``tensorflow.Example``.
        message_format: Must be "binary".
        sanitize: Must be False.

    Shapes:
        ``bytes`` ``[...]``; ``sizes`` ``[..., number of fields]``, int32; each of
        ``values`` ``[..., most]``, where ``most`` is its largest size, and at least 1.
        Missing entries are the default of the field.

    Returns:
        A tuple ``(sizes, values)``: the number of values of each field, and a list with
        a tensor for each field.

    Raises:
        InvalidArgumentError: If a message or field is unknown, or the dtype does not
            match its type (also a ``ValueError``).
        DataLossError: If the bytes are not a message.

    Example:
        >>> sizes, (values,) = tw.io.decode_proto(
        ...     [b"\\x08\\x01\\x08\\x02", b""], "tensorflow.Int64List", ["value"], ["int64"])
        >>> sizes.numpy().tolist(), values.numpy().tolist()
        ([[2], [0]], [[1, 2], [0, 0]])
    """
    who = "decode_proto"
    one_of(who, "message_format", message_format, ["binary"])
    one_of(who, "sanitize", sanitize, [False])
    if len(field_names) != len(output_types):
        raise InvalidArgumentError(
            f"{who}: output_types must have a dtype for each of the {len(field_names)} "
            f"field_names, got {len(output_types)}"
        )
    known = _message_of(who, message_type, descriptor_source)
    chosen = []
    for field_name in field_names:
        if field_name not in known:
            raise InvalidArgumentError(
                f"{who}: {message_type} has no field {field_name!r}; its fields are "
                f"{sorted(known)}"
            )
        chosen.append(known[field_name])
    if len({*field_names}) != len(field_names):
        raise InvalidArgumentError(
            f"{who}: field_names must not contain duplicates, got {field_names}"
        )
    output_dtypes = [as_dtype(dtype) for dtype in output_types]
    for field, dtype in zip(chosen, output_dtypes):
        if dtype.name not in field.kind.dtypes:
            raise InvalidArgumentError(
                f"{who}: output_types must have {' or '.join(field.kind.dtypes)} for "
                f"{field.name!r} of the type {field.kind.name}, got {dtype.name}"
            )
    messages = text_tensor(who, "bytes", bytes)
    batch = messages.shape

    def call(array):
        messages = [_read(text, chosen) for text in texts(array)]
        counts = [[len(message[f.number]) for f in chosen] for message in messages]
        shape = (*array.shape, len(chosen))
        sizes = np.array(counts, np.int32).reshape(shape)
        columns = zip(chosen, output_dtypes)
        return [sizes, *[_column(messages, f, d, array.shape) for f, d in columns]]

    specs = [TensorSpec((*batch, len(chosen)), "int32")]
    specs += [TensorSpec((*batch, None), dtype) for dtype in output_dtypes]
    sizes, *values = host_op(who, call, [messages], specs)
    return DecodedProto(sizes, values)


def _read(data, chosen):
    """Return the values of the chosen fields of a message, by field number."""
    by_field = {field.number: [] for field in chosen}
    by_number = {field.number: field for field in chosen}
    try:
        for number, wire, value in fields(data):
            field = by_number.get(number)
            values = field and _values(field.kind, wire, value)
            if values and field.repeated:
                by_field[number] += values
            elif values:  # the last one counts
                by_field[number] = values[-1:]
    except InvalidArgumentError as error:
        raise DataLossError(f"decode_proto: {error}") from error
    return by_field


def _values(kind, wire, value):
    """Return the values in a field; none if the wire type does not match its type."""
    if kind.wire == LENGTH:
        return [bytes(value)] if wire == LENGTH else []
    if wire not in (kind.wire, LENGTH):
        return []
    if kind.numpy:
        check(len(value) % np.dtype(kind.numpy).itemsize == 0, "a number is cut off")
        return np.frombuffer(value, kind.numpy).tolist()
    numbers = [value] if wire == VARINT else packed_varints(value).tolist()
    return [_number(kind, n) for n in numbers]


def _number(kind, n):
    n &= (1 << 64) - 1
    if kind.name in ("sint32", "sint64"):
        return n >> 1 ^ -(n & 1)
    if kind.name == "bool":
        return n != 0
    if kind.name in NARROW:
        return np.array(n, np.uint64).astype(NARROW[kind.name]).item()
    return n if kind.name == "uint64" else signed(n)


def _column(messages, field, dtype, shape):
    """Return the padded values of a field of all messages."""
    rows = [values[field.number] for values in messages]
    most = max([1, *map(len, rows)])
    is_text = dtype.name == "string"
    default = field.default if field.default is not None else b"" if is_text else 0
    filled = [value for row in rows for value in (*row, *[default] * (most - len(row)))]
    if is_text:
        return make_text(filled, (*shape, most))
    return np.array(filled, dtype.as_numpy_dtype).reshape(*shape, most)


# ------------------------------------------------------------------------ descriptors


def _message_of(who, message_type, source):
    """Return the fields of a message by name."""
    if isinstance(source, str) and source in ("", "local://"):
        messages, where = LOCAL, "'local://'"
    else:
        messages, where = _describe(_descriptor_set(who, source)), "descriptor_source"
    if message_type not in messages:
        raise InvalidArgumentError(
            f"{who}: {where} has no message_type {message_type!r}; it has "
            f"{sorted(messages)}"
        )
    return messages[message_type]


def _descriptor_set(who, source):
    """Return the bytes of a ``FileDescriptorSet``."""
    if isinstance(source, bytes) and source.startswith(b"bytes://"):
        return source.removeprefix(b"bytes://")
    try:
        with open(os.fspath(source), "rb") as file:
            return file.read()
    except OSError as error:
        raise InvalidArgumentError(
            f"{who}: descriptor_source must be a file of protoc, b'bytes://...' or "
            f"'local://', got {source!r}: {error}"
        ) from None


def _describe(data):
    """Return the fields of all messages of a ``FileDescriptorSet``, by name."""
    messages, enums = {}, {}
    for file in _parts(data, 1):
        package = _text(file, 2)
        waiting = [(package, message, 0) for message in _parts(file, 4)]
        _keep_enums(enums, package, _parts(file, 5))
        while waiting:
            outer, message, depth = waiting.pop()
            check(depth < DEEPEST, f"messages are nested more than {DEEPEST} deep")
            full_name = f"{outer}.{_text(message, 1)}".lstrip(".")
            messages[full_name] = _parts(message, 2)
            waiting += [(full_name, x, depth + 1) for x in _parts(message, 3)]
            _keep_enums(enums, full_name, _parts(message, 4))
    return {
        name: _fields_of(descriptors, enums) for name, descriptors in messages.items()
    }


def _fields_of(descriptors, enums):
    by_name = {}
    for data in descriptors:
        numbers = {n: value for n, wire, value in fields(data) if wire == VARINT}
        kind = KINDS.get(numbers.get(5))
        if kind is not None:
            name, repeated = _text(data, 1), numbers.get(4) == REPEATED
            values = enums.get(_text(data, 6).lstrip("."), [])
            default = None if repeated else _default(kind, data, values)
            by_name[name] = Field(name, numbers.get(3), kind, repeated, default)
    return by_name


def _default(kind, data, values):
    """Return the default of a field that is not repeated; None for 0, False or b""."""
    text = _text(data, 7)
    if kind.name == "enum":
        return dict(values).get(text, values[0][1] if values else 0)
    if not text or kind.name == "message":
        return None
    if kind.name == "bool":
        return text == "true"
    if kind.name == "string":
        return text.encode()
    try:
        if kind.name == "bytes":
            return text.encode().decode("unicode_escape").encode("latin-1")
        number = float(text) if kind.name in ("float", "double") else int(text)
        return np.array(number, kind.dtypes[0]).item()
    except (ValueError, OverflowError):
        raise InvalidArgumentError(
            f"decode_proto: {text!r:.99} is not a valid default of type {kind.name}"
        ) from None


def _keep_enums(enums, outer, parts):
    """Add the numbers of the values of enums, starting with the first value."""
    for enum in parts:
        values = []
        for value in _parts(enum, 2):
            numbers = [x for n, wire, x in fields(value) if (n, wire) == (2, VARINT)]
            values.append((_text(value, 1), signed(numbers[-1]) if numbers else 0))
        enums[f"{outer}.{_text(enum, 1)}".lstrip(".")] = values


def _parts(data, wanted):
    """Return the fields with a number that contain bytes, text or a message."""
    return [x for n, wire, x in fields(data) if n == wanted and wire == LENGTH]


def _text(data, wanted):
    parts = _parts(data, wanted)
    return bytes(parts[-1]).decode("utf-8", "replace") if parts else ""
