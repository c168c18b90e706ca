"""Ops that run as Python on NumPy arrays, in traced functions as well."""

from __future__ import annotations

import numpy as np

from tapewright.compiler.control_flow.effects import host_effect
from tapewright.compiler.tracing.tracer import fall_back
from tapewright.core.errors import ShapeError
from tapewright.core.interpreters import active_tracer
from tapewright.core.tensor import convert_to_tensor
from tapewright.core.text import is_text, make_text


def host_op(who, call, inputs, specs):
    """Return tensors of ``call(*arrays)``, a list of arrays; ``specs`` describe each.

    In a traced function it runs in each call. If a shape is unknown, the calls of the
    function run eagerly.
    """
    pairs = {}
    for key, spec in {id(spec): spec for spec in specs}.items():  # often one for many
        known = spec.shape.is_fully_defined()
        if not known and active_tracer() is not None:
            fall_back(
                f"{who}: the shape of the result depends on values, so it cannot be traced. "
                "Call it in Dataset.map, or outside of the traced function"
            )
        shape = tuple(spec.shape) if known else spec.shape
        pairs[key] = shape, spec.dtype.dtype
    return host_effect(who, call, inputs, [pairs[id(spec)] for spec in specs])


def text_tensor(who, name, value):
    """Convert ``value`` to a tensor of strings.

    Raises:
        TypeError: If ``value`` has another dtype.
    """
    tensor = convert_to_tensor(value)
    if tensor.dtype.name != "string":
        if np.size(value) == 0 and not hasattr(value, "dtype"):  # an empty list
            return convert_to_tensor(make_text([], tuple(tensor.shape)))
        raise TypeError(
            f"{who}: {name} must be a tensor of strings, got {tensor.dtype.name}"
        )
    return tensor


def scalar_text(who, name, value):
    """Convert ``value`` to a tensor of a single string.

    Raises:
        ShapeError: If ``value`` has another rank (also a ``ValueError``).
        TypeError: If ``value`` has another dtype.
    """
    tensor = text_tensor(who, name, value)
    if tensor.shape.rank != 0:
        raise ShapeError(who, f"{name} must be a scalar", **{name: tensor})
    return tensor


def texts(array):
    """Return the strings of an array as a list of bytes in C order."""
    assert is_text(np.asarray(array).dtype)
    return np.asarray(array, object).ravel().tolist()
