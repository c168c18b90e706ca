"""Nested structures: lists, tuples, named tuples and dicts with arbitrary leaves.

Dicts are traversed in the order of their sorted keys, as in TensorFlow; `None` and
shapes are leaves. Values that consist of tensors (`CompositeTensor`) are leaves, too,
unless ``expand_composites`` is True.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from itertools import islice
from typing import Any

from .composite import CompositeTensor
from .shapes.tensor_shape import TensorShape

__all__ = [
    "ByType",
    "assert_same_structure",
    "flatten",
    "is_container",
    "is_nested",
    "map_structure",
    "owned_leaves",
    "pack",
    "pack_sequence_as",
]


class ByType(dict):
    """Cache the results of a predicate on types; a dict for fast lookups.

    Example:
        >>> from tapewright.core.nest import ByType
        >>> ByType(lambda kind: issubclass(kind, int))[bool]
        True
    """

    __slots__ = ("test",)

    def __init__(self, test: Callable[[type], bool]):
        self.test = test

    def __missing__(self, kind: type) -> bool:
        result = self.test(kind)
        # A class of a function must not be kept.
        if "<locals>" not in kind.__qualname__:
            self[kind] = result
        return result


def is_container(kind: type) -> bool:
    """Return whether objects of this type are traversed, see `is_nested`."""
    containers = (list, tuple, dict)
    return issubclass(kind, containers) and not issubclass(kind, TensorShape)


_CONTAINERS = ByType(is_container)


def is_nested(value: object) -> bool:
    """Return whether ``value`` is a list, tuple or dict. Shapes are not nested.

    Args:
        value: Object to test.

    Example:
        >>> keras.tree.is_nested([1, 2]), keras.tree.is_nested(3)
        (True, False)
    """
    return _CONTAINERS[type(value)]


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """Flatten a structure to the list of its leaves.

    Leaves are visited from left to right, dicts in the order of their sorted keys.

    Args:
        structure: Nested structure, or a single leaf.
        expand_composites: If True, return the component tensors of sparse and ragged
            tensors.

    Example:
        >>> tw.nest.flatten({"b": [3, 4], "a": (1, None)})
        [1, None, 3, 4]
    """
    leaves = []
    _collect(structure, leaves)
    return _expanded(leaves) if expand_composites else leaves


def _expanded(leaves):
    expanded = []
    for x in leaves:
        expanded += x._tw_components() if isinstance(x, CompositeTensor) else [x]
    return expanded


def _collect(structure, leaves):
    if not _CONTAINERS[type(structure)]:
        structure = (structure,)
    elif isinstance(structure, dict):
        structure = [structure[key] for key in _sorted_keys(structure)]
    for item in structure:
        if _CONTAINERS[type(item)]:
            _collect(item, leaves)
        else:
            leaves.append(item)


def owned_leaves(container: Any, in_order: bool = False) -> list[Any]:
    """Return the leaves of a container, visiting each container in it once.

    Containers may contain themselves. Dicts are traversed in the order of their keys
    or, with ``in_order``, of their entries.

    Example:
        >>> from tapewright.core.nest import owned_leaves
        >>> cycle = [1, {"b": 2, "a": 3}]
        >>> cycle.append(cycle)
        >>> owned_leaves(cycle), owned_leaves(cycle, in_order=True)
        ([1, 3, 2], [1, 2, 3])
    """
    leaves = []
    _collect_owned(container, in_order, leaves, {id(container)})
    return leaves


def _collect_owned(value, in_order, leaves, seen):
    if isinstance(value, dict):
        entries = dict(value)  # a copy: other threads may add some
        keys = entries if in_order else _sorted_keys(entries)
        value = [entries[key] for key in keys]
    for item in value:
        if not _CONTAINERS[type(item)]:
            leaves.append(item)
        elif item and id(item) not in seen:
            seen.add(id(item))
            _collect_owned(item, in_order, leaves, seen)


def _sorted_keys(mapping):
    try:
        return sorted(mapping)
    except TypeError:  # keys of several types keep the order of insertion
        return list(mapping)


def pack(structure: Any, leaves: Iterable[Any], expand_composites: bool = False) -> Any:
    """Pack leaves into the structure of ``structure``: the inverse of `flatten`.

    If the structure is a single leaf, the only leaf is returned.

    Args:
        structure: Nested structure that defines the containers.
        leaves: Leaves in the order of `flatten`.
        expand_composites: If True, ``leaves`` come from `flatten` with this argument.

    Raises:
        ValueError: If the number of leaves differs.

    Example:
        >>> tw.nest.pack({"b": [0, 0], "a": (0,)}, [1, 2, 3])
        {'b': [2, 3], 'a': (1,)}
    """
    remaining = iter(leaves)
    if expand_composites:
        remaining = _composed(flatten(structure), remaining)
    try:
        packed = _rebuild(structure, remaining)
    except StopIteration:
        raise ValueError(
            "pack: leaves must be as many as the structure has, got too few"
        ) from None
    if next(remaining, remaining) is not remaining:
        raise ValueError(
            "pack: leaves must be as many as the structure has, got too many"
        )
    return packed


def _composed(wholes, leaves):
    """Undo `_expanded`: ``wholes`` are the leaves that were expanded."""
    for x in wholes:
        if isinstance(x, CompositeTensor):
            parts = list(islice(leaves, len(x._tw_components())))
            yield x._tw_with_components(parts)
        else:
            yield from islice(leaves, 1)
    yield from leaves


def pack_sequence_as(
    structure: Any, flat_sequence: Iterable[Any], expand_composites: bool = False
) -> Any:
    """Pack a flat sequence into a structure; alias of `pack` for TensorFlow code.

    Args:
        structure: Nested structure that defines the containers.
        flat_sequence: Leaves in the order of `flatten`.
        expand_composites: If True, the leaves come from `flatten` with this argument.

    Raises:
        ValueError: If the number of leaves differs.

    Example:
        >>> tw.nest.pack_sequence_as([0, (0, 0)], [1, 2, 3])
        [1, (2, 3)]
    """
    return pack(structure, flat_sequence, expand_composites)


def _rebuild(structure, leaves):
    if not _CONTAINERS[type(structure)]:
        return next(leaves)
    if isinstance(structure, dict):
        values = {
            key: _rebuild(structure[key], leaves) for key in _sorted_keys(structure)
        }
        if type(structure) is dict:
            return {key: values[key] for key in structure}
        twin = copy(structure)  # keeps a default factory, and the order
        twin.update(values)
        return twin
    items = [
        _rebuild(item, leaves) if _CONTAINERS[type(item)] else next(leaves)
        for item in structure
    ]
    if hasattr(structure, "_fields"):  # named tuple
        return type(structure)(*items)
    return type(structure)(items) if type(structure) is not list else items


def map_structure(
    function: Callable[..., Any], *structures: Any, expand_composites: bool = False
) -> Any:
    """Apply a function to each leaf of one or several structures.

    Args:
        function: Function of one leaf of each structure.
        *structures: Structures that are equal except for their leaves.
        expand_composites: If True, also map the component tensors of sparse and ragged
            tensors.

    Raises:
        ValueError: If the structures differ.

    Example:
        >>> tw.nest.map_structure(lambda a, b: a + b, [1, (2, 3)], [10, (20, 30)])
        [11, (22, 33)]
    """
    for other in structures[1:]:
        assert_same_structure(structures[0], other, expand_composites)
    flat = zip(*[flatten(x, expand_composites) for x in structures], strict=True)
    results = [function(*leaves) for leaves in flat]
    return pack(structures[0], results, expand_composites)


def assert_same_structure(
    first: Any, second: Any, expand_composites: bool = False
) -> None:
    """Raise an error unless both structures are equal except for their leaves.

    Lists and tuples count as equal; dicts must have the same keys.

    Args:
        first: First structure.
        second: Second structure.
        expand_composites: If True, sparse and ragged tensors must be in the same
            positions.

    Raises:
        ValueError: If the structures differ.

    Example:
        >>> tw.nest.assert_same_structure([1, {"a": 2}], (3, {"a": 4}))
    """
    same = _nesting(first) == _nesting(second)
    if same and expand_composites:
        pairs = zip(flatten(first), flatten(second), strict=True)
        same = all([_are_alike(x, y) for x, y in pairs])
    if not same:
        raise ValueError(f"The structures differ:\n  {first!r}\n  {second!r}")


def _are_alike(x, y):
    if isinstance(x, CompositeTensor):
        return x._tw_is_like(y)
    return not isinstance(y, CompositeTensor)


def _nesting(structure):
    if not is_nested(structure):
        return None
    if isinstance(structure, dict):
        return {key: _nesting(value) for key, value in structure.items()}
    return [_nesting(item) for item in structure]
