"""`Kernel`: an instruction for which a target generates code."""

import math
from abc import ABC, abstractmethod

import numpy as np

from ..passes.program_rewriter import ProgramRewriter
from ..program import Buffer, Kind
from .call_instructions import Opaque
from .instruction import Instruction, Memory


class Kernel(Instruction, ABC):
    """Generated code for ``replaced``, an instruction that an array module could run.

    A subclass is one kind of such instructions, in a separate file: the instructions of
    a program that it replaces, and the code. Only the target's table of kernels refers
    to it.

    ``can_fail``: the code detects invalid values, such as an index out of range; then
    ``replaced`` is run, to raise the error. ``limits``: the `Limits` of the program.
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
        """Return the kernel that replaces an instruction, or None.

        Instructions that must run before it are appended to the program.
        """
        return cls(instruction, program.limits)

    def scratch_specs(self, instruction):
        """Shapes and dtypes of scratch memory, passed as further operands."""
        return ()

    @property
    def name(self):
        return self.replaced.name

    @property
    def is_droppable(self):
        return self.replaced.is_droppable


def kernel_for(table, instruction):
    """Return the kernel class in a table that computes an instruction, or None.

    ``table`` maps a class of instructions, or the primitive of a call, to a kernel
    class.
    """
    kind = table.get(type(instruction))
    if kind is None and type(instruction) is Opaque:
        kind = table.get(instruction.node.op)
    return kind if kind is not None and kind.accepts(instruction) else None


def use_kernels(program, kernel_of):
    """Replace each instruction by ``kernel_of(instruction)``, unless that is None.

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


def axis_of_rows(instruction):
    """Return the axis of a gather or scatter; the first axis if the op has no attribute."""
    return instruction.keywords.get("axis", 0)


def around(shape, axis):
    """Return the number of entries before an axis, along it, and behind it."""
    at = axis % len(shape)
    return math.prod(shape[:at]), shape[at], math.prod(shape[at + 1 :])


def bits_of(dtype):
    """Return the integer dtype as wide as a dtype, to move entries, or None."""
    size = np.dtype(dtype).itemsize
    return np.dtype(f"u{size}") if size in (1, 2, 4, 8) else None
