"""Normalization, differentiated exactly through the mean and the variance.

All kinds are built on one primitive, `_standardize`: mean 0 and variance 1 over some
axes. Batch, layer, instance and group normalization choose the axes, then scale and
shift.
"""

from __future__ import annotations

from tapewright.core.dtypes import finfo
from tapewright.core.errors import (
    DTypeError,
    InvalidArgumentError,
    ShapeError,
    cast_advice,
)
from tapewright.core.hardware import devices
from tapewright.core.op_definition.costs import per_input
from tapewright.core.primitive import primitive
from tapewright.core.rules import (
    batch_leading,
    broadcast_shape,
    check_at_least,
    checked_broadcast,
    normalize_axis,
)
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    is_tensor,
)
from tapewright.core.typing import Axes, IntLike, TensorLike

from ..array.conversion import cast, conj, real
from ..array.creation import zeros_like
from ..array.shape import reshape, summed
from ..linalg.matmul import matmul
from ..math.elementwise import maximum, pow, reciprocal, rsqrt, sqrt, square
from ..math.reduction import reduce_sum
from .bias import multiply_add
from .moments import at_least_single, count_over, from_the_back, small_spec
from .normalization_parts import LEAST, standardize_parts, standardize_parts_grad

__all__ = [
    "batch_normalization",
    "fused_batch_norm",
    "group_normalization",
    "instance_normalization",
    "l2_normalize",
    "layer_normalization",
    "local_response_normalization",
    "lrn",
    "rms_normalization",
]


# ------------------------------------------------------------------ the one primitive


@primitive(
    multiple=True,
    floating=True,
    keeps_c_order=True,
    cost=per_input(6),
    batch=batch_leading,
)
def _standardize(xp, x: TensorLike, *, axes: Axes, epsilon=0.001, centred: bool = True):
    """Return ``(n, mean, variance)`` for ``n = (x - mean) / sqrt(variance + epsilon)``.

    Axes are kept; ``axes`` count from the end. Without ``centred`` the mean is taken as
    0. It is a primitive for its derivative, which needs only the outputs.
    """
    share = x.dtype.type(1 / count_over(x.shape, axes))
    normal, mean = x, None
    if centred:
        mean = summed(xp, x, axes) * share
        normal = x - mean
    variance = summed(xp, xp.square(normal), axes) * share
    inverse = 1 / xp.sqrt(variance + x.dtype.type(epsilon))
    if not centred:
        return x * inverse, xp.zeros_like(variance), variance
    return xp.multiply(normal, inverse, out=normal), mean, variance


@_standardize.kernel_for("numpy")
def _(xp, x, axes, epsilon=0.001, centred=True):
    made = None
    if x.size >= LEAST:
        made = standardize_parts(x, axes, epsilon, centred)
    if made is None:
        kernel = _standardize.primitive.kernel
        made = kernel(xp, x, axes=axes, epsilon=epsilon, centred=centred)
    return made


@_standardize.infer
def _(x, axes, epsilon, centred):
    small = small_spec(x, axes)
    return TensorSpec(x.shape, x.dtype), small, small


@_standardize.vjp("x")
def _(g, out, x_shape, axes, epsilon, centred):
    (g_normal, g_mean, g_variance), (normal, _, variance) = g, out
    deviation, share = sqrt(variance + epsilon), 1.0 / count_over(x_shape, axes)
    return _standardize_grad(
        g_normal,
        normal,
        reciprocal(deviation),
        g_variance * deviation * (2.0 * share),
        g_mean * (share if centred else 0.0),
        axes=axes,
        centred=centred,
    )


@primitive(
    broadcasts=True,
    linear=[{"g", "slope", "shift"}, {"inverse", "slope", "shift"}],
    keeps_c_order=True,
    cost=(6, 0),
    batch=batch_leading,
)
def _standardize_grad(
    xp,
    g: TensorLike,
    normal: TensorLike,
    inverse: TensorLike,
    slope: TensorLike,
    shift: TensorLike,
    axes: Axes,
    centred: bool = True,
):
    """Compute the cotangent behind `_standardize`, in one op.

    It is ``inverse * (g - mean(g) - normal * mean(g * normal)) + normal * slope +
    shift``: the Jacobian is a projection, which is self-adjoint. ``slope`` and
    ``shift``, as small as ``inverse``, add the cotangents of the statistics.
    """
    share = normal.dtype.type(1 / count_over(normal.shape, axes))
    product = g * normal
    slope = slope - inverse * (summed(xp, product, axes) * share)
    if centred:
        shift = shift - inverse * (summed(xp, g, axes) * share)
    alike = len({x.ndim for x in (g, normal, inverse, slope, shift)}) == 1
    out = product if alike else None  # else some are mapped, and some are not
    total = xp.multiply(normal, slope, out=out)
    total = xp.add(total, shift, out=out)
    return xp.add(total, g * inverse, out=out)


