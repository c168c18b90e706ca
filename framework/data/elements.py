"""Elements of datasets: tensors in host memory, alone or in tuples and dicts.

As in ``tf.data``, a list is one tensor, not a structure. Functions of elements run on
the host; elements are copied to the current device when they leave an iterator.
"""

import operator
from functools import partial

import numpy as np

from tapewright.compiler.tracing.tracer import SymbolicTensor, fall_back, inside
from tapewright.core.composite import CompositeSpec
from tapewright.core.dtypes import BY_NUMPY, kind_of
from tapewright.core.hardware import devices
from tapewright.core.nest import (
    assert_same_structure,
    flatten,
    is_nested,
    map_structure,
    pack,
)
from tapewright.core.tensor import (
    TensorSpec,
    convert_to_tensor,
    is_composite,
    is_tensor,
    new_tensor,
    to_array,
)

from .products_at_fork import noted


def as_element(value, spec=None):
    """Convert each leaf of ``value`` to a tensor, with the dtypes of ``spec`` if given.

    Without a spec, tuples are structure; where the spec has a tensor they are its rows.
    """
    if isinstance(spec, TensorSpec):
        return host_tensor(value, spec.dtype)
    if isinstance(value, tuple):
        specs = spec if isinstance(spec, tuple) else [spec] * len(value)
        items = [as_element(item, s) for item, s in zip(value, specs, strict=True)]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, dict):
        specs = spec if isinstance(spec, dict) else dict.fromkeys(value, spec)
        return {key: as_element(item, specs[key]) for key, item in value.items()}
    if hasattr(type(value), "element_spec"):  # a dataset in a dataset
        return value
    if is_composite(value):
        return map_structure(host_tensor, value, expand_composites=True)
    return host_tensor(value, getattr(spec, "dtype", None))  # a tuple fits no tensor


def map_leaves(value, convert):
    """Return ``value`` with ``convert(leaf)`` for each leaf; lists are leaves.

    Each component tensor of a sparse or ragged tensor is converted.
    """
    if isinstance(value, tuple):
        items = [map_leaves(item, convert) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, dict):
        return {key: map_leaves(item, convert) for key, item in value.items()}
    if is_composite(value):
        return map_structure(convert, value, expand_composites=True)
    return convert(value)


def concrete(value):
    """Return a number as an argument of a dataset; end a trace if its value is unknown."""
    if type(value) is SymbolicTensor:
        fall_back("a Dataset made from traced numbers is created in each call")
    return value


def checked_count(who, name, value, least):
    """Return an argument of a transformation as an integer of at least ``least``.

    Raises:
        TypeError: If it is not an integer.
        ValueError: If it is below ``least``.
    """
    value = concrete(value)
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{who}: {name} must be an integer, got {value!r}") from None
    if number < least:
        raise ValueError(f"{who}: {name} must be at least {least}, got {number}")
    return number


def row_of_counts(who, name, value):
    """Return the integers of a vector or scalar as a list; they must not all be 0.

    Raises:
        TypeError: As in `checked_count`.
        ValueError: As in `checked_count`.
    """
    value = concrete(value)
    numbers = np.asarray(getattr(value, "array", value))
    if numbers.ndim == 0:
        return [checked_count(who, name, value, 1)]
    counts = [checked_count(who, name, number, 0) for number in numbers.ravel()]
    if numbers.ndim > 1 or not any(counts):
        raise ValueError(
            f"{who}: {name} must be one size or a list of them, got {value!r}"
        )
    return counts


def host_tensor(value, dtype=None):
    """Return ``value`` as a tensor in host memory.

    Arrays are copied; lists of arrays keep their dtype.
    """
    if dtype is None and isinstance(value, list):
        dtype = _dtype_of_arrays(value)
    if is_tensor(value):
        tensor = convert_to_tensor(value)
        if type(tensor) is SymbolicTensor:
            fall_back("a Dataset made from traced tensors is created in each call")
        if isinstance(tensor.array, (np.ndarray, np.generic)) and dtype in (
            None,
            tensor.dtype,
        ):
            return new_tensor(tensor.array)  # apart from tapes
        value = tensor
    elif devices.current_module() is np:
        return convert_to_tensor(value, dtype)
    return new_tensor(devices.to_numpy(to_array(value, dtype, module=np)))


def _dtype_of_arrays(rows):
    """Return the dtype of the arrays in a list, or None if it contains anything else."""
    dtypes = [
        _dtype_of_arrays(x) if isinstance(x, list) else getattr(x, "dtype", None)
        for x in rows
        if isinstance(x, (list, np.ndarray))
    ]
    is_one = len(dtypes) == len(rows) and len(set(dtypes)) == 1
    return dtypes[0] if is_one and dtypes[0] in BY_NUMPY else None


def on_device(element):
    """Return ``element`` with its numbers on the current device: a GPU gets copies."""
    module = devices.current_module()
    if module is np:
        return element
    return map_structure(partial(_moved, module), element, expand_composites=True)


