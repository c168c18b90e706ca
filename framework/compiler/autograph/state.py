"""The variables that a branch or a step of a loop may change, read and written as values.

They are cells of inner functions, attributes such as ``self.x``, and the contents of
lists, dicts and sets that the code can reach.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapewright.core.dtypes import kind_of
from tapewright.core.nest import flatten, is_nested, pack
from tapewright.core.tensor import Tensor

from .jumps import RETURN_VALUE

__all__ = [
    "State",
    "UNDEFINED",
    "is_number",
    "is_same",
    "leaves_of",
    "same_nesting",
    "shown",
    "tensors_of",
    "title_of",
    "with_tensors",
]


class _Undefined:
    def __repr__(self):
        return "undefined"


UNDEFINED = _Undefined()


class State:
    """Variables, each under its name.

    Args: ``functions``: the inner functions that share them; ``names``: the variables that
    have to survive; ``attributes``: those like ``self.x``; ``reachable``: variables and
    attributes whose containers the code may change.
    """

    def __init__(self, functions, names, attributes, reachable):
        self._cells = {}
        for function in functions:
            function = getattr(function, "func", function)  # of a partial
            names_of_cells = function.__code__.co_freevars
            self._cells.update(zip(names_of_cells, function.__closure__ or ()))
        self.names = [*names, *attributes]
        self._references = {
            name: _Cell(self._cells[name]) if name in self._cells
            else _Global(function.__globals__, name)
            for name in names
        }  # fmt: skip
        for name in attributes:
            root, _, attribute = name.rpartition(".")
            owner = self._value(root)
            if owner is not UNDEFINED:
                self._references[name] = _Attribute(owner, attribute)
        self.names = [name for name in self.names if name in self._references]
        self._others = {
            name: _Cell(cell)
            for name, cell in self._cells.items()
            if name not in self._references and not name.startswith("ag__item")
        }
        self.containers = {}  # name -> container
        seen = set()
        for name in reachable:
            self._find_containers(f"the content of {name}", self._value(name), seen)

    def _value(self, chain):
        """Return the value of a chain like ``self.x``, without properties being called."""
        root, *attributes = chain.split(".")
        cell = self._cells.get(root)
        value = UNDEFINED if cell is None else _Cell(cell).get()
        for name in attributes:
            value = getattr(value, "__dict__", {}).get(name, UNDEFINED)
        return value

    def _find_containers(self, name, value, seen):
        if not isinstance(value, (list, dict, set, tuple)) or id(value) in seen:
            return
        seen.add(id(value))
        if not isinstance(value, tuple):
            self.containers[name] = value
        if isinstance(value, dict):
            for key, x in list(value.items()):
                self._find_containers(f"{name}[{key!r}]", x, seen)
        elif not isinstance(value, set):
            for i, x in enumerate(value):
                self._find_containers(f"{name}[{i}]", x, seen)

    def value(self, name):
        """Return the value of one cell."""
        return _Cell(self._cells[name]).get()

    def values(self) -> dict[str, Any]:
        """Return the variables by name."""
        return {name: self._references[name].get() for name in self.names}

    def assign(self, values: dict[str, Any]) -> None:
        """Give variables these values."""
        for name, value in values.items():
            self._references[name].set(value)

    def snapshot(self):
        """Return everything that code can change: variables, other cells, contents."""
        others = {name: x.get() for name, x in self._others.items()}
        contents = {name: _content(x) for name, x in self.containers.items()}
        return self.values(), others, contents

    def restore(self, snapshot):
        """Set everything back."""
        values, others, contents = snapshot
        self.assign(values)
        for name, value in others.items():
            self._others[name].set(value)
        for name, content in contents.items():
            self.set(name, content)

    def contents(self):
        """Return copies of the containers, by name."""
        return {name: _content(x) for name, x in self.containers.items()}

    def set(self, name, value):
        """Give a variable this value, or a container this content."""
        container = self.containers.get(name)
        if container is None or name in self._references:
            self._references[name].set(value)
        elif not _unchanged(_content(container), value):
            if isinstance(container, list):
                container[:] = value
            else:
                container.clear()
                container.update(value)

    def changed_contents(self, before, after):
        """Return the names of the containers of two copies that differ."""
        return [name for name in before if not _unchanged(before[name], after[name])]


class _Cell:
    def __init__(self, cell):
        self.cell = cell

    def get(self):
        try:
            return self.cell.cell_contents
        except ValueError:
            return UNDEFINED

    def set(self, value):
        if value is not UNDEFINED:
            self.cell.cell_contents = value
        elif self.get() is not UNDEFINED:
            del self.cell.cell_contents


class _Global:
    def __init__(self, space, name):
        self.space, self.name = space, name

    def get(self):
        return self.space.get(self.name, UNDEFINED)

    def set(self, value):
        if value is not UNDEFINED:
            self.space[self.name] = value
        else:
            self.space.pop(self.name, None)


class _Attribute:
    def __init__(self, owner, name):
        self.owner, self.name = owner, name

    def get(self):
        return getattr(self.owner, self.name, UNDEFINED)

    def set(self, value):
        if value is self.get():
            return
        if value is UNDEFINED:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, value)


def _content(container):
    kind = next(k for k in (list, dict, set) if isinstance(container, k))
    return kind(container)


def _unchanged(a, b):
    """Return whether two copies hold the very same objects."""
    if len(a) != len(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all([a[key] is b[key] for key in a])
    if isinstance(a, set):
        return {id(x) for x in a} == {id(x) for x in b}
    return all([x is y for x, y in zip(a, b, strict=True)])


# ------------------------------------------------------------------------- values


def is_number(x):
    """Return whether a leaf of Python or NumPy can become a tensor."""
    if isinstance(x, (bool, int, float, complex)):
        return True
    return isinstance(x, (np.generic, np.ndarray)) and kind_of(x.dtype) in "biufc"


def is_same(a, b):
    """Return whether two leaves are one object, or equal values of Python."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, Tensor):
        return False
    if isinstance(a, float):
        return a.hex() == b.hex()
    return isinstance(a, (bool, int, str, bytes, complex, range, slice)) and a == b


