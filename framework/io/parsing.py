"""Tensors from serialized examples, by a description of their features."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tapewright.core.dtypes import as_dtype
from tapewright.core.errors import InvalidArgumentError, UnimplementedError
from tapewright.core.tensor import TensorSpec, convert_to_tensor
from tapewright.core.text import make_text, use_text
from tapewright.core.text import zeros as empty_values
from tapewright.storage.records.wire import (
    FIXED32,
    LENGTH,
    VARINT,
    check,
    fields,
    packed_float,
    packed_varints,
    signed,
)

from .host_ops import host_op, scalar_text, text_tensor, texts

if TYPE_CHECKING:
    from typing import Any

    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, TensorLike

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "VarLenFeature",
    "parse_example",
    "parse_single_example",
    "parse_single_sequence_example",
]

LISTS = {"string": 1, "float32": 2, "int64": 3}  # of feature.proto
NAMES = {number: name for name, number in LISTS.items()}


class FixedLenFeature(NamedTuple):
    """A feature of one shape; ``default_value`` stands for one that is missing."""

    shape: Any
    dtype: DTypeLike
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """A feature of any number of rows of one shape, padded in batches by ``default_value``."""

    shape: Any
    dtype: DTypeLike
    allow_missing: bool = False
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature of any length as a sparse tensor, which `parse_example` refuses."""

    dtype: DTypeLike


def parse_single_example(
    serialized: TensorLike, features: dict[str, Any], example_names: Any = None
) -> dict[str, Tensor]:
    """Tensors of the features of an `Example`, which is a scalar string.

    Args: ``features``: for each name that is wanted a `FixedLenFeature`, which gives a
    tensor of its shape, or a ``FixedLenSequenceFeature(shape, dtype,
    allow_missing=True)``, which gives ``[n, *shape]`` for whatever ``n`` there is. Dtypes
    are float32, int64 and string. ``example_names`` is ignored.

    Raises: ``InvalidArgumentError`` (a ``ValueError``) for bytes that are no example, and
    for a feature that is missing or of another dtype or number of values;
    ``UnimplementedError`` for `VarLenFeature`, since there are no sparse tensors.

    >>> from tapewright.train import Example
    >>> example = Example()
    >>> example.features.feature["x"].float_list.value.extend([1, 2])
    >>> serialized = example.SerializeToString()
    >>> parse_single_example(serialized, {"x": FixedLenFeature([2], "float32")})["x"].numpy()
    array([1., 2.], dtype=float32)
    """
    who = "parse_single_example"
    serialized = scalar_text(who, "serialized", serialized)
    wanted = _wanted(who, features)

    def call(serialized):
        found = _features(serialized.item())
        return [_array(who, name, found.get(name), f) for name, f in wanted.items()]

    specs = [feature.spec() for feature in wanted.values()]
    return dict(zip(wanted, host_op(who, call, [serialized], specs), strict=True))


def parse_example(
    serialized: TensorLike, features: dict[str, Any], example_names: Any = None
) -> dict[str, Tensor]:
    """`parse_single_example` of a vector of strings, as a batch.

    A `FixedLenSequenceFeature` is padded at the end to the longest of the batch.
    """
    who = "parse_example"
    serialized = text_tensor(who, "serialized", serialized)
    if serialized.shape.rank == 0:
        return parse_single_example(serialized, features)
    if serialized.shape.rank != 1:
        raise InvalidArgumentError(
            f"{who}: serialized must be a vector, got the shape {tuple(serialized.shape)}"
        )
    wanted = _wanted(who, features)

    def call(serialized):
        examples = [_features(each) for each in texts(serialized)]
        return [_batch(who, name, examples, f) for name, f in wanted.items()]

    count = serialized.shape[0]
    specs = [feature.spec(count) for feature in wanted.values()]
    return dict(zip(wanted, host_op(who, call, [serialized], specs), strict=True))


