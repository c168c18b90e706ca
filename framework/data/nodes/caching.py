"""Nodes that keep elements, or make them ahead of time: cache, prefetch."""

import atexit
import queue
import threading
import time
import weakref
from contextlib import nullcontext, suppress
from functools import partial

import numpy as np

from tapewright.core.nest import flatten

from .node import Node, Rows, Selection, copy_position


class Cache(Selection):
    """Elements of the first iteration, kept in memory for all later iterations.

    Elements of one shape are kept as arrays, from which `batch` gathers.
    """

    runs_ahead = True
    source_rows = None

    def __init__(self, source):
        super().__init__(source)
        self._memory = None
        self._rows = None
        self._parts = {}  # of the elements, while these are not there themselves
        self._origin = None  # where the run begins that fills the memory

    @property
    def rows(self):
        return self._rows

    def begin(self):
        if self._origin is None:
            return super().begin()
        return {"inputs": [copy_position(self._origin)], **self.start()}

    def start(self):
        return {"given": 0}

    def repeat_position(self, position):
        return {"inputs": copy_position(position["inputs"]), **self.start()}

    def adopt_state(self, position):
        super().adopt_state(position)
        if self._origin != position["inputs"][0]:
            self._memory = self._rows = None
            self._parts = {}
            self._origin = copy_position(position["inputs"][0])

    def run(self, position):
        if self._rows is not None:
            yield from super().run(position)
            return
        elements = self._filling(position) if self._memory is None else self._memory
        for number, element in enumerate(elements):
            if number == position["given"]:
                position["given"] += 1
                yield element

    def _filling(self, position):
        memory = []
        for element in self.inputs[0].run(copy_position(position["inputs"][0])):
            memory.append(element)
            yield element
        if self._memory is None:
            self._origin, self._memory = copy_position(position["inputs"][0]), memory
            self._rows = _as_rows(memory)
            if self._rows is not None:
                self._memory = self._rows

    def run_part(self, position, part):
        if self._memory is not None:
            return super(Selection, self).run_part(position, part)
        return self._part(position, part)

    def _part(self, position, part):
        memory = self._parts.get(part.key)
        elements = self._filling_part(position, part) if memory is None else memory
        for number, element in enumerate(elements):
            if number == position["given"]:
                position["given"] += 1
                yield element

    def _filling_part(self, position, part):
        origin, memory = copy_position(position["inputs"][0]), []
        for element in self.inputs[0].run_part(copy_position(origin), part):
            memory.append(element)
            yield element
        if part.key not in self._parts:
            # A whole run that fills the memory later begins there, too.
            self._origin, self._parts[part.key] = origin, memory

    def processes_of(self, position):
        if self._memory is not None:
            return nullcontext()
        return super().processes_of(position)

    lazy_items, materialize = Node.lazy_items, Node.materialize

    def select(self, position, run):
        for index in range(position["given"], len(self._rows)):
            position["given"] = index + 1
            yield index

    def size(self):
        return self.inputs[0].size() if self._memory is None else len(self._memory)


def _as_rows(elements):
    """Return the elements as `Rows`, or None if they differ in structure, shape or dtype."""
    columns = [flatten(element) for element in elements]
    specs = {
        (type(element), *[_spec(leaf) for leaf in column])
        for element, column in zip(elements, columns, strict=True)
    }
    if len(specs) != 1 or None in next(iter(specs)) or not columns[0]:
        return None
    arrays = [
        np.stack([t.array for t in column]) for column in zip(*columns, strict=True)
    ]
    return Rows(elements[0], arrays)


def _spec(leaf):
    array = getattr(leaf, "array", None)
    return None if array is None else (np.shape(array), array.dtype)


class Prefetch(Node):
    """The input, run ahead by a thread; a queue holds up to ``buffer_size`` elements.

    An error in the thread is raised in place of the element. The thread ends with the
    iteration, also if that is abandoned half-way, and with the process.
    """

    runs_ahead = True

    def __init__(self, source, buffer_size):
        super().__init__(source)
        self._buffer_size = buffer_size if buffer_size > 0 else 2

    def run(self, position):
        return self._ahead(position, self.inputs[0].run)

    def run_part(self, position, part):
        return self._ahead(position, lambda start: self.inputs[0].run_part(start, part))

    def _ahead(self, position, run_input):
        waiting = queue.Queue(self._buffer_size)
        stopped = threading.Event()
        run = _Run()
        put = partial(_put, waiting, stopped, weakref.ref(run))
        thread = threading.Thread(
            target=_produce,
            args=(run_input, copy_position(position["inputs"][0]), put),
            name="tapewright-prefetch",
            daemon=True,
        )
        stop = partial(_stop, stopped, waiting)
        _THREADS[thread] = stop
        # Before the libraries that the thread uses clear up: the last function goes first.
        atexit.unregister(_stop_all)
        atexit.register(_stop_all)
        try:
            thread.start()
            while True:
                element, position["inputs"][0], error = waiting.get()
                if error is not None:
                    raise error
                if element is _END:
                    return
                yield element
        finally:
            stop()


class _Run:
    """Object with the lifetime of a run.

    The thread stops once it is gone, even if Ctrl-C prevented a proper end.
    """


_END = object()


def _produce(run, position, put):
    """Put ``(element, position after it, error)`` until the end, or until stopped."""
    elements = None
    try:
        elements = run(position)
        for element in elements:
            if not put((element, copy_position(position), None)):
                return
        put((_END, copy_position(position), None))
    except BaseException as error:  # it belongs to the consumer, whatever it is
        put((_END, copy_position(position), error))
    finally:
        del elements


def _put(waiting, stopped, run, item):
    """Put the item once there is room; return whether to continue."""
    while not stopped.is_set() and run() is not None:
        with suppress(queue.Full):
            waiting.put(item, timeout=0.5)
            return not stopped.is_set()
    return False


def _stop(stopped, waiting):
    stopped.set()
    with suppress(queue.Empty):
        while True:  # a thread that waits for room goes on, and sees the flag
            waiting.get_nowait()


_THREADS = weakref.WeakKeyDictionary()  # thread -> what stops it
PATIENCE = 5  # seconds for a thread to finish its element as the process ends


def _stop_all():
    """Stop the threads: one that closes a file while Python ends crashes the process."""
    threads = dict(_THREADS)
    for stop in threads.values():
        stop()
    end = time.monotonic() + PATIENCE
    for thread in threads:
        if thread.is_alive():
            thread.join(max(end - time.monotonic(), 0))
