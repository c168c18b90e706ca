"""Strategies: models, losses and optimizers that take each step in several processes.

The names follow ``tf.distribute``. A replica is a process of the MPI job; without MPI
there is one, and everything runs as without a strategy.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tapewright.core.communication.job import communicator
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.hardware.devices import device
from tapewright.core.messages.argument_validation import positive, whole
from tapewright.core.nest import map_structure
from tapewright.core.rules import check_choice
from tapewright.core.settings import config
from tapewright.core.state import replica_context as core
from tapewright.core.tensor import convert_to_tensor
from tapewright.core.typing import TensorNest
from tapewright.data.dataset import Dataset
from tapewright.data.parts import mark_per_worker, rows_of_batches
from tapewright.ops.array.conversion import cast
from tapewright.ops.math.reduction import reduce_sum
from tapewright.ops.random.generators import get_global_generator
from tapewright.serialization.constructor_call import constructor_call

from .collectives import all_gather, all_reduce, broadcast_variables

_CURRENT = ContextVar("strategy", default=None)
_IN_STEP = ContextVar("in_step", default=False)
_global_strategy = None  # that of `keras.distribution.set_distribution`


class ReduceOp(enum.Enum):
    """Reduction of values of replicas: SUM or MEAN."""

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
    """Default distribution strategy: one replica, this process.

    If a model is created in the `scope` of a strategy, `fit` trains it with that
    strategy; `run` makes one step of a custom loop. Code written for ``tf.distribute``
    runs unchanged.
    """

    _tw_auto_shard_dataset: bool = True  # `fit` divides batches among the replicas
    _tw_shard_optimizer: bool = False  # `compile` shards the optimizer
    _compression: str | None = None  # of gradients on their way
    _device: Any = None  # where variables are made and steps run; None: the current one

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas that take each step together."""
        return 1

    @property
    def _tw_replica_id(self) -> int:
        """The number of the replica of this process, from 0."""
        return 0

    @contextmanager
    def scope(self) -> Iterator[Strategy]:
        """Return a context; `fit` trains models created in it with this strategy.

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
    def _tw_replica(self, share: Any = None, is_idle: bool = False) -> Iterator[None]:
        """Return a context for a step of this replica, see `core.state.replica_context`.

        Args:
            share: Fraction of the examples of the global batch, by default equal for
                all replicas.
            is_idle: True if this replica has no examples.
        """
        count = self.num_replicas_in_sync
        context = None
        if count > 1:
            share = 1.0 / count if share is None else share
            context = core.ReplicaContext(
                count, self._tw_replica_id, share, is_idle, self._compression
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
        """Call ``fn(*args, **kwargs)`` as the step of this replica, and return the result.

        All replicas take the step together. In ``fn``, losses of `tw.losses` divide by
        the number of examples of all replicas, and `apply_gradients` sums the gradients
        over the replicas. Each replica must have the same number of examples.

        Args:
            fn: Function to call.
            args: Positional arguments of ``fn``.
            kwargs: Keyword arguments of ``fn``, or None.
            options: Ignored.

        Example:
            >>> tw.distribute.Strategy().run(lambda x: 2 * x, args=(3,))
            6
        """
        with self._tw_replica():
            return fn(*args, **(kwargs or {}))

    def reduce(
        self, reduce_op: ReduceOp | str, value: TensorNest, axis: int | None = None
    ) -> Any:
        """Reduce values over the replicas, and over ``axis`` if it is not None.

        A mean over ``axis`` gives all entries the same weight, also if the number of
        entries differs between replicas.

        Args:
            reduce_op: `ReduceOp`, or "SUM" or "MEAN" in upper or lower case.
            value: Tensor or nest of tensors of this replica.
            axis: Axis to reduce as well, or None.

        Raises:
            ValueError: If ``reduce_op`` is unknown.

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
        """Concatenate the values of all replicas along ``axis``; see `all_gather`.

        Args:
            value: Tensor or nest of tensors of this replica.
            axis: Axis to concatenate along.
        """
        return all_gather(value, axis) if self.num_replicas_in_sync > 1 else value

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Return the values of the replicas in this process as a tuple: ``(value,)``.

        Args:
            value: Value of this replica.
        """
        return (value,)

    def experimental_distribute_dataset(
        self, dataset: Dataset, options: Any = None
    ) -> Dataset:
        """Return a data set with this replica's part of each global batch.

        Of a batch of ``n`` examples, replica ``r`` of ``N`` gets the examples from
        ``r * n // N`` to ``(r + 1) * n // N``. Iterating a data set that is not batched
        raises a ``ValueError``.

        Args:
            dataset: Data set of batches for all replicas together.
            options: Ignored.
        """
        count = self.num_replicas_in_sync
        if count == 1:
            return dataset
        return rows_of_batches(dataset, count, self._tw_replica_id)

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Dataset], options: Any = None
    ) -> Dataset:
        """Return ``dataset_fn(InputContext)``, a data set of the batches of this replica.

        `fit` does not divide these batches again.

        Args:
            dataset_fn: Function that creates the data set from an `InputContext`.
            options: Ignored.
        """
        context = InputContext(self.num_replicas_in_sync, self._tw_replica_id)
        return mark_per_worker(dataset_fn(context))

    def experimental_distribute_values_from_function(
        self, value_fn: Callable[[Any], Any]
    ) -> Any:
        """Return ``value_fn(context)`` for this replica.

        Args:
            value_fn: Function of a `ReplicaContext`.
        """
        with self._tw_replica():
            return value_fn(get_replica_context())

    def __repr__(self) -> str:
        count = self.num_replicas_in_sync
        return f"<{type(self).__name__} replica {self._tw_replica_id} of {count}>"


def _checked(name):
    """Return the name of a device; raise the errors of `tw.device`."""
    with device(name):
        return name


class OneDeviceStrategy(Strategy):
    """Strategy with one replica on one device.

    Args:
        device: Name of the device, as in `tw.device`.

    Raises:
        ValueError: If ``device`` is not the name of a device.

    Example:
        >>> tw.distribute.OneDeviceStrategy("/CPU:0").num_replicas_in_sync
        1
    """

    def __init__(self, device: Any):
        self._device = _checked(device)


class MultiWorkerMirroredStrategy(Strategy):
    """Synchronous training in all processes of the MPI job, each with all variables.

    ``mpiexec -n 4 python train.py`` starts four processes. ``batch_size`` in `fit` is
    the global batch size. All processes use the seed of rank 0.

    Args:
        cluster_resolver: Ignored; MPI defines the processes.
        communication_options: `CommunicationOptions`, or None.

    Raises:
        ImportError: If a launcher has started several processes and mpi4py is not
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
        self._compression = options.compression
        if options.bytes_per_pack:
            config.set_bucket_bytes(options.bytes_per_pack)
        if options.timeout_seconds is not None:
            communicator().timeout = options.timeout_seconds
        broadcast_variables([get_global_generator().state])

    @property
    def num_replicas_in_sync(self) -> int:
        return communicator().size

    @property
    def _tw_replica_id(self) -> int:
        return communicator().rank

    @property
    def cluster_resolver(self) -> ClusterResolver:
        """The task of this process: ``task_type`` "worker", and its rank as ``task_id``."""
        return ClusterResolver(self.num_replicas_in_sync, self._tw_replica_id)


