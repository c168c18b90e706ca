"""Run loop nests statement by statement: slow, and nothing but their definition."""

import numpy as np

from tapewright.compiler.loops.statements import (
    Accumulate,
    Compute,
    Load,
    Local,
    Loop,
    Reset,
    Span,
    Store,
)
from tapewright.compiler.program import scalar_functions

_OWN = {name: getattr(scalar_functions, name) for name in ("where",)}
_NEUTRAL = {"add": 0, "multiply": 1, "maximum": -np.inf, "minimum": np.inf}


def run_nest(nest, arrays, order=None):
    """Run a nest on flat arrays of its operands and outputs, by buffer.

    ``order``: of the blocks; by default from the first on.
    """
    for block in order or range(nest.blocks.extent):
        state = _State(nest, arrays)
        state.run(nest.body, {nest.blocks: (block, block)}, block)
    _State(nest, arrays).run(nest.finish, {}, None)


class _State:
    def __init__(self, nest, arrays):
        self.nest, self.arrays = nest, arrays
        self.locals = {a: np.full(a.size, 77, a.dtype) for a in nest.locals}
        self.values = {}

    def run(self, body, indices, block):
        for each in body:
            if type(each) is Loop:
                self.loop(each, indices, block)
            elif type(each) is Load:
                self.values[each.out] = self.place(each.access, indices)[0][self.at]
            elif type(each) is Compute:
                args = [self.value(a) for a in each.args]
                self.values[each.out] = compute(each.function, args, each.out.dtype)
            elif type(each) is Store:
                array = self.place(each.access, indices)[0]
                array[self.at] = self.value(each.value)
            elif type(each) is Reset:
                array = self.place(each.access, indices)[0]
                array[self.at] = _NEUTRAL[each.ufunc]
            elif type(each) is Accumulate:
                array = self.place(each.access, indices)[0]
                ufunc = getattr(np, each.ufunc)
                array[self.at] = ufunc(array[self.at], self.value(each.value))

    def value(self, scalar):
        return self.values[scalar] if scalar.value is None else scalar.value

    def loop(self, loop, indices, block):
        axis, start, stop, step = loop.axis, 0, loop.axis.extent, 1
        if loop.span is Span.STRIPS:
            step = loop.width
        elif loop.span is Span.STRIP:
            start = indices[axis][0] if axis in indices else block * loop.width
            stop = min(start + loop.width, stop)
        indices = dict(indices)
        for i in range(start, stop, step):
            indices[axis] = i, i - start if loop.span is Span.STRIP else i
            self.run(loop.body, indices, block)

    def place(self, access, indices):
        """The array, and in ``at`` the entry of it."""
        local = type(access.array) is Local
        self.at = access.offset
        for axis, stride in access.strides:
            self.at += stride * indices[axis][local]
        assert self.at >= 0, access
        return ((self.locals if local else self.arrays)[access.array],)


def compute(function, args, dtype):
    if function == "cast":
        (out,) = args
    else:
        out = (_OWN.get(function) or getattr(np, function))(*args)
    if type(out) is dtype.type and out.dtype == dtype:
        return out
    return np.asarray(out).astype(dtype)[()]
