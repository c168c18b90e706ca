"""`ParallelMap` and `ProcessMap`: a function called by several threads or processes.

The elements, their order and their random numbers are the same as with `Map`, and
positions are interchangeable. A position counts delivered elements, not elements taken
ahead.
"""

import queue
import threading
import time
from collections import Counter, deque
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass

from tapewright.core.interpreters import (
    Interpreter,
    active_interpreters,
    use_interpreters,
)
from tapewright.core.settings import determinism
from tapewright.core.settings.target_settings import threads, usable_cores

from ..rng import Draws, Watch
from .mapping import Map, as_mapped
from .node import copy_position
from .processes import Processes
from .workers import Done, Workers, done_now, take_ahead

AUTOTUNE = -1
# Held while iterators share processes, or cease to; a garbage collection may end one then.
_SHARING = threading.RLock()
WORTH = 2e-4  # seconds of a call that are worth a thread
TRIED = 3  # calls to time
SPAN = 8  # times the room: how far elements out of order may be ahead of the first


class ParallelMap(Map):
    """`Map` with ``calls`` threads, or `AUTOTUNE`, which uses none if the calls are short.

    The first call is made alone. If it assigns to variables, as layers with a seed do,
    no threads are used, since the variables would change in another order each time.

    ``in_order=None`` lets options decide; see `allow_any_order`. Where any order is
    allowed, a position lists the elements that were delivered ahead of others.
    """

    runs_ahead = True

    def __init__(self, source, function, calls, in_order=None):
        super().__init__(source, function)
        self.in_order = in_order
        self._count = None if calls == AUTOTUNE else calls
        self._times = []

    def start(self):
        any_order = self.in_order is False and not determinism.is_enforced()
        ahead = {"ahead": []} if any_order else {}
        return super().start() | ahead

    def next_round(self, position):
        ahead = {"ahead": []} if "ahead" in position else {}
        return super().next_round(position) | ahead

    def pipeline(self):
        return ["Map", *super().pipeline()[1:]]

    @property
    def _is_serial(self):
        return self._count == 1

    def run(self, position):
        if self._is_serial:
            yield from super().run(position)
            return
        calls = _Calls(self, position)
        try:
            if "ahead" in position:
                yield from calls.as_they_end()
            else:
                yield from calls.in_order()
        finally:
            calls.close()

    def materialize(self, groups):
        if self._is_serial:
            yield from super().materialize(groups)
            return
        running = _Groups(self)
        calls = (
            [running.submitted(*each) for each in group] for group in self.calls(groups)
        )
        try:
            for group in take_ahead(calls, lambda: 2):
                yield [future.result() for future in group]
        finally:
            running.close()

    def workers(self, run):
        """Return the workers for a run, or None until they are known to pay off.

        ``run`` is the seed and the number of the run.
        """
        alone = self.watch.is_open or self._count in (None, 1)
        return None if alone else self.pool(run)

    def pool(self, run):
        """Return workers for the calls of a run."""
        return Workers(self._count or threads())

    def release(self, workers):
        """End the workers of a run."""
        workers.close()

    def submit(self, workers, draws, number, element):
        """Return a call of the function for an element, made by the workers."""
        return workers.submit(self.mapped, draws, number, element)

    def mapped(self, draws, number, element):
        """Return the result for an element; the first calls of `AUTOTUNE` are timed."""
        if self.watch.is_open:
            return self._first(draws, number, element)
        if self._count is not None:
            return as_mapped(self.result(draws, number, element))
        start = time.perf_counter()
        result = as_mapped(self.result(draws, number, element))
        self._times.append(time.perf_counter() - start)
        if len(self._times) >= TRIED:
            self._count = threads() if min(self._times) > WORTH else 1
        return result

    def _first(self, draws, number, element):
        assignments = _Assignments(draws)
        with use_interpreters((*active_interpreters(), assignments)):
            result = as_mapped(self.result(draws, number, element))
        if assignments.seen:
            self._count = 1
        return result


class ProcessMap(ParallelMap):
    """`ParallelMap` with ``calls`` processes, or `AUTOTUNE`, which uses all cores.

    All calls are made in the processes. The function may not assign to variables.

    Processes start with the iteration, in the thread that takes the first element, and
    rounds of `repeat` share them: see `products_at_fork`.
    """

    starts_processes = True
    _is_serial = False

    def __init__(self, source, function, calls, in_order=None):
        count = usable_cores() if calls == AUTOTUNE else calls
        super().__init__(source, function, count, in_order)
        self.watch = Watch(0)  # other generators are seeded for each call
        self._processes = {}  # the seed and the number of a run -> its processes
        self._users = Counter()  # of these processes

    @contextmanager
    def processes_of(self, position):
        with super().processes_of(position):
            processes = self.pool(_run(position))
            try:
                yield
            finally:
                self.release(processes)

    def workers(self, run):
        return self.pool(run)

    def pool(self, run):
        with _SHARING:
            processes = self._processes.get(run)
            if processes is None:
                alone = copy(self)  # what calls the function, without other state
                alone.inputs, alone._processes, alone._users = (), {}, None
                processes = Processes("Dataset.map", alone.mapped, self._count)
                self._processes[run] = processes
            self._users[processes] += 1
            return processes

    def release(self, workers):
        with _SHARING:
            self._users[workers] -= 1
            if self._users[workers]:
                return
            del self._users[workers]
            self._processes = {
                run: x for run, x in self._processes.items() if x is not workers
            }
        workers.close()

    def submit(self, workers, draws, number, element):
        return workers.submit(draws, number, element)


