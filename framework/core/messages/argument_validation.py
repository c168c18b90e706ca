"""Checks of constructor arguments: integers, fractions, choices.

Each returns the value or raises ``ValueError`` in the name of ``who``, the object under
construction or a name. Since configs come from files, every integer has an upper bound:
a config of a few bytes must not keep a process busy. Sizes that only cost memory may be
as large as `MAX_SIZE`; a count of steps, or of numbers that a constructor generates,
has a tighter bound, far above useful values.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from numbers import Real
from typing import Any, TypeVar

from .suggestions import did_you_mean

Choice = TypeVar("Choice")
MAX_SIZE = 2**31 - 1  # of an axis


def whole(
    who: Any, name: str, value: Any, least: int = 1, most: float = MAX_SIZE
) -> int:
    """Return ``value`` as an int from ``least`` to ``most``; reject booleans."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        what = "a positive integer" if least == 1 else f"an integer of {least} or more"
        raise ValueError(f"{_name_of(who)}: {name} must be {what}, got {value!r}")
    if number > most:
        raise ValueError(
            f"{_name_of(who)}: {name} must be at most {most}, got {value!r}"
        )
    return number


def numbers(
    who: Any,
    name: str,
    value: Any,
    count: int,
    least: int = 1,
    most_together: int | None = None,
) -> tuple[int, ...]:
    """Return ``count`` ints from a single int or a list of that length.

    ``most_together`` bounds their product.
    """
    values = value if isinstance(value, (list, tuple)) else [value] * count
    try:
        integers = tuple([whole(who, name, n, least, math.inf) for n in values])
    except ValueError:
        integers = ()
    if len(integers) != count:
        expected = "positive integer" if least == 1 else f"integer of {least} or more"
        many = f" or {count} of them" if count > 1 else ""
        raise ValueError(
            f"{_name_of(who)}: {name} must be one {expected}{many}, got {value!r}"
        )
    for each in integers:
        whole(who, name, each, least)
    if most_together is not None and math.prod(integers) > most_together:
        raise ValueError(
            f"{_name_of(who)}: {name} must be at most {most_together} together, got "
            f"{value!r}"
        )
    return integers


def not_negative(who: Any, name: str, value: Any) -> float:
    """Return ``value``, a number of at least 0."""
    if not isinstance(value, Real) or not value >= 0:
        raise ValueError(f"{_name_of(who)}: {name} must be 0 or more, got {value!r}")
    return value


def positive(who: Any, name: str, value: Any) -> float:
    """Return ``value``, a positive number."""
    if not isinstance(value, Real) or not value > 0:
        raise ValueError(
            f"{_name_of(who)}: {name} must be a positive number, got {value!r}"
        )
    return value


def share(who: Any, name: str, value: Any) -> float:
    """Return ``value``, a number from 0 to 1."""
    if not isinstance(value, Real) or not 0 <= value <= 1:
        raise ValueError(f"{_name_of(who)}: {name} must be from 0 to 1, got {value!r}")
    return value


def truth(who: Any, name: str, value: Any) -> bool:
    """Return ``value``, which must be True or False, as a bool."""
    if type(value).__name__ not in ("bool", "bool_") and value not in (0, 1):
        raise ValueError(
            f"{_name_of(who)}: {name} must be True or False, got {value!r}"
        )
    return bool(value)


def one_of(who: Any, name: str, value: Choice, choices: Iterable[Any]) -> Choice:
    """Return ``value``, which must be one of ``choices``."""
    if value not in choices:
        known = ", ".join(map(repr, choices))
        hint = did_you_mean(value, choices) if isinstance(value, str) else ""
        raise ValueError(
            f"{_name_of(who)}: {name} must be one of {known}, got {value!r}{hint}"
        )
    return value


def _name_of(who):
    return who if isinstance(who, str) else type(who).__name__
