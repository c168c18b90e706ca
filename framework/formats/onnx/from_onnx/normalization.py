"""Normalization over the batch, channels, groups or trailing axes; dropout."""

from __future__ import annotations

from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import ones
from tapewright.ops.array.joining import pad
from tapewright.ops.array.shape import reshape, shape
from tapewright.ops.math.elementwise import (
    abs,
    divide_no_nan,
    pow,
    reciprocal,
    rsqrt,
    sqrt,
    square,
)
from tapewright.ops.math.reduction import reduce_mean, reduce_sum, reduce_variance
from tapewright.ops.nn.normalization import layer_normalization, rms_normalization

from .static import axes_of, dims, number


def _per_channel(values, x):
    """Return one number per channel in a shape that broadcasts to ``x``."""
    return reshape(values, (1, -1) + (1,) * (len(dims(x)) - 2))


def _batch_normalization(
    x, scale, b, mean, var, epsilon=1e-5, momentum=0.9, training_mode=0, spatial=1
):
    """Normalize with the given moments, or in training with the batch moments.

    In training, also return the moving averages of the moments.
    """
    rank = len(dims(x))
    outputs = ()
    if training_mode:
        axes = [0, *range(2, rank)]
        now, spread = reduce_mean(x, axes), reduce_variance(x, axes)
        outputs = tuple([old * momentum + cast(new, old.dtype) * (1.0 - momentum)
                         for old, new in ((mean, now), (var, spread))])  # fmt: skip
        mean, var = now, spread
    kind = mean.dtype
    factor = cast(scale, kind) * rsqrt(cast(var, kind) + epsilon)
    offset = cast(b, kind) - mean * factor
    y = cast(x, kind) * _per_channel(factor, x) + _per_channel(offset, x)
    y = cast(y, x.dtype)
    return (y, *outputs) if training_mode else y


def _layer_normalization(
    x, scale, b=None, axis=-1, epsilon=1e-5, stash_type=1, *, output_count
):
    rank = len(dims(x))
    (first,) = axes_of(axis, rank)
    axes = list(range(first, rank))
    single = stash_type == 1 and x.dtype.size < 4
    wide = cast(x, "float32") if single else x
    if not single and dims(scale) == dims(x)[first:]:
        y = layer_normalization(x, scale, b, axes, epsilon)
    else:
        y = cast(layer_normalization(wide, axis=axes, epsilon=epsilon), x.dtype) * scale
        y = y if b is None else y + b
    if output_count == 1:
        return y
    mean = reduce_mean(wide, axes, True)
    return y, mean, rsqrt(reduce_variance(wide, axes, True) + epsilon)


def _rms_normalization(x, scale, axis=-1, epsilon=1e-5, stash_type=1):
    rank = len(dims(x))
    (first,) = axes_of(axis, rank)
    wide = cast(x, "float32") if stash_type == 1 and x.dtype.size < 4 else x
    y = rms_normalization(wide, None, list(range(first, rank)), epsilon)
    return cast(y, x.dtype) * scale


def _standardized(x, axes, epsilon):
    return layer_normalization(x, axis=axes, epsilon=epsilon)


def _instance_normalization(x, scale, b, epsilon=1e-5):
    y = _standardized(x, list(range(2, len(dims(x)))), epsilon)
    return y * _per_channel(scale, x) + _per_channel(b, x)


def _group_normalization(x, scale, b, epsilon=1e-5, num_groups=None, stash_type=1):
    n, channels, *rest = dims(x)
    wide = cast(x, "float32") if stash_type == 1 and x.dtype.size < 4 else x
    groups = reshape(wide, (n, num_groups, channels // num_groups, *rest))
    y = _standardized(groups, list(range(2, len(rest) + 3)), epsilon)
    y = cast(reshape(y, dims(x)), x.dtype)
    return y * _per_channel(scale, x) + _per_channel(b, x)


def _lp_normalization(x, axis=-1, p=2):
    norm = sqrt(reduce_sum(square(x), axis, True)) if p == 2 else None
    norm = reduce_sum(abs(x), axis, True) if norm is None else norm
    return divide_no_nan(x, norm)


def _mean_variance_normalization(x, axes=(0, 2, 3)):
    axes = list(axes)
    centered = x - reduce_mean(x, axes, True)
    spread = sqrt(
        reduce_mean(square(x), axes, True) - square(reduce_mean(x, axes, True))
    )
    return centered / (spread + 1e-9)


def _lrn(x, size, alpha=1e-4, beta=0.75, bias=1.0):
    channels = dims(x)[1]
    squares = pad(square(x), [(0, 0), ((size - 1) // 2, size // 2)]
                  + [(0, 0)] * (len(dims(x)) - 2))  # fmt: skip
    total = sum([squares[:, i : i + channels] for i in range(1, size)],
                squares[:, :channels])  # fmt: skip
    return x * reciprocal(pow(total * (alpha / size) + bias, beta))


def _dropout(x, ratio=0.5, training_mode=None, seed=0, *, output_count):
    """Return the input: dropout is for training, whose random numbers are not defined."""
    if number(training_mode, False) and ratio is not None and number(ratio, 0.5):
        raise ValueError("Dropout with training_mode=True is not supported")
    return (x, ones(shape(x), "bool")) if output_count > 1 else x


OPS = {
    "BatchNormalization": _batch_normalization,
    "Dropout": _dropout,
    "GroupNormalization": _group_normalization,
    "InstanceNormalization": _instance_normalization,
    "LRN": _lrn,
    "LayerNormalization": _layer_normalization,
    "LpNormalization": _lp_normalization,
    "MeanVarianceNormalization": _mean_variance_normalization,
    "RMSNormalization": _rms_normalization,
}
