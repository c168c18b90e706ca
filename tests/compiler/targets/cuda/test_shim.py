"""Kernels of CUDA C run on the CPU as on a GPU, mistakes among them."""

import struct

import numpy as np
import pytest

from ....stand_in import shim

pytestmark = pytest.mark.skipif(not shim.gcc(), reason="gcc is not installed")

REVERSED = """
extern "C" __global__ void __launch_bounds__(64)
reversed(const float* __restrict__ x, float* __restrict__ y)
{
  __shared__ float row[64];
  row[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
  BARRIER
  y[blockIdx.x * blockDim.x + threadIdx.x] = row[blockDim.x - 1 - threadIdx.x];
}
"""


def run_reversed(barrier, seed=0):
    x, y = np.arange(192, dtype=np.float32), np.zeros(192, np.float32)
    module = shim.Module(REVERSED.replace("BARRIER", barrier))
    addresses = [x.ctypes.data, y.ctypes.data]
    module.launch("reversed", (3,), (64,), addresses, "fibers", seed)
    return x.reshape(3, 64)[:, ::-1].ravel(), y


@pytest.mark.parametrize("seed", range(4))
def test_threads_wait_at_a_barrier(seed):
    wanted, found = run_reversed("__syncthreads();", seed)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("seed", range(4))
def test_a_missing_barrier_gives_another_result(seed):
    wanted, found = run_reversed("", seed)
    assert (found != wanted).any()


@pytest.mark.parametrize(
    "barrier",
    [
        "if (threadIdx.x < 40) __syncthreads();",
        "if (threadIdx.x == 3) return; __syncthreads();",
    ],
)
def test_a_barrier_that_not_all_threads_reach_is_an_error(barrier):
    with pytest.raises(RuntimeError, match="threads wait at a barrier"):
        run_reversed(barrier)


def run_one(body, block, threads="fibers", out=None):
    """What the only block of a kernel writes to integers ``y``."""
    out = np.zeros(block, np.int32) if out is None else out
    source = f'extern "C" __global__ void one(int* y)\n{{\n{body}\n}}\n'
    shim.Module(source).launch("one", 1, (block,), [out.ctypes.data], threads)
    return out


def test_shuffles_exchange_numbers_within_a_warp():
    i, body = np.arange(64), "int i = threadIdx.x; y[i] = {};"
    for text, wanted in [
        ("__shfl_xor_sync(0xffffffffu, i, 5)", i ^ 5),
        ("__shfl_sync(0xffffffffu, i, 3)", i // 32 * 32 + 3),
        ("__shfl_sync(0xffffffffu, i, 3, 8)", i // 8 * 8 + 3),
        ("__shfl_down_sync(0xffffffffu, i, 1, 4)", np.where(i % 4 == 3, i, i + 1)),
        ("__shfl_up_sync(0xffffffffu, i, 2)", np.where(i % 32 < 2, i, i - 2)),
    ]:
        np.testing.assert_array_equal(run_one(body.format(text), 64), wanted)


def test_a_shuffle_that_a_thread_of_the_warp_leaves_out_is_an_error():
    body = "if (threadIdx.x) y[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 0);"
    with pytest.raises(RuntimeError, match="31 in a shuffle, and 1 are done"):
        run_one(body, 32)


def test_shared_memory_has_no_zeros_at_first():
    body = "__shared__ int s[4]; y[threadIdx.x] = s[threadIdx.x];"
    for threads in ("one", "fibers"):
        assert (run_one(body, 4, threads) != 0).sum() == (1 if threads == "one" else 4)


def test_the_first_thread_that_compares_sets_a_number():
    body = "atomicCAS(y, 0, 7 + (int)threadIdx.x); atomicAdd(y + 1, 2);"
    found = run_one(body, 32, out=np.zeros(2, np.int32))
    assert 7 <= found[0] < 39 and found[1] == 64


def test_one_thread_is_the_only_one_of_its_block():
    body = "y[0] = threadIdx.x + blockDim.x * 10 + gridDim.x * 100 + blockIdx.z;"
    np.testing.assert_array_equal(run_one(body, 4, "one"), [110, 0, 0, 0])


def test_numbers_and_structures_are_arguments():
    source = """
    typedef struct { long long n; float x; } pair;
    extern "C" __global__ void sum(pair p, double scale, const unsigned n, float* y)
    { y[0] = (p.n + p.x) * scale + n; }
    """
    y = np.zeros(1, np.float32)
    arguments = [struct.pack("qfxxxx", 3, 0.5), 2.0, 2**32 - 1, y.ctypes.data]
    shim.Module(source).launch("sum", 1, 1, arguments)
    assert y[0] == np.float32(7.0 + 2**32 - 1)


def test_what_gcc_refuses_is_an_error():
    with pytest.raises(RuntimeError, match="gcc refuses the source"):
        shim.Module("__global__ void wrong(int* y) { y[0] = nothing; }")


def test_a_wrong_number_of_arguments_is_an_error():
    module = shim.Module("__global__ void one(int* y) { y[0] = 1; }")
    with pytest.raises(TypeError, match="one takes 1 arguments, not 0"):
        module.launch("one", 1, 1, [])
    with pytest.raises(ValueError, match='threads must be "one" or "fibers"'):
        module.launch("one", 1, 1, [0], "two")
