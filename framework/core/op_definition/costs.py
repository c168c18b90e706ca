"""The cost of an op, computed from shapes alone: the trait ``cost`` of primitives.

Sums, products, comparisons and selections count as one flop each; transcendental
functions such as ``exp`` are counted separately. Moving data costs bytes and no
operations.
"""

import math
from typing import NamedTuple


class Cost(NamedTuple):
    """Counts of one call: ``flops``, ``transcendentals`` (``exp``, ``sin``, ...), bytes."""

    flops: int
    transcendentals: int
    nbytes: int

    def __add__(self, other):
        return Cost(*[a + b for a, b in zip(self, other, strict=True)])


def size_of(x):
    """Return the number of entries of an object with a shape."""
    return math.prod(x.shape)


def per_input(flops, transcendentals=0):
    """Return a ``cost`` proportional to the size of the largest input."""

    def cost(inputs, outputs, **attributes):
        size = max(map(size_of, inputs))
        return flops * size, transcendentals * size

    return cost


def cubic(factor):
    """Return a ``cost`` of ``factor * n ** 3`` per matrix and ``2 n ** 2`` per column.

    The first input holds the matrices; the second, if any, holds the columns.
    """

    def cost(inputs, outputs, **attributes):
        shape = inputs[0].shape
        cubes = factor * math.prod(shape[:-1]) * min(shape[-2:]) * shape[-1]
        columns = 2 * size_of(inputs[1]) * shape[-1] if len(inputs) > 1 else 0
        return int(cubes) + columns

    return cost


def op_cost(op, inputs, outputs, attributes=None) -> Cost:
    """Return the cost of one call of a primitive, for objects with shape and nbytes."""
    cost = op.cost
    if callable(cost):
        cost = cost(inputs, outputs, **{**op.defaults, **(attributes or {})})
        flops, transcendentals = cost if type(cost) is tuple else (cost, 0)
    else:
        flops, transcendentals = [each * size_of(outputs[0]) for each in cost]
    return Cost(flops, transcendentals, total_bytes(inputs) + total_bytes(outputs))


def total_bytes(arrays):
    """Return the bytes of arrays; a view counts at most the bytes of its base."""
    total, seen = 0, set()
    for x in arrays:
        if id(x) not in seen and hasattr(x, "nbytes"):
            seen.add(id(x))
            base = getattr(x, "base", None)
            total += x.nbytes if base is None else min(x.nbytes, base.nbytes)
    return total
