"""Iterators in traced functions: each call takes an element, as a side effect.

A tensor, the handle, represents the iterator in the trace, so that one trace serves all
iterators over elements of one spec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tapewright.compiler.autograph.iteration import Steps
from tapewright.compiler.control_flow.effects import host_effect
from tapewright.compiler.control_flow.printing import assert_true
from tapewright.compiler.control_flow.while_loop import while_loop
from tapewright.compiler.tracing.handles import (
    HANDLE_SPEC,
    UnexpectedElement,
    handle_of,
    object_of,
)
from tapewright.compiler.tracing.tracer import fall_back
from tapewright.core import text
from tapewright.core.composite import CompositeTensor
from tapewright.core.dtypes import kind_of
from tapewright.core.errors import OutOfRangeError
from tapewright.core.hardware import devices
from tapewright.core.interpreters import active_tracer, use_interpreters
from tapewright.core.nest import flatten, map_structure
from tapewright.core.tensor import TensorSpec, constant, convert_to_tensor
from tapewright.ops.array.conversion import stop_gradient

from .elements import describe, map_leaves, packer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tapewright.core.tensor import Tensor

NEXT = "iterator_get_next"


def traceable(spec, who):
    """Return the leaves of a spec; end the trace (`fall_back`) if a shape is unknown."""
    if not is_static(spec):
        fall_back(
            f"{who}: the sizes of an element must be known to trace it, got {spec}; "
            "use batch(..., drop_remainder=True), or output_signature in from_generator"
        )
    return flatten(spec)


def is_static(spec):
    """Return whether all leaves of a spec are tensors of numbers of a known shape."""
    return spec is not None and all(
        [
            isinstance(leaf, TensorSpec)
            and kind_of(leaf.dtype.dtype) in "biufc"
            and leaf.shape.is_fully_defined()
            for leaf in flatten(spec)
        ]
    )


def _static_spec(handle, spec):
    """Return the spec, or the spec of the next element if it can be peeked at."""
    if is_static(spec):
        return spec
    return active_tracer().peek_spec(handle, NEXT) or spec


def next_element(handle, spec):
    """The next element, taken in each call; ``OutOfRangeError`` at the end."""
    spec = _static_spec(handle, spec)
    leaves = traceable(spec, "next(iterator)")

    def take(array):
        arrays = _take_arrays(array, leaves)
        if arrays is None:
            raise OutOfRangeError("End of sequence: the iterator has no more elements")
        return arrays

    return packer(spec)(list(host_effect(NEXT, take, [handle], _specs(leaves))))


def next_optional(handle, spec):
    """The next element, if there is one, as an `Optional`."""
    spec = _static_spec(handle, spec)
    leaves = traceable(spec, "get_next_as_optional()")

    def take(array):
        arrays = _take_arrays(array, leaves)
        if arrays is None:
            xp = devices.current_module()
            return [
                np.array(False),
                *[text.zeros(xp, *each) for each in _specs(leaves)],
            ]
        return [np.array(True), *arrays]

    specs = [((), np.dtype(bool)), *_specs(leaves)]
    flag, *tensors = host_effect(NEXT, take, [handle], specs)
    return Optional(flag, tensors, spec)


def new_run(dataset):
    """Return the handle of an iterator that each call creates."""

    def begin():
        with use_interpreters(()):
            return [handle_of(iter(dataset))]

    (handle,) = host_effect("dataset_iterator", begin, [], [HANDLE_SPEC])
    return handle


def steps_of(handle, spec, who):
    """Return the steps of a `for` loop over an iterator."""
    spec = _static_spec(handle, spec)
    traceable(spec, who)
    return Steps(
        next_optional(handle, spec),
        lambda optional: optional.has_value(),
        lambda optional: map_structure(stop_gradient, optional._element),
        lambda optional: next_optional(handle, spec),
        takes=True,
    )


def traced_reduce(dataset, initial_state, reduce_func):
    """Trace `Dataset.reduce` as a loop, which iterates anew in each call."""
    spec = dataset._declared_spec
    traceable(spec, "Dataset.reduce")
    handle = new_run(dataset)
    state = map_leaves(initial_state, convert_to_tensor)

    def body(optional, state):
        after = reduce_func(state, optional._element)
        return next_optional(handle, spec), map_leaves(after, convert_to_tensor)

    first = next_optional(handle, spec)
    _, state = while_loop(lambda x, _: x.has_value(), body, (first, state))
    return map_structure(stop_gradient, state)


def _specs(leaves):
    return [(tuple(leaf.shape), leaf.dtype.dtype) for leaf in leaves]


def _take_arrays(array, leaves):
    """Return the arrays of the next element of an iterator, which is in an array, or None.

    They are copies, on the current device: a variable may be bound to them.

    Raises:
        UnexpectedElement: If the element has another spec; it is then still the next
            one.
    """

    def check(element):
        arrays = [leaf.array for leaf in flatten(element)]
        if [(a.shape, a.dtype) for a in arrays] != _specs(leaves):
            raise UnexpectedElement(
                f"the iterator was traced for elements of {leaves}, but the next has "
                f"{describe(element)}"
            )

    element = object_of(array)._take(check)
    if element is None:
        return None
    module = devices.current_module()
    return [devices.copy_to(module, leaf.array) for leaf in flatten(element)]


class Optional(CompositeTensor):
    """An element that may be absent: the result of `DatasetIterator.get_next_as_optional`.

    Args:
        flag: Boolean scalar, True if there is an element.
        leaves: Tensors of the element, or None.
        spec: Specs of the element.

    Example:
        >>> from tapewright.data import Dataset
        >>> optional = iter(Dataset.range(3)).get_next_as_optional()
        >>> bool(optional.has_value()), int(optional.get_value())
        (True, 0)
    """

    def __init__(self, flag: Tensor, leaves: list[Tensor] | None, spec: Any):
        self._flag, self._leaves, self._spec = flag, leaves, spec

    @staticmethod
    def from_value(value: Any) -> Optional:
        """Create an `Optional` that holds an element.

        Args:
            value: Tensor, or a nest of tensors.
        """
        value = map_leaves(value, convert_to_tensor)
        spec = map_structure(TensorSpec.from_tensor, value)
        return Optional(constant(True), flatten(value), spec)

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """Create an `Optional` that holds no element.

        Args:
            element_spec: Specs of the absent element.
        """
        return Optional(constant(False), None, element_spec)

    @property
    def element_spec(self) -> Any:
        """Specs of the element: a `TensorSpec` for each tensor."""
        return self._spec

    @property
    def _element(self) -> Any:
        """The element; its value is undefined if the `Optional` is empty."""
        return packer(self._spec)(self._leaves)

    def has_value(self, name: str | None = None) -> Tensor:
        """Return whether there is an element, as a boolean tensor."""
        return self._flag

    def get_value(self, name: str | None = None) -> Any:
        """Return the element.

        Raises:
            InvalidArgumentError: If there is none.
        """
        assert_true(self._flag, "get_value: the Optional holds no value")
        return self._element

    def _tw_components(self) -> list[Tensor]:
        """Return the flag and the tensors of the element."""
        return [self._flag, *(self._leaves or ())]

    def _tw_with_components(self, tensors: Sequence[Tensor]) -> Optional:
        """Return an `Optional` of the same spec with other tensors.

        Args:
            tensors: Flag and tensors of the element, as in `_tw_components`.
        """
        return Optional(tensors[0], list(tensors[1:]), self._spec)

    def _tw_static_key(self) -> Any:
        """Return the class and the spec of the element."""
        return Optional, repr(self._spec)
