"""Threads that call functions of elements, several at a time.

NumPy, Pillow, machine code and file reads release the interpreter's lock, so that such
functions run in parallel; Python code takes turns.
"""

import contextvars
from collections import deque

from tapewright.core.interpreters import set_interpreters

NAME = "tapewright-workers"


class Workers:
    """``count`` threads, which end with the object or with `close`.

    They run in copies of the context of the thread that creates them, without its
    tapes: elements are not recorded.
    """

    def __init__(self, count):
        from concurrent.futures import ThreadPoolExecutor  # 5 ms that few programs need

        self.room = 2 * count  # calls that are begun at a time, or wait to be taken
        self._pool = ThreadPoolExecutor(count, NAME)
        self._context = contextvars.copy_context()
        self._context.run(set_interpreters, ())

    def submit(self, function, *args):
        """Call a function in a thread; return a `Future`."""
        return self._pool.submit(self._context.copy().run, function, *args)

    def take(self, queue):
        """Return the next item of a queue that callbacks of calls put there."""
        return queue.get()

    def close(self):
        """Finish the running calls, drop the others, and end the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class Done:
    """Finished call with a result or an error, like a `Future` of `Workers.submit`.

    A `Future` has a lock: it takes 3 us, ten times as long, and a map of short calls 6 us
    more for each element, a third of its time.
    """

    __slots__ = ("_error", "_result")

    def __init__(self, result=None, error=None):
        self._result, self._error = result, error

    def result(self):
        """Return the result, or raise the error."""
        if self._error is not None:
            raise self._error
        return self._result

    def add_done_callback(self, function):
        """Call ``function(self)`` at once."""
        function(self)


def done_now(function, *args):
    """Call a function in this thread now, and return it as a finished call."""
    try:
        return Done(function(*args))
    except Exception as error:
        return Done(error=error)


def take_ahead(items, room):
    """Yield the items, taking up to ``room()`` of them ahead of use."""
    waiting = deque()
    for item in items:
        waiting.append(item)
        while len(waiting) >= room():
            yield waiting.popleft()
    while waiting:
        yield waiting.popleft()
