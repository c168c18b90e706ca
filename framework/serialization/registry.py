"""The classes and functions that configs and files may name.

An object in a config is ``{"module", "class_name", "config", "registered_name"}``, as
Keras writes it; the first and the last may be missing in a file. Loading looks names up
here and in `registration` only: no code of a file is ever run, and no module that it names
is imported.
"""

import functools

from tapewright.core.dtypes import DType

from .constructor_arguments import (
    NO_ARGUMENTS,
    PlainArguments,
    constructor_arguments,
    constructor_defaults,
    is_own,
)
from .literals import is_literal, read_literal
from .registration import (
    custom_object_scope,
    get_registered_name,
    get_registered_object,
    name_in_scope,
    not_known,
    reading_file,
    refusal,
    refusing,
)
from .shared_objects import made_before, made_now, mark

__all__ = [
    "Configured",
    "class_of",
    "custom_object_scope",
    "deserialize",
    "find",
    "from_constructor",
    "function_config",
    "function_of",
    "kinds_of",
    "named",
    "objects",
    "plain",
    "register",
    "register_later",
    "registered_name",
    "resolve",
    "serialize",
]

_OBJECTS = {}
_SPELLINGS = {}  # (kind, letters of a name) -> the name that was registered first
_FOREIGN = {}  # (kind, module, name) -> a class that is not tapewright's own
_LATER = {}  # prefix of names -> the function that registers them
MODULES = {  # where Keras has the classes of a kind
    "layer": "keras.layers",
    "optimizer": "keras.optimizers",
    "schedule": "keras.optimizers.schedules",
    "loss": "keras.losses",
    "metric": "keras.metrics",
    "initializer": "keras.initializers",
    "regularizer": "keras.regularizers",
    "constraint": "keras.constraints",
}
_KERAS = ("keras", "tapewright", "tensorflow", "tf_keras", "builtins")


def register(kind, name, value):
    """Register ``value`` as ``name`` in one kind ("layer", "loss", ...).

    A user's class never replaces one of tapewright's own; `custom_object_scope` can name
    it.
    """
    if not is_own(value):
        _FOREIGN[kind, getattr(value, "__module__", None), name] = value
    known = _OBJECTS.get((kind, name))
    if known is None or is_own(value) or not is_own(known):
        _OBJECTS[kind, name] = value
        _SPELLINGS.setdefault((kind, _letters(name)), name)
    return value


def register_later(prefix, load):
    """Let the first lookup of a name with this prefix call ``load()``, which registers."""
    _LATER[prefix] = load


def find(kind, name):
    """The object of this name: a registered one of the user, or else one of ours.

    Raises: ``ValueError`` that lists the known names. A file does not find users' classes
    that are defined but not registered, see `registration.from_file`.
    """
    known = get_registered_object(name)
    if known is not None:
        return known
    for prefix in [p for p in _LATER if name.startswith(p)]:
        _LATER.pop(prefix)()
    known = _OBJECTS.get((kind, name))
    if known is None or (reading_file() and not is_own(known)):
        raise refusal(_unknown(kind, name))
    return known


def _unknown(kind, name):
    if reading_file():
        return f"the {kind} {not_known(name)}"
    known = sorted(n for k, n in _OBJECTS if k == kind)
    message = f"Unknown {kind} {name!r}; known are {', '.join(known)}"
    return message + _suggestion(name, known)


def _suggestion(name, known):
    """``. Did you mean 'MeanAbsoluteError'?`` if the name resembles a known one."""
    import difflib  # takes a millisecond, and only a mistake needs it

    by_letters = {_letters(each): each for each in known}
    near = difflib.get_close_matches(_letters(str(name)), by_letters, 3)
    quoted = " or ".join([repr(by_letters[each]) for each in near])
    return f". Did you mean {quoted}?" if near else ""


def objects(kind):
    """Everything registered of one kind, each once."""
    return list({id(v): v for (k, _), v in _OBJECTS.items() if k == kind}.values())


def kinds_of(name):
    """The kinds that have this name."""
    return [kind for kind in MODULES if (kind, name) in _OBJECTS]


def registered_name(kind, value):
    """The name under which ``value`` was registered, or None."""
    for (its_kind, name), known in _OBJECTS.items():
        if its_kind == kind and known is value:
            return name
    return None


