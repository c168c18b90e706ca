"""Parsing of serialized examples to tensors, given a description of their features."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tapewright.core.dtypes import as_dtype
from tapewright.core.errors import InvalidArgumentError, UnimplementedError
from tapewright.core.tensor import TensorSpec, convert_to_tensor
from tapewright.core.text import make_text, use_text
from tapewright.core.text import zeros as empty_values
from tapewright.ops.array.creation import range
from tapewright.ops.array.joining import stack
from tapewright.ops.ragged.ragged_tensor import RaggedTensor
from tapewright.ops.sparse.coordinates import linear_indices
from tapewright.ops.sparse.sparse_tensor import SparseTensor
from tapewright.ops.sparse.structure import reorder
from tapewright.storage.records.wire import (
    FIXED32,
    LENGTH,
    VARINT,
    check,
    fields,
    map_entries,
    packed_float,
    packed_varints,
    signed,
)

from .host_ops import host_op, scalar_text, text_tensor, texts

if TYPE_CHECKING:
    from typing import Any

    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, TensorLike

LISTS = {"string": 1, "float32": 2, "int64": 3}  # of feature.proto
NAMES = {number: name for name, number in LISTS.items()}


class FixedLenFeature(NamedTuple):
    """Feature with a fixed shape.

    Args:
        shape: Shape of the tensor in one example.
        dtype: Dtype: float32, int64 or string.
        default_value: Value of a missing feature; without it, a missing feature is an
            error.
    """

    shape: Any
    dtype: DTypeLike
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """Feature with a varying number of rows of a fixed shape.

    Args:
        shape: Shape of one row.
        dtype: Dtype: float32, int64 or string.
        allow_missing: If True, a missing feature has no rows. Must be True except in
            ``sequence_features`` of `parse_single_sequence_example`.
        default_value: Value with which batches are padded, by default 0 or "".
    """

    shape: Any
    dtype: DTypeLike
    allow_missing: bool = False
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """Feature of varying length, as a `SparseTensor`; a batch has a row per example.

    Args:
        dtype: Dtype: float32, int64 or string.
    """

    dtype: DTypeLike


class SparseFeature(NamedTuple):
    """`SparseTensor` built from features of indices and a feature of values.

    Args:
        index_key: Name of the int64 feature of indices, or a list with one name per axis.
        value_key: Name of the feature of values.
        dtype: Dtype of the values: float32, int64 or string.
        size: Size of each axis.
        already_sorted: If True, the entries are stored in order of their indices and are
            not sorted again.
    """

    index_key: Any
    value_key: str
    dtype: DTypeLike
    size: Any
    already_sorted: bool = False


class RaggedFeature(NamedTuple):
    """Feature of varying length: a tensor, and in batches the rows of a `RaggedTensor`.

    Args:
        dtype: Dtype: float32, int64 or string.
        value_key: Name of the feature if it differs from its key in ``features``.
        partitions: Must be empty: there is a single ragged axis.
        row_splits_dtype: Dtype of the row splits, int32 or int64.
        validate: Ignored; row splits are always valid.
    """

    dtype: DTypeLike
    value_key: str | None = None
    partitions: Any = ()
    row_splits_dtype: DTypeLike = "int32"
    validate: bool = False


def parse_single_example(
    serialized: TensorLike, features: dict[str, Any], example_names: Any = None
) -> dict[str, Any]:
    """Parse a serialized `Example` to a dict of tensors.

    The dtypes are float32, int64 and string.

    Args:
        serialized: Scalar string, such as a record of a TFRecord file.
        features: Dict with a description for each feature: `FixedLenFeature` returns a
            tensor of its shape; ``FixedLenSequenceFeature(shape, dtype,
            allow_missing=True)`` returns ``[n, *shape]`` for any ``n``;
            `VarLenFeature`, `SparseFeature` and `RaggedFeature` return sparse and
            ragged tensors.
        example_names: Ignored.

    Raises:
        InvalidArgumentError: If the bytes are not an example, or a feature is missing
            or has another dtype or number of values (also a ``ValueError``).

    Example:
        >>> example = tw.train.Example()
        >>> example.features.feature["x"].float_list.value.extend([1, 2])
        >>> features = {"x": tw.io.FixedLenFeature([2], "float32")}
        >>> parsed = tw.io.parse_single_example(example.SerializeToString(), features)
        >>> parsed["x"].numpy()
        array([1., 2.], dtype=float32)
    """
    who = "parse_single_example"
    serialized = scalar_text(who, "serialized", serialized)
    wanted, rows = _parted(who, features)

    def call(serialized):
        example = _features(serialized.item())
        arrays = [_array(who, name, example.get(name), f) for name, f in wanted.items()]
        return arrays + [_row(who, *key, example) for key in rows]

    specs = [feature.spec() for feature in wanted.values()]
    specs += [TensorSpec([None], dtype) for _, dtype in rows]
    tensors = list(host_op(who, call, [serialized], specs))
    values = dict(zip(rows, tensors[len(wanted) :], strict=True))
    dense = dict(zip(wanted, tensors, strict=False))
    return {
        name: dense[name] if name in dense else _of_example(who, name, f, values)
        for name, f in features.items()
    }


def parse_example(
    serialized: TensorLike, features: dict[str, Any], example_names: Any = None
) -> dict[str, Any]:
    """Parse a vector of serialized `Example` messages to a dict of batches.

    A `FixedLenSequenceFeature` is padded at the end to the longest of the batch.

    Args:
        serialized: Vector of strings.
        features: Dict of descriptions, as in `parse_single_example`.
        example_names: Ignored.

    Raises:
        InvalidArgumentError: If the bytes are not examples or a feature does not match,
            as in `parse_single_example`.

    Example:
        >>> example = tw.train.Example()
        >>> example.features.feature["x"].float_list.value.extend([1, 2])
        >>> features = {"x": tw.io.FixedLenFeature([2], "float32")}
        >>> batch = tw.io.parse_example([example.SerializeToString()] * 2, features)
        >>> batch["x"].numpy()
        array([[1., 2.],
               [1., 2.]], dtype=float32)
    """
    who = "parse_example"
    serialized = text_tensor(who, "serialized", serialized)
    if serialized.shape.rank == 0:
        return parse_single_example(serialized, features)
    if serialized.shape.rank != 1:
        raise InvalidArgumentError(
            f"{who}: serialized must be a vector, got the shape {tuple(serialized.shape)}"
        )
    wanted, rows = _parted(who, features)

    def call(serialized):
        examples = [_features(each) for each in texts(serialized)]
        arrays = [_batch(who, name, examples, f) for name, f in wanted.items()]
        for key in rows:
            values = [_row(who, *key, example) for example in examples]
            arrays.append(np.concatenate([_no_values(key[1]), *values]))
            arrays.append(np.array([len(row) for row in values], np.int64))
        return arrays

    count = serialized.shape[0]
    specs = [feature.spec(count) for feature in wanted.values()]
    for _, dtype in rows:
        specs += [TensorSpec([None], dtype), TensorSpec([count], "int64")]
    tensors = list(host_op(who, call, [serialized], specs))
    parts = tensors[len(wanted) :]
    ragged = dict(zip(rows, zip(parts[::2], parts[1::2]), strict=True))
    dense = dict(zip(wanted, tensors, strict=False))
    return {
        name: dense[name] if name in dense else _of_batch(who, name, f, ragged)
        for name, f in features.items()
    }


def parse_single_sequence_example(
    serialized: TensorLike,
    context_features: dict[str, Any] | None = None,
    sequence_features: dict[str, Any] | None = None,
    example_name: Any = None,
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Parse a serialized `SequenceExample` to a dict of its context and one of its lists.

    Args:
        serialized: Scalar string.
        context_features: Dict of descriptions of the context, as in
            `parse_single_example`.
        sequence_features: Dict with a `FixedLenSequenceFeature` for each list, which
            returns ``[steps, *shape]``. A list may only be missing with
            ``allow_missing``.
        example_name: Ignored.

    Returns:
        Two dicts of tensors: the context features and the sequence features.

    Raises:
        InvalidArgumentError: If the bytes are not a sequence example or a feature does
            not match, as in `parse_single_example`.
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
                check(kind == LENGTH, "a part of a SequenceExample is not a message")
                parts[number].append(value)
        example = _entries(parts[1], _feature)
        steps = _entries(parts[2], _steps)
        arrays = [
            _array(who, name, example.get(name), f) for name, f in context.items()
        ]
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


def _parted(who, features):
    """Return the dense features, and (name, dtype) pairs of varying-length features."""
    if not isinstance(features, dict) or not features:
        _wanted(who, features)  # raises
    kinds = VarLenFeature, SparseFeature, RaggedFeature
    dense, rows = {}, {}
    for name, feature in features.items():
        if not isinstance(feature, kinds):
            dense[name] = _checked(who, name, feature, False)
            continue
        if isinstance(feature, RaggedFeature) and tuple(feature.partitions):
            raise UnimplementedError(
                f"{who}: features[{name!r}]: partitions of a RaggedFeature must be empty"
            )
        rows.update(dict.fromkeys(_keys_of(who, name, feature)))
    return dense, list(rows)


def _keys_of(who, name, feature):
    """Return the names and dtypes of the features that one description refers to."""
    dtype = as_dtype(feature.dtype).name
    if dtype not in LISTS:
        raise TypeError(
            f"{who}: features[{name!r}]: the dtype must be float32, int64 or string, got "
            f"{dtype}; cast the result"
        )
    if isinstance(feature, SparseFeature):
        keys, sizes = _axes(feature)
        if len(keys) != len(sizes):
            raise ValueError(
                f"{who}: features[{name!r}]: size must have a number for each index_key, "
                f"got {feature.index_key!r} and {feature.size!r}"
            )
        return [*[(key, "int64") for key in keys], (feature.value_key, dtype)]
    key = getattr(feature, "value_key", None)
    return [(name if key is None else key, dtype)]


def _axes(feature):
    keys = feature.index_key
    keys = [keys] if isinstance(keys, str) else list(keys)
    sizes = feature.size
    sizes = [int(n) for n in (sizes if isinstance(sizes, (list, tuple)) else [sizes])]
    return keys, sizes


def _row(who, name, dtype, example):
    """Return the values of a feature of varying length, empty if it is missing."""
    if example.get(name) is None:
        return _no_values(dtype)
    wanted = _Wanted((), dtype, True, True, None)
    return _checked_values(who, name, example[name], wanted)


def _no_values(dtype):
    use_text()
    return empty_values(np, (0,), np.dtype(as_dtype(dtype).as_numpy_dtype))


def _of_example(who, name, feature, values):
    """Return the tensor of a feature of varying length in one example."""
    *indices, entries = [values[key] for key in _keys_of(who, name, feature)]
    if isinstance(feature, RaggedFeature):
        return entries
    if isinstance(feature, VarLenFeature):
        count = entries.shape[0]
        return SparseTensor(range(count, dtype="int64")[:, None], entries, [count])
    return _sparse(who, name, feature, indices, entries, [])


def _of_batch(who, name, feature, columns):
    """Return the tensor of a feature of varying length in many examples."""
    pairs = [columns[key] for key in _keys_of(who, name, feature)]
    entries, lengths = pairs[-1]
    rows = RaggedTensor.from_row_lengths(entries, lengths, validate=False)
    if isinstance(feature, RaggedFeature):
        return rows.with_row_splits_dtype(feature.row_splits_dtype)
    if isinstance(feature, VarLenFeature):
        return rows.to_sparse()
    for _, others in pairs[:-1]:
        if others.numpy().tolist() != lengths.numpy().tolist():
            raise _uneven(who, name)
    indices = [rows.value_rowids(), *[each for each, _ in pairs[:-1]]]
    return _sparse(who, name, feature, indices, entries, [lengths.shape[0]])


def _sparse(who, name, feature, indices, entries, lead):
    if any([tuple(each.shape) != tuple(entries.shape) for each in indices]):
        raise _uneven(who, name)
    sizes = [*lead, *_axes(feature)[1]]
    sparse = SparseTensor(stack(indices, axis=1), entries, sizes)
    linear_indices(f"{who}: {name!r}", sparse.indices, sizes)
    return sparse if feature.already_sorted else reorder(sparse)


def _uneven(who, name):
    return InvalidArgumentError(
        f"{who}: features[{name!r}]: an example must have as many indices as values"
    )


def _checked(who, name, feature, steps):
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
    """Return ``{name: (number of the list, its bytes)}`` of an example."""
    parts = []
    for number, kind, value in fields(data):
        if number == 1:
            check(kind == LENGTH, "features is not a message")
            parts.append(value)
    return _entries(parts, _feature)


def _entries(parts, read):
    """Return the entries of a map; the last value of a name wins."""
    entries = {}
    for part in parts:
        for name, value in map_entries(part):
            entries[bytes(name).decode(errors="replace")] = read(value)
    return entries


def _feature(data):
    """Return the number of a feature's list and the bytes of its parts, or None."""
    last, parts = None, []
    for number, kind, value in fields(data):
        if number <= 3:
            check(kind == LENGTH, "a list of a Feature is not a message")
            parts = [*parts, value] if number == last else [value]
            last = number
    return None if last is None else (last, parts)


