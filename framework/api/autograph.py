"""`tw.autograph`: Python control flow in traced functions, as ``tf.autograph``.

In a traced function, and in the functions and methods that it calls, `if`, `while`,
`for`, ``and``, ``or``, ``not``, conditional expressions, chained comparisons and
`assert` work on tensors: they become `cond` and `while_loop`. Control flow that depends
on Python values stays Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapewright.compiler.autograph.conversion import (
    convert,
    converted_source,
    do_not_convert,
)
from tapewright.compiler.autograph.loops import set_loop_options
from tapewright.core.typing import P, R

__all__ = [
    "do_not_convert",
    "experimental",
    "set_loop_options",
    "set_verbosity",
    "to_code",
    "to_graph",
    "trace",
]


class experimental:  # noqa: N801  (a namespace)
    """Names of ``tf.autograph.experimental``."""

    do_not_convert = staticmethod(do_not_convert)
    set_loop_options = staticmethod(set_loop_options)


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Do nothing: the conversion of functions writes no messages.

    Args:
        level: Ignored.
        alsologtostdout: Ignored.
    """


def to_graph(
    entity: Callable[P, R],
    recursive: bool = True,
    experimental_optional_features: Any = None,
) -> Callable[P, R]:
    """Return a function like ``entity`` with its Python control flow converted.

    `tw.function` converts functions automatically. Use `to_graph` for functions that
    are called outside of traced functions, such as callbacks of another library.

    Args:
        entity: Function to convert.
        recursive: Has no effect.
        experimental_optional_features: Has no effect.

    Example:
        >>> absolute = tw.autograph.to_graph(lambda x: x if x > 0 else -x)
        >>> absolute(-2.0)
        2.0
    """
    return convert(entity)


def to_code(
    entity: Callable[..., Any],
    recursive: bool = True,
    experimental_optional_features: Any = None,
) -> str:
    """Return the code to which a function is converted, as text.

    Args:
        entity: Function to convert.
        recursive: Has no effect.
        experimental_optional_features: Has no effect.

    Raises:
        ValueError: If the function cannot be converted; the message has the reason.

    Example:
        >>> print(tw.autograph.to_code(lambda x: x if x > 0 else -x))
        def lambda(x):
            return ag__.if_exp(x > 0, lambda: x, lambda: -x)
    """
    return converted_source(getattr(entity, "python_function", entity))


def trace(*args: Any) -> None:
    """Print the arguments while a function is traced, once for each trace.

    Args:
        *args: Values to print.

    Example:
        >>> @tw.function
        ... def double(x):
        ...     tw.autograph.trace("traced", x.shape)
        ...     return x + x
        >>> double(tw.constant(1.0)).numpy(), double(tw.constant(2.0)).numpy()
        traced ()
        (np.float32(2.0), np.float32(4.0))
    """
    print(*args)
