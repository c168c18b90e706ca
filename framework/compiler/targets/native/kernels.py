"""The table of `NativeKernel`s, and the pass that puts them into a program."""

from tapewright.ops.array.indexing import scatter_index

from ...loops.accesses import layout_of, row_major
from ...program.array_functions import copy_into
from ...program.array_instructions import Copy
from ...program.call_instructions import Check, Gather, Opaque, Scatter
from ...program.program_rewriter import ProgramRewriter
from .gather import GatherKernel, RangeKernel, ScatterKernel
from .moves import ConcatKernel, PlaceKernel

__all__ = ["KERNELS", "use_kernels"]

# class of instructions, or op -> the kernel that may replace one
KERNELS = {
    Check: RangeKernel,
    Copy: ConcatKernel,
    Gather: GatherKernel,
    Scatter: ScatterKernel,
    scatter_index.primitive: PlaceKernel,
}


def use_kernels(program):
    """Replace instructions for which there is machine code of their own."""
    rewriter = ProgramRewriter(program)
    for each in program.instructions:
        kind = _kernel_for(each)
        if kind is None:
            continue
        kernel, copies = kind(each), []
        kernel.operands = tuple(
            [_in_order(program, a, each.node, copies) for a in kernel.operands]
        )
        made = program.append(kernel, *[(out.shape, out.dtype) for out in each.outputs])
        program.instructions.pop()
        for out, other in zip(each.outputs, made, strict=True):
            rewriter.replace(out, other)
        rewriter.put(each, (*copies, kernel))
    rewriter.apply()


def _kernel_for(instruction):
    """The class of the kernel that computes an instruction, or None."""
    kind = KERNELS.get(type(instruction))
    if kind is None and type(instruction) is Opaque:
        kind = KERNELS.get(instruction.node.op)
    return kind if kind is not None and kind.accepts(instruction) else None


def _in_order(program, buffer, node, copies):
    """An operand in C order: itself, or what a copy makes, which is added to ``copies``."""
    if not buffer.size or layout_of(buffer).strides == row_major(buffer.shape):
        return buffer
    copy = Copy(copy_into, (buffer,), node)
    (copied,) = program.append(copy, (buffer.shape, buffer.dtype))
    program.instructions.pop()
    copies.append(copy)
    return copied
