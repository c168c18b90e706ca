"""Programs with kernels on host memory, for the tests of products and convolutions.

Kernels take their steps through the stand-ins; all other instructions are computed by
NumPy. All memory is filled with NaN before, and has a margin that must not change.
"""

import contextlib
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from tapewright.compiler.loops.accesses import layout_of
from tapewright.compiler.program.instructions.array_instructions import Contract, View
from tapewright.compiler.program.passes.program_rewriter import ProgramRewriter
from tapewright.compiler.program.program import Buffer, Kind, Program
from tapewright.compiler.program.verifier import verify_program
from tapewright.compiler.targets.cuda import modules
from tapewright.compiler.targets.cuda.addresses import Addresses, Root
from tapewright.compiler.targets.cuda.kernel import (
    CudaKernel,
    Launch,
    function_source,
)
from tapewright.compiler.targets.cuda.prelude import PRELUDE
from tapewright.compiler.targets.cuda.products.cublaslt import (
    WORKSPACE,
    WORKSPACE_BYTES,
)

from ....stand_in import nvrtc, shim
from ....stand_in.cublaslt import CublasLt, provided

ROOM = 256
NODE = SimpleNamespace(
    name="test", line="", is_collective=False, reads=(), writes=(), is_effect=False
)
STREAM = SimpleNamespace(ptr=0)


@contextlib.contextmanager
def library(**settings):
    """Products are computed by a stand-in; it is checked that no descriptor is left."""
    made = CublasLt(**settings)
    with provided(lambda: made):
        yield made
        assert not made.descriptors


# ------------------------------------------------------------------------- programs


def new_program():
    return Program(SimpleNamespace(nodes=(), name="test", collectives=()))


def add_input(program, array):
    """A buffer of the shape and dtype of an array, whose values it gets."""
    made = Buffer(array.shape, array.dtype, Kind.INPUT, source=array)
    program.inputs.append(made)
    return made


def add_view(program, buffer, view, *parameters):
    """A view of a buffer, by a method or function of arrays."""
    made = View(view, buffer, parameters, NODE)
    after = made.apply(np.empty(buffer.shape, buffer.dtype))
    return program.append(made, (after.shape, buffer.dtype))[0]


def transposed(program, buffer, *axes):
    return add_view(program, buffer, np.ndarray.transpose, axes)


def sliced(program, buffer, *index):
    return add_view(program, buffer, np.ndarray.__getitem__, *index)


def add(program, instruction, shape, dtype="f"):
    """The output of an instruction."""
    return program.append(instruction, (tuple(shape), np.dtype(dtype)))[0]


def add_product(program, a, b, function=np.matmul, dtype=None):
    """The product of two buffers, in their dtype or another."""
    shape = function(np.zeros(a.shape), np.zeros(b.shape)).shape
    return add(program, Contract(function, (a, b), NODE), shape, dtype or a.dtype)


def use_kernel(program, kind):
    """Replace the contractions that a kind of kernels accepts; return the kernels."""
    rewriter, count, found = ProgramRewriter(program), len(program.instructions), []
    for each in program.instructions[:count]:
        if type(each) is Contract and kind.accepts(each):
            kernel = kind.of(program, each)
            specs = [(out.shape, out.dtype) for out in each.outputs]
            for out, other in zip(each.outputs, program.append(kernel, *specs)):
                rewriter.replace(out, other)
            rewriter.put(each, program.instructions[count:])
            found.append(kernel)
        del program.instructions[count:]
    rewriter.apply()
    return found


# ------------------------------------------------------------------------------ runs


class Memory:
    """Memory of base buffers, by the buffer or the key of a place."""

    def __init__(self):
        self.held = {}
        self.numbers = Addresses(lambda base: (Root("buffer", base), 0))

    def bytes(self, key):
        """The memory of a base buffer, or the workspace."""
        if key not in self.held:
            size = WORKSPACE_BYTES if key == WORKSPACE else key.nbytes
            whole = np.full(size + 3 * ROOM, 0xFF, np.uint8)
            start = ROOM + -(whole.ctypes.data + ROOM) % ROOM
            self.held[key] = whole, start, size
            source = None if key == WORKSPACE else key.source
            if isinstance(source, np.ndarray):
                self.array(key)[...] = source
        whole, start, size = self.held[key]
        return whole[start : start + size]

    def array(self, buffer):
        base, offset, strides = layout_of(buffer)
        strides = [s * buffer.dtype.itemsize for s in strides]
        flat = self.bytes(base)
        if not buffer.size:
            return np.empty(buffer.shape, buffer.dtype)
        start = offset * buffer.dtype.itemsize
        return np.ndarray(buffer.shape, buffer.dtype, flat, start, strides)

    def addresses(self):
        return [
            self.bytes(root.key or root.kind).ctypes.data + offset
            for root, offset in self.numbers.where
        ]

    def check(self):
        for whole, start, size in self.held.values():
            assert (whole[:start] == 0xFF).all()
            assert (whole[start + size :] == 0xFF).all()


def run(program, *buffers, machine=None, **how):
    """Run a program; return the values of buffers, by default its outputs.

    ``machine(steps, memory)`` takes the steps of a kernel, by default with the stand-ins;
    ``how``: grid, block and threads of all launches, see `shim`.
    """
    verify_program(program, "the test")
    memory = Memory()
    kernels = [each for each in program.instructions if isinstance(each, CudaKernel)]
    steps = {each: each.steps_on(memory.numbers) for each in kernels}
    machine = machine or Host
    take = machine(source_of(itertools.chain(*steps.values())), **how)
    for each in program.instructions:
        if each in steps:
            take(steps[each], memory)
        elif type(each) is not View:
            args = [memory.array(a) for a in each.operands]
            with np.errstate(all="ignore"):
                made = each.function(*args, **each.keywords)
            memory.array(each.outputs[0])[...] = made
    memory.check()
    return [memory.array(b).copy() for b in (buffers or program.outputs)]


class Host:
    """Takes steps in host memory: gcc compiles the functions, a stand-in multiplies."""

    def __init__(self, functions, grid=None, block=None, threads="one"):
        self.module = shim.Module(PRELUDE + functions) if functions else None
        self.grid, self.block, self.threads = grid, block, threads

    def __call__(self, steps, memory):
        addresses = memory.addresses()
        for step in steps:
            if not isinstance(step, Launch):
                step.enqueue({}, addresses, STREAM)
                continue
            shape = self.grid or step.grid, self.block or step.block
            arguments = [addresses[p.position] for p in step.parameters]
            self.module.launch(step.name, *shape, arguments, threads=self.threads)


def source_of(steps):
    """The functions of launches."""
    launches = {each.name: each for each in steps if isinstance(each, Launch)}
    return "".join(map(function_source, launches.values()))


def compile_launches(steps, architectures=nvrtc.ARCHITECTURES):
    """Compile functions for generations of GPUs, those that were not before."""
    if nvrtc.missing():
        pytest.skip(nvrtc.missing())
    new = [s for s in steps if isinstance(s, Launch) and s.name not in _compiled]
    for arch in architectures if new else ():
        assert nvrtc.compile_for(modules.source_of(new), arch, modules.OPTIONS)
    _compiled.update([each.name for each in new])


_compiled = set()  # names, which are hashes of what the functions do
