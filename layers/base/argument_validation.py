"""Checks of what constructors are given: numbers, shares, choices.

Each gives the value back, or raises ``ValueError`` in the name of ``who``, which is the
object that is being made, or a name.
"""

import operator
from numbers import Real

__all__ = ["not_negative", "numbers", "one_of", "share", "truth", "whole"]


def whole(who, name, value, least=1):
    """``value`` as an int, of ``least`` or more; no truth value."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        what = "a positive integer" if least == 1 else f"an integer of {least} or more"
        raise ValueError(f"{_name_of(who)}: {name} must be {what}, got {value!r}")
    return number


def numbers(who, name, value, count, least=1):
    """``count`` ints: from one for all, or a list of that many."""
    values = value if isinstance(value, (list, tuple)) else [value] * count
    try:
        found = tuple([whole(who, name, n, least) for n in values])
    except ValueError:
        found = ()
    if len(found) != count:
        kind = "positive integer" if least == 1 else f"integer of {least} or more"
        many = f" or {count} of them" if count > 1 else ""
        raise ValueError(
            f"{_name_of(who)}: {name} must be one {kind}{many}, got {value!r}"
        )
    return found


def not_negative(who, name, value):
    """``value``, a number of 0 or more."""
    if not isinstance(value, Real) or not value >= 0:
        raise ValueError(f"{_name_of(who)}: {name} must be 0 or more, got {value!r}")
    return value


def share(who, name, value):
    """``value``, a number from 0 to 1."""
    if not isinstance(value, Real) or not 0 <= value <= 1:
        raise ValueError(f"{_name_of(who)}: {name} must be from 0 to 1, got {value!r}")
    return value


def truth(who, name, value):
    """``value``, True or False, as a bool."""
    if type(value).__name__ not in ("bool", "bool_") and value not in (0, 1):
        raise ValueError(
            f"{_name_of(who)}: {name} must be True or False, got {value!r}"
        )
    return bool(value)


def one_of(who, name, value, choices):
    """``value``, which is among ``choices``."""
    if value not in choices:
        known = ", ".join(map(repr, choices))
        raise ValueError(
            f"{_name_of(who)}: {name} must be one of {known}, got {value!r}"
        )
    return value


def _name_of(who):
    return who if isinstance(who, str) else type(who).__name__
