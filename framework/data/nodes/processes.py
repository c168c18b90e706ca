"""Processes that call functions of elements, several at a time.

Python code holds the interpreter's lock: threads take turns, processes do not. Calls and
results travel in shared memory, in *slots* that are used again and again. Pipes carry the
numbers of the slots only: messages that short arrive whole or not at all, even from a
process that is killed.

On Linux the processes are forked, so any function will do. Elsewhere they are spawned,
since a fork is missing or unsafe, and the function is pickled.
"""

import copyreg
import errno
import io
import mmap
import os
import pickle
import signal
import struct
import sys
import threading
from collections import ChainMap
from contextlib import nullcontext, suppress
from itertools import accumulate

import numpy as np

from tapewright.core.hardware import devices
from tapewright.core.interpreters import (
    Interpreter,
    set_interpreters,
    use_interpreters,
)
from tapewright.core.settings.target_settings import set_threads
from tapewright.core.tensor import Tensor, new_tensor

from ..products_at_fork import no_products
from ..rng import Draws, captured_generators, seed_generators
from .workers import Done

METHOD = "fork" if sys.platform == "linux" else "spawn"
NAME = "tapewright-process"
LARGE = 1 << 12  # bytes, from which on an array is not copied into a pickle
ALIGNMENT = 64  # bytes
PATIENCE = 1.0  # seconds between two looks at the processes, besides their signals


class Processes:
    """``count`` processes that call ``function(draws, number, item)``.

    They end with `close` or with this process, however it ends. Each holds a copy of the
    function as it was when they were started. Generators of NumPy and Python, global or
    captured by the function, are seeded for each call from ``draws``, so that numbers
    do not depend on the process that makes a call. ``who`` is named in errors.
    """

    def __init__(self, who, function, count, room=None):
        import multiprocessing  # 10 ms that few programs need

        if multiprocessing.current_process().daemon:
            raise RuntimeError(
                f"{who}: a worker process cannot start processes itself; use threads"
            )
        context = multiprocessing.get_context(METHOD)
        self.room = room or 2 * count  # calls that are begun at a time
        self._who, self._pid = who, os.getpid()
        self._slots, self._processes, self._pipes = [], [], []
        self._free, self._calls = list(range(self.room)), {}
        self._lock = threading.RLock()  # copies of an iterator share the processes
        self._end = None  # the error for a process that has ended
        try:
            self._open(context, function, count)
        except OSError as error:
            self.close()
            if error.errno == errno.EMFILE:
                raise _too_many_files(who, count) from error
            raise
        except BaseException:
            self.close()
            raise

    def _open(self, context, function, count):
        """Open files and start the processes."""
        for _ in range(self.room):
            self._slots.append(_new_slot())
        jobs, self._jobs = context.Pipe(duplex=False)
        self._results, results = context.Pipe(duplex=False)
        self._pipes += self._jobs, self._results
        # Held here, since a spawned process opens them later.
        self._locks = [context.Lock() for _ in range(2)]
        try:
            with no_products(self._who) if METHOD == "fork" else nullcontext():
                for _ in range(count):
                    process = context.Process(
                        target=_serve,
                        args=(function, self._slots, jobs, results, *self._locks),
                        name=NAME,
                        daemon=True,
                    )
                    _start(process, self._who)
                    self._processes.append(process)
        finally:
            jobs.close()
            results.close()

    def _check(self):
        """Reject calls after the end of a process, and in a fork of this one.

        Raises:
            BrokenProcessPool: If a process has ended.
            RuntimeError: In another process, which would take messages of this one.
        """
        if os.getpid() != self._pid:
            raise RuntimeError(
                f"{self._who}: the worker processes belong to another process, which "
                "was forked; create an iterator in this one"
            )
        if self._end is not None:
            raise self._end

    def submit(self, draws, number, item):
        """Call the function in a process; return a call like a `Future`."""
        self._check()
        with self._lock:
            while not self._free:
                self._receive()
            slot = self._free.pop()
            try:
                self._slots[slot].write((draws.words, number, item))
            except Exception as error:
                self._free.append(slot)
                return Done(error=error)
            self._calls[slot] = call = _Call(self)
            with suppress(BrokenPipeError):  # all have died, as the result will tell
                self._jobs.send_bytes(slot.to_bytes(4))
            return call

    def take(self, queue):
        """Return the next item of a queue that callbacks of calls put there."""
        self.receive_until(lambda: not queue.empty())
        return queue.get()

    def receive_until(self, is_done):
        """Receive results until ``is_done()`` is true."""
        self._check()
        with self._lock:
            while not is_done():
                self._receive()

    def _receive(self):
        """Wait for a result, and hand it to its call."""
        slot = int.from_bytes(self._message())
        try:
            result, error = self._slots[slot].read()
        except Exception as unreadable:
            result, error = None, unreadable
        self._free.append(slot)
        self._calls.pop(slot).end(Done(result, error))

    def _message(self):
        """Return the next message of a process.

        Raises:
            BrokenProcessPool: If there is none, and a process has ended.
        """
        from multiprocessing.connection import wait

        sources = [self._results, *[each.sentinel for each in self._processes]]
        while True:
            ready = wait(sources, PATIENCE)
            if self._results in ready:
                with suppress(EOFError):  # all have ended
                    return self._results.recv_bytes()
            for process in self._processes:
                # A process that it started itself may keep the sentinel open.
                if process.sentinel in ready or process.exitcode is not None:
                    self._end = _broken(self._who, process)
                    raise self._end

    def close(self):
        """End the processes, and with them the calls that are running."""
        if os.getpid() != self._pid:  # a fork: they are not its children
            return
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()
        for each in (*self._pipes, *self._slots):
            each.close()
        self._slots.clear()
        self._calls.clear()  # each holds this object, and it holds them