def serialize(thing):
    """The config ``{"module", "class_name", "config", "registered_name"}`` of an object."""
    cls = type(thing)
    name, known_as = cls.__name__, None
    if get_registered_name(cls) != name or not is_own(cls):
        module, known_as = cls.__module__, get_registered_name(cls)
        module = None if module == "__main__" else module
    else:
        module, name, known_as = _place_in_keras(thing)
    config = {
        "module": module,
        "class_name": name,
        "config": thing.get_config(),
        "registered_name": known_as,
    }
    if hasattr(thing, "own_build_config"):
        config |= thing.own_build_config()
    if getattr(thing, "kind", None) == "layer":
        mark(thing, config)
    return config


def _place_in_keras(thing):
    place = getattr(thing, "place_in_keras", None)  # an attribute only of a few
    place = place or (MODULES.get(type(thing).kind), type(thing).__name__)
    return (*place, None)[:3]


def deserialize(kind, config):
    """The object that `serialize` described, ours or Keras'.

    Raises: ``ValueError`` for what is no config, an unknown class, or a config that it
    refuses; from a file all of these are a `SavingError`.
    """
    name = config.get("class_name") if isinstance(config, dict) else None
    if not isinstance(name, str):
        raise refusal(
            f"the config of a {kind} must be a dict with class_name and config, got "
            f"{_short(config)}"
        )
    inner = config.get("config")
    if name == "function":
        return function_of(kind, inner)
    thing = made_before(config) if kind == "layer" else None
    if thing is not None:
        return thing
    cls = class_of(kind, config)
    if not hasattr(cls, "from_config"):
        return cls
    if not isinstance(inner, (dict, type(None))):
        raise refusal(f"{name}: its config must be a dict, got {_short(inner)}")
    inner = {
        key: read_literal(value) if is_literal(value) else value
        for key, value in (inner or {}).items()
    }
    own = inner.get("name")
    title = f"{name} {own[:200]!r}" if isinstance(own, str) else name
    with refusing(f"{kind} {title}"):
        if reading_file() and isinstance(cls, type) and is_own(cls):
            _check_switches(cls, inner)
        thing = _built(cls.from_config(inner), config)
    if kind == "layer":
        made_now(config, thing)
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
            raise refusal(
                f"{cls.__name__} {str(config.get('name'))[:80]!r}: {key} must be true or "
                f"false, got {_short(value)}"
            )


@functools.cache
def _switches(cls):
    defaults = constructor_defaults(cls).items()
    return {name for name, value in defaults if type(value) is bool}


def _built(thing, config):
    """Build a layer by its own build config, if it is a user's that has one."""
    if config.get("build_config") and hasattr(thing, "build_by_own_config"):
        thing.build_by_own_config(config["build_config"])
    return thing


def _short(value):
    text = repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."


def class_of(kind, config):
    """The class (or function) of the config of an object.

    A user's class by its registered name, else by its module; else one of ours, unless the
    module is none of Keras.
    """
    name, known_as = config["class_name"], config.get("registered_name")
    for each in (known_as, name):
        known = get_registered_object(each) if isinstance(each, str) else None
        if known is not None:
            return known
    if isinstance(known_as, str) and ">" in known_as:
        raise refusal(_unknown(kind, known_as))
    module = config.get("module", "keras")
    if module is None or str(module).partition(".")[0] not in _KERAS:
        place = "__main__" if module is None else module
        known = _FOREIGN.get((kind, place, name))
        if known is None or reading_file():
            raise refusal(_unknown(kind, known_as or name))
        return known
    if kind == "optimizer" and name.startswith("Custom>"):  # Keras 2 on its own classes
        name = name.removeprefix("Custom>")
    return find(kind, _as_registered(kind, name))


def function_of(kind, name):
    """The function of this name, for an argument of this kind."""
    if not isinstance(name, str):
        raise refusal(f"a function must be given by its name, got {_short(name)}")
    for each in _FUNCTIONS.get(kind, (kind,)):
        if get_registered_object(name) or (each, name) in _OBJECTS:
            return find(each, name)
    raise refusal(_unknown("function", name))


_FUNCTIONS = {
    "layer": ("function", "activation"),
    "metric": ("metric function", "loss"),
    "function": ("function", "activation", "loss", "metric function", "initializer"),
}


