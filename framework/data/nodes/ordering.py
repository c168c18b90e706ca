"""Nodes that select and order elements: shuffle, repeat, take, skip, shard."""

from itertools import islice

import numpy as np

from tapewright.core.hardware import devices

from ..rng import permutation, shuffle_generator
from .node import INFINITE, UNKNOWN, Seeded, Selection, copy_position, in_blocks

AT_ONCE = 1024  # draws of a shuffle of rows


class Shuffle(Seeded, Selection):
    """Elements drawn at random from a buffer that the input fills.

    A position is restored by drawing the same elements, from the start of the run.
    """

    runs_ahead = True

    def __init__(self, source, buffer_size, seed=None, reshuffle_each_iteration=True):
        super().__init__(source, seed=seed)
        self._buffer_size = buffer_size
        self._reshuffle = reshuffle_each_iteration

    def _stream(self, position):
        turn = (position["run"], position["round"]) if self._reshuffle else (0, 0)
        return position["seed"], *turn

    def select(self, position, run):
        items = self._drawn(position, run)
        for item in islice(items, position["given"], None):
            position["given"] += 1
            yield item

    def _drawn(self, position, run):
        """Yield the items in their new order, from the start of the run."""
        random = shuffle_generator(*self._stream(position))
        items = run(self.inputs[0], copy_position(position["inputs"][0]))
        buffer = list(islice(items, self._buffer_size))
        for item in items:
            slot = int(random.random() * len(buffer))  # thrice as fast as an integer
            drawn, buffer[slot] = buffer[slot], item
            yield drawn
        for slot in random.permutation(len(buffer)).tolist():
            yield buffer[slot]

    def blocks(self, position, size):
        if 0 <= self.inputs[0].size() <= self._buffer_size:
            order = _beside(self.rows, self._whole_order(position))
            starts = range(position["given"], len(order), size)
            blocks = (order[first : first + size] for first in starts)
        else:
            drawn = self._drawn_indices(position)
            blocks = in_blocks(islice(drawn, position["given"], None), size)
        for block in blocks:
            position["given"] += len(block)
            yield block

    def _whole_order(self, position):
        """Return the order of rows that all fit into the buffer, as an array; see `_drawn`."""
        source = self.inputs[0]
        start = copy_position(position["inputs"][0])
        rows = next(source.blocks(start, max(source.size(), 1)), slice(0, 0))
        order = _numbers(rows)
        return order[permutation(len(order), *self._stream(position))]

    def _drawn_indices(self, position):
        """Yield the numbers of rows like `_drawn`, drawing many slots at once."""
        random = shuffle_generator(*self._stream(position))
        indices = self.inputs[0].indices(copy_position(position["inputs"][0]))
        buffer = list(islice(indices, self._buffer_size))
        while drawn := list(islice(indices, AT_ONCE)):
            slots = random.random(len(drawn)) * len(buffer)
            for k, slot in enumerate(slots.astype(np.intp).tolist()):
                drawn[k], buffer[slot] = buffer[slot], drawn[k]
            yield from drawn
        yield from [buffer[slot] for slot in random.permutation(len(buffer)).tolist()]


def _numbers(block):
    """Return the numbers of rows in a slice or an array."""
    if isinstance(block, slice):
        return np.arange(block.start, block.stop)
    return devices.to_numpy(block)


def _beside(rows, order):
    """Return row numbers on the device of the rows, so that batches need not be copied."""
    arrays = getattr(rows, "arrays", None)
    module = devices.array_module(type(arrays[0])) if arrays else np
    return order if module is np else module.asarray(order)


class Repeat(Selection):
    """The input, repeated ``count`` times; endless for None or -1."""

    def __init__(self, source, count=None):
        super().__init__(source)
        self._count = -1 if count is None else count

    def start(self):
        return {"round": 0}

    def select(self, position, run):
        source, idle = self.inputs[0], 0
        with source.processes_of(position["inputs"][0]):
            # Two empty rounds in turn: the input is empty. One may be left of a restored
            # position.
            while idle < 2 and (self._count < 0 or position["round"] < self._count):
                idle += 1
                for item in run(source, position["inputs"][0]):
                    idle = 0
                    yield item
                position["inputs"][0] = source.repeat_position(position["inputs"][0])
                position["round"] += 1

    def size(self):
        size = self.inputs[0].size()
        if self._count == 0 or size == 0:
            return 0
        if size < 0 or self._count < 0:
            return UNKNOWN if size == UNKNOWN and self._count >= 0 else INFINITE
        return size * self._count


class Take(Selection):
    """The first ``count`` elements; all of them for -1."""

    def __init__(self, source, count):
        super().__init__(source)
        self._count = count

    def start(self):
        return {"taken": 0}

    def select(self, position, run):
        left = None if self._count < 0 else self._count - position["taken"]
        if left == 0:
            return
        for item in islice(run(self.inputs[0], position["inputs"][0]), left):
            position["taken"] += 1
            yield item

    def size(self):
        size = self.inputs[0].size()
        if self._count < 0 or size == UNKNOWN:
            return size
        return self._count if size == INFINITE else min(size, self._count)


class Skip(Selection):
    """The elements after the first ``count``; none for -1."""

    def __init__(self, source, count):
        super().__init__(source)
        self._count = count

    def start(self):
        return {"skipped": False}

    def select(self, position, run):
        if self._count < 0:
            return
        items = run(self.inputs[0], position["inputs"][0])
        if not position["skipped"]:
            position["skipped"] = True
            for _ in islice(items, self._count):
                pass
        yield from items

    def size(self):
        size = self.inputs[0].size()
        if self._count < 0:
            return 0
        return size if size < 0 else max(size - self._count, 0)


class Shard(Selection):
    """Every ``num_shards``-th element, starting at number ``index``."""

    def __init__(self, source, num_shards, index):
        super().__init__(source)
        self._num_shards, self._index = num_shards, index

    def start(self):
        return {"number": 0}

    def select(self, position, run):
        for item in run(self.inputs[0], position["inputs"][0]):
            position["number"] += 1
            if (position["number"] - 1) % self._num_shards == self._index:
                yield item

    def size(self):
        size = self.inputs[0].size()
        if size < 0:
            return size
        return len(range(self._index, size, self._num_shards))
