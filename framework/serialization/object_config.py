"""Objects as plain JSON and back: ``{"module", "class_name", "config", ...}``.

A config names the module, the class, its arguments, and the name under which a user
registered it; `keras.files` defines the modules of built-in classes.
"""

import functools
from collections.abc import Callable
from typing import Any

from tapewright.core import hooks
from tapewright.core.dtypes import DType
from tapewright.core.shapes.symbolic_dim import is_symbolic
from tapewright.core.shapes.symbolic_shape import static_shapes

from .constructor_arguments import constructor_defaults, is_own
from .literals import decode_literal, encode_literal, is_literal
from .load_errors import (
    load_error,
    load_errors,
    reading_config,
    reading_file,
    shortened,
)
from .registry import (
    custom_object_scope,
    find,
    find_in_module,
    get_registered_name,
    get_registered_object,
    is_known,
    name_in_scope,
    registered_name,
    unknown_name,
)
from .shared_layers import keep_shared, note_entry, shared_layer

# Packages of which files name the classes that are tapewright's here.
_OWN_PACKAGES = ("keras", "tapewright", "tensorflow", "tf_keras", "builtins")
_FUNCTION_KINDS = {  # kinds of functions that may stand where one of this kind is wanted
    "layer": ("function", "activation"),
    "metric": ("metric function", "loss"),
    "function": ("function", "activation", "loss", "metric function", "initializer"),
}
# Kinds of which a file names a function, and then gets ours of this name.
_NAMED_KINDS = ("activation", "loss", "metric function", "initializer", "regularizer",
                "constraint")  # fmt: skip
# Ops of ours that are what our activations, initializers and losses of their names are;
# `keras.ops.gelu` is approximate by default, the activation is not.
_OTHER_DEFAULTS = ("gelu",)
_ALIKE = (
    "ones", "zeros", "categorical_crossentropy", "sparse_categorical_crossentropy",
)  # fmt: skip


# ------------------------------------------------------------------------------- writing


def serialize(thing: Any, build: bool = False, compiled: bool = False) -> dict:
    """Return ``{"module", "class_name", "config", "registered_name"}``.

    Args:
        thing: Object with ``get_config``, or a named function.
        build: If True, ``"build_config"`` has the shapes for which it is built. Objects
            that contain others leave this out: see `deserialize`. A user's
            ``get_build_config`` is called in any case.
        compiled: If True, ``"compile_config"`` has the arguments of ``compile``.

    Raises:
        TypeError: If the object is neither.
        ValueError: If it is a lambda, or a function whose name does not lead back to
            it.

    Example:
        >>> from tapewright.serialization.object_config import serialize
        >>> from tapewright.keras import activations
        >>> serialize(activations.relu)["config"]
        'relu'
    """
    if not hasattr(thing, "get_config"):
        return function_config(_function_name(thing))
    cls = type(thing)
    name, known_as = cls.__name__, None
    if get_registered_name(cls) != name or not is_own(cls):
        module, known_as = cls.__module__, get_registered_name(cls)
        module = None if module == "__main__" else module
    else:
        module, name, known_as = (*hooks.class_path.call(thing), None)[:3]
    config = {
        "module": module,
        "class_name": name,
        "config": static_shapes(thing.get_config()),
        "registered_name": known_as,
    }
    is_built = getattr(thing, "built", False)
    build = build or (_is_of_user(cls, "get_build_config") and is_built)
    parts = ["build_config"] * build + ["compile_config"] * compiled
    for part in [each for each in parts if hasattr(cls, f"get_{each}")]:
        values = getattr(thing, f"get_{part}")()
        if values is not None:
            config[part] = _with_literals(values)
    if getattr(cls, "_tw_kind", None) == "layer":
        note_entry(thing, config)
    return config


