"""Batches from what yields them itself: data sets, generators, objects with an index."""

import collections
import itertools
import warnings

from tapewright.data.node import new_seed

from ..class_weights import class_weight_to_sample_weight
from ..epoch_iterator import Batches
from .arrays import order_of
from .packing import as_batch

__all__ = ["DatasetBatches", "IterableBatches", "IteratorBatches", "SequenceBatches"]


class _StreamBatches(Batches):
    """What these have in common: batches are converted, and weighted by class."""

    def __init__(self, data, steps=None, class_weight=None):
        super().__init__(steps)
        self._data = data
        self._class_weight = class_weight
        self.source = f"x, a {type(data).__name__},"

    def _batch(self, batch):
        alone = not isinstance(batch, (list, tuple))
        batch = as_batch(f"x ({type(self._data).__name__})", batch)
        if self._class_weight is None or len(batch) == 1:
            return batch[0] if alone else batch
        if len(batch) == 3:
            raise ValueError(
                "class_weight: the batches of x bring sample_weight with them; give one "
                "of both"
            )
        return *batch, as_batch("class_weight", self._weights(batch[1]))[0]

    def _weights(self, y):
        return class_weight_to_sample_weight(y, self._class_weight)


class DatasetBatches(_StreamBatches):
    """Batches of a `data.Dataset`, which must have been batched."""

    def __init__(self, data, steps=None, class_weight=None):
        super().__init__(data, steps, class_weight)
        count = int(data.cardinality())
        if count == -1 and steps is None:
            raise ValueError(
                "x: the Dataset is endless; give steps_per_epoch (steps in evaluate and "
                "predict) or take(n)"
            )
        self.size = count if count >= 0 else None
        self._iterator = None

    def _open(self, number, start):
        self._iterator = iter(self._data)
        return map(self._batch, self._iterator)

    def state(self):
        source = self._data if self._iterator is None else self._iterator
        return {**super().state(), "source": source.state()}

    def restore(self, state):
        super().restore(state)
        if self._pass is None:
            self._data.restore(state["source"])
        else:
            self._iterator.restore(state["source"])


class IterableBatches(_StreamBatches):
    """Batches of an object that can be iterated again, such as torch's DataLoader.

    A position is found again by skipping.
    """

    def __init__(self, data, steps=None, class_weight=None):
        super().__init__(data, steps, class_weight)
        try:
            self.size = len(data)
        except (TypeError, NotImplementedError):
            self.size = None

    def _open(self, number, start):
        batches = iter(self._data)
        _skip(batches, start)
        return map(self._batch, batches)


class IteratorBatches(_StreamBatches):
    """Batches of a generator or iterator, which runs once; each epoch goes on with it.

    The first batch is taken, and looked at, at once. A position is found again by
    skipping, in a new generator.
    """

    restarts = False

    def __init__(self, data, steps=None, class_weight=None):
        super().__init__(data, steps, class_weight)
        first = list(itertools.islice(data, 1))
        if not first:
            raise ValueError(f"{self.source} gave not a single batch")
        self._batch(first[0])
        self._remaining = itertools.chain(first, data)
        self._given = 0

    @property
    def num_batches(self):
        return self.steps

    def _open(self, number, start):
        for batch in self._remaining:
            self._given += 1
            yield self._batch(batch)

    def state(self):
        return {**super().state(), "size": None, "given": self._given}

    def _reopen(self, state):
        if state["given"] < self._given:
            raise ValueError(
                f"restore: {self.source} has given {self._given} batches and cannot go "
                f"back to {state['given']}; pass a new one"
            )
        _skip(self._remaining, state["given"] - self._given)
        self._given = state["given"]
        return self._open(self._number, self._taken)


class SequenceBatches(_StreamBatches):
    """Batches by number, of a `PyDataset` or what looks like one; in any order."""

    def __init__(self, data, steps=None, class_weight=None, shuffle=False):
        super().__init__(data, steps, class_weight)
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
        getattr(self._data, "on_epoch_begin", _nothing)()

    def on_epoch_end(self):
        getattr(self._data, "on_epoch_end", _nothing)()
        self._measure()  # its length may change between epochs

    def _open(self, number, start):
        order = itertools.count() if self._endless else range(self.size)
        if self._shuffle:
            order = order_of(self._seed, number, self.size).tolist()
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
        return {**super().state(), "seed": self._seed}

    def restore(self, state):
        self._seed = state.get("seed", self._seed)
        super().restore(state)


def _nothing():
    pass


def _skip(batches, count):
    """Takes ``count`` batches and drops them."""
    collections.deque(itertools.islice(batches, count), maxlen=0)
