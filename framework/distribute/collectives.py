"""The processes of the job, and collectives on nests of tensors.

All processes must call the same collectives in the same order; otherwise each raises
`CollectiveError`, which names the calls of all ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapewright.compiler.tracing.tracer import fall_back
from tapewright.core import devices
from tapewright.core.assignment import assign_all
from tapewright.core.communication.communicator import OPERATIONS
from tapewright.core.communication.job import communicator
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.interpreters import active_interpreter, active_tracer
from tapewright.core.nest import flatten, pack
from tapewright.core.rules import check_choice
from tapewright.core.tensor import (
    IndexedSlices,
    Tensor,
    convert_to_tensor,
    new_tensor,
)
from tapewright.core.typing import TensorNest
from tapewright.core.variable import Variable
from tapewright.ops import collective
from tapewright.ops.array.indexed_slices import dense

__all__ = [
    "all_gather",
    "all_reduce",
    "barrier",
    "broadcast",
    "broadcast_variables",
    "local_rank",
    "rank",
    "size",
]


def rank() -> int:
    """Return the number of this process in the job, from 0; 0 without MPI.

    Raises: ``ImportError`` if a launcher has started several processes and mpi4py is not
    installed, ``RuntimeError`` if mpi4py belongs to another MPI than the launcher; so do
    all functions here.

    Example:
        >>> if tw.distribute.rank() == 0:
        ...     print("printed once")
        printed once
    """
    return communicator().rank


def size() -> int:
    """Return the number of processes of the job; 1 without MPI.

    Raises: ``ImportError`` as `rank` does.
    """
    return communicator().size


def local_rank() -> int:
    """Return the number of this process among those of its host, from 0.

    It chooses the GPU of the process: ``tw.device("GPU")`` is that of its local rank.
    Raises: ``ImportError`` as `rank` does.
    """
    return communicator().local_rank


def all_reduce(
    values: TensorNest, op: str = "mean", compression: str | None = None
) -> Any:
    """Return the "mean", "sum", "max" or "min" of each tensor over all processes.

    Args: ``values``: a tensor, or any nest of tensors, `IndexedSlices` and None, with the
    same structure, shapes and dtypes in each process; ``op``: "mean", "sum", "max" or
    "min"; ``compression="float16"``: floating numbers travel in half precision, scaled to
    its range, and are summed in single precision or their own.

    Returns: the same nest, equal to the bit in all processes. `IndexedSlices` hold the
    rows of all processes, in the order of the ranks. In a traced function each reduction
    begins as soon as its tensor is there, and runs beside the rest.

    Raises: ``CollectiveError`` if processes differ in what they call; ``DTypeError`` for
    a dtype that cannot be reduced; ``ValueError`` for an unknown ``op``.

    Example:
        >>> tw.distribute.all_reduce({"loss": 3.0})["loss"].numpy()  # of one process
        np.float32(3.0)
    """
    check_choice("all_reduce", "op", op, OPERATIONS)
    leaves = flatten(values)
    if active_interpreter() is None:
        return pack(values, _reduced_together(leaves, op, compression))
    reduced = [_reduced(leaf, op, compression) for leaf in leaves]
    return pack(values, reduced)


def _reduced_together(leaves, op, compression):
    """Reduce all tensors by one message, without an interpreter."""
    results = list(leaves)
    tensors = {}
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, IndexedSlices):
            results[i] = gathered_slices(leaf, op)
        elif leaf is not None:
            tensors[i] = convert_to_tensor(leaf).array
    reduced = communicator().all_reduce(list(tensors.values()), op, compression)
    for i, result in zip(tensors, reduced):
        results[i] = new_tensor(result)
    return results


def _reduced(leaf, op, compression):
    """Reduce one tensor by an op, which tapes record and tracers trace."""
    if leaf is None:
        return None
    if isinstance(leaf, IndexedSlices):
        if active_tracer() is None:
            return gathered_slices(leaf, op)
        leaf = dense(leaf)  # the numbers of rows of all processes are not known
    return collective.all_reduce(leaf, op, compression)


def gathered_slices(slices: IndexedSlices, op: str = "mean") -> IndexedSlices:
    """Return the slices of all processes; for a mean, their values divided by `size`."""
    check_choice("all_reduce of IndexedSlices", "op", op, ("mean", "sum"))
    values = convert_to_tensor(slices.values)
    if op == "mean" and size() > 1:
        values = values / size()
    return IndexedSlices(
        all_gather(values), all_gather(slices.indices), slices.dense_shape
    )


def all_gather(values: TensorNest, axis: int = 0) -> Any:
    """Return the tensors of all processes, joined along ``axis`` in the order of the ranks.

    Args: ``values``: a tensor or a nest of tensors, of one dtype and shape in all
    processes, except for the sizes along ``axis``, which may differ.

    Returns: the same nest in all processes, without gradients. A traced function that
    calls this runs eagerly, since it cannot know the sizes.

    Raises: ``ShapeError`` for a scalar; ``CollectiveError`` if processes differ in what
    they call.

    Example:
        >>> tw.distribute.all_gather([[1, 2]]).numpy()  # of one process
        array([[1, 2]], dtype=int32)
    """
    if active_tracer() is not None:
        fall_back("all_gather: the sizes of other processes are not known in a trace")
    if isinstance(values, (list, tuple)) and not _holds_tensors(values):
        values = convert_to_tensor(values)
    return pack(values, [_gathered(leaf, axis) for leaf in flatten(values)])


def _holds_tensors(values):
    return any(isinstance(leaf, (Tensor, Variable)) for leaf in flatten(values))


def _gathered(leaf, axis):
    array = convert_to_tensor(leaf).array
    if not array.ndim:
        raise ShapeError("all_gather", "a scalar has no axis to join along", value=leaf)
    rows = np.moveaxis(devices.to_numpy(array), axis, 0)
    joined = np.concatenate(communicator().all_gather(rows))
    module = devices.array_module(type(array))
    return new_tensor(module.asarray(np.moveaxis(joined, 0, axis)))


def broadcast(values: TensorNest, root: int = 0) -> Any:
    """Return the tensors of the process ``root`` in all processes.

    Args: ``values``: a tensor or a nest of tensors, of the same structure, shapes and
    dtypes in all processes; ``root``: a rank. The result has no gradients. A traced
    function that calls this runs eagerly.

    Raises: ``ValueError`` if ``root`` is no rank; ``CollectiveError`` if processes differ
    in what they call.

    Example:
        >>> tw.distribute.broadcast([1.0, 2.0]).numpy()  # of one process
        array([1., 2.], dtype=float32)
    """
    if active_tracer() is not None:
        fall_back("broadcast runs in each call, eagerly")
    if isinstance(values, (list, tuple)) and not _holds_tensors(values):
        values = convert_to_tensor(values)
    arrays = [convert_to_tensor(leaf).array for leaf in flatten(values)]
    sent = communicator().broadcast([devices.to_numpy(a) for a in arrays], root)
    pairs = zip(arrays, sent)
    tensors = [new_tensor(devices.array_module(type(a)).asarray(b)) for a, b in pairs]
    return pack(values, tensors)


def broadcast_variables(variables: Sequence[Variable], root: int = 0) -> None:
    """Assign to the variables, in all processes, their values in the process ``root``.

    Call it once, before a training loop of your own; `fit` does it by itself.

    Args: ``variables``: those of a model or an optimizer, in one order in all processes.

    Raises: ``TypeError`` for anything but variables; ``CollectiveError`` if those of the
    processes differ in number, shape or dtype; ``InvalidArgumentError`` in a traced
    function.

    Example:
        >>> weight = tw.Variable([1.0])
        >>> tw.distribute.broadcast_variables([weight])
    """
    variables = list(variables)
    for variable in variables:
        if not isinstance(variable, Variable):
            raise TypeError(
                "broadcast_variables: variables must be Variables, got "
                f"{type(variable).__name__}"
            )
    if active_tracer() is not None:
        raise InvalidArgumentError(
            "broadcast_variables: call it once, before the training loop, not in a "
            "traced function"
        )
    if size() > 1 and variables:
        arrays = [devices.to_numpy(variable.read().array) for variable in variables]
        values = communicator().broadcast(arrays, root)
        assign_all("broadcast_variables", variables, values)


def barrier() -> None:
    """Wait until all processes have called this.

    Raises: ``InvalidArgumentError`` in a traced function; ``CollectiveError`` if another
    process calls another collective, or ends.
    """
    if active_tracer() is not None:
        raise InvalidArgumentError(
            "barrier: a traced function cannot wait; call it outside"
        )
    communicator().barrier()
