"""`tw.distribute`: the same script in several processes, started by MPI.

``mpiexec -n 4 python train.py`` runs a script in four processes. If a model is created
in the scope of a `MultiWorkerMirroredStrategy`, `fit` trains it in all of them
together; custom training loops average gradients with `DistributedGradientTape` or
`all_reduce`. In a single process, without MPI, everything here runs unchanged.

- `collectives`: ranks, and collectives on nests of tensors
- `gradients`: `DistributedGradientTape`
- `sharding`: optimizers that are divided among the processes
- `strategy`: strategies, as in ``tf.distribute``
- `cluster_resolver`: the search for TPUs
- `digests`: the check that variables are equal in all processes
"""

import sys

from tapewright.core.names.lazy_import import keep_public

from . import cluster_resolver
from .collectives import (
    all_gather,
    all_reduce,
    barrier,
    broadcast,
    broadcast_variables,
    local_rank,
    rank,
    size,
)
from .digests import check_variables
from .gradients import DistributedGradientTape
from .sharding import shard_optimizer
from .strategy import (
    CommunicationOptions,
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    InputContext,
    MirroredStrategy,
    MultiWorkerMirroredStrategy,
    NcclAllReduce,
    OneDeviceStrategy,
    ReduceOp,
    ReductionToOneDevice,
    ReplicaContext,
    Strategy,
    experimental,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)

__all__ = [
    "CommunicationOptions",
    "CrossDeviceOps",
    "DistributedGradientTape",
    "HierarchicalCopyAllReduce",
    "InputContext",
    "MirroredStrategy",
    "MultiWorkerMirroredStrategy",
    "NcclAllReduce",
    "OneDeviceStrategy",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "Strategy",
    "all_gather",
    "all_reduce",
    "barrier",
    "broadcast",
    "broadcast_variables",
    "check_variables",
    "cluster_resolver",
    "experimental",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
    "local_rank",
    "rank",
    "shard_optimizer",
    "size",
]

keep_public(sys.modules[__name__])
