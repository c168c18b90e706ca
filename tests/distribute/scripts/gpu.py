"""All-reduces of GPU arrays: stand-ins for CuPy's arrays, for CUDA and for NCCL.

    mpiexec -n 3 python gpu.py [differing]

The memory of the stand-ins is that of the host, so that MPI takes it as that of a GPU.
"""

import contextlib
import hashlib
import os
import sys
import types
import warnings
from pathlib import Path

import numpy as np
from mpi4py import MPI

import tapewright as tw
from tapewright.core.communication import gpu
from tapewright.core.communication.job import communicator
from tapewright.core.hardware import devices

sys.path.insert(0, str(Path(__file__).parents[2]))

from stand_in.arrays import Array, to_numpy, xp  # noqa: E402

devices.register_array_module(Array, xp, to_numpy)

job = communicator()
LOG = []  # what CUDA and NCCL are told


class Device:
    id, pci_bus_id = job.local_rank, f"0000:0{job.local_rank}:00.0"
    entered = 0

    def __enter__(self):
        Device.entered += 1

    def __exit__(self, *exc):
        Device.entered -= 1


class Event:
    done = True

    def __init__(self, disable_timing):
        assert disable_timing


class Stream:
    def __init__(self, non_blocking=False):
        self.ptr = 2 if non_blocking else 1

    def __enter__(self):
        assert Device.entered

    def __exit__(self, *exc):
        pass

    def synchronize(self):
        LOG.append("synchronize")

    def record(self, event):
        LOG.append(f"record {self.ptr}")
        return event

    def wait_event(self, event):
        LOG.append(f"wait {self.ptr}")


stream = Stream()
xp.cuda = types.SimpleNamespace(
    Event=Event,
    Stream=Stream,
    get_current_stream=lambda: stream,
    runtime=types.SimpleNamespace(getDeviceProperties=lambda i: {"uuid": b"x"}),
)
Array.device = property(lambda self: Device())
Array.__cuda_array_interface__ = property(lambda self: self.held.__array_interface__)


class NCCL:
    """NCCL among processes of this host, adding in an order of its own."""

    SUM, MAX, MIN = np.add, np.fmax, np.fmin
    grouped = None

    @staticmethod
    def get_version():
        return types.SimpleNamespace(libnccl="2.32")

    @staticmethod
    def get_unique_id():
        assert job.rank == 0
        return bytes(range(128))

    class UniqueId:
        from_bytes = bytes

    class Communicator:
        @classmethod
        def init(cls, nranks, rank, unique_id, config=None):
            assert (nranks, rank) == (job.size, job.rank)
            assert unique_id == bytes(range(128)) and Device.entered
            LOG.append("init")
            return cls()

        def allreduce(self, sendbuf, recvbuf, op, *, stream=None, config=None):
            assert sendbuf.held.flags.c_contiguous and recvbuf.held.flags.c_contiguous
            assert sendbuf.dtype == recvbuf.dtype and sendbuf.size == recvbuf.size
            NCCL.grouped.append((sendbuf.held, recvbuf.held, op))
            LOG.append(f"allreduce {op.__name__} {stream}")

    @staticmethod
    @contextlib.contextmanager
    def group():
        NCCL.grouped = []
        yield
        for source, target, op in NCCL.grouped:
            parts = MPI.COMM_WORLD.allgather(source)
            target.reshape(-1)[:] = op.reduce(parts[::-1]).reshape(-1)
        LOG.append("group")


def on_gpu(array):
    return Array.holding(np.array(array))


def compare(arrays, op="sum", compression=None, exact=True):
    """Hold the all-reduce of GPU arrays against that of the same arrays of NumPy."""
    expected = job.all_reduce(arrays, op, compression)
    del LOG[:]
    digest = hashlib.sha256()
    for result in (
        job.all_reduce([on_gpu(a) for a in arrays], op, compression),
        job.start_all_reduce([on_gpu(a) for a in arrays], op, compression).wait(),
    ):
        for e, r in zip(expected, result):
            assert isinstance(r, Array) and r.dtype == e.dtype, (r, e)
            assert r.shape == e.shape
            if exact:
                assert r.held.tobytes() == e.tobytes(), (op, e, r)
            else:
                np.testing.assert_allclose(r.held, e, 1e-5, 1e-5)
            digest.update(r.held.tobytes())
    # That of MPI itself would keep the processors busy while it waits.
    found = job.all_gather(np.frombuffer(digest.digest(), np.uint8))
    assert len({each.tobytes() for each in found}) == 1
    assert not Device.entered


def arrays_of_all_kinds():
    generator = np.random.default_rng(job.rank)
    normal = generator.standard_normal
    return [
        normal((3, 4)).astype(np.float32),
        normal(40_001),  # it travels alone
        normal((4, 5)).astype(np.float32).T,
        np.float32(normal()).reshape(()),
        np.zeros((0, 3), np.float32),
        generator.integers(-9, 9, (2, 3)),
    ]


