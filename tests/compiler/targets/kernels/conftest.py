"""Compare the kernels of each target with NumPy's, one suite for each op."""

import pytest

from tapewright.core.settings import config

from ..cuda import kernel_runs as cuda_runs
from ..native import kernel_runs as native_runs


@pytest.fixture
def native(few_passes):
    """Check ops as machine code, run by 1, 2 and 4 threads."""
    pytest.importorskip("llvmlite")
    with config.use_target("native"):
        yield native_runs.check_drawn


@pytest.fixture
def cuda(without_a_gpu):
    """Check ops as CUDA C, run by one thread, and by many that take turns."""
    return cuda_runs.check_op


@pytest.fixture(params=["native", "cuda"])
def target(request):
    return request.param


@pytest.fixture
def check(target, request):
    """``check(op, arrays, attributes, seed=None)`` compares a target with NumPy's kernel.

    With a seed, a target draws the memory order of arrays and the size of blocks.
    """
    return request.getfixturevalue(target)
