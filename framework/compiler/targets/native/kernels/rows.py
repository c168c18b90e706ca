"""Gather rows of an array by machine code: this cuts batches from data in memory.

A row of a data set in main memory stalls on its first cache lines, since no two rows of
a shuffled batch are neighbours. So the code prefetches the lines of a row while it
copies the rows before it, and threads share the rows. One function serves all shapes
and dtypes.
"""

import numpy as np

from ..jit import engine, entry, runtime
from ..llvm_writer import POINTER, Writer

BLOCK = 1 << 17  # bytes that a thread takes at a time, at least
AHEAD = 2  # rows between the one that is asked for and the one that is copied
LINE = 64
# Arguments of llvm.prefetch: the first cache holds few lines.
_READ = 0
_SECOND_CACHE = 2
_DATA = 1

# The context of the blocks: addresses and integers of 8 bytes each.
_FIELDS = ("out", "source", "rows", "count", "width", "step")
_KINDS = dict(zip(_FIELDS, [POINTER] * 3 + [np.int64] * 3, strict=True))


def gather_rows():
    """Return ``gather(out, source, rows)``, which does ``out[:] = source[rows]``.

    ``out`` and ``source`` are byte arrays of rank 2, ``rows`` an int64 array. It
    returns True, and does nothing, if they are not, or if a row is out of range.
    Nothing may write to ``rows`` meanwhile: other Python threads can run.
    """
    return _compiled()


@runtime.once
def _compiled():
    writer = Writer()
    _write_block(writer)
    with writer.function("gather", entry.PARAMETERS, POINTER, "nounwind") as given:
        constants, args, number = given
        entry.refuse_unless(writer, constants, entry.check_count(writer, number, 3))
        out, source, rows = [entry.argument(writer, args, n) for n in range(3)]
        for array, rank, dtype in ((out, 2, np.uint8), (source, 2, np.uint8),
                                   (rows, 1, np.int64)):  # fmt: skip
            right = entry.check_array(
                writer, constants, array, (None,) * rank, dtype, array is out
            )
            entry.refuse_unless(writer, constants, right)
        count, width = [entry.array_size(writer, out, axis) for axis in (0, 1)]
        right = (entry.array_size(writer, rows, 0) == count) & (
            entry.array_size(writer, source, 1) == width
        )
        entry.refuse_unless(writer, constants, right)
        picked = entry.array_data(writer, rows)
        size = entry.array_size(writer, source, 0)
        entry.refuse_unless(writer, constants, _are_inside(writer, picked, count, size))
        blocks = writer.binary("div", count * width + (BLOCK - 1), BLOCK)
        blocks = writer.select(blocks > 1, blocks, writer.index(1))
        step = writer.binary("div", count + (blocks - 1), blocks)
        values = (
            entry.array_data(writer, out),
            entry.array_data(writer, source),
            *(picked, count, width, step),
        )
        context = writer.alloca(np.int64, len(_FIELDS))
        for n, value in enumerate(values):
            writer.store(value, writer.at(context, n, np.int64))
        state = entry.release_gil(writer)
        runtime.parallel(writer, "gather.block", context, blocks)
        entry.retake_gil(writer, state)
        writer.ret(entry.none(writer, constants))
    symbols = {**runtime.symbols(), **entry.symbols()}
    library = engine.compiled(writer.text(), "gather", symbols)
    return entry.builtin(library, "gather")


def _are_inside(writer, rows, count, size):
    """Return a bool: whether each index is a row, counted from the first."""
    outside = writer.alloca(np.int64)
    writer.store(writer.index(0), outside)
    size = writer.bitcast(size, np.uint64)
    with writer.loop(0, count) as k:
        row = writer.load(writer.at(rows, k, np.int64), np.int64)
        wrong = writer.cast(writer.bitcast(row, np.uint64) >= size, np.int64)
        writer.store(writer.load(outside, np.int64) | wrong, outside)
    return writer.load(outside, np.int64) == 0


def _write_block(writer):
    """Append ``gather.block(context, block)``: ``step`` rows, or the remaining ones."""
    parameters = [("context", POINTER), ("block", np.int64)]
    with writer.function("gather.block", parameters, None, "nounwind") as given:
        context, block = given
        out, source, rows, count, width, step = [
            writer.load(writer.at(context, n, np.int64), _KINDS[field])
            for n, field in enumerate(_FIELDS)
        ]

        def row(k):
            index = writer.load(writer.at(rows, k, np.int64), np.int64)
            return writer.at(source, index * width, np.uint8)

        first, last = block * step, count - 1
        stop = writer.select(first + step < count, first + step, count)
        hints = [writer.const(n, np.int32) for n in (_READ, _SECOND_CACHE, _DATA)]
        with writer.loop(first, stop) as k:
            ahead = row(writer.select(k + AHEAD < last, k + AHEAD, last))
            with writer.loop(0, width, LINE) as at:
                line = writer.at(ahead, at, np.uint8)
                writer.call("llvm.prefetch.p0", [line, *hints])
            target = writer.at(out, k * width, np.uint8)
            writer.call("memcpy", [target, row(k), width], POINTER)
        writer.ret()
