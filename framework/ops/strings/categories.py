"""Strings and integers as categories: positions in a vocabulary, buckets of crosses.

The tokens of a vocabulary are packed into one string. Its table is built on first use,
and kept for later calls.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import repeat

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.primitive import primitive
from tapewright.core.rules import (
    batch_leading,
    check_at_least,
    checked_broadcast,
)
from tapewright.core.tensor import Tensor, TensorSpec, new_tensor
from tapewright.core.text import make_text
from tapewright.core.typing import IntLike, ShapeLike, TensorLike

from .entries import string_op
from .fingerprints import CROSS_KEY, cat, farm, sip
from .packing import pack, unpack

TABLES = 128  # kept at a time


def pack_vocabulary(tokens: Sequence[bytes]) -> Tensor:
    """Pack the tokens of a vocabulary into one string, a scalar."""
    return new_tensor(make_text([pack(tokens)], ()))


@functools.lru_cache(TABLES)
def _table(packed):
    """Return a dictionary from token to position.

    Bytes cache their hash, so that looking the packed vocabulary up again is fast.
    """
    return {token: i for i, token in enumerate(unpack(packed))}


def _positions(entries, packed, num_buckets, salt):
    table = _table(packed)
    looked_up = map(table.get, entries, repeat(-1))  # a loop in C
    positions = np.fromiter(looked_up, np.int64, len(entries))
    absent = np.flatnonzero(positions < 0)
    if not absent.size:
        return positions
    positions[absent] = len(table)
    if num_buckets == 1:
        return positions
    texts = [entries[i] for i in absent.tolist()]
    if not num_buckets:
        some = sorted(set(texts))[:5]
        raise InvalidArgumentError(
            f"with num_oov_indices=0 all inputs must be in the vocabulary, but {some} "
            f"{'are' if len(some) > 1 else 'is'} not; give num_oov_indices=1"
        )
    hashed = sip(texts, salt) if salt else farm(texts)
    positions[absent] += (hashed % np.uint64(num_buckets)).astype(np.int64)
    return positions


@primitive(
    name="vocabulary_lookup",
    type_name="LookupTableFindV2",
    kinds="O",
    no_gradient=True,
    may_raise=True,
    batch=batch_leading,
)
def vocabulary_lookup(
    xp,
    input: TensorLike,
    vocabulary: TensorLike,
    num_buckets: IntLike = 1,
    salt: ShapeLike = (),
):
    """Look up the position of each string in a vocabulary: int64, shaped like ``input``.

    Args:
        input: Strings, of any shape.
        vocabulary: Packed vocabulary of `pack_vocabulary`.
        num_buckets: Number of buckets for strings outside the vocabulary: their index
            is the size of the vocabulary plus the bucket, the hash modulo
            ``num_buckets``.
        salt: Two integers, to hash with SipHash instead of FarmHash.

    Raises:
        InvalidArgumentError: If a string is not in the vocabulary and there are no
            buckets.

    Example:
        >>> from tapewright.ops.strings.categories import pack_vocabulary
        >>> from tapewright.ops.strings.categories import vocabulary_lookup
        >>> vocabulary_lookup(["b", "c"], pack_vocabulary([b"a", b"b"])).numpy()
        array([1, 2])
    """
    entries = input.ravel().tolist()
    positions = _positions(entries, vocabulary.item(), num_buckets, salt)
    return positions.reshape(input.shape)


@vocabulary_lookup.infer
def _(input, vocabulary, num_buckets, salt):
    return TensorSpec(input.shape, dtypes.int64)


@primitive(
    name="vocabulary_counts",
    kinds="O",
    no_gradient=True,
    may_raise=True,
    grows=True,
    batch=batch_leading,
)
def vocabulary_counts(
    xp,
    rows: TensorLike,
    vocabulary: TensorLike,
    size: IntLike,
    num_buckets: IntLike = 1,
    salt: ShapeLike = (),
):
    """Count each position of `vocabulary_lookup` in each packed row.

    ``size`` is the size of the vocabulary.

    Shapes:
        Rows ``[...]``, counts ``[..., size + num_buckets]``, int64.

    Example:
        >>> from tapewright.ops.strings.categories import pack_vocabulary
        >>> from tapewright.ops.strings.categories import vocabulary_counts
        >>> from tapewright.ops.strings.splitting import split
        >>> vocabulary = pack_vocabulary([b"a", b"b"])
        >>> vocabulary_counts(split(["b c b", ""])._tw_packed, vocabulary, 2).numpy()
        array([[0, 2, 1],
               [0, 0, 0]])
    """
    lists, width = [unpack(row) for row in rows.ravel().tolist()], size + num_buckets
    entries = [entry for row in lists for entry in row]
    positions = _positions(entries, vocabulary.item(), num_buckets, salt)
    sizes = np.fromiter(map(len, lists), np.int64, len(lists))
    positions += np.repeat(np.arange(len(lists)) * width, sizes)
    counts = np.bincount(positions, minlength=len(lists) * width)
    return counts.reshape(*rows.shape, width)


@vocabulary_counts.infer
def _(rows, vocabulary, size, num_buckets, salt):
    return TensorSpec([*rows.shape, size + num_buckets], dtypes.int64)


# --------------------------------------------------------------------------- crosses


@string_op(name="fingerprint", result_dtype=dtypes.int64)
def fingerprint(xp, input: TensorLike):
    """Compute the 64-bit FarmHash fingerprint of each string: int64.

    Example:
        >>> from tapewright.ops.strings.categories import fingerprint
        >>> fingerprint("a").numpy()
        np.int64(-5528939962900187677)
    """
    return farm(input.ravel().tolist()).view(np.int64).reshape(input.shape)


@primitive(
    name="hashed_cross",
    type_name="SparseCrossHashed",
    kinds="i",
    no_gradient=True,
    may_raise=True,
    batch=batch_leading,
)
def hashed_cross(xp, *inputs: TensorLike, num_buckets: IntLike):
    """Hash each combination of integers to one of ``num_buckets``: int64.

    Strings are passed as their `fingerprint`. The numbers agree with TensorFlow's
    ``tf.sparse.cross_hashed``. The shapes broadcast.
    """
    hashed = CROSS_KEY
    for each in xp.broadcast_arrays(*inputs):
        hashed = cat(hashed, each.ravel().astype(np.uint64))
    shape = np.broadcast_shapes(*[x.shape for x in inputs])
    return (hashed % num_buckets).astype(np.int64).reshape(shape)


@hashed_cross.infer
def _(*inputs, num_buckets):
    check_at_least("hashed_cross", 1, num_buckets=num_buckets)
    shape = checked_broadcast("hashed_cross", *[x.shape for x in inputs])
    return TensorSpec(shape, dtypes.int64)
