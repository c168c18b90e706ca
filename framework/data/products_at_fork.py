"""Forks beside calls that multiply matrices.

OpenBLAS ends its threads before a fork. If they are multiplying then, it can wait for
ever. With one thread it has none to end; products that began before have to be awaited.
"""

import os
import threading
import time
from contextlib import contextmanager
from itertools import count

from tapewright.core.hardware import openblas

PATIENCE = 60.0  # seconds
OWN_THREADS = "tapewright"  # how the names of tapewright's threads begin

_numbers = count()
_calls = {}  # number of a running call of a function of elements -> its thread

_one_at_a_time = threading.RLock()  # held in worker processes, which do not fork

if hasattr(os, "register_at_fork"):  # a fork has none of the other threads
    os.register_at_fork(after_in_child=_calls.clear)


def noted(function, *args):
    """Return ``function(*args)``, a call of the program's code that forks wait for."""
    number = next(_numbers)
    _calls[number] = threading.get_ident()
    try:
        return function(*args)
    finally:
        _calls.pop(number, None)


@contextmanager
def no_products(who):
    """Context for forks, in which no function of elements multiplies in several threads.

    NumPy's OpenBLAS has one thread meanwhile, also in the forks. ``who`` is named in
    errors.

    Raises:
        RuntimeError: In a thread of tapewright, since the program may be multiplying; or
            if calls that are running do not end.
    """
    try:
        set_threads = openblas.symbol("openblas_set_num_threads")
    except openblas.Unavailable:
        yield
        return
    with _one_at_a_time:
        before = openblas.threads()
        if before == 1 and _is_single():
            yield
            return
        if threading.current_thread().name.startswith(OWN_THREADS):
            raise RuntimeError(
                f"{who}: processes cannot start in a thread of prefetch, interleave or "
                "a parallel map while OpenBLAS may use several threads, since a fork "
                "could wait for ever. Call map(..., processes=True) after flat_map or "
                "interleave, not in their datasets, or set OPENBLAS_NUM_THREADS=1"
            )
        try:
            set_threads(1)
            _await_calls(who)
            while openblas.threads() > 1:  # set back by native code that was running
                set_threads(1)
                _await_calls(who)
            yield
        finally:
            if openblas.threads() == 1 < before:
                set_threads(before)


def _is_single():
    """Return True if the environment limits OpenBLAS to one thread for good."""
    names = "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"
    return os.cpu_count() == 1 or "1" in [os.environ.get(name) for name in names]


def _await_calls(who):
    """Wait for the end of the calls that run now in other threads."""
    here, end = threading.get_ident(), time.monotonic() + PATIENCE
    left = {number for number, thread in list(_calls.items()) if thread != here}
    while left := left & _calls.keys():
        if time.monotonic() > end:
            raise RuntimeError(
                f"{who}: processes cannot start while functions of elements run in "
                f"other threads, and {len(left)} did not end in {PATIENCE:g} seconds: "
                "they may be multiplying matrices. Set OPENBLAS_NUM_THREADS=1, with "
                "which they are not awaited"
            )
        time.sleep(1e-3)
