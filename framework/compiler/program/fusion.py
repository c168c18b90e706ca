"""Calls of a program joined: what makes a plan faster than its ops one by one.

Each step is a function that changes a `Program` in place. All of them keep every bit of
the result: what would round elsewhere than the ops do is not done.
"""

import numpy as np

from .lowering import Array

__all__ = ["drop_unused", "merge_equal", "uniform_constants"]


# ------------------------------------------------------------------- looking around


def _identity(function):
    """What tells functions apart: ``np.add.reduce`` is a new object at each look."""
    owner = getattr(function, "__self__", None)
    return (
        (id(owner), function.__name__) if isinstance(owner, np.ufunc) else id(function)
    )


def _replace(program, swap, gone=()):
    """Arrays take the place of others (``swap``), and calls disappear."""
    if swap:
        for call in program.calls:
            if any([type(a) is Array and a in swap for a in call.args]):
                call.args = tuple(
                    [swap.get(a, a) if type(a) is Array else a for a in call.args]
                )
        program.outputs = [swap.get(a, a) for a in program.outputs]
    if gone:
        gone = set(map(id, gone))
        program.calls = [call for call in program.calls if id(call) not in gone]


# --------------------------------------------------------------------------- steps


def merge_equal(program):
    """One call in place of several that compute the same of the same."""
    known, swap, gone = {}, {}, []
    for call in program.calls:
        if call.form not in ("ufunc", "out", "view"):
            continue
        args = tuple([swap.get(a, a) if type(a) is Array else a for a in call.args])
        name = [id(a) if type(a) is Array else (type(a), repr(a)) for a in args]
        key = (_identity(call.function), *name, repr(sorted(call.kwargs.items())))
        first = known.get(key)
        if first is None:
            known[key] = call
            continue
        gone.append(call)
        for own, other in zip(call.outputs, first.outputs):
            swap[own] = other
    if gone:
        roots = {a: b.root for a, b in swap.items()}
        for call in program.calls:
            for out in call.outputs:
                out.root = roots.get(out.root, out.root)
        _replace(program, swap, gone)


def drop_unused(program):
    """Calls whose results nobody reads go."""
    needed, kept = {id(a) for a in program.outputs}, []
    for call in reversed(program.calls):
        is_pure = call.form in ("ufunc", "out", "view", "read")
        if is_pure and not any([id(out) in needed for out in call.outputs]):
            continue
        needed.update([id(a) for a in call.arrays()])
        kept.append(call)
    program.calls = kept[::-1]


def uniform_constants(program):
    """A constant that holds one number throughout, as that number, where it broadcasts."""
    for call in program.calls:
        if call.form != "ufunc":
            continue
        shape, args = call.outputs[0].shape, list(call.args)
        for i, a in enumerate(args):
            others = [b.shape for j, b in enumerate(args) if j != i]
            is_uniform = (
                a.origin == "constant" and a.shape and not any(a.payload.strides)
            )
            if is_uniform and a.size and np.broadcast_shapes((), *others) == shape:
                args[i] = program.constant(a.payload[(0,) * a.payload.ndim].reshape(()))
        call.args = tuple(args)