class _Call:
    """Call of `Processes.submit`; results arrive when one is waited for."""

    def __init__(self, processes):
        self._processes, self._done, self._callbacks = processes, None, []

    def result(self):
        self._processes.receive_until(lambda: self._done is not None)
        return self._done.result()

    def add_done_callback(self, function):
        if self._done is None:
            self._callbacks.append(function)
        else:
            function(self)

    def end(self, done):
        self._done = done
        for function in self._callbacks:
            function(self)


class _Slot:
    """Shared memory with one value, used by one process at a time.

    It is a file that grows with the largest value; each process then maps it anew. A
    value is a pickle and large arrays beside it, behind a header of integers: the end,
    the number of the parts, and their sizes.
    """

    def __init__(self, file):
        self._file, self.close = file, file.close
        try:
            self._map(mmap.PAGESIZE)
        except BaseException:
            self.close()
            raise

    def __reduce__(self):
        return _opened_slot, (self._file.name,)

    def _map(self, size):
        file = self._file.fileno()
        if os.fstat(file).st_size < size:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file, 0, size)  # or full memory crashes a write
            else:
                os.ftruncate(file, size)
        self._memory = mmap.mmap(file, 0)

    def write(self, value):
        """Store a value."""
        large = []

        def is_small(buffer):
            return buffer.raw().nbytes < LARGE or large.append(buffer.raw())

        stream = io.BytesIO()
        _Pickler(stream, 5, buffer_callback=is_small).dump(value)
        parts = [stream.getbuffer(), *large]
        sizes = [part.nbytes for part in parts]
        *starts, end = _places(sizes)
        if end > len(self._memory):
            self._map(end)
        struct.pack_into(
            f"={2 + len(sizes)}q", self._memory, 0, end, len(sizes), *sizes
        )
        for part, start, size in zip(parts, starts, sizes, strict=True):
            self._memory[start : start + size] = part

    def read(self):
        """Return the value; its arrays have memory of their own."""
        end, count = struct.unpack_from("=2q", self._memory)
        if end > len(self._memory):
            self._map(end)
        sizes = struct.unpack_from(f"={count}q", self._memory, 16)
        pickled, *large = [
            np.frombuffer(self._memory, np.uint8, size, start)
            for size, start in zip(sizes, _places(sizes), strict=False)
        ]
        return pickle.loads(pickled, buffers=[part.copy() for part in large])


def _new_slot():
    if METHOD == "fork":  # no name, no disk: it goes with the processes
        return _Slot(open(os.memfd_create("tapewright"), "r+b"))
    import tempfile

    return _Slot(tempfile.NamedTemporaryFile("r+b"))


def _opened_slot(name):
    """Return the slot of another process, by the name of its file."""
    # Windows opens a temporary file again only with the flag that made it temporary.
    share = getattr(os, "O_TEMPORARY", 0)
    opener = lambda path, flags: os.open(path, flags | share)  # noqa: E731
    return _Slot(open(name, "r+b", opener=opener))


