"""Collectives on nests of tensors, and the processes of the job.

All processes must call the same collectives in the same order; otherwise each raises
`CollectiveError`, which names the calls of all ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapewright.compiler.tracing.tracer import fall_back
from tapewright.core.communication.communicator import OPERATIONS
from tapewright.core.communication.job import communicator
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.hardware import devices
from tapewright.core.interpreters import active_interpreter, active_tracer
from tapewright.core.nest import flatten, pack
from tapewright.core.rules import check_choice
from tapewright.core.state.assignment import assign_all
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


def rank() -> int:
    """Return the number of this process in the job, from 0; 0 without MPI.

    All functions of this module raise the same errors.

    Raises:
        ImportError: If a launcher has started several processes and mpi4py is not
            installed.
        RuntimeError: If mpi4py was built for another MPI than the launcher's.

    Example:
        >>> if tw.distribute.rank() == 0:
        ...     print("printed once")
        printed once
    """
    return communicator().rank


def size() -> int:
    """Return the number of processes in the job; 1 without MPI.

    Raises:
        ImportError: If a launcher has started several processes and mpi4py is not
            installed.

    Example:
        >>> tw.distribute.size()  # without MPI
        1
    """
    return communicator().size


def local_rank() -> int:
    """Return the number of this process among the processes on its host, from 0.

    It selects the GPU of the process: ``tw.device("GPU")`` is the GPU with this number.

    Raises:
        ImportError: If a launcher has started several processes and mpi4py is not
            installed.

    Example:
        >>> tw.distribute.local_rank()
        0
    """
    return communicator().local_rank


def all_reduce(
    values: TensorNest, op: str = "mean", compression: str | None = None
) -> Any:
    """Reduce each tensor over all processes.

    In a traced function each reduction starts as soon as its tensor is computed, and
    runs in parallel to other ops.

    Args:
        values: Tensor, or nest of tensors, `IndexedSlices` and None, with the same
            structure, shapes and dtypes in each process.
        op: "mean", "sum", "max" or "min".
        compression: "float16" to scale floating numbers, send them in half precision
            and sum them in at least float32, or None.

    Returns:
        The same nest, equal bit for bit in all processes. `IndexedSlices` contain the
        rows of all processes, in the order of the ranks.

    Raises:
        CollectiveError: If the calls of the processes differ.
        DTypeError: If a dtype cannot be reduced.
        ValueError: If ``op`` is unknown.

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
    """Reduce all tensors by a single message, without an interpreter."""
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
    """Reduce a tensor by an op, which tapes record and tracers trace."""
    if leaf is None:
        return None
    if isinstance(leaf, IndexedSlices):
        if active_tracer() is None:
            return gathered_slices(leaf, op)
        leaf = dense(leaf)  # the numbers of rows of all processes are not known
    return collective.all_reduce(leaf, op, compression)


def gathered_slices(slices: IndexedSlices, op: str = "mean") -> IndexedSlices:
    """Return the slices of all processes; for a mean, divide their values by `size`."""
    check_choice("all_reduce of IndexedSlices", "op", op, ("mean", "sum"))
    values = convert_to_tensor(slices.values)
    if op == "mean" and size() > 1:
        values = values / size()
    return IndexedSlices(
        all_gather(values), all_gather(slices.indices), slices.dense_shape
    )


def all_gather(values: TensorNest, axis: int = 0) -> Any:
    """Concatenate the tensors of all processes along an axis, in the order of the ranks.

    A traced function that calls this runs eagerly, since it cannot know the sizes.

    Args:
        values: Tensor or nest of tensors with the same dtype and shape in all
            processes, except for the sizes along ``axis``.
        axis: Axis to concatenate along.

    Returns:
        The same nest in all processes, without gradients.

    Raises:
        ShapeError: If a tensor is a scalar.
        CollectiveError: If the calls of the processes differ.

    Example:
        >>> tw.distribute.all_gather([[1, 2]]).numpy()  # of one process
        array([[1, 2]], dtype=int32)
    """
    if active_tracer() is not None:
        fall_back("all_gather: the sizes of other processes are unknown in a trace")
    if isinstance(values, (list, tuple)) and not _holds_tensors(values):
        values = convert_to_tensor(values)
    return pack(values, [_gathered(leaf, axis) for leaf in flatten(values)])


def _holds_tensors(values):
    return any(isinstance(leaf, (Tensor, Variable)) for leaf in flatten(values))


def _gathered(leaf, axis):
    array = convert_to_tensor(leaf).array
    if not array.ndim:
        raise ShapeError(
            "all_gather",
            "values must have an axis to concatenate along, got a scalar",
            value=leaf,
        )
    rows = np.moveaxis(devices.to_numpy(array), axis, 0)
    joined = np.concatenate(communicator().all_gather(rows))
    module = devices.array_module(type(array))
    return new_tensor(module.asarray(np.moveaxis(joined, 0, axis)))


def broadcast(values: TensorNest, root: int = 0) -> Any:
    """Broadcast the tensors of one process to all processes.

    A traced function that calls this runs eagerly.

    Args:
        values: Tensor or nest of tensors with the same structure, shapes and dtypes in
            all processes.
        root: Rank whose tensors are sent.

    Returns:
        The nest of the process ``root``, without gradients.

    Raises:
        ValueError: If ``root`` is not a rank.
        CollectiveError: If the calls of the processes differ.

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
    """Broadcast the values of variables in one process to all processes.

    Call it once before a custom training loop; `fit` does so automatically.

    Args:
        variables: Variables of a model or an optimizer, in the same order in all
            processes.
        root: Rank whose values are sent.

    Raises:
        TypeError: If an item is not a variable.
        CollectiveError: If the variables of the processes differ in number, shape or
            dtype.
        InvalidArgumentError: In a traced function.

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
    """Wait until all processes have called this function.

    Raises:
        InvalidArgumentError: In a traced function.
        CollectiveError: If another process calls another collective, or ends.

    Example:
        >>> tw.distribute.barrier()  # of one process: returns immediately
    """
    if active_tracer() is not None:
        raise InvalidArgumentError(
            "barrier: a traced function cannot wait; call it outside of traced "
            "functions"
        )
    communicator().barrier()
