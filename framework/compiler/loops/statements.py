"""The statements of loop nests: scalar operations, and the loops around them.

Arrays are read and written through an `Access`: an offset and a stride for each axis,
in entries. It may have *bounds*, the indices for which there is an entry; a `Select`
chooses another value elsewhere. Between two loops, scalars are kept in `Local` arrays.
Nothing here depends on a target, which prints the statements.
"""

import functools
import math
from enum import Enum
from typing import NamedTuple

import numpy as np


class Axis:
    """A dimension of a nest, with a fixed number of entries."""

    __slots__ = ("name", "extent")

    def __init__(self, name, extent):
        self.name, self.extent = name, extent

    def __repr__(self):
        return f"{self.name}:{self.extent}"


def size_of(axes):
    """Return the number of entries along several axes."""
    return math.prod([axis.extent for axis in axes])


class Local:
    """A local array of a nest, one per block; ``shape`` has the extents of its axes."""

    __slots__ = ("name", "dtype", "size")

    def __init__(self, name, dtype, size):
        self.name, self.dtype, self.size = name, dtype, size

    def __repr__(self):
        return f"{self.name}[{self.size}]"


class Scalar:
    """A scalar: the result of a statement, or a constant with a ``value``."""

    __slots__ = ("name", "dtype", "value")

    def __init__(self, name, dtype, value=None):
        self.name, self.dtype, self.value = name, dtype, value

    def __repr__(self):
        return self.name if self.value is None else repr(self.value)


class Access(NamedTuple):
    """Entry ``offset + sum(stride * index)`` of a buffer, or of a `Local`.

    ``strides``: pairs of an axis and a stride. In a local array, the index of an axis
    counts from the start of the current strip. ``bounds``: pairs of an axis and a range
    of its indices, which are counted from the start of the range, in its steps. There
    is no entry for other indices: a load yields 0.
    """

    array: object
    offset: int
    strides: tuple
    bounds: tuple = ()

    def stride(self, axis):
        """Return the stride along an axis, 0 if it has none."""
        for each, stride in self.strides:
            if each is axis:
                return stride
        return 0

    @property
    def axes(self):
        """The axes along which it reaches different entries."""
        return tuple([axis for axis, stride in self.strides if stride])

    def range(self, extents):
        """Return the first and the last entry, for a number of indices of each axis."""
        low = high = self.offset
        counts = {axis: len(indices) for axis, indices in self.bounds}
        for axis in self.axes:
            reach = self.stride(axis) * (counts.get(axis, extents[axis]) - 1)
            low, high = low + min(0, reach), high + max(0, reach)
        return low, high

    def collapse(self, a, b, both):
        """Return the same access with an axis ``both`` for ``a`` and ``b``, its inner part."""
        kept = [pair for pair in self.strides if pair[0] is not a]
        pairs = [(both if axis is b else axis, stride) for axis, stride in kept]
        bounds = collapse_bounds(self.bounds, a, b, both)
        return Access(self.array, self.offset, tuple(pairs), bounds)

    @property
    def is_whole(self):
        """Return whether the access reaches each entry of its array exactly once."""
        size = 1
        for axis, stride in sorted(self.strides, key=lambda pair: pair[1]):
            if axis.extent > 1 and stride != size:
                return False
            size *= axis.extent
        return self.offset == 0 and size == self.array.size and not self.bounds


def collapse_bounds(bounds, a, b, both):
    """Return bounds on ``a`` as bounds on ``both``, of which ``b`` is the inner part."""
    if not bounds:
        return bounds
    n = b.extent
    return tuple([
        (both, range(r.start * n, r.stop * n)) if axis is a else (axis, r)
        for axis, r in bounds
    ])  # fmt: skip


class Span(Enum):
    """The range of an axis that a loop iterates over."""

    WHOLE = "all of them"
    STRIPS = "the first one of each strip"
    STRIP = "those of the current strip"


class Loop(NamedTuple):
    """``body`` for each index of ``axis``; ``width`` is the width of strips.

    ``part``: the range of the indices to which the loop is confined, None for all.
    """

    axis: Axis
    span: Span
    width: int
    body: list
    part: range | None = None


class Load(NamedTuple):
    """``out = access``."""

    out: Scalar
    access: Access


class Compute(NamedTuple):
    """``out = function(*args)``, a scalar function under NumPy's name (see `Map`)."""

    out: Scalar
    function: str
    args: tuple


class Select(NamedTuple):
    """``out =`` the first of two ``args`` for indices within all ``bounds``, else the second.

    ``bounds``: pairs of an axis and a range of its indices, as of an `Access`.
    """

    out: Scalar
    bounds: tuple
    args: tuple


class Store(NamedTuple):
    """``access = value``."""

    access: Access
    value: Scalar


class Reset(NamedTuple):
    """``access =`` the identity of ``ufunc``, or mark it as awaiting its first operand."""

    access: Access
    ufunc: str


class Accumulate(NamedTuple):
    """``access = ufunc(access, value)``; sums and products may be computed in any order."""

    access: Access
    ufunc: str
    value: Scalar


def along(axes, body):
    """Put loops over whole axes around a body."""
    for axis in reversed(axes):
        body = [Loop(axis, Span.WHOLE, 0, body)]
    return body


def statements_in(body, path=()):
    """Yield each statement without a body, in order, with the loops or branches around it."""
    for each in body:
        if hasattr(each, "body"):
            yield from statements_in(each.body, (*path, each))
        else:
            yield path, each


def accesses_in(body):
    """Yield ``(path, access)`` of each access to memory outside the nest, in order."""
    for path, each in statements_in(body):
        access = getattr(each, "access", None)
        if access is not None and type(access.array) is not Local:
            yield path, access


def structure_of(tree, arrays):
    """Describe a tree of statements: trees that differ only in names have the same text.

    Axes, scalars and local arrays are numbered, and described where they first occur;
    ``arrays`` maps each buffer to its description.
    """
    numbers, parts, waiting = {}, [], [tree]
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if value is _END:
            parts.append(")")
        elif kind in _PLAIN:
            parts.append(repr(value))
        elif isinstance(value, tuple | list):
            parts.append(f"{kind.__name__}(")
            waiting += [_END, *reversed(value)]
        elif kind not in _DESCRIBED:
            parts.append(arrays[value])
        elif value in numbers:
            parts.append(f"#{numbers[value]}")
        else:
            numbers[value] = len(numbers)
            parts.append(f"{kind.__name__} {_DESCRIBED[kind](value)}")
    return " ".join(parts)


_END = object()  # of a tuple or list
_PLAIN = {int, str, type(None), range, Span}
_name = functools.cache(str)  # of a dtype
_DESCRIBED = {
    Axis: lambda axis: axis.extent,
    Local: lambda local: f"{_name(local.dtype)} {local.size}",
    Scalar: lambda scalar: f"{_name(scalar.dtype)} {_bits(scalar)}",
}


def _bits(scalar):
    """Return the bits of a constant: its ``repr`` may lack digits, or the sign of a NaN."""
    if scalar.value is None:
        return None
    return np.asarray(scalar.value, scalar.dtype).tobytes().hex()


def scalars_read(statement):
    """Return the scalars that a statement reads, other than constants."""
    args = getattr(statement, "args", None) or [getattr(statement, "value", None)]
    return [a for a in args if a is not None and a.value is None]


def identity_of(ufunc, dtype):
    """Return the identity element of a ufunc; -0.0 for sums, as it keeps the sign of zero."""
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
