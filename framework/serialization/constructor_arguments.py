"""Arguments of constructors, from their signatures, and the values of a call."""

import functools
from typing import Any

from tapewright.core.messages.suggestions import RENAMED_ARGUMENTS, unknown_arguments


def is_own(thing: object) -> bool:
    """Return whether a class or function is tapewright's own, not a user's."""
    package = __name__.partition(".")[0]
    module = getattr(thing, "__module__", None) or ""  # None: made by exec
    return module.partition(".")[0] == package


def constructor_arguments(cls: type) -> list[str]:
    """Return the names of all arguments of ``cls(...)``; those in ``**kwargs`` come first."""
    names = []
    for init in _constructors(cls):
        names = [name for name in _names(init) if name not in names] + names
    return names


def argument_names(cls: type) -> list[str]:
    """Return the names of all arguments of ``cls(...)``, in the order of the signature."""
    return list(dict.fromkeys([n for init in _constructors(cls) for n in _names(init)]))


def check_argument_names(cls: type, kwargs: dict[str, Any]) -> None:
    """Raise ``TypeError`` for arguments that the constructor of our class does not have.

    Layers and optimizers refuse them themselves, since they take some of Keras 2. Names of
    other libraries are refused here: the argument that is missing in their place would be
    the error otherwise.
    """
    names, has_others = _accepted(cls)
    if kwargs.keys() <= names:
        return
    unknown = {name: value for name, value in kwargs.items() if name not in names}
    if getattr(cls, "_tw_refuses_arguments", False):
        unknown = {n: value for n, value in unknown.items() if n in RENAMED_ARGUMENTS}
    elif has_others:
        return
    if unknown:
        refuse_arguments(cls, unknown)


def refuse_arguments(cls: type, unknown: dict[str, Any]) -> None:
    """Raise ``TypeError``, or what the class raises, for arguments that it does not have."""
    kind = getattr(cls, "_tw_argument_error", TypeError)
    known = [name for name in constructor_arguments(cls) if name != "kwargs"]
    raise kind(unknown_arguments(cls.__name__, unknown, known))


@functools.cache
def _accepted(cls):
    """The names of the arguments of our class, and whether it takes ``**kwargs``."""
    first = next(_constructors(cls), None)
    has_others = first is None or bool(first.__code__.co_flags & 0x08)  # CO_VARKEYWORDS
    return frozenset(constructor_arguments(cls)), has_others


def added_by_get_config(cls: type) -> set[str]:
    """Return the arguments that user classes with a ``get_config`` add to their bases.

    As in Keras, such a class adds them to the config of its bases, which lacks them.
    """
    names = set()
    for base in cls.__mro__:
        if not is_own(base) and {"__init__", "get_config"} <= vars(base).keys():
            names.update(_names(vars(base)["__init__"]))
            names.difference_update(constructor_arguments(base.__mro__[1]))
    return names


def constructor_defaults(cls: type) -> dict[str, Any]:
    """Return the defaults of the arguments of ``cls(...)``, by name."""
    defaults, seen = {}, set()
    for init in _constructors(cls):
        items = _defaults(init).items()
        defaults |= {name: value for name, value in items if name not in seen}
        seen.update(_names(init))
    return defaults


def _constructors(cls):
    """Yield each ``__init__`` that arguments of ``cls(...)`` reach, also by ``**kwargs``."""
    for base in cls.__mro__:
        init = vars(base).get("__init__")
        if not hasattr(init, "__code__"):
            continue
        yield init
        if not init.__code__.co_flags & 0x08:  # CO_VARKEYWORDS
            return


def _positional(init):
    return init.__code__.co_varnames[1 : init.__code__.co_argcount]


def _names(init):
    code = init.__code__
    return code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]


def _defaults(init):
    names, values = _positional(init), init.__defaults__ or ()
    positional = dict(zip(names[len(names) - len(values) :], values))
    return positional | (init.__kwdefaults__ or {})


class PlainArguments:
    """The plain arguments of a call of a user's constructor: numbers, strings, lists.

    ``others`` are the arguments in its ``**kwargs``. ``lost`` is True if its ``*args``
    took arguments that no base class names.
    """

    __slots__ = ("by_name", "others", "lost")

    def __init__(self, cls, args, kwargs):
        self.by_name, self.others, self.lost = {}, {}, False
        init = cls.__init__
        if not hasattr(init, "__code__") or is_own(init):
            return
        positional, names = _positional(init), _names(init)
        arguments = _defaults(init) | dict(zip(positional, args)) | kwargs
        for name, value in arguments.items():
            if _is_plain(value) and name not in ("name", "trainable", "dtype"):
                (self.by_name if name in names else self.others)[name] = value
        if len(args) > len(positional):
            below = [vars(base).get("__init__") for base in cls.__mro__[1:]]
            counts = [len(_positional(x)) for x in below if hasattr(x, "__code__")]
            self.lost = not any([len(args) <= count for count in counts])


def _is_plain(value):
    if isinstance(value, (list, tuple)):
        return all([_is_plain(each) for each in value])
    if isinstance(value, dict):
        return all([isinstance(k, str) and _is_plain(x) for k, x in value.items()])
    return value is None or type(value) in (bool, int, float, str)


NO_ARGUMENTS = PlainArguments(object, (), {})
