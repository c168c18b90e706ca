"""Objects as one value: arrays of rank 0 that go through graphs.

A `Box` is a list of arrays, the states of a loop whose length nobody knows before; a
`Resource` is an object with a state of its own, which effects change.
"""

import numpy as np

from tapewright.core.errors import InvalidArgumentError
from tapewright.core.tensor import Tensor, new_tensor
from tapewright.ops.array.creation import zeros

__all__ = [
    "Box",
    "Resource",
    "Unforeseen",
    "boxed",
    "handle_of",
    "opened",
    "sum_of_boxes",
    "zeros_of",
]


class Box:
    """A list of arrays, one a step, which graphs know as an array of rank 0."""

    __slots__ = ("items",)

    def __init__(self, items):
        self.items = items


class Unforeseen(InvalidArgumentError):
    """A resource would give something of another spec; it has kept it."""


class Resource:
    """An object that traced functions take as a tensor, its `handle`.

    One trace serves all objects with the same ``resource_spec``.
    """

    @property
    def handle(self):
        """The tensor that stands for the object."""
        return new_tensor(handle_of(self))

    @property
    def resource_spec(self):
        """A hashable description of all that a trace depends on."""
        raise NotImplementedError(f"{type(self).__name__} must define resource_spec")

    def foresee(self, number):
        """The spec of what it will give after ``number`` more; None if nothing."""
        raise NotImplementedError(f"{type(self).__name__} must define foresee")

    def with_handle(self, handle):
        """The object of a handle: itself, or a stand-in like this one in a trace."""
        return handle.array.item() if type(handle) is Tensor else self.stand_in(handle)

    def stand_in(self, handle):
        """An object of the same spec without a state; ``handle`` may be None."""
        raise NotImplementedError(f"{type(self).__name__} must define stand_in")


def handle_of(x):
    """An object as the array that goes through graphs."""
    array = np.empty((), object)
    array[()] = x
    return array


def boxed(items):
    """A list as the array that goes through graphs."""
    return handle_of(Box(items))


def sum_of_boxes(x, y):
    """The sum of two of these, item by item; the number 0 stands for zeros."""
    x, y = x.item(), y.item()
    if isinstance(x, Box) and isinstance(y, Box):
        return boxed([a + b for a, b in zip(x.items, y.items)])
    return boxed((x if isinstance(x, Box) else y).items)


def zeros_of(spec):
    """Zeros of a shape and dtype; in the place of a list or an object the number 0."""
    shape, dtype = spec
    return new_tensor(handle_of(0)) if dtype.kind == "O" else zeros(shape, dtype)


class _Zeros:
    """Stands for the items of a list where no cotangent came: zeros of one spec."""

    def __init__(self, shape, dtype):
        self.zeros = np.zeros(shape, dtype)

    def __getitem__(self, number):
        return self.zeros


def opened(box, shape, dtype):
    """The items of a list; zeros for the number 0."""
    box = box.item()
    return box.items if isinstance(box, Box) else _Zeros(shape, dtype)
