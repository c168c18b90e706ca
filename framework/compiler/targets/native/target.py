"""The pipeline of the native target: loop nests and kernels in machine code."""

from tapewright.core.settings import config

from ...loops.fusion import form_loops, sums_for_products
from ...passes.padded_convolutions import padded_convolutions
from ...passes.pooling_passes import cropped_convolutions, pool_first
from ...program.passes.rematerialization import rematerialize
from ..target import CLEANUP, REWRITES, SIMPLIFICATION, Target
from .executable import NativeExecutable
from .in_place import overwrite_variables
from .kernels.slicing import form_slices
from .kernels.table import form_kernels
from .loop_support import is_loop


def form_nests(program):
    """Replace maps, reductions and copies by loop nests."""
    form_loops(program, is_loop, config.graph_pass_is_on("loop_fusion"))


TARGET = Target(
    "native",
    graph_passes=(
        *REWRITES,
        padded_convolutions,
        pool_first,
        cropped_convolutions,
        *CLEANUP,
    ),
    lowering=lambda: {"in_loops": True},
    program_passes=(
        *SIMPLIFICATION,
        rematerialize,
        form_kernels,
        sums_for_products,  # those for which there is no kernel
        form_nests,
        form_slices,
        overwrite_variables,
    ),
    executable=NativeExecutable,
)
