"""All-reduces of GPU arrays: each way with stand-ins, the choice of one, and errors."""

import sys
from pathlib import Path

import numpy as np
import pytest

from tapewright.core.communication import gpu, nccl
from tapewright.core.communication.communicator import Communicator
from tapewright.core.hardware import devices

SCRIPT = Path(__file__).parent / "scripts" / "gpu.py"
SETTING = gpu.SETTING


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in (SETTING, "MPICH_GPU_SUPPORT_ENABLED", "MV2_USE_CUDA"):
        monkeypatch.delenv(name, raising=False)


def test_ranks_whose_arrays_differ_are_told_before_data_travel(run_ranks):
    ended = run_ranks(2, SCRIPT, "differing", env={SETTING: "mpi"})
    assert ended.rc != 0
    for rank, dtype in enumerate(("float32", "float64")):
        line = f"rank {rank}: all_reduce sum between GPUs of {dtype}[3]"
        assert line in ended.stderr


def test_in_one_process_a_copy_is_made_on_the_gpu(strict):
    x = strict.asarray(np.ones(2))
    (total,) = Communicator().all_reduce([x])
    assert type(total) is type(x) and total.held.tolist() == [1, 1]
    assert not np.shares_memory(total.held, x.held)


# --- the choice


def chosen(*rows, gpus=None):
    """The transport of rank 0, for the usable ones and the GPU of each rank."""
    gpus = range(len(rows)) if gpus is None else gpus
    rows = [[*row, number] for row, number in zip(rows, gpus)]
    reduction = gpu.GPUReduction(Communicator(), None, None)
    return reduction._best(np.array(rows, np.uint8))


def test_the_best_transport_of_all_ranks_is_chosen():
    assert chosen([1, 1, 1], [1, 1, 1]) == "mpi"
    assert chosen([1, 1, 1], [0, 1, 1]) == "nccl"
    assert chosen([0, 1, 0], [1, 1, 1]) == "nccl"  # it is set in rank 0


def test_a_way_through_the_host_is_warned_of_unless_it_is_set(monkeypatch):
    with pytest.warns(UserWarning, match=r"pip install \"nccl4py\[cu12\]\""):
        assert chosen([0, 1, 1], [0, 0, 1]) == "host"
    with pytest.warns(UserWarning, match="processes share a GPU"):
        assert chosen([0, 1, 1], [0, 1, 1], gpus=[0, 0]) == "host"
    monkeypatch.setenv(SETTING, "host")
    assert chosen([0, 0, 1], [0, 0, 1]) == "host"


def test_nccl_on_a_shared_gpu_is_left_to_the_user(monkeypatch):
    monkeypatch.setenv(SETTING, "nccl")
    assert chosen([0, 1, 0], [0, 1, 0], gpus=[0, 0]) == "nccl"


def test_ranks_that_are_set_to_different_ways_are_refused(monkeypatch):
    monkeypatch.setenv(SETTING, "mpi")
    with pytest.raises(ValueError, match=f"{SETTING} must name.* here it is 'mpi'"):
        chosen([1, 0, 0], [0, 1, 0])


# --- what there is


@pytest.fixture
def library(monkeypatch):
    """``library(answer)`` makes MPI's library; without an answer it has no query."""

    def make(answer):
        functions = (
            {} if answer is None else {"MPIX_Query_cuda_support": lambda: answer}
        )
        monkeypatch.setattr(
            gpu.ctypes, "CDLL", lambda file: type("Library", (), functions)
        )
        return "libmpi.so"

    return make


@pytest.mark.parametrize("answer", [1, 0, None])
def test_mpi_is_asked_whether_it_takes_gpu_memory(library, answer, monkeypatch):
    file = library(answer)
    assert gpu.mpi_takes_gpu_arrays(file) is (answer == 1)
    # Cray's MPI: built for GPUs, and switched off.
    monkeypatch.setenv("MPICH_GPU_SUPPORT_ENABLED", "0")
    assert not gpu.mpi_takes_gpu_arrays(file)
    monkeypatch.setenv("MV2_USE_CUDA", "1")
    assert gpu.mpi_takes_gpu_arrays(file)


def test_what_is_found_is_usable(monkeypatch, library):
    monkeypatch.setattr(gpu, "load_nccl", lambda: None)
    assert gpu._usable(library(0)) == ["host"]
    assert gpu._usable(library(1)) == ["mpi", "host"]
    monkeypatch.setattr(gpu, "load_nccl", lambda: gpu)
    assert gpu._usable(library(1)) == ["mpi", "nccl", "host"]
    monkeypatch.setenv(SETTING, "mpi")
    assert gpu._usable(library(0)) == ["mpi"]


def test_a_setting_that_cannot_be_is_refused(monkeypatch):
    monkeypatch.setattr(gpu, "load_nccl", lambda: None)
    monkeypatch.setenv(SETTING, "nccl")
    with pytest.raises(ImportError, match=r"nccl4py\[cu12\]"):
        gpu._usable(None)
    monkeypatch.setenv(SETTING, "gloo")
    with pytest.raises(ValueError, match=f"{SETTING} must be one of mpi.* got 'gloo'"):
        gpu._usable(None)


def test_nccl4py_without_nccl_is_as_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "nccl", None)
    assert nccl.load_nccl() is None


class Device:
    def __init__(self, number):
        self.id = number


class Array:
    def __init__(self, number):
        self.device = Device(number)


def test_arrays_on_two_gpus_are_refused():
    with pytest.raises(ValueError, match="must be on one GPU in each process.* 0, 1"):
        gpu._device([Array(1), Array(0), Array(1)])


def test_nccl_stays_on_the_gpu_of_its_first_call():
    reduction = nccl.NCCLReduction(None)
    reduction._check_device(1)
    reduction._check_device(1)
    with pytest.raises(ValueError, match="first were on GPU 1, got GPU 0"):
        reduction._check_device(0)


# --- one GPU per process


class CUDA:
    """The part of `cupy.cuda` that chooses a device; ``used`` notes what is current."""

    def __init__(self, count):
        self.used = [0]
        cuda, self.runtime = self, type("Runtime", (), {})
        self.runtime.getDeviceCount = staticmethod(lambda: count)

        class Current(Device):
            def use(self):
                cuda.used[-1] = self.id

            def __enter__(self):
                cuda.used.append(self.id)

            def __exit__(self, *exc):
                cuda.used.pop()

        self.Device = Current


@pytest.mark.parametrize(("local_rank", "number"), [(0, 0), (1, 1), (3, 3), (5, 1)])
def test_gpu_means_that_of_the_local_rank(monkeypatch, strict, local_rank, number):
    cuda = CUDA(4)
    monkeypatch.setattr(strict, "cuda", cuda, raising=False)
    monkeypatch.setattr(devices, "cupy_module", lambda: strict)
    monkeypatch.setattr(devices, "_LOCAL_RANK", [lambda: local_rank])
    with devices.device("GPU"):
        assert devices.current_module() is strict and cuda.used[-1] == number
    assert cuda.used == [number]  # where results of the with block are used
    with devices.device("GPU:2"):
        assert cuda.used[-1] == 2
    assert cuda.used == [number]


def test_one_process_takes_the_first_gpu_whichever_is_current(monkeypatch, strict):
    cuda = CUDA(4)
    cuda.used = [3]  # by the user
    monkeypatch.setattr(strict, "cuda", cuda, raising=False)
    monkeypatch.setattr(devices, "cupy_module", lambda: strict)
    with devices.device("GPU"):
        assert cuda.used == [3, 0]
    assert cuda.used == [3]
