"""`Replicas`: the processes that train a model; here a single one.

Several processes execute each step together, each with its part of the batch: see
`several_replicas`, which is imported only then. `fit`, `evaluate` and the methods for
single batches call their `Replicas` wherever one process and several differ.
"""

__all__ = ["Replicas"]


class Replicas:
    """A single process, and the interface of several."""

    def divide(self, adapter):
        """Make an adapter yield only the parts of batches that belong to this worker."""

    def convert(self, batch, batches):
        """Return a batch of an `EpochIterator` as tensors; set its ``share``."""
        return batches.adapter.convert(batch)

    def step(self, function, batches):
        """Return the step ``function`` for the batches of an `EpochIterator`."""
        return function

    def group_size(self, count):
        """Return how many of ``count`` consecutive steps can run in one call."""
        return count

    def run_own(self, who, function, batch):
        """Return ``function(batch)``, a step to which each worker passes its own batch."""
        return function(batch)

    def any(self, flag):
        """Return whether ``flag`` is true on any worker."""
        return flag

    def check(self):
        """Raise `CollectiveError` unless all workers have the same variables."""