def _places(sizes):
    """Return the starts of parts of these sizes, and the end."""
    spans = [
        -(-size // ALIGNMENT) * ALIGNMENT for size in (16 + 8 * len(sizes), *sizes)
    ]
    return list(accumulate(spans))


class _Pickler(pickle.Pickler):
    """Pickler of tensors: their classes and dtypes cost more than small arrays do."""

    def _reduced(tensor):
        array = devices.to_numpy(tensor.array)
        is_plain = type(array) is np.ndarray and array.dtype.isbuiltin == 1
        if is_plain and array.dtype.kind in "biufc" and array.flags.c_contiguous:
            return _tensor, (pickle.PickleBuffer(array), array.dtype.char, array.shape)
        return new_tensor, (array,)

    dispatch_table = ChainMap({Tensor: _reduced}, copyreg.dispatch_table)


def _tensor(buffer, dtype, shape):
    return new_tensor(np.ndarray(shape, dtype, buffer))


class _NoAssignments(Interpreter):
    """Interpreter that rejects assignments to variables, which this process would lose."""

    only_watches_variables = True

    def __init__(self, draws):
        self._draws = draws

    def before_assign(self, variable, method, key):
        if variable is not self._draws().state:
            name = getattr(variable, "name", "of a generator")
            raise RuntimeError(
                f"the function assigns to the variable {name!r} in a worker process, "
                "which would be lost with the process (random layers and generators "
                "with a seed assign to their state); use threads (for a Dataset, "
                "processes=False), or random ops and layers without a seed"
            )


def _start(process, who):
    """Start a process; explain why a function cannot be spawned."""
    import warnings

    try:
        with warnings.catch_warnings():
            # Python 3.12 warns of forks beside threads, since a lock that a thread holds
            # stays locked in the fork. Tapewright renews or takes its locks at a fork.
            warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)
            process.start()
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(
            f"{who}: processes are spawned on this system, so the function must be "
            f"picklable, such as a function of a module: {error}"
        ) from error


def _too_many_files(who, count):
    """Return the error for processes that need more files than may be open."""
    import resource  # of systems with this error

    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return OSError(
        errno.EMFILE,
        f"{who}: {count} processes need about {7 * count} open files, and this process "
        f"may have {most} in all; use fewer processes (num_parallel_calls, or workers) "
        "or raise the limit (ulimit -n)",
    )


def _broken(who, process):
    """Return the error for a process that has ended."""
    from concurrent.futures.process import BrokenProcessPool

    process.join(PATIENCE)
    code = process.exitcode
    how = f"with exit code {code}"
    if code is not None and code < 0:
        known = [each.name for each in signal.Signals if each == -code]
        how = f"by {known[0] if known else f'signal {-code}'}"
        if known == ["SIGKILL"]:
            how += ", perhaps since memory ran out"
    return BrokenProcessPool(f"{who}: a worker process (pid {process.pid}) ended {how}")


def is_broken(error):
    """Return True for the error of a worker process that has ended."""
    from concurrent.futures import BrokenExecutor  # 5 ms that few programs need

    return isinstance(error, BrokenExecutor)


# --- in the processes


def _serve(function, slots, jobs, results, jobs_lock, results_lock):
    """Make the calls in the slots until this process is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # not the parent's handler
    threading.Thread(target=_end_with_parent, daemon=True).start()
    set_interpreters(())
    set_threads(1)  # the processes share the cores
    generators = captured_generators(function)
    with devices.use_module(np):  # a fork cannot use the GPU of its parent
        while True:
            with jobs_lock:
                message = jobs.recv_bytes()
            slot = slots[int.from_bytes(message)]
            outcome = _outcome(function, generators, slot)
            try:
                slot.write(outcome)
            except Exception as error:
                error.add_note("The result of the function could not be sent")
                slot.write((None, _sendable(error)))
            del outcome
            with suppress(AttributeError, ValueError, OSError):
                sys.stdout.flush()  # prints would be lost with the process
            with results_lock:
                results.send_bytes(message)


def _outcome(function, generators, slot):
    """Return a pair of the result of a call and its error; one of them is None."""
    try:
        words, number, item = slot.read()
        draws = Draws(dict(zip(("seed", "run", "round"), words, strict=True)))
        seed_generators(generators, (*words, number))
        with use_interpreters((_NoAssignments(draws),)):
            return function(draws, number, item), None
    except BaseException as error:
        return None, _sendable(error)


def _sendable(error):
    """Return an error that arrives with its traceback, as one of `multiprocessing.Pool`."""
    from multiprocessing.pool import ExceptionWithTraceback

    sent = ExceptionWithTraceback(error, error.__traceback__)
    try:
        received = pickle.loads(pickle.dumps(sent))
        if type(received) is not type(error) or str(received) != str(error):
            raise ValueError("its constructor makes another error of its arguments")
    except Exception:
        sent.exc = RuntimeError(f"{type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", ()):
            sent.exc.add_note(note)
    return sent


def _end_with_parent():
    """End this process soon after its parent, even if the parent was killed."""
    from multiprocessing import parent_process

    parent = parent_process()
    # Processes that the parent forked may keep the sentinel open.
    while parent.is_alive() and os.getppid() == parent.pid:
        parent.join(PATIENCE)
    os._exit(1)
