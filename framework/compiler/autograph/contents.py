"""Contents of objects that code modifies: lists, dicts, sets, objects, cells, arrays.

Each has a content: a list, dict, set or array that is a copy and can be put back.
"""

import inspect
import operator
import sys
from collections import deque
from collections.abc import Iterator

import numpy as np

from tapewright.core.messages.source_lines import is_own_code

from .source import is_convertible

MANY = 1000  # entries of a container from which on these are data, not state


class _Undefined:
    def __repr__(self):
        return "undefined"


UNDEFINED = _Undefined()


class _Container:
    """A container and its content.

    ``refusal`` is the reason why it must not change, or None; ``is_lasting`` means that
    a change cannot be undone.
    """

    refusal: str | None = None
    is_lasting = False

    def __init__(self, container):
        self.container = container

    def title(self, name, key):
        """Return the name of an entry."""
        return f"{name}[{key!r}]"

    def keys(self, old, new):
        """Return the keys of two contents, or None if the keys differ."""
        if isinstance(old, list):
            return range(len(old)) if len(old) == len(new) else None
        if isinstance(old, dict):
            return list(old) if old.keys() == new.keys() else None
        return None

    def entry(self, content, key):
        """Return the value of an entry of a content."""
        return (
            content.get(key, UNDEFINED) if isinstance(content, dict) else content[key]
        )

    def get(self, key):
        """Return the current value of an entry."""
        return self.entry(self.content(), key)

    def put(self, key, value):
        """Set the value of an entry, or remove it."""
        content = self.content()
        if value is UNDEFINED:
            content.pop(key, None)
        else:
            content[key] = value
        self.replace(content)


class _Items(_Container):
    """The elements of a list, deque, dict or set."""

    def content(self):
        kind = next(
            k for k in (list, dict, set, deque) if isinstance(self.container, k)
        )
        return list(self.container) if kind is deque else kind(self.container)

    def replace(self, content):
        if not is_unchanged(self.content(), content):
            self.container.clear()
            is_row = isinstance(self.container, (list, deque))
            (self.container.extend if is_row else self.container.update)(content)


class _Attributes(_Container):
    """The attributes of an object, bypassing its properties and ``__setattr__``."""

    def title(self, name, key):
        return f"{name}.{key}"

    def keys(self, old, new):
        return dict.fromkeys([*old, *new])

    def entry(self, content, key):
        """Return an attribute of the object, or else of its class."""
        if key in content:
            return content[key]
        value = inspect.getattr_static(type(self.container), key, UNDEFINED)
        return UNDEFINED if hasattr(value, "__get__") else value

    def content(self):
        content = dict(getattr(self.container, "__dict__", ()))
        for name in _slots(type(self.container)):
            value = getattr(self.container, name, UNDEFINED)
            if value is not UNDEFINED:
                content[name] = value
        return content

    def replace(self, content):
        now = self.content()
        for name in now.keys() - content.keys():
            object.__delattr__(self.container, name)
        for name, value in content.items():
            if now.get(name, UNDEFINED) is not value:
                object.__setattr__(self.container, name, value)


class Cell(_Container):
    """A variable that functions share."""

    def title(self, name, key):
        return name

    def content(self):
        return [self.get()]

    def replace(self, content):
        self.set(*content)

    def get(self, key=0):
        try:
            return self.container.cell_contents
        except ValueError:
            return UNDEFINED

    def put(self, key, value):
        self.set(value)

    def set(self, value):
        """Set or delete the value of the variable."""
        if value is not UNDEFINED:
            self.container.cell_contents = value
        elif self.get() is not UNDEFINED:
            del self.container.cell_contents


class _Iterator(_Container):
    """The position of a Python iterator, which must not change: it cannot be set back."""

    refusal = (
        "is an iterator that is advanced depending on a tensor: take the element "
        "before, or loop with for"
    )
    is_lasting = True

    def content(self):
        frame = getattr(self.container, "gi_frame", None)  # of a generator
        left = operator.length_hint(self.container, -1)
        return np.array([left, -2 if frame is None else frame.f_lasti])

    def replace(self, content):
        pass


class _Array(_Container):
    """The elements of an array, which must not change: it cannot hold tensors."""

    refusal = (
        "is a NumPy array that is modified depending on a tensor: make it a tensor, "
        "and use tw.where or tw.tensor_scatter_nd_update"
    )

    def content(self):
        return self.container.copy()

    def replace(self, content):
        if not is_unchanged(self.container, content):
            self.container[...] = content


def container_of(value):
    """Return the container of a value; None if nothing can change it in place."""
    if isinstance(value, (list, dict, set, deque)):
        return _Items(value)
    if isinstance(value, np.ndarray):
        return _Array(value)
    if isinstance(value, Iterator) and not hasattr(value, "_tw_traced_steps"):
        return _Iterator(value)
    return _Attributes(value) if is_object_of_the_user(value) else None


def values_in(content):
    """Yield the keys and values of a content that may contain containers.

    A large content holds data, such as the replay memory of an agent, and is skipped.
    """
    if isinstance(content, (dict, list, tuple)) and len(content) > MANY:
        return
    if isinstance(content, dict):
        yield from list(content.items())
    elif isinstance(content, (list, tuple)):
        yield from enumerate(content)


def is_unchanged(a, b):
    """Return whether two contents hold identical objects."""
    if isinstance(a, np.ndarray):
        return a.dtype == object or np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    if len(a) != len(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all([a[key] is b[key] for key in a])
    if isinstance(a, set):
        return {id(x) for x in a} == {id(x) for x in b}
    return all([x is y for x, y in zip(a, b, strict=True)])


def is_object_of_the_user(value):
    """Return whether a class and its bases belong to modules that may use tensors.

    Classes with a tapewright base are excluded: layers build themselves and cache
    values while they are traced, as in TensorFlow.
    """
    kind = type(value)
    if issubclass(kind, (type, tuple)) or any(map(_is_own, kind.__mro__)):
        return False
    file = _file_of(kind)
    return file is not None and is_convertible(file)


def _is_own(kind):
    file = _file_of(kind)
    return file is not None and is_own_code(file)


def _file_of(kind):
    module = sys.modules.get(kind.__module__)
    return getattr(module, "__file__", None) or (
        "" if kind.__module__ == "__main__" else None
    )


def _slots(kind):
    for base in kind.__mro__:
        names = vars(base).get("__slots__", ())
        for name in [names] if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__"):
                private = name.startswith("__") and not name.endswith("__")
                yield f"_{base.__name__.lstrip('_')}{name}" if private else name
