"""Regularizers: penalties on weights, collected in ``layer.losses``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.creation import eye
from tapewright.ops.linalg.matmul import matmul
from tapewright.ops.math.elementwise import abs, square
from tapewright.ops.math.reduction import reduce_sum
from tapewright.ops.nn.normalization import l2_normalize
from tapewright.serialization.configured import Configured
from tapewright.serialization.object_config import ObjectFamily

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import TensorLike

__all__ = [
    "L1",
    "L1L2",
    "L2",
    "OrthogonalRegularizer",
    "Regularizer",
    "deserialize",
    "get",
    "l1",
    "l1_l2",
    "l2",
    "orthogonal_regularizer",
    "serialize",
]


class Regularizer(Configured):
    """Base class of regularizers.

    A subclass defines ``__call__(x)``, which returns a scalar penalty.

    Example:
        >>> class Cubic(keras.regularizers.Regularizer):
        ...     def __call__(self, x):
        ...         return 0.01 * tw.reduce_sum(tw.abs(x) ** 3)
        >>> layer = keras.layers.Dense(2, kernel_regularizer=Cubic())
    """

    _tw_kind: str = "regularizer"

    def __call__(self, x: TensorLike) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define __call__")


class L1(Regularizer):
    """L1 regularizer: ``l1 * sum(|x|)``.

    Args:
        l1: Factor, not negative.

    Raises:
        ValueError: If the factor is negative.

    Example:
        >>> keras.regularizers.L1(0.5)([1.0, -3.0]).numpy()
        np.float32(2.0)
    """

    def __init__(self, l1: float = 0.01):
        self.l1: float = _checked("L1", "l1", 0.01 if l1 is None else l1)

    def __call__(self, x: TensorLike) -> Tensor:
        return reduce_sum(abs(x)) * self.l1


class L2(Regularizer):
    """L2 regularizer: ``l2 * sum(x ** 2)``.

    Args:
        l2: Factor, not negative.

    Raises:
        ValueError: If the factor is negative.

    Example:
        >>> keras.regularizers.L2(0.5)([1.0, -3.0]).numpy()
        np.float32(5.0)
    """

    def __init__(self, l2: float = 0.01):
        self.l2: float = _checked("L2", "l2", 0.01 if l2 is None else l2)

    def __call__(self, x: TensorLike) -> Tensor:
        return reduce_sum(square(x)) * self.l2


class L1L2(Regularizer):
    """L1 and L2 regularizer: ``l1 * sum(|x|) + l2 * sum(x ** 2)``.

    Args:
        l1: Factor of the absolute values, not negative.
        l2: Factor of the squares, not negative.

    Raises:
        ValueError: If a factor is negative.

    Example:
        >>> keras.regularizers.L1L2(l1=0.5, l2=0.5)([1.0, -3.0]).numpy()
        np.float32(7.0)
    """

    def __init__(self, l1: float = 0.0, l2: float = 0.0):
        self.l1: float = _checked("L1L2", "l1", l1 or 0.0)
        self.l2: float = _checked("L1L2", "l2", l2 or 0.0)

    def __call__(self, x: TensorLike) -> Tensor:
        x = convert_to_tensor(x)
        penalty = convert_to_tensor(0.0, x.dtype)
        if self.l1:
            penalty = penalty + reduce_sum(abs(x)) * self.l1
        if self.l2:
            penalty = penalty + reduce_sum(square(x)) * self.l2
        return penalty


class OrthogonalRegularizer(Regularizer):
    """Orthogonality regularizer: mean absolute cosine between rows of a matrix.

    Args:
        factor: Factor of the mean, not negative.
        mode: "rows", or "columns" for the cosines between columns.

    Raises:
        ValueError: If ``mode`` is unknown, or if it is called with a tensor that is not
            a matrix.

    Example:
        >>> regularizer = keras.regularizers.OrthogonalRegularizer(1.0)
        >>> regularizer([[1.0, 0.0], [0.0, 2.0], [0.0, 3.0]]).numpy().round(6)
        np.float32(0.333333)
    """

    def __init__(self, factor: float = 0.01, mode: str = "rows"):
        self.factor: float = _checked("OrthogonalRegularizer", "factor", factor)
        if mode not in ("rows", "columns"):
            raise ValueError(
                f'OrthogonalRegularizer: mode must be "rows" or "columns", got {mode!r}'
            )
        self.mode = mode

    def __call__(self, x: TensorLike) -> Tensor:
        x = convert_to_tensor(x)
        if x.ndim != 2:
            raise ValueError(
                f"OrthogonalRegularizer: the weight must be a matrix, got {x.shape}"
            )
        rows = self.mode == "rows"
        unit = l2_normalize(x, axis=1 if rows else 0, epsilon=1e-14)
        cosines = matmul(unit, unit, transpose_a=not rows, transpose_b=rows)
        size = x.shape[0 if rows else 1]
        pairs = size * (size - 1) / 2
        others = cosines * (1 - eye(size, dtype=x.dtype))
        return reduce_sum(abs(others)) * (self.factor * 0.5 / pairs)


l1, l2, l1_l2, orthogonal_regularizer = L1, L2, L1L2, OrthogonalRegularizer


_family = ObjectFamily("regularizer")
get, serialize, deserialize = _family.get, _family.serialize, _family.deserialize


def _checked(who, name, factor):
    """Return the factor as a float; raise ``ValueError`` if it is negative."""
    try:
        factor = float(factor)
    except (TypeError, ValueError):
        raise ValueError(f"{who}: {name} must be a number, got {factor!r}") from None
    if not 0 <= factor < float("inf"):
        raise ValueError(f"{who}: {name} must be 0 or more and finite, got {factor}")
    return factor
