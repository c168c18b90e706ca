"""The statements of loop nests: what is done with numbers, in which loops.

Arrays are read and written through an `Access`: an offset and a stride for each axis, in
entries. Between two loops, numbers are kept in `Local` arrays. Nothing here depends on a
target, which prints the statements.
"""

from enum import Enum
from typing import NamedTuple

import numpy as np

__all__ = [
    "Access",
    "Accumulate",
    "Axis",
    "Compute",
    "Load",
    "Local",
    "Loop",
    "Reset",
    "Scalar",
    "Span",
    "Store",
    "identity_of",
    "statements_in",
]


class Axis:
    """A dimension of a nest, with a fixed number of entries."""

    __slots__ = ("name", "extent")

    def __init__(self, name, extent):
        self.name, self.extent = name, extent

    def __repr__(self):
        return f"{self.name}:{self.extent}"


class Local:
    """An array of the nest's own, for each block; ``shape`` is that of its axes."""

    __slots__ = ("name", "dtype", "size")

    def __init__(self, name, dtype, size):
        self.name, self.dtype, self.size = name, dtype, size

    def __repr__(self):
        return f"{self.name}[{self.size}]"


class Scalar:
    """A number: the result of a statement, or a constant with a ``value``."""

    __slots__ = ("name", "dtype", "value")

    def __init__(self, name, dtype, value=None):
        self.name, self.dtype, self.value = name, dtype, value

    def __repr__(self):
        return self.name if self.value is None else repr(self.value)


class Access(NamedTuple):
    """Entry ``offset + sum(stride * index)`` of a buffer, or of a `Local`.

    ``strides``: pairs of an axis and a stride. The index of an axis in a local array
    counts from the start of the current strip.
    """

    array: object
    offset: int
    strides: tuple

    def stride(self, axis):
        """The stride along an axis, 0 if there is none."""
        return dict(self.strides).get(axis, 0)


class Span(Enum):
    """The entries of its axis that a loop runs through."""

    WHOLE = "all of them"
    STRIPS = "the first one of each strip"
    STRIP = "those of the current strip"


class Loop(NamedTuple):
    """``body`` for each index of ``axis``; ``width`` is that of strips."""

    axis: Axis
    span: Span
    width: int
    body: list


class Load(NamedTuple):
    """``out = access``."""

    out: Scalar
    access: Access


class Compute(NamedTuple):
    """``out = function(*args)``, a function of numbers by NumPy's name (see `Map`)."""

    out: Scalar
    function: str
    args: tuple


class Store(NamedTuple):
    """``access = value``."""

    access: Access
    value: Scalar


class Reset(NamedTuple):
    """``access =`` the neutral number of ``ufunc``, or its first operand is to come."""

    access: Access
    ufunc: str


class Accumulate(NamedTuple):
    """``access = ufunc(access, value)``; sums and products may be made in any order."""

    access: Access
    ufunc: str
    value: Scalar


def statements_in(body, path=()):
    """Yield each statement that is no loop, in order, with the loops around it."""
    for each in body:
        if type(each) is Loop:
            yield from statements_in(each.body, (*path, each))
        else:
            yield path, each


def identity_of(ufunc, dtype):
    """The number that changes no other one; adding -0.0 keeps the sign of zero."""
    if ufunc == "multiply":
        return 1
    if ufunc == "add":
        return -0.0 if dtype.kind == "f" else 0
    if dtype.kind == "f":
        return -np.inf if ufunc == "maximum" else np.inf
    if dtype.kind == "b":
        return ufunc == "minimum"
    limits = np.iinfo(dtype)
    return limits.min if ufunc == "maximum" else limits.max
