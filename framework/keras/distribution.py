"""`keras.distribution`: distributed training on several processes, as in Keras 3.

``set_distribution(DataParallel())`` has the effect for all models that the scope of a
`MultiWorkerMirroredStrategy` has for models created in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tapewright.distribute.collectives import rank, size
from tapewright.distribute.strategy import MultiWorkerMirroredStrategy, set_strategy
from tapewright.serialization.constructor_call import constructor_call

__all__ = [
    "DataParallel",
    "Distribution",
    "distribution",
    "initialize",
    "list_devices",
    "set_distribution",
]

_current = None


class Distribution:
    """Base class of distributions; `DataParallel` is the only one."""


class DataParallel(Distribution):
    """Data-parallel training: each MPI process has all variables and part of each batch.

    Args:
        device_mesh: Must be None: MPI determines the processes.
        devices: Must be None: MPI determines the processes.
        auto_shard_dataset: If True, `fit` selects the part of each batch for this
            process; if False, a `Dataset` yields batches for this process only.
        shard_optimizer: If True, `compile` divides the state and the update of the
            optimizer among the processes; see `tw.distribute.shard_optimizer`.

    Raises:
        ValueError: If ``device_mesh`` or ``devices`` is not None.
        ImportError: If a launcher has started several processes and mpi4py is not
            installed.

    Example:
        >>> keras.distribution.set_distribution(keras.distribution.DataParallel())
        >>> keras.distribution.set_distribution(None)
    """

    def __init__(
        self,
        device_mesh: Any = None,
        devices: Any = None,
        auto_shard_dataset: bool = True,
        shard_optimizer: bool = False,
    ):
        for name, value in (("device_mesh", device_mesh), ("devices", devices)):
            if value is not None:
                raise ValueError(
                    f"DataParallel: {name} must be None, got {value!r}; mpiexec "
                    "determines the processes"
                )
        self.strategy = MultiWorkerMirroredStrategy()
        self.strategy._tw_auto_shard_dataset = bool(auto_shard_dataset)
        self.auto_shard_dataset = bool(auto_shard_dataset)
        self.strategy._tw_shard_optimizer = bool(shard_optimizer)
        self.shard_optimizer = bool(shard_optimizer)

    __repr__ = constructor_call

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Return a context manager; models created in it train with this distribution."""
        before = distribution()
        set_distribution(self)
        try:
            yield
        finally:
            set_distribution(before)


def set_distribution(value: Distribution | None) -> None:
    """Set the distribution of all models created from now on.

    Args:
        value: `DataParallel`, or None to train in each process separately.

    Raises:
        TypeError: If ``value`` is neither a `DataParallel` nor None.
    """
    global _current
    if value is not None and not isinstance(value, DataParallel):
        raise TypeError(
            f"set_distribution: value must be a DataParallel or None, got {value!r}"
        )
    _current = value
    set_strategy(None if value is None else value.strategy)


def distribution() -> Distribution | None:
    """Return the current `Distribution`, or None."""
    return _current


def initialize(
    job_addresses: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
) -> None:
    """Join the MPI job; the call is optional.

    Args:
        job_addresses: Must be None.
        num_processes: None, or the number of processes that MPI reports.
        process_id: None, or the rank that MPI reports.

    Raises:
        ValueError: If an argument has another value.
    """
    for name, value, known in (
        ("job_addresses", job_addresses, None),
        ("num_processes", num_processes, size()),
        ("process_id", process_id, rank()),
    ):
        if value is not None and value != known:
            raise ValueError(
                f"initialize: {name} must be {known}, as MPI reports, got {value!r}"
            )


def list_devices(device_type: str | None = None) -> list[str]:
    """Return the devices of all processes: one CPU each.

    Args:
        device_type: None or "cpu"; for other types the list is empty.

    Example:
        >>> keras.distribution.list_devices()  # of one process
        ['cpu:0']
    """
    if device_type not in (None, "cpu"):
        return []
    return [f"cpu:{i}" for i in range(size())]
