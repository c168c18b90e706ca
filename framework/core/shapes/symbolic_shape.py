"""Shapes, attributes and arguments that may contain unknown sizes: see `symbolic_dim`."""

import math
from contextlib import contextmanager
from contextvars import ContextVar
from operator import index

from .symbolic_dim import UnknownSize, evaluate, is_symbolic
from .symbolic_operand import TracedOperand
from .tensor_shape import TensorShape, UnrankedShape


def agree(a, b):
    """Return whether two dimensions that must be equal can be; None is unknown.

    If one is an `UnknownSize`, their equality becomes a guard.
    """
    if a is None or b is None or a is b:
        return True
    if not (is_symbolic(a) or is_symbolic(b)):
        return a == b
    return (a if is_symbolic(a) else b).scope.unify(a - b)


def divides(number, total):
    """Return whether a number can divide a dimension that must be a multiple of it."""
    rest = total % number
    return rest.scope.allow(rest) if is_symbolic(rest) else rest == 0


def definitely_equal(shape, other):
    """Return whether two shapes are equal for all sizes in them; adds no guard."""
    if isinstance(shape, UnrankedShape) or isinstance(other, UnrankedShape):
        return getattr(shape, "shape_symbol", None) == getattr(other, "shape_symbol", 0)
    if len(shape) != len(other):
        return False
    for a, b in zip(shape, other):
        if is_symbolic(a) != is_symbolic(b) or (
            a.expression != b.expression if is_symbolic(a) else a != b
        ):
            return False
    return True


def equal_for_examples(shape, other):
    """Return whether two shapes are equal for the example sizes of their trace.

    Sizes that a guard equates are equal in the examples; no guard is added.
    """
    if definitely_equal(shape, other):
        return True
    if isinstance(shape, UnrankedShape) or isinstance(other, UnrankedShape):
        return False
    return [_example(n) for n in shape] == [_example(n) for n in other]


def _example(n):
    return evaluate(n.expression, n.scope.examples) if is_symbolic(n) else n


class SymbolicShape(tuple):
    """A shape with `UnknownSize` dimensions, which adds guards as late as possible.

    Shapes of different ranks, or with different known dimensions, differ without a
    guard.
    """

    __slots__ = ()

    def __eq__(self, other):
        if not isinstance(other, tuple):
            return NotImplemented
        if len(self) != len(other):
            return False
        symbolic_pairs = []
        for a, b in zip(self, other):
            if is_symbolic(a) or is_symbolic(b):
                symbolic_pairs.append((a, b))
            elif a != b:
                return False
        return all(a is b or a == b for a, b in symbolic_pairs)

    def __ne__(self, other):
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self):
        return hash(tuple(self))


def has_symbolic_shape(x):
    """Return whether a value, or a nest of plain values, contains an unknown size."""
    if isinstance(x, UnrankedShape):
        return True
    if isinstance(x, (tuple, list)):
        parts = x
    elif type(x) is dict:
        parts = x.values()
    else:
        return is_symbolic(x)
    for part in parts:
        if type(part) is not int and has_symbolic_shape(part):  # nearly all are
            return True
    return False


def substitute(x, sizes):
    """Substitute sizes (`DimSymbol` -> number) in a value or a nest of plain values."""
    if is_symbolic(x):
        return evaluate(x.expression, sizes)
    if type(x) is list:
        return [substitute(y, sizes) for y in x]
    if isinstance(x, UnrankedShape):
        return sizes[x.shape_symbol.input, "shape"]
    if isinstance(x, tuple):
        return tuple([substitute(y, sizes) for y in x])
    if type(x) is dict:
        return {k: substitute(y, sizes) for k, y in x.items()}
    return x


def static_shapes(x):
    """Return a shape, or a nest of shapes, with None for unknown sizes, for users."""
    if not has_symbolic_shape(x):
        return x
    if is_symbolic(x):
        return None
    if isinstance(x, UnrankedShape):
        return TensorShape(None)
    if type(x) is dict:
        return {k: static_shapes(y) for k, y in x.items()}
    sizes = [static_shapes(y) for y in x]
    if isinstance(x, TensorShape):
        return TensorShape(sizes)
    return type(x)(*sizes) if hasattr(x, "_fields") else type(x)(sizes)


# The numbers (`DimSymbol` -> number) for the unknown sizes of the graph that runs, or None.
_IN_USE = ContextVar("sizes", default=None)
sizes_in_use = _IN_USE.get


@contextmanager
def with_sizes(sizes):
    """Context in which graphs run with these numbers for their unknown sizes."""
    token = _IN_USE.set(sizes)
    try:
        yield
    finally:
        _IN_USE.reset(token)


def product(shape):
    """Return the number of elements of a shape, also of unknown rank."""
    return shape.size if isinstance(shape, UnrankedShape) else math.prod(shape)


def as_size(n):
    """Convert ``n``, possibly a tensor of rank 0, to a plain int or an `UnknownSize`.

    Raises:
        TypeError: If it is neither.
    """
    if type(n) is int or type(n) is UnknownSize:
        return n
    if isinstance(n, TracedOperand):
        entries = n.known_sizes()
        if entries is not None and entries.ndim == 0:
            return entries.item()
    return index(n)
