"""`Configured`: classes whose config consists of their constructor arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeVar

from tapewright.core.names.reserved_names import Reserving

from . import registry
from .constructor_arguments import (
    NO_ARGUMENTS,
    PlainArguments,
    added_by_get_config,
    check_argument_names,
    constructor_arguments,
    is_own,
)
from .constructor_call import constructor_call
from .object_config import plain

Method = TypeVar("Method", bound=Callable[..., Any])


def from_constructor(get_config: Method) -> Method:
    """Decorator: mark a ``get_config`` that has exactly the constructor's arguments."""
    get_config.from_constructor = True  # type: ignore
    return get_config


class Configured(Reserving):
    """Base of classes that are registered by name and can be rebuilt from a config.

    The config has the constructor arguments, each kept as the attribute with its name.
    A class that sets ``_tw_kind`` is the base of a family, whose classes are registered
    when they are defined.
    """

    _tw_kind: str = ""
    _tw_omit_defaults: dict[str, Any] = {}  # those that the config omits at this value
    _tw_config_exclude: tuple[str, ...] = ()  # those that a subclass adds itself
    _tw_prefer_init_args: bool = False  # rather than the attributes of their names
    _tw_plain_arguments = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_tw_kind" not in vars(cls) and not cls.__name__.startswith("_"):
            registry.register(cls._tw_kind, cls.__name__, cls)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        is_plain = cls.__init__ is object.__init__ and cls.__new__ is Configured.__new__
        if is_plain and (args or kwargs):
            # `object` raises for such arguments only where no class has a `__new__`
            raise TypeError(f"{cls.__name__}() accepts no arguments")
        thing = super().__new__(cls)
        if not is_own(cls):
            vars(thing)["_tw_plain_arguments"] = PlainArguments(cls, args, kwargs)
        elif kwargs:
            check_argument_names(cls, kwargs)
        return thing

    @from_constructor
    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments as plain values: numbers, strings, containers.

        Raises:
            NotImplementedError: If an argument is neither plain nor kept as an
                attribute.
        """
        cls, call = type(self), self._tw_plain_arguments or NO_ARGUMENTS
        arguments = constructor_arguments(cls)
        names = [name for name in arguments if name not in self._tw_config_exclude]
        kept = {name: getattr(self, name) for name in names if hasattr(self, name)}
        values = call.by_name | kept
        others = {}  # the **kwargs that no base class has a name for
        if hasattr(cls.get_config, "from_constructor"):
            values = kept | call.by_name if self._tw_prefer_init_args else values
            others = {k: x for k, x in call.others.items() if k not in arguments}
            self._tw_check_complete(names, values, call.lost)
        else:
            added = added_by_get_config(cls)
            names = [name for name in names if name not in added]
        config = {
            n: self._tw_plain_argument(n, values[n]) for n in names if n in values
        }
        omitted = self._tw_omit_defaults.items()
        config = {k: x for k, x in config.items() if (k, x) not in omitted}
        return config | plain(others)

    def _tw_plain_argument(self, name, value):
        try:
            return plain(value)
        except (TypeError, ValueError) as error:
            title = getattr(self, "_tw_title", type(self).__name__)
            error.add_note(f"in the argument {name!r} of {title}")
            raise

    def _tw_check_complete(self, names, values, lost):
        title = f"{type(self).__name__}.get_config"
        if lost:
            raise NotImplementedError(
                f"{title}: arguments that __init__ takes as *args have no names; define "
                "get_config and from_config"
            )
        for name in names:
            if name not in values:
                raise NotImplementedError(
                    f"{title}: the argument {name!r} of __init__ is not kept; set "
                    f"self.{name}, or define get_config"
                )

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Create an object from a config.

        Args:
            config: Dict of constructor arguments, as from `get_config`.
        """
        return cls(**config)

    def __repr__(self) -> str:
        return constructor_call(self, self._tw_arguments_elsewhere())

    def _tw_arguments_elsewhere(self):
        """Return the known arguments of the constructor that are not attributes."""
        call = self._tw_plain_arguments or NO_ARGUMENTS
        return {k: x for k, x in call.by_name.items() if not hasattr(self, k)}
