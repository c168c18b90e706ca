"""Strategies: models, losses and optimizers that take each step on several processes.

The names are those of ``tf.distribute``. A replica is a process of the MPI job; without
MPI there is one, and everything runs as without a strategy.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tapewright.core import config
from tapewright.core import replica_context as core
from tapewright.core.argument_validation import positive, whole
from tapewright.core.communication.job import communicator
from tapewright.core.devices import device
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.nest import map_structure
from tapewright.core.rules import check_choice
from tapewright.core.tensor import convert_to_tensor
from tapewright.core.typing import TensorNest
from tapewright.data.dataset import Dataset
from tapewright.data.parts import mark_per_worker, rows_of_batches
from tapewright.ops.array.conversion import cast
from tapewright.ops.math.reduction import reduce_sum
from tapewright.ops.random.generators import get_global_generator
from tapewright.serialization.constructor_call import constructor_call

from .collectives import all_gather, all_reduce, broadcast_variables

__all__ = [
    "CommunicationOptions",
    "CrossDeviceOps",
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
    "experimental",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
    "set_strategy",
]

_CURRENT = ContextVar("strategy", default=None)
_IN_STEP = ContextVar("in_step", default=False)
_global_strategy = None  # that of `keras.distribution.set_distribution`


class ReduceOp(enum.Enum):
    """The reduction of values of replicas to one: SUM or MEAN."""

    SUM = "SUM"
    MEAN = "MEAN"


@contextmanager
def _set(variable, value):
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


class Strategy:
    """The default strategy: one replica, this process.

    `fit` trains a model that was made in the `scope` of a strategy by that strategy; `run`
    makes one step of a custom loop. Code written for ``tf.distribute`` runs.
    """

    auto_shard_dataset: bool = True  # `fit` divides batches among the replicas
    compression: str | None = None  # of gradients on their way
    _device: Any = None  # where variables are made and steps run; None: the current one

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas that take each step together."""
        return 1

    @property
    def replica_id(self) -> int:
        """The number of the replica of this process."""
        return 0

    @contextmanager
    def scope(self) -> Iterator[Strategy]:
        """Return a context: `fit` trains models made in it by this strategy.

        Example:
            >>> import tapewright as tw
            >>> strategy = tw.distribute.MultiWorkerMirroredStrategy()
            >>> with strategy.scope():
            ...     model = tw.Sequential([tw.layers.Dense(1)])
            >>> model.distribute_strategy is strategy
            True
        """
        with _set(_CURRENT, self), _set(_IN_STEP, False), device(self._device):
            yield self

    @contextmanager
    def replica(self, share: Any = None, is_idle: bool = False) -> Iterator[None]:
        """Return a context for a step of this replica, see `core.replica_context`.

        Args: ``share``: the fraction of the examples of the whole batch, by default the
        same for each replica; ``is_idle``: whether this replica has no examples.
        """
        count = self.num_replicas_in_sync
        context = None
        if count > 1:
            share = 1.0 / count if share is None else share
            context = core.ReplicaContext(
                count, self.replica_id, share, is_idle, self.compression
            )
        with self.scope(), _set(_IN_STEP, True), core.in_replica_context(context):
            yield

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        options: Any = None,
    ) -> Any:
        """Return ``fn(*args, **kwargs)`` of this replica, a step that all take together.

        In ``fn``, losses of `tw.losses` divide by the number of examples of all replicas,
        and `apply_gradients` sums the gradients over the replicas. Each replica must have
        the same number of examples. ``options``, TensorFlow's, is ignored.

        Example:
            >>> tw.distribute.Strategy().run(lambda x: 2 * x, args=(3,))
            6
        """
        with self.replica():
            return fn(*args, **(kwargs or {}))

    def reduce(
        self, reduce_op: ReduceOp | str, value: TensorNest, axis: int | None = None
    ) -> Any:
        """Return the sum or mean over the replicas, and over ``axis`` if it is not None.

        Args: ``reduce_op``: a `ReduceOp`, "SUM" or "MEAN", in upper or lower case;
        ``value``: a tensor or a nest of tensors of this replica. A mean over ``axis``
        weights all entries alike, also if replicas have different numbers of them.

        Raises: ``ValueError`` for another ``reduce_op``.

        Example:
            >>> import tapewright as tw
            >>> tw.distribute.Strategy().reduce("MEAN", tw.constant([1.0, 2.0]), axis=0).numpy()
            np.float32(1.5)
        """
        op = str(getattr(reduce_op, "value", reduce_op)).lower()
        check_choice("reduce", "reduce_op", op, ("sum", "mean"))
        return map_structure(lambda leaf: self._reduce(op, leaf, axis), value)

    def _reduce(self, op, value, axis):
        value = convert_to_tensor(value)
        several = self.num_replicas_in_sync > 1
        if axis is None:
            return all_reduce(value, op) if several else value
        total, count = reduce_sum(value, axis), cast(value.shape[axis], value.dtype)
        if several:
            total, count = all_reduce([total, count], "sum")
        return total if op == "sum" else total / count

    def gather(self, value: TensorNest, axis: int = 0) -> Any:
        """Return the values of all replicas, joined along ``axis``; see `all_gather`."""
        return all_gather(value, axis) if self.num_replicas_in_sync > 1 else value

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Return a tuple of the values of the replicas of this process: ``(value,)``."""
        return (value,)

    def experimental_distribute_dataset(
        self, dataset: Dataset, options: Any = None
    ) -> Dataset:
        """Return a data set of the parts of the batches that are for this replica.

        ``dataset`` yields batches for all replicas together. Of a batch of ``n`` examples
        replica ``r`` of ``N`` gets those from ``r * n // N`` to ``(r + 1) * n // N``.
        ``options``, TensorFlow's, are ignored, here and in the other methods.

        Raises: ``ValueError``, as it runs, if ``dataset`` is not batched.
        """
        count = self.num_replicas_in_sync
        if count == 1:
            return dataset
        return rows_of_batches(dataset, count, self.replica_id)

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Dataset], options: Any = None
    ) -> Dataset:
        """Return ``dataset_fn(InputContext)``, which yields the batches of this replica.

        `fit` does not divide them again.
        """
        context = InputContext(self.num_replicas_in_sync, self.replica_id)
        return mark_per_worker(dataset_fn(context))

    def experimental_distribute_values_from_function(
        self, value_fn: Callable[[Any], Any]
    ) -> Any:
        """Return ``value_fn(context)`` for this replica."""
        with self.replica():
            return value_fn(get_replica_context())

    def __repr__(self) -> str:
        count = self.num_replicas_in_sync
        return f"<{type(self).__name__} replica {self.replica_id} of {count}>"


def _checked(name):
    """Return the name of a device. Raises: as `tw.device` does."""
    with device(name):
        return name


class OneDeviceStrategy(Strategy):
    """One replica, on one device.

    Args: ``device``: as in `tw.device`.

    Example:
        >>> tw.distribute.OneDeviceStrategy("/CPU:0").num_replicas_in_sync
        1
    """

    def __init__(self, device: Any):
        self._device = _checked(device)


class MultiWorkerMirroredStrategy(Strategy):
    """Synchronous training: each process of the MPI job holds a copy of all variables.

    ``mpiexec -n 4 python train.py`` starts four processes. ``batch_size`` in `fit` is that
    of all together. All processes take the seed of rank 0.

    Args: ``communication_options``: `CommunicationOptions`; ``cluster_resolver``:
    TensorFlow's, not needed: MPI knows the processes.

    Raises: ``ImportError`` if a launcher has started several processes and mpi4py is not
    installed.

    Example:
        >>> strategy = tw.distribute.MultiWorkerMirroredStrategy()
        >>> strategy.num_replicas_in_sync  # without MPI
        1
    """

    def __init__(
        self,
        cluster_resolver: Any = None,
        communication_options: CommunicationOptions | None = None,
    ):
        options = communication_options or CommunicationOptions()
        if not isinstance(options, CommunicationOptions):
            raise TypeError(
                "MultiWorkerMirroredStrategy: communication_options must be "
                f"CommunicationOptions, got {type(options).__name__}"
            )
        self.compression = options.compression
        if options.bytes_per_pack:
            config.set_bucket_bytes(options.bytes_per_pack)
        if options.timeout_seconds is not None:
            communicator().timeout = options.timeout_seconds
        broadcast_variables([get_global_generator().state])

    @property
    def num_replicas_in_sync(self) -> int:
        return communicator().size

    @property
    def replica_id(self) -> int:
        return communicator().rank

    @property
    def cluster_resolver(self) -> ClusterResolver:
        """The task of this process: ``task_type`` "worker" and ``task_id``, its rank."""
        return ClusterResolver(self.num_replicas_in_sync, self.replica_id)


class MirroredStrategy(MultiWorkerMirroredStrategy):
    """`MultiWorkerMirroredStrategy`: the replicas are processes here, too.

    Args: ``devices``: a list of the one device of this process, as in `tw.device`;
    ``cross_device_ops``: `CrossDeviceOps`, ignored.

    Raises: ``ValueError`` for several devices.

    Example:
        >>> tw.distribute.MirroredStrategy(["/CPU:0"]).num_replicas_in_sync
        1
    """

    def __init__(
        self, devices: Sequence[Any] | None = None, cross_device_ops: Any = None
    ):
        if devices is not None and len(devices) != 1:
            raise ValueError(
                "MirroredStrategy: devices must be one, as each replica is a process with "
                f"a device; got {devices}: start them by mpiexec -n {len(devices)}"
            )
        super().__init__()
        if devices is not None:
            self._device = _checked(devices[0])


class CommunicationOptions:
    """Options of the all-reduce of gradients.

    Args: ``bytes_per_pack``: the size of the buckets of gradients that are reduced
    together; 0 leaves that of `config.set_bucket_bytes`, 25 MB; ``timeout_seconds``: how
    long processes wait for each other before the job ends with an error, by default 600;
    ``implementation``: TensorFlow's, ignored; ``compression="float16"``: gradients travel
    in half precision, scaled to its range.

    Raises: ``ValueError`` for a negative number or another ``compression``.

    Example:
        >>> options = tw.distribute.CommunicationOptions(compression="float16")
        >>> strategy = tw.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    """

    def __init__(
        self,
        bytes_per_pack: int = 0,
        timeout_seconds: float | None = None,
        implementation: Any = None,
        compression: str | None = None,
    ):
        who = "CommunicationOptions"
        check_choice(who, "compression", compression, (None, "float16"))
        self.bytes_per_pack: int = whole(who, "bytes_per_pack", bytes_per_pack, 0)
        if timeout_seconds is not None:
            timeout_seconds = positive(who, "timeout_seconds", timeout_seconds)
        self.timeout_seconds: float | None = timeout_seconds
        self.compression = compression

    __repr__ = constructor_call


class CrossDeviceOps:
    """TensorFlow's ways to reduce over devices, which `MirroredStrategy` ignores."""

    __repr__ = constructor_call


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """See `CrossDeviceOps`."""

    def __init__(self, num_packs: int = 1):
        self.num_packs = num_packs


