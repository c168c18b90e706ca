"""`keras.tree`: nested structures of lists, tuples, named tuples and dicts.

Unlike in `tw.nest`, containers of several structures must have the same type. Dicts are
traversed in the order of their sorted keys, an ``OrderedDict`` in insertion order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tapewright.core.nest import is_nested

__all__ = [
    "MAP_TO_NONE",
    "assert_same_paths",
    "assert_same_structure",
    "flatten",
    "flatten_with_path",
    "is_nested",
    "lists_to_tuples",
    "map_shape_structure",
    "map_structure",
    "map_structure_up_to",
    "pack_sequence_as",
    "traverse",
]


class MAP_TO_NONE:  # noqa: N801  (Keras' name)
    """Value that the function of `traverse` returns to replace a part by None."""


def _entries(container):
    """Return the keys, or indices, and the parts of a container, in order."""
    if isinstance(container, dict):
        keys = sorted(container) if type(container) is dict else list(container)
        return [(key, container[key]) for key in keys]
    return list(enumerate(container))


def _rebuilt(container, parts):
    """Return a container of the same type with other parts, in the order of `_entries`."""
    if isinstance(container, dict):
        new = dict(zip([key for key, _ in _entries(container)], parts))
        in_order = [(key, new[key]) for key in container]
        return (
            type(container)(in_order) if type(container) is not dict else dict(in_order)
        )
    if hasattr(container, "_fields"):
        return type(container)(*parts)
    return type(container)(parts)


def flatten(structure: Any) -> list[Any]:
    """Return the leaves of a nested structure, from left to right.

    Args:
        structure: Nested structure of lists, tuples, named tuples and dicts.

    Example:
        >>> keras.tree.flatten([1, {"b": 3, "a": (2,)}])
        [1, 2, 3]
    """
    return [leaf for _, leaf in flatten_with_path(structure)]


def pack_sequence_as(structure: Any, flat_sequence: Iterable[Any]) -> Any:
    """Arrange the leaves of ``flat_sequence`` like ``structure``.

    Args:
        structure: Nested structure whose leaves are ignored.
        flat_sequence: Leaves of the result, from left to right.

    Raises:
        ValueError: If the number of leaves differs.

    Example:
        >>> keras.tree.pack_sequence_as([0, (0, 0)], [1, 2, 3])
        [1, (2, 3)]
    """
    leaves = list(flat_sequence)
    count = len(flatten(structure))
    if len(leaves) != count:
        raise ValueError(
            f"pack_sequence_as: the structure has {count} leaves, got {len(leaves)}"
        )
    remaining = iter(leaves)
    return map_structure(lambda _: next(remaining), structure)


def flatten_with_path(structure: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """Return pairs of a path, a tuple of keys and indices, and the leaf at this path.

    Args:
        structure: Nested structure of lists, tuples, named tuples and dicts.

    Example:
        >>> keras.tree.flatten_with_path([{"foo": 42}])
        [((0, 'foo'), 42)]
    """
    if not is_nested(structure):
        return [((), structure)]
    return [
        ((key, *path), leaf)
        for key, part in _entries(structure)
        for path, leaf in flatten_with_path(part)
    ]


def assert_same_paths(a: Any, b: Any) -> None:
    """Raise ``ValueError`` unless both structures have leaves at the same paths.

    The types of the containers may differ.

    Args:
        a: First structure.
        b: Second structure.

    Raises:
        ValueError: If the paths differ.

    Example:
        >>> keras.tree.assert_same_paths([0, (1, 2)], (3, [4, 5]))
    """
    paths = [{path for path, _ in flatten_with_path(each)} for each in (a, b)]
    if paths[0] != paths[1]:
        only = [sorted(map(str, mine - other)) for mine, other in (paths, paths[::-1])]
        raise ValueError(
            "assert_same_paths: the paths differ: only the first structure has "
            f"{', '.join(only[0]) or 'none'}, only the second {', '.join(only[1]) or 'none'}"
        )


def assert_same_structure(a: Any, b: Any, check_types: bool | None = None) -> None:
    """Raise ``ValueError`` unless both structures have the same containers.

    Containers must have the same types; all dicts count as one type.

    Args:
        a: First structure.
        b: Second structure.
        check_types: Ignored, as in Keras.

    Raises:
        ValueError: If the structures differ.

    Example:
        >>> keras.tree.assert_same_structure([(0, 1)], [(2, 3)])
    """
    if not _alike(a, b):
        raise ValueError(f"The structures differ:\n  {a!r}\n  {b!r}")


def _alike(a, b, up_to=False):
    if not is_nested(a):
        return up_to or not is_nested(b)
    if not is_nested(b):
        return False
    if isinstance(a, dict):
        same = isinstance(b, dict) and a.keys() == b.keys()
    else:
        same = type(a) is type(b) and len(a) == len(b)
    if not same:
        return False
    others = b if isinstance(a, dict) else dict(enumerate(b))
    return all([_alike(part, others[key], up_to) for key, part in _entries(a)])


def map_structure(
    func: Callable[..., Any], *structures: Any, none_is_leaf: bool = True
) -> Any:
    """Apply ``func`` to each leaf of a structure, or to the leaves of several structures.

    Args:
        func: Function of as many leaves as there are structures.
        *structures: Structures with the same containers.
        none_is_leaf: If False, keep None in the first structure instead of passing it
            to ``func``.

    Returns:
        The structure of the results.

    Raises:
        TypeError: If no structure is given, or ``func`` is not callable.
        ValueError: If the structures differ.

    Example:
        >>> keras.tree.map_structure(lambda x, y: x * y, [[1], [2]], [[3], [4]])
        [[3], [8]]
    """
    if not structures:
        raise TypeError("map_structure: at least one structure must be given")
    for other in structures[1:]:
        assert_same_structure(structures[0], other)

    def function(*leaves):
        return None if leaves[0] is None and not none_is_leaf else func(*leaves)

    return map_structure_up_to(structures[0], _checked(func) and function, *structures)


def _checked(func):
    if not callable(func):
        raise TypeError(f"func must be callable, got {func!r}")
    return func


def map_structure_up_to(
    shallow_structure: Any, func: Callable[..., Any], *structures: Any
) -> Any:
    """Apply ``func`` to the parts of structures at the leaves of ``shallow_structure``.

    Args:
        shallow_structure: Structure that determines the parts.
        func: Function of as many parts as there are structures.
        *structures: Structures with the same containers as ``shallow_structure``, or
            deeper.

    Raises:
        TypeError: If no structure is given, or ``func`` is not callable.
        ValueError: If the structures differ.

    Example:
        >>> keras.tree.map_structure_up_to([None, None], len, [[1, 1], [2, [3, 4]]])
        [2, 2]
    """
    _checked(func)
    if not structures:
        raise TypeError("map_structure_up_to: at least one structure must be given")
    for each in structures:
        if not _alike(shallow_structure, each, up_to=True):
            raise ValueError(
                f"The structures differ:\n  {shallow_structure!r}\n  {each!r}"
            )
    if not is_nested(shallow_structure):
        return func(*structures)
    parts = [
        map_structure_up_to(part, func, *[each[key] for each in structures])
        for key, part in _entries(shallow_structure)
    ]
    return _rebuilt(shallow_structure, parts)


def traverse(func: Callable[[Any], Any], structure: Any, top_down: bool = True) -> Any:
    """Replace parts of a structure by ``func(part)``; descend where it returns None.

    Args:
        func: Function of a container or leaf. It returns the replacement, None to keep
            the part, or `MAP_TO_NONE` to replace it by None.
        structure: Nested structure of lists, tuples, named tuples and dicts.
        top_down: If True, ``func`` is called on a container before its parts, which are
            skipped if the container is replaced; if False, on the parts first.

    Raises:
        TypeError: If ``func`` is not callable.

    Example:
        >>> structure = [(1, 2), {"a": 3}]
        >>> keras.tree.traverse(lambda x: x * 2 if isinstance(x, int) else None, structure)
        [(2, 4), {'a': 6}]
    """
    _checked(func)

    def replaced(part, new):
        if new is None:
            return part
        return None if new is MAP_TO_NONE else new

    def visit(part):
        new = func(part) if top_down else None
        if new is None and is_nested(part):
            part = _rebuilt(part, [visit(each) for _, each in _entries(part)])
        return replaced(part, new if top_down else func(part))

    return visit(structure)


def lists_to_tuples(structure: Any) -> Any:
    """Return the structure with lists replaced by tuples.

    Args:
        structure: Nested structure of lists, tuples, named tuples and dicts.

    Example:
        >>> keras.tree.lists_to_tuples([1, {"a": [2]}])
        (1, {'a': (2,)})
    """
    return traverse(
        lambda x: tuple(x) if isinstance(x, list) else None, structure, top_down=False
    )


def map_shape_structure(func: Callable[[Any], Any], structure: Any) -> Any:
    """Apply ``func`` to each shape in a structure: a list or tuple of ints and Nones.

    Args:
        func: Function of a shape.
        structure: Nested structure of shapes.

    Example:
        >>> keras.tree.map_shape_structure(len, {"a": (None, 3), "b": [(2,), (4, 5, 6)]})
        {'a': 2, 'b': [1, 3]}
    """

    def is_shape(x):
        return isinstance(x, (list, tuple)) and all(
            [each is None or isinstance(each, int) for each in x]
        )

    if is_shape(structure):
        return func(structure)
    if not is_nested(structure):
        raise ValueError(f"map_shape_structure: cannot map {structure!r}")
    parts = [map_shape_structure(func, part) for _, part in _entries(structure)]
    return _rebuilt(structure, parts)