@_standardize_grad.kernel_for("numpy")
def _(xp, g, normal, inverse, slope, shift, axes, centred=True):
    made, arrays = None, (g, normal, inverse, slope, shift)
    if normal.size >= LEAST:
        made = standardize_parts_grad(*arrays, axes, centred)
    if made is None:
        kernel = _standardize_grad.primitive.kernel
        made = kernel(xp, *arrays, axes=axes, centred=centred)
    return made


@_standardize_grad.infer
def _(g, normal, inverse, slope, shift, axes, centred):
    normalize_axis("standardize_grad", axes, normal.shape.rank, "axes")
    shapes = [x.shape for x in (g, normal, inverse, slope, shift)]
    return TensorSpec(broadcast_shape(*shapes), g.dtype)


@_standardize_grad.vjp("g")
def _(c, normal, inverse, axes, centred):
    zero = zeros_like(inverse)
    return _standardize_grad(c, normal, inverse, zero, zero, axes=axes, centred=centred)


@_standardize_grad.vjp("normal")
def _(c, g, normal, inverse, slope, normal_shape, axes):
    rate = inverse * (1.0 / count_over(normal_shape, axes))
    by_g = reduce_sum(g * normal, axes, True) * rate
    by_c = reduce_sum(c * normal, axes, True) * rate
    return multiply_add(c, slope - by_g, -(g * by_c))


@_standardize_grad.vjp("inverse")
def _(c, g, normal, normal_shape, axes, centred):
    def total(x):
        return reduce_sum(x, axes, True)

    means = total(c * normal) * total(g * normal)
    if centred:
        means = means + total(c) * total(g)
    return total(c * g) - means * (1.0 / count_over(normal_shape, axes))


@_standardize_grad.vjp("slope")
def _(c, normal, axes):
    return reduce_sum(c * normal, axes, True)


@_standardize_grad.vjp("shift")
def _(c, axes):
    return reduce_sum(c, axes, True)


@_standardize_grad.diagonal
def _(axes_of, g, normal, inverse, slope, shift, *, axes, centred):
    at = [axis for axis in axes_of if axis is not None]
    if axes_of[1:3] != (None, None) or at[0] in axes or len(set(at)) > 1:
        return None
    # linear in the others, of which those not mapped are zeros more often than not
    pairs = zip((g, slope, shift), (axes_of[0], *axes_of[3:]))
    if any(axis is None and not _is_zero(x.array) for x, axis in pairs):
        return None
    return at[0] if g.shape[at[0]] == shift.shape[at[0]] else None


def _is_zero(array):
    """Return whether all entries are known to be zero: not while they are traced."""
    return devices.is_array(array) and not array.any()


# ---------------------------------------------------------------- the kinds of them


def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None,
    scale: TensorLike | None,
    variance_epsilon: TensorLike,
    name: str | None = None,
) -> Tensor:
    """Normalize by given moments, then scale and shift.

    It is ``(x - mean) / sqrt(variance + variance_epsilon) * scale + offset``.

    Args:
        x: Input tensor.
        mean: Mean.
        variance: Variance.
        offset: Offset to add, or None.
        scale: Factor, or None.
        variance_epsilon: Number to add to the variance, against division by 0.

    Shapes:
        All broadcast to the shape of ``x``.

    Example:
        >>> tw.nn.batch_normalization([[1.0], [3.0]], 2.0, 1.0, None, 5.0, 0.0).numpy()
        array([[-5.],
               [ 5.]], dtype=float32)
    """
    given = (x, mean, variance, offset, scale)
    hint = next((value.dtype for value in given if is_tensor(value)), None)
    x = convert_to_tensor(x, dtype_hint=hint)
    mean, variance, offset, scale = [
        None if value is None else convert_to_tensor(value, dtype_hint=x.dtype)
        for value in given[1:]
    ]
    shapes = {
        "x": x,
        "mean": mean,
        "variance": variance,
        "offset": offset,
        "scale": scale,
    }
    shapes = {name: value for name, value in shapes.items() if value is not None}
    checked_broadcast(
        "batch_normalization",
        *[value.array.shape for value in shapes.values()],
        **shapes,
    )
    inverse = rsqrt(variance + variance_epsilon)
    if scale is not None:
        inverse = inverse * scale
    shift = -(mean * inverse) if offset is None else offset - mean * inverse
    return multiply_add(x, inverse, shift)