def test_all(exact):
    arrays = arrays_of_all_kinds()
    compare(arrays, exact=exact)
    compare(arrays[:-1], "mean", exact=exact)
    with_nan = arrays[0].copy()
    with_nan[job.rank, 0] = np.nan
    for op in ("max", "min"):
        compare([with_nan, *arrays[1:], arrays[0] > 0], op)
    compare(arrays[:3], compression="float16")
    compare([arrays[0] * 1j, arrays[-1].astype(np.int16)])  # no dtypes of NCCL
    mixed = job.all_reduce([on_gpu([1.0]), np.array([2.0])])
    assert isinstance(mixed[0], Array) and isinstance(mixed[1], np.ndarray)
    assert mixed[0].held == job.size and mixed[1] == 2 * job.size

    x = tw.convert_to_tensor(on_gpu([1.0, 2.0]))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.distribute.all_reduce(x, "sum")
    gradient = tape.gradient(y, x)
    for tensor in (y, gradient, tw.distribute.all_reduce({"x": x}, "sum")["x"]):
        assert isinstance(tensor.array, Array)
    assert gradient.array.held.tolist() == [job.size] * 2


def test_mpi():
    test_all(exact=True)
    large = np.ones(48_000)  # the ranks divide it
    compare([large])
    assert LOG == ["synchronize"] * 4  # each before MPI reads: the pieces, the sums


def test_nccl():
    sys.modules["nccl"] = types.ModuleType("nccl")
    sys.modules["nccl.core"] = sys.modules["nccl"].core = NCCL
    compare([np.ones(3)])
    first = ["record 1", "init", "wait 2", "allreduce add 2", "group", "record 2"]
    assert LOG == [*first, *[entry for entry in first if entry != "init"]], LOG
    test_all(exact=False)
    compare([np.ones(3, np.float32), np.ones(2, np.int32)], "max")
    once = ["record 1", "wait 2", *["allreduce fmax 2"] * 3, "group", "record 2"]
    assert LOG == once * 2, LOG  # the third is that of NaN
    compare([np.ones(2, np.float32)], compression="float16")
    assert not LOG


def test_pieces():
    """The halves of an all-reduce, and a sharded optimizer that uses them."""
    bounds = [(0, 1), *[(1 + 2 * r, 3 + 2 * r) for r in range(job.size - 1)]]
    total = sum([np.arange(bounds[-1][1]) + r for r in range(job.size)])
    own = job.reduce_scatter(on_gpu(np.arange(bounds[-1][1]) + job.rank), bounds)
    assert type(own) is Array
    assert np.array_equal(own.held, total[slice(*bounds[job.rank])])
    flat = on_gpu(np.where(np.arange(len(total)) // 2 == 9, 0.0, -1.0))
    flat[slice(*bounds[job.rank])] = own.astype(flat.dtype)
    job.all_gather_pieces(flat, bounds)
    assert np.array_equal(flat.held, total)
    start = np.linspace(0, 1, 35, dtype="f4").reshape(7, 5)
    for name in ("Adam", "Muon"):
        expected = tw.Variable(start)
        getattr(tw.optimizers, name)(0.1).apply([tw.constant(start - 0.5)], [expected])
        with devices.use_module(xp):
            v, g = tw.Variable(start), tw.constant(start - 0.5)
        optimizer = tw.distribute.shard_optimizer(getattr(tw.optimizers, name)(0.1))
        optimizer.apply([g], [v])
        assert type(v.read().array) is Array
        np.testing.assert_allclose(v.numpy(), expected.numpy(), 1e-5)
        slots = [s.numpy() for s in optimizer.variables[2:]]
        assert all([slot.shape == (7, 5) and slot.any() for slot in slots])


def test_host():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        test_all(exact=True)
    test_pieces()
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == (job.rank == 0), messages
    assert all("goes through the host" in m and "nccl4py[cu12]" in m for m in messages)
    assert not LOG


# NCCL comes last: once it is there, it is the way without a setting.
WAYS = [
    (test_mpi, {"MPICH_GPU_SUPPORT_ENABLED": "1"}),
    (test_mpi, {gpu.SETTING: "mpi"}),
    (test_host, {}),
    (test_nccl, {}),
]


def test_each_way():
    """Each in its environment, as if it had been chosen at the first call."""
    for name in (gpu.SETTING, "MPICH_GPU_SUPPORT_ENABLED", "MV2_USE_CUDA"):
        os.environ.pop(name, None)
    for way, environment in WAYS:
        job._on_gpu = gpu.GPUReduction(job, job._mpi, MPI.__file__)
        os.environ.update(environment)
        way()
        for name in environment:
            del os.environ[name]


def test_differing():
    """Each rank has an array of another dtype."""
    job.all_reduce([on_gpu(np.ones(3, f"float{32 << job.rank % 2}"))])


test_differing() if "differing" in sys.argv else test_each_way()
