"""Run loop nests statement by statement: slow, and nothing but their definition."""

import numpy as np

import tapewright as tw
from tapewright.compiler.loops.fusion import form_loops
from tapewright.compiler.loops.loop_nest import LoopNest
from tapewright.compiler.loops.statements import (
    Accumulate,
    Compute,
    Load,
    Local,
    Loop,
    Reset,
    Select,
    Span,
    Store,
)
from tapewright.compiler.pipeline import optimize
from tapewright.compiler.program.instructions import scalar_functions
from tapewright.compiler.program.instructions.array_instructions import View
from tapewright.compiler.program.lowering.lowering import lower
from tapewright.compiler.program.passes.pass_manager import run_passes
from tapewright.compiler.program.verifier import verify_program
from tapewright.compiler.targets.target import SIMPLIFICATION

_OWN = {name: getattr(scalar_functions, name) for name in ("where",)}
_NEUTRAL = {"add": 0, "multiply": 1, "maximum": -np.inf, "minimum": np.inf}


def program_of(function, *arrays):
    """The program of a function of tensors, its maps and reductions as loop nests."""
    tensors = [tw.constant(a) for a in arrays]
    graph = tw.function(function).get_concrete_function(*tensors).graph
    program = lower(optimize(graph), in_loops=True)
    run_passes(program, SIMPLIFICATION)
    form_loops(program, lambda each: each.outputs[0].dtype.kind in "fbiu")
    verify_program(program, "forming loops")
    return program


def run(program, arrays, backwards=False, rewrite=None):
    """The outputs of a program, its nests run by their definition, the rest by NumPy.

    ``rewrite`` returns other statements for the body of a nest.
    """
    held = {b: np.ascontiguousarray(a) for b, a in zip(program.inputs, arrays)}

    def array(buffer):
        if buffer.is_constant and not buffer.is_view:
            return buffer.source
        if buffer not in held:
            held[buffer] = buffer.instruction.apply(array(buffer.instruction.viewed))
        return held[buffer]

    for each in program.instructions:
        if type(each) is View:
            continue
        if type(each) is LoopNest:
            for out in (*each.outputs, *each.scratch):
                held[out] = np.full(out.shape, 99).astype(out.dtype)
            buffers = (*each.operands, *each.outputs)
            flat = {b: np.ascontiguousarray(array(b)).reshape(-1) for b in buffers}
            order = range(each.blocks.extent)
            body = rewrite and rewrite(each.body)
            run_nest(each, flat, order[::-1] if backwards else order, body)
            for out in each.outputs:
                held[out] = flat[out].reshape(out.shape)
        else:
            args = [array(a) for a in each.operands]
            result = each.function(*args, **each.keywords)
            results = result if isinstance(result, tuple) else (result,)
            held.update(zip(each.outputs, map(np.asarray, results)))
    return [np.array(array(out)) for out in program.outputs]


def nests(program):
    return [each for each in program.instructions if type(each) is LoopNest]


def run_nest(nest, arrays, order=None, body=None):
    """Run a nest on flat arrays of its operands and outputs, by buffer.

    ``order``: of the blocks; by default from the first on. ``body``: statements in place
    of its own.
    """
    for block in order or range(nest.blocks.extent):
        state = _State(nest, arrays)
        indices = {nest.blocks: (block, block)}
        state.run(nest.body if body is None else body, indices, block)
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
                self.values[each.out] = self.load(each.access, indices)
            elif type(each) is Select:
                first, second = map(self.value, each.args)
                inside = is_within(each.bounds, indices)
                self.values[each.out] = first if inside else second
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

    def load(self, access, indices):
        if not is_within(access.bounds, indices):
            return access.array.dtype.type(0)
        return self.place(access, indices)[0][self.at]

    def value(self, scalar):
        return self.values[scalar] if scalar.value is None else scalar.value

    def loop(self, loop, indices, block):
        axis, start, stop, step = loop.axis, 0, loop.axis.extent, 1
        if loop.span is Span.STRIPS:
            step = loop.width
        elif loop.span is Span.STRIP:
            start = indices[axis][0] if axis in indices else block * loop.width
            stop = min(start + loop.width, stop)
        indices, part = dict(indices), loop.part or range(loop.axis.extent)
        for i in range(max(start, part.start), min(stop, part.stop), step):
            indices[axis] = i, i - start if loop.span is Span.STRIP else i
            self.run(loop.body, indices, block)

    def place(self, access, indices):
        """The array, and in ``at`` the entry of it."""
        local = type(access.array) is Local
        self.at, bounds = access.offset, dict(access.bounds)
        for axis, stride in access.strides:
            index = indices[axis][local]
            self.at += stride * (bounds[axis].index(index) if axis in bounds else index)
        assert self.at >= 0, access
        return ((self.locals if local else self.arrays)[access.array],)


def is_within(bounds, indices):
    return all([indices[axis][0] in bound for axis, bound in bounds])


def compute(function, args, dtype):
    if function == "cast":
        (out,) = args
    else:
        out = (_OWN.get(function) or getattr(np, function))(*args)
    if type(out) is dtype.type and out.dtype == dtype:
        return out
    return np.asarray(out).astype(dtype)[()]
