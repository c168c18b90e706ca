"""Nodes: the sources and transformations of a dataset, and positions in a run of them.

A *position* is a dict of plain values, the state of a run through a node:
``{"inputs": [positions of its inputs], ...counts of the node}``. `Node.run` yields
elements and keeps the position up to date: at every element it is the position after
it, and a run from a copy continues from there.
"""

from collections import deque
from contextlib import ExitStack, contextmanager
from itertools import islice

import numpy as np

from tapewright.compiler.tracing.tracer import fall_back
from tapewright.core.interpreters import active_tracer
from tapewright.core.tensor import new_tensor
from tapewright.core.text import row
from tapewright.ops.random.generators import get_global_generator, key_of_seed

from ..elements import packer
from .gathering import row_taker

INFINITE, UNKNOWN = -1, -2  # cardinalities, as in tf.data


def copy_position(position):
    """Copy a position."""
    if isinstance(position, dict):
        return {key: copy_position(value) for key, value in position.items()}
    return (
        [copy_position(value) for value in position]
        if isinstance(position, list)
        else position
    )


def with_run(position, run):
    """Return a position with the random numbers of another run."""
    inputs = [with_run(each, run) for each in position["inputs"]]
    return position | {"inputs": inputs} | ({"run": run} if "run" in position else {})


def new_seed(seed=None):
    """Return a key for random numbers: ``seed``, or one drawn from the global generator."""
    if seed is None:
        if active_tracer() is not None:
            fall_back("a Dataset that draws a random seed is created in each call")
        seed = get_global_generator().make_seeds().numpy()[0, 0]
    return key_of_seed("Dataset", seed)


def _with_processes(processes, elements):
    with processes:
        yield from elements


class Node:
    """A source, or a transformation of the nodes in ``inputs``."""

    rows = source_rows = None  # for nodes whose elements are rows of arrays: `Rows`
    watch = None  # for nodes with a function: `Watch` of draws from other generators
    runs_ahead = False  # True if it asks for elements ahead, or again

    def __init__(self, *inputs):
        self.inputs = inputs

    def begin(self):
        """Return the position of a new run."""
        return {"inputs": [node.begin() for node in self.inputs], **self.start()}

    def start(self):
        """Return the counts of a new run, besides the inputs."""
        return {}

    def repeat_position(self, position):
        """Return the position of the run after the one at ``position``, for `repeat`."""
        pairs = zip(self.inputs, position["inputs"], strict=True)
        return {
            "inputs": [node.repeat_position(p) for node, p in pairs],
            **self.next_round(position),
        }

    def next_round(self, position):
        """Return the counts of a run that repeats the one at ``position``."""
        return self.start()

    @property
    def starts_processes(self):
        """True if a run starts processes."""
        return any([node.starts_processes for node in self.inputs])

    @contextmanager
    def processes_of(self, position):
        """Context that holds the processes of the runs at ``position`` and of its rounds."""
        with ExitStack() as stack:
            for node, its_position in zip(self.inputs, position["inputs"], strict=True):
                stack.enter_context(node.processes_of(its_position))
            yield

    def adopt_state(self, position):
        """Adopt the state that later runs depend on from a restored position."""
        for node, its_position in zip(self.inputs, position["inputs"], strict=True):
            node.adopt_state(its_position)

    def state(self):
        """Return the state that later runs depend on: plain values, for `set_state`."""
        return {"inputs": [node.state() for node in self.inputs]}

    def set_state(self, state):
        """Make the next run the one that would have followed when `state` was called."""
        for node, its_state in zip(self.inputs, state["inputs"], strict=True):
            node.set_state(its_state)

    def first(self):
        """Return the first element without an effect on later runs, or None at the end."""
        state = self.state()
        element = next(self.elements(self.begin()), None)
        self.set_state(state)
        return element

    def run(self, position):
        """Yield the elements from ``position`` on, and keep it up to date."""
        raise NotImplementedError(f"{type(self).__name__} must define run")

    def elements(self, position):
        """Return `run` for a chain that begins or is opened here.

        Processes start before the first element, in the thread that takes it.
        """
        elements = self.run(position)
        if not self.starts_processes:
            return elements
        return _with_processes(self.processes_of(position), elements)

    def run_part(self, position, part):
        """Yield one part of each batch as a `BatchPart`; see `parts`.

        Nodes that can do so skip the rows of other parts; the others slice.
        """
        return map(part.of, self.run(position))

    def lazy_items(self, position):
        """Yield items like `run`, which `materialize` converts to elements if they are needed.

        Items are cheaper than elements that have to be read or computed.
        """
        return self.run(position)

    def materialize(self, groups):
        """Return the elements for items: a list for each list in ``groups``.

        Later groups may be taken ahead.
        """
        return iter(groups)

    def run_input(self, position):
        """Yield the elements of the only input."""
        return self.inputs[0].run(position["inputs"][0])

    def size(self):
        """Return the number of elements, or `INFINITE` or `UNKNOWN`."""
        return self.inputs[0].size()

    def spec(self):
        """Return the structure of an element, with specs for tensors."""
        return self.inputs[0].spec()

    def declares(self):
        """Return whether `spec` is known without reading an element."""
        return all([node.declares() for node in self.inputs])

    def traces(self):
        """Return whether `declares` and `spec` trace functions, which calls them."""
        return any([node.traces() for node in self.inputs])

    def check_spec(self):
        """Raise the error of `spec`, if it needs neither elements nor traces."""
        if not self.traces() and self.declares():
            self.spec()

    def pipeline(self):
        """Return the class names of all nodes, from this one to the sources."""
        names = [type(self).__name__]
        return names + [name for node in self.inputs for name in node.pipeline()]


