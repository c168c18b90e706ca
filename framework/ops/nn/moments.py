"""Statistics: mean and variance, plain, weighted and from sums; the fraction of zeros."""

from __future__ import annotations

import math

from tapewright.core import dtypes
from tapewright.core.dispatch import composite
from tapewright.core.op_definition.costs import per_input
from tapewright.core.primitive import primitive
from tapewright.core.rules import batch_leading, normalize_axis
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import Axes, TensorLike, as_axes

from ..array.conversion import cast
from ..array.creation import zeros_like
from ..array.shape import squeeze, summed
from ..math.comparison import equal
from ..math.elementwise import divide_no_nan, square, squared_difference
from ..math.reduction import reduce_mean, reduce_sum
from .bias import multiply_add

__all__ = [
    "moments",
    "normalize_moments",
    "sufficient_statistics",
    "weighted_moments",
    "zero_fraction",
]


def count_over(shape, axes):
    """Return the number of entries along ``axes``, a divisor: 1 if there are none."""
    return max(math.prod([shape[a] for a in axes]), 1)


def from_the_back(axes, rank):
    """Count axes from the end, so that another axis in front changes nothing."""
    return tuple([a - rank for a in axes])


@primitive(multiple=True, floating=True, cost=per_input(4), batch=batch_leading)
def _moments(xp, x: TensorLike, axes: Axes):
    """Compute mean and variance, with axes kept; a primitive, as its rule has three passes."""
    count = math.prod([x.shape[a] for a in axes])
    share = x.dtype.type(1 / count if count else math.nan)
    mean = summed(xp, x, axes) * share
    variance = summed(xp, xp.square(x - mean), axes) * share
    return mean, variance


def small_spec(spec, axes):
    """Return the spec of a statistic over ``axes``, which stay with size 1."""
    axes = normalize_axis("moments", axes, spec.shape.rank, "axes")
    return TensorSpec(
        [1 if i in axes else n for i, n in enumerate(spec.shape)], spec.dtype
    )


@_moments.infer
def _(x, axes):
    return small_spec(x, axes), small_spec(x, axes)


@_moments.vjp("x")
def _(g, x, out, x_shape, axes):
    # The variance sees the mean move, but moves with it in second order only.
    share = 1.0 / count_over(x_shape, axes)
    return multiply_add(x - out[0], g[1] * (2.0 * share), g[0] * share)


