"""`tw_call`: the function through which Python calls the machine code of all programs.

The code of a program consists of functions of a context, the addresses of its buffers.
The interface between them and Python is data: a table of integers says which arrays are
expected, where in them the buffers begin, and which functions are run. So this is
compiled once for all programs, and programs have no code that checks arrays.
"""

from typing import NamedTuple

import numpy as np

from .. import atomics
from ..llvm_writer import POINTER, Writer
from ..products import blas
from . import engine, entry, object_layout, runtime

ANY_SIZE = -1  # of an axis; all axes of any size have the same one
WORD = -1  # in place of an argument: the entry of the context is a number

_I64 = np.dtype(np.int64)
_HEAD = ("arguments", "addresses", "functions", "releases_gil", "enter", "leave")
_OTHER_NUMBER = 63  # stands for the numbers of dtypes that no argument has


class Expected(NamedTuple):
    """An argument: an array in C order, of a dtype in native byte order.

    The word for its dtype is a set of numbers below 63, or minus the number of a dtype
    that is not built into NumPy, numbered from 256 on.
    """

    shape: tuple
    dtype: np.dtype
    is_written: bool

    @property
    def words(self):
        """Its words in the table: flags, numbers of the dtype, rank and sizes."""
        flags = object_layout.ALIGNED | object_layout.C_CONTIGUOUS
        flags |= object_layout.WRITEABLE if self.is_written else 0
        first, *others = entry.dtype_numbers(self.dtype)
        numbers = -first if first >= _OTHER_NUMBER else 1 << first
        numbers += sum([1 << number for number in others])
        return flags, numbers, len(self.shape), *self.shape


def function(
    name, code, symbols, arguments, addresses, errors=(), long=False, calls_blas=False
):  # fmt: skip
    """Return a Python function of arrays that runs functions of a library, ``code``.

    ``symbols`` are names of functions ``i64 f(ptr context)``, which run in this order
    until one does not return 0. ``arguments`` has an `Expected` each; ``addresses`` has
    a pair of an argument's number and a byte offset for each entry of the context, or
    of `WORD` and a number or the name of a function; the sizes of the axes of
    `ANY_SIZE` follow. ``errors`` are
    the results if a function returns 1, 2 and so on. ``long`` says whether other Python
    threads may run meanwhile; ``calls_blas`` whether products of BLAS run on one thread
    each.

    The function returns True, and does nothing, if an argument is not as expected, else
    None or an error.
    """
    threads = blas.symbols() if calls_blas else {}
    between = [threads.get(f"tw_blas_{end}", 0) for end in ("enter", "leave")]
    words = [len(arguments), len(addresses), len(symbols), long, *between]
    for argument in arguments:
        words.extend(argument.words)
    for argument, word in addresses:
        is_name = isinstance(word, str)
        words += [argument, code.address(word) if is_name else word]
    words.extend([code.address(symbol) for symbol in symbols])
    table = np.array(words, np.int64)
    return entry.builtin(library(), "tw_call", (table, code, *errors), name)


@runtime.once
def library():
    """Compile `tw_call`, once."""
    writer = Writer()
    with writer.function("tw_call", entry.PARAMETERS, POINTER, "nounwind") as given:
        _Body(writer, *given).write()
    return engine.compiled(writer.text(), "trampoline", entry.symbols(), level=0)


