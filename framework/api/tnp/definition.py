"""Define a NumPy function by the function of `keras.ops` that computes it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tapewright.core.messages.docstrings import arguments_of, compose, summary_of
from tapewright.core.tensor import Tensor


def define(
    op: Callable[..., Any],
    prepare: Callable[..., Sequence[Tensor]],
    names: str,
    summary: str | None = None,
    details: str = "",
    *,
    name: str | None = None,
    args: Mapping[str, str] | None = None,
) -> Callable[..., Any]:
    """Define a function that calls ``op`` on prepared first arguments.

    Args:
        op: Function of `keras.ops`, or another one.
        prepare: Function that converts the first arguments; see `promotion`.
        names: Names of the first arguments, separated by spaces.
        summary: First paragraph of the docstring; None takes it from ``op``.
        details: Paragraphs and sections of the docstring that follow.
        name: Name of the function; None takes it from ``op``.
        args: Sentences about arguments that override those in the docstring of ``op``.
    """
    firsts = names.split()
    parameters = list(inspect.signature(op).parameters.values())
    renames = dict(zip([p.name for p in parameters], firsts))
    parameters = [
        p.replace(name=renames.get(p.name, p.name), annotation=p.annotation)
        for p in parameters
    ]
    signature = inspect.Signature(parameters)
    count = len(firsts)

    def function(*args, **kwargs):
        if len(args) < count:
            missing = firsts[len(args) :]
            if not kwargs.keys() >= set(missing):
                signature.bind(*args, **kwargs)  # raises, and names what is missing
            args += tuple([kwargs.pop(n) for n in missing])
        return op(*prepare(*args[:count]), *args[count:], **kwargs)

    function.__name__ = function.__qualname__ = name or op.__name__
    function.__module__ = sys._getframe(1).f_globals["__name__"]
    function.__signature__ = signature  # type: ignore[attr-defined]
    sentences = {
        name: text.replace("`floatx`", "float64")
        for name, text in arguments_of(op, firsts).items()
    }
    function.__doc__ = compose(
        function,
        summary or summary_of(op, firsts),
        details,
        {**sentences, **(args or {})},
    )
    return function
