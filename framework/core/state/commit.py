"""Atomic changes of several variables: all of them or none.

Python runs signal handlers, trace functions and other threads between the bytecodes of
Python code. An atomic change therefore is one call of a C function: a `deque` of length
0 consumes an iterator over calls of other C functions. An interrupt comes either before
that call, when nothing has changed, or after it.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from operator import call, eq
from typing import Any, Protocol, TypeVar

import numpy as np

from ..variable import Variable, changes

Result = TypeVar("Result")

# The methods that Python makes of a slot are functions in C.
_set_array = Variable._array.__set__  # type: ignore[attr-defined]
_delete_array = Variable._array.__delete__  # type: ignore[attr-defined]
# A condition in C: to look up False raises `KeyError`.
_require = {True: None}.__getitem__
_TRUE, _ZERO = (True,), (0,)

# Whether reference counts are exact. Where they are not, every array may be held elsewhere.
_is_counted: bool = (
    hasattr(sys, "getrefcount") and getattr(sys, "_is_gil_enabled", lambda: True)()
)
references: Callable[[Any], Any] = (
    sys.getrefcount if _is_counted else lambda array: object()
)


# The tries of a commit, if somebody holds an array that it would write to: at first nobody is
# expected to, then steps look who does, and at last they write to new arrays.
TRIES = FIRST, LOOKING, ON_COPIES = range(3)


def bind_all(variables: Iterable[Variable], arrays: Iterable[Any]) -> None:
    """Bind arrays to variables atomically; the caller holds their locks."""
    deque(map(_set_array, variables, arrays), 0)


def bound_again(
    variables: Sequence[Variable], arrays: Sequence[Any] | None = None
) -> Callable[[], Any]:
    """Return a C function whose first call rebinds the current arrays of variables.

    Args:
        variables: Variables to restore. Once the list is empty, the function does
            nothing.
        arrays: Arrays to bind instead, such as copies.
    """
    before = [v._array for v in variables] if arrays is None else arrays
    return partial(deque, map(_set_array, variables, before), 0)


def restoring(
    variables: Sequence[Variable], function: Callable[..., Result], *args: Any
) -> Result:
    """Return ``function(*args)``; if it raises, rebind the arrays of the variables.

    The arrays are referenced meanwhile, so nothing is written into them.
    """
    return undoing(bound_again(variables), function, *args)


def undoing(
    restore: Callable[[], Any], function: Callable[..., Result], *args: Any
) -> Result:
    """Return ``function(*args)``; if it raises, call ``restore``, see `bound_again`.

    If the first call of ``restore`` is interrupted, a second one completes it.
    """
    try:
        try:
            return function(*args)
        except BaseException:
            restore()
            raise
    except BaseException:
        restore()  # does nothing, unless it was an error of a trace function that came first
        raise


def with_arrays_back(
    variables: Sequence[Variable], function: Callable[..., Result], *args: Any
) -> Result:
    """Return ``function(*args)``; then rebind the arrays that the variables had."""
    restore = bound_again(variables)
    try:
        try:
            return function(*args)
        finally:
            restore()
    finally:
        restore()  # as in `restoring`


class Step(Protocol):
    """Changes made by a commit; no two steps of a commit change the same variable."""

    def add_to(self, change: Commit) -> None:
        """Add the changes to a commit, possibly several times; no variable changes yet."""


def commit(
    steps: Iterable[Step],
    variables: Sequence[Variable] = (),
    arrays: Sequence[Any] = (),
) -> None:
    """Make all steps and bind all arrays to variables atomically.

    The caller holds the locks of all variables.

    Args:
        steps: Changes to make; no two of them change the same variable.
        variables: Variables to bind.
        arrays: New value of each variable, an array or a NumPy scalar.
    """
    if arrays:
        arrays = [np.asarray(x) if isinstance(x, np.generic) else x for x in arrays]
    for try_ in TRIES:
        change = Commit(try_)
        for step in steps:
            step.add_to(change)
        if arrays:
            change.bind(variables, arrays)
        if change.run():
            return


class Commit:
    """Changes of variables that `run` makes atomically.

    Arrays are bound to variables; arrays without other references are overwritten in
    place. Meanwhile, other threads that read the variables wait for the locks.
    """

    __slots__ = (
        *("writes", "in_place", "is_first"),
        *("_checks", "_removals", "_returns", "_bindings"),
    )

    def __init__(self, number: int = LOOKING) -> None:
        # Whether steps may write to arrays of variables; else they bind new ones.
        self.in_place = number < ON_COPIES and _is_counted
        self.is_first = number == FIRST  # `run` alone looks whether somebody holds them
        # Called in this order, without arguments: functions in C alone, so that nothing
        # comes in between, and none that raises.
        self.writes: list[Callable[[], Any]] = []
        # Iterators over calls of functions in C, which `run` consumes.
        self._checks: list[Iterator[Any]] = []
        self._removals: list[Iterator[Any]] = []
        self._returns: list[Iterator[Any]] = []
        self._bindings: list[Iterator[Any]] = []

    def bind(self, variables: Iterable[Variable], arrays: Iterable[Any]) -> None:
        """Bind arrays to variables as their new values."""
        self._bindings.append(map(_set_array, variables, arrays))

    def overwrite(
        self,
        variables: Sequence[Variable],
        arrays: Sequence[Any],
        watched: Iterable[Any],
        counts: list[Any],
    ) -> None:
        """Let `writes` overwrite arrays, which become or remain the values of variables.

        Args:
            variables: Variables to change.
            arrays: Array of each variable. The list itself is kept: an entry in another
                list would count as a reference.
            watched: Arrays whose references are counted.
            counts: Result of `references` for each of them while it has no other
                reference.
        """
        now = map(list, (map(references, watched),))  # counted when the commit runs
        self._checks.append(map(_require, map(eq, now, (counts,))))
        self._removals.append(map(_delete_array, variables))
        self._returns.append(map(_set_array, variables, arrays))

    def run(self) -> bool:
        """Make the changes; if an array is referenced elsewhere, return False instead."""
        begun: list[bool] = []
        returns = chain(*self._returns)
        calls = chain(
            *self._checks,
            map(begun.append, _TRUE),
            *self._removals,
            map(call, self.writes),
            returns,
            *self._bindings,
            map(changes.__setitem__, _ZERO, (object(),)),
        )
        try:
            deque(calls, 0)
            return True
        except BaseException as error:
            if begun:
                deque(returns, 0)
            if begun or not isinstance(error, KeyError):
                raise
        return False
