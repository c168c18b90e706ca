"""Lower optimizer steps to array instructions, for code that no Python accompanies.

A step loads its variables, computes and stores: the learning rate of a schedule and the
bias corrections of Adam are arithmetic on the counter of steps, too.
"""

import math
from itertools import chain

import numpy as np

from ..tracing.graph import Node, Read, Write
from .array_functions import NotTraceable
from .array_tracer import ArrayTracer, LoopBuilder
from .call_instructions import LoadVariable, StoreVariable, Update
from .program import Kind
from .program_rewriter import ProgramRewriter
from .variable_update import Rule

__all__ = ["lower_updates"]


def lower_updates(program):
    """Replace each `Update` whose arithmetic is traced by its instructions.

    The others stay: their Python code must run in each step.
    """
    rewriter, count = ProgramRewriter(program), len(program.instructions)
    nodes = {each: [each] for each in program.graph.nodes}
    for each in program.instructions[:count]:
        step = each.update.on_device() if type(each) is Update else None
        if step is not None:
            try:
                _Lowering(program, each, step).write()
                made = program.instructions[count:]
                rewriter.put(each, made)
                nodes[each.node] = [i.node for i in made if i.touches_variables]
            except NotTraceable:
                pass
        del program.instructions[count:]
    rewriter.apply()
    program.graph = program.graph.replaced(list(chain.from_iterable(nodes.values())))


class _Lowering:
    """Appends the instructions of one update, whose `DeviceUpdate` is ``step``."""

    def __init__(self, program, instruction, step):
        self.program, self.instruction, self.step = program, instruction, step
        self.line = instruction.node.line
        self.builder = LoopBuilder(program, Node(Rule, (), {}, self.line))

    def traced(self, buffer):
        return ArrayTracer(buffer, self.builder, is_new=True)

    def write(self):
        step = self.step
        numbers, changed = step.trace_advance(self.load)
        columns = step.columns()
        groups = [
            (
                [self.flat(variables) for variables in flats],
                [self.number(x, group.dtype) for x in values],
            )
            for group, flats, values in zip(step.groups, columns, numbers)
        ]
        gradients = [self.traced(a) for a in self.instruction.operands]
        made = step.trace(np, gradients, groups, lambda x: self.traced(x.buffer))
        for flats, results in zip(columns, made):
            for variables, flat in zip(flats, results):
                start = 0
                for variable in variables:
                    stop = start + math.prod(variable._array.shape)
                    self.store(variable, flat[start:stop])
                    start = stop
        for variable, value in changed:
            self.store(variable, value)

    def load(self, variable):
        """Return the value of a variable."""
        shape, dtype = tuple(variable._array.shape), variable._array.dtype
        load = LoadVariable((), Read(variable, self.line))
        (loaded,) = self.program.append(load, (shape, dtype))
        loaded.kind, loaded.source = Kind.VARIABLE, variable
        return self.traced(loaded)

    def store(self, variable, value):
        value = value.reshape(variable._array.shape)
        store = StoreVariable((value.buffer,), Write(variable, None, self.line))
        self.program.append(store)

    def flat(self, variables):
        """Return the values of variables in one flat array, which a rule may replace."""
        rows = [self.load(variable).reshape(-1) for variable in variables]
        joined = rows[0] if len(rows) == 1 else np.concatenate(rows)
        return self.traced(joined.buffer)

    def number(self, value, dtype):
        """Return a coefficient as an array of rank 0 in the dtype of a step."""
        if type(value) is ArrayTracer:
            return value.astype(dtype)
        return self.traced(self.builder.buffer(np.asarray(value, dtype)))
