"""Native functions of consecutive instructions of a program.

A `Segment` collects instructions that run as machine code one after the other. It is one
function, called once from Python in each replay with the arrays that it reads and writes.
It checks them first; if one is not as expected it does nothing and returns True, so that
Python calls it again with copies.
"""

import numpy as np

from ...loops.accesses import layout_of
from ...loops.loop_nest import LoopNest
from . import blas, engine, entry, gemm, runtime
from .kernel import Arguments, NativeKernel, call_blocks
from .llvm_writer import POINTER, Writer
from .loop_writer import write_nest
from .products import calls_blas, is_product, product_work, write_product

__all__ = ["ARENA", "FIRST_ERROR", "Segment", "code_of", "compiled_segments"]

ARENA = "arena"  # the key of the argument in which all buffers of the arena lie

# Operations from which on other Python threads may run meanwhile: a microsecond or two.
LONG = 1 << 14
# Returned when the first instruction that can fail has failed; the next ones follow.
FIRST_ERROR = 2


class _Nest:
    """The code of a `LoopNest`, as a `NativeKernel` has it."""

    can_fail = calls_blas = False

    def __init__(self, nest):
        self.nest, self.work = nest, nest.work * nest.blocks.extent

    def define(self, writer, name, places):
        write_nest(writer, self.nest, name, places)

    def write(self, writer, name, arguments):
        context = arguments.context
        call_blocks(writer, name, context, self.nest.blocks.extent, self.work)
        if self.nest.finish:
            writer.call(f"{name}.finish", [context], declare=False)


class _Product:
    """The code of a product, as a `NativeKernel` has it."""

    can_fail = False

    def __init__(self, product):
        self.product, self.work = product, product_work(product)
        self.calls_blas = calls_blas(product)

    def define(self, writer, name, places):
        self.call = write_product(writer, self.product, name, places)

    def write(self, writer, name, arguments):
        self.call(arguments.context)


def code_of(instruction):
    """The object that writes the code of an instruction, or None if there is none."""
    if isinstance(instruction, NativeKernel):
        return instruction
    if type(instruction) is LoopNest:
        return _Nest(instruction)
    return _Product(instruction) if is_product(instruction) else None


