"""Objects as plain JSON and back: ``{"module", "class_name", "config", ...}``.

The form of an object is the one that Keras has too, as ``get_config`` of a layer with
layers inside is public: the module of its kind (`registry.kind_modules`), the name of the
class, its config, and the name under which a user registered it.
"""

import functools
from collections.abc import Callable
from typing import Any

from tapewright.core.dtypes import DType

from .constructor_arguments import constructor_defaults, is_own
from .literals import decode_literal, is_literal
from .load_errors import load_error, load_errors, reading_file, shortened
from .registry import (
    custom_object_scope,
    find,
    find_in_module,
    get_registered_name,
    get_registered_object,
    is_known,
    kind_modules,
    name_in_scope,
    registered_name,
    unknown_name,
)
from .shared_objects import keep_shared, number_shared, shared_layer

__all__ = [
    "ObjectFamily",
    "class_of",
    "deserialize",
    "function_config",
    "function_of",
    "named",
    "plain",
    "resolve",
    "serialize",
]

# Packages of which files name the classes that are tapewright's here.
_OWN_PACKAGES = ("keras", "tapewright", "tensorflow", "tf_keras", "builtins")
_FUNCTION_KINDS = {  # kinds of functions that may stand where one of this kind is wanted
    "layer": ("function", "activation"),
    "metric": ("metric function", "loss"),
    "function": ("function", "activation", "loss", "metric function", "initializer"),
}


# ------------------------------------------------------------------------------- writing


def serialize(thing: Any) -> dict:
    """Return ``{"module", "class_name", "config", "registered_name"}`` of an object."""
    cls = type(thing)
    name, known_as = cls.__name__, None
    if get_registered_name(cls) != name or not is_own(cls):
        module, known_as = cls.__module__, get_registered_name(cls)
        module = None if module == "__main__" else module
    else:
        path = getattr(thing, "keras_class_path", None)  # an attribute only of a few
        path = path or (kind_modules.get(cls.kind), name)
        module, name, known_as = (*path, None)[:3]
    config = {
        "module": module,
        "class_name": name,
        "config": thing.get_config(),
        "registered_name": known_as,
    }
    if hasattr(thing, "own_build_config"):
        config |= thing.own_build_config()
    if getattr(thing, "kind", None) == "layer":
        number_shared(thing, config)
    return config


def plain(value: Any) -> Any:
    """Convert an attribute to its form in a config: JSON values, names of functions.

    >>> plain(DType("float32", "f4")), plain((1, None))
    ('float32', [1, None])
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, DType):
        return value.name
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "get_config"):
        return serialize(value)
    if hasattr(value, "numpy"):
        value = value.numpy()
    if hasattr(value, "tolist"):
        return value.tolist()
    if callable(value) and hasattr(value, "__name__"):
        return _function_name(value)
    raise TypeError(f"A config cannot hold {type(value).__name__}: {value!r}")


def _function_name(function):
    """The name of a function of ours, or the config of a user's."""
    name, known_as = name_in_scope(function), registered_name(None, function)
    if known_as is not None:
        return name or known_as
    if is_own(function) and name is None:
        return function.__name__
    if function.__name__ == "<lambda>":
        raise ValueError(
            "A config cannot hold a lambda, since code is never saved: use a named "
            "function decorated with @register_keras_serializable()"
        )
    return function_config(name or get_registered_name(function))


def named(function: Any) -> Any:
    """Return the config of a function; anything else as `plain` returns it."""
    found = plain(function)
    is_function = isinstance(found, str) and callable(function)
    return function_config(found) if is_function else found


def function_config(name: str) -> dict:
    """Return the config of the function of this name."""
    return {
        "module": "builtins",
        "class_name": "function",
        "config": name,
        "registered_name": "function",
    }


# ------------------------------------------------------------------------------- reading


def resolve(kind: str, identifier: Any) -> Any:
    """Return the object of a name, class, config or callable; None for None.

    ``"glorot_uniform"`` names ``GlorotUniform``: case and underscores do not count.

    Raises: ``ValueError`` that lists the known names; ``TypeError`` for anything else.
    """
    if isinstance(identifier, dict):
        return deserialize(kind, identifier)
    if isinstance(identifier, str):
        identifier = find(kind, identifier, any_spelling=True)
    if isinstance(identifier, type):
        identifier = identifier()
    if identifier is None or callable(identifier):
        return identifier
    raise TypeError(
        f"{kind}: must be a name, a config, a callable or None, got {identifier!r}"
    )


