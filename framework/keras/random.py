"""`tw.keras.random`: Keras' random functions, each with a ``seed``.

With None they draw from the global stream, with an int from a new stream at each call,
and with a `SeedGenerator` from its stream.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from tapewright.core.dtypes import as_dtype, int64
from tapewright.core.rules import normalize_axis
from tapewright.core.settings.floatx import default_float
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import (
    DTypeLike,
    IntLike,
    ShapeLike,
    TensorLike,
    as_shape,
)
from tapewright.layers.base.seeds import SeedGenerator
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import zeros_like
from tapewright.ops.array.shape import broadcast_to, transpose
from tapewright.ops.nn.dropout import apply_dropout
from tapewright.ops.random.distributions import (
    checked_bounds,
    checked_floating,
    checked_logits,
    draw_binomial,
    draw_categorical,
    draw_gamma,
    draw_normal,
    draw_shuffled,
    draw_uniform,
)
from tapewright.ops.random.generators import (
    Generator,
    get_global_generator,
    start_of,
)

if TYPE_CHECKING:
    from tapewright.layers.base.layer_types import SeedLike

__all__ = [
    "SeedGenerator",
    "beta",
    "binomial",
    "categorical",
    "dropout",
    "gamma",
    "normal",
    "randint",
    "shuffle",
    "truncated_normal",
    "uniform",
]


def _stream(seed):
    if isinstance(seed, Generator):
        return seed._tw_stream()
    if seed is None:
        return get_global_generator()._tw_stream()
    if isinstance(seed, int):
        return start_of(seed)._tw_stream()
    raise ValueError(
        "keras.random: seed must be an integer, a SeedGenerator or None, got "
        f"{type(seed).__name__}"
    )


def normal(
    shape: ShapeLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike | None = None,
    seed: SeedLike = None,
) -> Tensor:
    """Draw normally distributed random numbers.

    Args:
        shape: Shape of the result.
        mean: Mean of the distribution.
        stddev: Standard deviation of the distribution.
        dtype: Floating dtype of the result, `floatx` by default.
        seed: Integer for the same numbers at each call, `keras.random.SeedGenerator` to
            continue its stream, or None to draw from the global stream.

    Shapes:
        ``mean`` and ``stddev`` broadcast to ``shape``.

    Raises:
        TypeError: If ``dtype`` is not floating.
        ValueError: If ``seed`` has another type.

    Example:
        >>> keras.random.normal((2, 3), seed=1).shape
        TensorShape([2, 3])
    """
    dtype = checked_floating("normal", dtype or default_float())
    return draw_normal(_stream(seed), as_shape(shape), mean, stddev, dtype)


def truncated_normal(
    shape: ShapeLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike | None = None,
    seed: SeedLike = None,
) -> Tensor:
    """Draw normally distributed random numbers within two standard deviations of the mean.

    Args:
        shape: Shape of the result.
        mean: Mean of the distribution.
        stddev: Standard deviation of the distribution before the truncation.
        dtype: Floating dtype of the result, `floatx` by default.
        seed: Integer for the same numbers at each call, `keras.random.SeedGenerator` to
            continue its stream, or None to draw from the global stream.

    Shapes:
        ``mean`` and ``stddev`` broadcast to ``shape``.

    Raises:
        TypeError: If ``dtype`` is not floating.
        ValueError: If ``seed`` has another type.

    Example:
        >>> keras.random.truncated_normal((2, 3), seed=1).shape
        TensorShape([2, 3])
    """
    dtype = checked_floating("truncated_normal", dtype or default_float())
    return draw_normal(
        _stream(seed), as_shape(shape), mean, stddev, dtype, truncated=True
    )


def uniform(
    shape: ShapeLike,
    minval: TensorLike = 0.0,
    maxval: TensorLike = 1.0,
    dtype: DTypeLike | None = None,
    seed: SeedLike = None,
) -> Tensor:
    """Draw uniformly distributed random numbers in ``[minval, maxval)``.

    Args:
        shape: Shape of the result.
        minval: Lower bound, included.
        maxval: Upper bound, excluded.
        dtype: Floating dtype of the result, `floatx` by default.
        seed: Integer for the same numbers at each call, `keras.random.SeedGenerator` to
            continue its stream, or None to draw from the global stream.

    Raises:
        TypeError: If ``dtype`` is not floating; see `randint` for integers.

    Example:
        >>> keras.random.uniform((2, 3), seed=1).shape
        TensorShape([2, 3])
    """
    dtype = checked_floating("uniform", dtype or default_float())
    bounds = checked_bounds("uniform", minval, maxval, dtype)
    return draw_uniform(_stream(seed), as_shape(shape), *bounds)


def randint(
    shape: ShapeLike,
    minval: TensorLike,
    maxval: TensorLike,
    dtype: DTypeLike = "int32",
    seed: SeedLike = None,
) -> Tensor:
    """Draw uniformly distributed random integers in ``[minval, maxval)``.

    Args:
        shape: Shape of the result.
        minval: Lower bound, included.
        maxval: Upper bound, excluded.
        dtype: Integer dtype of the result.
        seed: Integer for the same numbers at each call, `keras.random.SeedGenerator` to
            continue its stream, or None to draw from the global stream.

    Raises:
        ValueError: If ``minval`` is not less than ``maxval``, or ``dtype`` is not an
            integer dtype.

    Example:
        >>> keras.random.randint((2, 3), 0, 10, seed=1).shape
        TensorShape([2, 3])
    """
    dtype = as_dtype(dtype)
    if not dtype.is_integer:
        raise ValueError(f"randint: dtype must be an integer type, got {dtype.name}")
    bounds = checked_bounds("randint", minval, maxval, int64)
    return cast(draw_uniform(_stream(seed), as_shape(shape), *bounds), dtype)


def categorical(
    logits: TensorLike,
    num_samples: IntLike,
    dtype: DTypeLike = "int32",
    seed: SeedLike = None,
) -> Tensor:
    """Draw class indices for each row, with the probabilities ``softmax(logits)``.

    Args:
        logits: Unnormalized log probabilities, ``[batch, classes]``.
        num_samples: Number of indices per row.
        dtype: Integer dtype of the result.
        seed: Integer for the same numbers at each call, `keras.random.SeedGenerator` to
            continue its stream, or None to draw from the global stream.

    Shapes:
        Result ``[batch, num_samples]``.

    Example:
        >>> keras.random.categorical([[-99.0, 0.0]], 3, seed=1).numpy()
        array([[1, 1, 1]], dtype=int32)
    """
    logits = checked_logits(logits)
    return cast(draw_categorical(_stream(seed), logits, num_samples, int64), dtype)


def dropout(
    inputs: TensorLike,
    rate: float,
    noise_shape: ShapeLike | None = None,
    seed: SeedLike = None,
) -> Tensor:
    """Set each entry to zero with probability ``rate``: ``inputs * mask / (1 - rate)``.

    Args:
        inputs: Floating tensor.
        rate: Probability that an entry is dropped.
        noise_shape: Shape of the mask, None for the shape of ``inputs``; axes of size 1
            share one draw.
        seed: Integer for the same numbers at each call, `keras.random.SeedGenerator` to
            continue its stream, or None to draw from the global stream.

    Raises:
        ShapeError: If ``noise_shape`` does not broadcast to the shape of ``inputs``.

    Example:
        >>> keras.random.dropout([1.0, 2.0], rate=0.0).numpy()
        array([1., 2.], dtype=float32)
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"dropout: rate must be from 0 to 1, got {rate!r}")
    if rate == 1:
        return zeros_like(inputs)
    stream = functools.partial(_stream, seed)
    return apply_dropout("dropout", inputs, rate, noise_shape, stream)


