"""`PyDataset`: the base of data sets that make their batches in Python, by number."""

import itertools

__all__ = ["PyDataset"]


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

    def __init__(self, workers=1, use_multiprocessing=False, max_queue_size=10):
        self.workers = workers
        self.use_multiprocessing = use_multiprocessing
        self.max_queue_size = max_queue_size

    def __getitem__(self, index):
        raise NotImplementedError(
            f"{type(self).__name__}: define __getitem__(index), which returns a batch"
        )

    def __iter__(self):
        count = self.num_batches
        for index in itertools.count() if count is None else range(count):
            yield self[index]

    @property
    def num_batches(self):
        """How many batches there are: ``len`` unless defined otherwise; None: endless."""
        if hasattr(self, "__len__"):
            return len(self)
        raise NotImplementedError(
            f"{type(self).__name__}: define __len__, or the property num_batches"
        )

    def on_epoch_begin(self):
        """Called before each epoch."""

    def on_epoch_end(self):
        """Called after each epoch."""
