"""Parts of unequal sizes of a batch, for scripts that run as replicas.

The last of three replicas or more is idle: it has a copy of the first example.
"""

import numpy as np

from tapewright.core.communication.job import communicator
from tapewright.core.state.replica_context import ReplicaContext, in_replica_context

RANK, SIZE = communicator().rank, communicator().size


def bounds(count):
    """Return where the parts of so many examples end and begin."""
    parts = min(SIZE, 2)
    sizes = [count - count // 3] + [count // 3] * (parts - 1) if parts > 1 else [count]
    sizes += [0] * (SIZE - len(sizes))
    ends = np.cumsum(sizes)
    return ends - sizes, ends


def part(array):
    """Return the rows of this replica."""
    starts, ends = bounds(len(array))
    rows = array[starts[RANK] : ends[RANK]]
    return rows if len(rows) else array[:1]


def replica(count, share=None):
    """Return a context: this is a replica of a batch with ``count`` examples."""
    starts, ends = bounds(count)
    own = int(ends[RANK] - starts[RANK])
    share = own / count if share is None else share
    return in_replica_context(ReplicaContext(SIZE, RANK, share, own == 0))


def total(tensor):
    """Return the sum of a tensor over the replicas, an array."""
    (result,) = communicator().all_reduce([np.asarray(tensor)])
    return result


def check_same(name, arrays):
    """Raise unless all replicas have the same bits."""
    own = np.concatenate([np.ravel(array).view(np.uint8) for array in arrays])
    everywhere = communicator().all_gather(own)
    assert all((each == own).all() for each in everywhere), name
