"""`MPICommunicator`: a job with several processes. The only file that imports mpi4py."""

import atexit
import hashlib
import os
import queue
import signal
import sys
import threading
import time
from concurrent.futures import Future
from functools import partial

import numpy as np
from mpi4py import MPI

from ..errors import CollectiveError
from ..hardware.devices import array_module, to_numpy
from ..hooks import watch_method
from ..messages.source_lines import user_line
from .communicator import Communicator, Pending, check_operands, timeout_seconds
from .failures import RankStatus, end_job_on_errors
from .gpu import GPUReduction, holds_gpu_arrays
from .reduction import (
    CHUNK,
    all_gather_pieces,
    as_bytes,
    packed_all_reduce,
    pieces_of,
    reduce_scatter,
    rows_of,
)
from .watchdog import FAILED, LEFT

TEXT = 512  # bytes of the description of a collective
SPIN = 2e-4  # seconds for which a wait keeps its core, if somebody waits for the result
LEAVING = "leave the job (the end of the program)"


class MPICommunicator(Communicator):
    """All processes of ``MPI.COMM_WORLD``, in a separate communicator.

    Collectives run one at a time, in the order of their calls: in the calling thread,
    or in a separate thread if they were started in the background. Each begins with an
    exchange of the calls of all ranks.
    """

    def __init__(self):
        if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
            raise RuntimeError(
                "tapewright needs an MPI that other threads than the main thread may call "
                "(MPI_THREAD_SERIALIZED or higher); mpi4py was initialized with a lower "
                "level, see mpi4py.rc.thread_level"
            )
        self._mpi = MPI.COMM_WORLD.Dup()
        self.rank, self.size = self._mpi.Get_rank(), self._mpi.Get_size()
        self.library = MPI.Get_library_version().splitlines()[0].strip("\0 ")
        host = self._mpi.Split_type(MPI.COMM_TYPE_SHARED, self.rank)
        self.local_rank, self.local_size = host.Get_rank(), host.Get_size()
        self._on_gpu = GPUReduction(self, self._mpi, MPI.__file__)
        self._number = 0  # of collectives that have begun
        self._broken = None  # why no further collective can run
        self._lock = threading.Lock()  # held by the collective that runs
        self._queue, self._thread = queue.SimpleQueue(), None
        self._starting = threading.Lock()
        self._last = None  # the collective that was started last
        self._is_awaited = False  # somebody waits for the queue
        self._spin = SPIN if self.local_size <= (os.cpu_count() or 1) else 0
        self._request = None  # of MPI; its arrays live as long as it may write to them
        self.timeout = timeout_seconds()
        self._pid, self._status = os.getpid(), None
        if self.size > 1:
            end_job_on_errors(self.rank, self._end)
            if hasattr(sys.stdout, "reconfigure"):
                # Launchers kill the ranks that are left, and with them what is buffered.
                sys.stdout.reconfigure(line_buffering=True)
        self._status = RankStatus(host, self.rank, self.size)
        if self.size > 1:
            atexit.register(self._leave)

    # --- collectives

    def begin_step(self):
        super().begin_step()
        self._status.record(self.step, self._number)

    def all_reduce(self, arrays, op="sum", compression=None):
        return self._run(*self._all_reduce(arrays, op, compression))

    def start_all_reduce(self, arrays, op="sum", compression=None):
        return self._start(*self._all_reduce(arrays, op, compression))

    def _all_reduce(self, arrays, op, compression):
        check_operands(arrays, op, compression)
        if holds_gpu_arrays(arrays):
            way, messages = self._on_gpu.all_reduce(arrays, op, compression)
        else:
            way, messages = "", packed_all_reduce(self, arrays, op, compression)
        return _signature(f"all_reduce {op}{way}", arrays, compression), messages

    def reduce_scatter(self, flat, bounds, op="sum", compression=None):
        if holds_gpu_arrays([flat]):
            (total,) = self.all_reduce([flat], op, compression)
            return total[slice(*bounds[self.rank])]
        check_operands([flat], op, compression)
        messages = partial(reduce_scatter, self, flat, bounds, op, compression)
        name = f"reduce_scatter {op} to {_edges(bounds)}"
        return self._run(_signature(name, [flat], compression), messages)

    def all_gather_pieces(self, flat, bounds):
        host = flat
        if holds_gpu_arrays([flat]):
            host, own = np.empty(flat.shape, flat.dtype), slice(*bounds[self.rank])
            host[own] = to_numpy(flat[own])

        messages = partial(all_gather_pieces, self, host, bounds)
        name = f"all_gather_pieces to {_edges(bounds)}"
        self._run(_signature(name, [host]), messages)
        if host is not flat:
            flat[...] = array_module(type(flat)).asarray(host)

    def all_gather(self, array):
        rows = np.ascontiguousarray(array if array.ndim else array[None])
        width = rows[:1].nbytes if len(rows) else rows.itemsize * _size(rows.shape[1:])
        lengths = np.zeros(self.size, np.int64)

        def messages():
            yield self.all_gather_bytes(
                as_bytes(np.array([len(rows)])), as_bytes(lengths)
            )
            received = np.empty((lengths.sum(), *rows.shape[1:]), rows.dtype)
            target = [as_bytes(received), lengths * width]
            yield self._mpi.Iallgatherv(as_bytes(rows), target)
            return received

        shape = ["?", *array.shape[1:]] if array.ndim else []
        gathered = self._run(
            f"all_gather of {array.dtype}[{', '.join(map(str, shape))}]", messages
        )
        if not array.ndim:
            return list(gathered.reshape(-1, 1)[:, 0])
        return np.split(gathered, np.cumsum(lengths)[:-1])

    def broadcast(self, arrays, root=0):
        self.check_root(root)
        arrays = [np.array(array, order="C") for array in arrays]

        def messages():
            for data in map(as_bytes, arrays):
                for start in range(0, len(data), CHUNK):
                    yield self._mpi.Ibcast(data[start : start + CHUNK], root)
            return arrays

        return self._run(_signature(f"broadcast from {root}", arrays), messages)

    def barrier(self):
        self._run("barrier", lambda: iter(()))

    # --- messages, for `reduction`

    def all_to_all(self, sent, bounds, received):
        """Send piece i to rank i and receive row i from it, except from this rank."""
        sent = pieces_of(sent, bounds, self.rank)
        return self._mpi.Ialltoallv(sent, rows_of(received, self.rank))

    def all_gather_bytes(self, own, received):
        """Receive the bytes of all ranks."""
        return self._mpi.Iallgather(own, received)

    def all_gather_in_place(self, flat, bounds):
        """Receive piece i from rank i; the piece of this rank is already filled."""
        return self._mpi.Iallgatherv(MPI.IN_PLACE, pieces_of(flat, bounds))

    # --- the order of collectives

    def _run(self, signature, messages):
        """Run a collective in this thread, after all that were started."""
        self._is_awaited = True
        while (last := self._last) is not None and not last.done():
            last.exception()
        with self._lock:
            self._is_awaited = True
            return self._collective(signature, messages)

    def _start(self, signature, messages):
        """Queue a collective; return its `Future` as a `Pending`."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="tapewright-collectives", daemon=True
                )
                self._thread.start()
            future = self._last = Future()
            self._queue.put((signature, messages, user_line(always=True), future))
        return _Started(self, future)

    def _work(self):
        while True:
            signature, messages, line, future = self._queue.get()
            try:
                with self._lock:
                    result = self._collective(signature, messages, line)
            except BaseException as error:
                finish = partial(future.set_exception, error)
            else:
                finish = partial(future.set_result, result)
            if future is self._last:
                self._is_awaited = False
            finish()
            del messages, future, finish  # and the arrays

    def _collective(self, signature, messages, line=None):
        """Agree on the call with all ranks, then exchange its messages.

        ``line`` is the line of the user's call if it is not in the stack.
        """
        if os.getpid() != self._pid:
            raise CollectiveError(
                f"{signature}: this process was forked from {self._who()}, and is not part "
                "of the job"
            )
        if self._broken is not None:
            raise CollectiveError(self._broken)
        self._number += 1
        self._status.record(self.step, self._number)
        try:
            self._check_agreement(signature, line)
            return self._exchanged(messages(), signature)
        except CollectiveError as error:
            self._broken = str(error)
            raise
        except BaseException as error:  # Ctrl-C, or an error of MPI
            self._broken = f"{signature} was interrupted by {type(error).__name__}"
            raise

    def _exchanged(self, messages, signature):
        """Wait for each request that a generator yields; return its result."""
        try:
            while True:
                self._request = next(messages)
                self._wait(self._request, signature)
        except StopIteration as end:
            return end.value
        except MPI.Exception as error:
            raise CollectiveError(
                f"{self._who()}: {signature} failed: {error}"
            ) from None

    def _check_agreement(self, signature, line):
        """Raise `CollectiveError` unless all ranks make the same call."""
        own = np.array([self._number, _digest(signature)], np.int64)
        everyone = np.empty((self.size, 2), np.int64)
        self._exchanged(
            iter([self.all_gather_bytes(as_bytes(own), as_bytes(everyone))]), signature
        )
        if (everyone == own).all():
            return
        line = line or user_line(always=True)
        text = f"{signature} (step {self.step}{f', {line}' if line else ''})".encode()
        texts = np.zeros((self.size, TEXT), np.uint8)
        own = np.frombuffer(text[:TEXT].ljust(TEXT), np.uint8)
        self._exchanged(iter([self.all_gather_bytes(own, as_bytes(texts))]), signature)
        calls = {}
        for rank, text in enumerate(texts):
            text = bytes(text).decode(errors="replace").strip()
            calls.setdefault(text, []).append(str(rank))
        raise CollectiveError(
            "the ranks do not call the same collective; all must make the same calls in "
            "the same order, with the same shapes and dtypes:"
            + "".join([f"\n  {_ranks(ranks)}: {text}" for text, ranks in calls.items()])
        )

    def _wait(self, request, signature):
        """Wait for a request; raise `CollectiveError` after `timeout`."""
        start = None
        while not request.Test():
            now = time.monotonic()
            start = now if start is None else start
            waited = now - start
            if waited < self._spin and self._is_awaited:
                continue
            if waited > self.timeout and signature != LEAVING:
                raise CollectiveError(
                    f"{self._who()} has waited {waited:.0f} s for the others in {signature}, "
                    f"step {self.step}{self._missing()}. Set TAPEWRIGHT_TIMEOUT to wait longer"
                )
            # MPI moves data in calls of `Test` alone, so that sleep costs bandwidth.
            time.sleep(1e-5 if waited < 0.05 else 1e-4 if waited < 5 else 1e-3)

    def _missing(self):
        """Name the ranks of this host that have not reached the same collective."""
        behind = [row for row in self._status.peers if row[4] < self._number]
        named = [f"rank {row[0]} is in step {row[3]}" for row in behind]
        return f"; {', '.join(named)}" if named else ""

    def _who(self):
        return f"rank {self.rank} of {self.size}"

    # --- the end

    def _end(self, error, text=None):
        """End the job after an uncaught error."""
        atexit.unregister(self._leave)  # MPI_Abort may call exit()
        if self._status is not None:
            self._status.set(FAILED)
        text = f"{type(error).__name__}: {error}" if text is None else text
        try:
            sys.stdout.flush()
            print(
                f"\ntapewright: {self._who()} failed in step {self.step}: {text}\n"
                "The whole job ends",
                file=sys.stderr,
                flush=True,
            )
            time.sleep(0.5)  # MPICH's launcher drops what it has not read at the abort
        finally:
            if hasattr(signal, "alarm"):  # MPI may wait for a host that is cut off
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(5)
            MPI.COMM_WORLD.Abort(1)

    def _leave(self):
        """Leave the job at the end of the program, together with all ranks."""
        if os.getpid() != self._pid or MPI.Is_finalized():
            return
        try:
            self._run(LEAVING, lambda: iter(()))
        except BaseException as error:
            time.sleep(2)  # the others can name the line
            self._end(error)
        self._status.set(LEFT)
        self._status.close()


def _name(communicator, signature, *_):
    """Return the name of a collective in the profiler."""
    return signature.split(" of ")[0]


watch_method(MPICommunicator, "_collective", "collective", _name)


class _Started(Pending):
    """A queued collective."""

    def __init__(self, communicator, future):
        self._communicator, self._future = communicator, future

    def wait(self):
        communicator = self._communicator
        if not self._future.done():
            communicator._is_awaited = True
        return self._future.result()


def _ranks(numbers, most=8):
    """Name ranks, or a few of many."""
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    more = f" and {len(numbers) - most} more" if len(numbers) > most else ""
    return f"ranks {', '.join(numbers[:most])}{more}"


def _edges(bounds):
    return ", ".join([str(stop) for _, stop in bounds])


def _size(shape):
    return int(np.prod(shape, dtype=np.int64))


def _digest(text):
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _signature(name, arrays, compression=None):
    """Describe a collective on arrays as text, which must be the same on all ranks."""
    shapes = ", ".join([f"{a.dtype}{list(a.shape)}" for a in arrays])
    through = f" in {compression}" if compression else ""
    return f"{name}{through} of {shapes or 'nothing'}"
