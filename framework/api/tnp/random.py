"""`tw.experimental.numpy.random`: float64 random numbers by the seed of `tw.random`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tapewright.core.dtypes import float64, int64
from tapewright.core.tensor import Tensor
from tapewright.core.typing import DTypeLike, TensorLike
from tapewright.ops.array import shape as shapes
from tapewright.ops.random import sampling
from tapewright.ops.random.generators import set_seed

from .promotion import asarray, result_type

__all__ = [
    "poisson",
    "rand",
    "randint",
    "randn",
    "random",
    "seed",
    "standard_normal",
    "uniform",
]


def seed(s: int) -> None:
    """Set the seed of all random ops, as `tw.random.set_seed`.

    Args:
        s: Integer seed.

    Raises:
        ValueError: If ``s`` is not an integer.
    """
    try:
        s = int(s)
    except TypeError:
        raise ValueError(f"seed: s must be an integer, got {s!r}") from None
    set_seed(s)


def _sizes(size):
    if size is None:
        return ()
    return (size,) if np.isscalar(size) else size


def standard_normal(size: int | Sequence[int] | None = None) -> Tensor:
    """Draw from the standard normal distribution, with mean 0 and standard deviation 1.

    Args:
        size: Shape of the result; None for a scalar.

    Example:
        >>> tw.experimental.numpy.random.standard_normal((2, 3)).shape
        TensorShape([2, 3])
    """
    return sampling.normal(_sizes(size), dtype=float64)


def randn(*args: int) -> Tensor:
    """Draw from the standard normal distribution, with a shape given as arguments.

    Args:
        *args: Sizes of the axes of the result.
    """
    return standard_normal(args)


def uniform(
    low: TensorLike = 0.0,
    high: TensorLike = 1.0,
    size: int | Sequence[int] | None = None,
) -> Tensor:
    """Draw from the uniform distribution over ``[low, high)``.

    Args:
        low: Lower bound, inclusive.
        high: Upper bound, exclusive.
        size: Shape of the result; None for the shape to which the bounds broadcast.

    Example:
        >>> tw.experimental.numpy.random.uniform(1.0, 2.0, 3).shape
        TensorShape([3])
    """
    low, high = asarray(low, float64), asarray(high, float64)
    if size is None:
        size = shapes.broadcast_dynamic_shape(shapes.shape(low), shapes.shape(high))
    return sampling.uniform(_sizes(size), low, high, dtype=float64)


def random(size: int | Sequence[int] | None = None) -> Tensor:
    """Draw from the uniform distribution over ``[0, 1)``.

    Args:
        size: Shape of the result; None for a scalar.
    """
    return uniform(size=_sizes(size))


def rand(*size: int) -> Tensor:
    """Draw from the uniform distribution over ``[0, 1)``, with a shape given as arguments.

    Args:
        *size: Sizes of the axes of the result.
    """
    return uniform(size=size)


def poisson(lam: TensorLike = 1.0, size: int | Sequence[int] | None = None) -> Tensor:
    """Draw int64 numbers from the Poisson distribution.

    Args:
        lam: Mean of the distribution.
        size: Shape of the draws for each entry of ``lam``; None for one draw.

    Shapes:
        The result has the shape ``[*size, *lam.shape]``.

    Example:
        >>> tw.experimental.numpy.random.poisson(4.0, size=2).dtype
        tf.int64
    """
    return sampling.poisson(_sizes(size), lam, dtype=int64)


def randint(
    low: int,
    high: int | None = None,
    size: int | Sequence[int] | None = None,
    dtype: DTypeLike = np.int64,
) -> Tensor:
    """Draw random integers from ``low`` (inclusive) to ``high`` (exclusive).

    Args:
        low: Smallest integer; without ``high``, the bound of integers from 0.
        high: Bound of the integers, exclusive.
        size: Shape of the result; None for a scalar.
        dtype: Dtype of the result, int32 or int64.

    Raises:
        ValueError: If ``dtype`` is another one.

    Example:
        >>> tw.experimental.numpy.random.randint(5, size=3).shape
        TensorShape([3])
    """
    kind = result_type(dtype)
    if kind.name not in ("int32", "int64"):
        raise ValueError(f"randint: dtype must be int32 or int64, got {dtype!r}")
    low, high = (0, int(low)) if high is None else (int(low), int(high))
    return sampling.uniform(_sizes(size), low, high, dtype=kind)
