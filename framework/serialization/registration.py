"""Users' classes and functions, registered under the names of configs and files.

A file may name only those that its reader has registered: by
`register_keras_serializable`, or by ``custom_objects`` and `custom_object_scope`. While a
file is read, in the context of `from_file`, nothing else of the user is found.
"""

from contextlib import contextmanager
from contextvars import ContextVar

from tapewright.core.errors import SavingError

__all__ = [
    "CustomObjectScope",
    "custom_object_scope",
    "from_file",
    "get_custom_objects",
    "get_registered_name",
    "get_registered_object",
    "name_in_scope",
    "not_known",
    "reading_file",
    "refusal",
    "refusing",
    "register_keras_serializable",
]

_KNOWN = {}  # name -> class or function
_NAMES = {}  # class or function -> name
_SCOPE = ContextVar("custom_objects")
_FILE = ContextVar("file", default=None)


def register_keras_serializable(package="Custom", name=None):
    """Decorator: register a class or function as ``package>name``, for files, too.

    The default of ``name`` is its own.

    Raises: ``ValueError`` for a class without ``get_config``.

    >>> @register_keras_serializable(package="mine")
    ... def double(x):
    ...     return 2 * x
    >>> get_registered_name(double), get_registered_object("mine>double") is double
    ('mine>double', True)
    """
    if not isinstance(package, str):
        raise TypeError(
            "register_keras_serializable: package must be a string, got "
            f"{package!r}; decorate with @register_keras_serializable(), brackets included"
        )

    def decorate(thing):
        if isinstance(thing, type) and not hasattr(thing, "get_config"):
            raise ValueError(
                f"register_keras_serializable: the class {thing.__name__} needs a "
                "get_config(), which gives the arguments of its constructor"
            )
        known_as = f"{package}>{thing.__name__ if name is None else name}"
        _KNOWN[known_as] = thing
        _NAMES[thing] = known_as
        return thing

    return decorate


def get_registered_name(obj):
    """The registered name ``package>name`` of a class or function, or else its own."""
    try:
        return _NAMES.get(obj) or obj.__name__
    except TypeError:  # not hashable, so not registered
        return obj.__name__


def get_registered_object(name, custom_objects=None, module_objects=None):
    """The class or function of this name, or None.

    The lookup is in scopes, the registered names, ``custom_objects`` and
    ``module_objects``, in this order.
    """
    places = (_SCOPE.get({}), _KNOWN, custom_objects or {}, module_objects or {})
    return next((place[name] for place in places if name in place), None)


def get_custom_objects():
    """The dict of registered classes and functions; adding to it registers, too."""
    return _KNOWN


class CustomObjectScope:
    """A context that finds these (name -> class or function) before all others.

    Nested scopes add up.

    >>> with CustomObjectScope({"double": abs}):
    ...     get_registered_object("double")
    <built-in function abs>
    """

    def __init__(self, custom_objects):
        if not isinstance(custom_objects or {}, dict):
            raise TypeError(
                "custom_objects must be a dict of names and classes or functions, got "
                f"{custom_objects!r}"
            )
        self.custom_objects = custom_objects or {}
        self._tokens = []

    def __enter__(self):
        self._tokens.append(_SCOPE.set({**_SCOPE.get({}), **self.custom_objects}))
        return self

    def __exit__(self, *error):
        _SCOPE.reset(self._tokens.pop())


custom_object_scope = CustomObjectScope


def name_in_scope(thing):
    """The name of a class or function in the scopes, or None."""
    return next((n for n, known in _SCOPE.get({}).items() if known is thing), None)


@contextmanager
def from_file(path, dataset=None):
    """A context for names from a file: only registered classes of users are found.

    ``dataset``: the place of the config in the file, for errors.
    """
    token = _FILE.set((path, dataset))
    try:
        yield
    finally:
        _FILE.reset(token)


def reading_file():
    """Return whether a `from_file` context is active."""
    return _FILE.get() is not None


def refusal(reason):
    """The error to raise: a `SavingError` in the context of `from_file`, else a ValueError."""
    if _FILE.get() is None:
        return ValueError(reason)
    path, dataset = _FILE.get()
    return SavingError(path, reason, dataset)


def not_known(name):
    """The text of errors for a name that is not registered."""
    name = str(name)[:200]
    return (
        f"{name!r} is not known here: if it is one of yours, decorate it with "
        f"@register_keras_serializable(package=...), or pass custom_objects={{{name!r}: ...}}"
    )


@contextmanager
def refusing(what):
    """A context that makes any error in `from_file` a `SavingError`, which names ``what``."""
    try:
        yield
    except SavingError:
        raise
    except Exception as error:  # classes raise any error for a config
        if not reading_file():
            raise
        why = f"its config lacks {error}" if type(error) is KeyError else error
        raise refusal(f"{what}: {why}") from error
