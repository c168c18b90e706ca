"""Strings as bytes and characters: case, whitespace, lengths, substrings, encodings."""

from __future__ import annotations

import string
from itertools import accumulate
from typing import Any

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.rules import check_choice
from tapewright.core.text import make_text
from tapewright.core.typing import IntLike, TensorLike

from .entries import map_numbers, map_text, string_op

__all__ = [
    "length",
    "lower",
    "strip",
    "substr",
    "unicode_transcode",
    "upper",
]

# Encodings of `unicode_transcode` -> their names in Python.
ENCODINGS = {
    "UTF-8": "utf-8",
    "UTF8": "utf-8",
    "UTF-16-BE": "utf-16-be",
    "UTF-32-BE": "utf-32-be",
    "US-ASCII": "ascii",
    "ISO-8859-1": "latin-1",
}
OUTPUT_ENCODINGS = ("UTF-8", "UTF-16-BE", "UTF-32-BE")
UNITS = ("BYTE", "UTF8_CHAR")
PUNCTUATION = string.punctuation.encode()


@string_op(name="string_lower", type_name="StringLower", may_raise=True)
def lower(xp, input: TensorLike, encoding: str = ""):
    """Convert strings to lower case.

    Args:
        input: Strings, of any shape.
        encoding: "" converts ASCII letters only, "utf-8" all letters.

    Example:
        >>> tw.strings.lower("ÄB").numpy().decode()
        'Äb'
        >>> tw.strings.lower("ÄB", encoding="utf-8").numpy().decode()
        'äb'
    """
    if _is_ascii("lower", encoding):
        return map_text(bytes.lower, input)
    return map_text(lambda text: text.decode(errors="replace").lower().encode(), input)


@string_op(name="string_upper", type_name="StringUpper", may_raise=True)
def upper(xp, input: TensorLike, encoding: str = ""):
    """Convert strings to upper case.

    Args:
        input: Strings, of any shape.
        encoding: "" converts ASCII letters only, "utf-8" all letters.

    Example:
        >>> tw.strings.upper("äb", encoding="utf-8").numpy().decode()
        'ÄB'
    """
    if _is_ascii("upper", encoding):
        return map_text(bytes.upper, input)
    return map_text(lambda text: text.decode(errors="replace").upper().encode(), input)


def _is_ascii(who, encoding):
    check_choice(who, "encoding", encoding, ("", "utf-8"))
    return not encoding


@string_op(name="string_strip", type_name="StringStrip")
def strip(xp, input: TensorLike):
    """Strip ASCII whitespace from both ends of strings.

    Args:
        input: Strings, of any shape.

    Example:
        >>> tw.strings.strip(" a b\\n").numpy()
        b'a b'
    """
    return map_text(bytes.strip, input)


@string_op(name="strip_punctuation")
def strip_punctuation(xp, input: TensorLike):
    """Remove ASCII punctuation from strings, like `regex_replace` but in one pass.

    Example:
        >>> from tapewright.ops.strings.characters import strip_punctuation
        >>> strip_punctuation("isn't, it?").numpy()
        b'isnt it'
    """
    return map_text(lambda text: text.translate(None, PUNCTUATION), input)


@string_op(
    name="string_length",
    type_name="StringLength",
    result_dtype=dtypes.int32,
    may_raise=True,
)
def length(xp, input: TensorLike, unit: str = "BYTE"):
    """Length of each string in bytes or characters: int32.

    Args:
        input: Strings, of any shape.
        unit: "BYTE", or "UTF8_CHAR" to count the characters of UTF-8 strings.

    Example:
        >>> int(tw.strings.length("Zoë")), int(tw.strings.length("Zoë", unit="UTF8_CHAR"))
        (4, 3)
    """
    check_choice("length", "unit", unit, UNITS)
    count = len if unit == "BYTE" else _count_characters
    return map_numbers(count, input, np.int32)


def _count_characters(text):
    return sum([byte & 0xC0 != 0x80 for byte in text])


def starts_of_characters(text: bytes) -> list[int]:
    """Return the positions at which UTF-8 characters start, 0 included."""
    return [i for i, byte in enumerate(text) if byte & 0xC0 != 0x80 or not i]


@string_op(name="substr", type_name="Substr", same_dtype=("input",), may_raise=True)
def substr(
    xp, input: TensorLike, pos: TensorLike, len: TensorLike, *, unit: str = "BYTE"
):
    """Extract substrings from ``pos`` on, of at most ``len`` bytes or characters.

    The shapes of the inputs broadcast.

    Args:
        input: Strings, of any shape.
        pos: Start of each substring; negative positions count from the end.
        len: Largest length of each substring.
        unit: "BYTE", or "UTF8_CHAR" to count the characters of UTF-8 strings.

    Raises:
        InvalidArgumentError: If a position is outside of its string.

    Example:
        >>> tw.strings.substr(["word", "other"], -3, 2).numpy().tolist()
        [b'or', b'he']
    """
    check_choice("substr", "unit", unit, UNITS)
    if pos.dtype.kind not in "iu" or len.dtype.kind not in "iu":
        raise InvalidArgumentError("substr: pos and len must be integers")
    texts, starts, counts = xp.broadcast_arrays(input, pos, len)
    cut = _bytes_from if unit == "BYTE" else _characters_from
    rows = zip(texts.ravel().tolist(), starts.ravel().tolist(), counts.ravel().tolist())
    return make_text([cut(*row) for row in rows], texts.shape)


