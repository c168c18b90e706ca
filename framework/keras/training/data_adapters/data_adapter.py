"""`DataAdapter`: data of any kind as a `Dataset` of batches, for an `EpochIterator`."""

import operator
from collections.abc import Iterator
from itertools import chain

from tapewright.data.dataset import INFINITE_CARDINALITY, Dataset
from tapewright.data.nodes.node import UNKNOWN, Node, Replayed, skip

from .data_adapter_utils import as_batch, class_weight_to_sample_weight


class DataAdapter:
    """A `Dataset` of batches, and the conversion of its batches to tensors.

    Each iteration of ``data``, the `Dataset`, is a pass; ``source`` is its name in
    messages.
    """

    arrays = None  # those of an `ArrayAdapter`

    def __init__(self, data: Dataset, x, steps=None, class_weight=None):
        self.data, self._x, self._class_weight = data, x, class_weight
        self.source = f"x, a {type(x).__name__},"
        self.restarts = not isinstance(x, Iterator)  # there can be another pass
        self.seen_size = None  # of data that do not tell it, after a whole pass
        unknown = steps is None and self.size is None
        if unknown and int(data.cardinality()) == INFINITE_CARDINALITY:
            raise ValueError(
                f"x: the {type(x).__name__} is infinite; pass steps_per_epoch "
                "(steps in evaluate and predict), or take(n) of a Dataset"
            )

    @property
    def size(self):
        """Number of batches in a pass; None while it is unknown."""
        length = operator.length_hint(self.data, -1)
        return length if length >= 0 else self.seen_size

    def notify(self, event):
        """Call ``x.on_epoch_begin`` or ``x.on_epoch_end``, if ``x`` is a `PyDataset`."""

    def as_tensors(self, batch):
        """Return a batch of `data` as tensors on the current device."""
        alone = not isinstance(batch, (list, tuple))
        batch = as_batch(f"x ({type(self._x).__name__})", batch)
        return batch[0] if alone else batch

    def convert(self, batch):
        """Return a batch of `data` as tensors, with the weights of ``class_weight``."""
        batch = self.as_tensors(batch)
        alone = not isinstance(batch, tuple) or len(batch) == 1
        if self._class_weight is None or alone:
            return batch
        if len(batch) == 3:
            raise ValueError(
                "class_weight: the batches of x include sample_weight; use only one "
                "of the two"
            )
        weights = class_weight_to_sample_weight(batch[1], self._class_weight)
        return *batch, as_batch("class_weight", weights)[0]


class FromIterable(Replayed):
    """Items of an iterable that can be iterated repeatedly, such as torch's DataLoader."""

    def __init__(self, iterable):
        super().__init__()
        self._iterable = iterable
        try:
            self._length = len(iterable)
        except (TypeError, NotImplementedError):
            self._length = UNKNOWN

    def replay(self, position):
        yield from self._iterable

    def size(self):
        return self._length


class FromIterator(Node):
    """Items of an iterator, which is consumed once: each run continues the previous one.

    A position is restored by skipping items of a new iterator.
    """

    def __init__(self, iterator, first_items=()):
        super().__init__()
        self._type = type(iterator)
        self._remaining = chain(first_items, iterator)
        self._given = 0

    def run(self, position):
        for item in self._remaining:
            self._given += 1
            yield item

    def state(self):
        return {"inputs": [], "given": self._given}

    def set_state(self, state):
        if state["given"] < self._given:
            raise ValueError(
                f"restore: x, a {self._type.__name__}, has yielded {self._given} batches and "
                f"cannot go back to {state['given']}; pass a new one"
            )
        skip(self._remaining, state["given"] - self._given)
        self._given = state["given"]

    def size(self):
        return UNKNOWN
