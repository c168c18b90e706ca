"""Examples as protocol buffers: `Example`, `SequenceExample` and their parts.

The classes behave like those that Google's compiler generates from ``example.proto``
and ``feature.proto``, as far as programs that create and read examples use them. Bytes
are untrusted: see `tapewright.storage.records.wire`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.errors import InvalidArgumentError
from tapewright.storage.records.wire import (
    FIXED32,
    LENGTH,
    VARINT,
    check,
    fields,
    map_entries,
    packed_float,
    packed_varints,
    put_bytes,
    put_packed_varints,
    signed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Self


class Message(ABC):
    """Base of all messages: serialization, and a text format."""

    _changed: Callable[[], None] | None = None  # for a part that is not yet set

    @abstractmethod
    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        """Return the message as bytes, with map entries sorted by key.

        Args:
            deterministic: Ignored; the bytes are always deterministic.
        """

    def MergeFromString(self, serialized: bytes) -> int:
        """Merge serialized fields into the message and return the number of bytes.

        Args:
            serialized: Bytes of a message of the class.

        Raises:
            InvalidArgumentError: If the bytes are not a message (also a
                ``ValueError``).
        """
        if not isinstance(serialized, bytes | bytearray | memoryview):
            raise TypeError(
                f"{type(self).__name__}: expects bytes, got {type(serialized).__name__}; "
                "for a tensor pass x.numpy()"
            )
        self._merge(serialized)
        return len(serialized)

    def ParseFromString(self, serialized: bytes) -> int:
        """Replace the message by the deserialized bytes and return their number.

        Args:
            serialized: Bytes of a message of the class.

        Raises:
            InvalidArgumentError: If the bytes are not a message (also a
                ``ValueError``).
        """
        self.Clear()
        return self.MergeFromString(serialized)

    @classmethod
    def FromString(cls, serialized: bytes) -> Self:
        """Deserialize bytes to a message.

        Args:
            serialized: Bytes of a message of the class.

        Raises:
            InvalidArgumentError: If the bytes are not a message (also a
                ``ValueError``).
        """
        message = cls()
        message.MergeFromString(serialized)
        return message

    @abstractmethod
    def Clear(self) -> None:
        """Remove all contents of the message."""

    def CopyFrom(self, other: Self) -> None:
        """Replace the contents of the message by a copy of another message.

        Args:
            other: Message of the same class.
        """
        if type(other) is not type(self):
            raise TypeError(
                f"CopyFrom: expects {type(self).__name__}, got {type(other).__name__}"
            )
        self.ParseFromString(other.SerializeToString())
        self._touch()

    def ByteSize(self) -> int:
        """Return the number of bytes of the serialized message."""
        return len(self.SerializeToString())

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.SerializeToString() == other.SerializeToString()

    __hash__ = None

    def __repr__(self) -> str:
        return "".join([f"{line}\n" for line in self._lines()])

    def __reduce__(self) -> Any:
        return type(self).FromString, (self.SerializeToString(),)

    def _touch(self):
        if self._changed is not None:
            self._changed()

    @abstractmethod
    def _merge(self, data):
        """Merge the fields in the bytes of a message."""

    @abstractmethod
    def _lines(self):
        """Return the lines of the message as text."""


def _block(name, message):
    return [f"{name} {{", *[f"  {line}" for line in message._lines()], "}"]


# ------------------------------------------------------------------ lists of values


class Values(list):
    """A list that checks the type of added values."""

    def __init__(self, owner):
        super().__init__()
        self._owner = owner

    def append(self, value: Any) -> None:
        """Append a value."""
        self.extend([value])

    def extend(self, values: Iterable[Any]) -> None:
        """Append values; if one has the wrong type, none is appended."""
        super().extend(self._owner._checked(values))
        self._owner._touch()

    def __iadd__(self, values):
        self.extend(values)
        return self

    def insert(self, index: Any, value: Any) -> None:
        """Insert a value before an index."""
        super().insert(index, *self._owner._checked([value]))
        self._owner._touch()

    def __setitem__(self, index, value):
        is_slice = isinstance(index, slice)
        checked = self._owner._checked(value if is_slice else [value])
        super().__setitem__(index, checked if is_slice else checked[0])


class _ListOfValues(Message):
    def __init__(self, value: Iterable[Any] = ()):
        self._values = Values(self)
        if value is not None:
            self._values.extend(value)

    @property
    def value(self) -> list[Any]:
        """The values, a list."""
        return self._values

    @value.setter
    def value(self, _: Any) -> None:
        raise AttributeError(
            f"{type(self).__name__}.value cannot be assigned; use extend"
        )

    def Clear(self) -> None:
        """Remove all values."""
        self._values.clear()

    def _merge(self, data):
        for number, kind, value in fields(data):
            if number == 1:
                list.extend(self._values, self._read(kind, value))

    def _lines(self):
        return [f"value: {self._shown(value)}" for value in self._values]

    def _wrong(self, value):
        return TypeError(
            f"{type(self).__name__}: value must hold {self._expected}, got {value!r} of "
            f"type {type(value).__name__}"
        )


class BytesList(_ListOfValues):
    """A protocol buffer list of ``bytes``.

    Args:
        value: Values of the list.

    Example:
        >>> tw.train.BytesList(value=[b"cat"])
        value: "cat"
        <BLANKLINE>
    """

    _expected = "bytes"

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        """Return the message as bytes.

        Args:
            deterministic: Ignored; the bytes are always deterministic.
        """
        return b"".join([put_bytes(1, value) for value in self._values])

    def _checked(self, values):
        values = list(values)
        for value in values:
            if not isinstance(value, bytes):
                raise self._wrong(value)
        return [bytes(value) for value in values]

    def _read(self, kind, value):
        check(kind == LENGTH, "a value of a BytesList is not bytes")
        return [bytes(value)]

    def _shown(self, value):
        return f'"{escaped(value)}"'


def escaped(value):
    named = {9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 39: "\\'", 92: "\\\\"}
    return "".join(
        [named.get(n) or (chr(n) if 32 <= n < 127 else f"\\{n:03o}") for n in value]
    )


class FloatList(_ListOfValues):
    """A protocol buffer list of numbers, rounded to float32.

    Args:
        value: Values of the list.

    Example:
        >>> tw.train.FloatList(value=[0.5, 2])
        value: 0.5
        value: 2
        <BLANKLINE>
    """

    _expected = "numbers"

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        """Return the message as bytes, with packed values.

        Args:
            deterministic: Ignored; the bytes are always deterministic.
        """
        if not self._values:
            return b""
        return put_bytes(1, np.array(self._values, "<f4").tobytes())

    def _checked(self, values):
        values = values.tolist() if isinstance(values, np.ndarray) else list(values)
        for value in values:
            if not hasattr(value, "__float__") or isinstance(value, str | bytes):
                raise self._wrong(value)
        with np.errstate(over="ignore"):  # to infinity, as protocol buffers have it
            return np.array([float(value) for value in values], np.float32).tolist()

    def _read(self, kind, value):
        check(kind in (LENGTH, FIXED32), "a value of a FloatList is not a float")
        return packed_float(value).tolist()

    def _shown(self, value):
        text = f"{value:.6g}"
        return text if np.float32(text) == np.float32(value) else f"{value:.9g}"


class Int64List(_ListOfValues):
    """A protocol buffer list of 64-bit integers.

    Args:
        value: Values of the list.

    Example:
        >>> tw.train.Int64List(value=[-1]).SerializeToString().hex()
        '0a0affffffffffffffffff01'
    """

    _expected = "integers of 64 bits"

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        """Return the message as bytes, with packed values.

        Args:
            deterministic: Ignored; the bytes are always deterministic.
        """
        if not self._values:
            return b""
        return put_bytes(1, put_packed_varints(self._values))

    def _checked(self, values):
        values = values.tolist() if isinstance(values, np.ndarray) else list(values)
        for value in values:
            if not hasattr(value, "__index__"):
                raise self._wrong(value)
        values = [value.__index__() for value in values]
        for value in values:
            if not -(2**63) <= value < 2**63:
                raise ValueError(f"Int64List: {value} does not fit into 64 bits")
        return values

    def _read(self, kind, value):
        check(kind in (LENGTH, VARINT), "a value of an Int64List is not an integer")
        return [signed(value)] if kind == VARINT else packed_varints(value).tolist()

    def _shown(self, value):
        return str(value)


# -------------------------------------------------------------------- features

KINDS = {"bytes_list": BytesList, "float_list": FloatList, "int64_list": Int64List}


class Feature(Message):
    """A feature of an `Example`: a `BytesList`, `FloatList` or `Int64List`.

    Args:
        bytes_list: List of bytes, or None.
        float_list: List of floats, or None.
        int64_list: List of integers, or None.

    Example:
        >>> feature = tw.train.Feature(int64_list=tw.train.Int64List(value=[1, 2]))
        >>> feature.WhichOneof("kind"), feature.int64_list.value
        ('int64_list', [1, 2])
    """

    def __init__(
        self,
        bytes_list: BytesList | None = None,
        float_list: FloatList | None = None,
        int64_list: Int64List | None = None,
    ):
        self._kind = self._list = None
        given = dict(
            bytes_list=bytes_list, float_list=float_list, int64_list=int64_list
        )
        if sum([values is not None for values in given.values()]) > 1:
            raise ValueError("Feature: pass one of bytes_list, float_list, int64_list")
        for kind, values in given.items():
            if values is not None:
                if not isinstance(values, KINDS[kind]):
                    raise TypeError(
                        f"Feature: {kind} must be a {KINDS[kind].__name__}, got "
                        f"{type(values).__name__}"
                    )
                self._kind, self._list = kind, KINDS[kind](values.value)

    @property
    def bytes_list(self) -> BytesList:
        """The list of bytes, empty unless set."""
        return self._part("bytes_list")

    @property
    def float_list(self) -> FloatList:
        """The list of floats, empty unless set."""
        return self._part("float_list")

    @property
    def int64_list(self) -> Int64List:
        """The list of integers, empty unless set."""
        return self._part("int64_list")

    def _part(self, kind):
        if self._kind == kind:
            return self._list
        part = KINDS[kind]()

        def set_it():
            if self._list is not part:
                self._kind, self._list = kind, part
                self._touch()

        part._changed = set_it  # a value that is added makes it the feature's list
        return part

    def WhichOneof(self, oneof_group: str) -> str | None:
        """Return the name of the list that is set, or None.

        Args:
            oneof_group: Must be "kind".
        """
        if oneof_group != "kind":
            raise ValueError(f"Feature has no oneof {oneof_group!r}; use 'kind'")
        return self._kind

    def HasField(self, field_name: str) -> bool:
        """Return whether a list is set.

        Args:
            field_name: "bytes_list", "float_list" or "int64_list".
        """
        if field_name not in KINDS:
            raise ValueError(
                f"Feature has no field {field_name!r}; its fields are {[*KINDS]}"
            )
        return self._kind == field_name

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        """Return the message as bytes.

        Args:
            deterministic: Ignored; the bytes are always deterministic.
        """
        if self._kind is None:
            return b""
        return put_bytes([*KINDS].index(self._kind) + 1, self._list.SerializeToString())

    def Clear(self) -> None:
        """Remove the list."""
        self._kind = self._list = None

    def _merge(self, data):
        names = [*KINDS]
        for number, kind, value in fields(data):
            if number <= 3:
                check(kind == LENGTH, "a list of a Feature is not a message")
                name = names[number - 1]
                if self._kind != name:
                    self._kind, self._list = name, KINDS[name]()
                self._list._merge(value)

    def _lines(self):
        return [] if self._kind is None else _block(self._kind, self._list)


class FeatureValues(Values):
    """A list of features, with the method `add`."""

    def add(self, **lists: Any) -> Feature:
        """Append ``Feature(**lists)`` and return it."""
        self.append(Feature(**lists))
        return self[-1]


class FeatureList(Message):
    """A list of `Feature`, the steps of a sequence.

    Args:
        feature: Features of the list.
    """

    def __init__(self, feature: Iterable[Feature] = ()):
        self._features = FeatureValues(self)
        self._features.extend(feature or ())

    @property
    def feature(self) -> list[Feature]:
        """The list of features; ``add()`` appends an empty one."""
        return self._features

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        """Return the message as bytes.

        Args:
            deterministic: Ignored; the bytes are always deterministic.
        """
        return b"".join(
            [put_bytes(1, each.SerializeToString()) for each in self._features]
        )

    def Clear(self) -> None:
        """Remove all features."""
        self._features.clear()

    def _checked(self, values):
        values = list(values)
        for value in values:
            if not isinstance(value, Feature):
                raise TypeError(
                    f"FeatureList: feature must hold Feature, got {type(value).__name__}"
                )
        return [Feature.FromString(value.SerializeToString()) for value in values]

    def _merge(self, data):
        for number, kind, value in fields(data):
            if number == 1:
                check(kind == LENGTH, "a Feature is not a message")
                list.append(self._features, Feature.FromString(value))

    def _lines(self):
        return [line for each in self._features for line in _block("feature", each)]


class Entries(dict):
    """A dict of messages; reading a missing key creates a message."""

    def __init__(self, owner, kind):
        super().__init__()
        self._owner, self._kind = owner, kind

    def __missing__(self, key):
        if not isinstance(key, str):
            raise TypeError(f"a name must be a str, got {type(key).__name__}")
        self._owner._touch()
        dict.__setitem__(self, key, value := self._kind())
        return value

    def __setitem__(self, *given, **entries):
        raise ValueError(
            "an entry cannot be assigned; use entries[name].CopyFrom(value)"
        )

    update = setdefault = __ior__ = __setitem__

    def get_or_create(self, key: str) -> Any:
        """Return the message of a key; create it if it is missing."""
        return self[key]


class _Map(Message):
    _field = _kind = None

    def _fill(self, given):
        self._entries = Entries(self, self._kind)
        for name, value in (given or {}).items():
            if not isinstance(value, self._kind):
                raise TypeError(
                    f"{type(self).__name__}: {self._field}[{name!r}] must be a "
                    f"{self._kind.__name__}, got {type(value).__name__}"
                )
            self._entries[_text(name)].CopyFrom(value)

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        """Return the message as bytes, with entries sorted by name.

        Args:
            deterministic: Ignored; the bytes are always deterministic.
        """
        parts = []
        for name in sorted(self._entries):
            value = put_bytes(2, self._entries[name].SerializeToString())
            parts.append(put_bytes(1, put_bytes(1, name.encode()) + value))
        return b"".join(parts)

    def Clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()

    def _merge(self, data):
        for name, value in map_entries(data):
            message = self._kind.FromString(value)  # the last one of a name counts
            dict.__setitem__(self._entries, _decoded(name), message)

    def _lines(self):
        lines = []
        for name in sorted(self._entries):
            entry = [f'key: "{escaped(name.encode())}"']
            entry += _block("value", self._entries[name])
            lines += [f"{self._field} {{", *[f"  {line}" for line in entry], "}"]
        return lines


def _text(name):
    if not isinstance(name, str | bytes):
        raise TypeError(f"a name must be a str, got {type(name).__name__}")
    return _decoded(name) if isinstance(name, bytes) else name


def _decoded(name):
    try:
        return bytes(name).decode()
    except UnicodeDecodeError:
        raise InvalidArgumentError(
            f"The bytes are no protocol buffer: the name {bytes(name)!r} is not UTF-8"
        ) from None


class Features(_Map):
    """Features by name.

    Args:
        feature: Dict of `Feature` by name, or None.

    Example:
        >>> floats = tw.train.FloatList(value=[1.5])
        >>> features = tw.train.Features(feature={"x": tw.train.Feature(float_list=floats)})
        >>> features.feature["x"].float_list.value
        [1.5]
    """

    _field, _kind = "feature", Feature

    def __init__(self, feature: dict[str, Feature] | None = None):
        self._fill(feature)

    @property
    def feature(self) -> dict[str, Feature]:
        """Dict of features by name; reading a missing name creates an empty feature."""
        return self._entries


class FeatureLists(_Map):
    """Lists of features by name.

    Args:
        feature_list: Dict of `FeatureList` by name, or None.
    """

    _field, _kind = "feature_list", FeatureList

    def __init__(self, feature_list: dict[str, FeatureList] | None = None):
        self._fill(feature_list)

    @property
    def feature_list(self) -> dict[str, FeatureList]:
        """Dict of lists by name; reading a missing name creates an empty list."""
        return self._entries


# -------------------------------------------------------------------- examples


class _Parts(Message):
    _fields: dict[str, type[Message]] = {}

    def _fill(self, **given):
        self._parts, self._set = {}, set()
        for name, kind in self._fields.items():
            part = kind()
            if given[name] is not None:
                part.CopyFrom(given[name])
                self._set.add(name)
            part._changed = lambda name=name: self._set.add(name)
            self._parts[name] = part

    def HasField(self, field_name: str) -> bool:
        """Return whether the message has this part.

        Args:
            field_name: Name of the part.
        """
        if field_name not in self._fields:
            raise ValueError(
                f"{type(self).__name__} has no field {field_name!r}; its fields are "
                f"{[*self._fields]}"
            )
        return field_name in self._set

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        """Return the message as bytes.

        Args:
            deterministic: Ignored; the bytes are always deterministic.
        """
        return b"".join(
            [
                put_bytes(number, part.SerializeToString())
                for number, (name, part) in enumerate(self._parts.items(), 1)
                if name in self._set
            ]
        )

    def Clear(self) -> None:
        """Remove all contents of the message."""
        for part in self._parts.values():
            part.Clear()
        self._set.clear()

    def _merge(self, data):
        names = [*self._fields]
        for number, kind, value in fields(data):
            if number <= len(names):
                check(kind == LENGTH, f"{names[number - 1]} is not a message")
                self._parts[names[number - 1]]._merge(value)
                self._set.add(names[number - 1])

    def _lines(self):
        return [
            line
            for name, part in self._parts.items()
            if name in self._set
            for line in _block(name, part)
        ]


class Example(_Parts):
    """Protocol buffer of one training example: features with any names and lengths.

    `SerializeToString` returns bytes for TFRecord files; `io.parse_single_example`
    converts them to tensors.

    Args:
        features: Features of the example, or None.

    Example:
        >>> example = tw.train.Example()
        >>> example.features.feature["label"].int64_list.value.append(3)
        >>> tw.train.Example.FromString(example.SerializeToString())
        features {
          feature {
            key: "label"
            value {
              int64_list {
                value: 3
              }
            }
          }
        }
        <BLANKLINE>
    """

    _fields = {"features": Features}

    def __init__(self, features: Features | None = None):
        self._fill(features=features)

    @property
    def features(self) -> Features:
        """The features of the example."""
        return self._parts["features"]


class SequenceExample(_Parts):
    """Protocol buffer of one sequence: context features, and lists of step features.

    Args:
        context: Features of the whole sequence, or None.
        feature_lists: Lists with one feature per step, or None.

    Example:
        >>> sequence = tw.train.SequenceExample()
        >>> sequence.context.feature["length"].int64_list.value.append(1)
        >>> step = sequence.feature_lists.feature_list["word"].feature.add()
        >>> step.bytes_list.value.append(b"cat")
        >>> sequence.ByteSize()
        40
    """

    _fields = {"context": Features, "feature_lists": FeatureLists}

    def __init__(
        self,
        context: Features | None = None,
        feature_lists: FeatureLists | None = None,
    ):
        self._fill(context=context, feature_lists=feature_lists)

    @property
    def context(self) -> Features:
        """The features of the whole sequence."""
        return self._parts["context"]

    @property
    def feature_lists(self) -> FeatureLists:
        """The lists of features, with one feature per step."""
        return self._parts["feature_lists"]