def deserialize(kind: str, config: Any) -> Any:
    """Return the object that `serialize` described, ours or Keras'.

    Raises: ``ValueError`` for what is no config, an unknown class, or a config that it
    refuses; from a file all of these are a `SavingError`.
    """
    name = config.get("class_name") if isinstance(config, dict) else None
    if not isinstance(name, str):
        raise load_error(
            f"the config of a {kind} must be a dict with class_name and config, got "
            f"{shortened(config)}"
        )
    inner = config.get("config")
    if name == "function":
        return function_of(kind, inner)
    thing = shared_layer(config) if kind == "layer" else None
    if thing is not None:
        return thing
    cls = class_of(kind, config)
    if not hasattr(cls, "from_config"):
        return cls
    if not isinstance(inner, (dict, type(None))):
        raise load_error(f"{name}: its config must be a dict, got {shortened(inner)}")
    inner = {
        key: decode_literal(value) if is_literal(value) else value
        for key, value in (inner or {}).items()
    }
    own = inner.get("name")
    title = f"{name} {own[:200]!r}" if isinstance(own, str) else name
    with load_errors(f"{kind} {title}"):
        if reading_file() and isinstance(cls, type) and is_own(cls):
            _check_switches(cls, inner)
        thing = cls.from_config(inner)
        if config.get("build_config") and hasattr(thing, "build_by_own_config"):
            thing.build_by_own_config(config["build_config"])
    if kind == "layer":
        keep_shared(config, thing)
    return thing


def _check_switches(cls, config):
    """Check that arguments whose default is a bool are bools in a config.

    Files of other versions may also have 0, 1 and, for most arguments, None.
    """
    for key in _switches(cls) & config.keys():
        value = config[key]
        if value is None and key != "trainable":
            continue
        if not isinstance(value, (bool, int)) or value not in (0, 1):
            raise load_error(
                f"{cls.__name__} {str(config.get('name'))[:80]!r}: {key} must be true or "
                f"false, got {shortened(value)}"
            )


@functools.cache
def _switches(cls):
    defaults = constructor_defaults(cls).items()
    return {name for name, value in defaults if type(value) is bool}


def class_of(kind: str, config: dict) -> Any:
    """Return the class (or function) of the config of an object.

    A user's class by its registered name, else by its module; else one of ours, unless the
    module is none of Keras.
    """
    name, known_as = config["class_name"], config.get("registered_name")
    for each in (known_as, name):
        known = get_registered_object(each) if isinstance(each, str) else None
        if known is not None:
            return known
    if isinstance(known_as, str) and ">" in known_as:
        raise load_error(unknown_name(kind, known_as))
    module = config.get("module", "keras")
    if module is None or str(module).partition(".")[0] not in _OWN_PACKAGES:
        known = find_in_module(kind, "__main__" if module is None else module, name)
        if known is None:
            raise load_error(unknown_name(kind, known_as or name))
        return known
    return find(kind, name, any_spelling=True)


def function_of(kind: str, name: Any) -> Callable:
    """Return the function of this name, for an argument of this kind."""
    if not isinstance(name, str):
        raise load_error(f"a function must be given by its name, got {shortened(name)}")
    kinds = _FUNCTION_KINDS.get(kind, (kind,))
    for each in kinds:
        if is_known(each, name):
            return find(each, name)
    raise load_error(unknown_name("function", name, kinds))


class ObjectFamily:
    """`get`, `serialize` and `deserialize` of one kind, for a module of the kind.

    ``form``: converts an object, or a function in its place; `plain` or `named`.
    """

    def __init__(self, kind: str, form: Callable[[Any], Any] = plain):
        self.kind, self.form = kind, form

    def get(self, identifier: Any) -> Any:
        """Return the object of a name, class, config or callable; None for None.

        Case and underscores of a name do not count: ``"glorot_uniform"`` is
        ``GlorotUniform``. The name of a class gives an object of it.

        Raises: ``ValueError`` that lists the known names, and those near to an unknown
        one; ``TypeError`` for what is no identifier.
        """
        return resolve(self.kind, identifier)

    def serialize(self, thing: Any) -> Any:
        """Return the config of an object, or the name of a function, as `get` takes it."""
        return self.form(thing)

    def deserialize(
        self, config: Any, custom_objects: dict[str, Any] | None = None
    ) -> Any:
        """Return the object that `serialize` described.

        ``custom_objects``: names and classes or functions to look among first.
        """
        with custom_object_scope(custom_objects):
            return self.get(config)
