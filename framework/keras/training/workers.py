"""The workers of a training: the processes that train one model together.

Every worker has the same callbacks, with the same logs. The first one, rank 0, prints
lines, and writes and reads files for all.
"""

import pickle

import numpy as np

from tapewright.core.communication.communicator import Communicator
from tapewright.core.communication.job import communicator

__all__ = ["any_worker", "from_first_worker", "gather", "is_first_worker", "workers_of"]

_ALONE = Communicator()


def workers_of(model) -> Communicator:
    """Return the communicator of the workers that train ``model``.

    Without a strategy of several replicas the model has one worker, this process, also in
    a job of several.
    """
    strategy = getattr(model, "distribute_strategy", None)
    if getattr(strategy, "num_replicas_in_sync", 1) == 1:
        return _ALONE
    return communicator()


def is_first_worker(model) -> bool:
    """Return whether this process prints and writes for all workers of ``model``."""
    return workers_of(model).rank == 0


def any_worker(workers, flag):
    """Return whether ``flag`` is true on a worker: all come to the same answer."""
    if workers.size == 1:
        return bool(flag)
    (found,) = workers.all_reduce([np.array([flag], bool)], "max")
    return bool(found[0])


def from_first_worker(workers, function):
    """Return on all workers what ``function()`` returns on the first, or raise its error."""
    if workers.size == 1:
        return function()
    result = error = None
    if workers.rank == 0:
        try:
            result = function()
        except Exception as raised:
            error = raised
    data = _pickled((result, error) if workers.rank == 0 else None)
    (length,) = workers.broadcast([np.array([data.size])])
    data = data if workers.rank == 0 else np.empty(length, np.uint8)
    (data,) = workers.broadcast([data])
    if workers.rank != 0:
        result, error = pickle.loads(data)
    if error is not None:
        raise error
    return result


def gather(workers, value):
    """Return a list of the values of all workers."""
    return [pickle.loads(data) for data in workers.all_gather(_pickled(value))]


def _pickled(value):
    return np.frombuffer(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), np.uint8)
