"""Native functions of consecutive instructions of a program.

A `Segment` collects instructions that run as machine code one after the other. It is one
function, called once from Python in each replay with the arrays that it reads and writes.
It checks them first; if one is not as expected it does nothing and returns True, so that
Python calls it again with copies.
"""

import functools

import numpy as np

from ...loops.accesses import layout_of
from ...loops.loop_nest import LoopNest
from . import blas, engine, entry, runtime
from .llvm_writer import POINTER, Writer
from .loop_writer import write_nest
from .products import product_work, write_product

__all__ = ["ARENA", "Segment", "compiled_segments"]

ARENA = "arena"  # the key of the argument in which all buffers of the arena lie

# Operations from which on other Python threads may run meanwhile: a microsecond or two.
LONG = 1 << 14
# Operations of a nest from which on its blocks go to several threads.
SHARED = 1 << 17


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
    def work(self):
        """About how many operations it takes."""
        total = 0
        for each in self.instructions:
            if type(each) is LoopNest:
                total += each.work * each.blocks.extent
            else:
                total += product_work(each)
        return total

    # --- code

    def write(self, writer):
        """Write its function, which `entry` calls."""
        with_products = any([type(each) is not LoopNest for each in self.instructions])
        places, addresses = self.places()
        names = [f"{self.name}.{i}" for i in range(len(self.instructions))]
        calls = []  # each writes the call of one instruction
        for name, each in zip(names, self.instructions):
            if type(each) is LoopNest:
                write_nest(writer, each, name, places)
                calls.append(functools.partial(_write_call, writer, name, each))
            else:
                calls.append(write_product(writer, each, name, places))
        with writer.function(self.name, entry.PARAMETERS, POINTER, "nounwind") as given:
            constants, args, count = given
            self.write_checks(writer, constants, args, count)
            context = self.write_context(writer, args, addresses)
            is_long = self.work >= LONG
            state = entry.release_gil(writer) if is_long else None
            if with_products:
                blas.enter(writer)
            for call in calls:
                call(context)
            if with_products:
                blas.leave(writer)
            if is_long:
                entry.retake_gil(writer, state)
            writer.ret(entry.none(writer, constants))

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


def _write_call(writer, name, nest, context):
    """Write the call of a nest: all blocks in a row, or on several threads."""
    count = nest.blocks.extent
    if count > 1 and nest.work * count >= SHARED:
        function = writer.symbol(name)
        writer.call("tw_parallel", [function, context, writer.index(count)])
    else:
        with writer.loop(0, count) as block:
            writer.call(name, [context, block], declare=False)
    if nest.finish:
        writer.call(f"{name}.finish", [context], declare=False)


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
    library = engine.compiled(writer.text(), name, symbols)
    for segment in segments:
        segment.function = entry.builtin(library, segment.name)
