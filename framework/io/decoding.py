"""Decoding of strings: raw bytes, comma-separated values, base64."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.dtypes import as_dtype
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.tensor import TensorSpec
from tapewright.core.text import make_text
from tapewright.ops.strings.numbers import column_defaults
from tapewright.storage.records.columns import Columns

from .host_ops import host_op, text_tensor, texts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, TensorLike

RAW = (
    "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 complex64 complex128 "
    "bool bfloat16"
).split()


def decode_raw(
    input_bytes: TensorLike,
    out_type: DTypeLike,
    little_endian: bool = True,
    fixed_length: int | None = None,
) -> Tensor:
    """Decode the bytes of strings as numbers.

    Args:
        input_bytes: Strings. Without ``fixed_length`` they must have the same length.
        out_type: Dtype of the numbers.
        little_endian: Byte order of the numbers.
        fixed_length: Number of bytes to which strings are truncated or padded with
            zeros, or None.

    Shapes:
        Strings ``[...]``, result ``[..., n]``.

    Raises:
        InvalidArgumentError: If the lengths differ or do not fit the dtype (also a
            ``ValueError``).

    Example:
        >>> tw.io.decode_raw([b"\\x01\\x00", b"\\x02\\x01"], "int16").numpy()
        array([[  1],
               [258]], dtype=int16)
    """
    strings = text_tensor("decode_raw", "input_bytes", input_bytes)
    dtype = as_dtype(out_type)
    if dtype.name not in RAW:
        raise TypeError(
            f"decode_raw: out_type must be a numeric dtype, got {dtype.name}"
        )
    numbers = np.dtype(dtype.as_numpy_dtype)
    if fixed_length is not None and (
        fixed_length <= 0 or fixed_length % numbers.itemsize
    ):
        raise InvalidArgumentError(
            f"decode_raw: fixed_length must be a multiple of {numbers.itemsize}, the size of "
            f"{dtype.name}, got {fixed_length}"
        )
    order = numbers.newbyteorder("<" if little_endian else ">")

    def call(strings):
        rows, length = texts(strings), fixed_length
        if length is None:
            length = len(rows[0]) if rows else 0
            different = [len(row) for row in rows if len(row) != length]
            if different:
                raise InvalidArgumentError(
                    f"decode_raw: all strings must have the same length, got {length} and "
                    f"{different[0]}; pass fixed_length to pad them"
                )
            if length % numbers.itemsize:
                raise InvalidArgumentError(
                    f"decode_raw: the length must be a multiple of {numbers.itemsize}, the "
                    f"size of {dtype.name}, got {length} bytes"
                )
        data = b"".join([row[:length].ljust(length, b"\0") for row in rows])
        shape = (*strings.shape, length // numbers.itemsize)
        if dtype.name == "bool":
            return [np.frombuffer(data, np.uint8).astype(bool).reshape(shape)]
        return [np.frombuffer(data, order).astype(numbers).reshape(shape)]

    count = None if fixed_length is None else fixed_length // numbers.itemsize
    spec = TensorSpec((*strings.shape, count), dtype)
    return host_op("decode_raw", call, [strings], [spec])[0]


def decode_csv(
    records: TensorLike,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Tensor]:
    """Parse rows of comma-separated values into a list of columns.

    Args:
        records: Strings, each a row.
        record_defaults: For each column the value of fields that are empty or equal
            ``na_value``, which also determines the dtype: float32, float64, int32,
            int64 or string. A dtype or an empty tensor makes the column required.
        field_delim: Separator of the fields.
        use_quote_delim: If True, fields may be in double quotes (RFC 4180).
        na_value: Additional text of missing fields.
        select_cols: Indices of the columns to return, ascending, or None for all.

    Returns:
        List of tensors with the shape of ``records``, one for each column.

    Raises:
        InvalidArgumentError: If the number of fields differs, a field is not a number,
            or a required field is empty (also a ``ValueError``).

    Example:
        >>> [x.numpy().tolist() for x in tw.io.decode_csv(["1,a", ",b"], [[7], ["x"]])]
        [[1, 7], [b'a', b'b']]
    """
    rows = text_tensor("decode_csv", "records", records)
    defaults = column_defaults(record_defaults)
    columns = Columns(
        "decode_csv", defaults, field_delim, use_quote_delim, na_value, select_cols
    )

    def call(strings):
        return columns.arrays(texts(strings), strings.shape)

    kinds = {default.dtype for default in defaults}
    spec_of = {dtype: TensorSpec(rows.shape, dtype) for dtype in kinds}
    specs = [spec_of[default.dtype] for default in defaults]
    return list(host_op("decode_csv", call, [rows], specs))


def encode_base64(input: TensorLike, pad: bool = False) -> Tensor:
    """Encode strings in web-safe base64 (RFC 4648, section 5).

    Args:
        input: Strings of any bytes.
        pad: If True, pad the result with ``=``.

    Example:
        >>> tw.io.encode_base64(b"\\xff\\xfe").numpy(), tw.io.decode_base64("__4").numpy()
        (b'__4', b'\\xff\\xfe')
    """

    def encode(text):
        encoded = base64.urlsafe_b64encode(text)
        return encoded if pad else encoded.rstrip(b"=")

    return _each("encode_base64", input, encode)


def decode_base64(input: TensorLike) -> Tensor:
    """Decode strings in web-safe base64, with or without padding.

    Args:
        input: Strings in base64.

    Raises:
        InvalidArgumentError: If a string has invalid characters or an invalid length
            (also a ``ValueError``).

    Example:
        >>> tw.io.decode_base64("dGFwZQ").numpy()
        b'tape'
    """

    def decode(text):
        kept = text.rstrip(b"=")
        is_padded = (
            len(text) == len(kept) or not len(text) % 4 and len(text) - len(kept) < 3
        )
        if not is_padded or len(kept) % 4 == 1 or not re.fullmatch(rb"[\w-]*", kept):
            raise InvalidArgumentError(
                f"decode_base64: input must be web-safe base64 (RFC 4648), got {text[:40]!r}"
            )
        return base64.urlsafe_b64decode(kept + b"=" * (-len(kept) % 4))

    return _each("decode_base64", input, decode)


def _each(who, strings, function):
    strings = text_tensor(who, "input", strings)

    def call(array):
        return [make_text([function(text) for text in texts(array)], array.shape)]

    return host_op(who, call, [strings], [TensorSpec(strings.shape, "string")])[0]
