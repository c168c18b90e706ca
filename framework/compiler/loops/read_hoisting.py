"""Move bounded reads in front of the maps whose results they read.

``pad(relu(x))`` becomes ``where(inside, relu(read(x)), 0)``, and so do the operands of a
concatenation: the maps run in the loops of the read, and their results are never stored.
"""

import math

import numpy as np

from ..program.instructions.array_instructions import (
    BoundedRead,
    Copy,
    Index,
    Map,
    Reduce,
    View,
)
from ..program.instructions.scalar_functions import where
from ..program.passes.program_rewriter import ProgramRewriter
from ..program.passes.simplification import drop_unused
from .group import has_long_parts

DEEP = 100  # maps in a chain, which are visited by recursion


def reads_for_concats(program, is_supported):
    """Replace concatenations by reads of the operands, each within its bounds.

    Entries that are out of bounds of an operand are those of the operands before it.
    """
    rewriter = ProgramRewriter(program)
    for each in program.instructions:
        if type(each) is not Copy or each.axis is None or not is_supported(each):
            continue
        (out,), start, reads = each.outputs, 0, []
        axis, index = each.axis % len(out.shape), [Index()] * len(out.shape)
        made = program.constant(np.zeros((), out.dtype))
        for operand in each.operands:
            index[axis] = Index(1, -start)
            start += operand.shape[axis]
            if operand.size:
                reads.append(BoundedRead((operand, made), index, out.shape, each.node))
                (made,) = program.append(reads[-1], (out.shape, out.dtype))
                program.instructions.pop()
        if reads:
            rewriter.put(each, reads)
            rewriter.replace(out, made)
    rewriter.apply()


def hoist_reads(program, is_supported):
    """Move bounded reads in front of maps, as far as no value is computed more often."""
    hoisting = _Hoisting(program, is_supported)
    for each in list(program.instructions):
        if type(each) is BoundedRead and hoisting.pays(each):
            hoisting.apply(each)
    if hoisting.rewriter.instead:
        hoisting.rewriter.apply()
        drop_unused(program)


class _Hoisting:
    def __init__(self, program, is_supported):
        self.program, self.is_supported = program, is_supported
        self.rewriter = ProgramRewriter(program)
        self.readers_of = program.readers()  # with all changes so far
        self.outputs = {a.base for a in program.outputs}

    # --- when it pays

    def pays(self, read):
        """Return whether maps in front of a read vanish, and arrays in memory are read.

        No value of a map is computed more often than before.
        """
        (source, _), (out,) = read.operands, read.outputs
        readers = self.readers_of[source]
        if {type(r) for r in readers} != {BoundedRead} or source in self.outputs:
            return False
        if len({id(r.node) for r in readers}) > 1 or not has_long_parts(read):
            return False
        entries = [
            math.prod([len(r) for r, _, _ in each.positions]) for each in readers
        ]
        is_of_read = type(source.instruction) is BoundedRead  # which computes nothing
        if not out.size or sum(entries) > source.size and not is_of_read:
            return False
        index = [Index(*each) for each in read.keywords["index"]]
        return self.is_computed(source) and self.may_move(source, index, source.size)

    def is_computed(self, buffer):
        """Return whether a map or a bounded read computes a buffer, in loops."""
        each = buffer.instruction
        is_map = type(each) in (Map, BoundedRead)
        return is_map and buffer.size > 0 and self.is_supported(each)

    def is_for_one(self, buffer):
        """Return whether a single operand of an instruction is this buffer."""
        readers = self.readers_of[buffer]
        return buffer not in self.outputs and (
            sum([each.operands.count(buffer) for each in readers]) == 1
        )

    def may_move(self, buffer, index, size, depth=0):
        """Return whether a value can be computed from what is in memory, or small.

        The operand of a bounded read is in memory.
        """
        each = buffer.instruction
        if type(each) is Map:
            operands = each.operands
            return all([self.is_at_hand(a, index, size, depth + 1) for a in operands])
        _, fill = each.operands
        own = map(Index._make, each.keywords["index"])
        is_index = None not in [i.of(j) for i, j in zip(own, index)]
        return is_index and self.is_at_hand(fill, index, size, depth + 1)

    def is_at_hand(self, buffer, index, size, depth):
        if buffer.size < size:
            return True
        if self.is_computed(buffer):
            is_near = self.is_for_one(buffer) and depth < DEEP
            return is_near and self.may_move(buffer, index, size, depth)
        return not isinstance(buffer.base.instruction, (Map, Reduce, Copy, BoundedRead))

    # --- the change

    def apply(self, read):
        """Replace a read by what computes its operand, at the indices that it reads."""
        program, (source, fill), (out,) = self.program, read.operands, read.outputs
        count = len(program.instructions)
        index = [Index(*each) for each in read.keywords["index"]]
        self.node = node = read.node
        made = self.computed(source, index, out.shape)
        inside = program.constant(np.broadcast_to(True, source.shape))
        outside = program.constant(np.zeros((), bool))
        mask = BoundedRead((inside, outside), index, out.shape, node)
        mask = self.add(mask, out.shape, bool)
        made = self.add(Map(where, (mask, made, fill), node), out.shape, out.dtype)
        instead = program.instructions[count:]
        del program.instructions[count:]
        self.rewriter.put(read, instead)
        self.rewriter.replace(out, made)
        for a in set(read.operands):
            self.readers_of[a].remove(read)
        self.readers_of[made] = self.readers_of.pop(out, [])
        for reader in self.readers_of[made]:
            reader.substitute({out: made})
        for each in instead:
            for a in set(each.operands):
                self.readers_of.setdefault(a, []).append(each)

    def computed(self, buffer, index, shape):
        """Return what computes a buffer, for the entries at these indices."""
        each, whole = buffer.instruction, buffer.shape
        if type(each) is Map:
            operands = [self.operand(a, whole, index, shape) for a in each.operands]
            copy = Map(each.function, operands, each.node, each.keywords)
        else:
            source, fill = each.operands
            own = map(Index._make, each.keywords["index"])
            fill = self.operand(fill, whole, index, shape)
            index = [i.of(j) for i, j in zip(own, index)]
            copy = BoundedRead((source, fill), index, shape, each.node)
        return self.add(copy, shape, buffer.dtype)

    def operand(self, buffer, whole, index, shape):
        """Return the entries of an operand, which may be broadcast, at these indices."""
        axes = range(len(whole) - len(buffer.shape), len(whole))
        moved = [i for i in axes if index[i] != Index() or shape[i] != whole[i]]
        if all([buffer.shape[i - axes.start] == 1 for i in moved]):
            return buffer
        if (
            buffer.shape == whole
            and self.is_computed(buffer)
            and self.is_for_one(buffer)
        ):
            return self.computed(buffer, index, shape)
        if buffer.shape != whole:
            view = View(np.broadcast_to, buffer, (whole,), self.node)
            buffer = self.add(view, whole, buffer.dtype)
        zero = self.program.constant(np.zeros((), buffer.dtype))
        read = BoundedRead((buffer, zero), index, shape, self.node)
        return self.add(read, shape, buffer.dtype)

    def add(self, instruction, shape, dtype):
        (made,) = self.program.append(instruction, (tuple(shape), np.dtype(dtype)))
        return made
