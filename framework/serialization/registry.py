"""The registry of names: classes and functions that configs and files may name.

Names belong to a kind ("layer", "loss", ...). User classes and functions may also be
registered for every kind, by `register_keras_serializable` or temporarily by
`custom_object_scope`; a file may name no other user objects. Nothing outside the
registry is looked up: no code of a file is run, and no module that it names is
imported.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Self, TypeVar

from tapewright.core.messages.suggestions import suggestion
from tapewright.core.names.naming import snake_case

from .constructor_arguments import is_own
from .load_errors import load_error, reading_file

T = TypeVar("T")

_OBJECTS = {}  # kind -> name -> class or function; users' also as "module:name"
_CUSTOM = {}  # "package>name" -> class or function of the user, of any kind
_CUSTOM_NAMES = {}  # the inverse, which also knows classes that were replaced since
_LOADERS = {}  # prefix of names, or several -> the function that registers them
_SCOPE = ContextVar("custom_objects")


# ----------------------------------------------------------------------- names of a kind


def register(kind: str, name: str, value: T) -> T:
    """Register ``value`` as ``name`` in one kind ("layer", "loss", ...).

    A user class never replaces a built-in class; `custom_object_scope` can name it.
    """
    known = _OBJECTS.setdefault(kind, {})
    if not is_own(value):
        known[f"{getattr(value, '__module__', None)}:{name}"] = value
    if name not in known or is_own(value) or not is_own(known[name]):
        known[name] = value
    return value


def register_later(prefix: str | tuple[str, ...], load: Callable[[], Any]) -> None:
    """Register a lazy loader: the first lookup of a name with such a prefix calls it."""
    _LOADERS[prefix] = load


def find(kind: str, name: str, any_spelling: bool = False) -> Any:
    """Return the object with a name: a registered user object, or else a built-in.

    With ``any_spelling``, case and underscores are ignored: ``"glorot_uniform"`` is
    ``GlorotUniform``. A file does not find user classes that are defined but not
    registered, see `load_errors.from_file`.

    Raises:
        ValueError: If the name is unknown; it lists the known names.
    """
    known = get_registered_object(name)
    if known is not None:
        return known
    while prefixes := [p for p in _LOADERS if name.startswith(p)]:  # one may add others
        _LOADERS.pop(prefixes[0])()
    known = _OBJECTS.get(kind, {}).get(name)
    if known is None and any_spelling:
        letters = _letters(name)
        for each in _names(kind):
            if _letters(each) == letters:
                return find(kind, each)
    if known is None or (reading_file() and not is_own(known)):
        raise load_error(unknown_name(kind, name, any_spelling=any_spelling))
    return known


def is_known(kind: str, name: str) -> bool:
    """Return whether a name is registered, for this kind or by the user for all kinds."""
    return get_registered_object(name) is not None or name in _OBJECTS.get(kind, ())


def find_in_module(kind: str, module: str, name: str) -> Any:
    """Return an unregistered user class of a module, or None in a file."""
    return None if reading_file() else _OBJECTS.get(kind, {}).get(f"{module}:{name}")


def unknown_name(
    kind: str, name: str, kinds: tuple = (), any_spelling: bool = False
) -> str:
    """Return the error text for an unknown name, also searched in further kinds.

    With ``any_spelling``, as in `find`, a name in lower case suggests such a name.
    """
    if reading_file():
        return f"the {kind} {unregistered(name)}"
    known = sorted({each for k in (kind, *kinds) for each in _names(k)})
    if any_spelling and name.islower():
        known += sorted({snake_case(each) for each in known}.difference(known))
    return f"Unknown {kind} {name!r}{suggestion(name, known)}"


def unregistered(name: str) -> str:
    """Return the error text that says how to make a user's name known.

    The decorator helps with a file only if the name was registered when it was saved.
    """
    name = str(name)[:200]
    package, registered, own = name.rpartition(">")
    given = f"custom_objects={{{name!r}: {own if own.isidentifier() else '...'}}}"
    decorator = "@keras.saving.register_keras_serializable"
    if registered:
        return (
            f"{name!r} is unknown: decorate {own!r} with {decorator}({package!r}) before "
            f"loading, or pass {given}"
        )
    return (
        f"{name!r} is unknown: pass {given}. Register it with {decorator}() before saving, "
        "and custom_objects is not needed"
    )


def _letters(name):
    return name.replace("_", "").lower()


def _names(kind):
    """Return the names of a kind in registration order, without names by module."""
    return [name for name in _OBJECTS.get(kind, ()) if ":" not in name]


def registered_name(kind: str | None, value: object) -> str | None:
    """Return the first name of ``value`` in a kind, or in any kind if that is None."""
    kinds = _OBJECTS if kind is None else (kind,)
    named = ((k, name) for k in kinds for name in _names(k))
    return next((name for k, name in named if _OBJECTS[k][name] is value), None)


# ---------------------------------------------------------------------- names of the user


def register_keras_serializable(
    package: str = "Custom", name: str | None = None
) -> Callable[[T], T]:
    """Return a decorator that registers a class or function as ``package>name``.

    Registered objects can be loaded from files without ``custom_objects``.

    Args:
        package: Namespace of the name, such as the name of your project: classes with
            the same name in two packages do not collide. Files store ``package>name``,
            so keep it stable.
        name: Name of the object, by default its ``__name__``.

    Raises:
        TypeError: If ``package`` is not a string, as for a decorator without
            parentheses.
        ValueError: If a class has no ``get_config`` method.

    Example:
        >>> @keras.saving.register_keras_serializable(package="mine")
        ... def double(x):
        ...     return 2 * x
        >>> keras.saving.get_registered_name(double)
        'mine>double'
        >>> keras.saving.get_registered_object("mine>double") is double
        True
    """
    if not isinstance(package, str):
        raise TypeError(
            f"register_keras_serializable: package must be a string, got {package!r}; "
            "decorate with @register_keras_serializable(), with parentheses"
        )

    def decorate(thing):
        if isinstance(thing, type) and not hasattr(thing, "get_config"):
            raise ValueError(
                f"register_keras_serializable: the class {thing.__name__} needs a "
                "get_config() that returns the arguments of its constructor"
            )
        known_as = f"{package}>{thing.__name__ if name is None else name}"
        _CUSTOM[known_as] = thing
        _CUSTOM_NAMES[thing] = known_as
        return thing

    return decorate


def get_registered_name(obj: Any) -> str:
    """Return the registered name of a class or function, or else its ``__name__``.

    Args:
        obj: Class or function.

    Example:
        >>> keras.saving.get_registered_name(keras.layers.Dense)
        'Dense'
    """
    try:
        return _CUSTOM_NAMES.get(obj) or obj.__name__
    except TypeError:  # not hashable, so not registered
        return obj.__name__


def get_registered_object(
    name: str,
    custom_objects: dict[str, Any] | None = None,
    module_objects: dict[str, Any] | None = None,
) -> Any:
    """Return the class or function with a registered name, or None.

    Active scopes are searched first, then registered names, ``custom_objects`` and
    ``module_objects``.

    Args:
        name: Registered name, ``package>name``.
        custom_objects: Dict from name to class or function.
        module_objects: Dict like ``custom_objects``, searched last.
    """
    tables = (_SCOPE.get({}), _CUSTOM, custom_objects or {}, module_objects or {})
    return next((table[name] for table in tables if name in table), None)


def get_custom_objects() -> dict[str, Any]:
    """Return the dict of registered custom objects; adding an entry registers it.

    Example:
        >>> keras.saving.get_custom_objects()["mine>absolute"] = abs
        >>> keras.saving.get_registered_object("mine>absolute")
        <built-in function abs>
    """
    return _CUSTOM


class CustomObjectScope:
    """Context manager in which custom objects are found by name before all others.

    Nested scopes are combined.

    Args:
        custom_objects: Dict from name to class or function, or None.

    Raises:
        TypeError: If ``custom_objects`` has another type.

    Example:
        >>> with keras.saving.CustomObjectScope({"double": abs}):
        ...     keras.saving.get_registered_object("double")
        <built-in function abs>
    """

    def __init__(self, custom_objects: dict[str, Any] | None):
        if not isinstance(custom_objects or {}, dict):
            raise TypeError(
                "custom_objects must be a dict of names and classes or functions, got "
                f"{custom_objects!r}"
            )
        self.custom_objects = custom_objects or {}
        self._tokens = []

    def __enter__(self) -> Self:
        self._tokens.append(_SCOPE.set({**_SCOPE.get({}), **self.custom_objects}))
        return self

    def __exit__(self, *error: Any) -> None:
        _SCOPE.reset(self._tokens.pop())


custom_object_scope = CustomObjectScope


def name_in_scope(thing: object) -> str | None:
    """Return the name of a class or function in the scopes, or None."""
    return next((n for n, known in _SCOPE.get({}).items() if known is thing), None)
