"""`ReplicaContext`: one replica in a step that several replicas take together.

Each replica runs the step on its part of the batch. Losses, metrics, optimizers and
normalization get the size of that part from `replica_context`, and reduce over the
replicas; it is None if processes work independently.
"""

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

_CONTEXT = ContextVar("replica_context", default=None)
replica_context = _CONTEXT.get


class ReplicaContext(NamedTuple):
    """The step of one replica.

    ``share`` is the fraction of the batch's examples on this replica, a number or a
    scalar tensor; the shares of all replicas add up to 1. If ``is_idle``, this replica
    has no examples and computes on a dummy that must not count. ``compression`` is the
    compression of gradients, see `ops.collective.all_reduce`.
    """

    num_replicas: int
    replica_id: int
    share: Any
    is_idle: bool = False
    compression: str | None = None


@contextmanager
def in_replica_context(context):
    """Run a block in a replica context, or outside of any for None."""
    token = _CONTEXT.set(context)
    try:
        yield context
    finally:
        _CONTEXT.reset(token)