def _steps(data):
    steps = []
    for number, kind, value in fields(data):
        if number == 1:
            check(kind == LENGTH, "a Feature is not a message")
            steps.append(_feature(value))
    return steps


def _values(number, parts):
    """Return the values of a list as an array with one axis."""
    values = []
    for part in parts:
        for field, kind, value in fields(part):
            if field != 1:
                continue
            if number == 1:
                check(kind == LENGTH, "a value of a BytesList is not bytes")
                values.append(bytes(value))
            elif number == 2:
                check(
                    kind in (LENGTH, FIXED32), "a value of a FloatList is not a float"
                )
                values.append(packed_float(value))
            else:
                check(
                    kind in (LENGTH, VARINT),
                    "a value of an Int64List is not an integer",
                )
                is_one = kind == VARINT
                one = np.array([signed(value)]) if is_one else packed_varints(value)
                values.append(one)
    if number == 1:
        return make_text(values, (len(values),))
    empty = np.zeros(0, np.float32 if number == 2 else np.int64)
    return values[0] if len(values) == 1 else np.concatenate([empty, *values])


# ------------------------------------------------------------------- the arrays


def _array(who, name, content, feature):
    """Return the array of a feature of one example."""
    if content is None:
        return _missing(who, name, feature)
    values = _checked_values(who, name, content, feature)
    if feature.is_sequence:
        if values.size % feature.size:
            raise InvalidArgumentError(
                f"{who}: the feature {name!r} has {values.size} values, which cannot be "
                f"divided into rows of shape {feature.shape}"
            )
        return values.reshape(values.size // feature.size, *feature.shape)
    if values.size != feature.size:
        raise InvalidArgumentError(
            f"{who}: the feature {name!r} must have {feature.size} values for the shape "
            f"{feature.shape}, got {values.size}"
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


def _checked_values(who, name, content, feature):
    number, parts = content
    if number != LISTS[feature.dtype]:
        raise InvalidArgumentError(
            f"{who}: the feature {name!r} has dtype {NAMES[number]}, but features "
            f"requests {feature.dtype}"
        )
    return _values(number, parts)


def _batch(who, name, examples, feature):
    rows = [_array(who, name, example.get(name), feature) for example in examples]
    if not feature.is_sequence:
        shape = (len(rows), *feature.shape)
        batch = _empty(feature, shape)
        for i, row in enumerate(rows):
            batch[i, ...] = row  # the text of it, not an array of rank 0
        return batch
    longest = max([len(row) for row in rows], default=0)
    batch = _empty(feature, (len(rows), longest, *feature.shape))
    batch[...] = feature.default[()]
    for i, row in enumerate(rows):
        batch[i, : len(row)] = row
    return batch


def _sequence(who, name, steps, feature):
    """Return the array of a sequence: one row of the shape from each step."""
    if steps is None:
        return _missing(who, name, feature)
    single = feature._replace(is_sequence=False, may_miss=False)
    rows = [_array(who, name, step, single) for step in steps]
    batch = _empty(feature, (len(rows), *feature.shape))
    for i, row in enumerate(rows):
        batch[i, ...] = row
    return batch
