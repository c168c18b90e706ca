"""Functions of several ops that are one part of a model, as `keras.ops` has them.

What stands for the inputs of a model has no sizes and no values, which the ops inside
such a function may ask for; so it gets to see the call as a whole.
"""

import functools
from collections.abc import Callable

from .typing import P, R

__all__ = ["composite"]


def composite(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: symbolic tensors among the arguments take the call over.

    They do by ``record_function(function, args, kwargs)``; see `layers.symbolic`.
    """

    @functools.wraps(function)
    def entry(*args, **kwargs):
        for x in args:
            if hasattr(x, "record_function"):
                return x.record_function(function, args, kwargs)
        for x in kwargs.values():
            if hasattr(x, "record_function"):
                return x.record_function(function, args, kwargs)
        return function(*args, **kwargs)

    return entry
