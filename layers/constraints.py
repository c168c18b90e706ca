"""Constraints: functions applied to a weight after each update."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tapewright.core.messages.argument_validation import not_negative
from tapewright.core.settings.floatx import epsilon
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.math.elementwise import clip_by_value, maximum, sqrt, square
from tapewright.ops.math.reduction import reduce_sum
from tapewright.serialization.configured import Configured
from tapewright.serialization.object_config import ObjectFamily

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Axes, TensorLike

__all__ = [
    "Constraint",
    "MaxNorm",
    "MinMaxNorm",
    "NonNeg",
    "UnitNorm",
    "deserialize",
    "get",
    "max_norm",
    "min_max_norm",
    "non_neg",
    "serialize",
    "unit_norm",
]


class Constraint(Configured):
    """Base class of constraints: subclasses define ``__call__(w)``.

    The optimizer calls the constraint after each update and assigns the result to the
    weight.

    Example:
        >>> class Bounded(keras.constraints.Constraint):
        ...     def __call__(self, w):
        ...         return tw.clip_by_value(w, -1.0, 1.0)
        >>> Bounded()(tw.constant([-3.0, 0.5])).numpy()
        array([-1. ,  0.5], dtype=float32)
    """

    _tw_kind: str = "constraint"

    def __call__(self, w: TensorLike) -> Tensor:
        return convert_to_tensor(w)


class MaxNorm(Constraint):
    """Constrain the norm of weight vectors to at most ``max_value``.

    Args:
        max_value: Upper bound of the norm, 0 or more.
        axis: Axis or axes along which the norm is computed: 0 for the kernel of a
            `Dense` layer, [0, 1, 2] for the kernel of a `Conv2D`.

    Raises:
        ValueError: If ``max_value`` is negative.

    Example:
        >>> keras.constraints.MaxNorm(1.0)([[3.0, 0.0], [4.0, 0.5]]).numpy().round(3)
        array([[0.6, 0. ],
               [0.8, 0.5]], dtype=float32)
    """

    def __init__(self, max_value: float = 2, axis: Axes = 0):
        self.max_value: float = not_negative(self, "max_value", max_value)
        self.axis = axis

    def __call__(self, w: TensorLike) -> Tensor:
        w = convert_to_tensor(w)
        norms = _norms(w, self.axis)
        return w * (clip_by_value(norms, 0, self.max_value) / (norms + epsilon()))


class NonNeg(Constraint):
    """Constrain weights to be non-negative: replace negative entries by 0.

    Example:
        >>> keras.constraints.NonNeg()([-1.0, 2.0]).numpy()
        array([0., 2.], dtype=float32)
    """

    def __call__(self, w: TensorLike) -> Tensor:
        return maximum(convert_to_tensor(w), 0)


class UnitNorm(Constraint):
    """Constrain weight vectors to have norm 1.

    Args:
        axis: Axis or axes along which the norm is computed: 0 for the kernel of a
            `Dense` layer, [0, 1, 2] for the kernel of a `Conv2D`.

    Example:
        >>> keras.constraints.UnitNorm()([[3.0], [4.0]]).numpy()
        array([[0.6],
               [0.8]], dtype=float32)
    """

    def __init__(self, axis: Axes = 0):
        self.axis: Any = axis

    def __call__(self, w: TensorLike) -> Tensor:
        w = convert_to_tensor(w)
        return w / (_norms(w, self.axis) + epsilon())


class MinMaxNorm(Constraint):
    """Constrain the norm of weight vectors to lie between ``min_value`` and ``max_value``.

    Args:
        min_value: Lower bound of the norm, 0 or more.
        max_value: Upper bound of the norm, at least ``min_value``.
        rate: Fraction of the correction to apply at each update; 1 enforces the bounds.
        axis: Axis or axes along which the norm is computed: 0 for the kernel of a
            `Dense` layer, [0, 1, 2] for the kernel of a `Conv2D`.

    Raises:
        ValueError: If an argument is negative, or ``min_value`` is above ``max_value``.

    Example:
        >>> keras.constraints.MinMaxNorm(0.5, 1.0)([[0.1], [0.0]]).numpy().round(3)
        array([[0.5],
               [0. ]], dtype=float32)
    """

    def __init__(
        self,
        min_value: float = 0.0,
        max_value: float = 1.0,
        rate: float = 1.0,
        axis: Axes = 0,
    ):
        self.min_value: float = not_negative(self, "min_value", min_value)
        self.max_value: float = not_negative(self, "max_value", max_value)
        if min_value > max_value:
            raise ValueError(
                f"MinMaxNorm: min_value must not be above max_value, got {min_value} "
                f"and {max_value}"
            )
        self.rate: float = not_negative(self, "rate", rate)
        self.axis = axis

    def __call__(self, w: TensorLike) -> Tensor:
        w = convert_to_tensor(w)
        norms = _norms(w, self.axis)
        wanted = self.rate * clip_by_value(norms, self.min_value, self.max_value)
        wanted = wanted + (1 - self.rate) * norms
        return w * (wanted / (norms + epsilon()))


max_norm, min_max_norm, non_neg, unit_norm = MaxNorm, MinMaxNorm, NonNeg, UnitNorm


_family = ObjectFamily("constraint")
get, serialize, deserialize = _family.get, _family.serialize, _family.deserialize


def _norms(w, axis):
    return sqrt(reduce_sum(square(w), axis=axis, keepdims=True))
