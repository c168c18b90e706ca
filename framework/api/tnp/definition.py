"""Define a function of NumPy by the one of `keras.ops` that computes it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tapewright.core.docstrings import summary_of
from tapewright.core.tensor import Tensor

__all__ = ["define"]


def define(
    op: Callable[..., Any],
    prepare: Callable[..., Sequence[Tensor]],
    names: str,
    doc: str | None = None,
    *,
    name: str | None = None,
) -> Callable[..., Any]:
    """``op``, whose first arguments have these names and are those that ``prepare`` returns.

    Args:
        prepare: See `promotion`.
        doc, name: By default taken from ``op``.
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
    function.__doc__ = doc or summary_of(op, firsts)
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function
