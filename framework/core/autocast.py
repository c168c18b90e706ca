"""`autocast`: the dtype in which floating variables are read, while a layer computes.

A layer with a mixed policy keeps its weights in one dtype and computes in another. While
its `call` runs, each read of a variable gives a cast of the value, which is an op like any
other: tapes record it, so gradients arrive in the dtype of the variable, and traced
functions keep it.
"""

from contextvars import ContextVar

__all__ = ["autocast", "autocast_dtype"]

_DTYPE = ContextVar("autocast", default=None)
autocast_dtype = _DTYPE.get  # the `DType` of this thread (context), or None


class autocast:  # noqa: N801  (used as a statement)
    """``with autocast(dtype):`` variables are read in this dtype; None: in their own."""

    __slots__ = ("dtype", "token")

    def __init__(self, dtype):
        self.dtype = dtype

    def __enter__(self):
        self.token = _DTYPE.set(self.dtype)

    def __exit__(self, *exc):
        _DTYPE.reset(self.token)
