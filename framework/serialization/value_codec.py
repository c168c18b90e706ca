"""Plain values as JSON and back, exactly: tuples stay tuples, dicts keep types of keys.

JSON represents finite numbers, strings, None and lists. All other values are objects with
a tag: ``{"tuple": [1, 2]}``, ``{"float": "nan"}``, ``{"dict": [["a", 1]]}``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

MAX_DEPTH = 50
_KEYS = (str, int, float, bool, type(None))


class Form(NamedTuple):
    """The JSON of one kind of value: ``{tag: write(...)}``.

    ``write`` gets the codec, the value and its path in the whole value; ``read`` gets
    the codec, the JSON and its depth, and raises ``ValueError`` for invalid JSON.
    """

    tag: str
    matches: Callable[[Any], bool]
    write: Callable[[ValueCodec, Any, tuple], Any]
    read: Callable[[ValueCodec, Any, int], Any]


class ValueCodec:
    """Encode values as JSON, and decode them, by a table of forms.

    Args:
        title: Name of the whole value in errors.

    Example:
        >>> from tapewright.serialization.value_codec import ValueCodec
        >>> codec = ValueCodec()
        >>> codec.encode((1, float("inf"), [None]))
        {'tuple': [1, {'float': 'inf'}, [None]]}
        >>> codec.decode(codec.encode({3: (True,)}))
        {3: (True,)}
    """

    forms: Sequence[Form]

    def __init__(self, title: str = "value") -> None:
        self.title = title
        self._forms_by_tag = {form.tag: form for form in self.forms}

    def encode(self, value: Any, path: tuple = ()) -> Any:
        """Return a value as JSON.

        Args:
            value: Value to encode.
            path: Keys and indices that lead to it, for the error.

        Raises:
            TypeError: If no form matches.
        """
        if len(path) > MAX_DEPTH:
            raise self.refuse(f"nested deeper than {MAX_DEPTH}")
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float and math.isfinite(value):
            return value
        if type(value) is list:
            return self.encode_items(value, path)
        for form in self.forms:
            if form.matches(value):
                return {form.tag: form.write(self, value, path)}
        raise self.refuse(self.describe(value), path)

    def encode_items(self, items: Sequence[Any], path: tuple = ()) -> list:
        """Return a list of encoded items."""
        return [self.encode(item, (*path, i)) for i, item in enumerate(items)]

    def describe(self, value: Any) -> str:
        """Return the text of the error for a value without a form."""
        return f"{value!r}, of type {type(value).__name__}"

    def refuse(self, what: str, path: tuple = ()) -> TypeError:
        """Return the error for a value that cannot be saved."""
        where = "".join([f"[{key!r}]" for key in path])
        return TypeError(f"{self.title}{where} cannot be saved: it is {what}")

    def decode(self, value: Any, depth: int = 0) -> Any:
        """Return the value of the result of `encode`.

        Raises:
            ValueError: For JSON that `encode` never returns.
        """
        if depth > MAX_DEPTH:
            raise ValueError(f"values are nested deeper than {MAX_DEPTH}")
        if isinstance(value, list):
            return self.decode_items(value, depth)
        if not isinstance(value, dict):
            return value
        if len(value) != 1:
            raise ValueError(f"a value must have one tag, got {sorted(value)[:5]}")
        ((tag, inner),) = value.items()
        if tag not in self._forms_by_tag:
            raise ValueError(f"{tag!r} is not a tag of a value")
        return self._forms_by_tag[tag].read(self, inner, depth)

    def decode_items(self, value: Any, depth: int, count: int | None = None) -> list:
        """Return a list of decoded items, of which there must be ``count``."""
        if not isinstance(value, list) or (count is not None and len(value) != count):
            raise ValueError("a list of values is too short, too long, or not a list")
        return [self.decode(item, depth + 1) for item in value]


def _write_float(codec, value, path):
    return repr(value)


def _read_float(codec, value, depth):
    if value not in ("nan", "inf", "-inf"):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def _read_tuple(codec, value, depth):
    return tuple(codec.decode_items(value, depth))


def _write_pairs(codec, value, path):
    for key in value:
        if not isinstance(key, _KEYS):
            what = f"a dict with the key {key!r}; use strings, numbers, bools or None"
            raise codec.refuse(what, path)
    return [
        [codec.encode(k, (*path, k)), codec.encode(x, (*path, k))]
        for k, x in value.items()
    ]


def _read_pairs(codec, value, depth):
    if not isinstance(value, list):
        raise ValueError("the items of a dict must be a list of pairs")
    pairs = [codec.decode_items(pair, depth, 2) for pair in value]
    if any([not isinstance(key, _KEYS) for key, _ in pairs]):
        raise ValueError("the keys of a dict must be strings, numbers or None")
    return dict(pairs)


PLAIN_FORMS = (
    Form("tuple", lambda x: type(x) is tuple, ValueCodec.encode_items, _read_tuple),
    Form("float", lambda x: type(x) is float, _write_float, _read_float),
    Form("dict", lambda x: isinstance(x, dict), _write_pairs, _read_pairs),
)
ValueCodec.forms = PLAIN_FORMS
