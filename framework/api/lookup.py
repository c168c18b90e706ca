"""`tw.lookup`: immutable tables of keys and values, as ``tf.lookup``."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tapewright.core import dtypes
from tapewright.core.dtypes import DType, as_dtype
from tapewright.core.errors import InvalidArgumentError, NotFoundError
from tapewright.core.tensor import Tensor, convert_to_tensor, is_tensor
from tapewright.core.text import make_text
from tapewright.core.typing import DTypeLike, TensorLike
from tapewright.layers.preprocessing.categories import map_entries
from tapewright.layers.preprocessing.vocabulary import (
    IntegerTable,
    StringTable,
    lines_of,
)
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.gather import gather
from tapewright.ops.array.joining import concat
from tapewright.ops.math.comparison import less, where
from tapewright.ops.math.elementwise import minimum

__all__ = [
    "KeyValueTensorInitializer",
    "StaticHashTable",
    "StaticVocabularyTable",
    "TextFileIndex",
    "TextFileInitializer",
]


# --------------------------------------------------------------- keys and their values


class KeyValueTensorInitializer:
    """Initializer of a lookup table from a tensor of keys and a tensor of values.

    Args:
        keys: Strings or integers ``[n]``.
        values: Values ``[n]``, of any dtype.
        key_dtype: Dtype of the keys; None infers it.
        value_dtype: Dtype of the values; None infers it.
        name: Name of the initializer.

    Raises:
        TypeError: If keys are neither strings nor integers.
        InvalidArgumentError: If shapes are different, or a key has two different values
            (a ``ValueError``).
    """

    def __init__(
        self,
        keys: TensorLike,
        values: TensorLike,
        key_dtype: DTypeLike | None = None,
        value_dtype: DTypeLike | None = None,
        name: str | None = None,
    ):
        who = "KeyValueTensorInitializer"
        keys = convert_to_tensor(keys, key_dtype)
        values = convert_to_tensor(values, value_dtype)
        if keys.dtype != dtypes.string and not keys.dtype.is_integer:
            raise TypeError(
                f"{who}: keys must be strings or integers, got {keys.dtype.name}"
            )
        if keys.shape.rank != 1 or tuple(values.shape) != tuple(keys.shape):
            raise InvalidArgumentError(
                f"{who}: keys and values must be vectors of one size, got the shapes "
                f"{tuple(keys.shape)} and {tuple(values.shape)}"
            )
        table: dict[Any, Any] = {}
        for key, value in zip(keys.numpy().tolist(), values.numpy().tolist()):
            if key in table and table[key] != value:
                raise InvalidArgumentError(
                    f"{who}: each key must have one value; {key!r} has {table[key]!r} and "
                    f"{value!r}"
                )
            table[key] = value
        self.key_dtype: DType = keys.dtype
        self.value_dtype: DType = values.dtype
        self._keys = list(table)
        self._values = _array(list(table.values()), values.dtype)


class TextFileIndex:
    """Special columns of a text file: the whole line, or the line number."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TextFileInitializer(KeyValueTensorInitializer):
    """Initializer of a lookup table from the lines of a text file.

    Args:
        filename: Path of the file.
        key_dtype: Dtype of the keys, string or an integer dtype.
        key_index: Number of the column of keys, from 0, or a `TextFileIndex`: the whole
            line, or the line number from 0.
        value_dtype: Dtype of the values: string, integer or floating.
        value_index: Number of the column of values, from 0, or a `TextFileIndex`.
        vocab_size: Number of lines to read; None reads all.
        delimiter: Text between columns.
        name: Name of the initializer.
        value_index_offset: Number that is added to values that are line numbers.

    Raises:
        NotFoundError: If the file does not exist.
        InvalidArgumentError: If there are fewer lines or columns, a field is not a
            number, or a key has two different values (a ``ValueError``).
        ValueError: If the dtype of line numbers is not int64.
    """

    def __init__(
        self,
        filename: str | os.PathLike[str],
        key_dtype: DTypeLike,
        key_index: int,
        value_dtype: DTypeLike,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        value_index_offset: int = 0,
    ):
        who, path = "TextFileInitializer", os.fspath(filename)
        if not os.path.isfile(path):
            raise NotFoundError(f"{who}: there is no file {path!r}")
        with open(path, "rb") as file:
            text = file.read()
        lines = lines_of(text) if text else []
        if vocab_size is not None:
            if len(lines) < vocab_size:
                raise InvalidArgumentError(
                    f"{who}: vocab_size must be at most {len(lines)}, the number of lines of "
                    f"{path}, got {vocab_size}"
                )
            lines = lines[:vocab_size]
        columns = []
        for what, dtype, index in (
            ("key", as_dtype(key_dtype), key_index),
            ("value", as_dtype(value_dtype), value_index),
        ):
            if index == TextFileIndex.LINE_NUMBER:
                if dtype != dtypes.int64:
                    raise ValueError(
                        f"{who}: {what}_dtype must be int64 if {what}_index is the line "
                        f"number, got {dtype.name}"
                    )
                first = value_index_offset if what == "value" else 0
                columns.append(np.arange(len(lines)) + first)
            else:
                fields = _fields(who, path, lines, index, delimiter.encode())
                columns.append(_numbers(who, path, fields, dtype))
        super().__init__(*columns, key_dtype, value_dtype)


