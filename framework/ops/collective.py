"""Reductions over the processes of a job, with derivatives.

Every process calls its tape, and gradients are gradients of the sum of the targets of
all processes: VJP rules reduce cotangents over the processes, too.
"""

from __future__ import annotations

from tapewright.core.communication.communicator import OPERATIONS
from tapewright.core.communication.job import communicator
from tapewright.core.dispatch import composite
from tapewright.core.errors import DTypeError, ShapeError
from tapewright.core.primitive import primitive
from tapewright.core.rules import (
    batch_leading,
    check_attributes,
    check_choice,
    diagonal_elementwise,
    infer_like_input,
)
from tapewright.core.state.replica_context import replica_context
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import IntLike, TensorLike

from .array.conversion import cast
from .math.comparison import equal
from .math.elementwise import divide
from .math.reduction import reduce_sum


@composite
def all_reduce(
    x: TensorLike, op: str = "sum", compression: str | None = None
) -> Tensor:
    """Reduce a tensor over all processes: sum, mean, maximum or minimum.

    Every process gets the same result. Derivatives are derivatives of the sum of the
    targets of all processes; processes that tie for a maximum or minimum share its
    cotangent.

    Args:
        x: Input tensor, with the same shape and dtype in all processes, which must call
            the same collectives in the same order.
        op: "sum", "mean", "max" or "min".
        compression: "float16" sends floating numbers as float16, scaled to its range,
            in sums and means; None sends them as they are.

    Raises:
        CollectiveError: In all processes, if they do not call the same collective, or
            one has left.
        DTypeError: If the dtype does not support this reduction.
        ValueError: If ``op`` or ``compression`` is unknown.

    Example:
        >>> from tapewright.ops.collective import all_reduce
        >>> all_reduce([1.0, 2.0], "mean").numpy()  # one process
        array([1., 2.], dtype=float32)
    """
    check_choice("all_reduce", "op", op, OPERATIONS)
    check_choice("all_reduce", "compression", compression, (None, "float16"))
    x = convert_to_tensor(x)
    if op in ("max", "min"):
        check_choice(f"all_reduce {op}", "compression", compression, (None,))
        return all_reduce_extreme(x, reduction=op)
    if op == "mean" and not x.dtype.is_differentiable:
        raise DTypeError("all_reduce", "op='mean' requires a floating dtype", x=x)
    return all_reduce_sum(x, reduction=op, compression=compression)


_OPTIONS = {
    "infer": infer_like_input,
    "batch": batch_leading,
    "diagonal": diagonal_elementwise,
    "new_memory": True,
    "keeps_c_order": True,
    "ignores_float_errors": True,
    "collective": True,
}


@primitive(kinds="iufc", linear=True, **_OPTIONS)
def all_reduce_sum(
    xp, x: TensorLike, *, reduction: str = "sum", compression: str | None = None
):
    """Compute the "sum" or "mean" of ``x`` over all processes; see `all_reduce`."""
    (total,) = communicator().all_reduce([x], reduction, compression)
    return total


def _check_sum(reduction, compression):
    check_choice("all_reduce", "op", reduction, ("sum", "mean"))
    check_choice("all_reduce", "compression", compression, (None, "float16"))


check_attributes(all_reduce_sum, _check_sum)


@all_reduce_sum.vjp("x")
def _(g, reduction, compression):
    return all_reduce_sum(g, reduction=reduction, compression=compression)


@primitive(kinds="biuf", **_OPTIONS)
def all_reduce_extreme(xp, x: TensorLike, *, reduction: str):
    """Compute the "max" or "min" of ``x`` over all processes; see `all_reduce`."""
    (extreme,) = communicator().all_reduce([x], reduction)
    return extreme


def _check_extreme(reduction):
    check_choice("all_reduce", "op", reduction, ("max", "min"))


check_attributes(all_reduce_extreme, _check_extreme)


@all_reduce_extreme.vjp("x")
def _(g, x, out):
    reached = cast(equal(x, out), x.dtype)
    return divide(all_reduce_sum(g), all_reduce_sum(reached)) * reached


def zero_if_idle(x: Tensor) -> Tensor:
    """Return ``x``; in a replica without examples in this step, zeros with derivatives."""
    context = replica_context()
    return x * 0.0 if context is not None and context.is_idle else x


def compute_average_loss(
    per_example_loss: TensorLike,
    sample_weight: TensorLike | None = None,
    global_batch_size: IntLike | None = None,
) -> Tensor:
    """Sum weighted losses and divide by the number of examples of all replicas.

    The sum over the replicas is then the mean over all examples.

    Args:
        per_example_loss: Losses, one per example.
        sample_weight: Weights of the losses, or None.
        global_batch_size: Number of examples in all replicas; defaults to the number in
            this replica times the number of replicas.

    Shapes:
        ``per_example_loss`` ``[batch, ...]``, result a scalar.

    Example:
        >>> tw.nn.compute_average_loss([1.0, 3.0], global_batch_size=8).numpy()
        np.float32(0.5)
    """
    losses = convert_to_tensor(per_example_loss)
    if sample_weight is not None:
        losses = losses * cast(sample_weight, losses.dtype)
    if global_batch_size is None:
        if losses.shape.rank == 0:
            what = "per_example_loss must have a batch axis"
            raise ShapeError("compute_average_loss", what, per_example_loss=losses)
        global_batch_size = losses.shape[0] * _num_replicas()
    return reduce_sum(losses) / cast(global_batch_size, losses.dtype)


def scale_regularization_loss(regularization_loss: TensorLike) -> Tensor:
    """Sum regularization losses and divide by the number of replicas.

    Each replica adds the result to its loss.

    Args:
        regularization_loss: Losses, a tensor of any shape.

    Example:
        >>> tw.nn.scale_regularization_loss([0.5, 0.25]).numpy()  # in one replica
        np.float32(0.75)
    """
    return reduce_sum(convert_to_tensor(regularization_loss)) / _num_replicas()


def _num_replicas():
    context = replica_context()
    return 1 if context is None else context.num_replicas
