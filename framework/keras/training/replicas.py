"""`Replicas`: the processes that train a model, one for itself or several together.

Several take each step together, each with its part of the batch. `fit`, `evaluate` and
single batches ask their `Replicas` wherever one process and several differ.
"""

__all__ = ["Replicas"]


class Replicas:
    """One process, which trains for itself; the interface of several."""

    def divide(self, adapter):
        """Make the batches of an adapter those of this worker."""

    def convert(self, batch, batches):
        """Return a batch of an `EpochIterator` as tensors; tell it the share."""
        return batches.adapter.convert(batch)

    def step(self, function, batches):
        """Return the step ``function`` for the batches of an `EpochIterator`."""
        return function

    def run_own(self, who, function, batch):
        """Return ``function(batch)``, a step by a batch that is this worker's own."""
        return function(batch)

    def any(self, flag):
        """Return whether a flag is set in any worker."""
        return flag

    def check(self):
        """Raise `CollectiveError` unless all workers have the same variables."""
