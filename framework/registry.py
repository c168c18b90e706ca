"""Names of classes and functions that a config or a file may mention, and their objects.

A config is ``{"class_name": ..., "config": {...}}``. Loading looks names up here and
nowhere else: no code is ever run from a file.
"""

from contextlib import contextmanager
from contextvars import ContextVar

__all__ = [
    "custom_object_scope",
    "deserialize",
    "find",
    "register",
    "registered_name",
    "serialize",
]

_OBJECTS = {}
_SCOPE = ContextVar("custom_objects")


def register(kind, name, value):
    """Makes ``value`` known as ``name`` among things of one kind ("layer", "op", ...)."""
    _OBJECTS[kind, name] = value
    return value


def find(kind, name):
    """The object of that name: from `custom_object_scope` first, else the registered one.

    Raises: ``ValueError`` that lists the known names.
    """
    scope = _SCOPE.get(None)
    if scope and name in scope:
        return scope[name]
    try:
        return _OBJECTS[kind, name]
    except KeyError:
        known = sorted(n for k, n in _OBJECTS if k == kind)
        raise ValueError(
            f"Unknown {kind} {name!r}; known are {', '.join(known)}"
        ) from None


def registered_name(kind, value):
    """The name under which ``value`` was registered, or None."""
    for (its_kind, name), known in _OBJECTS.items():
        if its_kind == kind and known is value:
            return name
    return None


def serialize(thing):
    """``{"class_name", "config"}`` of an object that has ``get_config()``."""
    return {"class_name": type(thing).__name__, "config": thing.get_config()}


def deserialize(kind, config):
    """The object that `serialize` described."""
    cls = find(kind, config["class_name"])
    return cls.from_config(config.get("config", {}))


@contextmanager
def custom_object_scope(objects):
    """Inside, ``objects`` (name to class or function) are found before registered ones."""
    token = _SCOPE.set({**_SCOPE.get({}), **objects})
    try:
        yield
    finally:
        _SCOPE.reset(token)