def _begin(text, pos, size):
    if not -size <= pos <= size:
        raise InvalidArgumentError(
            f"substr: pos {pos} is out of range for the string {text!r:.60} of length "
            f"{size}"
        )
    return pos + size if pos < 0 else pos


def _bytes_from(text, pos, count):
    begin = _begin(text, pos, len(text))
    return text[begin:] if count < 0 else text[begin : begin + count]


def _characters_from(text, pos, count):
    starts = starts_of_characters(text)
    begin = _begin(text, pos, len(starts))
    if count < 0:
        count = len(starts)
    starts.append(len(text))
    return text[starts[begin] : starts[min(begin + count, len(starts) - 1)]]


# ------------------------------------------------------------------------- encodings


def decoded(
    who: str,
    text: bytes,
    encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
) -> str:
    """Decode the characters of a string.

    ``errors`` selects the treatment of invalid bytes: "replace" or "ignore" them, or
    raise ("strict").
    """
    parts = _decoded_parts(who, text, encoding, errors, replacement_char)
    characters = "".join([part for part, _, _ in parts])
    if replace_control_characters and errors != "strict":
        instead = chr(replacement_char) if errors == "replace" else ""
        characters = characters.translate(dict.fromkeys(range(32), instead))
    return characters


def character_offsets(
    who: str, text: bytes, encoding: str, *options: Any
) -> list[tuple[str, int]]:
    """Return the characters of `decoded`, each with the byte offset at which it starts."""
    characters = []
    *errors, replace_control_characters = options
    for part, start, size in _decoded_parts(who, text, encoding, *errors):
        sizes = [1] * size  # of characters of one byte
        if size != len(part):
            sizes = [len(x.encode(ENCODINGS[encoding], "replace")) for x in part]
        characters += zip(part, accumulate(sizes, initial=start))
    if replace_control_characters and errors[0] != "strict":
        instead = chr(errors[1]) if errors[0] == "replace" else ""
        characters = [(instead if x < " " else x, offset) for x, offset in characters]
        characters = [pair for pair in characters if pair[0]]
    return characters


def _decoded_parts(who, text, encoding, errors, replacement_char):
    """Yield parts of a string, or their replacements, with their offsets and byte sizes."""
    codec, start, size = ENCODINGS[encoding], 0, len(text)
    instead = chr(replacement_char) if errors == "replace" else ""
    while True:
        piece = text[start : start + size]
        is_last = start + len(piece) == len(text)
        try:
            yield piece.decode(codec), start, len(piece)
        except UnicodeDecodeError as error:
            valid, bad = error.start, error.end - error.start
            if valid:
                yield piece[:valid].decode(codec), start, valid
            start += valid
            # Each error costs no more than a window, not all that follows.
            size = _WINDOW
            if valid and not is_last and error.end == len(piece):
                continue  # perhaps the window ends inside of a character
            if errors == "strict":
                raise InvalidArgumentError(
                    f"{who}: {text!r:.60} is not {encoding}: {error.reason} at byte "
                    f"{start}"
                ) from None
            yield instead, start, bad
            start += bad
        else:
            start += len(piece)
            if is_last:
                return


_WINDOW = 1 << 12  # bytes


def check_encoding(who: str, name: str, encoding: str, errors: str) -> None:
    """Check an encoding and the treatment of errors.

    Raises:
        ValueError: If either is unknown.
    """
    known = ENCODINGS if name == "input_encoding" else OUTPUT_ENCODINGS
    check_choice(who, name, encoding, known)
    check_choice(who, "errors", errors, ("strict", "replace", "ignore"))


def check_character(who: str, code: int) -> None:
    """Check that ``code`` is the code point of a character.

    Raises:
        ValueError: If it is not.
    """
    if not 0 <= code < 0x110000 or 0xD800 <= code < 0xE000:
        raise InvalidArgumentError(
            f"{who}: replacement_char must be a code point of Unicode, got {code}"
        )


@string_op(name="unicode_transcode", type_name="UnicodeTranscode", may_raise=True)
def unicode_transcode(
    xp,
    input: TensorLike,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: IntLike = 65533,
    replace_control_characters: bool = False,
):
    """Transcode strings from one encoding to another.

    Args:
        input: Strings, of any shape.
        input_encoding: Encoding of the strings: "UTF-8" (or "UTF8"), "UTF-16-BE",
            "UTF-32-BE", "US-ASCII" or "ISO-8859-1".
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: Treatment of invalid bytes: "replace" them with ``replacement_char``,
            "ignore" them, or raise ("strict").
        replacement_char: Code point of the replacement.
        replace_control_characters: If True, treat the characters 0 to 31 as invalid.

    Example:
        >>> tw.strings.unicode_transcode("é", "UTF-8", "UTF-16-BE").numpy()
        b'\\x00\\xe9'
    """
    who = "unicode_transcode"
    check_encoding(who, "input_encoding", input_encoding, errors)
    check_encoding(who, "output_encoding", output_encoding, errors)
    check_character(who, replacement_char)
    options = input_encoding, errors, replacement_char, replace_control_characters
    codec = ENCODINGS[output_encoding]
    return map_text(lambda text: decoded(who, text, *options).encode(codec), input)
