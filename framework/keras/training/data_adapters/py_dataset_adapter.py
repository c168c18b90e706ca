"""`PyDataset`: the base of data sets that make their batches in Python, by number."""

from __future__ import annotations

import collections
import itertools
import warnings
from typing import TYPE_CHECKING

from tapewright.data.node import new_seed
from tapewright.data.rng import shuffle_generator

from .data_adapter import DataAdapter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["PyDataset", "PyDatasetAdapter"]


class PyDataset:
    """Batches by number: a subclass defines ``__len__`` and ``__getitem__(index)``.

    ``__getitem__`` returns a whole batch, ``(x,)``, ``(x, y)`` or ``(x, y,
    sample_weight)``, and ``__len__`` how many there are; ``num_batches`` may be defined
    instead, None for an endless set. ``on_epoch_begin`` and ``on_epoch_end`` are called
    around each epoch.

    Args: ``workers``: threads that make batches ahead, if more than one;
    ``max_queue_size``: how many batches may wait; ``use_multiprocessing``: threads stand
    in for processes, with a warning.

    >>> class Squares(PyDataset):
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
        """The number of batches, by default ``len``; None for an endless set."""
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
    """Batches by number, of a `PyDataset` or what looks like one; in any order."""

    def __init__(self, data, steps=None, class_weight=None, shuffle=False):
        super().__init__(data, class_weight)
        self._endless = False
        self._measure()
        if self._endless and steps is None:
            raise ValueError("x: the PyDataset is endless; give steps_per_epoch")
        if getattr(data, "use_multiprocessing", False):
            warnings.warn(
                "use_multiprocessing: batches are made by threads, not by processes",
                stacklevel=5,
            )
        self._shuffle = shuffle and not self._endless
        self._seed = new_seed() if shuffle else 0

    def _measure(self):
        data = self._data
        count = data.num_batches if hasattr(data, "num_batches") else len(data)
        self._endless = count is None
        self.size = count

    def on_epoch_begin(self):
        self._tell("on_epoch_begin")

    def on_epoch_end(self):
        self._tell("on_epoch_end")
        self._measure()  # its length may change between epochs

    def _tell(self, event):
        if hasattr(self._data, event):
            getattr(self._data, event)()

    def open(self, number, start, state=None):
        order = itertools.count() if self._endless else range(self.size)
        if self._shuffle:
            random = shuffle_generator(self._seed, number)
            order = random.permutation(self.size).tolist()
        indices = itertools.islice(order, start, None)
        workers = getattr(self._data, "workers", 1)
        if workers > 1 or getattr(self._data, "use_multiprocessing", False):
            return map(self._batch, self._ahead(indices, max(workers, 1)))
        return (self._batch(self._data[index]) for index in indices)

    def _ahead(self, indices, workers):
        """The batches in order, made by threads; as many wait as the data set allows."""
        from concurrent.futures import ThreadPoolExecutor

        room = max(getattr(self._data, "max_queue_size", 10), workers)
        pool = ThreadPoolExecutor(workers, thread_name_prefix="tapewright-batches")
        waiting = collections.deque()
        try:
            for index in indices:
                waiting.append(pool.submit(self._data.__getitem__, index))
                if len(waiting) >= room:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def state(self):
        return {"seed": self._seed}

    def restore(self, state):
        self._seed = state.get("seed", self._seed)
