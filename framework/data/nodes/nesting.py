"""Nodes for datasets of datasets: flat_map, interleave, window."""

import time
from collections import deque
from itertools import count, islice

from tapewright.core.nest import flatten, pack
from tapewright.ops.random.generators import drawing_from

from ..elements import call_function
from ..rng import Draws, Watch
from .node import UNKNOWN, Replayed, Seeded, with_run
from .sources import Elements
from .workers import Workers

WHO = "flat_map, interleave: the function"
# A thread reads this many blocks, or seconds, before it is asked again.
AT_ONCE = 16
SPELL = 1e-3


class Interleave(Seeded, Replayed):
    """Elements of the datasets that a function returns for each element, in turn.

    ``cycle_length`` datasets are open at a time; each yields ``block_length`` elements
    in its turn. Random numbers that the function draws without a seed, and the orders
    of the datasets, depend on the number of the element only. ``threads`` is the number
    of datasets that are read ahead.
    """

    name = "interleave"

    def __init__(self, source, function, cycle_length=1, block_length=1, threads=0):
        super().__init__(source)
        self._function = function
        self.watch = Watch()
        self._cycle_length, self._block_length = cycle_length, block_length
        self._threads = threads

    def replay(self, position):
        workers = Workers(self._threads) if self._threads else None
        try:
            yield from self._in_turn(position, workers)
        finally:
            if workers is not None:
                workers.close()

    def _in_turn(self, position, workers):
        outer, draws = self.run_input(position), Draws(position)
        numbers = count(1)
        open_runs = [None] * self._cycle_length
        turn, waiting = 0, True
        while waiting or any(run is not None for run in open_runs):
            if open_runs[turn] is None and waiting:
                element = next(outer, self)
                waiting = element is not self
                if waiting:
                    draws.at(next(numbers))
                    open_runs[turn] = self._opened(element, draws, workers)
            if open_runs[turn] is not None:
                given = 0
                for element in islice(open_runs[turn], self._block_length):
                    given += 1
                    yield element
                if given < self._block_length:
                    open_runs[turn] = None  # filled again when it is its turn
            turn = (turn + 1) % self._cycle_length

    def _opened(self, element, draws, workers):
        with drawing_from(draws):
            inner = self.watch.call(call_function, self._function, element)
        elements = begin_run(WHO, inner, draws)
        if workers is None:
            return elements
        return _read_ahead(workers, elements, AT_ONCE * self._block_length)

    def size(self):
        return UNKNOWN

    def declares(self):
        return False

    def spec(self):
        first = self.inputs[0].first()
        if first is None:
            raise ValueError("element_spec: cannot be inferred from an empty dataset")
        with drawing_from(Draws({"seed": self._seed, "run": 0, "round": 0})):
            inner = call_function(self._function, first)
        return checked_dataset(WHO, inner).element_spec


def begin_run(who, dataset, draws):
    """Iterate over a dataset that a function has returned, with orders from `Draws`.

    Raises:
        TypeError: If it is not a dataset.
    """
    node = checked_dataset(who, dataset)._node
    return node.elements(with_run(node.begin(), draws.run_within()))


def checked_dataset(who, result):
    """Return the result of a function that must return a dataset.

    Raises:
        TypeError: If it is anything else.
    """
    if not hasattr(type(result), "element_spec"):  # of the object it may take long
        raise TypeError(f"{who} must return a Dataset, got {type(result).__name__}")
    return result


def _read_ahead(workers, elements, most):
    """Yield the elements, read by a thread, up to ``most`` at a time."""
    pending = workers.submit(_piece, elements, most)
    while pending is not None:
        piece, error = pending.result()
        pending = None
        if piece and error is None:
            pending = workers.submit(_piece, elements, most)
        yield from piece
        if error is not None:
            raise error


def _piece(elements, most):
    """Return elements up to ``most``, the end, an error or a time limit, and the error."""
    piece, end = [], time.perf_counter() + SPELL
    try:
        for element in islice(elements, most):
            piece.append(element)
            if time.perf_counter() > end:
                break
    except Exception as error:
        return piece, error
    return piece, None


class Window(Replayed):
    """Datasets of ``size`` consecutive elements, ``shift`` apart."""

    def __init__(self, source, wrap, size, shift, stride, drop_remainder):
        super().__init__(source)
        self._wrap = wrap
        self._length, self._shift, self._stride = size, shift, stride
        self._drop_remainder = drop_remainder

    def replay(self, position):
        elements = self.run_input(position)
        span = (self._length - 1) * self._stride + 1
        held = deque(islice(elements, span))
        while held:
            window = list(islice(held, 0, span, self._stride))
            if len(window) == self._length or not self._drop_remainder:
                yield self._windows(window)
            for _ in range(self._shift):
                if not held and next(elements, self) is self:
                    return
                if held:
                    held.popleft()
            held.extend(islice(elements, span - len(held)))

    def _windows(self, elements):
        """Return one dataset for each component, nested like an element."""
        first = elements[0]
        if not isinstance(first, (tuple, dict)):
            return self._wrap(Elements(elements))
        columns = zip(*map(flatten, elements), strict=True)
        return pack(first, [self._wrap(Elements(list(column))) for column in columns])

    def size(self):
        size = self.inputs[0].size()
        if size < 0:
            return size
        span = (self._length - 1) * self._stride + 1 if self._drop_remainder else 1
        return len(range(0, size - span + 1, self._shift))

    def declares(self):
        return False  # its elements are datasets

    def spec(self):
        spec = self.inputs[0].spec()
        nodes = [self._wrap(Elements((), leaf)).element_spec for leaf in flatten(spec)]
        return pack(spec, nodes) if isinstance(spec, (tuple, dict)) else nodes[0]