def _moved(module, leaf):
    array = getattr(leaf, "array", None)  # a dataset in a dataset has none
    if array is None or kind_of(array.dtype) not in "biufc":
        return leaf
    is_there = devices.array_module(type(array)) is module
    return leaf if is_there else new_tensor(devices.copy_to(module, array))


def detached(value):
    """Return ``value`` as a tensor apart from tapes."""
    return new_tensor(convert_to_tensor(value).array)


def call_function(function, element):
    """Call a function with an element: a tuple is passed as several arguments."""
    if devices.current_module() is not np:
        with devices.use_module(np):
            return call_function(function, element)
    with inside():
        if type(element) is tuple:
            return noted(function, *element)
        return noted(function, element)


def packer(structure):
    """Return a fast `pack` for one structure: leaves in, element out; None stays None."""
    if not is_nested(structure):
        return _single
    flat = flatten(structure)
    if any(leaf is None for leaf in flat):
        return partial(_pack_beside_none, structure, flat)
    if type(structure) is tuple and not any(map(is_nested, structure)):
        return tuple
    return partial(pack, structure)


def _pack_beside_none(structure, flat, leaves):
    leaves = iter(leaves)
    return pack(structure, [None if leaf is None else next(leaves) for leaf in flat])


def _single(leaves):
    return leaves[0]


def stack_elements(elements, who="batch", spec=None):
    """Stack elements of one structure along a new first axis.

    ``spec`` is the spec of an element if a component is known to be ragged.

    Raises:
        ValueError: If their shapes differ.
    """
    first = elements[0]
    columns = zip(*[_leaves(element, first, who) for element in elements], strict=True)
    specs = [None] * len(flatten(first)) if spec is None else flatten(spec)
    pairs = enumerate(zip(columns, specs, strict=True))
    return pack(first, [_stack(column, i, who, kind) for i, (column, kind) in pairs])


def _leaves(element, first, who):
    leaves = flatten(element)
    if type(element) is not type(first) or len(leaves) != len(flatten(first)):
        raise ValueError(
            f"{who}: elements differ in structure: {describe(first)} and "
            f"{describe(element)}"
        )
    return leaves


def _stack(tensors, component, who, spec=None):
    with devices.use_module(np):
        if isinstance(spec, CompositeSpec):
            return spec._tw_stack_rows(tensors)
        if is_composite(tensors[0]):
            return tensors[0]._tw_stacked(tensors)
    arrays = [tensor.array for tensor in tensors]
    shape, dtype = arrays[0].shape, arrays[0].dtype
    for number, array in enumerate(arrays):
        if array.shape != shape or array.dtype != dtype:
            raise ValueError(
                f"{who}: elements of one batch must have one shape and dtype; component "
                f"{component} has {shape}, {dtype.name} in the first and {array.shape}, "
                f"{array.dtype.name} in element {number}; padded_batch pads"
            )
    return new_tensor(np.stack(arrays))


def spec_of(element):
    """Return ``element`` with a `TensorSpec` in place of each tensor."""
    return map_structure(_leaf_spec, element)


def _leaf_spec(leaf):
    if is_composite(leaf):
        return leaf._tw_spec()
    return getattr(leaf, "element_spec", None) or TensorSpec.from_tensor(leaf)


def common_spec(who, specs):
    """Return the spec of elements of several datasets; sizes that differ are None.

    Raises:
        TypeError: If structures or dtypes differ.
    """
    first, *others = specs
    try:
        for other in others:
            assert_same_structure(first, other)
            pairs = zip(flatten(first), flatten(other), strict=True)
            first = pack(first, [_general(*pair) for pair in pairs])
    except (TypeError, ValueError, KeyError):
        raise TypeError(
            f"{who}: the datasets must have elements of one structure and dtype, got "
            + " and ".join(map(str, specs))
        ) from None
    return first


def _general(a, b):
    if a == b:
        return a
    if type(a) is not type(b) or a.dtype != b.dtype:
        raise TypeError
    shape = None
    if a.shape.rank is not None and a.shape.rank == b.shape.rank:
        shape = [m if m == n else None for m, n in zip(a.shape, b.shape, strict=True)]
    if not isinstance(a, CompositeSpec):
        return TensorSpec(shape, a.dtype)
    if a._tw_with_shape(shape) != b._tw_with_shape(shape):
        raise TypeError
    return a._tw_with_shape(shape)


def describe(structure):
    """Describe a structure in a few words."""
    if isinstance(structure, dict):
        items = [f"{key!r}: {describe(item)}" for key, item in structure.items()]
        return f"{{{', '.join(items)}}}"
    if isinstance(structure, tuple):
        return f"({', '.join(describe(item) for item in structure)})"
    shape = getattr(structure, "shape", None)
    return type(structure).__name__ if shape is None else f"shape {tuple(shape)}"
