"""`tw.experimental.numpy.random`: random numbers by the seed of `tw.random`, float64."""

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

    Raises:
        ValueError: If ``s`` is no integer.
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
    """Normal numbers of mean 0 and standard deviation 1, of shape ``size``; None: one.

    Example:
        >>> tw.experimental.numpy.random.standard_normal((2, 3)).shape
        TensorShape([2, 3])
    """
    return sampling.normal(_sizes(size), dtype=float64)


def randn(*args: int) -> Tensor:
    """`standard_normal` of the shape ``args``."""
    return standard_normal(args)


def uniform(
    low: TensorLike = 0.0,
    high: TensorLike = 1.0,
    size: int | Sequence[int] | None = None,
) -> Tensor:
    """Uniform numbers from ``low`` up to ``high``.

    Shapes:
        ``size``, or the shape to which ``low`` and ``high`` broadcast.

    Example:
        >>> tw.experimental.numpy.random.uniform(1.0, 2.0, 3).shape
        TensorShape([3])
    """
    low, high = asarray(low, float64), asarray(high, float64)
    if size is None:
        size = shapes.broadcast_dynamic_shape(shapes.shape(low), shapes.shape(high))
    return sampling.uniform(_sizes(size), low, high, dtype=float64)


def random(size: int | Sequence[int] | None = None) -> Tensor:
    """Uniform numbers from 0 up to 1, of shape ``size``; None: one."""
    return uniform(size=_sizes(size))


def rand(*size: int) -> Tensor:
    """Uniform numbers from 0 up to 1, of the shape ``size``."""
    return uniform(size=size)


def poisson(lam: TensorLike = 1.0, size: int | Sequence[int] | None = None) -> Tensor:
    """Numbers of events with the mean ``lam``, int64, of shape ``size``.

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
    """Integers from ``low`` to ``high - 1``; with one bound, from 0 to ``low - 1``.

    Args:
        dtype: Int32 or int64.

    Raises:
        ValueError: For another ``dtype``.

    Example:
        >>> tw.experimental.numpy.random.randint(5, size=3).shape
        TensorShape([3])
    """
    kind = result_type(dtype)
    if kind.name not in ("int32", "int64"):
        raise ValueError(f"randint: dtype must be int32 or int64, got {dtype!r}")
    low, high = (0, int(low)) if high is None else (int(low), int(high))
    return sampling.uniform(_sizes(size), low, high, dtype=kind)
