"""Gather and scatter along an axis as machine code: check all indices, then move rows.

Several threads scatter into disjoint rows, each in the order of the indices, so that
sums do not depend on the number of threads.
"""

import numpy as np

from tapewright.ops.nn.cross_entropy import check_labels

from ....program.instructions.kernel import around, axis_of_rows, bits_of
from .kernel import NativeKernel, block_function, call_blocks

MOST_BLOCKS = 16  # of a scatter: each looks at all indices


class GatherKernel(NativeKernel):
    """Gather rows of the first operand at the indices of the second."""

    __slots__ = ()
    can_fail, skips = True, False

    @classmethod
    def accepts(cls, gather):
        source, indices = gather.operands
        whole, picks = source.size and indices.size, indices.dtype.kind in "iu"
        return bool(whole and picks and bits_of(source.dtype))

    @property
    def sizes(self):
        """Rows before the axis, along it, entries of a row behind it, and indices."""
        source, indices = self.operands
        return *around(source.shape, axis_of_rows(self.replaced)), indices.size

    @property
    def blocks(self):
        """``(count, rows)``: the blocks of gathered rows."""
        lead, _, tail, count = self.sizes
        rows = max(1, self.limits.kernel_work // tail)
        return -(-lead * count // rows), rows

    def define(self, writer, name, index_of):
        (out,), (source, indices) = self.outputs, self.operands
        lead, size, tail, count = self.sizes
        bits, (_, rows) = bits_of(source.dtype), self.blocks
        with block_function(writer, name, index_of, (source, indices, out)) as (
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
                self.write_row(writer, index, a, b, bits)

    def write_row(self, writer, index, a, b, bits):
        """Copy a row from ``a`` to ``b``."""
        with writer.loop(0, self.sizes[2]) as i:
            x = writer.load(writer.at(a, i, bits), bits)
            writer.store(x, writer.at(b, i, bits))

    def write(self, writer, name, arguments):
        _, indices = self.operands
        _, size, _, count = self.sizes
        given = arguments[indices], count, indices.dtype, size
        outside = _is_outside(writer, *given, self.skips)
        go_on, done = writer.fresh("inside"), writer.fresh("gathered")
        writer.branch(outside, done, go_on)
        writer.begin(go_on)
        blocks, _ = self.blocks
        call_blocks(writer, name, arguments.context, blocks, self.work)
        writer.jump(done)
        writer.begin(done)
        return outside


class ScatterKernel(NativeKernel):
    """Scatter-add rows of the first operand into zeros at the indices of the second.

    ``skips``: negative indices are ignored, instead of being invalid.
    """

    __slots__ = ()
    can_fail, skips = True, False

    @classmethod
    def accepts(cls, scatter):
        (rows, indices), (out,) = scatter.operands, scatter.outputs
        whole = rows.size and out.size and out.dtype.kind in "fiu"
        picks = indices.dtype.kind in "iu"
        return bool(whole and picks and out.dtype.char != "e")

    @property
    def sizes(self):
        """Rows before the axis, along it, entries of a row behind it, and indices."""
        shape = self.outputs[0].shape
        return *around(shape, axis_of_rows(self.replaced)), self.operands[1].size

    @property
    def blocks(self):
        """``(count, rows)``: the blocks of rows along the axis."""
        lead, size, tail, _ = self.sizes
        count = max(1, lead * size * tail // self.limits.kernel_work)
        count = min(count, MOST_BLOCKS, size)
        rows = -(-size // count)
        return -(-size // rows), rows

    def define(self, writer, name, index_of):
        (out,), (rows, indices) = self.outputs, self.operands
        lead, size, tail, count = self.sizes
        dtype, (_, width) = out.dtype, self.blocks
        with block_function(writer, name, index_of, (rows, indices, out)) as (
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
                    row = _index_at(writer, indices_at, k, indices.dtype) - start
                    with writer.when((row >= 0) & (row < own)):
                        a = writer.at(rows_at, (above * count + k) * tail, dtype)
                        b = writer.at(first, row * tail, dtype)
                        with writer.loop(0, tail) as i:
                            address = writer.at(b, i, dtype)
                            total = writer.load(address, dtype)
                            x = writer.load(writer.at(a, i, dtype), dtype)
                            writer.store(total + x, address)

    write = GatherKernel.write


class SegmentSumKernel(ScatterKernel):
    """`unsorted_segment_sum`: sums of the rows with equal ids, ignoring negative ids."""

    __slots__ = ()
    skips = True


class SegmentRowsKernel(GatherKernel):
    """`segment_rows`: the row of each id, zeros for an id without a row."""

    __slots__ = ()
    can_fail = False

    def write_row(self, writer, index, a, b, bits):
        _, size, tail, _ = self.sizes
        has_row = (index >= 0) & (index < size)
        with writer.when(has_row):
            super().write_row(writer, index, a, b, bits)
        with writer.when(~has_row), writer.loop(0, tail) as i:
            writer.store(writer.const(0, bits), writer.at(b, i, bits))

    def write(self, writer, name, arguments):
        blocks, _ = self.blocks
        call_blocks(writer, name, arguments.context, blocks, self.work)


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


def _is_outside(writer, indices, count, dtype, size, skips=False):
    """Return True if an index is too large, or negative; ``skips`` allows negative ones."""
    is_outside = writer.alloca(np.int64)
    writer.store(writer.index(0), is_outside)
    with writer.loop(0, count) as k:
        index, limit = _index_at(writer, indices, k, dtype), writer.index(size)
        if not skips or dtype.kind == "u":  # then negative ones become too large
            index, limit = [writer.bitcast(x, np.uint64) for x in (index, limit)]
        wrong = writer.cast(index >= limit, np.int64)
        writer.store(writer.load(is_outside, np.int64) | wrong, is_outside)
    return writer.load(is_outside, np.int64) != 0


def _at_most(writer, width, rest):
    return writer.select(rest < width, rest, writer.index(width))
