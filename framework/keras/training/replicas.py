"""`Replicas`: the processes that train a model; here a single one.

Several processes execute each step together, each with its part of the batch: see
`several_replicas`, which is imported only then. `fit`, `evaluate` and the methods for
single batches call their `Replicas` wherever one process and several differ.
"""


class Replicas:
    """A single process, and the interface of several."""

    runs_steps_in_groups = True  # several steps can be one call of a traced function

    def divide(self, adapter):
        """Make an adapter yield only the parts of batches that belong to this worker."""

    def convert(self, batch, adapter):
        """Return a batch of an adapter as tensors."""
        return adapter.convert(batch)

    def step(self, function):
        """Return the step ``function`` as it runs on the batch converted last."""
        return function

    def step_on_own_batch(self, who, function, batch):
        """Return ``function(batch)``, a step to which each worker passes its own batch."""
        return function(batch)

    def synchronized(self, callbacks):
        """Return a `CallbackList` after whose hooks all workers stop if one does."""
        return callbacks
