"""`PyDataset`: base class of datasets that compute batches in Python, by index."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING

from tapewright.data.dataset import Dataset
from tapewright.data.nodes.node import INFINITE, Seeded
from tapewright.data.nodes.processes import Processes
from tapewright.data.nodes.workers import Workers, take_ahead
from tapewright.data.products_at_fork import noted
from tapewright.data.rng import Draws, permutation
from tapewright.ops.random.generators import drawing_from
from tapewright.serialization.constructor_call import constructor_call

from .data_adapter import DataAdapter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class PyDataset:
    """Base class of datasets that compute each batch in Python, by its index.

    A subclass defines ``__len__``, which returns the number of batches, and
    ``__getitem__(index)``, which returns a batch: ``(x,)``, ``(x, y)`` or
    ``(x, y, sample_weight)``. The property ``num_batches`` can be overridden instead of
    ``__len__``; None means an infinite dataset. `fit` calls ``on_epoch_begin`` and
    ``on_epoch_end`` at the beginning and end of each epoch.

    Args:
        workers: Number of threads that prepare batches ahead, if greater than 1.
        use_multiprocessing: If True, ``workers`` processes prepare the batches, with the
            rules of `Dataset.map`. They are started anew in each epoch, with a copy of
            this object.
        max_queue_size: Maximum number of batches that are prepared ahead.

    Example:
        >>> class Squares(keras.utils.PyDataset):
        ...     def __len__(self):
        ...         return 2
        ...     def __getitem__(self, index):
        ...         return [index], [index**2]
        >>> list(Squares())
        [([0], [0]), ([1], [1])]
    """

    workers = 1
    use_multiprocessing = False
    max_queue_size = 10

    def __init__(
        self,
        workers: int = 1,
        use_multiprocessing: bool = False,
        max_queue_size: int = 10,
    ):
        self.workers = workers
        self.use_multiprocessing = use_multiprocessing
        self.max_queue_size = max_queue_size

    __repr__ = constructor_call

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__}: define __getitem__(index), which returns a batch"
        )

    def __iter__(self) -> Iterator[Any]:
        count = self.num_batches
        for index in itertools.count() if count is None else range(count):
            yield self[index]

    @property
    def num_batches(self) -> int | None:
        """Number of batches, ``len(self)`` by default; None for an infinite dataset."""
        if hasattr(self, "__len__"):
            return len(self)
        raise NotImplementedError(
            f"{type(self).__name__}: define __len__, or the property num_batches"
        )

    def on_epoch_begin(self) -> None:
        """Called before each epoch."""

    def on_epoch_end(self) -> None:
        """Called after each epoch."""


class PyDatasetAdapter(DataAdapter):
    """Batches of a `PyDataset` or a similar object, which is notified of epochs."""

    def __init__(self, x, steps, class_weight, shuffle):
        super().__init__(Dataset(_IndexedBatches(x, shuffle)), x, steps, class_weight)

    def notify(self, event):
        getattr(self._x, event, lambda: None)()


class _IndexedBatches(Seeded):
    """Batches by index, in any order; their number may change between epochs."""

    def __init__(self, batches, shuffle=False):
        self._in_processes = getattr(batches, "use_multiprocessing", False)
        super().__init__(seed=None if shuffle or self._in_processes else 0)
        self._batches, self._shuffle = batches, shuffle

    def size(self):
        batches = self._batches
        has_count = hasattr(batches, "num_batches")
        count = batches.num_batches if has_count else len(batches)
        return INFINITE if count is None else count

    def run(self, position):
        size = self.size()
        order = itertools.count() if size == INFINITE else range(size)
        if self._shuffle and size != INFINITE:
            order = permutation(size, position["seed"], position["run"]).tolist()
        indices = itertools.islice(order, position["given"], None)
        for batch in self._make(indices, Draws(position)):
            position["given"] += 1
            yield batch

    def _make(self, indices, draws):
        workers = getattr(self._batches, "workers", 1)
        if workers > 1 or self._in_processes:
            return self._make_ahead(indices, draws, max(workers, 1))
        # No `map`: a StopIteration of __getitem__ would end it as if all were made.
        return (self._batches[index] for index in indices)

    def _make_ahead(self, indices, draws, count):
        """Yield batches in order; at most ``max_queue_size`` are waiting."""
        room = max(getattr(self._batches, "max_queue_size", 10), count)
        if self._in_processes:
            make = partial(_batch, self._batches)
            workers = Processes("PyDataset", make, count, room)
            calls = (workers.submit(draws, index, index) for index in indices)
        else:
            workers = Workers(count)
            make = partial(noted, self._batches.__getitem__)
            calls = (workers.submit(make, index) for index in indices)
        try:
            for call in take_ahead(calls, lambda: room):
                yield call.result()
        finally:
            workers.close()


def _batch(batches, draws, number, index):
    """Return a batch; its random numbers depend on ``draws`` and ``number`` only."""
    draws.at(number)
    with drawing_from(draws):
        return batches[index]
