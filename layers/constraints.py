"""Constraints: what a weight is put through after each update, to stay in bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tapewright.core.argument_validation import not_negative
from tapewright.core.floatx import epsilon
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
    """The base of constraints: a subclass defines ``__call__(w)``.

    It returns the weight that fulfils the constraint, after each step of an optimizer.
    """

    _tw_kind: str = "constraint"

    def __call__(self, w: TensorLike) -> Tensor:
        return convert_to_tensor(w)


class MaxNorm(Constraint):
    """Scale down vectors with a norm above ``max_value``.

    Args: ``axis``: the axes of a vector, one or several: 0 for the kernel of a dense
    layer, whose columns are then limited; [0, 1, 2] for that of a 2D convolution.

    Raises: ``ValueError`` for a negative ``max_value``.

    Example:
        >>> keras.constraints.MaxNorm(1.0)([[3.0, 0.0], [4.0, 0.5]]).numpy().round(3).tolist()
        [[0.6000000238418579, 0.0], [0.800000011920929, 0.5]]
    """

    def __init__(self, max_value: float = 2, axis: Axes = 0):
        self.max_value: float = not_negative(self, "max_value", max_value)
        self.axis = axis

    def __call__(self, w: TensorLike) -> Tensor:
        w = convert_to_tensor(w)
        norms = _norms(w, self.axis)
        return w * (clip_by_value(norms, 0, self.max_value) / (norms + epsilon()))


class NonNeg(Constraint):
    """Replace negative entries by 0.

    Example:
        >>> keras.constraints.NonNeg()([-1.0, 2.0]).numpy()
        array([0., 2.], dtype=float32)
    """

    def __call__(self, w: TensorLike) -> Tensor:
        return maximum(convert_to_tensor(w), 0)


class UnitNorm(Constraint):
    """Scale vectors to norm 1; ``axis`` is that of `MaxNorm`.

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
    """Scale vectors to a norm from ``min_value`` to ``max_value``.

    Args: ``rate``: below 1, the norm moves only by that share of the way; ``axis``: as
    in `MaxNorm`.

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
