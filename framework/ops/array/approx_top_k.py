"""The largest and smallest entries under the names of TensorFlow's approximate search.

TensorFlow approximates on TPUs only; here, as in TensorFlow on other devices, results
are exact.
"""

from __future__ import annotations

from tapewright.core.errors import InvalidArgumentError
from tapewright.core.rules import normalize_axis
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import Axis, IntLike, TensorLike, as_int

from .shape import transpose
from .sorting import top_k

__all__ = ["approx_max_k", "approx_min_k"]


def approx_max_k(
    operand: TensorLike,
    k: IntLike,
    reduction_dimension: Axis = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the ``k`` largest entries along an axis, descending, and their indices.

    Results are exact. Gradients pass through the values.

    Args:
        operand: Input tensor of numbers.
        k: Number of entries to return.
        reduction_dimension: Axis to search along.
        recall_target: Ignored; the recall is always 1.
        reduction_input_size_override: Ignored.
        aggregate_to_topk: Must be True.

    Shapes:
        The axis ``reduction_dimension`` has size ``k`` in both results.

    Raises:
        ValueError: If ``k`` is larger than the axis, or ``aggregate_to_topk`` is False.

    Example:
        >>> values, indices = tw.nn.approx_max_k([1.0, 3.0, 2.0], 2)
        >>> values.numpy(), indices.numpy()
        (array([3., 2.], dtype=float32), array([1, 2], dtype=int32))
    """
    return _extreme(
        "approx_max_k", operand, k, reduction_dimension, aggregate_to_topk, 1
    )


def approx_min_k(
    operand: TensorLike,
    k: IntLike,
    reduction_dimension: Axis = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the ``k`` smallest entries along an axis, ascending, and their indices.

    Results are exact. Gradients pass through the values.

    Args:
        operand: Input tensor of numbers.
        k: Number of entries to return.
        reduction_dimension: Axis to search along.
        recall_target: Ignored; the recall is always 1.
        reduction_input_size_override: Ignored.
        aggregate_to_topk: Must be True.

    Shapes:
        The axis ``reduction_dimension`` has size ``k`` in both results.

    Raises:
        ValueError: If ``k`` is larger than the axis, or ``aggregate_to_topk`` is False.

    Example:
        >>> tw.nn.approx_min_k([1.0, 3.0, 2.0], 2)[0].numpy()
        array([1., 2.], dtype=float32)
    """
    return _extreme(
        "approx_min_k", operand, k, reduction_dimension, aggregate_to_topk, -1
    )


def _extreme(who, operand, k, axis, aggregate, sign):
    if not aggregate:
        raise InvalidArgumentError(
            f"{who}: aggregate_to_topk must be True, got {aggregate}"
        )
    x = convert_to_tensor(operand)
    rank = len(x.shape)
    (at,) = normalize_axis(who, as_int(axis), rank)
    order = [*range(at), *range(at + 1, rank), at]
    back = [order.index(i) for i in range(rank)]
    moved = transpose(x, order)
    values, indices = top_k(moved if sign > 0 else -moved, k)
    values = values if sign > 0 else -values
    return transpose(values, back), transpose(indices, back)