def resolve(kind, identifier):
    """The object of a name, class, config or callable; None for None.

    ``"glorot_uniform"`` names ``GlorotUniform``: case and underscores do not count.

    Raises: ``ValueError`` that lists the known names; ``TypeError`` for anything else.
    """
    if isinstance(identifier, dict):
        return deserialize(kind, identifier)
    if isinstance(identifier, str):
        identifier = find(kind, _as_registered(kind, identifier))
    if isinstance(identifier, type):
        identifier = identifier()
    if identifier is None or callable(identifier):
        return identifier
    raise TypeError(
        f"{kind}: must be a name, a config, a callable or None, got {identifier!r}"
    )


def _as_registered(kind, name):
    """The registered spelling of ``name``, if there is one."""
    if (kind, name) in _OBJECTS or get_registered_object(name) is not None:
        return name
    return _SPELLINGS.get((kind, _letters(name)), name)


def _letters(name):
    return name.replace("_", "").lower()


def from_constructor(get_config):
    """Decorator: mark a ``get_config`` that has exactly the constructor's arguments."""
    get_config.from_constructor = True
    return get_config


class Configured:
    """Base of classes that are registered by name and can be rebuilt from a config.

    The config has the constructor's arguments, each kept as the attribute of its name. A
    class that sets ``kind`` is the base of a family, whose classes are registered when they
    are defined.
    """

    kind = None
    left_out = {}  # arguments that the config omits if they have this value
    custom_arguments = ()  # arguments that `get_config` of a subclass adds itself
    prefers_given = False  # use the plain arguments given, rather than attributes
    _plain_arguments = None

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "kind" not in vars(cls) and not cls.__name__.startswith("_"):
            register(cls.kind, cls.__name__, cls)

    def __new__(cls, *args, **kwargs):
        thing = super().__new__(cls)
        if not is_own(cls):
            vars(thing)["_plain_arguments"] = PlainArguments(cls, args, kwargs)
        return thing

    @from_constructor
    def get_config(self) -> dict:
        """The constructor's arguments as plain values: numbers, strings, lists, dicts.

        Raises: ``NotImplementedError`` if one is neither plain nor kept as an attribute.
        """
        cls, config, given = type(self), {}, self._plain_arguments or NO_ARGUMENTS
        is_default = hasattr(cls.get_config, "from_constructor")
        if is_default and given.lost:
            raise NotImplementedError(
                f"{cls.__name__}.get_config: arguments that __init__ takes as *args have "
                "no names; write a get_config and a from_config of your own"
            )
        first = given.by_name if self.prefers_given and is_default else {}
        names = constructor_arguments(cls)
        for name in [n for n in names if n not in self.custom_arguments]:
            if name in first:
                value = plain(first[name])
            elif hasattr(self, name):
                value = plain(getattr(self, name))
            elif name in given.by_name:
                value = plain(given.by_name[name])
            elif is_default:
                raise NotImplementedError(
                    f"{cls.__name__}.get_config: the argument {name!r} of __init__ "
                    f"is not kept; set self.{name}, or write a get_config of your own"
                )
            else:
                continue
            if name not in self.left_out or value != self.left_out[name]:
                config[name] = value
        if is_default:  # the **kwargs that no base class has a name for
            config |= {k: plain(x) for k, x in given.others.items() if k not in names}
        return config

    @classmethod
    def from_config(cls, config):
        """An object made with the arguments of a config."""
        return cls(**config)

    def __repr__(self):
        arguments = (f"{key}={value!r}" for key, value in self.get_config().items())
        return f"{type(self).__name__}({', '.join(arguments)})"


def plain(value):
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
        return _name_of(value)
    raise TypeError(f"A config cannot hold {type(value).__name__}: {value!r}")


def _name_of(function):
    """The name of a function of ours, or the Keras config of a user's."""
    name = name_in_scope(function)
    for (_, known_as), known in _OBJECTS.items():
        if known is function:
            return name or known_as
    if is_own(function) and name is None:
        return function.__name__
    if function.__name__ == "<lambda>":
        raise ValueError(
            "A config cannot hold a lambda, since code is never saved: make it a function "
            "with a name, and decorate that with @register_keras_serializable()"
        )
    return function_config(name or get_registered_name(function))


def named(function):
    """The Keras config of a function; anything else as `plain` returns it."""
    found = plain(function)
    is_function = isinstance(found, str) and callable(function)
    return function_config(found) if is_function else found


def function_config(name):
    """The Keras config of the function of this name."""
    return {
        "module": "builtins",
        "class_name": "function",
        "config": name,
        "registered_name": "function",
    }