@composite
def moments(
    x: TensorLike,
    axes: Axes,
    shift: TensorLike | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute mean and variance over axes: ``(mean(x), mean((x - mean) ** 2))``.

    Derivatives of both are exact at every order. Half precision is computed in single
    precision.

    Args:
        x: Input tensor.
        axes: Axis or list of axes to reduce.
        shift: Ignored, an argument of TensorFlow.
        keepdims: If True, keep reduced axes with size 1.

    Shapes:
        The results lack ``axes``, or have size 1 there with ``keepdims``.

    Returns:
        ``(mean, variance)``.

    Example:
        >>> mean, variance = tw.nn.moments([1.0, 2.0, 6.0], axes=[0])
        >>> print(float(mean), round(float(variance), 4))
        3.0 4.6667
    """
    given = convert_to_tensor(x)
    x, rank = at_least_single(given), len(given.array.shape)
    axes = sorted(normalize_axis("moments", as_axes(axes), rank, "axes"))
    if x.dtype.is_floating and rank:
        mean, variance = _moments(x, axes=from_the_back(axes, rank))
    else:
        mean = reduce_mean(x, axes, True)
        variance = reduce_mean(squared_difference(x, mean), axes, True)
    return _finished((mean, variance), axes, keepdims, given.dtype)


def at_least_single(x):
    """Convert half precision to single; return other tensors unchanged."""
    return cast(x, dtypes.float32) if dtypes.is_half(x.dtype) else x


def _finished(statistics, axes, keepdims, dtype):
    """Remove the axes of size 1 unless ``keepdims``, and cast to ``dtype``."""
    if not keepdims and axes:
        statistics = [squeeze(s, axes) for s in statistics]
    return tuple([cast(s, dtype) for s in statistics])


def weighted_moments(
    x: TensorLike,
    axes: Axes,
    frequency_weights: TensorLike,
    keepdims: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute weighted mean and variance over axes; both are 0 where the weights sum to 0.

    Args:
        x: Input tensor.
        axes: Axis or list of axes to reduce.
        frequency_weights: Weights of the entries; broadcasts with ``x``.
        keepdims: If True, keep reduced axes with size 1.

    Shapes:
        The results lack ``axes``, or have size 1 there with ``keepdims``.

    Returns:
        ``(mean, variance)``.

    Example:
        >>> mean, variance = tw.nn.weighted_moments([1.0, 3.0], [0], [1.0, 3.0])
        >>> mean.numpy(), variance.numpy()
        (np.float32(2.5), np.float32(0.75))
    """
    given = convert_to_tensor(x)
    x = at_least_single(given)
    weights = convert_to_tensor(frequency_weights, dtype_hint=x.dtype)
    weights = cast(weights, x.dtype)
    weighted = weights * x
    axes = normalize_axis(
        "weighted_moments", as_axes(axes), len(weighted.shape), "axes"
    )
    axes = sorted(axes)
    total = reduce_sum(weights + zeros_like(x), axes, True)
    mean = divide_no_nan(reduce_sum(weighted, axes, True), total)
    squares = reduce_sum(weights * squared_difference(x, mean), axes, True)
    variance = divide_no_nan(squares, total)
    return _finished((mean, variance), axes, keepdims, given.dtype)


def sufficient_statistics(
    x: TensorLike,
    axes: Axes,
    shift: TensorLike | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Compute the sums over axes from which `normalize_moments` computes mean and variance.

    Args:
        x: Input tensor.
        axes: Axis or list of axes to reduce.
        shift: Number or tensor to subtract from ``x`` first, or None; sums are more
            accurate if it is near the mean.
        keepdims: If True, keep reduced axes with size 1.

    Shapes:
        The sums lack ``axes``, or have size 1 there with ``keepdims``.

    Returns:
        ``(count, sum, sum of squares, shift)``.

    Example:
        >>> count, total, squares, shift = tw.nn.sufficient_statistics([1.0, 3.0], [0])
        >>> count.numpy(), total.numpy(), squares.numpy()
        (np.float32(2.0), np.float32(4.0), np.float32(10.0))
    """
    x = convert_to_tensor(x)
    axes = normalize_axis("sufficient_statistics", as_axes(axes), len(x.shape), "axes")
    count = math.prod([x.shape[a] for a in axes])
    count = cast(convert_to_tensor(count), x.dtype)
    if shift is not None:
        shift = convert_to_tensor(shift, dtype_hint=x.dtype)
        x = x - shift
    total = reduce_sum(x, axes, keepdims)
    return count, total, reduce_sum(square(x), axes, keepdims), shift


def normalize_moments(
    counts: TensorLike,
    mean_ss: TensorLike,
    variance_ss: TensorLike,
    shift: TensorLike | None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute mean and variance from the results of `sufficient_statistics`.

    Args:
        counts: Number of entries.
        mean_ss: Sum of the entries.
        variance_ss: Sum of the squares of the entries.
        shift: Shift that was subtracted from the entries, or None.

    Returns:
        ``(mean, variance)``.

    Example:
        >>> mean, variance = tw.nn.normalize_moments(2.0, 4.0, 10.0, None)
        >>> mean.numpy(), variance.numpy()
        (np.float32(2.0), np.float32(1.0))
    """
    mean_ss = convert_to_tensor(mean_ss)
    share = 1.0 / convert_to_tensor(counts, dtype_hint=mean_ss.dtype)
    shifted = mean_ss * share
    variance = convert_to_tensor(variance_ss) * share - square(shifted)
    return (shifted if shift is None else shifted + shift), variance


def zero_fraction(value: TensorLike, name: str | None = None) -> Tensor:
    """Compute the fraction of entries that are 0, a float32 scalar; NaN if empty.

    Args:
        value: Input tensor.

    Example:
        >>> tw.nn.zero_fraction([0.0, 3.0, 0.0, 1.0]).numpy()
        np.float32(0.5)
    """
    value = convert_to_tensor(value)
    return reduce_mean(cast(equal(value, zeros_like(value)), dtypes.float32))
