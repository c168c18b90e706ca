"""The statements of nests of threads, beside `Load`, `Compute` and `Store`."""

from typing import NamedTuple

from .statements import Scalar

__all__ = ["Begin", "Combine", "Fold", "Guard", "Members", "thread_statements"]


class Begin(NamedTuple):
    """``out =`` the neutral number of ``ufunc``."""

    out: Scalar
    ufunc: str


class Fold(NamedTuple):
    """``out = ufunc(out, value)``."""

    out: Scalar
    ufunc: str
    value: Scalar


class Members(NamedTuple):
    """``body`` for each index of the members' axes, by one thread of the team each."""

    body: list


class Combine(NamedTuple):
    """Give all members the ``ufunc`` of what each of them has, for pairs in ``sums``.

    All threads of a block get here together.
    """

    sums: tuple  # of pairs of a scalar and a ufunc


class Guard(NamedTuple):
    """``body`` for indices that exist, by the first member if ``is_first``.

    And only where the indices of the axes ``zeros`` are 0.
    """

    is_first: bool
    zeros: tuple
    body: list


def thread_statements(body, path=()):
    """Yield each statement, in order, with the `Members` and `Guard`s around it."""
    for each in body:
        if type(each) in (Members, Guard):
            yield from thread_statements(each.body, (*path, each))
        else:
            yield path, each
