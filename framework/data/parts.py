"""Parts of batches: the rows of each batch that belong to one of several workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tapewright.core.communication.job import communicator
from tapewright.core.messages.argument_validation import whole
from tapewright.core.nest import flatten, map_structure
from tapewright.core.tensor import TensorSpec, new_tensor

from .dataset import Dataset
from .elements import describe
from .nodes.node import INFINITE, UNKNOWN, Node, row_count

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class BatchPart(NamedTuple):
    """Rows of a batch, an element of `part_of_batches`."""

    rows: Any  # the batch with its own rows of each tensor, possibly none
    size: int  # rows of the whole batch
    stand_in: Any = None  # the batch with its first row alone, if ``rows`` has none


def part_of_batches(
    dataset: Dataset,
    num_parts: int,
    index: int,
    convert: Callable[[Any], Any] | None = None,
) -> Dataset:
    """Divide each batch among ``num_parts`` workers; return the parts of one worker.

    Element ``i`` is a `BatchPart` with the rows
    ``[index * n // num_parts, (index + 1) * n // num_parts)`` of batch ``i``, which has
    ``n`` rows. Joined, the parts are the batches, bit for bit: orders and random
    numbers are the same as in ``dataset``, whose state (random orders, caches,
    positions) the result shares. States refer to whole batches: they are
    interchangeable with states of ``dataset``, and of any other number of parts.

    Rows of other parts are neither gathered nor read from files, and functions of `map`
    are not called for them, if `batch` follows the maps and only `cache`, `prefetch`,
    `repeat`, `take`, `skip`, `shuffle`, `shard` or `concatenate` follow `batch`.
    Otherwise the whole batch is made and sliced.

    Args:
        dataset: Dataset of batches.
        num_parts: Number of workers.
        index: Number of the worker whose parts are returned.
        convert: Function applied to batches that are made whole, for sources that yield
            other things than tensors.

    Example:
        >>> from tapewright.data.parts import part_of_batches
        >>> batches = tw.data.Dataset.range(7).batch(4)
        >>> [(part.rows.numpy().tolist(), part.size) for part in part_of_batches(batches, 2, 1)]
        [([2, 3], 4), ([5, 6], 3)]
    """
    num_parts = whole("part_of_batches", "num_parts", num_parts)
    index = whole("part_of_batches", "index", index, 0)
    if index >= num_parts:
        raise ValueError(
            "part_of_batches: index must be below num_parts, got "
            f"{index} and {num_parts}"
        )
    return Dataset(_PartOfBatches(dataset._node, _Part(num_parts, index, convert)))


def rows_of_batches(dataset: Dataset, num_parts: int, index: int) -> Dataset:
    """Return `part_of_batches` with the rows alone, possibly none, as elements.

    Example:
        >>> from tapewright.data.parts import rows_of_batches
        >>> batches = tw.data.Dataset.range(7).batch(4)
        >>> list(rows_of_batches(batches, 2, 1).as_numpy_iterator())
        [array([2, 3]), array([5, 6])]
    """
    return Dataset(_RowsOfBatches(part_of_batches(dataset, num_parts, index)._node))


def mark_per_worker(dataset: Dataset) -> Dataset:
    """Return the dataset, marked so that `fit` does not divide its batches."""
    return Dataset(_PerWorker(dataset._node))


def is_per_worker(dataset: Dataset) -> bool:
    """Return whether batches are for this process alone; see `mark_per_worker`."""
    ahead = [dataset._node]
    while ahead:
        node = ahead.pop()
        if isinstance(node, _PerWorker):
            return True
        ahead += node.inputs
    return False


def per_worker_batches(
    dataset: Dataset, convert: Callable[[Any], Any] | None = None
) -> Dataset:
    """Return `BatchPart`s of batches that each process of the job makes for itself.

    Element ``i`` holds batch ``i`` of this process; the whole batch consists of the
    batches of all processes. A process whose batch is empty, or that has no more
    batches, yields stand-ins until all processes have finished. Iterating is
    collective.
    """
    return Dataset(_PerWorkerBatches(dataset._node, _Part(1, 0, convert)))


class _Part:
    """The choice of rows, for `Node.run_part`."""

    def __init__(self, num_parts, index, convert):
        self.num_parts, self.index, self._convert = num_parts, index, convert

    @property
    def key(self):
        """Name of the part, for nodes that keep elements."""
        return self.num_parts, self.index

    def bounds(self, count):
        """Return the first row of this part of ``count`` rows, and the one after its last."""
        index, parts = self.index, self.num_parts
        return index * count // parts, (index + 1) * count // parts

    def choose(self, rows):
        """Return the rows of this part among the rows of a batch: a list, array or slice.

        A part without rows gets the first row, for `wrap`.
        """
        start, stop = self.bounds(row_count(rows))
        if start == stop:
            start, stop = 0, 1
        if isinstance(rows, slice):
            return slice(rows.start + start, rows.start + stop)
        return rows[start:stop]

    def wrap(self, batch, count):
        """Return the `BatchPart` of the chosen rows of a batch of ``count``."""
        start, stop = self.bounds(count)
        if start < stop:
            return BatchPart(batch, count)
        return BatchPart(_sliced(batch, 0, 0), count, batch)

    def of(self, batch):
        """Return the `BatchPart` of a whole batch."""
        batch = batch if self._convert is None else self._convert(batch)
        count = _length(batch)
        start, stop = self.bounds(count)
        stand_in = _sliced(batch, 0, 1) if start == stop else None
        return BatchPart(_sliced(batch, start, stop), count, stand_in)


def _length(batch):
    arrays = [getattr(leaf, "array", 0) for leaf in flatten(batch) if leaf is not None]
    lengths = {np.shape(array)[:1] for array in arrays}
    if len(lengths) != 1 or lengths == {()}:
        raise ValueError(
            "part_of_batches: all tensors of a batch must have a first axis of one "
            f"length, the rows; got {describe(batch)}. Is the dataset batched?"
        )
    return lengths.pop()[0]


def _sliced(batch, start, stop):
    return map_structure(
        lambda leaf: leaf if leaf is None else new_tensor(leaf.array[start:stop]), batch
    )


class _PartOfBatches(Node):
    """The parts of the batches of a node, with its positions and its state."""

    def __init__(self, batches, part):
        super().__init__(batches)
        self._part = part

    def run(self, position):
        return self.inputs[0].run_part(position, self._part)

    def begin(self):
        return self.inputs[0].begin()

    def repeat_position(self, position):
        return self.inputs[0].repeat_position(position)

    def processes_of(self, position):
        return self.inputs[0].processes_of(position)

    def adopt_state(self, position):
        self.inputs[0].adopt_state(position)

    def state(self):
        return self.inputs[0].state()

    def set_state(self, state):
        self.inputs[0].set_state(state)

    def pipeline(self):
        return self.inputs[0].pipeline()

    def declares(self):
        # An element is more than the tensors of `spec`, which are those of a batch.
        return False


class _PerWorker(Node):
    """Batches that belong to this process."""

    def run(self, position):
        return self.run_input(position)


class _RowsOfBatches(_PerWorker):
    """The rows of parts of batches."""

    def run(self, position):
        return (part.rows for part in self.run_input(position))

    def spec(self):
        return map_structure(
            lambda spec: TensorSpec((None, *spec.shape[1:]), spec.dtype), super().spec()
        )


class _PerWorkerBatches(_PartOfBatches):
    """Batches of this process, in step with the other processes."""

    _stand_in = None  # a batch to take one row of

    def __init__(self, batches, part):
        super().__init__(batches, part)
        sizes = communicator().all_gather_object(batches.size())
        unknown = INFINITE if INFINITE in sizes else UNKNOWN
        self._size = unknown if min(sizes) < 0 else max(sizes)

    def run(self, position):
        batches = self.inputs[0].run(position)
        while True:
            batch = next(batches, None)
            rows = None if batch is None else self._part.of(batch)
            own = -1 if rows is None else rows.size
            sizes = communicator().all_gather_object(own)
            if max(sizes) < 0:
                return
            whole = sum([size for size in sizes if size > 0])
            if rows is not None and rows.size:
                self._stand_in = rows.rows
                yield BatchPart(rows.rows, whole)
            else:
                yield BatchPart(None, whole, self._one_row())

    def _one_row(self):
        """Return a batch of one row, to compute on while other processes have rows."""
        batch = self._stand_in
        if batch is None:  # restored at the end of its batches
            first = self.inputs[0].first()
            batch = None if first is None else self._part.of(first).rows
        if batch is None or not _length(batch):
            raise ValueError(
                f"the dataset of each worker must begin with a batch that has rows, got an "
                f"empty one on rank {communicator().rank}; a worker without rows of a "
                "batch computes on the first row"
            )
        self._stand_in = _sliced(batch, 0, 1)
        return self._stand_in

    def size(self):
        return self._size