class _Body:
    """Writes `tw_call`. ``cursor`` is the position of the next word of the table to read."""

    def __init__(self, writer, constants, args, count):
        self.writer, self.constants = writer, constants
        self.args, self.count = args, count
        table = entry.constant(writer, constants, 0)
        self.table = entry.array_data(writer, table)
        self.head = {field: self.word(n) for n, field in enumerate(_HEAD)}

    def word(self, n, dtype=_I64):
        return self.writer.load(self.writer.at(self.table, n, dtype), dtype)

    def refuse_unless(self, condition):
        entry.refuse_unless(self.writer, self.constants, condition)

    def write(self):
        writer, head = self.writer, self.head
        self.refuse_unless(self.count == head["arguments"])
        cursor, size = self.check_arguments()
        context = writer.assigned(
            POINTER, f"alloca i64, i64 {(head['addresses'] + 1).text}, align 64"
        )
        cursor = self.fill(context, cursor)
        writer.store(size, writer.at(context, head["addresses"], _I64))
        error = self.run(context, cursor)
        with writer.when(error != 0):  # behind the table and the library
            writer.ret(entry.constant_at(writer, self.constants, error + 1))
            writer.begin(writer.fresh("unreachable"))
        writer.ret(entry.none(writer, self.constants))

    def check_arguments(self):
        """Return the position behind the arguments, and the sizes of axes of `ANY_SIZE`."""
        writer = self.writer
        carried = [writer.index(len(_HEAD)), writer.index(ANY_SIZE)]
        with writer.carrying_loop(0, self.count, 1, carried) as (n, carried):
            cursor, size = carried
            array = entry.argument(writer, self.args, n)
            flags, numbers, rank = [self.word(cursor + i) for i in range(3)]
            right = entry.is_array(writer, self.constants, array)
            self.refuse_unless(right)
            number, is_native = entry.array_dtype(writer, array)
            number = writer.cast(writer.bitcast(number, np.uint32), _I64)
            is_known = number < _OTHER_NUMBER
            bit = writer.select(is_known, number, writer.index(_OTHER_NUMBER))
            is_one = writer.select(
                numbers < 0, number == -numbers, (numbers >> bit) & 1 != 0
            )
            right = is_native & is_one
            has = writer.cast(entry.array_flags(writer, array), _I64)
            right = right & (has & flags == flags)
            has = writer.cast(entry.array_rank(writer, array), _I64)
            self.refuse_unless(right & (has == rank))
            with writer.carrying_loop(0, rank, 1, [size]) as (axis, sizes):
                expected = self.word(cursor + 3 + axis)
                actual, known = entry.array_size(writer, array, axis), sizes[0]
                is_open = expected == ANY_SIZE
                known = writer.select(known == ANY_SIZE, actual, known)
                self.refuse_unless(actual == writer.select(is_open, known, expected))
                sizes[0] = writer.select(is_open, actual, sizes[0])
            carried[:] = [cursor + rank + 3, sizes[0]]
        return carried

    def fill(self, context, cursor):
        """Write the addresses and sizes into the context; return the position behind."""
        writer, count = self.writer, self.head["addresses"]
        with writer.loop(0, count) as n:
            argument, word = [self.word(cursor + n * 2 + i) for i in range(2)]
            entry_address = writer.at(context, n, POINTER)
            writer.store(word, entry_address)
            with writer.when(argument != WORD):
                array = entry.argument(writer, self.args, argument)
                address = writer.at(entry.array_data(writer, array), word, np.uint8)
                writer.store(address, entry_address)
        return cursor + count * 2

    def run(self, context, cursor):
        """Run the functions; return the result of the first that failed, or 0."""
        writer, head = self.writer, self.head
        state, error = writer.alloca(POINTER), writer.alloca(_I64)
        with writer.when(head["releases_gil"] != 0):
            writer.store(entry.release_gil(writer), state)
        self.run_if_any("enter")
        writer.store(writer.index(0), error)
        with writer.loop(0, head["functions"]) as n:
            with writer.when(writer.load(error, _I64) == 0):
                function = self.word(cursor + n, POINTER)
                result = atomics.call_address(writer, function, [context], _I64)
                writer.store(result, error)
        self.run_if_any("leave")
        with writer.when(head["releases_gil"] != 0):
            entry.retake_gil(writer, writer.load(state, POINTER))
        return writer.load(error, _I64)

    def run_if_any(self, field):
        with self.writer.when(self.head[field] != 0):
            function = self.word(_HEAD.index(field), POINTER)
            atomics.call_address(self.writer, function, [])
