"""The partition of variables among processes, and the order in which they exchange them."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import accumulate

from tapewright.core.communication.job import communicator
from tapewright.core.hardware.devices import array_module
from tapewright.core.state.sharded_variable import Shard

from .flat_buffers import POOLED

# A variable with this number of rows for each process is cut between rows, which its
# sparse gradients need; the parts then differ by 3 % at most.
ROWS = 16


class Partition:
    """The parts of the variables of an optimizer that each process updates.

    Args:
        variables: Variables of the optimizer.
        by_entries: If True, the sequence of all entries is cut into parts of the same
            size; otherwise each variable belongs to one process.
    """

    def __init__(self, variables, by_entries):
        workers = communicator()
        self.rank, self.by_entries = workers.rank, by_entries
        # For each process, the `Shard` of each variable.
        self.shards: list[list] = [[None] * len(variables) for _ in range(workers.size)]
        groups = {}
        for i, variable in enumerate(variables):
            groups.setdefault(kind_of_array(variable._array), []).append(i)
        divide = _divide_entries if by_entries else _divide_variables
        for numbers in groups.values():
            shapes = [variables[i]._array.shape for i in numbers]
            for shards, own in zip(self.shards, divide(shapes, workers.size)):
                for i, shape, shard in zip(numbers, shapes, own):
                    shards[i] = Shard(shape, *shard)

    @property
    def own(self) -> list[Shard]:
        """The shards of this process."""
        return self.shards[self.rank]

    def owner(self, i):
        """Return the first process with a part of variable ``i``."""
        return next((r for r, shards in enumerate(self.shards) if shards[i].size), 0)


def kind_of_array(array):
    """Return the key of arrays that can be exchanged together: module, device, dtype."""
    return array_module(type(array)), str(getattr(array, "device", "")), array.dtype


def _divide_entries(shapes, size):
    """Cut the sequence of the entries of arrays: return the ends of each part in each array."""
    starts = [0, *accumulate(map(math.prod, shapes))]
    cuts = [0]
    for rank in range(1, size):
        cut = starts[-1] * rank // size
        i = min(bisect_right(starts, cut) - 1, len(shapes) - 1)
        if shapes[i] and shapes[i][0] >= ROWS * size:
            width = max(math.prod(shapes[i][1:]), 1)
            cut = starts[i] + round((cut - starts[i]) / width) * width
        cuts.append(max(cut, cuts[-1]))
    cuts.append(starts[-1])
    return [
        [(_within(a, i, j), _within(b, i, j)) for i, j in zip(starts, starts[1:])]
        for a, b in zip(cuts, cuts[1:])
    ]


def _within(position, start, stop):
    return min(max(position, start), stop) - start


def _divide_variables(shapes, size):
    """Distribute whole arrays: return the ends of each part, and True for its owner."""
    sizes, loads = [math.prod(shape) for shape in shapes], [0] * size
    parts = [[(0, 0, False)] * len(shapes) for _ in range(size)]
    for i in sorted(range(len(shapes)), key=lambda i: -sizes[i]):
        rank = loads.index(min(loads))
        loads[rank] += sizes[i]
        parts[rank][i] = (0, sizes[i], True)
    return parts


class Exchange:
    """The order in which processes exchange variables of one dtype: part by part.

    Args:
        partition: `Partition` of the variables.
        numbers: Numbers of the variables.
        like: An array on their device.
        dtype: Dtype of the flat array.
    """

    def __init__(self, partition, numbers, like, dtype):
        self.xp, self.dtype, self._own = array_module(type(like)), dtype, partition.own
        self.order = sorted(numbers, key=lambda i: (partition.owner(i), i))
        sizes = [sum([s[i].size for i in self.order]) for s in partition.shards]
        ends = [*accumulate(sizes, initial=0)]
        self.bounds = [*zip(ends, ends[1:])]
        self._first = ends[partition.rank]
        self.owned = [i for i in self.order if self._own[i].size]

    def empty(self):
        """Return a new flat array for all parts."""
        return self.xp.empty(self.bounds[-1][1], self.dtype)

    def views(self, flat):
        """Return the views of whole variables into a flat array, by number."""
        return self._split(flat, self.order, lambda i: self._own[i].whole)

    def arrays(self, flat):
        """Return the arrays of whole variables in a flat array, by number.

        Small ones are copies: whoever keeps one does not keep all the others.
        """
        views = self.views(flat).items()
        return {i: x.copy() if x.size <= POOLED else x for i, x in views}

    def split(self, piece):
        """Return the views of the parts of this process into its piece, by number."""
        return self._split(piece, self.order, lambda i: self._own[i].shape)

    def pack(self, parts):
        """Return a new flat array with the parts of this process."""
        flat, start = self.empty(), self._first
        for i in self.owned:
            stop = start + self._own[i].size
            flat[start:stop] = parts[i]._array.reshape(-1)
            start = stop
        return flat

    @staticmethod
    def _split(flat, order, shape_of):
        views, start = {}, 0
        for i in order:
            shape = shape_of(i)
            stop = start + math.prod(shape)
            views[i] = flat[start:stop].reshape(shape)
            start = stop
        return views