class Segment:
    """Instructions, and the arrays that their function is called with.

    ``arrays`` maps base buffers to the number of an argument. Buffers in the arena share
    one argument, whose key is `ARENA`.
    """

    def __init__(self, name, arena_size):
        self.name, self.arena_size = name, arena_size
        self.instructions, self.arrays, self.written = [], {}, set()
        self.function = None  # the builtin, once it is compiled

    def __call__(self, *arrays):
        """Run; return True if nothing was done, as an array is not as expected."""
        return self.function(*arrays)

    def again(self, *arrays):
        """Run with copies of arrays that do not lie as expected, or in other byte order."""
        error = self.function(*map(_plain, arrays))
        if error is True:
            given = [f"{a.dtype} {a.shape}" for a in arrays]
            raise RuntimeError(f"{self.name} does not take the arrays {given}")
        return error

    def append(self, instruction):
        self.instructions.append(instruction)
        for buffer in (*instruction.operands, *instruction.outputs):
            self.argument(_base(buffer))
        self.written.update(
            [self.argument(a) for a in (*instruction.outputs, *instruction.scratch)]
        )

    def argument(self, buffer):
        """The number of the argument in whose memory a buffer lies."""
        key = ARENA if buffer.offset is not None else buffer
        return self.arrays.setdefault(key, len(self.arrays))

    @property
    def fallible(self):
        """The instructions that can fail; the first one returns `FIRST_ERROR`, and so on."""
        return [each for each in self.instructions if code_of(each).can_fail]

    # --- code

    def write(self, writer):
        """Write its function, which `entry` calls."""
        codes = [code_of(each) for each in self.instructions]
        with_products = any([code.calls_blas for code in codes])
        places, addresses = self.places()
        names = [f"{self.name}.{i}" for i in range(len(codes))]
        for name, code in zip(names, codes):
            code.define(writer, name, places)
        with writer.function(self.name, entry.PARAMETERS, POINTER, "nounwind") as given:
            constants, args, count = given
            self.write_checks(writer, constants, args, count)
            context = self.write_context(writer, args, addresses)
            arguments = Arguments(writer, context, places)
            is_long = sum([code.work for code in codes]) >= LONG
            state = entry.release_gil(writer) if is_long else None
            if with_products:
                blas.enter(writer)
            error = self.write_codes(writer, names, codes, arguments)
            if with_products:
                blas.leave(writer)
            if is_long:
                entry.retake_gil(writer, state)
            if error is not None:
                with writer.when(error != 0):
                    writer.ret(entry.constant_at(writer, constants, error - 1))
                    writer.begin(writer.fresh("unreachable"))
            writer.ret(entry.none(writer, constants))

    def write_codes(self, writer, names, codes, arguments):
        """Write the code of all instructions; return the number of the one that failed."""
        place = writer.alloca(np.int64) if self.fallible else None
        if place is not None:
            writer.store(writer.index(0), place)
        end, number = writer.fresh("end"), 0
        for name, code in zip(names, codes):
            failed = code.write(writer, name, arguments)
            if failed is None:
                continue
            number += 1
            writer.store(
                writer.select(failed, writer.index(number), writer.index(0)), place
            )
            go_on = writer.fresh("go_on")
            writer.branch(failed, end, go_on)
            writer.begin(go_on)
        if place is None:
            return None
        writer.jump(end)
        writer.begin(end)
        return writer.load(place, np.int64)

    def places(self):
        """``(places, addresses)``: the number of each buffer's address, and for each
        ``(argument, offset)`` that number. Buffers that share memory share the number."""
        places, addresses = {}, {}
        for instruction in self.instructions:
            for buffer in (*instruction.operands, *instruction.outputs):
                base = _base(buffer)
                where = self.argument(base), base.offset or 0
                places[base] = addresses.setdefault(where, len(addresses))
        return places, addresses

    def write_checks(self, writer, constants, args, count):
        """Write the return of True, unless all arguments are as expected."""
        expected = entry.check_count(writer, count, len(self.arrays))
        entry.refuse_unless(writer, constants, expected)
        for key, n in self.arrays.items():
            given = entry.argument(writer, args, n)
            if key == ARENA:
                shape, dtype, written = (self.arena_size,), np.uint8, True
            else:
                shape, dtype, written = key.shape, key.dtype, n in self.written
            right = entry.check_array(writer, constants, given, shape, dtype, written)
            entry.refuse_unless(writer, constants, right)

    def write_context(self, writer, args, addresses):
        """Write the table of the addresses of all buffers; return where it is."""
        context = writer.alloca(POINTER, len(addresses))
        for (argument, offset), place in addresses.items():
            array = entry.argument(writer, args, argument)
            address = writer.at(entry.array_data(writer, array), offset, np.uint8)
            writer.store(address, writer.at(context, place, POINTER))
        return context


def _plain(array):
    """An array of NumPy's own class, aligned, in C order and this machine's byte order."""
    array = np.asarray(array, array.dtype.newbyteorder("="))
    return np.require(array, requirements="CA")


def _base(buffer):
    """The buffer whose address an instruction is given for an operand."""
    return layout_of(buffer).base


def compiled_segments(segments, name):
    """Compile the functions of segments."""
    if not segments:
        return
    writer = Writer()
    for segment in segments:
        segment.write(writer)
    symbols = {**runtime.symbols(), **blas.symbols(), **entry.symbols()}
    symbols.update(gemm.symbols(writer.declared))
    library = engine.compiled(writer.text(), name, symbols)
    for segment in segments:
        errors = range(FIRST_ERROR, FIRST_ERROR + len(segment.fallible))
        segment.function = entry.builtin(library, segment.name, tuple(errors))
