"""Classes and functions of users, by the names under which configs and files know them.

A file may mention only what its reader has made known on purpose: by
`register_keras_serializable`, or by ``custom_objects`` and `custom_object_scope`. While
one is being read, inside of `from_file`, nothing else of the user's is found.
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
    """Makes the decorated class or function known as ``package>name``, to files as well.

    ``name`` is by default its own.

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
    """``package>name`` of what was registered, else the name that Python gives it."""
    try:
        return _NAMES.get(obj) or obj.__name__
    except TypeError:  # not hashable, so not registered
        return obj.__name__


def get_registered_object(name, custom_objects=None, module_objects=None):
    """The class or function known by ``name``, or None.

    Looked for in scopes, among what was registered, then in ``custom_objects`` and
    ``module_objects``.
    """
    places = (_SCOPE.get({}), _KNOWN, custom_objects or {}, module_objects or {})
    return next((place[name] for place in places if name in place), None)


def get_custom_objects():
    """The dict, by name, of what was registered; what is put into it is known, too."""
    return _KNOWN


class CustomObjectScope:
    """Inside, these (name to class or function) are found before everything else.

    Scopes in each other add up.

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
    """The name that a scope has for a class or function, or None."""
    return next((n for n, known in _SCOPE.get({}).items() if known is thing), None)


@contextmanager
def from_file(path, dataset=None):
    """Inside, names come from a file: of the user's, only what was made known is found.

    ``dataset``: where in the file the config stands, for errors.
    """
    token = _FILE.set((path, dataset))
    try:
        yield
    finally:
        _FILE.reset(token)


def reading_file():
    """Return whether names come `from_file`."""
    return _FILE.get() is not None


def refusal(reason):
    """The error to raise: a `SavingError` inside of `from_file`, else ``ValueError``."""
    if _FILE.get() is None:
        return ValueError(reason)
    path, dataset = _FILE.get()
    return SavingError(path, reason, dataset)


def not_known(name):
    """Describe, for errors, a name that is not registered, and the remedy."""
    name = str(name)[:200]
    return (
        f"{name!r} is not known here: if it is one of yours, decorate it with "
        f"@register_keras_serializable(package=...), or pass custom_objects={{{name!r}: ...}}"
    )


@contextmanager
def refusing(what):
    """Inside of `from_file`, makes any error a `SavingError`: ``what``, and the reason."""
    try:
        yield
    except SavingError:
        raise
    except Exception as error:  # whatever a class says against what the file holds
        if not reading_file():
            raise
        why = f"its config lacks {error}" if type(error) is KeyError else error
        raise refusal(f"{what}: {why}") from error
