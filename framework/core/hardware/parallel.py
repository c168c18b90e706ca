"""Parallel execution of independent pieces of work in several threads.

NumPy releases the GIL while it computes, as do reads and checksums. A thread waits some
ten microseconds to acquire the GIL again, so threads only pay off for calls that take
at least as long: on pieces of 100,000 entries, not on small arrays.
"""

from __future__ import annotations

import contextvars
import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ..settings.target_settings import MOST_THREADS, threads

SHARE = 1 << 20  # entries of an array that are worth a thread

T, R = TypeVar("T"), TypeVar("R")

_here = threading.local()  # `busy`: this thread works on pieces


def parallel_for(
    work: Callable[[T], object], items: Iterable[T], entries: int | None = None
) -> None:
    """Call ``work`` with every item, in up to `config.threads` threads, and wait.

    ``entries`` is the size of the array that ``work`` processes, if any; a thread is
    used for each `SHARE` of them.

    The calling thread also works, so nothing waits for a busy thread. The others run in
    copies of its context: NumPy's error settings are the same there. Nested calls
    inside ``work`` stay on its thread.

    The first exception is raised again; the remaining items are then dropped.
    """
    left = deque(items)
    count = min(len(left), threads_for(entries))
    if count < 2 or getattr(_here, "busy", False):
        for item in left:
            work(item)
        return

    def run():
        _here.busy = True
        try:
            while True:
                try:
                    item = left.popleft()
                except IndexError:
                    return
                work(item)
        except BaseException:
            left.clear()
            raise
        finally:
            _here.busy = False

    helpers = [
        _submitted(contextvars.copy_context().run, run) for _ in range(count - 1)
    ]
    helpers = [each for each in helpers if each is not None]
    try:
        run()
    finally:
        begun = [each for each in helpers if not each.cancel()]
        try:
            _wait(begun)
        except BaseException:  # an interrupt: nobody may write to arrays any more
            left.clear()
            _wait(begun)
            raise
    for each in begun:
        each.result()


def threads_for(entries: int | None) -> int:
    """Return how many threads may process an array; ``entries`` is None without one."""
    return threads() if entries is None else max(1, min(threads(), entries // SHARE))


def parallel_map(
    function: Callable[[T], R], items: Iterable[T], entries: int | None = None
) -> list[R]:
    """Return ``function(item)`` for each item, in order: see `parallel_for`."""
    items = list(items)
    results: list[Any] = [None] * len(items)

    def work(i):
        results[i] = function(items[i])

    parallel_for(work, range(len(items)), entries)
    return results


def _submitted(function, *arguments):
    """Let a thread of the pool call a function; None while the interpreter shuts down."""
    try:
        return _pool().submit(function, *arguments)
    except RuntimeError:
        return None


@functools.cache
def _pool():
    from concurrent.futures import ThreadPoolExecutor  # 5 ms that few programs need

    return ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="tapewright")


if hasattr(os, "register_at_fork"):  # a forked process has none of the threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def _wait(futures):
    for each in futures:
        each.exception()
