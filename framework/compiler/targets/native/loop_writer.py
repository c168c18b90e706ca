"""Write loop nests as LLVM functions."""

import functools
import operator

import numpy as np

from ...loops.index_splitting import split_indices
from ...loops.statements import (
    Accumulate,
    Compute,
    Load,
    Local,
    Loop,
    Reset,
    Select,
    Span,
    Store,
    identity_of,
    statements_in,
)
from .llvm_writer import POINTER, IRValue
from .math_functions import scalar_function

MANY = 64  # iterations inside of an outer loop that is not unrolled
LONG = 64  # statements of a function whose short loops are not unrolled

_REDUCTIONS = {"add": "add", "multiply": "mul"}


def write_nest(writer, nest, name, index_of, open_axis=None, extent_at=None):
    """Write the functions of a nest.

    ``void name(ptr context, i64 block)`` runs one block, ``void name.finish(ptr
    context)`` the statements after all blocks, if there are any. ``context`` points to
    the addresses of the arrays; ``index_of`` maps each array to the number of its
    address, which arrays that share memory share. The extent of ``open_axis`` is read
    at index ``extent_at``.
    """
    numbers = list(
        dict.fromkeys([index_of[a] for a in (*nest.operands, *nest.outputs)])
    )
    if open_axis is not None:
        numbers.append(extent_at)
    _Function(writer, nest, index_of, numbers, open_axis).write(name, nest.body, True)
    if nest.finish:
        _Function(writer, nest, index_of, numbers).write(
            f"{name}.finish", nest.finish, False
        )


