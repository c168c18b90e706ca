"""A traced function as a method: bound to an object, with separate traces."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic

from tapewright.core.typing import P, R


class Always:
    """A strong reference with the interface of a weak one."""

    __slots__ = ("owner",)

    def __init__(self, owner):
        self.owner = owner

    def __call__(self):
        return self.owner


class Method(Generic[P, R]):
    """The `Function` of one owner, bound to it."""

    __slots__ = ("_tw_function", "__self__")

    def __init__(self, function, owner):
        self._tw_function, self.__self__ = function, owner

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._tw_function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tw_function, name)

    @property
    def __signature__(self):
        return self._tw_function.signature.signature

    @property
    def python_function(self) -> Callable[P, R]:
        """The Python method itself, which is not traced."""
        return functools.partial(self._tw_function.python_function, self.__self__)

    def __eq__(self, other):
        if type(other) is not Method:
            return NotImplemented
        return self._tw_function is other._tw_function

    def __hash__(self):
        return hash(self._tw_function)

    def __repr__(self):
        return f"{self._tw_function!r} of {self.__self__!r}"

    def __reduce__(self):
        return getattr, (self.__self__, self._tw_function._name)
