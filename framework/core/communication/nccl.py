"""All-reduces of GPU arrays by NCCL. The only file that imports nccl4py.

The order of additions is NCCL's. Each sum is computed once and copied to all ranks,
which "should always get the same results", according to its authors
(https://github.com/NVIDIA/nccl/issues/1497, and issue 434);
``tw.distribute.check_variables`` compares them. Other runs get the same results as
well, unless NVLink switches add; ``NCCL_NVLS_ENABLE=0`` prevents that.
"""

import numpy as np

from ..dtypes import kind_of
from ..hardware.devices import array_module

# NumPy's names of the dtypes of NCCL.
DTYPES = frozenset(
    "bool int8 uint8 int32 uint32 int64 uint64 float16 float32 float64".split()
)


def load_nccl():
    """Return the nccl4py module; None if it, its CUDA bindings or NCCL is missing."""
    try:
        import nccl.core as nccl
    except ImportError:
        return None
    return nccl if nccl.get_version().libnccl else None


class NCCLReduction:
    """All-reduces on one GPU per rank; ``mpi`` is an mpi4py communicator."""

    def __init__(self, mpi):
        self._mpi = mpi
        self._joined = None  # NCCL's communicator and its stream, from the first use
        self._device = None  # the number of the GPU

    def takes(self, arrays, compression):
        """Return whether NCCL can reduce the arrays; it does not compress."""
        return compression is None and {array.dtype.name for array in arrays} <= DTYPES

    def all_reduce(self, arrays, op):
        """Return a function that exchanges the messages: one group of all-reduces.

        They run on a separate stream. Unlike NumPy's, NCCL's maxima of floating numbers
        ignore NaN, so the positions of NaN are reduced as well.
        """
        xp = array_module(type(arrays[0]))
        self._check_device(arrays[0].device.id)
        sent = [xp.ascontiguousarray(array) for array in arrays]
        is_extreme = op in ("max", "min")
        floating = [
            i for i, a in enumerate(sent) if is_extreme and kind_of(a.dtype) == "f"
        ]
        sent += [xp.isnan(sent[i]) for i in floating]
        received = [xp.empty(array.shape, array.dtype) for array in sent]
        ready = xp.cuda.get_current_stream().record(_event(xp))

        def messages():
            nccl = load_nccl()
            operation = {"max": nccl.MAX, "min": nccl.MIN}.get(op, nccl.SUM)
            operations = [operation] * len(arrays) + [nccl.MAX] * len(floating)
            communicator, stream = self._join(nccl, xp)
            stream.wait_event(ready)
            with nccl.group():
                for source, target, operation in zip(sent, received, operations):
                    if source.size:
                        communicator.allreduce(
                            source, target, operation, stream=stream.ptr
                        )
            yield _Recorded(stream.record(_event(xp)))
            results, are_nan = received[: len(arrays)], received[len(arrays) :]
            for i, is_nan in zip(floating, are_nan):
                results[i][is_nan] = np.nan
            if op == "mean":
                for result in results:
                    xp.divide(result, self._mpi.Get_size(), out=result)
            return [result.reshape(a.shape) for result, a in zip(results, arrays)]

        return messages

    def _check_device(self, number):
        if self._device is None:
            self._device = number
        if self._device != number:
            raise ValueError(
                "all_reduce by NCCL: arrays must be on one GPU in all calls, the first "
                f"were on GPU {self._device}, got GPU {number}"
            )

    def _join(self, nccl, xp):
        """Return NCCL's communicator of all ranks, on the current device, and a stream."""
        if self._joined is None:
            rank = self._mpi.Get_rank()
            identifier = bytes(nccl.get_unique_id()) if rank == 0 else None
            identifier = nccl.UniqueId.from_bytes(self._mpi.bcast(identifier))
            communicator = nccl.Communicator.init(
                self._mpi.Get_size(), rank, identifier
            )
            self._joined = communicator, xp.cuda.Stream(non_blocking=True)
        return self._joined


class _Recorded:
    """A CUDA event that can be waited for like an MPI request."""

    def __init__(self, event):
        self._event = event

    def Test(self):
        return self._event.done


def _event(xp):
    return xp.cuda.Event(disable_timing=True)
