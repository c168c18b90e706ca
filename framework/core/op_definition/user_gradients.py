"""Calls of users' gradient functions, with tensors in TensorFlow's convention."""

from ..interpreters import (
    ARRAY_EVAL,
    active_interpreter,
    active_interpreters,
    use_interpreters,
)
from ..tensor import convert_to_tensor, new_tensor
from .op_registry import get_primitive


class OpCall:
    """The forward call, passed to a gradient function of `RegisterGradient`."""

    __slots__ = ("name", "type", "inputs", "outputs", "_attributes")

    def __init__(self, op, inputs, outputs, attributes):
        self.name, self.type = op.name, op.type_name
        self.inputs, self.outputs = list(inputs), outputs
        self._attributes = attributes

    def get_attr(self, name):
        return self._attributes[name]


def call_user_function(function, call, g):
    """Call a gradient function and return its cotangents for the backward pass.

    In the backward pass cotangents are the conjugates of TensorFlow's (see `record`).
    """
    on_arrays = active_interpreter() is ARRAY_EVAL
    many = isinstance(g, (list, tuple))
    with use_interpreters(() if on_arrays else active_interpreters()):
        cotangents = [to_user(c, on_arrays) for c in (g if many else (g,))]
        parts = function(call, *cotangents)
        if isinstance(parts, (list, tuple)):
            return [from_user(p, on_arrays) for p in parts]
        return from_user(parts, on_arrays)


def to_user(c, on_arrays):
    """Convert a cotangent of the backward pass to a tensor in TensorFlow's convention."""
    tensor = new_tensor(c) if on_arrays and c is not None else c
    return conjugate(tensor)


def from_user(part, on_arrays):
    """Convert a user function's gradient to a cotangent of the backward pass, or None."""
    if part is None:
        return None
    tensor = conjugate(convert_to_tensor(part))
    return tensor.array if on_arrays else tensor


def conjugate(tensor):
    """Return the conjugate of a complex tensor; return real tensors and None unchanged."""
    if tensor is None or tensor.array.dtype.kind != "c":
        return tensor
    return get_primitive("conj").entry(tensor)