class NcclAllReduce(HierarchicalCopyAllReduce):
    """See `CrossDeviceOps`."""


class ReductionToOneDevice(CrossDeviceOps):
    """See `CrossDeviceOps`."""

    def __init__(self, reduce_to_device: Any = None, accumulation_fn: Any = None):
        self.reduce_to_device, self.accumulation_fn = reduce_to_device, accumulation_fn


class CommunicationImplementation(enum.Enum):
    """TensorFlow's ways of communication, which `CommunicationOptions` ignores: it is MPI."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class experimental:  # noqa: N801  (a namespace)
    """Names of ``tf.distribute.experimental``."""

    CommunicationImplementation: type = CommunicationImplementation
    CommunicationOptions: type = CommunicationOptions
    MultiWorkerMirroredStrategy: type = MultiWorkerMirroredStrategy


class ClusterResolver:
    """The rank of a process, in the terms of TensorFlow's cluster resolvers."""

    task_type: str = "worker"

    def __init__(self, num_workers: int, task_id: int):
        self.num_workers, self.task_id = num_workers, task_id


class InputContext:
    """The input pipeline of one process, as the function of a data set gets it.

    Args: ``num_input_pipelines``: the number of processes; ``input_pipeline_id``: the
    number of this one; ``num_replicas_in_sync``: the number of replicas.
    """

    def __init__(
        self,
        num_input_pipelines: int = 1,
        input_pipeline_id: int = 0,
        num_replicas_in_sync: int | None = None,
    ):
        self.num_input_pipelines = num_input_pipelines
        self.input_pipeline_id = input_pipeline_id
        self.num_replicas_in_sync: int = num_replicas_in_sync or num_input_pipelines

    __repr__ = constructor_call

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Return the batch size of one replica.

        Raises: ``ValueError`` unless it divides by the number of replicas.
        """
        if global_batch_size % self.num_replicas_in_sync:
            raise InvalidArgumentError(
                f"get_per_replica_batch_size: global_batch_size {global_batch_size} must "
                f"divide by the number of replicas, {self.num_replicas_in_sync}"
            )
        return global_batch_size // self.num_replicas_in_sync


class ReplicaContext:
    """The replica of this process in a step, with the methods of ``tf.distribute``."""

    def __init__(self, strategy: Strategy):
        self.strategy = strategy

    __repr__ = constructor_call

    @property
    def num_replicas_in_sync(self) -> int:
        return self.strategy.num_replicas_in_sync

    @property
    def replica_id_in_sync_group(self) -> int:
        return self.strategy.replica_id

    def all_reduce(
        self, reduce_op: ReduceOp | str, value: TensorNest, options: Any = None
    ) -> Any:
        """Return the sum or mean over the replicas."""
        return self.strategy.reduce(reduce_op, value)

    def all_gather(self, value: TensorNest, axis: int, options: Any = None) -> Any:
        """Return the values of all replicas, joined along ``axis``."""
        return self.strategy.gather(value, axis)

    def merge_call(
        self,
        merge_fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Return ``merge_fn(strategy, *args, **kwargs)``, called in each process."""
        with core.in_replica_context(None), _set(_IN_STEP, False):
            return merge_fn(self.strategy, *args, **(kwargs or {}))


_DEFAULT = Strategy()


def get_strategy() -> Strategy:
    """Return the current strategy: that of the innermost scope.

    Without a scope it is that of `keras.distribution`, else the default `Strategy`.
    """
    return _CURRENT.get() or _global_strategy or _DEFAULT


def has_strategy() -> bool:
    """Return whether the current strategy is not the default."""
    return get_strategy() is not _DEFAULT


def set_strategy(strategy: Strategy | None) -> None:
    """Set the strategy of all models that are made outside of a scope."""
    global _global_strategy
    _global_strategy = strategy


def get_replica_context() -> ReplicaContext | None:
    """Return the `ReplicaContext` of the current step; None in a scope outside of steps."""
    if in_cross_replica_context():
        return None
    return ReplicaContext(get_strategy())


def in_cross_replica_context() -> bool:
    """Return whether the call is in the scope of a strategy, but outside of a step."""
    return _CURRENT.get() is not None and not _IN_STEP.get()
