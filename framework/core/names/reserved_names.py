"""Reserved names of a class, as opposed to the attributes of users.

Users subclass layers, models, optimizers, losses and so on, and add attributes and
methods. They know the names that Keras documents. All other names that such a class
needs start with `PREFIX`, so they cannot clash with a user's name; a few public names
that Keras lacks are `Replaceable`, and no code here reads them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar, overload

Value = TypeVar("Value")

PREFIX = "_tw_"
_CHECKED = object()
_OWN_MODULES = set()  # those that have assigned: a look-up is fast
_PACKAGE = __name__.partition(".")[0]
# Methods that hand on the assignments of others, or copy all attributes of an object.
_PASSING_ON = {"__setattr__", "__setstate__", "__copy__", "__deepcopy__"}


class Reserving:
    """Base of classes that users extend: names that start with `PREFIX` are reserved.

    Raises:
        AttributeError: If code outside of the package assigns to such a name.
        TypeError: If a class outside of the package defines one.
    """

    _tw_checked = None  # also in a copy of a class, which has our names by then

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if _is_own(cls.__module__) or vars(cls).get("_tw_checked") is _CHECKED:
            return
        for name in vars(cls):
            if name.startswith(PREFIX):
                raise TypeError(_refusal(cls, name))
        cls._tw_checked = _CHECKED

    def __setattr__(self, name: str, value: Any) -> None:
        if name[:4] == PREFIX:
            check_assignment(type(self), name)
        super().__setattr__(name, value)


class Guarding:
    """Base of classes that users rarely extend: subclasses may not reuse their names.

    These are the private names of our classes, and the names in ``_tw_guarded``. Only
    user classes check assignments, so that our classes have no overhead.

    Raises:
        AttributeError: If code outside of the package assigns to such a name.
        TypeError: If a class outside of the package defines one.
    """

    __slots__ = ()
    _tw_guarded: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if _is_own(cls.__module__):
            return
        own = [vars(base) for base in cls.__mro__ if _is_own(base.__module__)]
        names = {n for each in own for n in [*each, *each.get("__annotations__", ())]}
        guarded = {n for n in names if n[:1] == "_" and n[:2] != "__"}
        guarded.update(*[each.get("_tw_guarded", ()) for each in own])
        for name in vars(cls):
            if name in guarded:
                raise TypeError(_taken(cls, name))
        assign = cls.__setattr__

        def __setattr__(self: Any, name: str, value: Any) -> None:
            if name in guarded:
                _check(cls, name, sys._getframe(1), {"__setattr__"}, _taken)
            assign(self, name, value)

        type.__setattr__(cls, "__setattr__", __setattr__)  # no declaration for checkers


def check_assignment(cls: type, name: str) -> None:
    """Raise an error if user code assigns to a reserved name: the caller's caller."""
    _check(cls, name, sys._getframe(2), _PASSING_ON, _refusal)


def _check(cls, name, frame, passing_on, refusal):
    """Raise an error if user code assigns; skip frames that pass an assignment on."""
    while frame.f_code.co_name in passing_on and frame.f_back is not None:
        frame = frame.f_back
    module = frame.f_globals.get("__name__")
    if module not in _OWN_MODULES:
        if not _is_own(module):
            raise AttributeError(refusal(cls, name))
        _OWN_MODULES.add(module)


def _refusal(cls, name):
    return f"{cls.__name__}: names that start with {PREFIX!r} are reserved, rename {name!r}"


def _taken(cls, name):
    base = next(b.__name__ for b in cls.__mro__ if _is_own(b.__module__))
    return f"{cls.__name__}: {name!r} is reserved by {base}, rename it"


def _is_own(module):
    return str(module).partition(".")[0] == _PACKAGE


def name_in_files(name: str) -> str:
    """Return the name of an attribute in files, which lacks the prefix.

    Example:
        >>> from tapewright.core.names.reserved_names import name_in_files
        >>> name_in_files("_tw_weights"), name_in_files("_weights")
        ('_weights', '_weights')
    """
    return f"_{name[len(PREFIX) :]}" if name.startswith(PREFIX) else name


def class_attribute(item: object, name: str, cls: type | None = None) -> Any:
    """Look up an attribute in a class, skipping the instance, and bind it to ``item``.

    Args:
        item: Instance to bind to.
        name: Name of the attribute.
        cls: Class where the search begins, by default the class of ``item``.

    Raises:
        AttributeError: If neither ``cls`` nor its bases have the attribute.
    """
    for base in (cls or type(item)).__mro__:
        if name in vars(base):
            value = vars(base)[name]
            bind = getattr(type(value), "__get__", None)
            return value if bind is None else bind(value, item, type(item))
    raise AttributeError(f"{type(item).__name__} has no attribute {name!r}")


class Replaceable(Generic[Value]):
    """Decorator: a property that assignment to the same name replaces.

    Example:
        >>> from tapewright.core.names.reserved_names import Replaceable
        >>> class Point:
        ...     @Replaceable
        ...     def norm(self):
        ...         return 1.0
        >>> point = Point()
        >>> point.norm
        1.0
        >>> point.norm = "mine"
        >>> point.norm
        'mine'
    """

    def __init__(self, get: Callable[[Any], Value]):
        self.get = get
        self.__doc__ = get.__doc__

    @overload
    def __get__(self, owner: None, cls: type) -> Replaceable[Value]: ...

    @overload
    def __get__(self, owner: object, cls: type | None = None) -> Value: ...

    def __get__(self, owner: Any, cls: type | None = None) -> Any:
        return self if owner is None else self.get(owner)
