"""Pooling along an axis as machine code: each entry from the taps of its windows.

Each entry of the output is computed in one go and written once, for every op: in
pooling from the entries of its window, in gradients from the windows that contain it.
So threads share the entries, sums keep their order, and the innermost loop is over the
axes behind the pooled one. Tap by tap the values equal those of the kernels in
`ops.convolution.pooling`.
"""

import copy
import functools
from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from tapewright.ops.convolution.pooling import shares_of
from tapewright.ops.convolution.windows import (
    window_positions,
)

from ...loops.accesses import layout_of, row_major
from ...loops.contraction_schedule import greatest_divisor
from ...program.kernel import around
from ...program.windows import SpreadToMaxima, Windows
from .kernel import NativeKernel, block_function, call_blocks
from .math_functions import scalar_function

__all__ = [
    "MaxKernel",
    "MeanKernel",
    "PickKernel",
    "SpreadKernel",
    "SpreadMeansKernel",
]


class Meeting(NamedTuple):
    """A tap, and the index that it reads; ``valid`` is a bool, None if it is always valid."""

    tap: int
    place: object
    valid: object = None


class Geometry(NamedTuple):
    """Tap ``t`` of output entry ``p`` reads entry ``(p * a + t * b + c) / d``, if integral.

    ``extent`` and ``met``: the number of entries along the axis of the output, and of
    the array that is read. Output entries come in groups of ``d``, each of which reads
    the next ``a`` entries.
    """

    taps: int
    extent: int
    met: int
    a: int
    b: int
    c: int
    d: int

    @property
    def groups(self):
        return -(-self.extent // self.d)

    @property
    def offsets(self):
        """For each entry of a group the taps, and the indices minus ``a`` times the group."""
        whole = [
            [(t, j * self.a + t * self.b + self.c) for t in range(self.taps)]
            for j in range(self.d)
        ]
        return [
            [(t, n // self.d) for t, n in each if n % self.d == 0] for each in whole
        ]

    def inner(self, first):
        """The range of full groups, as a pair, whose taps are all in bounds."""
        last = self.extent // self.d
        for offset in [offset for each in self.offsets for _, offset in each]:
            first = max(first, -(offset // self.a))
            last = min(last, (self.met - 1 - offset) // self.a + 1)
        return first, max(first, last)


class WindowKernel(Windows, NativeKernel):
    """An op along an axis; a subclass computes one entry of its output, in `value`.

    ``count`` is the number of slices of a `SliceLoop`, or None.
    """

    __slots__ = ("count",)
    takes_any_slices = True
    most_taps = most_stride = 32

    def __init__(self, replaced, limits):
        super().__init__(replaced, limits)
        self.count = None

    @property
    def geometry(self):
        extent, size, stride, _, dilation = self.window
        before, _, count = window_positions(*self.window)
        if self.spreads:
            return Geometry(size, extent, count, 1, -dilation, before, stride)
        return Geometry(size, count, extent, stride, dilation, -before, 1)

    @property
    def blocks(self):
        """``(count, rows, groups)``: blocks of rows in front of the axis, groups along it."""
        (out,), groups = self.outputs, self.geometry.groups
        least = self.limits.kernel_work
        lead, _, _ = around(out.shape, self.axis)
        one = max(1, self.work // (lead * groups))
        width = min(groups, max(1, least // one))
        rows = max(1, least // (one * groups)) if width == groups else 1
        if self.count is not None:
            rows = greatest_divisor(lead // self.count, rows)
        return -(-lead // rows) * -(-groups // width), rows, width

    @property
    def slices(self):
        """The number of slices: ``count`` if set, else for slices of a minimal size."""
        (out,) = self.outputs
        if self.count is not None or self.axis % len(out.shape) == 0:
            return self.count
        return greatest_divisor(out.shape[0], out.size // self.limits.slice_entries)

    def in_slices(self, count):
        lead, _, _ = around(self.outputs[0].shape, self.axis)
        if lead % count or not all([_is_whole(a) for a in self.operands]):
            return None
        twin = copy.copy(self)
        twin.count = count
        return twin

    def is_sliced(self, array, count):
        return self.count == count

    def write_slice(self, writer, name, context, number, thread):
        count, _, _ = self.blocks
        each = count // self.count
        with writer.loop(number * each, (number + 1) * each) as block:
            writer.call(name, [context, block], declare=False)

    def write(self, writer, name, arguments):
        count, _, _ = self.blocks
        call_blocks(writer, name, arguments.context, count, self.work)

    def define(self, writer, name, places):
        arrays, distinct = (*self.operands, *self.outputs), {}
        for each in arrays:  # one of several in the same place
            layout = layout_of(each)
            distinct.setdefault((places[layout.base], layout.offset), []).append(each)
        buffers = [same[0] for same in distinct.values()]
        with block_function(writer, name, places, buffers) as (given, block):
            found = {a: at for same, at in zip(distinct.values(), given) for a in same}
            pointers = [found[a] for a in arrays]
            with writer.exact():
                at = functools.partial(_Entries, self, writer, name, pointers)
                self.write_block(writer, at, block)

    def write_block(self, writer, entries, block):
        """Write the loops over entries; ``entries(row, i)`` are the entries at an index."""
        geometry = self.geometry
        lead, _, _ = around(self.outputs[0].shape, self.axis)
        (_, rows, width), groups = self.blocks, geometry.groups
        parts = -(-groups // width)
        # The last block stops behind the axis: what it writes ends with `inner` and `end`.
        above, start, stop = block * rows, writer.index(0), writer.index(groups)
        if parts > 1:
            above = block / parts
            start = (block - above * parts) * width
            stop = start + width
        low, high = [_least(_most(n, start), stop) for n in geometry.inner(self.first)]
        end = _least(stop * geometry.d, writer.index(geometry.extent))
        margins = (start * geometry.d, low * geometry.d), (high * geometry.d, end)
        with writer.loop(above, _least(above + rows, writer.index(lead))) as row:
            with writer.loop(low, high) as group:
                met = [
                    [Meeting(t, group * geometry.a + offset) for t, offset in each]
                    for each in geometry.offsets
                ]
                first = group * geometry.d
                with self.behind(writer) as i:
                    at = entries(row, i)
                    values = [self.value(at, first + j, m) for j, m in enumerate(met)]
                    for j, value in enumerate(values):
                        at.store(value, first + j)
            self.write_margins(writer, entries, row, margins)

    def write_margins(self, writer, entries, row, margins):
        """Write the entries for which some taps may be out of bounds."""
        geometry = self.geometry
        (first, stop), (second, end) = margins
        before = stop - first
        with writer.loop(0, before + (end - second)) as k:
            place = writer.select(k < before, first + k, second + (k - before))
            met = [self.meeting(writer, place, t) for t in range(geometry.taps)]
            with self.behind(writer) as i:
                at = entries(row, i)
                at.store(self.value(at, place, met), place)

    def meeting(self, writer, place, tap):
        """The entry that a tap reads: the first entry, not valid, if out of bounds."""
        geometry = self.geometry
        number = place * geometry.a + (tap * geometry.b + geometry.c)
        met = number / geometry.d
        valid = (met * geometry.d == number) & (met >= 0) & (met < geometry.met)
        return Meeting(tap, writer.select(valid, met, writer.index(0)), valid)

    def behind(self, writer):
        """The loop over the entries behind the axis."""
        _, _, tail = around(self.outputs[0].shape, self.axis)
        return writer.loop(0, tail, metadata=writer.stays_loop(tail))

    @property
    def first(self):
        """The first group that needs no bounds checks."""
        return 0

    @abstractmethod
    def value(self, at, place, met):
        """Compute entry ``place`` of the output along the axis, from the entries it reads."""


class _Entries:
    """The arrays of a kernel, at one position in front of and behind the axis."""

    def __init__(self, kernel, writer, name, pointers, row, i):
        self.kernel, self.writer, self.name = kernel, writer, name
        self.pointers, self.row, self.i = pointers, row, i

    def address(self, n, place):
        array = (*self.kernel.operands, *self.kernel.outputs)[n]
        _, extent, tail = around(array.shape, self.kernel.axis)
        first = (self.row * extent + place) * tail
        line = self.writer.at(self.pointers[n], first, array.dtype)
        return self.writer.at(line, self.i, array.dtype), array.dtype

    def load(self, n, place, valid=None, other=0):
        """An entry of operand ``n``, or a default where it is not valid."""
        x = self.writer.load(*self.address(n, place))
        return x if valid is None else self.writer.select(valid, x, other)

    def store(self, value, place):
        address, _ = self.address(-1, place)
        self.writer.store(value, address)

    def const(self, number):
        """A constant of the output's dtype."""
        return self.writer.const(number, self.kernel.outputs[0].dtype)

    def share(self, window):
        """One over the number of entries in a window."""
        writer, dtype = self.writer, self.kernel.outputs[0].dtype
        shares = shares_of(*self.kernel.window)
        if not isinstance(shares, np.ndarray):
            return self.const(shares)
        listed = [writer.const(x, dtype) for x in shares.astype(dtype)]
        return writer.load(
            writer.at(writer.table(f"{self.name}.shares", listed), window, dtype), dtype
        )


class MaxKernel(WindowKernel):
    """`window_max`."""

    __slots__ = ()

    def value(self, at, place, met):
        (out,), largest = self.outputs, None
        lowest = -np.inf if out.dtype.kind == "f" else np.iinfo(out.dtype).min
        for each in met:
            x = at.load(0, each.place, each.valid, lowest)
            if largest is not None:
                x = scalar_function(at.writer, "maximum", (largest, x), out.dtype)
            largest = x
        return largest


class MeanKernel(WindowKernel):
    """`window_mean`."""

    __slots__ = ()

    def value(self, at, place, met):
        total = None if self.is_everywhere else at.const(0)
        for each in met:
            x = at.load(0, each.place, each.valid)
            total = x if total is None else total + x
        return total * at.share(place)


class SpreadMeansKernel(WindowKernel):
    """`spread_means`."""

    __slots__ = ()
    spreads = True

    def value(self, at, place, met):
        total = at.const(0)
        for each in met:
            x = at.load(0, each.place) * at.share(each.place)
            total = total + _or_zero(x, each.valid)
        return total


class PickKernel(WindowKernel):
    """`pick_at_maxima`; the operands are the array to pick from, the input and its maxima."""

    __slots__ = ()

    def value(self, at, place, met):
        total, taken = at.const(0), None
        maximum = at.load(2, place)
        for each in met:
            hit = _both(at.load(1, each.place) == maximum, each.valid)
            first = hit if taken is None else hit & ~taken
            taken = hit if taken is None else hit | taken
            total = total + _or_zero(at.load(0, each.place), first)
        return total


class SpreadKernel(SpreadToMaxima, WindowKernel):
    """`spread_to_maxima`; the operands are cotangents, the input and its maxima."""

    __slots__ = ()
    most_taps = 12  # each looks at all before it

    @property
    def first(self):
        """The first group for which all taps of its windows are in bounds."""
        dilation, groups = self.window[-1], enumerate(self.geometry.offsets)
        starts = [j - t * dilation for j, each in groups for t, _ in each]
        return max([-(start // self.geometry.d) for start in starts], default=0)

    def value(self, at, place, met):
        total = at.const(0)
        if self.halves:
            pair = [each for each in met if each.valid is None]
            return self.half(at, place, *pair) if pair else total
        for each in met:
            hit = _both(self.is_first(at, place, each), each.valid)
            total = total + _or_zero(at.load(0, each.place), hit)
        return total

    def half(self, at, place, window):
        """The cotangent of a window of two if the entry is the larger one, else 0."""
        tap = window.tap
        first = at.load(1, place - tap) >= at.load(1, place + (1 - tap))
        return _or_zero(at.load(0, window.place), ~first if tap else first)

    def is_first(self, at, place, meeting):
        """Return whether an entry is the first maximum of a window."""
        maximum, taken = at.load(2, meeting.place), None
        for tap in range(meeting.tap):
            earlier = place - (meeting.tap - tap) * self.window[-1]
            valid = None
            if meeting.valid is not None:
                valid = earlier >= 0
                earlier = at.writer.select(valid, earlier, at.writer.index(0))
            hit = _both(at.load(1, earlier) == maximum, valid)
            taken = hit if taken is None else taken | hit
        hit = at.load(1, place) == maximum
        return hit if taken is None else hit & ~taken


def _is_whole(array):
    """Return whether an array covers all of its memory, in C order."""
    layout = layout_of(array)
    strides = row_major(array.shape)
    return layout.base.size == array.size and layout[1:] == (0, strides)


def _both(condition, valid):
    return condition if valid is None else condition & valid


def _or_zero(x, condition):
    return x if condition is None else x.writer.select(condition, x, 0)


def _least(a, b):
    return b.writer.select(a < b, a, b)


def _most(n, b):
    return b.writer.select(b > n, b, b.writer.index(n))