def _fields(who, path, lines, index, delimiter):
    if index == TextFileIndex.WHOLE_LINE:
        return lines
    fields = []
    for number, line in enumerate(lines):
        columns = line.split(delimiter)
        if not 0 <= index < len(columns):
            raise InvalidArgumentError(
                f"{who}: line {number} of {path} must have a column {index}, got "
                f"{len(columns)} columns"
            )
        fields.append(columns[index])
    return fields


def _numbers(who, path, fields, dtype):
    """Return the fields as an array of their dtype."""
    if dtype == dtypes.string:
        return _array(fields, dtype)
    number = int if dtype.is_integer else float
    values = []
    for line, field in enumerate(fields):
        try:
            values.append(number(field))
        except ValueError:
            raise InvalidArgumentError(
                f"{who}: line {line} of {path} must have a number of {dtype.name}, got "
                f"{field!r:.60}"
            ) from None
    return _array(values, dtype)


def _array(values, dtype):
    if dtype == dtypes.string:
        return make_text(values, (len(values),))
    return np.array(values, dtype.dtype)


# ---------------------------------------------------------------------------- tables


class _Table:
    """Base class of tables: find the positions of keys, then the values there."""

    key_dtype: DType
    value_dtype: DType

    def __init__(self, name):
        self.name: str = name or type(self).__name__

    def __repr__(self) -> str:
        count = int(self.size())
        return (
            f"<{type(self).__name__}: {count} {'entry' if count == 1 else 'entries'}>"
        )

    def _index(self, initializer):
        """Store the values, and a table of the positions of the keys."""
        kind = StringTable if initializer.key_dtype == dtypes.string else IntegerTable
        self._initializer = initializer
        self._positions = kind(initializer._keys)

    def lookup(self, keys: TensorLike, name: str | None = None) -> Any:
        """Return the values of keys, in the shape of the keys.

        Args:
            keys: Tensor of keys; the entries of ragged and sparse tensors are looked
                up.

        Raises:
            TypeError: If the keys have another dtype.
        """
        return map_entries(self._find, keys)

    __getitem__ = lookup

    def _find(self, keys):
        known = self.key_dtype if not is_tensor(keys) else None
        keys = convert_to_tensor(keys, dtype_hint=known)
        if keys.dtype != self.key_dtype:
            raise TypeError(
                f"{type(self).__name__}: keys must be {self.key_dtype.name}, got "
                f"{keys.dtype.name}"
            )
        if keys.dtype.is_integer:
            keys = cast(keys, dtypes.int64)
        return self._values_of(keys)

    def _values_of(self, keys):
        """Return the values of strings, or of integers as int64."""
        raise NotImplementedError(f"{type(self).__name__} must define _values_of")


