"""The table of `NativeKernel`s, and the pass that puts them into a program."""

from tapewright.core.primitive import get_primitive
from tapewright.ops.array.indexing import scatter_index
from tapewright.ops.convolution.pooling import (
    pick_at_maxima_p,
    spread_means_p,
    spread_to_maxima_p,
    window_max_p,
    window_mean_p,
)

from ...loops.accesses import in_order
from ...loops.recurrent_steps import RECURRENT
from ...program.array_instructions import Contract, Copy
from ...program.call_instructions import Check, Draw, Gather, Opaque, Scatter
from ...program.program_rewriter import ProgramRewriter
from . import autotune
from .contractions import ContractionKernel
from .draws import DrawKernel
from .gather import GatherKernel, RangeKernel, ScatterKernel
from .moves import ConcatKernel, PlaceKernel
from .step_loop import StepLoop
from .windows import (
    MaxKernel,
    MeanKernel,
    PickKernel,
    SpreadKernel,
    SpreadMeansKernel,
)

__all__ = ["KERNELS", "use_kernels"]

# class of instructions, or op -> the kernel that may replace one
KERNELS = {
    Check: RangeKernel,
    Contract: ContractionKernel,
    Copy: ConcatKernel,
    Draw: DrawKernel,
    Gather: GatherKernel,
    Scatter: ScatterKernel,
    pick_at_maxima_p.primitive: PickKernel,
    scatter_index.primitive: PlaceKernel,
    spread_means_p.primitive: SpreadMeansKernel,
    spread_to_maxima_p.primitive: SpreadKernel,
    window_max_p.primitive: MaxKernel,
    window_mean_p.primitive: MeanKernel,
    **dict.fromkeys(map(get_primitive, RECURRENT), StepLoop),
}


def use_kernels(program, is_loop):
    """Replace instructions for which there is machine code of their own.

    Args: ``is_loop(instruction)``, whether loop nests compute a map, reduction or copy.
    """
    with autotune.progress():
        _use_kernels(program, is_loop)


def _use_kernels(program, is_loop):
    rewriter, count = ProgramRewriter(program), len(program.instructions)
    for each in program.instructions[:count]:
        kind = _kernel_for(each)
        kernel = kind and kind.of(program, each, is_loop)
        if kernel is not None:
            kernel.operands = tuple(
                [in_order(program, a, each.node) for a in kernel.operands]
            )
            specs = [(out.shape, out.dtype) for out in each.outputs]
            made = program.append(kernel, *specs)
            for out, other in zip(each.outputs, made, strict=True):
                rewriter.replace(out, other)
            rewriter.put(each, program.instructions[count:])
        del program.instructions[count:]
    rewriter.apply()


def _kernel_for(instruction):
    """The class of the kernel that computes an instruction, or None."""
    kind = KERNELS.get(type(instruction))
    if kind is None and type(instruction) is Opaque:
        kind = KERNELS.get(instruction.node.op)
    return kind if kind is not None and kind.accepts(instruction) else None
