"""Strings in parts: words, bytes, characters, and their n-grams."""

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
    """The parts of each string between separators.

    Args: ``sep``: the separator; None or "" is any run of white space of ASCII, none at
    the ends; ``maxsplit``: the largest number of cuts, -1 for any.

    Returns: for one string a tensor ``[parts]``, for a vector of strings a
    `RaggedTensor` with a row for each.

    Raises: `ShapeError` for more than one axis.

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
    """Packed rows as a `RaggedTensor`, that of one string as a tensor."""
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
    """The bytes of each string, as strings of one byte; the result is as of `split`.

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
    """The characters of each string, in its encoding; the result is as of `split`.

    Args: see `unicode_transcode`.

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
        found = decoded("unicode_split", text, encoding, errors, replacement_char)
        return pack([each.encode(ENCODINGS[encoding]) for each in found])

    return map_text(characters, input)


def unicode_decode(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Tensor | RaggedTensor:
    """The code points of strings, int32. Not in traced functions.

    Args: see `unicode_transcode`.

    Returns: for one string a tensor ``[characters]``, for a vector of strings a
    `RaggedTensor` with a row for each.

    Raises: `ShapeError` for more than one axis.

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
    """The code points of strings and the places of their first bytes, int32 and int64.

    Args, result and errors: see `unicode_decode`. Not in traced functions.

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
    """The characters of `unicode_split` and the places of their first bytes, int64.

    Not in traced functions.

    Example:
        >>> characters, offsets = tw.strings.unicode_split_with_offsets(["ëa", "b"], "UTF-8")
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
    """Values of one string, or a row for each string."""
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
    """The place of the first byte of each character of all strings."""
    options = encoding, errors, replacement_char, replace_control_characters
    texts = input.ravel().tolist()
    rows = [character_offsets("unicode_offsets", x, *options) for x in texts]
    return np.array([place for row in rows for _, place in row], np.int64)


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
    """Strings of code points: int32 ``[..., characters]`` gives strings ``[...]``.

    Args: ``output_encoding``: "UTF-8", "UTF-16-BE" or "UTF-32-BE"; ``errors``:
    "replace" by ``replacement_char`` what is no code point, "ignore" it, or raise
    ("strict").

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
            f"unicode_encode: {code} is no code point of Unicode"
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
    """``ngram_width`` strings that follow each other in a row, put together.

    Args: ``data``: a vector, a matrix or a `RaggedTensor` of strings; ``ngram_width``:
    a number or several, whose n-grams come one kind after the other; ``separator``:
    stands between two; ``pad_values``: what is put before and behind each row, one
    string or two, so often that each string is the first and the last of an n-gram, or
    ``padding_width`` times at most; ``preserve_short_sequences``: a row too short for
    all widths is one n-gram.

    Returns: what ``data`` is; the rows of a matrix are filled up with "".

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
        return from_packed(_ngrams(data.packed, **options))
    data = convert_to_tensor(data, dtypes.string)
    if data.shape.rank not in (1, 2):
        raise ShapeError("ngrams", "data must have one or two axes", data=data)
    size = data.shape[-1]
    count = len(_ngrams_of([b""] * size, **options)) if type(size) is int else None
    rows = data if data.shape.rank == 2 else expand_dims(data, 0)
    found = from_packed(_ngrams(_pack_rows(rows), **options))
    found = found.to_tensor(shape=(None, count))
    return found if data.shape.rank == 2 else found[0]


def _as_latin(text):
    """Bytes as an attribute, which is text, with one character for each."""
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
    join, found = separator.encode("latin-1").join, []
    for width in widths:
        times = min(padding, width - 1)
        padded = left * times + row + right * times
        found += [join(padded[i : i + width]) for i in range(len(padded) - width + 1)]
    if keep and row and not found:
        found.append(join(left * padding + row + right * padding))
    return found
