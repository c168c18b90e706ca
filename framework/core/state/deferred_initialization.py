"""Blank variables whose values follow; they are initialized only if none does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..dtypes import DType
from ..hardware import devices
from ..interpreters import use_interpreters
from ..variable import Variable
from .replica_context import in_replica_context

_DEFERRED: ContextVar[DeferredInitialization | None] = ContextVar(
    "deferred_initialization", default=None
)


def initialized_variable(
    owner: str,
    name: str,
    shape: tuple[int, ...],
    dtype: DType,
    initializer: Callable[..., Any],
    trainable: bool = True,
) -> Variable:
    """Create a Variable initialized by ``initializer(shape, dtype)``.

    Inside `deferred_initialization` it is blank until a value is assigned. ``owner`` is
    the layer, for errors.
    """

    def initialize():
        with in_replica_context(None):  # all replicas start with the same numbers
            return initializer(shape, dtype=dtype)

    deferred = _DEFERRED.get()
    with use_interpreters(()):  # at once, even while a function is traced
        if deferred is None:
            return Variable(
                initialize(), trainable, name=name, dtype=dtype, shape=shape
            )
        deferred.check(f"'{name}' of {owner}", shape)
        variable = Variable(0, trainable, name=name, dtype=dtype)
        deferred.blank(variable, shape, initialize)
        return variable


class DeferredInitialization:
    """The variables created inside `deferred_initialization`."""

    def __init__(self, check: Callable[[str, tuple[int, ...]], None]):
        self.check = check
        self._blank: list[tuple[Variable, Any, Callable[[], Any]]] = []

    def blank(
        self, variable: Variable, shape: tuple[int, ...], initialize: Callable[[], Any]
    ) -> None:
        """Bind zeros, and remember how to initialize the variable."""
        own = variable._array
        zeros = devices.array_module(type(own)).zeros(shape, own.dtype)
        variable._bind(zeros)
        self._blank.append((variable, zeros, initialize))

    def initialize(self) -> None:
        """Initialize the variables that were not assigned a value."""
        for variable, zeros, initialize in self._blank:
            if variable._array is zeros:
                variable.assign(initialize())
        self._blank.clear()


@contextmanager
def deferred_initialization(
    check: Callable[[str, tuple[int, ...]], None],
) -> Iterator[DeferredInitialization]:
    """Context in which new variables are blank, as their values are about to be read.

    No random numbers are drawn for them. ``check`` is called with the description and
    shape of each variable before its memory is allocated, and may raise.
    """
    deferred = DeferredInitialization(check)
    token = _DEFERRED.set(deferred)
    try:
        yield deferred
    finally:
        _DEFERRED.reset(token)