class MirroredStrategy(MultiWorkerMirroredStrategy):
    """Synchronous training on several GPUs, each in a process of the MPI job.

    This is a `MultiWorkerMirroredStrategy`: replicas are always processes.

    Args:
        devices: List with the single device of this process, as in `tw.device`, or
            None.
        cross_device_ops: Ignored.

    Raises:
        ValueError: If there are several devices.

    Example:
        >>> tw.distribute.MirroredStrategy(["/CPU:0"]).num_replicas_in_sync
        1
    """

    def __init__(
        self, devices: Sequence[Any] | None = None, cross_device_ops: Any = None
    ):
        if devices is not None and len(devices) != 1:
            raise ValueError(
                "MirroredStrategy: devices must contain one device, since each replica is "
                f"a process with a device, got {devices}; start the processes by mpiexec -n "
                f"{len(devices)}"
            )
        super().__init__()
        if devices is not None:
            self._device = _checked(devices[0])


class CommunicationOptions:
    """Options of the all-reduce of gradients.

    Args:
        bytes_per_pack: Size of the buckets of gradients that are reduced together; 0
            for the setting of `config.set_bucket_bytes`, by default 25 MB.
        timeout_seconds: Seconds that processes wait for each other before the job ends
            with an error; None for the default of 600.
        implementation: Ignored.
        compression: "float16" to scale gradients and send them in half precision, or
            None.

    Raises:
        ValueError: If a number is negative or ``compression`` is unknown.

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
    """TensorFlow's algorithms to reduce over devices, ignored by `MirroredStrategy`."""

    __repr__ = constructor_call


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """TensorFlow's hierarchical copy; ignored, see `CrossDeviceOps`.

    Args:
        num_packs: Ignored.
    """

    def __init__(self, num_packs: int = 1):
        self.num_packs = num_packs


class NcclAllReduce(HierarchicalCopyAllReduce):
    """TensorFlow's NCCL all-reduce; ignored, see `CrossDeviceOps`."""


