"""Shapes, attributes and arguments in which sizes may be unknown: see `symbolic_dim`."""

import math
from contextlib import contextmanager
from contextvars import ContextVar
from operator import index

from .symbolic_dim import Dim, is_size, value_of

__all__ = [
    "Sizes",
    "agree",
    "definitely_equal",
    "divides",
    "equal_for_examples",
    "evaluated",
    "has_symbolic_shape",
    "product",
    "sizes_in_use",
    "whole",
    "with_sizes",
]


def agree(a, b):
    """Return whether two dimensions that must be equal are, or may be: None is unknown."""
    if a is None or b is None or a is b:
        return True
    if not (is_size(a) or is_size(b)):
        return a == b
    return (a if is_size(a) else b).scope.unify(a - b)


def divides(number, total):
    """Return whether a dimension is, or may be, a multiple of a number, as it must be."""
    rest = total % number
    return rest.scope.allow(rest) if is_size(rest) else rest == 0


def definitely_equal(shape, other):
    """Return whether two shapes are equal whatever the sizes in them; adds no guard."""
    if hasattr(shape, "shape_symbol") or hasattr(other, "shape_symbol"):
        return getattr(shape, "shape_symbol", None) == getattr(other, "shape_symbol", 0)
    if len(shape) != len(other):
        return False
    for a, b in zip(shape, other):
        if is_size(a) != is_size(b) or (
            a.expression != b.expression if is_size(a) else a != b
        ):
            return False
    return True


def equal_for_examples(shape, other):
    """Return whether two shapes are equal for the example sizes of their trace.

    Sizes that have to be equal by a guard are so there; no guard is added.
    """
    if definitely_equal(shape, other):
        return True
    if hasattr(shape, "shape_symbol") or hasattr(other, "shape_symbol"):
        return False
    return [_example(n) for n in shape] == [_example(n) for n in other]


def _example(n):
    return value_of(n.expression, n.scope.examples) if is_size(n) else n


class Sizes(tuple):
    """A shape in which dimensions may be unknown: compares as late as it can.

    Shapes of another rank differ, whatever their sizes: no guard is added for that.
    """

    __slots__ = ()

    def __eq__(self, other):
        if not isinstance(other, tuple):
            return NotImplemented
        if len(self) != len(other):
            return False
        open_pairs = []  # known dimensions settle it first, if they can
        for a, b in zip(self, other):
            if is_size(a) or is_size(b):
                open_pairs.append((a, b))
            elif a != b:
                return False
        return all(a is b or a == b for a, b in open_pairs)

    def __ne__(self, other):
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self):
        return hash(tuple(self))


def has_symbolic_shape(x):
    """Return whether a value, or a nest of plain ones, holds an unknown size."""
    if isinstance(x, (tuple, list)):
        return hasattr(x, "shape_symbol") or any([has_symbolic_shape(y) for y in x])
    if type(x) is dict:
        return any([has_symbolic_shape(y) for y in x.values()])
    return is_size(x)


def evaluated(x, sizes):
    """A value, or a nest of plain ones, with sizes (`Size` -> number) put in."""
    if is_size(x):
        return value_of(x.expression, sizes)
    if type(x) is list:
        return [evaluated(y, sizes) for y in x]
    if hasattr(x, "shape_symbol"):  # a shape of unknown rank
        return sizes[x.shape_symbol.input, "shape"]
    if isinstance(x, tuple):
        return tuple([evaluated(y, sizes) for y in x])
    if type(x) is dict:
        return {k: evaluated(y, sizes) for k, y in x.items()}
    return x


# While formulas are to be replaced by their values: `Size` -> number.
_IN_USE = ContextVar("sizes", default=None)
sizes_in_use = _IN_USE.get


@contextmanager
def with_sizes(sizes):
    """A context in which graphs are run with these numbers for their unknown sizes."""
    token = _IN_USE.set(sizes)
    try:
        yield
    finally:
        _IN_USE.reset(token)


def product(shape):
    """The number of entries of a shape, even of one of unknown rank."""
    return shape.size if hasattr(shape, "shape_symbol") else math.prod(shape)


def whole(n):
    """``n`` as a plain int or a `Dim`; it may be a tensor of rank 0 that holds one.

    Raises: ``TypeError`` if it is neither.
    """
    if type(n) is int or type(n) is Dim:
        return n
    known = getattr(n, "known_sizes", None)
    if known is not None:
        entries = known()
        if entries is not None and entries.ndim == 0:
            return entries.item()
    return index(n)
