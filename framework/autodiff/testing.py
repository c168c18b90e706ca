"""`tw.test`: checks of derivatives and of ops, for our tests and for those of users."""

from tapewright.core.device_lists import gpu_device_name, is_gpu_available

from .gradient_check import check_gradients, compute_gradient
from .op_check import (
    Case,
    Sample,
    booleans,
    case,
    check_op,
    complexes,
    floats,
    integers,
)

__all__ = [
    "Case",
    "Sample",
    "booleans",
    "case",
    "check_gradients",
    "check_op",
    "complexes",
    "compute_gradient",
    "floats",
    "gpu_device_name",
    "integers",
    "is_gpu_available",
]
