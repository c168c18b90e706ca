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
from . import blas, engine, gemm, runtime, trampoline
from .kernel import Arguments, NativeKernel, call_blocks
from .llvm_writer import POINTER, Writer
from .loop_writer import write_nest
from .products import calls_blas, is_product, product_work, write_product

__all__ = [
    "ARENA",
    "FIRST_ERROR",
    "NativeSegment",
    "code_of",
    "compiled_segments",
    "plain",
]

ARENA = "arena"  # the key of the argument in which all buffers of the arena lie

# Operations from which on other Python threads may run meanwhile: a microsecond or two.
LONG = 1 << 14
PART = 64  # instructions of a function
# Returned when the first instruction that can fail has failed; the next ones follow.
FIRST_ERROR = 2


class _Nest:
    """The code of a `LoopNest`, with the interface of a `NativeKernel`."""

    can_fail = calls_blas = False

    def __init__(self, nest):
        self.nest, self.work = nest, nest.work * nest.blocks.extent

    def define(self, writer, name, places):
        write_nest(writer, self.nest, name, places)

    def write(self, writer, name, arguments):
        context = arguments.context
        call_blocks(writer, name, context, self.nest.blocks.extent, self.work)
        self.finish(writer, name, arguments)

    # A `SliceLoop` makes what a block makes.

    def prepare(self, writer, name, arguments):
        pass

    def write_slice(self, writer, name, context, number, thread):
        writer.call(name, [context, number], declare=False)

    def finish(self, writer, name, arguments):
        if self.nest.finish:
            writer.call(f"{name}.finish", [arguments.context], declare=False)


class _Product:
    """The code of a product, with the interface of a `NativeKernel`."""

    can_fail = False

    def __init__(self, product):
        self.product, self.work = product, product_work(product)
        self.calls_blas = calls_blas(product)

    def define(self, writer, name, places):
        self.call = write_product(writer, self.product, name, places)

    def write(self, writer, name, arguments):
        self.call(arguments.context)

    def prepare(self, writer, name, arguments):
        pass

    def write_slice(self, writer, name, context, number, thread):
        writer.call(name, [context, number], declare=False)

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

    def again(self, *arrays):
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

    def write(self, writer):
        """Write its functions of a context; return a maker of the Python function.

        Each covers only some instructions: for a single function of a thousand calls,
        LLVM takes several times as long to generate code. They return the number of the
        instruction that failed, or 0.
        """
        codes = [code_of(each) for each in self.instructions]
        places, addresses = self.places()
        names = [f"{self.name}.{i}" for i in range(len(codes))]
        for name, code in zip(names, codes):
            code.define(writer, name, places)
        parts, number, parameters = [], 0, [("context", POINTER)]
        for start in range(0, len(codes), PART):
            parts.append(f"{self.name}.part_{len(parts)}")
            with writer.function(parts[-1], parameters, np.int64, "nounwind") as (
                context,
            ):
                arguments = Arguments(writer, context, places)
                for i in range(start, min(start + PART, len(codes))):
                    failed = codes[i].write(writer, names[i], arguments)
                    if failed is None:
                        continue
                    number += 1
                    with writer.when(failed):
                        writer.ret(writer.index(number))
                        writer.begin(writer.fresh("unreachable"))
                writer.ret(writer.index(0))
        return functools.partial(
            trampoline.function,
            symbols=parts,
            arguments=self.expected(),
            addresses=list(addresses),
            errors=range(FIRST_ERROR, FIRST_ERROR + number),
            long=sum([code.work for code in codes]) >= LONG,
            calls_blas=self.calls_blas,
        )

    def expected(self):
        """The arrays that it accepts."""
        return [
            trampoline.Expected((self.arena_size,), np.dtype(np.uint8), True)
            if key == ARENA
            else trampoline.Expected(key.shape, key.dtype, n in self.written)
            for key, n in self.arrays.items()
        ]

    def places(self):
        """``(places, addresses)``: the number of each buffer's address, and the reverse.

        ``addresses`` maps each ``(argument, offset)`` to its number. Buffers that share
        memory share the number.
        """
        places, addresses = {}, {}
        for instruction in self.instructions:
            for buffer in (*instruction.operands, *instruction.outputs):
                base = _base(buffer)
                where = self.argument(base), base.offset or 0
                places[base] = addresses.setdefault(where, len(addresses))
        return places, addresses


def plain(array):
    """Return an array of NumPy's own class, aligned, in C order and native byte order."""
    array = np.asarray(array, array.dtype.newbyteorder("="))
    return np.require(array, requirements="CA")


def _base(buffer):
    """Return the buffer whose address an instruction receives for an operand."""
    return layout_of(buffer).base


def compiled_segments(segments, name):
    """Compile the functions of the segments of a program."""
    if not segments:
        return
    writer = Writer(segments[0].limits)
    functions = [segment.write(writer) for segment in segments]
    symbols = {**runtime.symbols(), **gemm.symbols(writer)}
    if any([segment.calls_blas for segment in segments]):
        symbols |= blas.symbols()
    library = engine.compiled(writer.text(), name, symbols)
    for segment, function in zip(segments, functions):
        segment.function = function(segment.name, library)
