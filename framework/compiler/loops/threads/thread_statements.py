"""The statements of thread nests, in addition to `Load`, `Compute` and `Store`."""

from typing import NamedTuple

from ..statements import Scalar


class Begin(NamedTuple):
    """``out =`` the identity element of ``ufunc``."""

    out: Scalar
    ufunc: str


class Fold(NamedTuple):
    """``out = ufunc(out, value)``."""

    out: Scalar
    ufunc: str
    value: Scalar


class Members(NamedTuple):
    """``body`` for each index of the members' axes, each by one thread of the team."""

    body: list


class Combine(NamedTuple):
    """Reduce each member's value over its team: pairs of a scalar and a ufunc in ``sums``.

    All members get the result. All threads of a block reach this together.
    """

    sums: tuple  # of pairs of a scalar and a ufunc


class Guard(NamedTuple):
    """``body`` for indices that exist, by the first member if ``is_first``.

    It also runs only where the indices of the axes ``zeros`` are 0.
    """

    is_first: bool
    zeros: tuple
    body: list
