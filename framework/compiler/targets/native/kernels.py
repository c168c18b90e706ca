"""The table of `NativeKernel`s, and the pass that inserts them into a program."""

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
from ...program.call_instructions import Check, Draw, Gather, Scatter
from ...program.kernel import kernel_for, use_kernels
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

__all__ = ["KERNELS", "form_kernels"]

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