def leaves_of(value):
    """Return the leaves of a nest; a value that is none is its own leaf."""
    return flatten(value) if is_nested(value) else [value]


def title_of(name):
    """Return the name of a variable for messages."""
    if name == RETURN_VALUE:
        return "the return value"
    name = name.removeprefix("the content of ")
    return f"'{name}'"


def tensors_of(leaf):
    """Return the tensors of a leaf as a list; None if it is an object of Python."""
    if hasattr(leaf, "components"):
        return list(leaf.components())
    if isinstance(leaf, Tensor):
        return [leaf]
    return [leaf] if is_number(leaf) else None


def with_tensors(value, places, tensors):
    """Return a nest like ``value``, with tensors in the places of its leaves.

    A place is the slice of the tensors of a leaf, or None: it stays.
    """
    leaves = []
    for leaf, place in zip(leaves_of(value), places, strict=True):
        if place is None:
            leaves.append(leaf)
        elif hasattr(leaf, "components"):
            leaves.append(leaf.with_components(list(tensors[place])))
        else:
            leaves.append(tensors[place][0])
    return pack(value, leaves) if is_nested(value) else leaves[0]


def same_nesting(a, b):
    """Return whether two nests have the same types, sizes and keys."""
    if not (is_nested(a) or is_nested(b)):
        return True
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all([same_nesting(a[key], b[key]) for key in a])
    if isinstance(a, (list, tuple)) and type(a) is type(b) and len(a) == len(b):
        return all(map(same_nesting, a, b))
    return False


def shown(value):
    """Return a value as text, for a message."""
    text = repr(value)
    return text if len(text) <= 80 else f"an object of {type(value).__name__}"
