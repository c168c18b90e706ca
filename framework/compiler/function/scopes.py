"""Scopes: eager code in a trace, names, an order of effects."""

from __future__ import annotations

from typing import Any

from tapewright.core.interpreters import active_tracer, use_interpreters

from ..tracing.tracer import inside_function

__all__ = [
    "control_dependencies",
    "executing_eagerly",
    "group",
    "init_scope",
    "inside_function",
    "no_op",
    "tuple",
]


def executing_eagerly() -> bool:
    """Return whether ops run at once; False while a function is traced.

    Example:
        >>> tw.executing_eagerly()
        True
    """
    return active_tracer() is None


class init_scope(use_interpreters):  # noqa: N801  (used as a statement)
    """A context whose code runs eagerly, outside of traces and unseen by tapes.

    Values computed inside are constants of the trace around it.

    Example:
        >>> import tapewright as tw
        >>> @tw.function
        ... def f(x):
        ...     with tw.init_scope():
        ...         print(tw.executing_eagerly())
        ...     return x
        >>> f(tw.constant(1.0)).numpy()
        True
        np.float32(1.0)
    """

    __slots__ = ()

    def __init__(self):
        super().__init__(())


class control_dependencies:  # noqa: N801
    """A context whose code runs after ``control_inputs``, as it does without it.

    Assignments, prints and other effects always keep the order of the code, in traces
    too. Functions among the inputs are called.
    """

    def __init__(self, control_inputs: Any):
        self.control_inputs = control_inputs

    def __enter__(self) -> None:
        for each in self.control_inputs or ():
            if callable(each):
                each()

    def __exit__(self, *exc: object) -> None:
        pass


def group(*inputs: Any, name: str | None = None) -> None:
    """Return None; ``inputs`` are done already, in the order of the code."""


def tuple(  # noqa: A001
    tensors: Any, control_inputs: Any = None, name: str | None = None
) -> Any:
    """Return ``tensors``, which are done already, in the order of the code."""
    return tensors


def no_op(name: str | None = None) -> None:
    """Do nothing, and return None."""
