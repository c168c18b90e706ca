"""Handles: Python objects in arrays of rank 0, so that graphs can pass them on.

A `ListValue` is a list of arrays: the states of a loop of unknown length. A `Resource`
is an object with state, such as an iterator, which effects change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.hardware.devices import current_module
from tapewright.core.tensor import Tensor, new_tensor
from tapewright.ops.array.creation import zeros

HANDLE: np.dtype[Any] = dtypes.resource.dtype
HANDLE_SPEC: tuple[Any, np.dtype[Any]] = (), HANDLE


class ListValue:
    """A list of arrays, one per step, represented in graphs by an array of rank 0."""

    __slots__ = ("items",)

    def __init__(self, items):
        self.items = items


class UnexpectedElement(InvalidArgumentError):
    """The next element of a resource has another spec than the trace; it was not consumed."""


class Resource:
    """An object that traced functions accept as a tensor, its `_tw_handle`.

    One trace serves all objects with the same ``_tw_resource_spec``.
    """

    @property
    def _tw_handle(self) -> Tensor:
        """A tensor that holds the object."""
        return new_tensor(handle_of(self))

    @property
    def _tw_resource_spec(self) -> Any:
        """A hashable description of all properties that a trace depends on."""
        raise NotImplementedError(
            f"{type(self).__name__} must define _tw_resource_spec"
        )

    def _tw_peek_spec(self, number: int) -> Any:
        """Return the spec of the element after ``number`` others, or None at the end."""
        raise NotImplementedError(f"{type(self).__name__} must define _tw_peek_spec")

    def _tw_with_handle(self, handle: Any) -> Any:
        """Return the object in a handle; for a traced handle, a stand-in for it.

        Args:
            handle: Handle, a value or traced.
        """
        return (
            object_of(handle.array)
            if type(handle) is Tensor
            else self._tw_stand_in(handle)
        )

    def _tw_stand_in(self, handle: Any) -> Any:
        """Return an object of the same spec without state; ``handle`` may be None."""
        raise NotImplementedError(f"{type(self).__name__} must define _tw_stand_in")


def handle_of(x):
    """Wrap an object in an array that graphs can pass on."""
    array = np.empty((), HANDLE)
    array["object"] = x
    return array


def object_of(handle):
    """Return the object in a handle, an array."""
    return handle.item()[0]


def list_value(items):
    """Wrap a list in an array that graphs can pass on."""
    return handle_of(ListValue(items))


def sum_of_lists(x, y):
    """Add two list values, item by item; the number 0 represents zeros."""
    x, y = object_of(x), object_of(y)
    if isinstance(x, ListValue) and isinstance(y, ListValue):
        return list_value([a + b for a, b in zip(x.items, y.items)])
    return list_value((x if isinstance(x, ListValue) else y).items)


def zeros_of(spec):
    """Return zeros of a shape and dtype; for a list or another object, the number 0."""
    shape, dtype = spec
    return new_tensor(handle_of(0)) if dtype == HANDLE else zeros(shape, dtype)


class _Zeros:
    """The items of a list of cotangents that are all zero."""

    def __init__(self, shape, dtype):
        self.zeros = current_module().zeros(shape, dtype)

    def __getitem__(self, number):
        return self.zeros


def list_items(value, shape, dtype):
    """Return the items of a list value; zeros for the number 0."""
    value = object_of(value)
    return value.items if isinstance(value, ListValue) else _Zeros(shape, dtype)
