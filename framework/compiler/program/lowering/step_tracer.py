"""Trace kernels that loop over the steps of sequences: one step becomes a program.

The kernel is run on sequences of one step, time first, whose arrays have no values: it
writes into parts of arrays as it does in NumPy, and `Part` tracks the value that each
part holds. Its instructions before the loop (`recurrence.steps`) are appended to the
outer program, its instructions in the loop to a separate program. The regions of that
program are rows of sequences: row ``t`` or ``t + 1`` of an array, in step ``t``.
Examples of a batch are independent, so the program may handle a part of the batch.
"""

import numpy as np

from ..instructions.array_instructions import Contract, Copy, Map, Reduce, View
from ..program import Buffer, Kind, Program
from .array_functions import NotTraceable, copy_into
from .array_tracer import ArrayTracer, LoopBuilder


class Region:
    """Row ``t + ahead`` of a sequence in step ``t``, from column ``start`` on."""

    __slots__ = ("memory", "ahead", "start")

    def __init__(self, memory, ahead, start=0):
        self.memory, self.ahead, self.start = memory, ahead, start

    def __repr__(self):
        return f"<row t + {self.ahead} of {self.memory}, from {self.start}>"


class StepMemory:
    """An array that the kernel receives or creates; a sequence if it is ``timed``.

    ``initial`` is its initial value: a buffer (an operand), another `StepMemory` to copy,
    0, or None; ``rows`` has, for a sequence, the buffers that are its rows before the
    loop. ``shape`` has the rows of the part of the batch, buffers have the rows of the
    whole. ``parts`` has for each row ``[(start, stop, value)]``, along the last axis.
    """

    def __init__(self, trace, shape, dtype, initial=None):
        self.trace, self.shape, self.dtype = trace, tuple(shape), np.dtype(dtype)
        self.initial, self.rows, self.parts = initial, {}, {}
        self.timed, self.is_state = len(self.shape) == 3, False
        trace.memories.append(self)

    def row(self, ahead):
        """Return the parts of a row."""
        if ahead not in self.parts:
            if not self.timed:
                raise NotTraceable  # read before it is written
            value = self.trace.input(Region(self, ahead), self.shape[1:], self.dtype)
            self.parts[ahead] = [(0, self.shape[-1], value)]
        return self.parts[ahead]

    def read(self, ahead, start, stop):
        parts = []
        for a, b, value in self.row(ahead):
            low, high = max(a, start), min(b, stop)
            if low < high:
                value = self.trace.current(value)
                whole = (low, high) == (a, b)
                parts.append(value if whole else value[..., low - a : high - a])
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts, axis=-1)

    def write(self, ahead, start, stop, value):
        size = self.shape[-1]
        rest = []
        if (start, stop) != (0, size):
            for a, b in ((0, start), (stop, size)):
                if a < b:
                    rest += self.split(ahead, a, b)
        self.parts[ahead] = sorted([*rest, (start, stop, value)], key=lambda p: p[0])

    def split(self, ahead, start, stop):
        """Yield the parts between two columns."""
        for a, b, _ in self.row(ahead):
            low, high = max(a, start), min(b, stop)
            if low < high:
                yield low, high, self.read(ahead, low, high)


class Part:
    """Columns of a memory, or of row ``t + ahead`` of a sequence."""

    __slots__ = ("memory", "ahead", "start", "stop")

    def __init__(self, memory, ahead=None, start=0, stop=None):
        self.memory, self.ahead, self.start = memory, ahead, start
        self.stop = memory.shape[-1] if stop is None else stop

    @property
    def shape(self):
        timed = self.memory.timed and self.ahead is not None
        shape = self.memory.shape[1:] if timed else self.memory.shape
        return (*shape[:-1], self.stop - self.start)

    dtype = property(lambda self: self.memory.dtype)
    ndim = property(lambda self: len(self.shape))
    builder = property(lambda self: self.memory.trace.builder)
    buffer = property(lambda self: self.value.buffer)
    steps = property(lambda self: _Steps(self.memory.trace))
    T = property(lambda self: self.value.T)

    @property
    def value(self):
        if self.memory.timed and self.ahead is None:
            raise NotTraceable
        return self.memory.read(self.ahead, self.start, self.stop)

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, index):
        index = index if type(index) is tuple else (index,)
        if self.memory.timed and self.ahead is None:
            if type(index[0]) is not int:
                raise NotTraceable
            row = Part(self.memory, index[0])
            return row[index[1:]] if index[1:] else row
        *lead, last = index
        whole = [i is Ellipsis or i == slice(None) for i in lead]
        if type(last) is not slice or last.step not in (None, 1) or not all(whole):
            raise NotTraceable
        if len(lead) != 1 and not (self.ndim == 1 and not lead):
            raise NotTraceable
        start, stop, _ = last.indices(self.stop - self.start)
        return Part(self.memory, self.ahead, self.start + start, self.start + stop)

    def __setitem__(self, index, value):
        self[index].set(value)

    def set(self, value):
        """Write a value, which is broadcast."""
        trace = self.memory.trace
        if trace.inner is None:
            self.set_before_loop(value)
            return
        if type(value) is Part:
            same = [getattr(value, n) is getattr(self, n) for n in ("memory", "ahead")]
            if all(same) and (value.start, value.stop) == (self.start, self.stop):
                return
            value = value.value
        if not isinstance(value, ArrayTracer):
            value = np.asarray(value, self.dtype)
        if value.dtype != self.dtype:
            raise NotTraceable
        if value.shape != self.shape:
            value = ArrayTracer(trace.builder.buffer(value), trace.builder)
            value = np.broadcast_to(value, self.shape)
        self.memory.write(self.ahead, self.start, self.stop, value)

    def set_before_loop(self, value):
        """Record that a row is a state that the kernel receives."""
        is_state = type(value) is Part and value.memory.is_state
        if not self.memory.timed or not is_state or self.shape != value.shape:
            raise NotTraceable
        self.memory.rows[self.ahead] = value.memory.initial

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return self.builder.ufunc(ufunc, method, inputs, keywords)

    def __array_function__(self, function, types, args, keywords):
        if function is np.copyto:
            out, value = args
            out.set(np.where(keywords["where"], value, out.value))
            return None
        handler = self.builder.functions.get(function)
        if handler is None:
            raise NotTraceable
        return handler(self.builder, *args, **keywords)


