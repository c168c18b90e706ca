"""Vocabularies of strings and integers: lookup tables, token counts and files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tapewright.compiler.control_flow.printing import assert_true
from tapewright.core import dtypes
from tapewright.core.nest import is_nested
from tapewright.core.tensor import Tensor, convert_to_tensor, is_tensor
from tapewright.core.text import make_text, to_bytes
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import zeros_like
from tapewright.ops.array.gather import gather
from tapewright.ops.array.shape import expand_dims
from tapewright.ops.array.sorting import searchsorted
from tapewright.ops.math.comparison import equal, where
from tapewright.ops.math.elementwise import minimum
from tapewright.ops.math.reduction import reduce_all
from tapewright.ops.ragged.ragged_tensor import RaggedTensor
from tapewright.ops.strings.categories import (
    pack_vocabulary,
    vocabulary_counts,
    vocabulary_lookup,
)
from tapewright.ops.strings.numbers import (
    as_string,
    to_hash_bucket_fast,
    to_hash_bucket_strong,
)

# ---------------------------------------------------------------------------- tables


class StringTable:
    """Lookup table from strings to their positions in a list of tokens (``bytes``).

    The position of a string that is not a token is the number of tokens plus its
    bucket.
    """

    dtype: dtypes.DType = dtypes.string

    def __init__(self, tokens: list[bytes]):
        self.tokens = tokens
        self._packed = pack_vocabulary(tokens)

    @staticmethod
    def as_token(who: str, name: str, value: Any) -> bytes:
        """Convert an entry of a vocabulary; raise ``TypeError`` if not a string."""
        if not isinstance(value, str | bytes):
            raise TypeError(f"{who}: {name} must be a string, got {value!r:.60}")
        return to_bytes(value)

    @staticmethod
    def as_keys(who: str, inputs: Any) -> Tensor:
        """Convert inputs to strings; raise ``TypeError`` for numbers."""
        keys = convert_to_tensor(inputs)
        if keys.dtype != dtypes.string:
            if 0 in keys.shape:  # of an empty list
                return convert_to_tensor(make_text([], tuple(keys.shape)))
            raise TypeError(f"{who}: inputs must be strings, got {keys.dtype.name}")
        return keys

    def positions(
        self, keys: Tensor, buckets: int, hashed: bool, salt: list[int] | None
    ) -> Tensor:
        """Look up the positions of keys: int64, in their shape."""
        return vocabulary_lookup(keys, self._packed, buckets, salt or ())

    def counts(
        self, rows: RaggedTensor, buckets: int, salt: list[int] | None
    ) -> Tensor:
        """Count each position in each row: ``[rows, tokens + buckets]``."""
        size = len(self.tokens)
        return vocabulary_counts(
            rows._tw_packed, self._packed, size, buckets, salt or ()
        )

    def array(self) -> np.ndarray:
        """Return the tokens as an array."""
        return make_text(self.tokens, (len(self.tokens),))


class IntegerTable:
    """Lookup table from integers to their positions in a list of tokens.

    If ``hashed``, the bucket is computed by `hash_bucket`; otherwise it is the integer
    modulo the number of buckets. See `StringTable`.
    """

    dtype: dtypes.DType = dtypes.int64

    def __init__(self, tokens: list[int]):
        self.tokens = tokens
        self._order = np.argsort(self.array())
        self._sorted = self.array()[self._order]

    @staticmethod
    def as_token(who: str, name: str, value: Any) -> int:
        """Convert an entry of a vocabulary to an int.

        Raises:
            TypeError: If it is not an integer.
            ValueError: If it does not fit into int64.
        """
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"{who}: {name} must be an integer, got {value!r:.60}")
        number = int(value)
        if not dtypes.int64.min <= number <= dtypes.int64.max:
            raise ValueError(f"{who}: {name} must fit into int64, got {value!r:.60}")
        return number

    @staticmethod
    def as_keys(who: str, inputs: Any) -> Tensor:
        """Convert inputs to int64; raise ``TypeError`` for strings."""
        keys = convert_to_tensor(inputs)
        if keys.dtype == dtypes.string:
            raise TypeError(f"{who}: inputs must be integers, got strings")
        return cast(keys, dtypes.int64)

    def positions(
        self, keys: Tensor, buckets: int, hashed: bool, salt: list[int] | None
    ) -> Tensor:
        """Look up the positions of keys: int64, in their shape."""
        if keys.shape.rank == 0:
            return self.positions(expand_dims(keys, 0), buckets, hashed, salt)[0]
        size = len(self.tokens)
        absent: Any = size
        if buckets > 1:
            bucket = hash_bucket(keys, buckets, salt) if hashed else keys % buckets
            absent = bucket + size
        if not size:
            return zeros_like(keys) + absent
        at = minimum(cast(searchsorted(self._sorted, keys), dtypes.int64), size - 1)
        is_token = equal(gather(self._sorted, at), keys)
        if not buckets:
            assert_true(
                reduce_all(is_token),
                "with num_oov_indices=0 all inputs must be in the vocabulary; pass "
                "num_oov_indices=1 to accept others. The inputs:",
                [keys],
            )
        return where(is_token, gather(self._order, at), absent)

    def array(self) -> np.ndarray:
        """Return the tokens as an array."""
        return np.array(self.tokens, np.int64)


def hash_bucket(keys: Tensor, buckets: int, salt: Any = None) -> Tensor:
    """Hash strings or integers: FarmHash of the text, SipHash with a salt."""
    if keys.dtype != dtypes.string:
        keys = as_string(keys)
    if salt is None:
        return to_hash_bucket_fast(keys, buckets)
    return to_hash_bucket_strong(keys, buckets, salt)


# -------------------------------------------------------------------- counts of tokens


class TokenCounts:
    """Token counts, and document counts per token if ``by_document``."""

    def __init__(self, by_document: bool):
        self.tokens: Counter = Counter()
        self.documents: Counter = Counter()
        self.number, self.by_document = 0, by_document

    def add(self, rows: Iterable[list[Any]]) -> None:
        """Count the tokens in some documents."""
        for row in rows:
            self.tokens.update(row)
            if self.by_document:
                self.documents.update(set(row))
            self.number += 1

    def most_common(self, count: int | None, special: Iterable[Any]) -> list[Any]:
        """Return tokens by descending frequency, ties in descending order.

        Tokens in ``special`` are left out.
        """
        tokens = self.tokens.keys() - set(special)
        order = sorted(tokens, key=lambda x: (self.tokens[x], x), reverse=True)
        return order[:count]

    def idf_weights(self, tokens: list[Any]) -> np.ndarray:
        """Return ``log(1 + documents / (1 + count))`` for each token.

        ``count`` is the number of documents that contain the token.
        """
        counts = np.array([self.documents[token] for token in tokens], np.float64)
        return np.log(1 + self.number / (1 + counts))


def batches_of(who: str, data: Any, steps: int | None) -> Iterator[Any]:
    """Iterate over the batches of a dataset; an array, list or tensor is one batch.

    The rows of a batch are documents.

    Raises:
        TypeError: If a batch has several tensors, or ``data`` is another object.
    """
    is_array = is_tensor(data) or hasattr(data, "__array__")
    if is_array or isinstance(data, list | tuple | RaggedTensor):
        if not isinstance(data, RaggedTensor):
            data = convert_to_tensor(data)
            data = data[:, None] if data.shape.rank == 1 else data
        yield data
        return
    if not hasattr(data, "__iter__"):
        raise TypeError(
            f"{who}: data must be an array, a list or an iterable of batches, got "
            f"{type(data).__name__}"
        )
    for i, batch in enumerate(data):
        if steps is not None and i >= steps:
            return
        if isinstance(batch, tuple | dict) or is_nested(batch) and _has_tensors(batch):
            raise TypeError(
                f"{who}: each batch of data must be one tensor, got a "
                f"{type(batch).__name__}; map the dataset to its texts first"
            )
        yield batch


def _has_tensors(batch):
    return any([is_tensor(x) or hasattr(x, "shape") for x in batch])


# ------------------------------------------------------------------------------- files


def read_lines(who: str, path: str) -> list[bytes]:
    """Read the lines of a token file, without line ends.

    Raises:
        ValueError: If the file does not exist.
    """
    if not os.path.isfile(path):
        raise ValueError(f"{who}: the vocabulary file {path!r} does not exist")
    with open(path, "rb") as file:
        return lines_of(file.read())


def lines_of(text: bytes) -> list[bytes]:
    """Split a text into lines; the last line may lack a line break."""
    return text.replace(b"\r\n", b"\n").removesuffix(b"\n").split(b"\n")