class Rows:
    """Arrays of one length whose rows are the elements of a node."""

    reads_ahead = False  # whether numbers of rows are taken before the rows are wanted

    def __init__(self, structure, arrays):
        self.arrays = arrays
        self._pack = packer(structure)

    def __len__(self):
        return len(self.arrays[0])

    def element(self, index):
        """Return the row at an index."""
        return self._pack([new_tensor(row(array, index)) for array in self.arrays])

    def elements(self, numbers):
        """Yield the rows of these numbers."""
        return map(self.element, numbers)

    def groups(self, groups):
        """Yield a list of rows for each list of numbers."""
        for numbers in groups:
            yield [self.element(number) for number in numbers]

    def batches(self, blocks, size):
        """Yield rows as elements with a new first axis: views of slices, or gathered.

        ``blocks`` are slices or arrays of numbers; ``size`` is the length of most of
        them.
        """
        takers = [row_taker(array, size) for array in self.arrays]
        for rows in blocks:
            if isinstance(rows, slice):
                arrays = [array[rows] for array in self.arrays]
            else:
                arrays = [take(rows) for take in takers]
            yield self._pack([new_tensor(array) for array in arrays])


class Selection(Node):
    """Node that selects and orders elements without reading them.

    If they are rows of arrays it works on their numbers, so that `batch` can gather.
    """

    @property
    def rows(self):
        return self.inputs[0].rows

    @property
    def source_rows(self):
        """`rows`, without the rows of a cache, which appear while it runs."""
        return self.inputs[0].source_rows

    def select(self, position, run):
        """Yield the chosen items; ``run(node, position)`` yields the items of the input."""
        raise NotImplementedError(f"{type(self).__name__} must define select")

    def run(self, position):
        rows = self.rows
        if rows is None:
            return self.select(position, lambda node, start: node.run(start))
        if rows.reads_ahead:
            elements = rows.elements(self.indices(copy_position(position)))
            return _in_step(elements, self.indices(position))
        return rows.elements(self.indices(position))

    def run_part(self, position, part):
        if self.rows is not None:
            return super().run_part(position, part)
        return self.select(position, lambda node, start: node.run_part(start, part))

    def lazy_items(self, position):
        if self.source_rows is not None:
            return self.indices(position)
        return self.select(position, lambda node, start: node.lazy_items(start))

    def materialize(self, groups):
        if self.source_rows is not None:
            return self.source_rows.groups(groups)
        return self.inputs[0].materialize(groups)

    def indices(self, position):
        """Yield the numbers of the elements among `rows`, if there are rows."""
        return self.select(position, lambda node, start: node.indices(start))

    def blocks(self, position, size):
        """Yield `indices` as arrays or slices of ``size`` numbers."""
        return in_blocks(self.indices(position), size)


def _in_step(elements, numbers):
    """Yield the elements, and advance ``numbers``, which keeps a position, along with them."""
    for element, _ in zip(elements, numbers, strict=False):
        yield element


def in_blocks(indices, size):
    """Yield arrays of ``size`` numbers; the last may be shorter."""
    while len(block := np.fromiter(islice(indices, size), np.intp)):
        yield block


def row_count(rows):
    """Return the number of rows in a list, an array, or a slice of numbers."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


class Seeded(Node):
    """Node with random numbers: a function of its seed, the run and the round.

    Runs are counted here as they begin; rounds are repetitions of an outer `repeat`.
    """

    def __init__(self, *inputs, seed=None):
        super().__init__(*inputs)
        self._seed = new_seed(seed)
        self._runs = 0

    def start(self):
        self._runs += 1
        return {"seed": self._seed, "run": self._runs - 1, "round": 0, "given": 0}

    def next_round(self, position):
        kept = {"seed": position["seed"], "run": position["run"]}
        return {**kept, "round": position["round"] + 1, "given": 0}

    def state(self):
        return {**super().state(), "seed": self._seed, "run": self._runs}

    def set_state(self, state):
        super().set_state(state)
        self._seed, self._runs = state["seed"], state["run"]


class Replayed(Node):
    """Node whose state is not a plain value: a position is restored from the start.

    It holds the position of the inputs at the start, and the number of elements
    yielded.
    """

    runs_ahead = True

    def start(self):
        return {"given": 0}

    def replay(self, position):
        """Yield the elements from the start; ``position`` is a copy that may be changed."""
        raise NotImplementedError(f"{type(self).__name__} must define replay")

    def run(self, position):
        elements = self.replay(copy_position(position))
        skip(elements, position["given"])
        return _counted(elements, position)


def skip(items, count):
    """Take ``count`` items and drop them."""
    deque(islice(items, count), maxlen=0)


def _counted(items, position):
    for item in items:
        position["given"] += 1
        yield item
