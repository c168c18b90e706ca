"""Lists of arrays as one value: the states of a loop whose length nobody knows before."""

import numpy as np

__all__ = ["Box", "boxed", "opened", "sum_of_boxes"]


class Box:
    """A list of arrays, one a step, which graphs know as an array of rank 0."""

    __slots__ = ("items",)

    def __init__(self, items):
        self.items = items


def boxed(items):
    """A list as the array that goes through graphs."""
    box = np.empty((), object)
    box[()] = Box(items)
    return box


def sum_of_boxes(x, y):
    """The sum of two of these, item by item; the number 0 stands for zeros."""
    x, y = x.item(), y.item()
    if isinstance(x, Box) and isinstance(y, Box):
        return boxed([a + b for a, b in zip(x.items, y.items)])
    return boxed((x if isinstance(x, Box) else y).items)


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
