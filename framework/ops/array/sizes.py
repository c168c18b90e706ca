"""Tensors that depend on unknown sizes: placeholders in a graph for their numbers.

While a function is traced with unknown dimensions, ``tw.shape(x)`` has no value yet. It
is a node of the op `sizes`, which holds the formulas (`UnknownSize`); when the sizes
are known it becomes a constant. Results of small integer ops on such tensors (an entry,
a product, a list of several) are known as formulas again, so that they may be used as a
shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapewright.core import dtypes, hooks
from tapewright.core.dtypes import kind_of
from tapewright.core.hardware import devices
from tapewright.core.interpreters import active_tracer
from tapewright.core.primitive import get_primitive, primitive
from tapewright.core.shapes.symbolic_dim import NeedsSize, is_symbolic
from tapewright.core.shapes.symbolic_shape import has_symbolic_shape
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    is_composite,
    is_tensor,
    new_tensor,
)
from tapewright.core.typing import DTypeLike


@primitive(no_gradient=True)
def sizes(xp, *, values, dtype: DTypeLike = "int32"):
    """Make a tensor of numbers that depend on sizes: a nest of ints and formulas."""
    return xp.asarray(values, dtypes.as_dtype(dtype).dtype)


@sizes.infer
def _(values, dtype):
    return TensorSpec(np.array(values, object).shape, dtype)


@primitive(no_gradient=True)
def arange(xp, *, count, dtype: DTypeLike = "int64"):
    """Return the numbers from 0 to ``count - 1``, for a count that is a formula."""
    return xp.arange(count, dtype=dtypes.as_dtype(dtype).dtype)


@arange.infer
def _(count, dtype):
    return TensorSpec([count], dtype)


# ------------------------------------------------------------------ numbers as tensors


@hooks.size_tensor.fill
def size_tensor(value, dtype=None, hint=None):
    """Convert a formula, or a nest of formulas, numbers and such tensors, to a tensor."""
    entries = np.array(_entries(value), object)
    floating = any([is_symbolic(n) and n.expression[0] != "poly" for n in entries.flat])
    natural = dtypes.float32 if floating else dtypes.int32
    if dtype is None and hint is not None and (
        not floating or dtypes.as_dtype(hint).dtype.kind in "fc"
    ):  # fmt: skip
        dtype = hint
    dtype = natural if dtype is None else dtypes.as_dtype(dtype)
    return _as_tensor(entries, dtype.dtype)


def _entries(value):
    """Convert a nest of tensors and numbers to a nest of numbers and formulas."""
    if isinstance(value, (list, tuple)):
        return tuple([_entries(v) for v in value])
    if isinstance(value, Tensor):
        known = known_sizes(value)
        if known is None:
            raise NeedsSize(
                "A list of sizes contains a tensor with unknown values; convert its "
                "entries one by one and stack them"
            )
        return tuple(known.tolist()) if known.ndim else known.item()
    return value


def _as_tensor(entries, dtype):
    """Convert an array of numbers and formulas to a tensor; without formulas, a constant."""
    values = _nest(entries)
    if not has_symbolic_shape(values):
        return new_tensor(devices.current_module().asarray(entries.astype(dtype)))
    tracer = active_tracer()
    if tracer is None:
        raise NeedsSize(
            "The size of an unknown dimension was used after its function was traced"
        )
    attributes = {"values": values, "dtype": dtype.name}
    return tracer.process(sizes.primitive, [], attributes, ())


def _nest(entries):
    if not entries.ndim:
        return entries.item()
    return tuple([_nest(np.asarray(row, object)) for row in entries])


# ------------------------------------------------------- tensors known to hold formulas


def known_sizes(x):
    """Return the numbers and formulas in a tensor as an array of objects, or None.

    For a tensor that is being traced: where they depend on sizes. For a constant: if it
    is small and holds integers.
    """
    symbol = getattr(x, "symbol", None)
    if symbol is None:
        array = x.array
        plain = devices.is_array(array) and array.dtype.kind in "iu"
        if not plain or array.size > _SMALL:
            return None
        return np.asarray(devices.to_numpy(array), object)
    node = symbol.node
    if node is None or node.op is not sizes.primitive:
        return None
    values = np.empty(symbol.shape, object)
    values[...] = node.attributes["values"]
    return values


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """Return the value of a tensor as a NumPy array if it is known, else None.

    In a traced function the values of constants are known, and numbers that depend on
    known sizes, such as ``tw.shape(x)[-1]``; the values of variables are not.

    Args:
        tensor: Tensor; other objects are returned unchanged.
        partial: If True and only some of the sizes are known, return an array of
            objects in which the others are None.

    Example:
        >>> import tapewright as tw
        >>> @tw.function
        ... def f(x):
        ...     print(tw.get_static_value(tw.shape(x)[-1]), tw.get_static_value(x))
        ...     return x
        >>> _ = f.get_concrete_function(tw.TensorSpec([None, 4]))
        4 None
    """
    if type(tensor) is Tensor:
        return tensor.numpy()
    if not isinstance(tensor, Tensor):
        return None if is_tensor(tensor) or is_composite(tensor) else tensor
    known = known_sizes(tensor)
    if known is None:
        return None
    unknown = np.vectorize(is_symbolic, otypes=[bool])(known)
    if not unknown.any():
        return known.astype(tensor.dtype.dtype)
    return np.where(unknown, None, known) if partial and known.ndim else None


_SMALL = 64
# Numbers of other dtypes wrap around where formulas do not.
_WIDE = ("int32", "int64")


def known_result(op, inputs, attributes):
    """Return the result of an op on tensors known as formulas, or None if it is unknown."""
    if not op.sizes or has_symbolic_shape(attributes):
        return None
    arrays = []
    for x in inputs:
        entries = known_sizes(x)
        if entries is None or x.array.dtype.name not in _WIDE:
            return None
        arrays.append(entries)
    inferred = op.infer_rule(
        *[TensorSpec(x.array.shape, x.array.dtype) for x in inputs], **attributes
    )
    specs = inferred if type(inferred) in (tuple, list) else (inferred,)
    kinds = [spec.dtype.dtype for spec in specs]
    if not all([kind.name in _WIDE or kind_of(kind) == "f" for kind in kinds]):
        return None
    kernel = op.device_kernels.get("formulas", op.kernel)
    try:
        result = kernel(np, *arrays, **attributes)
    except NeedsSize:  # as an index, say
        return None
    if type(inferred) not in (tuple, list):
        return _as_tensor(np.asarray(result, object), kinds[0])
    pairs = zip(result, kinds, strict=True)
    return tuple([_as_tensor(np.asarray(r, object), kind) for r, kind in pairs])


def known_as_sizes(*values):
    """Return whether one of these numbers is a formula, and the others are known."""
    if not any([is_symbolic(v) or hasattr(v, "symbol") for v in values]):
        return False
    unknown = False
    for value in values:
        entries = known_sizes(value) if isinstance(value, Tensor) else None
        if entries is not None:
            value = _nest(entries)
        elif not (type(value) is int or is_symbolic(value)):
            return False
        unknown = unknown or has_symbolic_shape(value)
    return unknown


def filled(shape, number, dtype):
    """Return a tensor filled with a number, for a shape that holds formulas."""
    xp = devices.current_module()
    number = new_tensor(xp.asarray(number, dtypes.as_dtype(dtype).dtype))
    return get_primitive("broadcast_to").entry(number, shape)
