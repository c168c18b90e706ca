"""Owners and their children: the common interface to enumerate an object's parts.

All code that traverses objects (the variables of a `Module`, checkpoints, saved models,
weight files) calls `children`. Names in files are the names returned by `children`,
without the prefix of reserved names; a class that renames a private attribute keeps the
old name in ``_tw_child_names``.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from .names.reserved_names import name_in_files
from .nest import ByType, is_nested, owned_leaves


class Trackable:
    """An object whose attributes hold variables, or other objects that do.

    Example:
        >>> from tapewright.core.trackable import Trackable, children
        >>> class Pair(Trackable):
        ...     _tw_child_names = {"_first": "left"}
        ...     def __init__(self):
        ...         self._first, self.right, self._cache = 1, 2, 3
        >>> children(Pair())
        [('left', 1), ('right', 2), ('_cache', 3)]
    """

    # Private attribute -> name of the child, where other code or a file depends on it.
    _tw_child_names: ClassVar[dict[str, str]] = {}
    # Those that a restored checkpoint holds for children that do not exist yet.
    _tw_pending_values: Any = None

    def __children__(self) -> dict[Any, Any]:
        """Return the children by name, in alphabetical order, private names last.

        Override it to name children that are not attributes.
        """
        names = {name: child_name(self, name) for name in vars(self)}
        attributes = {
            name: vars(self)[name] for name, child in names.items() if child == name
        }
        for name, child in names.items():
            if child != name:  # an attribute of a user may have its name
                attributes[name if child in attributes else child] = vars(self)[name]
        ordered = sorted(attributes, key=lambda name: (name.startswith("_"), name))
        return {name: attributes[name] for name in ordered}


def child_name(owner: Trackable, name: str) -> str:
    """Return the name in files of the child that is an attribute of an owner."""
    return type(owner)._tw_child_names.get(name) or name_in_files(name)


class Opaque:
    """Wrapper of a value in an attribute that `children` and `owned` do not traverse."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value


def children(item: object) -> list[tuple[Any, Any]] | None:
    """Return pairs of a name and an object for an owner, list, tuple or dict.

    None for an object without children: a variable, a number, a function.
    """
    if is_nested(item):
        return list(item.items() if isinstance(item, dict) else enumerate(item))
    if isinstance(item, Trackable):
        return list(type(item).__children__(item).items())
    return None


def owned(
    owner: object,
    by_name: bool = False,
    in_order: bool = False,
    among: ByType | None = None,
) -> list[Any]:
    """Return the leaves of all attributes of an owner, in the order they were set.

    With ``by_name`` attributes are sorted by name; with ``in_order`` dicts keep the
    order of their entries instead of sorting by key. Attributes of types that are not
    ``among`` these are left out; leaves of containers are not tested.
    """
    attributes = dict(vars(owner))  # a copy: other threads may add some
    if by_name:
        attributes = {n: attributes[n] for n in sorted(attributes, key=name_in_files)}
    values = attributes.values()
    if among is not None:
        values = [value for value in values if among[type(value)]]
    return owned_leaves(values, in_order)


def assign_pending(owner: Trackable) -> None:
    """Assign the pending values of children that now exist."""
    if owner._tw_pending_values is not None:
        owner._tw_pending_values.assign_to(owner)


def drop_pending(owner: Trackable) -> None:
    """Discard the pending values, so that later children start anew."""
    if owner._tw_pending_values is not None:
        owner._tw_pending_values.drop()
        owner._tw_pending_values = None


def making_children(owner: Trackable) -> AbstractContextManager[None]:
    """Context that creates children; pending values are assigned to them at its end."""
    pending = owner._tw_pending_values
    return nullcontext() if pending is None else pending.replacing_initial(owner)
