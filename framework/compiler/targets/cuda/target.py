"""The pipeline of the CUDA target: thread nests and kernels in CUDA graphs."""

from tapewright.core.hardware.devices import current_module

from ...passes.host_constants import host_constants
from ...passes.padded_convolutions import padded_convolutions
from ...passes.pooling_passes import cropped_convolutions
from ..target import CLEANUP, REWRITES, SIMPLIFICATION, Target
from .checks import checks_first
from .commits import branch_last
from .executable import CudaExecutable
from .host_values import find_host_values
from .kernels.table import KERNEL_PASSES, is_supported


def lowering():
    """Return the arguments of `lower` for the module of the current device."""
    array_type = current_module().ndarray
    return {"array_type": array_type, "in_loops": True, "is_supported": is_supported}


TARGET = Target(
    "cuda",
    # `pool_first` needs to look at values, and one kernel more.
    graph_passes=(
        host_constants,
        *REWRITES,
        padded_convolutions,
        cropped_convolutions,
        *CLEANUP,
    ),
    lowering=lowering,
    program_passes=(
        *SIMPLIFICATION,
        find_host_values,
        branch_last,
        *KERNEL_PASSES,
        checks_first,
    ),
    executable=CudaExecutable,
)
