"""Programs of maps and reductions as thread nests, run on the CPU by `shim`.

What is no nest is computed by NumPy. Outputs are filled before, and have a margin that must
not change.
"""

from types import SimpleNamespace

import numpy as np

import tapewright as tw
from tapewright.compiler.loops.fusion import form_loops
from tapewright.compiler.loops.threads.thread_nest import ThreadNest
from tapewright.compiler.loops.threads.thread_scheduling import thread_nests
from tapewright.compiler.pipeline import optimize
from tapewright.compiler.program.instructions.array_instructions import (
    Copy,
    Map,
    Reduce,
    View,
)
from tapewright.compiler.program.lowering.lowering import lower
from tapewright.compiler.program.passes.pass_manager import run_passes
from tapewright.compiler.program.program import Buffer, Kind, Program
from tapewright.compiler.program.verifier import verify_program
from tapewright.compiler.targets.cuda.kernel import function_source
from tapewright.compiler.targets.cuda.nests import steps_on
from tapewright.compiler.targets.cuda.prelude import PRELUDE
from tapewright.compiler.targets.cuda.scalar_functions import is_loop
from tapewright.compiler.targets.target import SIMPLIFICATION

from ....stand_in.shim import Module

NODE = SimpleNamespace(
    name="test", line="", is_collective=False, is_alias=False, is_effect=False,
    reads=(), writes=(), op=None, regions=(),
)  # fmt: skip
MARGIN = 64  # bytes


class Kernel:
    """A program that is written instruction by instruction."""

    def __init__(self, *arrays):
        graph = SimpleNamespace(nodes=(), name="test", collectives=())
        self.program, self.arrays = Program(graph), arrays
        self.inputs = [Buffer(a.shape, a.dtype, Kind.INPUT, source=a) for a in arrays]
        self.program.inputs = list(self.inputs)

    def map(self, function, *operands, dtype=None):
        """A map; its dtype is that of a ufunc, if it is not given."""
        shape = np.broadcast_shapes(*[a.shape for a in operands])
        if dtype is None:
            dtype = function.resolve_dtypes((*[a.dtype for a in operands], None))[-1]
        return self.add(Map(function, operands, NODE), shape, dtype)

    def reduce(self, ufunc, operand, axis=None, keepdims=False):
        instruction = Reduce(ufunc, operand, axis, keepdims, NODE)
        like = np.ones(operand.shape, operand.dtype)
        out = instruction.function(like, **instruction.keywords)
        return self.add(instruction, np.shape(out), out.dtype)

    def copy(self, operand):
        return self.add(Copy(np.copyto, (operand,), NODE), operand.shape, operand.dtype)

    def view(self, operand, function, *parameters):
        made = View(function, operand, parameters, NODE)
        after = made.apply(np.empty(operand.shape, operand.dtype))
        return self.add(made, after.shape, operand.dtype)

    def constant(self, value):
        return self.program.constant(np.asarray(value))

    def add(self, instruction, shape, dtype):
        return self.program.append(instruction, (tuple(shape), np.dtype(dtype)))[0]

    def formed(self, *outputs, **options):
        """The program with these outputs as nests."""
        self.program.outputs = list(outputs)
        return formed(self.program, **options)


def formed(program, most=400):
    form_loops(program, is_loop, schedule=thread_nests, has_totals=False, most=most)
    verify_program(program, "forming thread nests")
    return program


def program_of(function, *arrays):
    """The program of a function of tensors as nests."""
    tensors = [tw.constant(a) for a in arrays]
    graph = tw.function(function).get_concrete_function(*tensors).graph
    program = lower(optimize(graph), in_loops=True)
    run_passes(program, SIMPLIFICATION)
    return formed(program)


def nests_of(program):
    return [each for each in program.instructions if type(each) is ThreadNest]


def launches_of(nest):
    """The buffers of a nest, whose numbers are their addresses, and its launches."""
    buffers = list(dict.fromkeys([*nest.operands, *nest.outputs]))
    return buffers, steps_on(nest, {b: i for i, b in enumerate(buffers)})


def source_of(program):
    """The source of all kernels of a program."""
    launches = [one for nest in nests_of(program) for one in launches_of(nest)[1]]
    functions = {launch.name: function_source(launch) for launch in launches}
    return PRELUDE + "\n".join(functions.values())


def run(program, arrays, threads="one", seed=0):
    """The outputs of a program."""
    module, held = Module(source_of(program)), dict(zip(program.inputs, arrays))

    def array(buffer):
        if buffer.is_constant and not buffer.is_view:
            return buffer.source
        if buffer not in held:
            held[buffer] = buffer.instruction.apply(array(buffer.instruction.viewed))
        return held[buffer]

    for each in program.instructions:
        if type(each) is ThreadNest:
            _run_nest(module, each, held, array, threads, seed)
        elif type(each) is not View:
            args = [array(a) for a in each.operands]
            found = each.function(*args, **each.keywords)
            found = found if isinstance(found, tuple) else (found,)
            held.update(zip(each.outputs, map(np.asarray, found)))
    return [np.array(array(out)) for out in program.outputs]


def _run_nest(module, nest, held, array, threads, seed):
    buffers, launches = launches_of(nest)
    memory = {b: _with_margin(array(b)) for b in nest.operands}
    memory |= {
        b: _with_margin(np.full(b.shape, 99).astype(b.dtype)) for b in nest.outputs
    }
    addresses = [memory[b].ctypes.data + MARGIN for b in buffers]
    for launch in launches:
        given = [addresses[p.position] for p in launch.parameters]
        module.launch(launch.name, launch.grid, launch.block, given, threads, seed)
    for b, raw in memory.items():
        assert (raw[:MARGIN] == 0xEE).all() and (raw[-MARGIN:] == 0xEE).all()
        if b in nest.outputs:
            held[b] = raw[MARGIN:-MARGIN].view(b.dtype).reshape(b.shape)


def _with_margin(array):
    """The bytes of an array, within others."""
    own = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    raw = np.full(own.size + 2 * MARGIN, 0xEE, np.uint8)
    raw[MARGIN : MARGIN + own.size] = own
    return raw
