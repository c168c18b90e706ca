"""The variables that a branch or a step of a loop may change, read and written as values.

They are cells of inner functions, attributes such as ``self.x``, and the contents of
lists, dicts, sets and objects that the code can reach (`contents`).
"""

from __future__ import annotations

import functools
import types
from typing import Any

from tapewright.core.messages.source_lines import user_line
from tapewright.core.nest import is_nested

from .conditions import ControlFlowError
from .contents import (
    UNDEFINED,
    Cell,
    container_of,
    is_object_of_the_user,
    is_unchanged,
    values_in,
)
from .jumps import RETURN_VALUE
from .values import tensors_of

# Names of containers and of their entries begin so, as variables may have the same.
_CONTENT, _ENTRY, _VARIABLE = "the content of ", "the entry ", "the variable "


class State:
    """Variables by name.

    ``functions`` are the inner functions that share them, ``names`` the variables to
    keep, ``attributes`` chains like ``self.x``, and ``reachable`` the variables and
    attributes whose containers the code may modify, itself or in functions that it
    calls.
    """

    def __init__(self, functions, names, attributes, reachable):
        self._cells = {}
        for function in functions:
            function = getattr(function, "func", function)  # of a partial
            names_of_cells = function.__code__.co_freevars
            self._cells.update(zip(names_of_cells, function.__closure__ or ()))
        self.names = [*names, *attributes]
        self._references = {
            name: Cell(self._cells[name]) if name in self._cells
            else _Global(function.__globals__, name)
            for name in names
        }  # fmt: skip
        for name in attributes:
            root, _, attribute = name.rpartition(".")
            owner = self._value(root)
            if owner is not UNDEFINED and not _is_property(owner, attribute):
                self._references[name] = _Attribute(owner, attribute)
        self.names = [name for name in self.names if name in self._references]
        self._others = {
            name: Cell(cell)
            for name, cell in self._cells.items()
            if name not in self._references and not name.startswith("ag__item")
        }
        self.containers = {}  # name -> container
        self._entries = {}  # name -> container, key
        self._scope = _scope_of(function) if functions else None
        self._reachable = reachable

    def _find_all_containers(self, reachable):
        references = self._references.values()
        cells = [*references, *self._others.values()]
        self._shared = set(reachable)  # which functions inside may share
        self._seen = {id(x.container) for x in cells if type(x) is Cell}
        self._chained = {
            (id(x.owner), x.name) for x in references if type(x) is _Attribute
        }
        for name in reachable:
            self._find_containers(name, self._value(name))
        for name, cell in self._cells.items():  # objects of the code around
            value = Cell(cell).get()
            if isinstance(value, types.MethodType) or is_object_of_the_user(value):
                self._find_containers(name, value)

    def _value(self, chain):
        """Return the value of a chain like ``self.x`` without calling properties."""
        root, *attributes = chain.split(".")
        cell = self._cells.get(root)
        value = UNDEFINED if cell is None else Cell(cell).get()
        for name in attributes:
            value = getattr(value, "__dict__", {}).get(name, UNDEFINED)
        return value

    def _find_containers(self, name, value):
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, types.MethodType):
            self._find_containers(name, value.__self__)
        elif isinstance(value, functools.partial):
            self._find_containers(name, value.func)
            self._find_containers(f"{name}.args", value.args)
            self._find_containers(f"{name}.keywords", value.keywords)
        elif isinstance(value, types.FunctionType):
            self._find_cells(value)
        container = container_of(value)
        if container is not None:
            title = _CONTENT + name
            while title in self.containers:  # keys may have the same text
                title += "'"
            self.containers[title] = container
        content = value if container is None else container.content()
        for key, x in values_in(content):
            title = (
                f"{name}[{key!r}]" if container is None else container.title(name, key)
            )
            self._find_containers(title, x)

    def _find_cells(self, function):
        """Find the variables that a nested function shares with it."""
        if not function.__qualname__.startswith(self._scope):
            return
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or ()
        ):
            if name in self._shared:
                if id(cell) not in self._seen:
                    self._seen.add(id(cell))
                    self.containers[_VARIABLE + name] = Cell(cell)
                self._find_containers(name, Cell(cell).get())

    def value(self, name):
        """Return the value of one cell."""
        return Cell(self._cells[name]).get()

    def values(self) -> dict[str, Any]:
        """Return the variables by name."""
        return {name: self._references[name].get() for name in self.names}

    def assign(self, values: dict[str, Any]) -> None:
        """Give variables these values."""
        for name, value in values.items():
            self._references[name].set(value)

    def snapshot(self):
        """Return everything that code can change: variables, other cells, contents."""
        if self._reachable is not None:  # a loop of Python needs none of them
            self._find_all_containers(self._reachable)
            self._reachable = None
        others = {name: x.get() for name, x in self._others.items()}
        return self.values(), others, self.contents()

    def restore(self, snapshot):
        """Set everything back."""
        values, others, contents = snapshot
        self.assign(values)
        for name, value in others.items():
            self._others[name].set(value)
        for name, content in contents.items():
            self.containers[name].replace(content)

    def contents(self):
        """Return copies of the containers, by name."""
        return {name: x.content() for name, x in self.containers.items()}

    def is_entry(self, name):
        """Return whether this is the name of one entry of a container."""
        return name in self._entries

    def get(self, name):
        """Return the value of an entry, or the content of a container."""
        if name not in self._entries:
            return self.containers[name].content()
        container, key = self._entries[name]
        return container.get(key)

    def set(self, name, value):
        """Give a variable or an entry this value, or a container this content."""
        if name in self._references:
            self._references[name].set(value)
        elif name in self._entries:
            container, key = self._entries[name]
            container.put(key, value)
        else:
            self.containers[name].replace(value)

    def changes(self, before, after):
        """Return the differences between two contents: name -> the old and the new value.

        These are entries, or whole containers whose keys differ. ``before`` takes over
        the variables and layers that objects create on first use.
        """
        changed = {}
        for name, old in before.items():
            container, new = self.containers[name], after[name]
            if isinstance(old, dict):
                old |= {
                    key: x for key, x in new.items() if _was_created(old.get(key), x)
                }
            if is_unchanged(old, new):
                continue
            keys = container.keys(old, new)
            title = name.removeprefix(_CONTENT).removeprefix(_VARIABLE)
            if container.refusal is not None:
                error = ControlFlowError(
                    f"{user_line(always=True)}: '{title}' {container.refusal}"
                )
                error.is_lasting = container.is_lasting
                raise error
            if keys is None:
                changed[name] = old, new
                continue
            for key in keys:
                a, b = container.entry(old, key), container.entry(new, key)
                if a is not b and (id(container.container), key) not in self._chained:
                    changed[self._name_of(container, key, title)] = a, b
        return changed

    def _name_of(self, container, key, title):
        """Return the unique name of an entry."""
        name = _ENTRY + container.title(title, key)
        while self._entries.setdefault(name, (container, key)) != (container, key):
            name += "'"
        return name


def _scope_of(function):
    """Return the name prefix of functions nested in the function that contains this one."""
    name = function.__code__.co_qualname
    if function.__name__ == "<lambda>":  # an expression
        name = name.rpartition(".<locals>.")[0]
    return f"{name}.<locals>."


def _was_created(old, new):
    """Return whether a variable or layer replaced None."""
    if (
        old is not None
        or new is None
        or isinstance(new, (str, bytes))
        or is_nested(new)
    ):
        return False
    is_opaque = tensors_of(new) is None and container_of(new) is None
    return is_opaque or hasattr(type(new), "__tensor__")


def _is_property(owner, name):
    """Return whether an attribute is computed from others, which `contents` keeps."""
    kind = getattr(type(owner), name, None)
    return isinstance(kind, property) and container_of(owner) is not None


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


def title_of(name):
    """Return the name of a variable for messages."""
    if name == RETURN_VALUE:
        return "the return value"
    name = name.removeprefix(_CONTENT).removeprefix(_ENTRY)
    return f"'{name}'"
