"""`SeveralReplicas`: the processes of a job that execute each training step together."""

import hashlib
from functools import partial

import numpy as np

from tapewright.core.communication.job import communicator
from tapewright.core.hardware import devices
from tapewright.core.nest import flatten
from tapewright.core.state.sharded_variable import ShardedVariable, sharing
from tapewright.core.tensor import new_tensor
from tapewright.data.parts import is_per_worker, part_of_batches, per_worker_batches
from tapewright.distribute.collectives import broadcast_variables
from tapewright.distribute.digests import check_variables
from tapewright.formats.checkpoints.object_tree import explore
from tapewright.serialization.constructor_arguments import is_own

from ..callbacks.callback import LambdaCallback
from .replicas import Replicas

SAMPLES = 16  # rows of arrays that workers compare


class SeveralReplicas(Replicas):
    """The processes of a job, including this one, that train a model by a strategy."""

    runs_steps_in_groups = False  # each batch has a share of its own

    def __init__(self, model, strategy):
        self._model, self._strategy = model, strategy
        self._count, self._id = strategy.num_replicas_in_sync, strategy._tw_replica_id
        self._is_ready = False  # the variables have become those of rank 0
        # This worker's share of the latest batch; idle: the batch is a placeholder.
        self._share, self._is_idle = 1.0, False

    # --- data

    def divide(self, adapter):
        """Make an adapter yield `BatchPart`s: the rows of each batch for this worker.

        The shuffling orders of rank 0 are used on all workers.

        Raises:
            ValueError: On all workers, if they hold different arrays.
        """
        is_own = not self._strategy._tw_auto_shard_dataset or is_per_worker(
            adapter.data
        )
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

    def convert(self, batch, adapter):
        rows, size, placeholder = batch
        self._is_idle = placeholder is not None
        rows = adapter.convert(placeholder if self._is_idle else rows)
        self._share = 0.0 if self._is_idle else _length(rows) / size
        return rows

    # --- steps

    def step(self, function):
        return partial(self._step_together, function)

    def step_on_own_batch(self, who, function, batch):
        sizes = communicator().all_gather_object(_length(batch))
        if not all(sizes):
            raise ValueError(
                f"{who}: each worker must pass at least one example, got {sizes} "
                "in the order of the ranks"
            )
        self._is_ready = self._model._tw_compiled.is_shared
        self._share = sizes[self._id] / sum(sizes)
        return self._step_together(function, batch)

    def _step_together(self, function, batch):
        if not self._is_ready:
            self._prepare(batch)
        with self._strategy._tw_replica(
            new_tensor(np.array(self._share)), self._is_idle
        ):
            return function(batch)

    def _prepare(self, batch):
        """Build model and optimizer, and copy the variables of rank 0 to all workers."""
        self._model._tw_build_for_batch(batch)
        self._check_divided_state()
        broadcast_variables(self._variables())
        self._is_ready = self._model._tw_compiled.is_shared = True

    def _check_divided_state(self):
        """Raise if workers have a divided optimizer of different steps."""
        optimizer = self._model.optimizer
        if sharing(getattr(optimizer, "variables", ())).size > 1:
            steps = communicator().all_gather_object(int(optimizer.iterations))
            if len(set(steps)) > 1:
                raise ValueError(
                    "the workers have a sharded optimizer after different numbers of "
                    f"steps, {steps} in the order of the ranks: all workers must load "
                    "the model or its weights"
                )

    def synchronized(self, callbacks):
        return _SynchronizedCallbacks(callbacks, self._model, self._variables)

    def _variables(self):
        """Return the variables that all workers hold: without metrics and divided slots."""
        variables = explore([("", self._model)]).variables.values()
        local = {id(v) for metric in self._model.metrics for v in metric.variables}
        local |= {id(v) for v in variables if isinstance(v, ShardedVariable)}
        return [v for v in variables if id(v) not in local]


class _SynchronizedCallbacks:
    """The hooks of a `CallbackList`; after them all workers stop if one of them does.

    Workers vote after the hooks of an epoch. They vote after the hooks of a batch only if
    a worker has a user-defined callback, which may stop it alone: the others have the
    same logs everywhere. At the end of an epoch all workers compare their ``variables``.
    """

    def __init__(self, callbacks, model, variables):
        self._callbacks, self._model, self._variables = callbacks, model, variables
        self._votes_after_batches = False

    def __getattr__(self, name):
        return getattr(self._callbacks, name)  # the other hooks

    def on_epoch_begin(self, epoch):
        self._callbacks.on_epoch_begin(epoch)
        self._vote("stop_training")
        self._decide_on_votes(self._callbacks._tw_wants_train_batches)

    def on_train_batch_end(self, batch, logs):
        self._callbacks.on_train_batch_end(batch, logs)
        if self._votes_after_batches:
            self._vote("stop_training")

    def on_epoch_end(self, epoch, logs):
        check_variables(self._variables())
        self._callbacks.on_epoch_end(epoch, logs)
        self._vote("stop_training")

    def on_test_begin(self):
        self._callbacks.on_test_begin()
        self._decide_on_votes(self._callbacks._tw_wants_test_batches)

    def on_test_batch_end(self, batch, logs):
        self._callbacks.on_test_batch_end(batch, logs)
        if self._votes_after_batches:
            self._vote("stop_evaluating")

    def _vote(self, flag):
        """Set a flag of the model if it is set on any worker."""
        setattr(self._model, flag, communicator().any(getattr(self._model, flag)))

    def _decide_on_votes(self, has_batch_hooks):
        kinds = [type(callback) for callback in self._callbacks.callbacks]
        may_stop = any([k is LambdaCallback or not is_own(k) for k in kinds])
        self._votes_after_batches = communicator().any(has_batch_hooks and may_stop)


def _length(batch):
    """Return the number of examples in a batch."""
    first = next(leaf for leaf in flatten(batch) if leaf is not None)
    return first.shape[0]