def fused_batch_norm(
    x: TensorLike,
    scale: TensorLike | None,
    offset: TensorLike | None,
    axes: Axes,
    epsilon: float = 0.001,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch normalization by the moments of ``x`` over axes, in one op.

        outputs = (x - mean) / sqrt(variance + epsilon) * scale + offset

    The derivatives are exact at every order, also through the mean and the variance.

    Args:
        x: Input tensor.
        scale: Factor of the normalized values, or None.
        offset: Offset to add, or None.
        axes: Axes over which the moments are computed.
        epsilon: Number to add to the variance, against division by 0.

    Shapes:
        ``scale``, ``offset``, ``mean`` and ``variance`` have the axes of ``x`` that are
        not in ``axes``.

    Returns:
        ``(outputs, mean, variance)``.

    References:
        Ioffe & Szegedy, "Batch Normalization" (2015).

    Example:
        >>> x, scale, offset = [[1.0], [3.0]], [1.0], [0.0]
        >>> outputs, mean, variance = tw.nn.fused_batch_norm(x, scale, offset, [0])
        >>> mean.numpy(), variance.numpy()
        (array([2.], dtype=float32), array([1.], dtype=float32))
    """
    who = "fused_batch_norm"
    given = _floating(who, x)
    x, rank = at_least_single(given), len(given.array.shape)
    axes = sorted(normalize_axis(who, axes, rank, "axes"))
    kept = [i for i in range(rank) if i not in axes]
    scale = _aligned(who, "scale", scale, x, kept)
    offset = _aligned(who, "offset", offset, x, kept)
    normal, mean, variance = _standardize(
        x, axes=from_the_back(axes, rank), epsilon=float(epsilon)
    )
    dims = [x.array.shape[i] for i in kept]
    outputs = multiply_add(normal, scale, offset)
    results = outputs, reshape(mean, dims), reshape(variance, dims)
    if x is given:
        return results
    return tuple([cast(r, given.dtype) for r in results])


def layer_normalization(
    x: TensorLike,
    gamma: TensorLike | None = None,
    beta: TensorLike | None = None,
    axis: Axes = -1,
    epsilon: float | None = None,
) -> Tensor:
    """Layer normalization: ``(x - mean) / sqrt(variance + epsilon) * gamma + beta``.

    Derivatives are exact at every order.

    Args:
        x: Input tensor.
        gamma: Factor of the normalized values, or None.
        beta: Offset to add, or None.
        axis: Axis or list of axes over which the moments are computed.
        epsilon: Number to add to the variance, against division by 0; None means 1e-7.

    Shapes:
        ``gamma`` and ``beta`` have the axes in ``axis``, in order.

    References:
        Ba et al., "Layer normalization" (2016).

    Example:
        >>> tw.nn.layer_normalization([[1.0, 3.0]]).numpy()
        array([[-1.,  1.]], dtype=float32)
    """
    return _normalized("layer_normalization", x, axis, axis, epsilon, gamma, beta)


def rms_normalization(
    x: TensorLike,
    scale: TensorLike | None = None,
    axis: Axes = -1,
    epsilon: float | None = None,
) -> Tensor:
    """Root mean square normalization: ``x / sqrt(mean(x ** 2) + epsilon) * scale``.

    Args:
        x: Input tensor.
        scale: Factor of the normalized values, or None.
        axis: Axis or list of axes over which the mean is computed.
        epsilon: Number to add to the mean square, against division by 0; None means
            1e-7.

    Shapes:
        ``scale`` has the axes in ``axis``, in order.

    References:
        Zhang & Sennrich, "Root mean square layer normalization" (2019).

    Example:
        >>> tw.nn.rms_normalization([[1.0, 7.0]]).numpy()
        array([[0.2, 1.4]], dtype=float32)
    """
    return _normalized(
        "rms_normalization", x, axis, axis, epsilon, scale, None, centred=False
    )


def instance_normalization(
    x: TensorLike,
    gamma: TensorLike | None = None,
    beta: TensorLike | None = None,
    axis: Axes = -1,
    epsilon: float = 0.001,
) -> Tensor:
    """Instance normalization: normalize each channel of each example, then scale and shift.

    The mean becomes 0 and the variance 1. Derivatives are exact at every order.

    Args:
        x: Input tensor.
        gamma: Factor of each channel, or None.
        beta: Offset of each channel, or None.
        axis: Axis of the channels.
        epsilon: Number to add to the variance, against division by 0.

    Shapes:
        ``x`` ``[batch, ...]`` with the channels on ``axis``; ``gamma`` and ``beta``
        ``[channels]``.

    References:
        Ulyanov et al., "Instance normalization" (2016).

    Example:
        >>> tw.nn.instance_normalization([[[1.0], [3.0]]]).numpy().round(2).ravel()
        array([-1.,  1.], dtype=float32)
    """
    who = "instance_normalization"
    x = _floating(who, x)
    channels = _channels(who, x, axis)
    axes = [i for i in range(1, len(x.shape)) if i != channels]
    return _normalized(who, x, axes, channels, epsilon, gamma, beta)


def group_normalization(
    x: TensorLike,
    groups: IntLike = 32,
    gamma: TensorLike | None = None,
    beta: TensorLike | None = None,
    axis: Axes = -1,
    epsilon: float = 0.001,
) -> Tensor:
    """Group normalization: normalize each group of channels of each example.

    The mean becomes 0 and the variance 1, then the result is scaled and shifted.
    Derivatives are exact at every order.

    Args:
        x: Input tensor.
        groups: Number of groups, a divisor of the number of channels; -1 makes each
            channel a group.
        gamma: Factor of each channel, or None.
        beta: Offset of each channel, or None.
        axis: Axis of the channels.
        epsilon: Number to add to the variance, against division by 0.

    Shapes:
        ``x`` ``[batch, ...]`` with the channels on ``axis``; ``gamma`` and ``beta``
        ``[channels]``.

    Raises:
        ValueError: If ``groups`` does not divide the number of channels.

    References:
        Wu & He, "Group normalization" (2018).

    Example:
        >>> tw.nn.group_normalization([[1.0, 3.0, 5.0, 5.0]], groups=2).numpy().round(2)
        array([[-1.,  1.,  0.,  0.]], dtype=float32)
    """
    who = "group_normalization"
    given = _floating(who, x)
    dims, at = given.array.shape, _channels(who, given, axis)
    groups = dims[at] if groups == -1 else groups
    if groups < 1 or dims[at] % groups:
        raise InvalidArgumentError(
            f"{who}: groups must divide the number of channels, {dims[at]}, got {groups}"
        )
    own = groups, dims[at] // groups
    grouped = (*dims[:at], *own, *dims[at + 1 :])
    axes = [i for i in range(1, len(grouped)) if i != at]
    x = at_least_single(given)
    gamma, beta = [
        w if w is None else reshape(_weight(who, name, w, x, [at]), own)
        for name, w in (("gamma", gamma), ("beta", beta))
    ]
    normal = _standard(reshape(x, grouped), axes, epsilon)
    outputs = _scaled(who, normal, [at, at + 1], gamma, beta)
    return cast(reshape(outputs, dims), given.dtype)


def _normalized(who, x, axis, weight_axis, epsilon, gamma, beta, centred=True):
    """Standardize over ``axis``, then scale and shift along ``weight_axis``."""
    given = _floating(who, x)
    rank = len(given.array.shape)
    axes = sorted(normalize_axis(who, axis, rank))
    normal = _standard(at_least_single(given), axes, epsilon, centred)
    weight_axes = sorted(normalize_axis(who, weight_axis, rank))
    names = ("gamma", "beta") if centred else ("scale", None)
    return cast(_scaled(who, normal, weight_axes, gamma, beta, names), given.dtype)


def _standard(x, axes, epsilon, centred=True):
    epsilon = 1e-7 if epsilon is None else float(epsilon)
    axes = from_the_back(axes, len(x.array.shape))
    return _standardize(x, axes=axes, epsilon=epsilon, centred=centred)[0]


def _scaled(who, normal, axes, gamma, beta, names=("gamma", "beta")):
    """Compute ``normal * gamma + beta``, where each is given."""
    if gamma is not None:
        gamma = _aligned(who, names[0], gamma, normal, axes)
    if beta is not None:
        beta = _aligned(who, names[1], beta, normal, axes)
    if gamma is None:
        return normal if beta is None else normal + beta
    return normal * gamma if beta is None else multiply_add(normal, gamma, beta)


def _floating(who, x):
    x = convert_to_tensor(x)
    if not x.dtype.is_floating:
        what = f"x must be floating; {cast_advice('x', 'float32')}"
        raise DTypeError(who, what, x=x)
    return x


def _channels(who, x, axis):
    (channels,) = normalize_axis(who, axis, len(x.array.shape))
    if not channels:
        raise InvalidArgumentError(
            f"{who}: axis must not be the batch axis 0, got {axis}"
        )
    return channels


def _aligned(who, name, weight, x, axes):
    """Reshape a weight with the axes ``axes`` of ``x`` so that it broadcasts."""
    weight, rank = _weight(who, name, weight, x, axes), len(x.array.shape)
    if axes == list(range(rank - len(axes), rank)):
        return weight
    dims = x.array.shape
    return reshape(weight, [n if i in axes else 1 for i, n in enumerate(dims)])


def _weight(who, name, weight, x, axes):
    """Cast a weight to the dtype of ``x``, and check that it has its axes ``axes``."""
    weight = cast(convert_to_tensor(weight, dtype_hint=x.dtype), x.dtype)
    kept = tuple([x.array.shape[i] for i in axes])
    if weight.array.shape != kept:
        raise ShapeError(who, f"{name} must have shape {kept}", x=x, **{name: weight})
    return weight


# -------------------------------------------------------------------- by lengths


def l2_normalize(
    x: TensorLike, axis: Axes = None, epsilon: float = 1e-12, name: str | None = None
) -> Tensor:
    """L2 normalization over axes: ``x / sqrt(max(sum(|x| ** 2), epsilon))``.

    Args:
        x: Input tensor.
        axis: Axis or list of axes to normalize over; None means all.
        epsilon: Lower bound of the sum of squares.

    Example:
        >>> tw.nn.l2_normalize([3.0, 4.0]).numpy()
        array([0.6, 0.8], dtype=float32)
    """
    x = convert_to_tensor(x)
    if x.shape.rank is not None:
        normalize_axis("l2_normalize", axis, x.shape.rank)
    squares = real(x * conj(x)) if x.dtype.is_complex else square(x)
    if squares.dtype.is_floating:
        # float16 would round the default to 0, and a row of zeros would become NaN
        epsilon = max(epsilon, float(finfo(squares.dtype.dtype).smallest_subnormal))
    inverse = rsqrt(maximum(reduce_sum(squares, axis, True), epsilon))
    return x * cast(inverse, x.dtype)


def local_response_normalization(
    input: TensorLike,
    depth_radius: IntLike = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """Local response normalization: ``x / (bias + alpha * s) ** beta``.

    ``s`` is the sum of squares of nearby channels.

    Args:
        input: Batch of images.
        depth_radius: Number of nearby channels on either side.
        bias: Offset in the denominator.
        alpha: Factor of the sum of squares.
        beta: Exponent of the denominator.

    Shapes:
        ``[batch, height, width, channels]``, input and result.

    Raises:
        ValueError: If ``depth_radius`` is negative.

    References:
        Krizhevsky et al., "ImageNet classification with deep CNNs" (2012).

    Example:
        >>> tw.nn.lrn([[[[1.0, 1.0, 1.0]]]], depth_radius=1).numpy().ravel()
        array([0.57735026, 0.5       , 0.57735026], dtype=float32)
    """
    x = _floating("local_response_normalization", input)
    if len(x.shape) != 4:
        raise ShapeError("local_response_normalization",
                         "input must be [batch, height, width, channels]", input=x)  # fmt: skip
    check_at_least("local_response_normalization", 0, depth_radius=depth_radius)
    channels = range(x.shape[-1])
    near = [[float(abs(i - j) <= depth_radius) for j in channels] for i in channels]
    around = matmul(square(x), convert_to_tensor(near, dtype=x.dtype))
    return x * pow(around * float(alpha) + float(bias), -float(beta))


lrn = local_response_normalization