def _run(position):
    return position["seed"], position["run"]


class _Groups:
    """The calls of `ParallelMap.materialize`."""

    def __init__(self, node):
        self._node, self._workers = node, None

    def submitted(self, call, element):
        if call.result is not None:
            return Done(call.result)
        if self._workers is None:
            self._workers = self._node.pool(tuple(call.draws.words[:2]))
        return self._node.submit(self._workers, call.draws, call.number, element)

    def close(self):
        if self._workers is not None:
            self._node.release(self._workers)


class _Assignments(Interpreter):
    """Detector of assignments to variables, except the generator state of `Draws`."""

    only_watches_variables = True

    def __init__(self, draws):
        self._draws, self.seen = draws, False

    def before_assign(self, variable, method, key):
        self.seen |= variable is not self._draws().state


@dataclass(slots=True)
class _Call:
    number: int
    after: dict  # the position of the input after the element
    future: object = None  # None for what was delivered before
    delivered: bool = False


class _Calls:
    """The calls of one run; ``position`` is kept up to date."""

    def __init__(self, node, position):
        self._node, self._position = node, position
        self._workers = None
        self._live = copy_position(position["inputs"][0])

    def close(self):
        if self._workers is not None:
            self._node.release(self._workers)

    def _room(self):
        return 1 if self._workers is None else self._workers.room

    def _begun(self):
        """Yield calls, started on request; a failing input becomes a failing call."""
        node, draws = self._node, Draws(self._position)
        skipped = set(self._position.get("ahead", ()))
        number = self._position["given"]
        # Before the input has threads.
        self._workers = node.workers(_run(self._position))
        elements = node.inputs[0].run(self._live)
        while True:
            number += 1
            try:
                element = next(elements)
            except StopIteration:
                return
            except Exception as error:
                yield _Call(number, copy_position(self._live), Done(error=error))
                return
            call = _Call(number, copy_position(self._live))
            if number in skipped:
                call.delivered = True
                yield call
                continue
            if self._workers is None:
                self._workers = node.workers(_run(self._position))
            if self._workers is None:
                call.future = done_now(node.mapped, draws, number, element)
            else:
                call.future = node.submit(self._workers, draws, number, element)
            yield call

    def _deliver(self, call):
        position = self._position
        position["given"], position["inputs"][0] = call.number, call.after

    def in_order(self):
        """Yield the results in the order of the elements."""
        for call in take_ahead(self._begun(), self._room):
            self._deliver(call)
            yield call.future.result()
        self._position["inputs"][0] = self._live

    def as_they_end(self):
        """Yield the results in the order in which the calls end."""
        begun, ended = self._begun(), queue.SimpleQueue()
        waiting = deque()  # in order; the first of them is not delivered
        running, more = 0, True
        while True:
            while more and running < self._room() and self._is_near(waiting):
                call = next(begun, None)
                more = call is not None
                if not more:
                    break
                waiting.append(call)
                if call.delivered:
                    self._forget(waiting)
                    continue
                running += 1
                call.future.add_done_callback(lambda _, call=call: ended.put(call))
            if not running:
                break
            call = ended.get() if self._workers is None else self._workers.take(ended)
            future, call.future = call.future, None  # or they would hold each other
            running -= 1
            call.delivered = True
            self._position["ahead"].append(call.number)
            self._forget(waiting)
            yield future.result()
        self._position["inputs"][0] = self._live

    def _is_near(self, waiting):
        return len(waiting) < SPAN * self._room()

    def _forget(self, waiting):
        """Move the position past the elements that are delivered without a gap."""
        while waiting and waiting[0].delivered:
            call = waiting.popleft()
            self._deliver(call)
            self._position["ahead"].remove(call.number)


def allow_any_order(node, position):
    """Let parallel maps without a setting deliver as calls end, in the run at a position."""
    if determinism.is_enforced():
        return
    if isinstance(node, ParallelMap) and node.in_order is None:
        position.setdefault("ahead", [])
    for each, its_position in zip(node.inputs, position["inputs"], strict=True):
        allow_any_order(each, its_position)