class StaticHashTable(_Table):
    """Lookup table from keys to values, with a default for unknown keys.

    Args:
        initializer: A `KeyValueTensorInitializer` or `TextFileInitializer`.
        default_value: Value of unknown keys, of the dtype of the values.
        name: Name of the table.
        experimental_is_anonymous: Has no effect, since tables are not shared by name.

    Shapes:
        Keys and values ``[...]``.

    Example:
        >>> table = tw.lookup.StaticHashTable(
        ...     tw.lookup.KeyValueTensorInitializer(["emerson", "lake"], [1, 2]),
        ...     default_value=-1,
        ... )
        >>> table.lookup(["lake", "palmer"]).numpy()
        array([ 2, -1], dtype=int32)
    """

    def __init__(
        self,
        initializer: KeyValueTensorInitializer,
        default_value: Any,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ):
        super().__init__(name)
        self.key_dtype = initializer.key_dtype
        self.value_dtype = initializer.value_dtype
        default = convert_to_tensor(default_value, self.value_dtype)
        if default.shape.rank:
            raise InvalidArgumentError(
                "StaticHashTable: default_value must be one value, got the shape "
                f"{tuple(default.shape)}"
            )
        self._index(initializer)
        self._results = concat([initializer._values, default[None]], 0).numpy()

    def _values_of(self, keys):
        return gather(self._results, self._positions.positions(keys, 1, False, None))

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of keys, an int64 scalar."""
        return convert_to_tensor(len(self._initializer._keys), dtypes.int64)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """Return the keys and the values, each ``[n]``."""
        keys = _array(self._initializer._keys, self.key_dtype)
        return convert_to_tensor(keys), convert_to_tensor(self._initializer._values)


class StaticVocabularyTable(_Table):
    """Vocabulary table from strings or integers to int64 ids.

    Unknown keys have buckets: their id is the size of the table plus the bucket, the
    FarmHash of the string, or of the digits of the integer, modulo ``num_oov_buckets``.

    Args:
        initializer: Initializer with int64 values, or None for buckets alone.
        num_oov_buckets: Number of buckets for unknown keys, at least 1.
        lookup_key_dtype: Dtype of the keys that are looked up: string, int32 or int64;
            None for the dtype of the table.
        name: Name of the table.
        experimental_is_anonymous: Has no effect, since tables are not shared by name.

    Raises:
        ValueError: If ``num_oov_buckets`` is below 1.
        TypeError: If the values are not int64, or only one dtype of keys is string.

    Example:
        >>> words = tw.lookup.KeyValueTensorInitializer(
        ...     ["a", "b"], [0, 1], value_dtype="int64"
        ... )
        >>> table = tw.lookup.StaticVocabularyTable(words, num_oov_buckets=3)
        >>> table.lookup(["b", "zz"]).numpy()
        array([1, 3])
    """

    def __init__(
        self,
        initializer: KeyValueTensorInitializer | None,
        num_oov_buckets: int,
        lookup_key_dtype: DTypeLike | None = None,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ):
        super().__init__(name)
        who = "StaticVocabularyTable"
        if num_oov_buckets < 1:
            raise ValueError(
                f"{who}: num_oov_buckets must be 1 or more, got {num_oov_buckets}; "
                "StaticHashTable has a default value in place of buckets"
            )
        if initializer is None:
            dtype = as_dtype(lookup_key_dtype or dtypes.string)
            empty = _array([], dtype), _array([], dtypes.int64)
            initializer = KeyValueTensorInitializer(*empty)
        if initializer.value_dtype != dtypes.int64:
            raise TypeError(
                f"{who}: the values of initializer must be int64, got "
                f"{initializer.value_dtype.name}"
            )
        self.key_dtype = as_dtype(lookup_key_dtype or initializer.key_dtype)
        self.value_dtype = dtypes.int64
        kinds = [x == dtypes.string for x in (self.key_dtype, initializer.key_dtype)]
        if kinds[0] != kinds[1]:
            raise TypeError(
                f"{who}: keys of {initializer.key_dtype.name} cannot be looked up as "
                f"{self.key_dtype.name}"
            )
        self._buckets = num_oov_buckets
        self._index(initializer)

    def _values_of(self, keys):
        positions = self._positions.positions(keys, self._buckets, True, None)
        count = len(self._initializer._keys)
        if not count:
            return positions
        values = gather(self._initializer._values, minimum(positions, count - 1))
        return where(less(positions, count), values, positions)

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of keys and buckets, an int64 scalar."""
        count = len(self._initializer._keys) + self._buckets
        return convert_to_tensor(count, dtypes.int64)