def parse_single_sequence_example(
    serialized: TensorLike,
    context_features: dict[str, Any] | None = None,
    sequence_features: dict[str, Any] | None = None,
    example_name: Any = None,
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Tensors of a `SequenceExample`: those of its context, and those of its sequences.

    Args: ``context_features``: those of `parse_single_example`; ``sequence_features``: a
    `FixedLenSequenceFeature` for each name, which gives ``[steps, *shape]``. A sequence may
    be missing only with ``allow_missing``. ``example_name`` is ignored.

    Raises: as `parse_single_example`.
    """
    who = "parse_single_sequence_example"
    serialized = scalar_text(who, "serialized", serialized)
    context = _wanted(who, context_features or {}, needed=False)
    sequences = _wanted(who, sequence_features or {}, steps=True)
    if not context and not sequences:
        raise ValueError(f"{who}: context_features or sequence_features must be given")

    def call(serialized):
        parts = {1: [], 2: []}
        for number, kind, value in fields(serialized.item()):
            if number <= 2:
                check(kind == LENGTH, "a part of a SequenceExample is no message")
                parts[number].append(value)
        found = _entries(parts[1], _feature)
        steps = _entries(parts[2], _steps)
        arrays = [_array(who, name, found.get(name), f) for name, f in context.items()]
        for name, feature in sequences.items():
            arrays.append(_sequence(who, name, steps.get(name), feature))
        return arrays

    specs = [feature.spec() for feature in [*context.values(), *sequences.values()]]
    tensors = host_op(who, call, [serialized], specs)
    return (
        dict(zip(context, tensors[: len(context)], strict=True)),
        dict(zip(sequences, tensors[len(context) :], strict=True)),
    )


# ------------------------------------------------------------- wanted features


class _Wanted(NamedTuple):
    shape: tuple[int, ...]
    dtype: str
    is_sequence: bool
    may_miss: bool
    default: Any  # an array, or None

    @property
    def size(self):
        return math.prod(self.shape)

    def spec(self, count=None):
        shape = (None, *self.shape) if self.is_sequence else self.shape
        return TensorSpec(shape if count is None else (count, *shape), self.dtype)


def _wanted(who, features, steps=False, needed=True):
    if not isinstance(features, dict) or (needed and not steps and not features):
        raise ValueError(
            f"{who}: features must be a dict of names and FixedLenFeature, got {features!r}"
        )
    return {name: _checked(who, name, f, steps) for name, f in features.items()}


def _checked(who, name, feature, steps):
    if isinstance(feature, VarLenFeature):
        raise UnimplementedError(
            f"{who}: features[{name!r}]: VarLenFeature makes a sparse tensor, of which there "
            "are none. Use FixedLenFeature(shape, dtype) for values of one length, or "
            "FixedLenSequenceFeature(shape, dtype, allow_missing=True) for any length"
        )
    is_sequence = isinstance(feature, FixedLenSequenceFeature)
    if not is_sequence and (steps or not isinstance(feature, FixedLenFeature)):
        expected = "FixedLenSequenceFeature" if steps else "FixedLenFeature"
        raise TypeError(
            f"{who}: features[{name!r}] must be a {expected}, got {feature!r}"
        )
    if is_sequence and not steps and not feature.allow_missing:
        raise ValueError(
            f"{who}: features[{name!r}]: FixedLenSequenceFeature needs allow_missing=True"
        )
    dtype = as_dtype(feature.dtype).name
    if dtype not in LISTS:
        raise TypeError(
            f"{who}: features[{name!r}]: the dtype must be float32, int64 or string, got "
            f"{dtype}; cast the result"
        )
    sizes = [feature.shape] if isinstance(feature.shape, int) else feature.shape
    shape = tuple([-1 if n is None else int(n) for n in sizes])
    if any([n < 0 or is_sequence and n == 0 for n in shape]):
        raise ValueError(
            f"{who}: features[{name!r}]: all sizes must be known, got {feature.shape}"
        )
    default = feature.default_value
    if default is not None:
        default = _default(who, name, default, dtype, () if is_sequence else shape)
    elif is_sequence:
        default = empty_values(np, (), np.dtype(as_dtype(dtype).as_numpy_dtype))
    may_miss = feature.allow_missing if is_sequence else default is not None
    return _Wanted(shape, dtype, is_sequence, may_miss, default)


def _default(who, name, value, dtype, shape):
    array = convert_to_tensor(value, as_dtype(dtype)).numpy()
    array = np.asarray(array, object) if dtype == "string" else np.asarray(array)
    if array.size != math.prod(shape):
        raise ValueError(
            f"{who}: features[{name!r}]: default_value must have the shape {shape}, got "
            f"{array.shape}"
        )
    return array.reshape(shape)


# -------------------------------------------------------------------- the bytes


def _features(data):
    """``{name: (number of the list, its bytes)}`` of an example."""
    parts = []
    for number, kind, value in fields(data):
        if number == 1:
            check(kind == LENGTH, "features is no message")
            parts.append(value)
    return _entries(parts, _feature)


def _entries(parts, read):
    """The entries of a map; the last one of a name counts."""
    found = {}
    for part in parts:
        for number, kind, entry in fields(part):
            if number != 1:
                continue
            check(kind == LENGTH, "an entry of a map is no message")
            name, value = b"", b""
            for place, kind, content in fields(entry):
                if place <= 2:
                    check(kind == LENGTH, "an entry of a map has an integer")
                    name, value = (content, value) if place == 1 else (name, content)
            found[bytes(name).decode(errors="replace")] = read(value)
    return found


def _feature(data):
    """The number of the list of a feature, and the bytes of its parts; None without one."""
    last, parts = None, []
    for number, kind, value in fields(data):
        if number <= 3:
            check(kind == LENGTH, "a list of a Feature is no message")
            parts = [*parts, value] if number == last else [value]
            last = number
    return None if last is None else (last, parts)


def _steps(data):
    steps = []
    for number, kind, value in fields(data):
        if number == 1:
            check(kind == LENGTH, "a Feature is no message")
            steps.append(_feature(value))
    return steps


def _values(number, parts):
    """The values of a list, an array of one axis."""
    found = []
    for part in parts:
        for field, kind, value in fields(part):
            if field != 1:
                continue
            if number == 1:
                check(kind == LENGTH, "a value of a BytesList is no bytes")
                found.append(bytes(value))
            elif number == 2:
                check(kind in (LENGTH, FIXED32), "a value of a FloatList is no float")
                found.append(packed_float(value))
            else:
                check(kind in (LENGTH, VARINT), "a value of an Int64List is no integer")
                is_one = kind == VARINT
                one = np.array([signed(value)]) if is_one else packed_varints(value)
                found.append(one)
    if number == 1:
        return make_text(found, (len(found),))
    empty = np.zeros(0, np.float32 if number == 2 else np.int64)
    return found[0] if len(found) == 1 else np.concatenate([empty, *found])


# ------------------------------------------------------------------- the arrays


def _array(who, name, found, feature):
    """The array of a feature of one example."""
    if found is None:
        return _missing(who, name, feature)
    values = _checked_values(who, name, found, feature)
    if feature.is_sequence:
        if values.size % feature.size:
            raise InvalidArgumentError(
                f"{who}: the feature {name!r} has {values.size} values, which are no rows of "
                f"the shape {feature.shape}"
            )
        return values.reshape(values.size // feature.size, *feature.shape)
    if values.size != feature.size:
        raise InvalidArgumentError(
            f"{who}: the feature {name!r} has {values.size} values, the shape "
            f"{feature.shape} needs {feature.size}"
        )
    return values.reshape(feature.shape)


def _missing(who, name, feature):
    if not feature.may_miss:
        remedy = "a default_value" if not feature.is_sequence else "allow_missing=True"
        raise InvalidArgumentError(
            f"{who}: the example has no feature {name!r}; {remedy} allows this"
        )
    if feature.is_sequence:
        return _empty(feature, (0, *feature.shape))
    return feature.default


def _empty(feature, shape):
    use_text()
    return empty_values(np, shape, np.dtype(as_dtype(feature.dtype).as_numpy_dtype))


def _checked_values(who, name, found, feature):
    number, parts = found
    if number != LISTS[feature.dtype]:
        raise InvalidArgumentError(
            f"{who}: the feature {name!r} is of the dtype {NAMES[number]}, asked for as "
            f"{feature.dtype}"
        )
    return _values(number, parts)


def _batch(who, name, examples, feature):
    rows = [_array(who, name, found.get(name), feature) for found in examples]
    if not feature.is_sequence:
        shape = (len(rows), *feature.shape)
        batch = _empty(feature, shape)
        for i, row in enumerate(rows):
            batch[i] = row
        return batch
    longest = max([len(row) for row in rows], default=0)
    batch = _empty(feature, (len(rows), longest, *feature.shape))
    batch[...] = feature.default[()]
    for i, row in enumerate(rows):
        batch[i, : len(row)] = row
    return batch


def _sequence(who, name, steps, feature):
    """The array of a sequence: one row of the shape from each step."""
    if steps is None:
        return _missing(who, name, feature)
    single = feature._replace(is_sequence=False, may_miss=False)
    rows = [_array(who, name, step, single) for step in steps]
    batch = _empty(feature, (len(rows), *feature.shape))
    for i, row in enumerate(rows):
        batch[i] = row
    return batch
