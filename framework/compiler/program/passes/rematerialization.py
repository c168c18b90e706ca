"""Recompute large values where they are read late, instead of keeping them in memory.

The scores of attention are as large as the square of the length, and computed from much
smaller arrays. The backward pass needs them long after the forward pass. Recomputed
there, slice by slice, they are never whole in memory, as in "FlashAttention" (Dao et
al., 2022). Sums and maxima of rows are kept: they are small.
"""

import copy
import math

from ..instructions.array_instructions import Contract, Copy, Map, Reduce, View
from ..instructions.call_instructions import Draw


def rematerialize(program):
    """Recompute products, and maps of them, for readers behind other uses of them."""
    for each in list(program.instructions):
        if type(each) is Contract and _is_worth_it(each, program.limits):
            _Region(program, each).apply()


def _is_worth_it(product, limits):
    """Return whether a product is large, and a batch of products of small matrices."""
    (out,) = product.outputs
    read = sum([a.size for a in product.operands])
    is_stack = math.prod(out.shape[:-2]) > 1 and not product.keywords
    is_large = out.nbytes >= limits.again_bytes
    return is_stack and is_large and out.size >= limits.again_ratio * read


class _Region:
    """A product, the maps applied to it, and the random numbers drawn for them.

    ``values`` are their results, ``late`` the values that depend on what other
    instructions compute from these.
    """

    def __init__(self, program, product):
        self.program, self.size = program, product.outputs[0].size
        self.values, self.late, self.readers = set(product.outputs), set(), []
        start = program.instructions.index(product) + 1
        self.last = start
        for i, each in enumerate(program.instructions[start:], start):
            self.visit(i, each)

    def visit(self, i, instruction):
        reads = set(instruction.operands)
        if reads & self.late:
            self.late.update(instruction.outputs)
            if reads & self.values:
                self.readers.append(i)
        elif reads & self.values:
            if isinstance(instruction, (Map, Reduce, View, Copy)):
                self.values.update(instruction.outputs)
                drawn = [a for a in reads if type(a.instruction) is Draw]
                self.values.update([a for a in drawn if a.size == self.size])
                self.last = i
            else:
                self.late.update(instruction.outputs)

    def apply(self):
        """Recompute the values that late readers need, before the first such reader."""
        instructions = self.program.instructions
        if not self.readers:
            return
        first = self.readers[0]
        between = instructions[self.last : first]
        if any([each.is_barrier for each in between]):
            return
        made, copies = {}, []
        for i in self.readers:
            for a in instructions[i].operands:
                if a in self.values and self.is_large(a):
                    self.make(a, made, copies)
            instructions[i].substitute(made)
        self.program.instructions = [
            *instructions[:first],
            *copies,
            *instructions[first:],
        ]

    def is_large(self, buffer):
        return buffer.base.size * self.program.limits.again_ratio > self.size

    def make(self, buffer, made, copies):
        """Append to ``copies`` the instructions that compute a value, as mapped by ``made``."""
        stack = [buffer]
        while stack:
            current = stack[-1]
            maker = current.instruction
            missing = [
                a
                for a in maker.operands
                if a in self.values and self.is_large(a) and a not in made
            ]
            if current in made or missing:
                stack = stack[:-1] if current in made else stack + missing
                continue
            stack.pop()
            twin = copy.copy(maker)
            twin.operands = tuple([made.get(a, a) for a in maker.operands])
            (out,) = self.program.append(twin, (current.shape, current.dtype))
            copies.append(self.program.instructions.pop())
            made[current] = out
