"""`Kernel`: an instruction that generated code of its own computes, on some target."""

import math
from abc import ABC, abstractmethod

import numpy as np

from .call_instructions import Opaque
from .instruction import Instruction, Memory
from .program import Buffer, Kind
from .program_rewriter import ProgramRewriter

__all__ = ["Kernel", "around", "bits_of", "kernel_for", "use_kernels"]


class Kernel(Instruction, ABC):
    """Computes what ``replaced`` does, an instruction that an array module could run.

    A subclass is a kind of such instructions, in a file of its own: the instructions of a
    program that it replaces, and the code. The table of a target's kernels names it, and
    nothing else knows of it.

    ``can_fail``: the code finds wrong values, such as an index out of range; then
    ``replaced`` is run, to raise the error. ``limits``: those of the program.
    """

    __slots__ = ("replaced", "limits")
    memory, is_pure, is_free = Memory.ASSIGNED, True, False
    has_effect = may_alias = can_fail = False

    def __init__(self, replaced, limits):
        self.limits = limits
        scratch = [Buffer(*spec, Kind.SCRATCH) for spec in self.scratch_specs(replaced)]
        super().__init__((*replaced.operands, *scratch), replaced.node)
        self.replaced = replaced

    @classmethod
    @abstractmethod
    def accepts(cls, instruction):
        """Return whether there is code for an instruction of the class in the table."""

    @classmethod
    def of(cls, program, instruction):
        """The kernel that replaces an instruction, or None.

        Instructions that must run before it are appended to the program.
        """
        return cls(instruction, program.limits)

    def scratch_specs(self, instruction):
        """Shapes and dtypes of memory to work in, which are further operands."""
        return ()

    @property
    def name(self):
        return self.replaced.name

    @property
    def is_droppable(self):
        return self.replaced.is_droppable


def kernel_for(table, instruction):
    """The class of kernels in a table that computes an instruction, or None.

    ``table``: a class of instructions, or the primitive of a call -> the class of kernels.
    """
    kind = table.get(type(instruction))
    if kind is None and type(instruction) is Opaque:
        kind = table.get(instruction.node.op)
    return kind if kind is not None and kind.accepts(instruction) else None


def use_kernels(program, kernel_of):
    """Replace each instruction by ``kernel_of(instruction)``, if it is one.

    Instructions that this appends to the program run before the kernel.
    """
    rewriter, count = ProgramRewriter(program), len(program.instructions)
    for each in program.instructions[:count]:
        if kernel := kernel_of(each):
            specs = [(out.shape, out.dtype) for out in each.outputs]
            made = program.append(kernel, *specs)
            for out, other in zip(each.outputs, made, strict=True):
                rewriter.replace(out, other)
            rewriter.put(each, program.instructions[count:])
        del program.instructions[count:]
    rewriter.apply()


def around(shape, axis):
    """Entries before an axis, along it, and of the axes behind it."""
    at = axis % len(shape)
    return math.prod(shape[:at]), shape[at], math.prod(shape[at + 1 :])


def bits_of(dtype):
    """The integers that are as wide as a dtype, to move entries; None if there are none."""
    size = np.dtype(dtype).itemsize
    return np.dtype(f"u{size}") if size in (1, 2, 4, 8) else None
