"""Threads that call functions of elements, several at a time.

NumPy, Pillow, machine code and reads of files let go of the interpreter's lock, so that such
functions run at once; Python code takes turns.
"""

import contextvars
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

from tapewright.core.interpreters import set_interpreters

__all__ = ["NAME", "Workers", "done_now", "failed", "take_ahead"]

NAME = "tapewright-workers"


class Workers:
    """``count`` threads, which end with the object, or with `close`.

    They run in copies of the context of the thread that makes them, without its tapes:
    elements are apart from these.
    """

    def __init__(self, count):
        self.room = 2 * count  # calls that are begun at a time, or wait to be taken
        self._pool = ThreadPoolExecutor(count, NAME)
        self._context = contextvars.copy_context()
        self._context.run(set_interpreters, ())

    def submit(self, function, *args):
        """Let a thread call a function; return a `Future`."""
        return self._pool.submit(self._context.copy().run, function, *args)

    def close(self):
        """End the threads after the calls that they are in; drop the others."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def done_now(function, *args):
    """A `Future` of a call that this thread makes at once."""
    future = Future()
    try:
        future.set_result(function(*args))
    except Exception as error:
        future.set_exception(error)
    return future


def failed(error):
    """A `Future` that raises an error."""
    future = Future()
    future.set_exception(error)
    return future


def take_ahead(items, room):
    """Yield the items, with up to ``room()`` of them taken before they are wanted."""
    waiting = deque()
    for item in items:
        waiting.append(item)
        while len(waiting) >= room():
            yield waiting.popleft()
    while waiting:
        yield waiting.popleft()
