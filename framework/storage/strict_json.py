"""JSON without duplicate keys, NaN, or unlimited depth and size."""

import math

from tapewright.core.errors import SavingError

MAX_CHARACTERS = 64 << 20
MAX_ITEMS = 4_000_000  # of all lists and objects together
MAX_DIGITS = 40
MAX_DEPTH = 250


def dumps(value):
    """Return ``value`` as JSON; raise ``ValueError`` if `loads` would reject the result.

    Example:
        >>> from tapewright.storage.strict_json import dumps
        >>> dumps({"units": 4, "name": None})
        '{"units": 4, "name": null}'
    """
    import json

    try:
        text = json.dumps(value, allow_nan=False)
        _loads(text)
    except _Refused as error:
        raise ValueError(f"cannot be saved: the JSON {error}") from None
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        try:
            path, number = next(_odd_numbers(value))
        except (StopIteration, RecursionError):  # it is another fault: a list of itself
            raise error from None
        reason = f"{path} is {number}, a number that JSON lacks"
        raise ValueError(f"cannot be saved: {reason}") from None
    return text


def loads(text, path=None, dataset=None, finite=True):
    """Parse a JSON text; reject NaN and infinity if ``finite``.

    Raises:
        SavingError: If the text is invalid; it names ``path`` and ``dataset``.
        ValueError: If the text is invalid and there is no path.
    """
    try:
        return _loads(text, finite)
    except _Refused as error:
        reason = f"the JSON {error}"
        if path is None:
            raise ValueError(reason) from None
        raise SavingError(path, reason, dataset) from None


class _Refused(Exception):
    """An error in a text, as the rest of a sentence."""


def _loads(text, finite=True):
    import json

    _check_size(text)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_constant if finite else None,
            parse_int=_integer,
            parse_float=_number,
        )
    except RecursionError:
        raise _Refused(f"is nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise _Refused(f"cannot be read: {error}") from None
    if _deeper(value, MAX_DEPTH):
        raise _Refused(f"is nested deeper than {MAX_DEPTH} levels")
    if "\\ud" in text.lower() and _has_surrogates(value):
        raise _Refused("has a lone surrogate")
    return value


def _unique(pairs):
    object_ = dict(pairs)
    if len(object_) < len(pairs):
        raise _Refused(f"has the key {_repeated(pairs)[:80]!r} twice in one object")
    return object_


def _constant(name):
    raise _Refused(f"has the value {name}")


def _integer(digits):
    if len(digits) > MAX_DIGITS:
        raise _Refused(f"has a number of {len(digits)} digits")
    return int(digits)


def _number(digits):
    number = float(digits)
    if math.isinf(number):
        raise _Refused(f"has the number {digits[:40]}, which no float64 holds")
    return number


def _odd_numbers(value, path="the value"):
    """Yield pairs of a path in the value and the NaN or infinity there."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _odd_numbers(each, f"{path}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for i, each in enumerate(value):
            yield from _odd_numbers(each, f"{path}[{i}]")
    elif isinstance(value, float) and not math.isfinite(value):
        yield path, value


def _check_size(text):
    """Check the size of a text before memory is allocated for its value."""
    if len(text) > MAX_CHARACTERS:
        raise _Refused(f"has {len(text)} characters, more than {MAX_CHARACTERS}")
    items = sum(map(text.count, ",[{"))  # and what texts hold of these: never too few
    if items > MAX_ITEMS:
        raise _Refused(f"has about {items} items, more than {MAX_ITEMS}")
    if not is_whole(text):
        raise _Refused("has a lone surrogate")


def _repeated(pairs):
    seen = set()
    return next(key for key, _ in pairs if key in seen or seen.add(key))


def is_whole(text):
    """Return True if a text has no lone surrogate, which UTF-8 cannot encode."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _has_surrogates(value):
    import json

    return not is_whole(json.dumps(value, ensure_ascii=False))


def _deeper(value, limit):
    """Return True if lists and objects are nested deeper than ``limit``."""
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
