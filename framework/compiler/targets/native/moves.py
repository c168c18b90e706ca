"""Copy entries into a part of another array, as machine code: concatenation, placing."""

import math

import numpy as np

from tapewright.ops.array.indexing import getitem_p

from ...loops.accesses import row_major
from ...program.kernel import bits_of
from .kernel import NativeKernel, block_function, call_blocks

__all__ = ["ConcatKernel", "PlaceKernel"]


class ConcatKernel(NativeKernel):
    """Concatenate the operands along an axis."""

    __slots__ = ()

    @classmethod
    def accepts(cls, copy):
        (out,) = copy.outputs
        return bool(copy.axis is not None and out.size and bits_of(out.dtype))

    @property
    def parts(self):
        """``(operand, rows, width, start)``: the part of each output row that it copies."""
        (out,) = self.outputs
        at = self.replaced.axis % len(out.shape)
        rows, start = math.prod(out.shape[:at]), 0
        for operand in self.operands:
            width = math.prod(operand.shape[at:])
            if width:
                yield operand, rows, width, start
            start += width

    def define(self, writer, name, places):
        (out,) = self.outputs
        whole = sum([width for _, _, width, _ in self.parts])
        for number, (operand, rows, width, start) in enumerate(self.parts):
            shape, strides = (rows, width), ((width, 1), (whole, 1))
            move = _Move(operand, out, shape, strides, start)
            move.define(writer, f"{name}.{number}", places)

    def write(self, writer, name, arguments):
        for number, (operand, rows, width, _) in enumerate(self.parts):
            blocks, _ = _blocks((rows, width), self.limits)
            context = arguments.context
            call_blocks(writer, f"{name}.{number}", context, blocks, operand.size)


class PlaceKernel(NativeKernel):
    """Zeros with the operand at a basic index: the adjoint of basic indexing."""

    __slots__ = ()

    @classmethod
    def accepts(cls, instruction):
        (operand, *_), (out,) = instruction.operands, instruction.outputs
        if not (out.size and operand.size and bits_of(out.dtype)):
            return False
        part, _ = cls._part(instruction)
        return part.shape == operand.shape  # else NumPy broadcasts

    @staticmethod
    def _part(instruction):
        """An array laid out like the part of the output, and its byte offset."""
        (out,) = instruction.outputs
        room = np.empty(out.nbytes, np.uint8)
        whole = np.ndarray(out.shape, out.dtype, room)
        index = instruction.keywords["index"]
        index = index if "..." in index else (*index, "...")  # a view, not a number
        part = getitem_p.primitive.kernel(np, whole, index=index)
        return part, part.__array_interface__["data"][0] - room.ctypes.data

    @property
    def move(self):
        (operand,), (out,) = self.operands, self.outputs
        (part, start), size = self._part(self.replaced), out.dtype.itemsize
        strides = tuple([s // size for s in part.strides])
        pairs = zip(part.shape, row_major(operand.shape), strides, strict=True)
        dims = [d for d in pairs if d[0] != 1] or [(1, 1, 1)]
        shape, source, target = zip(*dims)
        return _Move(operand, out, shape, (source, target), start // size)

    def define(self, writer, name, places):
        (out,), bits = self.outputs, bits_of(self.outputs[0].dtype)
        most = self.limits.kernel_work
        with block_function(writer, f"{name}.zeros", places, (out,)) as (
            (target,),
            block,
        ):
            start = block * most
            rest = out.size - start
            count = writer.select(rest < most, rest, writer.index(most))
            with writer.loop(0, count) as i:
                writer.store(writer.const(0, bits), writer.at(target, start + i, bits))
        self.move.define(writer, f"{name}.part", places)

    def write(self, writer, name, arguments):
        (out,), move, context = self.outputs, self.move, arguments.context
        count = -(-out.size // self.limits.kernel_work)
        call_blocks(writer, f"{name}.zeros", context, count, out.size)
        blocks, _ = _blocks(move.shape, self.limits)
        call_blocks(writer, f"{name}.part", context, blocks, math.prod(move.shape))


class _Move:
    """``out[offset + strides[1] * i] = operand[strides[0] * i]``, ``i`` in ``shape``."""

    def __init__(self, operand, out, shape, strides, offset):
        self.operand, self.out, self.offset = operand, out, offset
        self.shape, self.strides = shape, strides

    def define(self, writer, name, places):
        bits, (_, rows) = bits_of(self.out.dtype), _blocks(self.shape, writer.limits)
        with block_function(writer, name, places, (self.operand, self.out)) as (
            (source, target),
            block,
        ):
            target = writer.at(target, self.offset, bits)
            first = block * rows
            rest = self.shape[0] - first
            count = writer.select(rest < rows, rest, writer.index(rows))

            def move(axis, source, target, start, count):
                a, b = [strides[axis] for strides in self.strides]
                with writer.loop(0, count) as i:
                    k = start + i if axis == 0 else i
                    x = writer.at(source, k * a, bits)
                    y = writer.at(target, k * b, bits)
                    if axis + 1 < len(self.shape):
                        move(axis + 1, x, y, 0, self.shape[axis + 1])
                    else:
                        writer.store(writer.load(x, bits), y)

            move(0, source, target, first, count)


def _blocks(shape, limits):
    """``(count, rows)``: the blocks along the first axis."""
    rows = max(1, limits.kernel_work // math.prod(shape[1:]))
    return -(-shape[0] // rows), rows
