"""Convert numbers to text and text to numbers, and hash text into buckets."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Annotated, Any, Unpack

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.op_definition.traits import ElementwiseTraits
from tapewright.core.rules import check_at_least, check_choice
from tapewright.core.tensor import Tensor, to_array
from tapewright.core.text import is_text, make_text
from tapewright.core.typing import DTypeLike, IntLike, TensorLike

from .entries import map_numbers, map_text, string_op
from .fingerprints import farm, murmur, sip

__all__ = [
    "as_string",
    "to_hash_bucket",
    "to_hash_bucket_fast",
    "to_hash_bucket_strong",
    "to_number",
]


def as_key(value: Sequence[int]) -> tuple[int, int]:
    """Return a key as two plain ints.

    Raises:
        ValueError: If it is not two integers.
    """
    key = tuple([int(word) for word in value])
    if len(key) != 2:
        raise InvalidArgumentError(f"key must be two integers, got {value!r}")
    return key


KeyLike = Annotated[Sequence[int], as_key]
INTEGER = re.compile(rb"\s*[-+]?\d+\s*")
FLOATING = re.compile(
    rb"\s*[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|inf|infinity|nan)\s*", re.IGNORECASE
)


@string_op(
    name="as_string",
    type_name="AsString",
    kinds="biufcO",
    half=False,
    result_dtype=dtypes.string,
    may_raise=True,
)
def as_string(
    xp,
    input: TensorLike,
    precision: IntLike = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: IntLike = -1,
    fill: str = "",
):
    """Format numbers and booleans as strings, with the formats of C's ``printf``.

    Args:
        input: Numbers, booleans or strings, of any shape.
        precision: Number of digits after the decimal point; -1 means 6.
        scientific: If True, use an exponent: ``1.5e+00``.
        shortest: If True, use an exponent where that is shorter.
        width: Smallest number of characters, to which numbers and strings are padded;
            booleans are not padded.
        fill: Padding: "" with spaces in front, "0" with zeros, "-" with spaces behind;
            "+" and " " precede a number that is not negative.

    Example:
        >>> tw.as_string([1.5, 2.0], precision=2).numpy().tolist()
        [b'1.50', b'2.00']
        >>> tw.as_string(7, width=3, fill="0").numpy()
        b'007'
    """
    check_choice("as_string", "fill", fill, ("", " ", "+", "-", "0", "#"))
    if scientific and shortest:
        raise InvalidArgumentError(
            "as_string: only one of scientific and shortest may be True"
        )
    if is_text(input.dtype):
        side = bytes.ljust if fill == "-" else bytes.rjust
        return map_text(lambda text: side(text, max(width, 0)), input)
    kind = input.dtype.kind
    if kind in "iub" and (precision >= 0 or scientific or shortest):
        raise InvalidArgumentError(
            "as_string: precision, scientific and shortest are for floating numbers, got "
            f"{input.dtype}"
        )
    entries = input.ravel().tolist()
    if kind == "b":
        return make_text([str(x).lower().encode() for x in entries], input.shape)
    # As in C: no sign before what has none, no zeros before what is no number.
    sign = "" if kind == "u" and fill in ("+", " ") else fill
    least = f"{width if width >= 0 else ''}"
    digits = f".{precision}" if precision >= 0 else ""
    letter = "d" if kind in "iu" else "e" if scientific else "g" if shortest else "f"
    finite = f"%{sign}{least}{digits}{letter}"
    other = f"%{'' if fill == '0' else sign}{least}{digits}{letter}"

    def number(x):
        return (finite if math.isfinite(x) else other) % x

    if kind == "c":
        texts = [f"({number(x.real)},{number(x.imag)})" for x in entries]
    else:
        texts = [number(x) for x in entries]
    return make_text([text.encode() for text in texts], input.shape)


def to_number(
    input: TensorLike, out_type: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Parse strings as numbers; surrounding whitespace is ignored.

    Args:
        input: Strings, of any shape.
        out_type: float32, float64, int32 or int64.

    Raises:
        InvalidArgumentError: If a string is not a number of that type.

    Example:
        >>> tw.strings.to_number(["1.5", " -2e3"]).numpy()
        array([ 1.5e+00, -2.0e+03], dtype=float32)
    """
    dtype = dtypes.as_dtype(out_type)
    check_choice("to_number", "out_type", dtype.name, tuple(TYPES))
    return TYPES[dtype.name](input)


