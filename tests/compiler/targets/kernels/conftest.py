"""Compare the kernels of each target with NumPy's, one suite for each op."""

import pytest

from tapewright.core import config

from ..cuda import kernel_runs as cuda_runs
from ..native import kernel_runs as native_runs


@pytest.fixture
def native(few_passes):
    """Ops are checked as machine code, which 1, 2 and 4 threads run."""
    pytest.importorskip("llvmlite")
    with config.use_target("native"):
        yield native_runs.check_drawn


@pytest.fixture
def cuda(without_a_gpu):
    """Ops are checked as CUDA C, which one thread runs, and many that take turns."""
    return cuda_runs.check_op


@pytest.fixture(params=["native", "cuda"])
def target(request):
    return request.param


@pytest.fixture
def check(target, request):
    """``check(op, arrays, attributes, seed=None)`` compares a target with NumPy's kernel.

    ``seed``: of what a target may draw, the memory order of arrays and the size of blocks.
    """
    return request.getfixturevalue(target)
