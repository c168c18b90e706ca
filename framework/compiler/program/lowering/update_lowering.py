"""Lower optimizer steps to array instructions, for code that no Python accompanies.

A step loads its variables, computes and stores: the learning rate of a schedule and the
bias corrections of Adam are arithmetic on the counter of steps, too.
"""

import math
from itertools import chain

import numpy as np

from ...tracing.graph import Node, Read, Write
from ..instructions.call_instructions import LoadVariable, StoreVariable, Update
from ..instructions.variable_update import Rule
from ..passes.program_rewriter import ProgramRewriter
from ..program import Kind
from .array_functions import NotTraceable
from .array_tracer import ArrayTracer, LoopBuilder


def lower_updates(program):
    """Replace each `Update` whose arithmetic is traced by its instructions.

    The others stay: their Python code must run in each step. All do if variables are
    read after they were assigned.
    """
    if not program.commits_once:
        return
    rewriter, count = ProgramRewriter(program), len(program.instructions)
    nodes = {each: [each] for each in program.graph.nodes}
    for each in program.instructions[:count]:
        step = each.update.on_device() if type(each) is Update else None
        made = _lowered(program, each, step) if step is not None else None
        if made is not None:
            rewriter.put(each, made)
            nodes[each.node] = [i.node for i in made if i.touches_variables]
    rewriter.apply()
    program.graph = program.graph.replaced(list(chain.from_iterable(nodes.values())))


def _lowered(program, instruction, step):
    """Return the instructions of an update, or None if it cannot be traced."""
    count = len(program.instructions)
    for is_flat in (False, True):  # some rules take norms, of arrays of rank 1
        try:
            _Lowering(program, instruction, step, is_flat).write()
            return program.instructions[count:]
        except NotTraceable:
            continue
        finally:
            del program.instructions[count:]
    return None


class _Lowering:
    """Appends the instructions of one update, whose `DeviceUpdate` is ``step``.

    A variable that is alone in its group keeps its shape, so that its new value can
    overwrite the old one, unless ``is_flat``.
    """

    def __init__(self, program, instruction, step, is_flat):
        self.program, self.instruction, self.step = program, instruction, step
        self.is_flat = is_flat
        self.line = instruction.node.line
        self.builder = LoopBuilder(program, Node(Rule, (), {}, self.line))
        loads = [i for i in program.instructions if type(i) is LoadVariable]
        self.loaded = {id(i.variable): i.outputs[0] for i in loads}

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
                if len(variables) == 1:
                    self.store(variables[0], flat)
                    continue
                start = 0
                for variable in variables:
                    stop = start + math.prod(variable._array.shape)
                    self.store(variable, flat[start:stop])
                    start = stop
        for variable, value in changed:
            self.store(variable, value)

    def load(self, variable):
        """Return the value of a variable, which is loaded once."""
        if id(variable) not in self.loaded:
            shape, dtype = tuple(variable._array.shape), variable._array.dtype
            load = LoadVariable((), Read(variable, self.line))
            (loaded,) = self.program.append(load, (shape, dtype))
            loaded.kind, loaded.source = Kind.VARIABLE, variable
            self.loaded[id(variable)] = loaded
        return self.traced(self.loaded[id(variable)])

    def store(self, variable, value):
        value = value.reshape(variable._array.shape)
        store = StoreVariable((value.buffer,), Write(variable, None, self.line))
        self.program.append(store)

    def flat(self, variables):
        """Return the values of variables in one flat array, or the value of one variable."""
        values = [self.load(variable) for variable in variables]
        if len(values) == 1 and not self.is_flat:
            return values[0]
        rows = [x.reshape(-1) for x in values]
        return self.traced((np.concatenate(rows) if rows[1:] else rows[0]).buffer)

    def number(self, value, dtype):
        """Return a coefficient as an array of rank 0 in the dtype of a step."""
        if type(value) is ArrayTracer:
            return value.astype(dtype)
        return self.traced(self.builder.buffer(np.asarray(value, dtype)))
