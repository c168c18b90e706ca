"""The workers of a training: the processes that train one model together.

Every worker has the same callbacks, with the same logs. The first one, rank 0, prints
lines, and writes and reads files for all.
"""

from tapewright.core.communication.communicator import Communicator
from tapewright.core.communication.job import communicator

_ALONE = Communicator()


def workers_of(model) -> Communicator:
    """Return the communicator of the workers that train ``model``.

    Without a strategy of several replicas the model has one worker, this process, even
    in a job of several.
    """
    strategy = getattr(model, "distribute_strategy", None)
    if getattr(strategy, "num_replicas_in_sync", 1) == 1:
        return _ALONE
    return communicator()


def is_first_worker(model) -> bool:
    """Return whether this process prints and writes files for all workers of ``model``."""
    return workers_of(model).rank == 0


def from_first_worker(workers, function):
    """Return on all workers what ``function()`` returns on the first, or raise its error."""
    result = error = None
    if workers.rank == 0:
        try:
            result = function()
        except Exception as raised:
            error = raised
    result, error = workers.broadcast_object((result, error))
    if error is not None:
        raise error
    return result