def shuffle(x: TensorLike, axis: int = 0, seed: SeedLike = None) -> Tensor:
    """Shuffle the entries of ``x`` along ``axis``.

    Gradients are returned in the original order.

    Args:
        x: Tensor to shuffle.
        axis: Axis along which entries move.
        seed: Integer for the same numbers at each call, `keras.random.SeedGenerator` to
            continue its stream, or None to draw from the global stream.

    Example:
        >>> sorted(keras.random.shuffle([3, 1, 2], seed=1).numpy().tolist())
        [1, 2, 3]
    """
    x = convert_to_tensor(x)
    (axis,) = normalize_axis("shuffle", axis, x.shape.rank)
    order = list(range(x.ndim))
    order[0], order[axis] = order[axis], order[0]
    return transpose(draw_shuffled(_stream(seed), transpose(x, order)), order)


def gamma(
    shape: ShapeLike,
    alpha: TensorLike,
    dtype: DTypeLike | None = None,
    seed: SeedLike = None,
) -> Tensor:
    """Draw gamma distributed random numbers.

    The density is proportional to ``x ** (alpha - 1) * exp(-x)``.

    Args:
        shape: Shape of the result.
        alpha: Shape parameter, not negative.
        dtype: Floating dtype of the result, `floatx` by default.
        seed: Integer for the same numbers at each call, `keras.random.SeedGenerator` to
            continue its stream, or None to draw from the global stream.

    Shapes:
        ``alpha`` broadcasts to ``shape``.

    Raises:
        ValueError: If ``alpha`` is negative.

    Example:
        >>> keras.random.gamma((2, 3), alpha=2.0, seed=1).shape
        TensorShape([2, 3])
    """
    dtype, shape = checked_floating("gamma", dtype or default_float()), as_shape(shape)
    return _gamma(_stream(seed), shape, alpha, dtype)


