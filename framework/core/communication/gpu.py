"""All-reduces of arrays on GPUs: by CUDA-aware MPI, by NCCL, or through the host.

All ranks use the same transport, the first of these that is available on each rank. The
environment variable ``TAPEWRIGHT_GPU_TRANSPORT``, ``mpi``, ``nccl`` or ``host``,
overrides the choice, for an MPI that accepts GPU memory without saying so: an Open MPI
in which only UCX was built for CUDA. MPI and the host add in the order of the ranks,
see `reduction`, with the same bits; NCCL adds in another order, see `nccl`.

The ranks agree on the call on the host before any data are sent, and the host waits for
the end; an all-reduce can therefore not be part of a CUDA graph.
"""

import ctypes
import hashlib
import os
import warnings

import numpy as np

from ..hardware.devices import array_module, to_numpy
from ..messages.source_lines import user_stacklevel
from .nccl import NCCLReduction, load_nccl
from .reduction import packed_all_reduce, pieces_of, rows_of

SETTING = "TAPEWRIGHT_GPU_TRANSPORT"
TRANSPORTS = ("mpi", "nccl", "host")  # the best first
INSTALL = 'pip install "nccl4py[cu12]", or [cu13], as the CUDA of CuPy'


def holds_gpu_arrays(arrays):
    """Return whether any array is not a NumPy array."""
    return any(array_module(type(array)) is not np for array in arrays)


class GPUReduction:
    """All-reduces of GPU arrays by the ranks of an `MPICommunicator`.

    ``mpi`` is its mpi4py communicator, ``library`` the file of mpi4py's extension.
    """

    def __init__(self, communicator, mpi, library):
        self._communicator, self._mpi, self._library = communicator, mpi, library
        self._transport = None  # once the ranks have agreed on it
        self._nccl = NCCLReduction(mpi)

    def all_reduce(self, arrays, op, compression):
        """Return the transport of an all-reduce, for its signature, and its messages.

        The messages may run in another thread: they use the GPU of the arrays and the
        stream that is current when this is called.
        """
        on_gpu = [array for array in arrays if holds_gpu_arrays([array])]
        device, xp = _device(on_gpu), array_module(type(on_gpu[0]))
        transport = "host"
        if len(on_gpu) == len(arrays):
            transport = self._agreed_transport(device, xp)
        if transport == "nccl" and not self._nccl.takes(arrays, compression):
            transport = "host"
        way = {"mpi": " between GPUs", "nccl": " by NCCL", "host": ""}[transport]
        with device:
            stream = xp.cuda.get_current_stream()
            if transport == "mpi":
                channel = _GPUMessages(self._mpi, stream)
                messages = packed_all_reduce(channel, arrays, op, compression)
            elif transport == "nccl":
                messages = self._nccl.all_reduce(arrays, op)
            else:
                messages = self._through_host(arrays, op, compression)

        def on_device():
            with device, stream:
                return (yield from messages())

        return way, on_device

    def _through_host(self, arrays, op, compression):
        on_host = [to_numpy(array) for array in arrays]
        reduced = packed_all_reduce(self._communicator, on_host, op, compression)

        def messages():
            modules = [array_module(type(array)) for array in arrays]
            results = yield from reduced()
            return [xp.asarray(result) for xp, result in zip(modules, results)]

        return messages

    # --- the choice

    def _agreed_transport(self, device, xp):
        """Return the transport of all ranks, which agree on it at the first call."""
        if self._transport is None:
            usable = [name in _usable(self._library) for name in TRANSPORTS]
            own = np.array([usable], np.uint8)
            rows = self._communicator.all_gather(
                np.hstack([own, _identity(device, xp)])
            )
            self._transport = self._best(np.concatenate(rows))
        return self._transport

    def _best(self, rows):
        """Return the best transport that all ranks can use, by their rows."""
        common = rows[:, : len(TRANSPORTS)].all(axis=0)
        is_shared = len(np.unique(rows[:, len(TRANSPORTS) :], axis=0)) < len(rows)
        if is_shared and common.sum() > 1:  # NCCL needs one GPU per process
            common[TRANSPORTS.index("nccl")] = False
        if not common.any():
            raise ValueError(
                f"all_reduce of GPU arrays: {SETTING} must name the same transport in all "
                f"processes, available in each; here it is {_setting()!r}"
            )
        best = TRANSPORTS[int(common.argmax())]
        if best == "host" and not _setting() and self._communicator.rank == 0:
            why = (
                "processes share a GPU, start one process for each GPU"
                if is_shared
                else f"to use NCCL, {INSTALL}, in all processes"
            )
            warnings.warn(
                "all_reduce of GPU arrays goes through the host, which is slow: MPI does "
                f"not report support for GPU memory; {why}. Set {SETTING} to mpi, nccl or "
                "host to choose another transport",
                stacklevel=user_stacklevel(),
            )
        return best


