"""`tw.test`: checks of derivatives and of ops, and `tw.test.TestCase`."""

from tapewright.core.hardware.device_lists import (
    gpu_device_name,
    is_built_with_cuda,
    is_built_with_gpu_support,
    is_gpu_available,
)

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
from .test_case import TestCase, main

__all__ = [
    "Case",
    "Sample",
    "TestCase",
    "booleans",
    "case",
    "check_gradients",
    "check_op",
    "complexes",
    "compute_gradient",
    "floats",
    "gpu_device_name",
    "integers",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_gpu_available",
    "main",
]
