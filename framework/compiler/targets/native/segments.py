"""Native functions of consecutive instructions of a program.

A `NativeSegment` collects instructions that run as machine code one after the other. It is
called once from Python in each replay with the arrays that it reads and writes. They
are checked first (`trampoline`); if one is not as expected, the segment does nothing
and returns True, so that Python calls it again with copies.
"""

import functools

import numpy as np

from ...loops.accesses import layout_of
from ...loops.loop_nest import LoopNest
from ...loops.statements import structure_of
from .jit import engine, runtime, trampoline
from .jit.recall import recall
from .kernels.kernel import Arguments, NativeKernel, call_blocks
from .llvm_writer import POINTER, Symbol, Writer, digest
from .loop_writer import write_nest
from .products import blas, gemm
from .products.product_calls import (
    calls_blas,
    define_product,
    is_product,
    product_of,
    product_work,
    write_product,
)

ARENA = "arena"  # the key of the argument in which all buffers of the arena lie

# Operations from which on other Python threads may run meanwhile: a microsecond or two.
LONG = 1 << 14
PART = 64  # instructions of a function
# Returned when the first instruction that can fail has failed; the next ones follow.
FIRST_ERROR = 2


class _Nest:
    """The code of a `LoopNest`, with the interface of a `NativeKernel`."""

    can_fail = calls_blas = False
    packed_bytes = 0
    level = engine.SPEED_LEVEL

    def __init__(self, nest):
        self.nest, self.work = nest, nest.work * nest.blocks.extent

    def code_key(self, index_of):
        nest = self.nest
        arrays = {a: f"@{n} {a.dtype}" for a, n in index_of.items()}
        used = [index_of[a] for a in (*nest.operands, *nest.outputs)]
        parts = nest.blocks, nest.grid, nest.locals, nest.body, nest.finish
        return used, structure_of(parts, arrays)

    def define(self, writer, name, index_of):
        write_nest(writer, self.nest, name, index_of)

    def write(self, writer, name, arguments):
        context = arguments.context
        call_blocks(writer, name, context, self.nest.blocks.extent, self.work)
        self.finish(writer, name, arguments)

    # A `SliceLoop` makes what a block makes.

    def prepare(self, writer, name, arguments):
        pass

    def write_slice(self, writer, name, context, number, thread):
        writer.call(name, [context, number])

    def finish(self, writer, name, arguments):
        if self.nest.finish:
            writer.call(f"{name}.finish", [arguments.context])


class _Product:
    """The code of a product, with the interface of a `NativeKernel`."""

    can_fail = False
    level = engine.SPEED_LEVEL

    def __init__(self, product):
        self.product, self.work = product, product_work(product)
        self.calls_blas = calls_blas(product)

    @property
    def packed_bytes(self):
        """Bytes of packed panels that `gemm` needs on one thread."""
        product = product_of(self.product)
        return gemm.packed_bytes(self.product.outputs[0].dtype, product.m, product.k)

    def code_key(self, index_of):
        """Return None: writing a call takes less time than a lookup."""

    def define(self, writer, name, index_of):
        define_product(writer, self.product, name, index_of)

    def write(self, writer, name, arguments):
        write_product(writer, self.product, name, arguments.context, arguments.index_of)

    def prepare(self, writer, name, arguments):
        pass

    def write_slice(self, writer, name, context, number, thread):
        writer.call(name, [context, number])

    finish = prepare


def code_of(instruction):
    """Return the object that writes the code of an instruction, or None."""
    if isinstance(instruction, NativeKernel):
        return instruction
    if type(instruction) is LoopNest:
        return _Nest(instruction)
    return _Product(instruction) if is_product(instruction) else None


