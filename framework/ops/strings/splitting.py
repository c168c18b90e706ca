"""Split strings into words, bytes and characters, and build n-grams."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.primitive import primitive
from tapewright.core.rules import batch_leading, check_at_least
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.text import make_text, to_bytes
from tapewright.core.typing import IntLike, ShapeLike, TensorLike

from ..array.shape import expand_dims
from ..ragged.ragged_tensor import RaggedTensor, from_packed
from .characters import (
    ENCODINGS,
    character_offsets,
    check_character,
    check_encoding,
    decoded,
)
from .entries import map_text, string_op
from .packing import pack, packed_values, refuse_to_map, unpack

__all__ = [
    "bytes_split",
    "ngrams",
    "split",
    "unicode_decode",
    "unicode_decode_with_offsets",
    "unicode_encode",
    "unicode_split",
    "unicode_split_with_offsets",
]


def split(
    input: TensorLike,
    sep: str | None = None,
    maxsplit: int = -1,
    name: str | None = None,
) -> Tensor | RaggedTensor:
    """Split each string at a separator.

    Args:
        input: A string, or a vector of strings.
        sep: Separator; None or "" splits at runs of ASCII whitespace, which are also
            stripped from the ends.
        maxsplit: Largest number of splits, -1 for no limit.

    Returns:
        For one string a tensor ``[parts]``, for a vector of strings a `RaggedTensor`
        with a row for each.

    Raises:
        ShapeError: If ``input`` has more than one axis.

    Example:
        >>> tw.strings.split("a b  c").numpy().tolist()
        [b'a', b'b', b'c']
        >>> tw.strings.split(["a,b", ""], sep=",").to_list()
        [[b'a', b'b'], [b'']]
    """
    sep = _as_latin(sep or "")
    return _rows("split", input, lambda x: _split(x, sep, maxsplit))


@string_op(name="string_split", type_name="StringSplitV2")
def _split(xp, input: TensorLike, sep: str = "", maxsplit: IntLike = -1):
    sep = sep.encode("latin-1") or None
    return map_text(lambda text: pack(text.split(sep, maxsplit)), input)


def _rows(who, input, op):
    """Convert packed rows to a `RaggedTensor`, or the row of a scalar string to a tensor."""
    input = convert_to_tensor(input, dtypes.string)
    if input.shape.rank == 0:
        return packed_values(op(input))
    if input.shape.rank != 1:
        raise ShapeError(
            who,
            "input must be one string, or have one axis: rows of rows are not "
            "supported; reshape it to [n]",
            input=input,
        )
    return from_packed(op(input))


def bytes_split(input: TensorLike, name: str | None = None) -> Tensor | RaggedTensor:
    """Split each string into bytes, strings of length 1.

    Args:
        input: A string, or a vector of strings.

    Returns:
        For one string a tensor ``[parts]``, for a vector of strings a `RaggedTensor`
        with a row for each.

    Raises:
        ShapeError: If ``input`` has more than one axis.

    Example:
        >>> tw.strings.bytes_split("abc").numpy().tolist()
        [b'a', b'b', b'c']
    """
    return _rows("bytes_split", input, _bytes_split)


@string_op(name="bytes_split")
def _bytes_split(xp, input: TensorLike):
    return map_text(lambda text: pack([bytes([byte]) for byte in text]), input)


def unicode_split(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Tensor | RaggedTensor:
    """Split each string into its Unicode characters.

    Args:
        input: A string, or a vector of strings.
        input_encoding: Encoding of the strings: "UTF-8" (or "UTF8"), "UTF-16-BE",
            "UTF-32-BE", "US-ASCII" or "ISO-8859-1".
        errors: Treatment of invalid bytes: "replace" them with ``replacement_char``,
            "ignore" them, or raise ("strict").
        replacement_char: Code point of the replacement.

    Returns:
        For one string a tensor ``[parts]``, for a vector of strings a `RaggedTensor`
        with a row for each.

    Raises:
        ShapeError: If ``input`` has more than one axis.

    Example:
        >>> [x.decode() for x in tw.strings.unicode_split("Zoë", "UTF-8").numpy()]
        ['Z', 'o', 'ë']
    """
    check_encoding("unicode_split", "input_encoding", input_encoding, errors)
    check_character("unicode_split", replacement_char)
    options = input_encoding, errors, replacement_char
    return _rows("unicode_split", input, lambda x: _unicode_split(x, *options))


@string_op(name="unicode_split", may_raise=True)
def _unicode_split(
    xp, input: TensorLike, encoding: str, errors: str, replacement_char: IntLike
):
    def characters(text):
        pieces = decoded("unicode_split", text, encoding, errors, replacement_char)
        return pack([each.encode(ENCODINGS[encoding]) for each in pieces])

    return map_text(characters, input)


def unicode_decode(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Tensor | RaggedTensor:
    """Decode each string to the code points of its characters, int32.

    Not available in traced functions.

    Args:
        input: A string, or a vector of strings.
        input_encoding: Encoding of the strings: "UTF-8" (or "UTF8"), "UTF-16-BE",
            "UTF-32-BE", "US-ASCII" or "ISO-8859-1".
        errors: Treatment of invalid bytes: "replace" them with ``replacement_char``,
            "ignore" them, or raise ("strict").
        replacement_char: Code point of the replacement.
        replace_control_characters: If True, treat the characters 0 to 31 as invalid.

    Returns:
        For one string a tensor ``[characters]``, for a vector of strings a
        `RaggedTensor` with a row for each.

    Raises:
        ShapeError: If ``input`` has more than one axis.

    Example:
        >>> tw.strings.unicode_decode("Zoë", "UTF-8").numpy()
        array([ 90, 111, 235], dtype=int32)
        >>> tw.strings.unicode_decode(["ab", ""], "UTF-8")
        <tf.RaggedTensor [[97, 98], []]>
    """
    options = input_encoding, errors, replacement_char, replace_control_characters
    input = _checked_text("unicode_decode", input, *options)
    return _rows_of(input, *_unicode_decode(input, *options))


def unicode_decode_with_offsets(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor] | tuple[RaggedTensor, RaggedTensor]:
    """Decode each string to code points, and the offsets of their first bytes.

    Not available in traced functions.

    Args:
        input: A string, or a vector of strings.
        input_encoding: Encoding of the strings: "UTF-8" (or "UTF8"), "UTF-16-BE",
            "UTF-32-BE", "US-ASCII" or "ISO-8859-1".
        errors: Treatment of invalid bytes: "replace" them with ``replacement_char``,
            "ignore" them, or raise ("strict").
        replacement_char: Code point of the replacement.
        replace_control_characters: If True, treat the characters 0 to 31 as invalid.

    Returns:
        ``(code_points, offsets)``, int32 and int64; see `unicode_decode`.

    Raises:
        ShapeError: If ``input`` has more than one axis.

    Example:
        >>> points, offsets = tw.strings.unicode_decode_with_offsets("Zoë!", "UTF-8")
        >>> offsets.numpy()
        array([0, 1, 2, 4])
    """
    options = input_encoding, errors, replacement_char, replace_control_characters
    input = _checked_text("unicode_decode_with_offsets", input, *options)
    points, lengths = _unicode_decode(input, *options)
    offsets = _unicode_offsets(input, *options)
    return _rows_of(input, points, lengths), _rows_of(input, offsets, lengths)


def unicode_split_with_offsets(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> tuple[Tensor, Tensor] | tuple[RaggedTensor, RaggedTensor]:
    """Split each string into Unicode characters, and the offsets of their first bytes.

    Not available in traced functions.

    Args:
        input: A string, or a vector of strings.
        input_encoding: Encoding of the strings: "UTF-8" (or "UTF8"), "UTF-16-BE",
            "UTF-32-BE", "US-ASCII" or "ISO-8859-1".
        errors: Treatment of invalid bytes: "replace" them with ``replacement_char``,
            "ignore" them, or raise ("strict").
        replacement_char: Code point of the replacement.

    Returns:
        ``(characters, offsets)``, strings and int64; see `unicode_split`.

    Raises:
        ShapeError: If ``input`` has more than one axis.

    Example:
        >>> strings = ["ëa", "b"]
        >>> characters, offsets = tw.strings.unicode_split_with_offsets(strings, "UTF-8")
        >>> offsets
        <tf.RaggedTensor [[0, 2], [0]]>
    """
    options = input_encoding, errors, replacement_char
    input = _checked_text("unicode_split_with_offsets", input, *options)
    _, lengths = _unicode_decode(input, *options, False)
    offsets = _rows_of(input, _unicode_offsets(input, *options, False), lengths)
    return unicode_split(input, *options), offsets


def _checked_text(who, input, encoding, errors, replacement_char, *_):
    check_encoding(who, "input_encoding", encoding, errors)
    check_character(who, replacement_char)
    input = convert_to_tensor(input, dtypes.string)
    if input.shape.rank not in (0, 1):
        raise ShapeError(who, "input must be one string, or have one axis", input=input)
    return input


def _rows_of(input, values, lengths):
    """Return the values of one string, or a row for each string."""
    if input.shape.rank == 0:
        return values
    return RaggedTensor.from_row_lengths(values, lengths)


@primitive(
    name="unicode_decode", kinds="O", no_gradient=True, may_raise=True, multiple=True
)
def _unicode_decode(
    xp,
    input: TensorLike,
    encoding: str,
    errors: str,
    replacement_char: IntLike,
    replace_control_characters: bool,
):
    options = encoding, errors, replacement_char, replace_control_characters
    rows = [decoded("unicode_decode", x, *options) for x in input.ravel().tolist()]
    points = np.array([ord(x) for row in rows for x in row], np.int32)
    lengths = np.array([len(row) for row in rows], np.int64)
    return points, lengths.reshape(input.shape)


_unicode_decode.batch(refuse_to_map)


@_unicode_decode.infer
def _(input, encoding, errors, replacement_char, replace_control_characters):
    lengths = TensorSpec(input.shape, dtypes.int64)
    return TensorSpec([None], dtypes.int32), lengths


@primitive(name="unicode_offsets", kinds="O", no_gradient=True, may_raise=True)
def _unicode_offsets(
    xp,
    input: TensorLike,
    encoding: str,
    errors: str,
    replacement_char: IntLike,
    replace_control_characters: bool,
):
    """Return the offset of the first byte of each character of all strings."""
    options = encoding, errors, replacement_char, replace_control_characters
    texts = input.ravel().tolist()
    rows = [character_offsets("unicode_offsets", x, *options) for x in texts]
    return np.array([offset for row in rows for _, offset in row], np.int64)


_unicode_offsets.batch(refuse_to_map)


@_unicode_offsets.infer
def _(input, encoding, errors, replacement_char, replace_control_characters):
    return TensorSpec([None], dtypes.int64)


@primitive(
    name="unicode_encode",
    type_name="UnicodeEncode",
    kinds="i",
    no_gradient=True,
    may_raise=True,
    batch=batch_leading,
)
def unicode_encode(
    xp,
    input: TensorLike,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: IntLike = 65533,
):
    """Encode code points as strings: int32 ``[..., characters]`` to strings ``[...]``.

    Args:
        input: Code points, int32 ``[..., characters]``.
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: Treatment of invalid code points: "replace" them with
            ``replacement_char``, "ignore" them, or raise ("strict").
        replacement_char: Code point of the replacement.

    Example:
        >>> tw.strings.unicode_encode([90, 111, 235], "UTF-8").numpy().decode()
        'Zoë'
    """
    check_encoding("unicode_encode", "output_encoding", output_encoding, errors)
    check_character("unicode_encode", replacement_char)
    *lead, size = input.shape
    rows = input.reshape(math.prod(lead), size).tolist()
    codec = ENCODINGS[output_encoding]
    instead = chr(replacement_char) if errors == "replace" else ""
    texts = [
        "".join([_character(x, errors, instead) for x in row]).encode(codec)
        for row in rows
    ]
    return make_text(texts, tuple(lead))


def _character(code, errors, instead):
    if 0 <= code < 0x110000 and not 0xD800 <= code < 0xE000:
        return chr(code)
    if errors == "strict":
        raise InvalidArgumentError(
            f"unicode_encode: {code} is not a Unicode code point"
        )
    return instead


@unicode_encode.infer
def _(input, output_encoding, errors, replacement_char):
    if input.shape.rank == 0:
        raise ShapeError("unicode_encode", "input must have an axis", input=input)
    return TensorSpec(input.shape[:-1], dtypes.string)


# --------------------------------------------------------------------------- n-grams


def ngrams(
    data: TensorLike | RaggedTensor,
    ngram_width: int | Sequence[int],
    separator: str = " ",
    pad_values: str | tuple[str, str] | None = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Tensor | RaggedTensor:
    """Build n-grams: join every ``ngram_width`` consecutive strings of a row.

    Args:
        data: Vector, matrix or `RaggedTensor` of strings.
        ngram_width: Number of strings of an n-gram, or several numbers, to build the
            n-grams of each in turn.
        separator: String between two joined strings.
        pad_values: Padding before and after each row, one string or two, or None. Rows
            are padded so that each string is the first and the last of an n-gram.
        padding_width: Largest number of padding strings on each side, or None for no
            limit.
        preserve_short_sequences: If True, a row that is too short for all widths
            becomes one n-gram.

    Returns:
        N-grams in the form of ``data``; the rows of a matrix are padded with "".

    Example:
        >>> tw.strings.ngrams(["a", "b", "c"], 2).numpy().tolist()
        [b'a b', b'b c']
        >>> tw.strings.ngrams(tw.strings.split(["a b", "c"]), (1, 2)).to_list()
        [[b'a', b'b', b'a b'], [b'c']]
    """
    widths = (ngram_width,) if isinstance(ngram_width, int) else tuple(ngram_width)
    check_at_least("ngrams", 1, ngram_width=min(widths, default=0))
    if padding_width is not None:
        check_at_least("ngrams", 1, padding_width=padding_width)
        if pad_values is None:
            raise InvalidArgumentError("ngrams: padding_width needs pad_values")
    pads = pad_values
    if isinstance(pads, str | bytes):
        pads = pads, pads
    left, right = ("", "") if pads is None else [_as_latin(pad) for pad in pads]
    options = {
        "widths": widths,
        "separator": _as_latin(separator),
        "left": left,
        "right": right,
        "padding": 0 if pads is None else padding_width or max(widths),
        "keep": preserve_short_sequences,
    }
    if isinstance(data, RaggedTensor):
        return from_packed(_ngrams(data._tw_packed, **options))
    data = convert_to_tensor(data, dtypes.string)
    if data.shape.rank not in (1, 2):
        raise ShapeError("ngrams", "data must have one or two axes", data=data)
    size = data.shape[-1]
    count = len(_ngrams_of([b""] * size, **options)) if type(size) is int else None
    rows = data if data.shape.rank == 2 else expand_dims(data, 0)
    ngrams = from_packed(_ngrams(_pack_rows(rows), **options))
    ngrams = ngrams.to_tensor(shape=(None, count))
    return ngrams if data.shape.rank == 2 else ngrams[0]


def _as_latin(text):
    """Return bytes as text with one character per byte, for an attribute."""
    return to_bytes(text).decode("latin-1")


@primitive(name="pack_matrix", kinds="O", no_gradient=True, batch=batch_leading)
def _pack_rows(xp, data: TensorLike):
    *lead, size = data.shape
    rows = data.reshape(math.prod(lead), size).tolist()
    return make_text([pack(row) for row in rows], tuple(lead))


@_pack_rows.infer
def _(data):
    return TensorSpec(data.shape[:-1], dtypes.string)


@string_op(name="string_n_grams", type_name="StringNGrams")
def _ngrams(
    xp,
    packed: TensorLike,
    widths: ShapeLike,
    separator: str,
    left: str,
    right: str,
    padding: IntLike,
    keep: bool,
):
    options = widths, separator, left, right, padding, keep
    return map_text(lambda row: pack(_ngrams_of(unpack(row), *options)), packed)


def _ngrams_of(row, widths, separator, left, right, padding, keep):
    left, right = [left.encode("latin-1")], [right.encode("latin-1")]
    join, ngrams = separator.encode("latin-1").join, []
    for width in widths:
        times = min(padding, width - 1)
        padded = left * times + row + right * times
        ngrams += [join(padded[i : i + width]) for i in range(len(padded) - width + 1)]
    if keep and row and not ngrams:
        ngrams.append(join(left * padding + row + right * padding))
    return ngrams