def _with_literals(value):
    """Convert values that users define, which may be arrays, slices and bytes."""
    if isinstance(value, dict):
        return {key: _with_literals(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)([_with_literals(item) for item in value])
    literal = encode_literal(value)
    return plain(value) if literal is None else literal


def _is_of_user(cls, name):
    """Return whether a user's class defines or overrides a method."""
    method = getattr(cls, name, None)
    return method is not None and not is_own(method)


def function_config(name: str) -> dict:
    """Return the config of the function with this name."""
    return {
        "module": "builtins",
        "class_name": "function",
        "config": name,
        "registered_name": "function",
    }


def _function_name(function):
    if not callable(function) or not hasattr(function, "__name__"):
        raise TypeError(
            f"A config cannot hold {type(function).__name__}: {function!r:.200}. Give "
            "its class a get_config, or define get_config and from_config in the "
            "class that holds it"
        )
    if function.__name__ == "<lambda>":
        raise ValueError(
            "A config cannot hold a lambda, since code is never saved: use a named "
            "function decorated with @register_keras_serializable()"
        )
    name = name_in_scope(function) or registered_name(None, function)
    name = name or get_registered_name(function)
    if get_registered_object(name) is not function:
        _check_is_named(function, name)
    return name


def _check_is_named(function, name):
    """Reject a function that a file would replace by another one, or not find."""
    known = [k for k in _NAMED_KINDS if is_known(k, name)]
    if is_own(function):
        alike = "activation" in known and name not in _OTHER_DEFAULTS or name in _ALIKE
        if alike or registered_name(None, function) is not None:
            return
        problem = f"the op {name!r}, which has no name there"
        remedy = "call it in your own function, decorated"
    elif any([is_own(find(kind, name)) for kind in known]):
        problem = (
            f"your function {name!r} by its name, which is also the name of a "
            f"Keras {known[0]}"
        )
        remedy = "decorate it"
    else:
        return
    raise ValueError(
        f"A config cannot hold {problem}: {remedy} with @register_keras_serializable()"
    )


def plain(value: Any) -> Any:
    """Convert an attribute to JSON values: a built-in function is its name.

    Example:
        >>> from tapewright.serialization.object_config import plain
        >>> plain(tw.DType("float32", "f4")), plain((1, None))
        ('float32', (1, None))
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if is_symbolic(value):  # an unknown size
        return None
    if isinstance(value, DType):
        return value.name
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [plain(item) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if not hasattr(value, "get_config"):  # else these are attributes of a user's
        if hasattr(value, "numpy"):
            value = value.numpy()
        if hasattr(value, "tolist"):
            return value.tolist()
    config = serialize(value)
    is_name = config["class_name"] == "function" and is_own(value)
    return config["config"] if is_name else config


# ------------------------------------------------------------------------------- reading


def resolve(kind: str, identifier: Any) -> Any:
    """Return the object of a name, class, config or callable; None for None.

    Case and underscores are ignored: ``"glorot_uniform"`` is ``GlorotUniform``.

    Raises:
        ValueError: If the name is unknown; it lists the known names.
        TypeError: For any other type.
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


def deserialize(kind: str, config: Any, build: bool = False) -> Any:
    """Return the object of a config from `serialize` or from Keras.

    Errors in a file are a `SavingError`.

    Args:
        kind: Family of the object: "layer", "loss", ...
        config: Config of the object.
        build: If True, also build and compile it as the config says. Objects that
            contain others leave it out, and build them in their own place: the paths
            and dtype policies of weights depend on it. A user's ``build_from_config``
            is called in any case.

    Raises:
        ValueError: For a value that is not a config, an unknown class, or a config that
            the class rejects.
    """
    name = config.get("class_name") if isinstance(config, dict) else None
    if not isinstance(name, str):
        article = "an" if kind[0] in "aeio" else "a"
        raise load_error(
            f"the config of {article} {kind} must be a dict with class_name and config, got "
            f"{shortened(config)}"
        )
    if name == "function":
        return function_of(kind, config.get("config"))
    if kind != "layer":
        return _from_config(kind, config, build)
    layer = shared_layer(config)
    if layer is None:
        layer = _from_config(kind, config, build)
    keep_shared(config, layer)
    return layer


def _from_config(kind, config, build):
    cls, arguments = class_of(kind, config), config.get("config")
    if not hasattr(cls, "from_config"):
        return cls
    title = config["class_name"]
    if not isinstance(arguments, (dict, type(None))):
        raise load_error(
            f"{title}: its config must be a dict, got {shortened(arguments)}"
        )
    arguments = {
        key: decode_literal(value) if is_literal(value) else value
        for key, value in (arguments or {}).items()
    }
    name = arguments.get("name")
    if isinstance(name, str):
        title = f"{title} {name[:200]!r}"
    with reading_config(), load_errors(f"{kind} {title}"):
        if reading_file() and isinstance(cls, type) and is_own(cls):
            _check_switches(cls, arguments)
        thing = cls.from_config(arguments)
        _build(thing, config.get("build_config"), build)
    if build and config.get("compile_config") and hasattr(cls, "compile_from_config"):
        thing.compile_from_config(config["compile_config"])
    return thing


def _build(thing, shapes, build):
    """Build an object by its ``build_from_config``; without ``build`` by a user's only."""
    cls, is_of_user = type(thing), _is_of_user(type(thing), "build_from_config")
    if not shapes or not hasattr(cls, "build_from_config"):
        return
    if getattr(thing, "built", False):
        return
    if build or is_of_user:
        with load_errors(f"{cls.__name__} cannot be built for {shapes!r:.200}"):
            thing.build_from_config(shapes)
    if is_of_user:
        thing.built = True


def _check_switches(cls, config):
    """Check that arguments whose default is a bool are bools in a config.

    Files from other versions may also have 0, 1 and, for most arguments, None.
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

    A user class is found by its registered name, else by its module; a built-in class
    only if the module belongs to Keras.
    """
    name, known_as = config["class_name"], config.get("registered_name")
    noun = "class" if kind == "layer" and reading_file() else kind  # a model, perhaps
    for each in (known_as, name):
        known = get_registered_object(each) if isinstance(each, str) else None
        if known is not None:
            return known
    if isinstance(known_as, str) and ">" in known_as:
        raise load_error(unknown_name(noun, known_as))
    module = config.get("module", "keras")
    if module is None or str(module).partition(".")[0] not in _OWN_PACKAGES:
        known = find_in_module(kind, "__main__" if module is None else module, name)
        if known is None:
            raise load_error(unknown_name(noun, known_as or name))
        return known
    return find(kind, name, any_spelling=True)


def function_of(kind: str, name: Any) -> Callable:
    """Return the function with this name, for an argument of this kind."""
    if not isinstance(name, str):
        raise load_error(f"a function must be given by its name, got {shortened(name)}")
    kinds = _FUNCTION_KINDS.get(kind, (kind,))
    for each in kinds:
        if is_known(each, name):
            return find(each, name)
    raise load_error(unknown_name("function", name, kinds))


class ObjectFamily:
    """`get`, `serialize` and `deserialize` of one family, for the module of the family.

    If ``function_names`` is True, `serialize` returns the names of built-in functions,
    not their configs.
    """

    def __init__(self, kind: str, function_names: bool = True):
        self.kind, self.function_names = kind, function_names

    def get(self, identifier: Any) -> Any:
        """Return the object for a name, class, config or callable.

        Case and underscores in names are ignored: ``"glorot_uniform"`` is
        ``GlorotUniform``.

        Args:
            identifier: Name, class, config, object or None. The name of a class, or a
                class, returns a new object.

        Returns:
            The object; None for None.

        Raises:
            TypeError: If ``identifier`` has any other type.
            ValueError: If the name is unknown; the message lists known and similar
                names.
        """
        return resolve(self.kind, identifier)

    def serialize(self, thing: Any) -> Any:
        """Return the config of an object, or the name of a function, for ``get``.

        Args:
            thing: Object with a ``get_config`` method, or a named function.

        Raises:
            TypeError: If an object has no config.
            ValueError: If ``thing`` is a lambda.
        """
        is_function = callable(thing) and not self.function_names
        return serialize(thing) if is_function else plain(thing)

    def deserialize(
        self, config: Any, custom_objects: dict[str, Any] | None = None
    ) -> Any:
        """Create an object from the result of ``serialize``.

        Args:
            config: Config of an object, or the name of a function.
            custom_objects: Dict from name to class or function, searched before
                registered names.

        Raises:
            ValueError: If a name is unknown or if the class rejects the config.
        """
        with custom_object_scope(custom_objects):
            return self.get(config)