class NativeSegment:
    """Instructions, and the arrays that their function is called with.

    ``arrays`` maps base buffers to the number of an argument. Buffers in the arena
    share one argument, with the key `ARENA`. ``limits``: the `Limits` of the program.
    """

    def __init__(self, name, arena_size, limits):
        self.name, self.arena_size, self.limits = name, arena_size, limits
        self.instructions, self.arrays, self.written = [], {}, set()
        self.overwrites = {}  # outputs -> the buffers whose memory they take
        self.function = None  # the builtin, once it is compiled

    def __call__(self, *arrays):
        """Run; return True if nothing was done because an array is not as expected."""
        return self.function(*arrays)

    def run_with_copies(self, *arrays):
        """Run with copies of arrays that are not contiguous, aligned, in native byte order."""
        error = self.function(*map(plain, arrays))
        if error is True:
            given = [f"{a.dtype} {a.shape}" for a in arrays]
            raise RuntimeError(f"{self.name} does not accept the arrays {given}")
        return error

    def takes(self, instruction):
        return True

    def append(self, instruction):
        self.instructions.append(instruction)
        for buffer in (*instruction.operands, *instruction.outputs):
            self.argument(_base(buffer))
        self.written.update(
            [self.argument(a) for a in (*instruction.outputs, *instruction.scratch)]
        )

    def argument(self, buffer):
        """Return the number of the argument in whose memory a buffer lies."""
        key = ARENA if buffer.offset is not None else buffer
        key = self.overwrites.get(key, key)
        return self.arrays.setdefault(key, len(self.arrays))

    @property
    def fallible(self):
        """The instructions that can fail; the first returns `FIRST_ERROR`, and so on."""
        return [each for each in self.instructions if code_of(each).can_fail]

    @property
    def calls_blas(self):
        """True if it calls BLAS; all of these calls run on one thread."""
        return any([code_of(each).calls_blas for each in self.instructions])

    # --- code

    def write(self, writer, kernels):
        """Write its functions of a context; return arguments of `trampoline.function`.

        Each covers only some instructions: for a single function of a thousand calls,
        LLVM takes several times as long to generate code. They return the number of the
        instruction that failed, or 0. The code of the instructions is added to
        ``kernels``, a `Kernels`.
        """
        parts, number, parameters = [], 0, [("context", POINTER)]
        addresses, work = [], 0
        for start in range(0, len(self.instructions), PART):
            parts.append(f"{self.name}.part_{len(parts)}")
            with writer.function(parts[-1], parameters, np.int64, "nounwind") as (
                context,
            ):
                for each in self.instructions[start : start + PART]:
                    code, (index_of, own) = code_of(each), self.addresses_of(each)
                    name, before = kernels.define(code, index_of)
                    addresses += [(trampoline.WORD, each) for each in reversed(before)]
                    first = writer.at(context, len(addresses), POINTER)
                    addresses += own
                    work += code.work
                    failed = code.write(
                        writer, name, Arguments(writer, first, index_of)
                    )
                    if failed is None:
                        continue
                    number += 1
                    with writer.when(failed):
                        writer.ret(writer.index(number))
                        writer.begin(writer.fresh("unreachable"))
                writer.ret(writer.index(0))
        return {
            "symbols": parts,
            "arguments": self.expected(),
            "addresses": addresses,
            "errors": range(FIRST_ERROR, FIRST_ERROR + number),
            "long": work >= LONG,
            "calls_blas": self.calls_blas,
        }

    def expected(self):
        """The arrays that it accepts."""
        return [
            trampoline.Expected((self.arena_size,), np.dtype(np.uint8), True)
            if key == ARENA
            else trampoline.Expected(key.shape, key.dtype, n in self.written)
            for key, n in self.arrays.items()
        ]

    def addresses_of(self, instruction):
        """Return ``(index_of, addresses)`` of the buffers of an instruction.

        ``index_of`` has the number of each buffer's address, ``addresses`` the addresses:
        pairs of an argument and an offset. Buffers that share memory share the number.
        """
        index_of, addresses = {}, {}
        for buffer in (*instruction.operands, *instruction.outputs):
            base = _base(buffer)
            where = self.argument(base), base.offset or 0
            index_of[base] = addresses.setdefault(where, len(addresses))
        return index_of, addresses


def plain(array):
    """Return an array of NumPy's own class, aligned, in C order and native byte order."""
    array = np.asarray(array, array.dtype.newbyteorder("="))
    return np.require(array, requirements="CA")


def _base(buffer):
    """Return the buffer whose address an instruction receives for an operand."""
    return layout_of(buffer).base


class Kernels:
    """Modules with the code of instructions; equal code is one module.

    A kernel is known by its text, in which arrays are numbered from 0 and functions are
    named after no program. So a program is a short module that calls kernels, and only
    those are compiled that no earlier program had: see `engine.compiled`.

    ``modules`` maps names of kernels to ``(text, level of LLVM's passes)``.
    """

    def __init__(self, limits):
        self.limits, self.modules = limits, {}
        self.declared = set()  # names of functions that kernels call
        self._known = {}  # key of the code -> the result of `define`

    def define(self, code, index_of):
        """Write the kernel of an instruction.

        Returns:
            Its name, and its arguments: sizes and symbols that precede its addresses.
        """
        make = functools.partial(_kernel, code, index_of, self.limits)
        key = code.code_key(index_of)
        if key is None:
            return self._add(*make())
        key = repr(key)  # in which 0.0 and -0.0 differ
        if key not in self._known:
            self._known[key] = self._add(*recall(make, "kernel", key, self.limits))
        return self._known[key]

    def _add(self, name, arguments, modules, declared):
        self.modules.update(modules)
        self.declared.update(declared)
        return name, arguments


def _kernel(code, index_of, limits):
    """Write a kernel; return its name, arguments, modules, and the functions it calls."""
    writer = Writer(limits)
    code.define(writer, "kernel", index_of)
    text = writer.text()
    name = f"kernel_{digest(text)}"
    if not writer.lines:
        return name, writer.arguments, {}, ()
    own = {name: (text.replace("@kernel", f"@{name}"), code.level)}
    return name, writer.arguments, own | writer.modules, tuple(writer.declared)


def compiled_segments(segments, name):
    """Compile the functions of the segments of a program."""
    if not segments:
        return
    writer, kernels = Writer(segments[0].limits), Kernels(segments[0].limits)
    written = [segment.write(writer, kernels) for segment in segments]
    declared = kernels.declared | {*writer.declared}
    symbols = runtime.symbols() | gemm.symbols(declared, writer.limits)
    if any([segment.calls_blas for segment in segments]):
        symbols |= blas.symbols()
    modules = kernels.modules
    tiles = [each for each in modules if type(each) is Symbol]
    library = engine.compiled(
        writer.text(), name, symbols, kernels=modules.values(), exported=tiles
    )
    for segment, arguments in zip(segments, written):
        segment.function = trampoline.function(segment.name, library, **arguments)