def _gamma(stream, shape, alpha, dtype):
    return draw_gamma(stream, shape, broadcast_to(cast(alpha, dtype), shape), None)


def beta(
    shape: ShapeLike,
    alpha: TensorLike,
    beta: TensorLike,
    dtype: DTypeLike | None = None,
    seed: SeedLike = None,
) -> Tensor:
    """Draw beta distributed random numbers, from 0 to 1.

    The density is proportional to ``x ** (alpha - 1) * (1 - x) ** (beta - 1)``.

    Args:
        shape: Shape of the result.
        alpha: First shape parameter, not negative.
        beta: Second shape parameter, not negative.
        dtype: Floating dtype of the result, `floatx` by default.
        seed: Integer for the same numbers at each call, `keras.random.SeedGenerator` to
            continue its stream, or None to draw from the global stream.

    Shapes:
        ``alpha`` and ``beta`` broadcast to ``shape``.

    Raises:
        ValueError: If ``alpha`` or ``beta`` is negative.

    Example:
        >>> keras.random.beta((2, 3), alpha=2.0, beta=3.0, seed=1).shape
        TensorShape([2, 3])
    """
    dtype, shape = checked_floating("beta", dtype or default_float()), as_shape(shape)
    other = seed + 1 if isinstance(seed, int) else seed  # draws that do not depend
    first = _gamma(_stream(seed), shape, alpha, dtype)
    return first / (first + _gamma(_stream(other), shape, beta, dtype))


def binomial(
    shape: ShapeLike,
    counts: TensorLike,
    probabilities: TensorLike,
    dtype: DTypeLike | None = None,
    seed: SeedLike = None,
) -> Tensor:
    """Draw binomially distributed random numbers: successes in ``counts`` trials.

    Args:
        shape: Shape of the result.
        counts: Number of trials, not negative.
        probabilities: Probability of success of a trial, from 0 to 1.
        dtype: Floating dtype of the result, `floatx` by default.
        seed: Integer for the same numbers at each call, `keras.random.SeedGenerator` to
            continue its stream, or None to draw from the global stream.

    Shapes:
        ``counts`` and ``probabilities`` broadcast to ``shape``.

    Raises:
        ValueError: If counts are negative, or probabilities are not from 0 to 1.

    Example:
        >>> keras.random.binomial((3,), counts=5.0, probabilities=1.0).numpy()
        array([5., 5., 5.], dtype=float32)
    """
    drawn = draw_binomial(_stream(seed), as_shape(shape), counts, probabilities, int64)
    return cast(drawn, dtype or default_float())
