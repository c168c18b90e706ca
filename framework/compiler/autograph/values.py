"""Values of Python variables: their leaves, their tensors, and comparison."""

import numpy as np

from tapewright.core.dtypes import kind_of
from tapewright.core.nest import flatten, is_nested, pack
from tapewright.core.shapes.tensor_shape import TensorShape
from tapewright.core.tensor import Tensor, is_composite


def is_number(x):
    """Return whether a Python or NumPy leaf can become a tensor."""
    if isinstance(x, (bool, int, float, complex)):
        return True
    return isinstance(x, (np.generic, np.ndarray)) and kind_of(x.dtype) in "biufc"


def is_same(a, b):
    """Return whether two leaves are the same object, or equal Python values."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, Tensor):
        return False
    if isinstance(a, float):
        return a.hex() == b.hex()
    if isinstance(a, TensorShape):
        return tuple(a) == tuple(b)
    return isinstance(a, (bool, int, str, bytes, complex, range, slice)) and a == b


def leaves_of(value):
    """Return the leaves of a nest; any other value is its own leaf."""
    return flatten(value) if is_nested(value) else [value]


def tensors_of(leaf):
    """Return the tensors of a leaf as a list, or None if it is a Python object."""
    if is_composite(leaf):
        return leaf._tw_components()
    if isinstance(leaf, Tensor):
        return [leaf]
    return [leaf] if is_number(leaf) else None


def with_tensors(value, slices, tensors):
    """Return a nest like ``value``, with tensors in the positions of its leaves.

    ``slices`` has the slice of the tensors of each leaf, or None to keep the leaf.
    """
    leaves = []
    for leaf, part in zip(leaves_of(value), slices, strict=True):
        if part is None:
            leaves.append(leaf)
        elif is_composite(leaf):
            leaves.append(leaf._tw_with_components(list(tensors[part])))
        else:
            leaves.append(tensors[part][0])
    return pack(value, leaves) if is_nested(value) else leaves[0]


def same_nesting(a, b):
    """Return whether two nests have the same types, sizes and keys."""
    if not (is_nested(a) or is_nested(b)):
        composites = [x for x in (a, b) if is_composite(x)]
        return not composites or (len(composites) == 2 and a._tw_is_like(b))
    if isinstance(a, dict) and isinstance(b, dict):
        same = a.keys() == b.keys()
        return same and all([same_nesting(a[key], b[key]) for key in a])
    if isinstance(a, (list, tuple)) and type(a) is type(b) and len(a) == len(b):
        return all(map(same_nesting, a, b))
    return False


def shown(value):
    """Format a value as text, for a message."""
    text = repr(value)
    return text if len(text) <= 80 else f"an object of {type(value).__name__}"
