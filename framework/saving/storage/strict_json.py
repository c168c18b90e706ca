"""JSON as files may hold it: no duplicate keys, no NaN, neither deep nor endless."""

import math

from ...errors import SavingError

__all__ = ["dumps", "loads"]

MAX_CHARACTERS = 64 << 20
MAX_ITEMS = 4_000_000  # of all lists and objects together
MAX_DIGITS = 40
MAX_DEPTH = 250


def dumps(value):
    """``value`` as JSON. Raises: ``ValueError`` for what `loads` would not read.

    >>> dumps({"units": 4, "name": None})
    '{"units": 4, "name": null}'
    """
    import json

    try:
        text = json.dumps(value, allow_nan=False)
        loads(text, "")
    except SavingError as error:
        raise ValueError(f"no file may hold this: {error.reason}") from None
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    return text


def loads(text, path, dataset=None):
    """The value of a JSON text. Raises: `SavingError` naming ``path`` and ``dataset``."""
    import json

    def refuse(reason):
        raise SavingError(path, f"the JSON {reason}", dataset)

    def unique(pairs):
        found = dict(pairs)
        if len(found) < len(pairs):
            refuse(f"has the key {_repeated(pairs)[:80]!r} twice in one object")
        return found

    def integer(digits):
        if len(digits) > MAX_DIGITS:
            refuse(f"has a number of {len(digits)} digits")
        return int(digits)

    def number(digits):
        found = float(digits)
        if math.isinf(found):
            refuse(f"has the number {digits[:40]}, which no float64 holds")
        return found

    _check_size(text, refuse)
    try:
        value = json.loads(
            text,
            object_pairs_hook=unique,
            parse_constant=lambda name: refuse(f"has the value {name}"),
            parse_int=integer,
            parse_float=number,
        )
    except RecursionError:
        refuse(f"is nested deeper than {MAX_DEPTH} levels")
    except SavingError:
        raise
    except ValueError as error:
        refuse(f"cannot be read: {error}")
    if _deeper(value, MAX_DEPTH):
        refuse(f"is nested deeper than {MAX_DEPTH} levels")
    if "\\ud" in text.lower() and _has_surrogates(value):
        refuse("has half a character: a lone surrogate")
    return value


def _check_size(text, refuse):
    """Before memory is taken for what the text says."""
    if len(text) > MAX_CHARACTERS:
        refuse(f"has {len(text)} characters, more than {MAX_CHARACTERS}")
    items = sum(map(text.count, ",[{"))  # and what texts hold of these: never too few
    if items > MAX_ITEMS:
        refuse(f"has about {items} items, more than {MAX_ITEMS}")
    if not text.isascii() and _is_broken(text):
        refuse("has half a character: a lone surrogate")


def _repeated(pairs):
    seen = set()
    return next(key for key, _ in pairs if key in seen or seen.add(key))


def _is_broken(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _has_surrogates(value):
    import json

    return _is_broken(json.dumps(value, ensure_ascii=False))


def _deeper(value, limit):
    """Whether lists and objects in each other are more than ``limit``."""
    level = [value]
    for _ in range(limit):
        inner = []
        for each in level:
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
        if not inner:
            return False
        level = inner
    return True
