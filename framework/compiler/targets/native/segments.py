"""Native functions of consecutive instructions of a program.

A `Segment` collects instructions that run as machine code one after the other. It is one
function, called once from Python in each replay with the arrays that it reads and writes.
It checks them first; if one is not as expected it does nothing and returns True, so that
Python calls it again with copies.
"""

import numpy as np

from ...loops.accesses import layout_of
from ...loops.loop_nest import LoopNest
from . import atomics, blas, engine, entry, gemm, runtime
from .kernel import Arguments, NativeKernel, call_blocks
from .llvm_writer import POINTER, Writer
from .loop_writer import write_nest
from .products import calls_blas, is_product, product_work, write_product

__all__ = ["ARENA", "FIRST_ERROR", "Segment", "code_of", "compiled_segments"]

ARENA = "arena"  # the key of the argument in which all buffers of the arena lie

# Operations from which on other Python threads may run meanwhile: a microsecond or two.
LONG = 1 << 14
PART = 64  # instructions of a function
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
        checks = self.define_checks(writer)
        parts = self.define_parts(writer, names, codes, places)
        with writer.function(self.name, entry.PARAMETERS, POINTER, "nounwind") as given:
            constants, args, count = given
            self.write_checks(writer, checks, constants, args, count)
            context = self.write_context(writer, args, addresses)
            is_long = sum([code.work for code in codes]) >= LONG
            state = entry.release_gil(writer) if is_long else None
            if with_products:
                blas.enter(writer)
            error = self.write_parts(writer, parts, context)
            if with_products:
                blas.leave(writer)
            if is_long:
                entry.retake_gil(writer, state)
            if self.fallible:
                with writer.when(error != 0):
                    writer.ret(entry.constant_at(writer, constants, error - 1))
                    writer.begin(writer.fresh("unreachable"))
            writer.ret(entry.none(writer, constants))

    def define_parts(self, writer, names, codes, places):
        """Write functions of some instructions each; return their names.

        They return the number of the instruction that failed, or 0. Of a single function
        of a thousand calls LLVM takes several times as long to make machine code.
        """
        parts, number = [], 0
        attributes = "nounwind" if len(codes) <= PART else "nounwind noinline"
        parameters = [("context", POINTER)]
        for start in range(0, len(codes), PART):
            parts.append(f"{self.name}.part_{len(parts)}")
            with writer.function(
                parts[-1], parameters, np.int64, attributes, "internal"
            ) as (context,):
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
        return parts

    def write_parts(self, writer, parts, context):
        """Write the calls of all parts; return the number of what failed, or 0."""
        error = writer.alloca(np.int64)
        writer.store(writer.index(0), error)
        for part in parts:
            with writer.when(writer.load(error, np.int64) == 0):
                failed = writer.call(part, [context], np.int64, declare=False)
                writer.store(failed, error)
        return writer.load(error, np.int64)

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

    def define_checks(self, writer):
        """Write a function for each kind of array; return those of all arguments.

        Networks have hundreds of arrays of a few kinds: what checks one is written once.
        """
        kinds, checks = {}, []
        for key, n in self.arrays.items():
            kind = (self.arena_size,), np.dtype(np.uint8), True
            if key != ARENA:
                kind = key.shape, key.dtype, n in self.written
            checks.append(kinds.setdefault(kind, f"{self.name}.check_{len(kinds)}"))
        for kind, name in kinds.items():
            parameters = [("array", POINTER), ("constants", POINTER)]
            attributes = "nounwind noinline"
            with writer.function(
                name, parameters, np.bool_, attributes, "internal"
            ) as (array, constants):
                writer.ret(entry.check_array(writer, constants, array, *kind))
        return checks

    def write_checks(self, writer, checks, constants, args, count):
        """Write the return of True, unless all arguments are as expected."""
        expected = entry.check_count(writer, count, len(self.arrays))
        entry.refuse_unless(writer, constants, expected)
        functions = self.table(writer, "checks", "ptr", [f"@{name}" for name in checks])
        right = [writer.const(True, np.bool_)]
        with writer.carrying_loop(0, len(checks), 1, right) as (n, right):
            function = writer.load(writer.at(functions, n, POINTER), POINTER)
            given = [entry.argument(writer, args, n), constants]
            right[0] &= atomics.call_address(writer, function, given, np.bool_)
        entry.refuse_unless(writer, constants, right[0])

    def write_context(self, writer, args, addresses):
        """Write the table of the addresses of all buffers; return where it is."""
        context = writer.alloca(POINTER, len(addresses))
        arguments, offsets = [
            self.table(writer, name, "i64", numbers)
            for name, numbers in zip(("arguments", "offsets"), zip(*addresses))
        ]
        with writer.loop(0, len(addresses)) as place:
            n, offset = [
                writer.load(writer.at(table, place, np.int64), np.int64)
                for table in (arguments, offsets)
            ]
            array = entry.argument(writer, args, n)
            address = writer.at(entry.array_data(writer, array), offset, np.uint8)
            writer.store(address, writer.at(context, place, POINTER))
        return context

    def table(self, writer, name, kind, values):
        """Write a constant array; return its address."""
        name = f"{self.name}.{name}"
        listed = ", ".join([f"{kind} {value}" for value in values])
        writer.declared[name] = (
            f"@{name} = internal constant [{len(values)} x {kind}] [{listed}]"
        )
        return writer.symbol(name)


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
