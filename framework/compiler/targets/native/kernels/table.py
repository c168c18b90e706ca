"""The table of `NativeKernel`s, and the pass that inserts them into a program."""

from tapewright.core.primitive import get_primitive
from tapewright.ops.array.segment import segment_rows, unsorted_segment_sum

from ....loops.accesses import in_order
from ....loops.recurrent_steps import RECURRENT
from ....program.instructions.array_instructions import Contract
from ....program.instructions.call_instructions import Check, Draw, Gather, Scatter
from ....program.instructions.kernel import kernel_for, use_kernels
from .. import autotune
from ..products.contractions import ContractionKernel
from .draws import DrawKernel
from .gather import (
    GatherKernel,
    RangeKernel,
    ScatterKernel,
    SegmentRowsKernel,
    SegmentSumKernel,
)
from .step_loop import StepLoop

# class of instructions, or op -> the kernel that may replace one
KERNELS = {
    Check: RangeKernel,
    Contract: ContractionKernel,
    Draw: DrawKernel,
    Gather: GatherKernel,
    Scatter: ScatterKernel,
    segment_rows.primitive: SegmentRowsKernel,
    unsorted_segment_sum.primitive: SegmentSumKernel,
    **dict.fromkeys(map(get_primitive, RECURRENT), StepLoop),
}


def form_kernels(program):
    """Replace instructions by their machine code kernels."""

    def kernel_of(instruction):
        kind = kernel_for(KERNELS, instruction)
        kernel = kind and kind.of(program, instruction)
        if kernel is not None:
            kernel.operands = tuple(
                [in_order(program, a, instruction.node) for a in kernel.operands]
            )
        return kernel

    with autotune.progress():
        use_kernels(program, kernel_of)