def _reader(dtype):
    """Return the op `to_number` for one type."""

    @string_op(
        name=f"to_number_{dtype.name}",
        type_name=f"StringToNumber_{dtype.name}",
        result_dtype=dtype,
        may_raise=True,
    )
    def read(xp, input: TensorLike):
        return map_numbers(lambda text: _number(text, dtype), input, dtype.dtype)

    return read


def _number(text, dtype):
    form, convert = (INTEGER, int) if dtype.is_integer else (FLOATING, float)
    # Python reads integers of some 4,300 digits at most.
    if form.fullmatch(text) and not (dtype.is_integer and len(text) > 4000):
        number = convert(text)
        if not dtype.is_integer or dtype.min <= number <= dtype.max:
            return number
    raise InvalidArgumentError(
        f"to_number: {text!r:.60} is not a number of type {dtype.name}"
    )


TYPES = {
    dtype.name: _reader(dtype)
    for dtype in (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64)
}


def column_defaults(record_defaults: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """Return the value of an empty field of each column, an array; empty for a dtype."""
    record_defaults = list(record_defaults)
    objects = {id(each): each for each in record_defaults}  # often one for all columns
    arrays = {key: _column_default(each) for key, each in objects.items()}
    return [arrays[id(each)] for each in record_defaults]


def _column_default(value):
    if isinstance(value, dtypes.DType | np.dtype | type):
        return np.zeros(0, dtypes.as_dtype(value).as_numpy_dtype)
    return to_array(value, module=np)


# --------------------------------------------------------------------------- buckets


def _bucket_op(**traits: Unpack[ElementwiseTraits]):
    own = ElementwiseTraits(result_dtype=dtypes.int64, may_raise=True)
    return string_op(**own | traits)


def _buckets(function, texts, num_buckets):
    check_at_least("to_hash_bucket", 1, num_buckets=num_buckets)
    buckets = function(texts.ravel().tolist()) % np.uint64(num_buckets)
    return buckets.astype(np.int64).reshape(texts.shape)


@_bucket_op(name="to_hash_bucket_fast", type_name="StringToHashBucketFast")
def to_hash_bucket_fast(xp, input: TensorLike, num_buckets: IntLike):
    """Hash strings into buckets: the FarmHash fingerprint modulo ``num_buckets``, int64.

    The numbers agree with TensorFlow on every machine.

    Args:
        input: Strings, of any shape.
        num_buckets: Number of buckets.

    Example:
        >>> tw.strings.to_hash_bucket_fast(["Hello", "TensorFlow", "2.x"], 3).numpy()
        array([0, 2, 2])
    """
    return _buckets(farm, input, num_buckets)


@_bucket_op(name="to_hash_bucket_strong", type_name="StringToHashBucketStrong")
def to_hash_bucket_strong(xp, input: TensorLike, num_buckets: IntLike, key: KeyLike):
    """Hash strings into buckets with a secret key: SipHash-2-4 modulo ``num_buckets``.

    Without the key, it is infeasible to construct strings that fall into one bucket.

    Args:
        input: Strings, of any shape.
        num_buckets: Number of buckets.
        key: Two integers.

    Example:
        >>> tw.strings.to_hash_bucket_strong(["Hello", "TF"], 3, [1, 2]).numpy()
        array([2, 0])
    """
    return _buckets(lambda texts: sip(texts, key), input, num_buckets)


@_bucket_op(name="to_hash_bucket", type_name="StringToHashBucket")
def to_hash_bucket(xp, input: TensorLike, num_buckets: IntLike):
    """Hash strings into buckets: MurmurHash modulo ``num_buckets``, int64.

    Args:
        input: Strings, of any shape.
        num_buckets: Number of buckets.

    Example:
        >>> tw.strings.to_hash_bucket(["Hello", "TensorFlow", "2.x"], 3).numpy()
        array([2, 0, 1])
    """
    return _buckets(murmur, input, num_buckets)