class ReductionToOneDevice(CrossDeviceOps):
    """TensorFlow's reduction on one device; ignored, see `CrossDeviceOps`.

    Args:
        reduce_to_device: Ignored.
        accumulation_fn: Ignored.
    """

    def __init__(self, reduce_to_device: Any = None, accumulation_fn: Any = None):
        self.reduce_to_device, self.accumulation_fn = reduce_to_device, accumulation_fn


class CommunicationImplementation(enum.Enum):
    """TensorFlow's communication libraries; ignored, since MPI is always used."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class experimental:  # noqa: N801  (a namespace)
    """Names of ``tf.distribute.experimental``."""

    CommunicationImplementation: type = CommunicationImplementation
    CommunicationOptions: type = CommunicationOptions
    MultiWorkerMirroredStrategy: type = MultiWorkerMirroredStrategy


class ClusterResolver:
    """The rank of a process in the terms of TensorFlow's cluster resolvers."""

    task_type: str = "worker"

    def __init__(self, num_workers: int, task_id: int):
        self.num_workers, self.task_id = num_workers, task_id


class InputContext:
    """The input pipeline of one process, passed to a function that creates a data set.

    Args:
        num_input_pipelines: Number of processes.
        input_pipeline_id: Number of this process.
        num_replicas_in_sync: Number of replicas.

    Example:
        >>> context = tw.distribute.InputContext(num_replicas_in_sync=4)
        >>> context.get_per_replica_batch_size(64)
        16
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

        Args:
            global_batch_size: Number of examples in a batch for all replicas together.

        Raises:
            ValueError: If ``global_batch_size`` is not divisible by the number of
                replicas.
        """
        if global_batch_size % self.num_replicas_in_sync:
            raise InvalidArgumentError(
                "get_per_replica_batch_size: global_batch_size must be divisible by the "
                f"number of replicas, {self.num_replicas_in_sync}, got {global_batch_size}"
            )
        return global_batch_size // self.num_replicas_in_sync


class ReplicaContext:
    """The replica of this process in a step, with the methods of ``tf.distribute``.

    Args:
        strategy: Strategy that takes the step.
    """

    def __init__(self, strategy: Strategy):
        self.strategy = strategy

    __repr__ = constructor_call

    @property
    def num_replicas_in_sync(self) -> int:
        return self.strategy.num_replicas_in_sync

    @property
    def replica_id_in_sync_group(self) -> int:
        return self.strategy._tw_replica_id

    def all_reduce(
        self, reduce_op: ReduceOp | str, value: TensorNest, options: Any = None
    ) -> Any:
        """Reduce values over the replicas.

        Args:
            reduce_op: `ReduceOp`, or "SUM" or "MEAN" in upper or lower case.
            value: Tensor or nest of tensors of this replica.
            options: Ignored.
        """
        return self.strategy.reduce(reduce_op, value)

    def all_gather(self, value: TensorNest, axis: int, options: Any = None) -> Any:
        """Concatenate the values of all replicas along ``axis``.

        Args:
            value: Tensor or nest of tensors of this replica.
            axis: Axis to concatenate along.
            options: Ignored.
        """
        return self.strategy.gather(value, axis)

    def merge_call(
        self,
        merge_fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Return ``merge_fn(strategy, *args, **kwargs)``, called in each process.

        Args:
            merge_fn: Function of the strategy and further arguments.
            args: Positional arguments.
            kwargs: Keyword arguments, or None.
        """
        with core.in_replica_context(None), _set(_IN_STEP, False):
            return merge_fn(self.strategy, *args, **(kwargs or {}))


_DEFAULT = Strategy()


def get_strategy() -> Strategy:
    """Return the current strategy, set by the innermost scope.

    Outside of scopes it is the strategy of `keras.distribution`, or the default
    `Strategy`.

    Example:
        >>> with tw.distribute.OneDeviceStrategy("/CPU:0").scope() as strategy:
        ...     tw.distribute.get_strategy() is strategy
        True
    """
    return _CURRENT.get() or _global_strategy or _DEFAULT


def has_strategy() -> bool:
    """Return whether the current strategy is not the default.

    Example:
        >>> tw.distribute.has_strategy()
        False
    """
    return get_strategy() is not _DEFAULT


def set_strategy(strategy: Strategy | None) -> None:
    """Set the strategy of all models created outside of a scope."""
    global _global_strategy
    _global_strategy = strategy


def get_replica_context() -> ReplicaContext | None:
    """Return the `ReplicaContext` of the current step; None in a scope outside of steps.

    Example:
        >>> context = tw.distribute.get_replica_context()
        >>> context.all_reduce("SUM", 2.0).numpy()  # of one process
        np.float32(2.0)
    """
    if in_cross_replica_context():
        return None
    return ReplicaContext(get_strategy())


def in_cross_replica_context() -> bool:
    """Return whether the call is inside a strategy's scope but outside of a step."""
    return _CURRENT.get() is not None and not _IN_STEP.get()
