"""`autocast`: the dtype to which reads of floating variables are cast in a layer.

A layer with a mixed dtype policy keeps its weights in one dtype and computes in
another. Inside its `call`, each read of a variable casts the value. The cast is an op
like any other: tapes record it, so gradients arrive in the dtype of the variable, and
traced functions contain it.
"""

from contextvars import ContextVar

_DTYPE = ContextVar("autocast", default=None)
autocast_dtype = _DTYPE.get  # the `DType` of this thread (context), or None


class autocast:  # noqa: N801  (used as a statement)
    """Context that casts reads of variables to a dtype; None turns casts off."""

    __slots__ = ("dtype", "token")

    def __init__(self, dtype):
        self.dtype = dtype

    def __enter__(self):
        self.token = _DTYPE.set(self.dtype)

    def __exit__(self, *exc):
        _DTYPE.reset(self.token)
