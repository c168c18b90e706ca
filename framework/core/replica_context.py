"""`ReplicaContext`: the part of one replica in a step that several take together.

A step runs on every replica with a part of the batch. Losses, metrics, optimizers and
normalization ask `replica_context` for the size of that part and act together with the
other replicas; it is None where each process acts for itself.
"""

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

__all__ = ["ReplicaContext", "in_replica_context", "replica_context"]

_CONTEXT = ContextVar("replica_context", default=None)
replica_context = _CONTEXT.get


class ReplicaContext(NamedTuple):
    """The step of one replica.

    ``share``: the fraction of the examples of the whole batch that this replica has, a
    number or a scalar tensor; those of all replicas add up to 1. ``is_idle``: it has none,
    and computes on an example that must count for nothing. ``compression``: that of
    gradients on their way, see `ops.collective.all_reduce`.
    """

    num_replicas: int
    replica_id: int
    share: Any
    is_idle: bool = False
    compression: str | None = None


@contextmanager
def in_replica_context(context):
    """Run a block as the step of a replica; None: of a process for itself."""
    token = _CONTEXT.set(context)
    try:
        yield context
    finally:
        _CONTEXT.reset(token)
