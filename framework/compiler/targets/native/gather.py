"""Gather and scatter along an axis as machine code: check all indices, then move rows.

Several threads scatter into disjoint rows, each in the order of the indices, so that
sums do not depend on the number of threads.
"""

import numpy as np

from tapewright.ops.nn.cross_entropy import check_labels

from ...program.kernel import around, bits_of
from .kernel import NativeKernel, block_function, call_blocks

__all__ = ["GatherKernel", "RangeKernel", "ScatterKernel"]

MOST_BLOCKS = 16  # of a scatter: each looks at all indices


class GatherKernel(NativeKernel):
    """Gather rows of the first operand at the indices of the second."""

    __slots__ = ()
    can_fail = True

    @classmethod
    def accepts(cls, gather):
        whole = gather.source.size and gather.indices.size
        picks = gather.indices.dtype.kind in "iu"
        return bool(whole and picks and bits_of(gather.source.dtype))

    @property
    def sizes(self):
        """Rows before the axis, along it, entries of a row behind it, and indices."""
        source, indices = self.operands
        return *around(source.shape, self.replaced.axis), indices.size

    @property
    def blocks(self):
        """``(count, rows)``: the blocks of gathered rows."""
        lead, _, tail, count = self.sizes
        rows = max(1, self.limits.kernel_work // tail)
        return -(-lead * count // rows), rows

    def define(self, writer, name, places):
        (out,), (source, indices) = self.outputs, self.operands
        lead, size, tail, count = self.sizes
        bits, (_, rows) = bits_of(source.dtype), self.blocks
        with block_function(writer, name, places, (source, indices, out)) as (
            (source_at, indices_at, out_at),
            block,
        ):
            start = block * rows
            with writer.loop(0, _at_most(writer, rows, lead * count - start)) as k:
                row = start + k
                above = row / count
                index = _index_at(
                    writer, indices_at, row - above * count, indices.dtype
                )
                a = writer.at(source_at, (above * size + index) * tail, bits)
                b = writer.at(out_at, row * tail, bits)
                with writer.loop(0, tail) as i:
                    x = writer.load(writer.at(a, i, bits), bits)
                    writer.store(x, writer.at(b, i, bits))

    def write(self, writer, name, arguments):
        _, indices = self.operands
        _, size, _, count = self.sizes
        outside = _is_outside(writer, arguments[indices], count, indices.dtype, size)
        go_on, done = writer.fresh("inside"), writer.fresh("gathered")
        writer.branch(outside, done, go_on)
        writer.begin(go_on)
        blocks, _ = self.blocks
        call_blocks(writer, name, arguments.context, blocks, self.work)
        writer.jump(done)
        writer.begin(done)
        return outside


class ScatterKernel(NativeKernel):
    """Scatter-add rows of the first operand into zeros at the indices of the second."""

    __slots__ = ()
    can_fail = True

    @classmethod
    def accepts(cls, scatter):
        (out,) = scatter.outputs
        whole = scatter.rows.size and out.size and out.dtype.kind in "fiu"
        picks = scatter.indices.dtype.kind in "iu"
        return bool(whole and picks and out.dtype.char != "e")

    @property
    def sizes(self):
        """Rows before the axis, along it, entries of a row behind it, and indices."""
        shape = self.outputs[0].shape
        return *around(shape, self.replaced.axis), self.operands[1].size

    @property
    def blocks(self):
        """``(count, rows)``: the blocks of rows along the axis."""
        lead, size, tail, _ = self.sizes
        count = max(1, lead * size * tail // self.limits.kernel_work)
        count = min(count, MOST_BLOCKS, size)
        rows = -(-size // count)
        return -(-size // rows), rows

    def define(self, writer, name, places):
        (out,), (rows, indices) = self.outputs, self.operands
        lead, size, tail, count = self.sizes
        dtype, (_, width) = out.dtype, self.blocks
        with block_function(writer, name, places, (rows, indices, out)) as (
            (rows_at, indices_at, out_at),
            block,
        ):
            start = block * width
            own = _at_most(writer, width, size - start)
            with writer.loop(0, lead) as above:
                first = writer.at(out_at, (above * size + start) * tail, dtype)
                with writer.loop(0, own * tail) as i:
                    writer.store(writer.const(0, dtype), writer.at(first, i, dtype))
                with writer.loop(0, count) as k:
                    place = _index_at(writer, indices_at, k, indices.dtype) - start
                    with writer.when((place >= 0) & (place < own)):
                        a = writer.at(rows_at, (above * count + k) * tail, dtype)
                        b = writer.at(first, place * tail, dtype)
                        with writer.loop(0, tail) as i:
                            address = writer.at(b, i, dtype)
                            total = writer.load(address, dtype)
                            x = writer.load(writer.at(a, i, dtype), dtype)
                            writer.store(total + x, address)

    write = GatherKernel.write


class RangeKernel(NativeKernel):
    """Check that all labels are at least 0 and less than the number of classes."""

    __slots__ = ()
    can_fail = True

    @classmethod
    def accepts(cls, check):
        (x,) = check.operands
        return check.function is check_labels and bool(x.size)

    def write(self, writer, name, arguments):
        (labels,), classes = self.operands, self.replaced.keywords["classes"]
        return _is_outside(
            writer, arguments[labels], labels.size, labels.dtype, classes
        )


def _index_at(writer, indices, k, dtype):
    """Return entry ``k`` of an integer array as a 64-bit integer."""
    return writer.cast(writer.load(writer.at(indices, k, dtype), dtype), np.int64)


def _is_outside(writer, indices, count, dtype, size):
    """Return a bool: whether an index is negative or too large."""
    found = writer.alloca(np.int64)
    writer.store(writer.index(0), found)
    with writer.loop(0, count) as k:
        index = writer.bitcast(_index_at(writer, indices, k, dtype), np.uint64)
        wrong = writer.cast(index >= writer.const(size, np.uint64), np.int64)
        writer.store(writer.load(found, np.int64) | wrong, found)
    return writer.load(found, np.int64) != 0


def _at_most(writer, width, rest):
    return writer.select(rest < width, rest, writer.index(width))
