"""Changes of several variables at one moment: all of them, or none.

Python runs signal handlers, trace functions and other threads between the bytecodes of its
own code. What must not be divided is therefore one call of a function written in C: a
`deque` of length 0 consumes an iterator over calls of further functions in C. An interrupt
comes before that call, and nothing has changed, or after it.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import call, eq
from typing import Any, Protocol, TypeVar

import numpy as np

from .variable import Variable, changes

__all__ = [
    "Commit",
    "Step",
    "TRIES",
    "bind_all",
    "bound_again",
    "commit",
    "references",
    "restoring",
    "with_arrays_back",
]

Result = TypeVar("Result")

# The methods that Python makes of a slot are functions in C.
_set_array = Variable._array.__set__  # type: ignore[attr-defined]
_delete_array = Variable._array.__delete__  # type: ignore[attr-defined]
# A condition in C: to look up False raises `KeyError`.
_require = {True: None}.__getitem__

# Whether reference counts are exact. Where they are not, every array may be held elsewhere.
_is_counted: bool = (
    hasattr(sys, "getrefcount") and getattr(sys, "_is_gil_enabled", lambda: True)()
)
references: Callable[[Any], Any] = (
    sys.getrefcount if _is_counted else lambda array: object()
)


# Whether each try of a commit writes in place: another thread may read a variable at the
# wrong moment, but is not waited for.
TRIES = True, True, False


def bind_all(variables: Iterable[Variable], arrays: Iterable[Any]) -> None:
    """Make arrays the values of variables at one moment; the caller holds their locks."""
    deque(map(_set_array, variables, arrays), 0)


def bound_again(variables: Sequence[Variable]) -> Callable[[], Any]:
    """Return a function in C that once binds the arrays again that variables have now."""
    before = [variable._array for variable in variables]
    return partial(deque, map(_set_array, variables, before), 0)


def restoring(
    variables: Sequence[Variable], function: Callable[..., Result], *args: Any
) -> Result:
    """Return ``function(*args)``; if it raises, the variables have their arrays again.

    As their arrays are held meanwhile, nothing is written into them.
    """
    restore = bound_again(variables)
    try:
        try:
            return function(*args)
        except BaseException:
            restore()  # no Python code of ours, where a second interrupt may come
            raise
    except BaseException:
        restore()  # does nothing, unless it was an error of a trace function that came first
        raise


def with_arrays_back(
    variables: Sequence[Variable], function: Callable[..., Result], *args: Any
) -> Result:
    """Return ``function(*args)``; the variables have the arrays again that they had."""
    restore = bound_again(variables)
    try:
        try:
            return function(*args)
        finally:
            restore()
    finally:
        restore()  # as in `restoring`


class Step(Protocol):
    """Changes that a commit makes; no two steps of one commit change the same variable."""

    def add_to(self, change: Commit) -> None:
        """Add the changes to a commit, once or several times; no variable changes yet."""


def commit(
    steps: Iterable[Step],
    variables: Sequence[Variable] = (),
    arrays: Sequence[Any] = (),
) -> None:
    """Make steps, and make arrays the values of variables, all at one moment.

    The caller holds the locks of all variables.
    """
    arrays = [np.asarray(x) if isinstance(x, np.generic) else x for x in arrays]
    for in_place in TRIES:
        change = Commit(in_place)
        for step in steps:
            step.add_to(change)
        change.bind(variables, arrays)
        if change.run():
            return


class Commit:
    """Changes of variables that `run` makes at one moment.

    Arrays are bound to variables, and arrays that nobody else holds are written to in
    place. While they are, other threads that read the variables wait for the locks.
    """

    __slots__ = (
        *("writes", "in_place"),
        *("_checks", "_removals", "_returns", "_bindings"),
    )

    def __init__(self, in_place: bool = True) -> None:
        # Whether steps may write to arrays of variables; else they bind new ones.
        self.in_place = in_place and _is_counted
        # Called in this order, without arguments: functions in C alone, so that nothing
        # comes in between, and none that raises.
        self.writes: list[Callable[[], Any]] = []
        self._checks: list[Callable[[], Any]] = []
        self._removals: list[Callable[[], Any]] = []
        self._returns: list[Callable[[], Any]] = []
        self._bindings: list[Callable[[], Any]] = []

    def bind(self, variables: Iterable[Variable], arrays: Iterable[Any]) -> None:
        """Make arrays the values of variables."""
        self._bindings.append(_lazily(_set_array, variables, arrays))

    def overwrite(
        self,
        variables: Sequence[Variable],
        arrays: Sequence[Any],
        watched: Iterable[Any],
        counts: Sequence[Any],
    ) -> None:
        """Let `writes` write to arrays, which become or stay the values of variables.

        Args:
            variables: The variables.
            arrays: The array of each. The list itself is kept: an entry in another one
                would count as a reference.
            watched: The arrays whose references are counted.
            counts: The result of `references` for each while nobody else holds it.
        """
        self._checks.append(
            _lazily(_require, map(eq, map(references, watched), counts))
        )
        self._removals.append(_lazily(_delete_array, variables))
        self._returns.append(_lazily(_set_array, variables, arrays))

    def run(self) -> bool:
        """Make the changes; make none, and return False, if an array is held elsewhere."""
        begun: list[bool] = []
        returns = map(call, self._returns)
        calls = [
            *self._checks,
            partial(begun.append, True),
            *self._removals,
            *self.writes,
            partial(deque, returns, 0),
            *self._bindings,
            partial(changes.__setitem__, 0, object()),
        ]
        try:
            deque(map(call, calls), 0)
            return True
        except BaseException as error:
            if begun:
                deque(returns, 0)
            if begun or not isinstance(error, KeyError):
                raise
        return False


def _lazily(function, *iterables):
    """Return a function in C that calls one for each entry of iterables."""
    return partial(deque, map(function, *iterables), 0)
