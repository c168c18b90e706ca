"""Checks of the arguments of constructors: numbers, shares, choices.

Each returns the value, or raises ``ValueError`` in the name of ``who``, which is the
object under construction, or a name.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from numbers import Real
from typing import Any, TypeVar

__all__ = ["not_negative", "numbers", "one_of", "positive", "share", "truth", "whole"]

Choice = TypeVar("Choice")


def whole(who: Any, name: str, value: Any, least: int = 1) -> int:
    """``value`` as an int, of ``least`` or more; no truth value."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        what = "a positive integer" if least == 1 else f"an integer of {least} or more"
        raise ValueError(f"{_name_of(who)}: {name} must be {what}, got {value!r}")
    return number


def numbers(
    who: Any, name: str, value: Any, count: int, least: int = 1
) -> tuple[int, ...]:
    """``count`` ints: from one for all, or a list of that many."""
    values = value if isinstance(value, (list, tuple)) else [value] * count
    try:
        integers = tuple([whole(who, name, n, least) for n in values])
    except ValueError:
        integers = ()
    if len(integers) != count:
        expected = "positive integer" if least == 1 else f"integer of {least} or more"
        many = f" or {count} of them" if count > 1 else ""
        raise ValueError(
            f"{_name_of(who)}: {name} must be one {expected}{many}, got {value!r}"
        )
    return integers


def not_negative(who: Any, name: str, value: Any) -> float:
    """``value``, a number of 0 or more."""
    if not isinstance(value, Real) or not value >= 0:
        raise ValueError(f"{_name_of(who)}: {name} must be 0 or more, got {value!r}")
    return value


def positive(who: Any, name: str, value: Any) -> float:
    """``value``, a number above 0."""
    if not isinstance(value, Real) or not value > 0:
        raise ValueError(
            f"{_name_of(who)}: {name} must be a positive number, got {value!r}"
        )
    return value


def share(who: Any, name: str, value: Any) -> float:
    """``value``, a number from 0 to 1."""
    if not isinstance(value, Real) or not 0 <= value <= 1:
        raise ValueError(f"{_name_of(who)}: {name} must be from 0 to 1, got {value!r}")
    return value


def truth(who: Any, name: str, value: Any) -> bool:
    """``value``, True or False, as a bool."""
    if type(value).__name__ not in ("bool", "bool_") and value not in (0, 1):
        raise ValueError(
            f"{_name_of(who)}: {name} must be True or False, got {value!r}"
        )
    return bool(value)


def one_of(who: Any, name: str, value: Choice, choices: Iterable[Any]) -> Choice:
    """``value``, which is among ``choices``."""
    if value not in choices:
        known = ", ".join(map(repr, choices))
        raise ValueError(
            f"{_name_of(who)}: {name} must be one of {known}, got {value!r}"
        )
    return value


def _name_of(who):
    return who if isinstance(who, str) else type(who).__name__
