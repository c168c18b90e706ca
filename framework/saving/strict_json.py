"""JSON as files may hold it: no duplicate keys, no NaN, neither deep nor endless."""

import json

from ..errors import SavingError

__all__ = ["dumps", "loads"]

MAX_CHARACTERS = 64 << 20
MAX_DEPTH = 250


def dumps(value):
    """``value`` as JSON. Raises: ``ValueError`` for NaN and infinities."""
    return json.dumps(value, allow_nan=False)


def loads(text, path, dataset=None):
    """The value of a JSON text. Raises: `SavingError` naming ``path`` and ``dataset``."""

    def refuse(reason):
        raise SavingError(path, f"the JSON {reason}", dataset)

    def unique(pairs):
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            refuse(f"has the key {twice[:80]!r} twice in one object")
        return found

    if len(text) > MAX_CHARACTERS:
        refuse(f"has {len(text)} characters, more than {MAX_CHARACTERS}")
    try:
        value = json.loads(
            text,
            object_pairs_hook=unique,
            parse_constant=lambda name: refuse(f"has the value {name}"),
        )
    except RecursionError:
        refuse(f"is nested deeper than {MAX_DEPTH} levels")
    except SavingError:
        raise
    except ValueError as error:
        refuse(f"cannot be read: {error}")
    if _deeper(value, MAX_DEPTH):
        refuse(f"is nested deeper than {MAX_DEPTH} levels")
    return value


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
