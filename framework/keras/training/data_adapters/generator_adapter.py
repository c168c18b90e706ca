"""Batches of iterables, which can be iterated again, and of iterators, which run once."""

import collections
import itertools

from .data_adapter import DataAdapter

__all__ = ["GeneratorAdapter", "IterableAdapter", "skip"]


class IterableAdapter(DataAdapter):
    """Batches of an object that can be iterated again, such as torch's DataLoader.

    A position is found again by skipping.
    """

    def __init__(self, data, class_weight=None):
        super().__init__(data, class_weight)
        try:
            self.size = len(data)
        except (TypeError, NotImplementedError):
            self.size = None

    def open(self, number, start, state=None):
        batches = iter(self._data)
        skip(batches, start)
        return map(self._batch, batches)


class GeneratorAdapter(DataAdapter):
    """Batches of a generator or iterator, which runs once; each epoch goes on with it.

    The first batch is taken, and looked at, at once. A position is found again by
    skipping, in a new generator.
    """

    restarts = False

    def __init__(self, data, class_weight=None):
        super().__init__(data, class_weight)
        first = list(itertools.islice(data, 1))
        if not first:
            raise ValueError(f"{self.source} yielded no batch")
        self._batch(first[0])
        self._remaining = itertools.chain(first, data)
        self._given = 0

    def open(self, number, start, state=None):
        for batch in self._remaining:
            self._given += 1
            yield self._batch(batch)

    def state(self):
        return {"given": self._given}

    def restore(self, state):
        if state["given"] < self._given:
            raise ValueError(
                f"restore: {self.source} has yielded {self._given} batches and "
                f"cannot go back to {state['given']}; pass a new one"
            )
        skip(self._remaining, state["given"] - self._given)
        self._given = state["given"]


def skip(batches, count):
    """Take ``count`` batches and drop them."""
    collections.deque(itertools.islice(batches, count), maxlen=0)
