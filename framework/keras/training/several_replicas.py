"""`SeveralReplicas`: the processes of a job that execute each training step together."""

import hashlib

import numpy as np

from tapewright.core.communication.job import communicator
from tapewright.core.hardware import devices
from tapewright.core.nest import flatten
from tapewright.core.tensor import new_tensor
from tapewright.data.parts import is_per_worker, part_of_batches, per_worker_batches
from tapewright.distribute.collectives import broadcast_variables
from tapewright.distribute.digests import check_variables
from tapewright.formats.checkpoints.object_tree import explore

from .replicas import Replicas

__all__ = ["SeveralReplicas"]

SAMPLES = 16  # rows of arrays that workers compare


class SeveralReplicas(Replicas):
    """The processes of a job, including this one, that train a model by a strategy."""

    def __init__(self, model, strategy):
        self._model, self._strategy = model, strategy
        self._count, self._id = strategy.num_replicas_in_sync, strategy.replica_id
        self._is_ready = False  # the variables have become those of rank 0

    # --- data

    def divide(self, adapter):
        """Make an adapter yield `BatchPart`s: the rows of each batch for this worker.

        The shuffling orders of rank 0 are used on all workers.

        Raises:
            ValueError: On all workers, if they hold different arrays.
        """
        is_own = not self._strategy.auto_shard_dataset or is_per_worker(adapter.data)
        if is_own and adapter.arrays is None:
            adapter.data = per_worker_batches(adapter.data, adapter.as_tensors)
            return
        self._check_same(adapter)
        own = adapter.data.state()
        state = communicator().broadcast_object(own)
        if state != own:
            adapter.data.restore(state)
        adapter.data = part_of_batches(
            adapter.data, self._count, self._id, adapter.as_tensors
        )

    def _check_same(self, adapter):
        digest = hashlib.blake2b(repr(adapter.size).encode(), digest_size=8)
        for leaf in flatten(adapter.arrays):
            if leaf is None:
                continue
            rows = np.linspace(0, len(leaf) - 1, SAMPLES).astype(int).tolist()
            digest.update(f"{leaf.dtype} {leaf.shape}".encode())
            digest.update(devices.to_numpy(leaf[rows]).tobytes())
        digests = communicator().all_gather_object(digest.digest())
        others = [rank for rank, each in enumerate(digests) if each != digests[0]]
        if others:
            raise ValueError(
                f"{adapter.source} of rank {others[0]} differ from rank 0: every "
                "worker must pass the whole data, and computes a part of each "
                "batch. If the workers have different data, pass a Dataset, and "
                "train by "
                "keras.distribution.DataParallel(auto_shard_dataset=False)"
            )

    def convert(self, batch, batches):
        rows, size, stand_in = batch
        batches.is_idle = stand_in is not None
        if batches.is_idle:
            rows = stand_in
        rows = batches.adapter.convert(rows)
        batches.share = 0.0 if batches.is_idle else _length(rows) / size
        return rows

    # --- steps

    def step(self, function, batches):
        def step_together(batch):
            return self._run(function, batch, batches.share, batches.is_idle)

        return step_together

    def group_size(self, count):
        return 1  # each batch has a share of its own

    def run_own(self, who, function, batch):
        sizes = communicator().all_gather_object(_length(batch))
        if not all(sizes):
            raise ValueError(
                f"{who}: each worker must pass at least one example, got {sizes} "
                "in the order of the ranks"
            )
        self._is_ready = self._model._tw_compiled.is_shared
        return self._run(function, batch, sizes[self._id] / sum(sizes))

    def _run(self, function, batch, share, is_idle=False):
        if not self._is_ready:
            self._prepare(batch)
        with self._strategy.replica(new_tensor(np.array(share)), is_idle):
            return function(batch)

    def _prepare(self, batch):
        """Build model and optimizer, and copy the variables of rank 0 to all workers."""
        self._model._tw_build_for_batch(batch)
        broadcast_variables(self._variables())
        self._is_ready = self._model._tw_compiled.is_shared = True

    def any(self, flag):
        return communicator().any(flag)

    def check(self):
        check_variables(self._variables())

    def _variables(self):
        """Return all variables of the model and its parts, except local metric variables."""
        tree = explore([("", self._model)])
        local = {id(v) for metric in self._model.metrics for v in metric.variables}
        return [v for v in tree.variables.values() if id(v) not in local]


def _length(batch):
    """Return the number of examples in a batch."""
    first = next(leaf for leaf in flatten(batch) if leaf is not None)
    return first.shape[0]