def _operator(name):
    method = getattr(ArrayTracer, name)

    def operator(self, *others):
        others = [o.value if type(o) is Part else o for o in others]
        return method(self.value, *others)

    return operator


def _in_place(name):
    method = getattr(ArrayTracer, name)

    def operator(self, other):
        self.set(method(self.value, other.value if type(other) is Part else other))
        return self

    return operator


for _name in ("add", "sub", "mul", "truediv", "matmul", "and", "or"):
    setattr(Part, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(Part, f"__r{_name}__", _operator(f"__r{_name}__"))
    setattr(Part, f"__i{_name}__", _in_place(f"__{_name}__"))
for _name in ("neg", "invert", "lt", "le", "gt", "ge"):
    setattr(Part, f"__{_name}__", _operator(f"__{_name}__"))


class _Mask:
    """``mask[:, :, None]`` of a mask ``[time, batch]``, and its inverse."""

    def __init__(self, trace, inverted=False):
        self.trace, self.inverted = trace, inverted

    ndim = 2

    def __getitem__(self, index):
        if type(index) is tuple:
            return self
        row = self.trace.mask_row(index)[:, None]
        return ~row if self.inverted else row

    def __invert__(self):
        return _Mask(self.trace, not self.inverted)


class _Steps:
    """The steps of the loop: the trace runs one, but knows their order."""

    def __init__(self, trace):
        self.trace = trace

    def __iter__(self):
        return self.run(False)

    def __reversed__(self):
        return self.run(True)

    def run(self, backwards):
        self.trace.begin(backwards)
        yield 0


class _StepBuilder(LoopBuilder):
    """Accepts parts as operands and as ``out``, and values from before the loop."""

    def __init__(self, trace, program, node):
        super().__init__(program, node)
        self.trace = trace

    def buffer(self, x, dtype=None):
        if type(x) is Part:
            x = x.value
        if type(x) is ArrayTracer:
            return self.trace.current(x).buffer
        return super().buffer(x, dtype)

    def ufunc(self, ufunc, method, inputs, keywords):
        keywords = dict(keywords)
        (out,) = keywords.pop("out", None) or (None,)
        inputs = [x.value if type(x) is Part else x for x in inputs]
        made = super().ufunc(ufunc, method, inputs, keywords)
        if type(out) is Part:
            out.set(made)
            return out
        return self.into(out, made)


class _StepModule:
    """NumPy's functions for a kernel whose steps are traced."""

    def __init__(self, trace):
        self.trace = trace

    def __getattr__(self, name):
        if name.startswith("__") or not hasattr(np, name):
            raise NotTraceable
        return getattr(np, name)

    def _new(self, shape, dtype, initial=None):
        return Part(StepMemory(self.trace, shape, dtype, initial))

    def empty(self, shape, dtype):
        return self._new(shape, dtype)

    def empty_like(self, x):
        return self._new(x.shape, x.dtype)

    def zeros(self, shape, dtype):
        if np.ndim(shape) == 0 or len(shape) == 1:
            return np.zeros(shape, dtype)
        return self._new(shape, dtype, 0)

    def array(self, x, order="C"):
        if not x.memory.timed or x.ahead is not None:
            raise NotTraceable
        return self._new(x.shape, x.dtype, x.memory)

    def ascontiguousarray(self, x):
        return x  # products take matrices as they lie


class StepTrace:
    """The program of one step of a kernel: its inputs and outputs are regions.

    ``inputs`` maps buffers of the program to a `Region`, or to the outer buffer that
    they represent; ``outputs`` maps buffers to regions. ``results`` are the memories
    that the kernel returns, ``steps`` the number of steps, ``examples`` the number of
    rows of a step.
    """

    def __init__(self, program, node, steps, examples):
        self.outer = LoopBuilder(program, node)
        self.program = Program(program.graph, limits=program.limits)
        self.node, self.steps = node, steps
        self.inner, self.backwards, self.examples = None, False, examples
        self.inputs, self.outputs, self.known = {}, {}, {}
        self.memories, self.mask, self.results = [], None, ()

    @property
    def builder(self):
        return self.inner or self.outer

    def begin(self, backwards):
        if self.inner is not None:
            raise NotTraceable  # a second loop
        self.inner = _StepBuilder(self, self.program, self.node)
        self.backwards = backwards

    def input(self, stands_for, shape, dtype):
        """Add an input to the program of the step."""
        if self.inner is None:
            raise NotTraceable
        buffer = Buffer(tuple(shape), dtype, Kind.INPUT)
        self.program.inputs.append(buffer)
        self.inputs[buffer] = stands_for
        return ArrayTracer(buffer, self.inner)

    def current(self, value):
        """Return a value as a value of the program that is being traced now."""
        if not isinstance(value, ArrayTracer) or self.inner is None:
            return value
        if value.builder is self.inner:
            return value
        if value.buffer.is_constant and not value.buffer.is_view:
            return ArrayTracer(value.buffer, self.inner)
        view = value.buffer.instruction
        if (
            type(view) is View
            and len(value.shape) == 2
            and value.T.buffer is view.viewed
        ):
            return self.current(ArrayTracer(view.viewed, self.outer)).T
        if value.buffer not in self.known:
            made = self.input(value.buffer, value.shape, value.dtype)
            self.known[value.buffer] = made
        return self.known[value.buffer]

    def mask_row(self, index):
        """Return row ``t + index`` of the mask."""
        if index not in self.known:
            shape = self.mask.shape[1:]
            made = self.input(Region(self.mask, index), shape, self.mask.dtype)
            self.known[index] = made
        return self.known[index]

    def argument(self, buffer, is_state):
        """Return an operand of the kernel, reduced to one step and some examples."""
        shape = buffer.shape
        if buffer.dtype == bool:
            self.mask = StepMemory(self, (1, self.examples), buffer.dtype, buffer)
            return _Mask(self)
        if len(shape) == 3:
            shape = (shape[0] - self.steps + 1, self.examples, shape[2])
        elif is_state:
            shape = (self.examples, shape[1])
        memory = StepMemory(self, shape, buffer.dtype, buffer)
        memory.is_state = is_state
        if not memory.timed and not is_state:
            value = ArrayTracer(buffer, self.outer)
            memory.write(None, 0, shape[-1], value)
        return Part(memory)

    def finish(self, results):
        """Record what the step writes to the sequences that the kernel returns."""
        self.results = [part.memory for part in results]
        if not all([memory.timed for memory in self.results]):
            raise NotTraceable
        for memory in self.memories:
            for ahead, parts in memory.parts.items():
                for start, _, value in parts if memory.timed else ():
                    region = Region(memory, ahead, start)
                    if self.is_as_before(value, region):
                        continue
                    if memory not in self.results:
                        raise NotTraceable
                    self.outputs[self.written(value, memory)] = region
        self.program.outputs = list(self.outputs)

    def written(self, value, memory):
        """Return the buffer for a region: the value, or a copy, which will be fused."""
        buffer = self.inner.buffer(value)
        if not isinstance(buffer.instruction, (Map, Reduce, Contract)):
            is_free = False
        else:
            is_free = buffer not in self.outputs and buffer.shape == memory.shape[1:]
        if is_free:
            return buffer
        copy = Copy(copy_into, (buffer,), self.node)
        return self.program.append(copy, (buffer.shape, buffer.dtype))[0]

    def is_as_before(self, value, region):
        """Return whether a part still holds its value from before the step."""
        known = self.inputs.get(getattr(value, "buffer", None))
        if type(known) is not Region or known.memory is not region.memory:
            return False
        return (known.ahead, known.start) == (region.ahead, region.start)


def trace_steps(program, instruction, examples):
    """Return the `StepTrace` of an `Opaque` recurrent kernel; None if untraceable.

    Instructions before its loop are appended to the program. ``examples`` is the number
    of examples of the batch in the traced step. Matrices are states, except the kernel,
    which is last.
    """
    node, operands = instruction.node, instruction.operands
    if len(operands[0].shape) != 3:
        return None
    trace = StepTrace(program, node, operands[0].shape[0], examples)
    count = len(program.instructions)
    matrices = [a.dtype != bool and len(a.shape) == 2 for a in operands]
    try:
        args = [
            trace.argument(a, is_matrix and any(matrices[i + 1 :]))
            for i, (a, is_matrix) in enumerate(zip(operands, matrices))
        ]
        results = node.op.kernel(_StepModule(trace), *args, **node.attributes)
        trace.finish(results if type(results) is tuple else (results,))
    except NotTraceable:
        del program.instructions[count:]
        return None
    return trace
