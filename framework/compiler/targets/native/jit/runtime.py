"""The run-time part of native code: one thread pool, compiled once per process.

Other modules call its functions by name; `symbols` has their addresses. The number of
threads is set with `config.set_threads`; threads are started by the first parallel
region, and sleep when there is no work.
"""

import ctypes
import functools
import os
import threading
import time

from tapewright.core import hooks
from tapewright.core.settings import config
from tapewright.core.settings.target_settings import MOST_THREADS

from .. import atomics
from ..llvm_writer import Writer
from . import engine, thread_pool

# Seconds that a caller looks for the end of the last chunk before it sleeps; see
# `WORKERS_PATIENCE` for workers.
SPIN = 100e-6

_lock = threading.RLock()
if hasattr(os, "register_at_fork"):  # a fork waits until nothing is being made
    os.register_at_fork(
        before=_lock.acquire,
        after_in_parent=_lock.release,
        after_in_child=_lock.release,
    )


def once(make):
    """Return a function that calls ``make`` once for its arguments, and caches the result."""
    kept = functools.cache(make)

    @functools.wraps(make)
    def made(*args):
        with _lock:
            return kept(*args)

    return made


def parallel(writer, function, context, chunks):
    """Append a parallel region: ``function(context, chunk)`` for each chunk.

    ``function`` is the name of a function of the same module with parameters of types
    ``ptr`` and ``i64``; ``context`` is a pointer; ``chunks`` is an integer, or a 64-bit
    value.
    """
    task = writer.symbol(function)
    writer.declared.setdefault(function, f"declare void @{function}(ptr, i64)")
    writer.call("tw_parallel", [task, context, writer.index(chunks)])


def symbols():
    """Return the addresses of the pool's functions by name, for modules that call them."""
    return dict(_pool().addresses)


def threads() -> int:
    """Return the number of threads that run the chunks of a parallel region."""
    return _pool().get_threads()


def set_threads(n: int) -> None:
    """Run parallel regions on up to ``n`` threads, including the calling one.

    Where threads cannot sleep (other than on Linux), regions run on one thread.
    """
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= MOST_THREADS:
        raise ValueError(
            f"set_threads: n must be an integer from 1 to {MOST_THREADS}, got {n!r}"
        )
    _pool().set_threads(n)


class _Pool:
    """The compiled pool; never unloaded, as its workers run or sleep in it."""

    def __init__(self):
        writer, self.parallel, needed = Writer(), atomics.has_futex(), {}
        if self.parallel:
            thread_pool.write_thread_pool(writer)
            needed = c_library(
                "pthread_create", "pthread_detach", "pthread_sigmask", "syscall"
            )
        else:
            thread_pool.write_serial_pool(writer)
        library = engine.compiled(writer.text(), "runtime", needed, level=0)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
        names = ("tw_parallel", "tw_get_threads")
        self.addresses = {name: library.address(name) for name in names}
        if not self.parallel:
            return

        def bound(name, result=None, *kinds):
            return ctypes.CFUNCTYPE(result, *kinds)(library.address(name))

        self._set = bound("tw_set_threads", None, ctypes.c_int32)
        self._get = bound("tw_get_threads", ctypes.c_int32)
        self._set(config.threads())
        hooks.threads_changed.add(self._set)
        clock = bound("tw_ticks", ctypes.c_int64)
        bound("tw_set_spin", None, ctypes.c_int64)(int(SPIN * _rate(clock)))
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=bound("tw_after_fork"))

    def set_threads(self, n):
        if self.parallel:
            self._set(n)

    def get_threads(self):
        return self._get() if self.parallel else 1


_pool = once(_Pool)


def c_library(*names):
    """Return addresses of functions of the C library."""
    library = ctypes.CDLL(None)
    return {n: ctypes.cast(library[n], ctypes.c_void_p).value for n in names}


def _rate(clock):
    """Return the ticks of a clock per second."""
    start, first = time.perf_counter(), clock()
    while (passed := time.perf_counter() - start) < 2e-4:
        pass
    return (clock() - first) / passed
