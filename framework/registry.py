"""Names of classes and functions that a config or a file may mention, and their objects.

A config is ``{"class_name": ..., "config": {...}}``. Loading looks names up here and
nowhere else: no code is ever run from a file.
"""

from contextlib import contextmanager
from contextvars import ContextVar

from .dtypes import DType

__all__ = [
    "Configured",
    "constructor_arguments",
    "custom_object_scope",
    "deserialize",
    "find",
    "objects",
    "plain",
    "register",
    "register_later",
    "registered_name",
    "resolve",
    "serialize",
]

_OBJECTS = {}
_LATER = {}  # start of a name -> what registers the names that start so
_SCOPE = ContextVar("custom_objects")


def register(kind, name, value):
    """Makes ``value`` known as ``name`` among things of one kind ("layer", "op", ...).

    What a user defines never takes the place of something of tapewright's own; it can be
    named through `custom_object_scope`.
    """
    known = _OBJECTS.get((kind, name))
    if known is None or _is_own(value) or not _is_own(known):
        _OBJECTS[kind, name] = value
    return value


def register_later(prefix, load):
    """Has ``load()``, which registers them, called when a name with this start is sought."""
    _LATER[prefix] = load


def _is_own(thing):
    package = __name__.partition(".")[0]
    return getattr(thing, "__module__", "").partition(".")[0] == package


def find(kind, name):
    """The object of that name: from `custom_object_scope` first, else the registered one.

    Raises: ``ValueError`` that lists the known names.
    """
    scope = _SCOPE.get(None)
    if scope and name in scope:
        return scope[name]
    for prefix in [p for p in _LATER if name.startswith(p)]:
        _LATER.pop(prefix)()
    try:
        return _OBJECTS[kind, name]
    except KeyError:
        known = sorted(n for k, n in _OBJECTS if k == kind)
        message = f"Unknown {kind} {name!r}; known are {', '.join(known)}"
        raise ValueError(message + _suggestion(name, known)) from None


def _suggestion(name, known):
    """``. Did you mean 'MeanAbsoluteError'?`` for a name that is nearly a known one."""
    import difflib  # a millisecond that only a mistake should cost

    by_letters = {_letters(each): each for each in known}
    near = difflib.get_close_matches(_letters(str(name)), by_letters, 3)
    quoted = " or ".join([repr(by_letters[each]) for each in near])
    return f". Did you mean {quoted}?" if near else ""


def objects(kind):
    """Everything registered of one kind, each once."""
    return list({id(v): v for (k, _), v in _OBJECTS.items() if k == kind}.values())


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


def resolve(kind, identifier):
    """The object for which a name, class, config or callable stands; None for None.

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
    names = [known for its_kind, known in _OBJECTS if its_kind == kind]
    if name in names or name in _SCOPE.get({}):
        return name
    alike = [known for known in names if _letters(known) == _letters(name)]
    return alike[0] if alike else name


def _letters(name):
    return name.replace("_", "").lower()


@contextmanager
def custom_object_scope(custom_objects):
    """Inside, these (name to class or function) are found before registered ones."""
    token = _SCOPE.set({**_SCOPE.get({}), **custom_objects})
    try:
        yield
    finally:
        _SCOPE.reset(token)


class Configured:
    """Base of classes that are known by name and can be made again from a config.

    The config is the constructor's arguments: each is kept as the attribute of its name.
    A class that sets ``kind`` opens a family; its subclasses are registered as they are
    defined.
    """

    kind = None
    left_out = {}  # arguments that a config need not mention while they have this value

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "kind" not in vars(cls) and not cls.__name__.startswith("_"):
            register(cls.kind, cls.__name__, cls)

    def get_config(self) -> dict:
        """The constructor's arguments as plain values: numbers, strings, lists, dicts.

        Raises: ``NotImplementedError`` if one is not kept as an attribute.
        """
        config = {}
        for name in constructor_arguments(type(self)):
            if hasattr(self, name):
                value = plain(getattr(self, name))
                if name not in self.left_out or value != self.left_out[name]:
                    config[name] = value
            elif type(self).get_config is Configured.get_config:
                raise NotImplementedError(
                    f"{type(self).__name__}.get_config: the argument {name!r} of __init__ "
                    f"is not kept; set self.{name}, or write a get_config of your own"
                )
        return config

    @classmethod
    def from_config(cls, config):
        """An object like the one that gave the config."""
        return cls(**config)

    def __repr__(self):
        arguments = (f"{key}={value!r}" for key, value in self.get_config().items())
        return f"{type(self).__name__}({', '.join(arguments)})"


def constructor_arguments(cls) -> list:
    """Names of all arguments of ``cls(...)``, those that ``**kwargs`` hands on first."""
    names = []
    for base in cls.__mro__:
        code = getattr(vars(base).get("__init__"), "__code__", None)
        if code is None:
            continue
        own = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
        names = [name for name in own if name not in names] + names
        if not code.co_flags & 0x08:  # CO_VARKEYWORDS
            break
    return names


def plain(value):
    """What a config says of an attribute: JSON's values, and names of functions.

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
    if callable(value):
        return _name_of(value)
    raise TypeError(f"A config cannot hold {type(value).__name__}: {value!r}")


def _name_of(function):
    for name, known in (_SCOPE.get(None) or {}).items():
        if known is function:
            return name
    for (kind, name), known in _OBJECTS.items():
        if known is function and kind != "op":
            return name
    return function.__name__
