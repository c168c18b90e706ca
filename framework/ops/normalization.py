"""Normalization, differentiated exactly through the mean and the variance."""

from ..errors import ShapeError
from ..primitive import Axes, primitive
from ..rules import normalize_axis
from ..tensor import TensorSpec, convert_to_tensor
from .elementwise import maximum, rsqrt, square
from .joining import all_mapped
from .reduction import expand_reduced, reduce_mean, reduce_sum

__all__ = ["batch_normalization", "fused_batch_norm", "l2_normalize", "moments"]


def moments(x, axes, shift=None, keepdims=False, name=None):
    """Mean and variance over ``axes``, ``(mean, variance)``.

    Both are exact functions of ``x`` at every order: the variance sees the mean move.
    """
    x = convert_to_tensor(x)
    mean = reduce_mean(x, axes, True)
    variance = reduce_mean(square(x - mean), axes, keepdims)
    return (mean if keepdims else reduce_mean(x, axes)), variance


def batch_normalization(x, mean, variance, offset, scale, variance_epsilon, name=None):
    """``(x - mean) / sqrt(variance + epsilon) * scale + offset``; the last two may be None."""
    inverse = rsqrt(variance + variance_epsilon)
    if scale is not None:
        inverse = inverse * scale
    shift = -(mean * inverse) if offset is None else offset - mean * inverse
    return x * inverse + shift


def l2_normalize(x, axis=None, epsilon=1e-12, name=None):
    """``x / sqrt(max(sum(x ** 2), epsilon))`` over ``axis``."""
    x = convert_to_tensor(x)
    return x * rsqrt(maximum(reduce_sum(square(x), axis, True), epsilon))


@primitive(name="fused_batch_norm", type_name="FusedBatchNormV3", multiple=True)
def _fused_batch_norm(xp, x, scale, offset, *, epsilon=1e-3, axes: Axes):
    count = x.size // max(scale.size, 1)
    shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
    mean = x.sum(axis=axes, keepdims=True) * x.dtype.type(1 / max(count, 1))
    centred = x - mean
    variance = xp.square(centred).sum(axis=axes, keepdims=True)
    variance = variance * x.dtype.type(1 / max(count, 1))
    factor = scale.reshape(shape) / xp.sqrt(variance + x.dtype.type(epsilon))
    centred *= factor
    centred += offset.reshape(shape)
    return centred, mean.reshape(scale.shape), variance.reshape(scale.shape)


@_fused_batch_norm.infer
def _(x, scale, offset, epsilon, axes):
    reduced = normalize_axis("fused_batch_norm", axes, x.shape.rank, "axes")
    kept = [n for i, n in enumerate(x.shape) if i not in reduced]
    for name, spec in (("scale", scale), ("offset", offset)):
        if not spec.shape.is_compatible_with(kept):
            raise ShapeError("fused_batch_norm", f"{name} must have shape {tuple(kept)}",
                             x=x, **{name: spec})  # fmt: skip
    small = TensorSpec(kept, x.dtype)
    return TensorSpec(x.shape, x.dtype), small, small


def _standardized(x, mean, variance, shape, axes, epsilon):
    """``(x - mean) / sqrt(variance + epsilon)`` and the inverse deviation."""
    inverse = expand_reduced(rsqrt(variance + epsilon), _ones(shape, axes), axes, False)
    return (
        x - expand_reduced(mean, _ones(shape, axes), axes, False)
    ) * inverse, inverse


def _ones(shape, axes):
    return [1 if i in axes else n for i, n in enumerate(shape)]


@_fused_batch_norm.vjp("x")
def _(g, x, scale, out, x_shape, axes, epsilon):
    gy, g_mean, g_variance = g
    _, mean, variance = out
    small, count = _ones(x_shape, axes), 1
    for axis in axes:
        count *= x_shape[axis]
    normal, inverse = _standardized(x, mean, variance, x_shape, axes, epsilon)
    g_normal = gy * expand_reduced(scale, small, axes, False)
    along = reduce_mean(g_normal * normal, axes, True)
    centred = g_normal - reduce_mean(g_normal, axes, True) - normal * along
    from_mean = expand_reduced(g_mean, small, axes, False) * (1.0 / count)
    from_variance = expand_reduced(g_variance, small, axes, False) * (2.0 / count)
    return centred * inverse + from_mean + (normal / inverse) * from_variance


@_fused_batch_norm.vjp("scale")
def _(g, x, out, x_shape, axes, epsilon):
    normal, _ = _standardized(x, out[1], out[2], x_shape, axes, epsilon)
    return reduce_sum(g[0] * normal, axes)


@_fused_batch_norm.vjp("offset")
def _(g, axes):
    return reduce_sum(g[0], axes)


@_fused_batch_norm.batch
def _(mapped, x, scale, offset, *, epsilon, axes):
    x, scale, offset = all_mapped(mapped, (x, scale, offset))
    return _fused_batch_norm(
        x, scale, offset, epsilon=epsilon, axes=tuple([a + 1 for a in axes])
    )


def fused_batch_norm(x, scale, offset, axes, epsilon=1e-3):
    """Normalizes by the moments over ``axes``: ``(outputs, mean, variance)``, in one go.

        outputs = (x - mean) / sqrt(variance + epsilon) * scale + offset

    Shapes: ``scale``, ``offset``, ``mean`` and ``variance`` have those axes of ``x`` that
    ``axes`` does not name. The derivatives are exact at every order, also through the
    mean and the variance. Reference: Ioffe & Szegedy, "Batch Normalization" (2015).
    """
    x = convert_to_tensor(x)
    axes = normalize_axis("fused_batch_norm", axes, len(x.shape), "axes")
    return _fused_batch_norm(x, scale, offset, epsilon=float(epsilon), axes=axes)
