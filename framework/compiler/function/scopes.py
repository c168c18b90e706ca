"""Scopes: eager code in a trace, names, the order of effects."""

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
    """Context manager whose code runs eagerly, outside of traces and unseen by tapes.

    Values computed inside are constants of the trace around it.

    Example:
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
    """Context manager whose code runs after ``control_inputs``, as it always does.

    Assignments, prints and other effects keep the order of the code anyway, in traces
    too.

    Args:
        control_inputs: List of tensors, operations or functions; functions are called.
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
    """Return None; ``inputs`` have already been computed, in the order of the code.

    Args:
        *inputs: Ignored.
    """


def tuple(  # noqa: A001
    tensors: Any, control_inputs: Any = None, name: str | None = None
) -> Any:
    """Return ``tensors``, which have already been computed, in the order of the code.

    Args:
        tensors: Any value.
        control_inputs: Ignored.
    """
    return tensors


def no_op(name: str | None = None) -> None:
    """Do nothing, and return None."""
