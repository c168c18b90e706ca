"""The reason why machine code cannot be compiled in this process, if there is one."""

import functools

from .jit import engine


@functools.cache
def availability():
    """Return None if programs can be compiled and run here, else the reason why not."""
    reason = engine.availability()
    if reason is not None:
        return reason
    from .jit import entry, runtime, trampoline  # compiled when they are first asked
    from .products import blas

    try:
        entry.probe(), runtime.symbols(), blas.symbols(), trampoline.library()
    except Exception as error:  # whatever it is: NumPy does without
        return str(error) or type(error).__name__
    return None