class _Function:
    def __init__(self, writer, nest, index_of, numbers, open_axis=None):
        self.writer, self.nest, self.index_of = writer, nest, index_of
        self.numbers, self.open_axis, self.extent = numbers, open_axis, None
        self.pointers, self.values = {}, {}
        self.indices = {}  # axis -> its index, and the start of its strip

    def write(self, name, body, in_blocks):
        """Write a function that reads the addresses, and the one that it calls with them.

        As parameters, the addresses can be declared not to alias.
        """
        writer, inner = self.writer, f"{name}.body"
        arrays = [(f"p{i}", POINTER, "noalias") for i in range(len(self.numbers))]
        block = [("block", np.int64)] if in_blocks else []
        attributes = 'alwaysinline nounwind "prefer-vector-width"="512"'
        with writer.function(
            inner, [*arrays, *block], None, attributes, "internal"
        ) as given:
            self.pointers = dict(zip(self.numbers, given))
            for local in self.nest.locals:
                self.pointers[local] = writer.alloca(local.dtype, local.size)
            if self.open_axis is not None:
                self.extent = writer.address_as_integer(given[len(self.numbers) - 1])
            if in_blocks:
                self.indices[self.nest.blocks] = given[-1], None
            body = split_indices(body)
            self.is_long = len([*statements_in(body)]) > LONG
            self.statements(body)
            writer.ret()
        attributes = 'nounwind noinline "prefer-vector-width"="512"'
        with writer.function(
            name, [("context", POINTER), *block], None, attributes
        ) as given:
            context, *rest = given
            addresses = [
                writer.load(writer.at(context, n, POINTER), POINTER)
                for n in self.numbers
            ]
            writer.call(inner, [*addresses, *rest])
            writer.ret()

    # --- statements

    def statements(self, body):
        for each in body:
            _STATEMENTS[type(each)](self, each)

    def loop(self, loop):
        writer, axis = self.writer, loop.axis
        before, part = self.indices.get(axis), loop.part
        if loop.span is Span.STRIP:
            start = self.strip_start(axis, loop.width)
            first, stop = 0, self.strip_count(axis, loop.width, start)
            if part is not None:
                first, last = writer.index(part.start) - start, stop
                first = writer.select(first > 0, first, writer.index(0))
                stop = writer.index(part.stop) - start
                stop = writer.select(stop < last, stop, last)
            with writer.loop(first, stop) as k:
                self.indices[axis] = start + k, k
                self.statements(loop.body)
        elif loop.span is Span.STRIPS:
            with writer.loop(0, axis.extent, loop.width) as start:
                self.indices[axis] = start, start
                self.statements(loop.body)
        else:
            first, stop = (0, axis.extent) if part is None else (part.start, part.stop)
            metadata = self.metadata(loop, stop - first)
            with writer.loop(first, stop, metadata=metadata) as index:
                self.indices[axis] = index, index
                self.statements(loop.body)
        if before is None:
            self.indices.pop(axis)
        else:
            self.indices[axis] = before

    def metadata(self, loop, count):
        """Keep LLVM from unrolling a loop that would not be faster.

        This is an outer loop around many iterations, or an innermost loop that LLVM may
        vectorize. Unrolled, sums over rows of 5 keep their totals in registers, copies
        of rows of 12 are vectors of 8 and 4, and strided loads are shuffled. In a
        function of many loops that would take LLVM too long.
        """
        kinds = {type(each) for each in loop.body}
        if Loop in kinds and _entries(loop.body) >= MANY:
            return self.writer.rolled()
        if kinds & {Loop, Accumulate}:
            return ""
        strides = [
            x.access.stride(loop.axis) for x in loop.body if hasattr(x, "access")
        ]
        if not self.is_long and (kinds <= {Load, Store} or not {*strides} <= {0, 1}):
            return ""
        return self.writer.stays_loop(count)

    def strip_start(self, axis, width):
        """The first index of the current strip, of a loop or of the block."""
        if axis in self.indices:
            return self.indices[axis][0]
        number, _ = self.indices[self.nest.blocks]
        for other, other_width in reversed(self.nest.grid):
            if other is axis:
                break
            number /= -(-other.extent // other_width)
        (first, _), *_ = self.nest.grid
        if axis is not first:
            strips = self.writer.index(-(-axis.extent // width))
            number -= number / strips * strips
        return number * width

    def strip_count(self, axis, width, start):
        writer, extent = self.writer, axis.extent
        if axis is not self.open_axis and extent % width == 0:
            return writer.index(width)
        rest = writer.index(self.extent if axis is self.open_axis else extent) - start
        return self.writer.select(rest < width, rest, self.writer.index(width))

    def address(self, access):
        """The address of the entry that an access refers to here."""
        writer, array = self.writer, access.array
        local, bounds = type(array) is Local, dict(access.bounds)
        index = writer.index(access.offset)
        for axis, stride in access.strides:
            own, k = self.indices[axis]
            term = k if local else own
            if axis in bounds:  # the first entry of the range for indices out of it
                term = self.position(term, bounds[axis])
                term = writer.select(self.is_within({axis: bounds[axis]}), term, 0)
            term = term if stride == 1 else term * stride
            index = term if index.text == "0" else index + term
        pointer = self.pointers[array if local else self.index_of[array]]
        return writer.at(pointer, index, array.dtype)

    def position(self, index, bound):
        """The position of an index in a range."""
        index -= bound.start
        return index if bound.step == 1 else index / bound.step

    def is_within(self, bounds):
        """Return whether all indices are in their ranges."""
        conditions = []
        for axis, bound in dict(bounds).items():
            own, _ = self.indices[axis]
            conditions += [own >= bound.start, own < bound.stop]
            if bound.step > 1:
                position = self.position(own, bound)
                conditions.append(position * bound.step + bound.start == own)
        return functools.reduce(operator.and_, conditions)

    def load(self, load):
        access, dtype = load.access, load.access.array.dtype
        value = self.writer.load(self.address(access), dtype)
        if access.bounds:
            zero = self.writer.const(0, dtype)
            value = self.writer.select(self.is_within(access.bounds), value, zero)
        self.values[load.out] = value

    def select(self, select):
        args = [self.value(a) for a in select.args]
        condition = self.is_within(select.bounds)
        self.values[select.out] = self.writer.select(condition, *args)

    def store(self, store):
        self.writer.store(self.value(store.value), self.address(store.access))

    def value(self, scalar) -> IRValue:
        if scalar.value is not None:
            return self.writer.const(scalar.value, scalar.dtype)
        return self.values[scalar]

    def compute(self, compute):
        args = [self.value(a) for a in compute.args]
        out = compute.out
        self.values[out] = scalar_function(
            self.writer, compute.function, args, out.dtype
        )

    def reset(self, reset):
        dtype = reset.access.array.dtype
        number = identity_of(reset.ufunc, dtype)
        self.writer.store(self.writer.const(number, dtype), self.address(reset.access))

    def accumulate(self, each):
        writer, dtype = self.writer, each.access.array.dtype
        address = self.address(each.access)
        total, value = writer.load(address, dtype), self.value(each.value)
        if each.ufunc in _REDUCTIONS:
            with writer.reassociated():
                total = writer.binary(_REDUCTIONS[each.ufunc], total, value)
        elif dtype.kind == "f":  # an intrinsic that LLVM knows as a reduction
            total = writer.intrinsic(each.ufunc, total, value)
        else:
            total = scalar_function(writer, each.ufunc, [total, value], dtype)
        writer.store(total, address)


def _entries(body):
    """Count the iterations of the longest nest of loops in a body."""
    loops = [each for each in body if type(each) is Loop]
    return max([loop.axis.extent * _entries(loop.body) for loop in loops], default=1)


_STATEMENTS = {
    Loop: _Function.loop,
    Load: _Function.load,
    Compute: _Function.compute,
    Select: _Function.select,
    Store: _Function.store,
    Reset: _Function.reset,
    Accumulate: _Function.accumulate,
}
