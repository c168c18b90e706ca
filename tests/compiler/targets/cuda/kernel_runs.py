"""Runs of the steps of a `CudaKernel` on host memory, for the tests of kernels."""

from types import SimpleNamespace

import numpy as np

from tapewright.compiler.loops.threads.thread_nest import ThreadNest
from tapewright.compiler.program.program import Program
from tapewright.compiler.targets.cuda.kernel import STATUS
from tapewright.compiler.targets.cuda.kernels.table import KERNELS
from tapewright.compiler.targets.cuda.modules import source_of
from tapewright.core.primitive import get_primitive
from tapewright.ops.convolution.pooling import window_max_p

from ....stand_in import shim
from ..numpy_kernels import assert_same, instruction_of, kernel_in
from . import nest_runs
from .program_runs import compile_launches

CANARY, ROOM = 0xA5, 256
NUMBER = 7  # of the failure of the kernel
# Grids and blocks to run with, None for one thread: the work has to be done anyway.
SHAPES = [(None, None), ((3, 1, 1), (33, 1, 1))]


def named(name):
    """An op by the name of its primitive."""
    return SimpleNamespace(primitive=get_primitive(name))


def kernel_of(kind, instruction):
    assert kind.accepts(instruction)
    kernel = kind.of(Program(SimpleNamespace()), instruction)
    kernel.outputs, kernel.number = instruction.outputs, NUMBER
    return kernel


class _Numbers(dict):
    """Gives each base buffer a place of its own."""

    def __missing__(self, key):
        self[key] = len(self)
        return self[key]


def outputs_of(kernel, arrays, grid=None, block=None, numbers=(), status=0):
    """The outputs of a kernel and its status, when it runs on the values of operands.

    All memory has other values before, and so has what lies around it. ``numbers`` are those
    of buffers that share memory, if any do; ``status`` is that before.
    """
    numbers = _Numbers(numbers)
    steps, memory = kernel.steps_on(numbers), {}
    given = dict(zip(kernel.reads, arrays))
    for buffer in (*kernel.operands, *kernel.outputs):
        size = buffer.nbytes + 2 * ROOM
        memory.setdefault(numbers[buffer], np.full(size, CANARY, np.uint8))
    for buffer, array in given.items():
        _inside(memory[numbers[buffer]], buffer)[...] = array
    addresses = {place: each.ctypes.data + ROOM for place, each in memory.items()}
    status = np.array([status], np.int32)
    addresses[numbers[STATUS]] = status.ctypes.data
    module, threads = shim.Module(source_of(steps)), "fibers" if grid else "one"
    for step in steps:
        arguments = [addresses[p.position] for p in step.parameters]
        module.launch(step.name, grid or 1, block or 1, arguments, threads=threads)
    for each in memory.values():
        assert (each[:ROOM] == CANARY).all() and (each[-ROOM:] == CANARY).all()
    written = {numbers[out] for out in kernel.outputs}
    for buffer, array in given.items():
        if numbers[buffer] not in written:
            after = _inside(memory[numbers[buffer]], buffer)
            assert after.tobytes() == array.tobytes()
    return [_inside(memory[numbers[b]], b) for b in kernel.outputs], int(status[0])


def _inside(memory, buffer):
    return memory[ROOM : ROOM + buffer.nbytes].view(buffer.dtype).reshape(buffer.shape)


def compile_kernels(*kernels):
    """Compile the functions of kernels for three generations of GPUs."""
    compile_launches([step for each in kernels for step in each.steps_on(_Numbers())])


def check(kind, op, arrays, keywords):
    """Run a kernel with one thread, and with many in several shapes; compare with NumPy."""
    instruction, wanted = instruction_of(op, arrays, keywords)
    kernel = kernel_of(kind, instruction)
    for grid, block in SHAPES:
        found, status = outputs_of(kernel, arrays, grid, block)
        assert status == 0
        assert_same(found, wanted)
    return kernel


def check_op(op, arrays, keywords, seed=None):
    """`check` the kernel that the table names for an op, or its nests.

    There is nothing to draw.
    """
    kind = kernel_in(KERNELS, op)
    if kind is not None:
        check(kind, op, arrays, keywords)
        return
    _, wanted = instruction_of(op, arrays, keywords)
    program = nest_runs.program_of(lambda *given: op(*given, **keywords), *arrays)
    calls = [each for each in program.instructions if not each.is_free]
    assert {type(each) for each in calls} <= {ThreadNest}
    same = assert_same
    if op is window_max_p:  # of two zeros NumPy has one
        same = np.testing.assert_array_equal
    for threads in ("one", "fibers"):
        same(nest_runs.run(program, arrays, threads), wanted)
