"""The table of `CudaKernel`s, and the passes from arrays to kernels."""

from tapewright.core.primitive import get_primitive
from tapewright.core.settings import config
from tapewright.ops.array.gather import flat_index
from tapewright.ops.array.segment import segment_rows, unsorted_segment_sum
from tapewright.ops.array.sorting import in_top_k, place_along_axis

from ....loops.accesses import in_order
from ....loops.fusion import form_loops, sums_for_products
from ....loops.recurrent_steps import RECURRENT
from ....loops.threads.thread_scheduling import thread_nests
from ....program.instructions.array_instructions import (
    BoundedRead,
    Contract,
    Copy,
    Map,
    Reduce,
    View,
)
from ....program.instructions.call_instructions import (
    Check,
    Draw,
    Gather,
    Scatter,
    StoreVariable,
    Update,
)
from ....program.instructions.kernel import kernel_for, use_kernels
from ..host_values import draw_first
from ..products.epilogues import epilogues
from ..products.half_factors import half_factors
from ..products.small_products import small_products
from ..scalar_functions import is_loop
from .arg_reduction import ArgReductionKernel
from .convolution import ContractionKernel
from .draws import DrawKernel
from .empty import EmptyKernel
from .gather import (
    GatherKernel,
    RangeKernel,
    ScatterKernel,
    SegmentRowsKernel,
    SegmentSumKernel,
)
from .placing import FlatIndexKernel, PlaceAlongKernel
from .ranks import InTopKernel, SearchKernel, SortKernel, TopKernel
from .resampling import ResampleKernel
from .scans import ScanKernel
from .step_loop import StepLoop
from .stores import StoreKernel, copy_overwritten
from .updates import UpdateKernel


def _by_name(kernel, *names):
    return dict.fromkeys(map(get_primitive, names), kernel)


# class of instructions, or op -> the kernel that may replace one
KERNELS = {
    Check: RangeKernel,
    Contract: ContractionKernel,
    Draw: DrawKernel,
    Gather: GatherKernel,
    Scatter: ScatterKernel,
    flat_index.primitive: FlatIndexKernel,
    in_top_k.primitive: InTopKernel,
    place_along_axis.primitive: PlaceAlongKernel,
    segment_rows.primitive: SegmentRowsKernel,
    unsorted_segment_sum.primitive: SegmentSumKernel,
    **_by_name(ArgReductionKernel, "argmax", "argmin"),
    **_by_name(ResampleKernel, "resample", "resample_back"),
    **_by_name(ScanKernel, "cumsum", "cumprod"),
    **_by_name(SearchKernel, "searchsorted"),
    **_by_name(SortKernel, "sort", "argsort"),
    **_by_name(StepLoop, *RECURRENT),
    **_by_name(TopKernel, "top_k"),
}

# The code size of a group, see `form_groups`. A chain of 1,000 tanh takes NVRTC 1.9 s, in 20
# launches; with 200 it takes 2.6 s in 40, with 800 2.2 s in 10.
MOST = 400


def is_supported(instruction):
    """Return whether there is a kernel for an instruction that nothing else could run."""
    if type(instruction) is View:
        return True
    is_read = isinstance(instruction, (Reduce, BoundedRead))
    if is_read and not instruction.operands[0].size:
        return False
    if isinstance(instruction, (Map, Reduce, Copy, BoundedRead)):
        return is_loop(instruction)
    return _kernel_for(instruction) is not None


def form_kernels(program):
    """Replace device instructions with kernels.

    CuPy or Python runs instructions without a kernel, between two graphs.
    """
    on_host = program.on_host
    use_kernels(program, lambda each: each not in on_host and _kernel_of(program, each))


def form_nests(program):
    """Replace maps, reductions and copies by thread nests."""
    form_loops(
        program,
        lambda each: each not in program.on_host and is_loop(each),
        config.graph_pass_is_on("loop_fusion"),
        schedule=thread_nests,
        most=MOST,
        has_totals=False,
    )


def _kernel_of(program, instruction):
    """Return the kernel that replaces an instruction, or None."""
    if type(instruction) is Update:
        return UpdateKernel.of(program, instruction, KERNEL_PASSES)
    if type(instruction) is StoreVariable:
        return StoreKernel.of(program, instruction)
    kind = _kernel_for(instruction)
    kernel = kind and kind.of(program, instruction)
    if kernel is not None and not kernel.takes_views:
        kernel.operands = tuple(
            [in_order(program, a, instruction.node) for a in kernel.operands]
        )
    return kernel


def _kernel_for(instruction):
    """Return the class of the kernel that computes an instruction, or None."""
    if EmptyKernel.accepts(instruction):
        return EmptyKernel
    return kernel_for(KERNELS, instruction)


# Passes from arrays to kernels, of a whole program or of an optimizer's update.
KERNEL_PASSES = (
    small_products,
    half_factors,  # of the other products
    form_kernels,
    draw_first,
    epilogues,  # of kernels that compute products
    copy_overwritten,
    sums_for_products,
    form_nests,
)