class _GPUMessages:
    """The messages of `reduction` between GPUs, sent by MPI.

    They are blocking, since Open MPI accepts GPU memory in no others, see
    https://www.open-mpi.org/faq/?category=runcuda.
    """

    def __init__(self, mpi, stream):
        self.rank, self.size = mpi.Get_rank(), mpi.Get_size()
        self._mpi, self._stream = mpi, stream

    def all_to_all(self, sent, bounds, received):
        self._stream.synchronize()  # MPI knows of no streams
        sent = pieces_of(sent, bounds, self.rank)
        self._mpi.Alltoallv(sent, rows_of(received, self.rank))
        return _Done()

    def all_gather_bytes(self, own, received):
        self._stream.synchronize()
        self._mpi.Allgather(own, received)
        return _Done()

    def all_gather_in_place(self, flat, bounds):
        self._stream.synchronize()
        self._mpi.Allgatherv(None, pieces_of(flat, bounds))  # in place
        return _Done()


class _Done:
    """A completed MPI request."""

    def Test(self):
        return True


def _device(arrays):
    """Return the device of arrays, which must be the same for all."""
    numbers = sorted({array.device.id for array in arrays})
    if len(numbers) > 1:
        raise ValueError(
            "all_reduce: arrays must be on one GPU in each process, got arrays on GPUs "
            f"{', '.join(map(str, numbers))}"
        )
    return arrays[0].device


def _identity(device, xp):
    """Return a row of bytes that identifies a GPU among all hosts."""
    uuid = xp.cuda.runtime.getDeviceProperties(device.id)["uuid"]
    text = f"{uuid} {device.pci_bus_id}".encode()
    return np.frombuffer(hashlib.blake2b(text, digest_size=8).digest(), np.uint8)[None]


def _setting():
    return os.environ.get(SETTING, "")


def _usable(library):
    """Return the transports of this process: the configured one, or all that are found."""
    setting = _setting()
    if setting not in ("", *TRANSPORTS):
        raise ValueError(
            f"{SETTING} must be one of {', '.join(TRANSPORTS)}, or not set, got "
            f"{setting!r}"
        )
    if setting == "nccl" and load_nccl() is None:
        raise ImportError(f"{SETTING}=nccl, but NCCL is not installed: {INSTALL}")
    if setting:
        return [setting]
    own = ["mpi"] if mpi_takes_gpu_arrays(library) else []
    return [*own, "host"] if load_nccl() is None else [*own, "nccl", "host"]


def mpi_takes_gpu_arrays(library):
    """Return whether MPI reports that it accepts CUDA memory.

    Cray's MPICH and MVAPICH accept it if the user has turned it on; MPICH, Open MPI and
    others have a function that reports it.
    """
    switches = ("MPICH_GPU_SUPPORT_ENABLED", "MV2_USE_CUDA")
    values = [os.environ[name] for name in switches if name in os.environ]
    if values:
        return "1" in values
    query = getattr(ctypes.CDLL(library), "MPIX_Query_cuda_support", None)
    return query is not None and query() == 1
