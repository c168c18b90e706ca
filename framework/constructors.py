"""What constructors take, read from their code, and what they were given."""

__all__ = ["NO_ARGUMENTS", "PlainArguments", "constructor_arguments", "is_own"]


def is_own(thing):
    """Whether a class or function is one of tapewright's, not of a user's."""
    package = __name__.partition(".")[0]
    return getattr(thing, "__module__", "").partition(".")[0] == package


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


class PlainArguments:
    """The plain arguments of a constructor of the user's: numbers, strings, lists.

    ``others`` are those that its ``**kwargs`` took; ``lost`` is whether ``*args`` took
    some that no class below knows by a name.
    """

    __slots__ = ("by_name", "others", "lost")

    def __init__(self, cls, args, kwargs):
        self.by_name, self.others, self.lost = {}, {}, False
        code = getattr(cls.__init__, "__code__", None)
        if code is None or is_own(cls.__init__):
            return
        names = code.co_varnames[1 : code.co_argcount]
        defaults = cls.__init__.__defaults__ or ()
        found = dict(zip(names[len(names) - len(defaults) :], defaults))
        found |= (cls.__init__.__kwdefaults__ or {}) | dict(zip(names, args)) | kwargs
        own = set(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])
        for name, value in found.items():
            if _is_plain(value) and name not in ("name", "trainable", "dtype"):
                (self.by_name if name in own else self.others)[name] = value
        if len(args) > len(names):
            codes = [vars(base)["__init__"].__code__ for base in cls.__mro__[1:]
                     if hasattr(vars(base).get("__init__"), "__code__")]  # fmt: skip
            self.lost = not any([len(args) < each.co_argcount for each in codes])


def _is_plain(value):
    if isinstance(value, (list, tuple)):
        return all([_is_plain(each) for each in value])
    if isinstance(value, dict):
        return all([isinstance(k, str) and _is_plain(x) for k, x in value.items()])
    return value is None or type(value) in (bool, int, float, str)


NO_ARGUMENTS = PlainArguments(object, (), {})
