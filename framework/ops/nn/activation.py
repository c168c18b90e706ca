"""Activation functions: relu and its variants, sigmoids, gelu, softmax."""

from __future__ import annotations

import math

import numpy as np

from tapewright.core.dtypes import float32
from tapewright.core.errors import DTypeError
from tapewright.core.rules import along_axis, elementwise, normalize_axis
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import Axes, Axis, TensorLike

from ..array.conversion import cast, stop_gradient
from ..array.creation import ones_like, zeros_like
from ..array.joining import concat
from ..math.approximation import in_blocks, in_parts
from ..math.comparison import (
    equal,
    greater,
    is_inf,
    less,
    masked,
    not_equal,
    where,
    where_positive,
)
from ..math.elementwise import abs, clip_by_value, exp, minimum, zero_safe_multiply
from ..math.reduction import reduce_logsumexp, reduce_max, reduce_sum, restored
from ..math.special import normal_tail
from ..math.trigonometry import over_square_of_cosh, tanh, tanh_slope

__all__ = [
    "crelu",
    "elu",
    "gelu",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "softsign",
    "swish",
    "tanh",
]


@elementwise(zero_when=[{"features"}])
def relu(xp, features: TensorLike):
    """Rectified linear unit: ``max(x, 0)``; the derivative at 0 is 0.

    Args:
        features: Input tensor.

    Example:
        >>> tw.nn.relu([-1.0, 2.0]).numpy()
        array([0., 2.], dtype=float32)
    """
    return xp.maximum(features, features.dtype.type(0))


@relu.kernel_for("numpy")
def _(xp, features):
    """Compare with rows of zeros: NumPy's maximum with a scalar takes half as long again."""
    if features.ndim < 3:
        return xp.maximum(features, xp.zeros(features.shape[-1:], features.dtype))
    outermost = max(range(features.ndim), key=features.strides.__getitem__)
    first = [slice(0, 1 if i == outermost else None) for i in range(features.ndim)]
    return xp.maximum(features, xp.zeros_like(features[tuple(first)]))


@relu.vjp("features")
def _(g, out):
    return where_positive(g, out)


def relu6(features: TensorLike, name: str | None = None) -> Tensor:
    """Rectified linear unit bounded by 6: ``min(max(x, 0), 6)``.

    The derivative at 0 and at 6 is 0.

    Args:
        features: Tensor of real numbers.

    Example:
        >>> tw.nn.relu6([-1.0, 2.0, 9.0]).numpy()
        array([0., 2., 6.], dtype=float32)
    """
    limited = relu(features)
    return minimum(6 if limited.dtype.is_integer else 6.0, limited)


@elementwise(name="leaky_relu", zero_when=[{"features"}], cost=(2, 0))
def leaky_relu_p(xp, features: TensorLike, *, alpha=0.2):
    return xp.where(features > 0, features, features * features.dtype.type(alpha))


@leaky_relu_p.vjp("features")
def _(g, features, alpha):
    return where(greater(features, 0.0), g, g * alpha)


def leaky_relu(
    features: TensorLike, alpha: TensorLike = 0.2, name: str | None = None
) -> Tensor:
    """Leaky rectified linear unit: ``x`` where it is positive, else ``alpha * x``.

    Args:
        features: Input tensor; integers become float32.
        alpha: Slope for negative inputs.

    Example:
        >>> tw.nn.leaky_relu([-1.0, 2.0]).numpy()
        array([-0.2,  2. ], dtype=float32)
    """
    features = convert_to_tensor(features)
    if features.dtype.is_integer:
        features = cast(features, float32)
    return leaky_relu_p(features, alpha=float(alpha))


def crelu(features: TensorLike, axis: Axis = -1, name: str | None = None) -> Tensor:
    """Concatenated ReLU: `relu` of ``x`` and of ``-x``, concatenated along an axis.

    Args:
        features: Tensor of numbers.
        axis: Axis to concatenate along; its size doubles.

    References:
        Shang et al., "Understanding and improving convolutional neural networks via
        concatenated rectified linear units" (2016).

    Example:
        >>> tw.nn.crelu([-1.0, 2.0]).numpy()
        array([0., 2., 1., 0.], dtype=float32)
    """
    features = convert_to_tensor(features)
    return concat([relu(features), relu(-features)], axis=axis)


@elementwise(zero_when=[{"features"}], floating=True, cost=(1, 1))
def elu(xp, features: TensorLike):
    """Exponential linear unit: ``x`` where it is positive, else ``exp(x) - 1``.

    Args:
        features: Floating or complex tensor.

    Example:
        >>> tw.nn.elu([-1.0, 2.0]).numpy().round(4)
        array([-0.6321,  2.    ], dtype=float32)
    """
    zero = xp.zeros((), features.dtype)
    return xp.maximum(features, zero) + xp.expm1(xp.minimum(features, zero))


@elu.vjp("features")
def _(g, features):
    # Far below 0 the output is -1: no digit left.
    return g * exp(minimum(features, 0.0))


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def selu(features: TensorLike, name: str | None = None) -> Tensor:
    """Scaled exponential linear unit.

    ``scale * x`` where ``x`` is positive, else ``scale * alpha * (exp(x) - 1)``. The
    constants ``scale = 1.0507`` and ``alpha = 1.6733`` keep activations at mean 0 and
    variance 1.

    Args:
        features: Real floating tensor.

    References:
        Klambauer et al., "Self-Normalizing Neural Networks" (2017).

    Example:
        >>> tw.nn.selu([-1.0, 0.0, 1.0]).numpy().round(4)
        array([-1.1113,  0.    ,  1.0507], dtype=float32)
    """
    features = convert_to_tensor(features)
    below = elu(minimum(features, 0.0)) * _SELU_ALPHA
    return where(less(features, 0.0), below, features) * _SELU_SCALE


@elementwise(name="sigmoid", ignores_float_errors=True, floating=True, cost=(2, 1))
def sigmoid_p(xp, x: TensorLike):
    # exp(-x) may overflow: 1 / inf is the right answer
    return xp.reciprocal(xp.exp(-x) + x.dtype.type(1))


def sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """Sigmoid function: ``1 / (1 + exp(-x))``, accurate at both ends.

    Args:
        x: Floating or complex tensor.

    Example:
        >>> tw.sigmoid(0.0).numpy()
        np.float32(0.5)
    """
    return keep_logits(sigmoid_p(x), x, "sigmoid")


def keep_logits(probabilities, logits, activation, axis=None):
    """Let losses of the probabilities use the logits, which are not rounded."""
    if isinstance(logits, Tensor) and isinstance(probabilities, Tensor):
        probabilities._tw_logits = logits, activation, axis
    return probabilities


@sigmoid_p.vjp("x")
def _(g, x, out, x_dtype):
    if x_dtype.kind == "c":
        return g * (out - out * out)
    return sigmoid_slope(g, x)


@elementwise(kinds="f", zero_when=[{"g"}, {"g", "x"}], linear=[{"g"}], cost=(4, 1))
def sigmoid_slope(xp, g: TensorLike, x: TensorLike):
    """Compute ``g * s * (1 - s)`` of ``s = sigmoid(x)``, as ``g / (2 * cosh(x / 2)) ** 2``.

    ``s`` has no digit of ``1 - s`` left where it has been rounded to 1.
    """
    slope = over_square_of_cosh(xp, g, x * x.dtype.type(0.5))
    slope *= x.dtype.type(0.25)
    return slope


sigmoid_slope.kernel_for("numpy")(in_parts(sigmoid_slope.primitive.kernel))


@sigmoid_slope.vjp("g")
def _(c, x):
    return sigmoid_slope(c, x)


@sigmoid_slope.vjp("x")
def _(c, g, x):
    return -(sigmoid_slope(c * g, x) * tanh(x * 0.5))


@elementwise(ignores_float_errors=True, floating=True, cost=(2, 2))
def softplus(xp, features: TensorLike):
    """Smooth ReLU: ``log(1 + exp(x))``, without overflow for large ``x``.

    Args:
        features: Floating or complex tensor.
    """
    zero = xp.zeros((), features.dtype)
    return xp.maximum(features, zero) + xp.log1p(xp.exp(-xp.abs(features)))


@softplus.vjp("features")
def _(g, features):
    return g * sigmoid(features)


def log_sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """Logarithm of the sigmoid function, ``log(sigmoid(x))``, without underflow.

    Args:
        x: Floating or complex tensor.

    Example:
        >>> tw.nn.log_sigmoid([0.0, 2.0]).numpy().round(4)
        array([-0.6931, -0.1269], dtype=float32)
    """
    return -softplus(-convert_to_tensor(x))


@elementwise(zero_when=[{"features"}], floating=True, cost=(2, 0))
def softsign(xp, features: TensorLike):
    """Softsign function: ``x / (|x| + 1)``.

    Args:
        features: Floating or complex tensor.

    Example:
        >>> tw.nn.softsign([-1.0, 0.0, 3.0]).numpy()
        array([-0.5 ,  0.  ,  0.75], dtype=float32)
    """
    return features / (xp.abs(features) + features.dtype.type(1))


@softsign.vjp("features")
def _(g, features):
    rest = 1.0 / (1.0 + abs(features))
    return g * (rest * rest)


def silu(features: TensorLike, beta: TensorLike = 1.0) -> Tensor:
    """Sigmoid linear unit, also known as swish: ``x * sigmoid(beta * x)``.

    Args:
        features: Floating tensor.
        beta: Factor of the argument of the sigmoid.

    Example:
        >>> tw.nn.silu([-1.0, 0.0, 1.0]).numpy().round(4)
        array([-0.2689,  0.    ,  0.7311], dtype=float32)
    """
    features = convert_to_tensor(features)
    if type(beta) not in (int, float) or beta != 1:
        return features * sigmoid(features * beta)
    return (
        features * sigmoid(features) if features.dtype.is_complex else _silu(features)
    )


@elementwise(
    name="silu", kinds="f", zero_when=[{"x"}], ignores_float_errors=True, cost=(3, 1)
)
def _silu(xp, x: TensorLike):
    # from -88.7 to -92 in float32 exp(-x) overflows and -2e-37 is 0: a formula without that
    # takes a fifth longer
    x = xp.maximum(x, x.dtype.type(-1e3))  # where it is 0: no -inf / inf
    return x / (xp.exp(-x) + x.dtype.type(1))


@_silu.vjp("x")
def _(g, x):
    return g * _silu_slope(x)


@elementwise(kinds="f", ignores_float_errors=True, cost=(6, 1))
def _silu_slope(xp, x: TensorLike):
    """Compute ``s + x * s * (1 - s)`` from ``exp(x)``: ``s = sigmoid(x)`` may be tiny."""
    highest = {2: 10.5, 4: 24.0}.get(x.dtype.itemsize, 50.0)  # from there on it is 1
    x = xp.minimum(xp.maximum(x, x.dtype.type(-1e3)), x.dtype.type(highest))
    power = xp.exp(x)
    rest = xp.reciprocal(power + x.dtype.type(1))
    power *= rest
    rest *= x
    rest += x.dtype.type(1)
    rest *= power
    return rest


@_silu_slope.vjp("x")
def _(g, x):
    x = clip_by_value(x, -1e3, 1e3)  # beyond, the derivatives are 0
    half = x * 0.5
    bend = 2.0 - x * tanh(half)
    return tanh_slope(zero_safe_multiply(g * 0.25, bend), half)


swish = silu


# ---------------------------------------------------------------------------- gelu

_ROOT_2_PI, _CUBIC = math.sqrt(2.0 / math.pi), 0.044715
_DENSITY_AT_0 = 1.0 / math.sqrt(2.0 * math.pi)


@elementwise(zero_when=[{"x"}], ignores_float_errors=True, floating=True, cost=(3, 1))
def _gelu(xp, x: TensorLike):
    size = _bounded(xp, x)
    tail, _ = normal_tail(xp, size)
    return xp.maximum(x, xp.zeros((), x.dtype)) - tail * size


def _bounded(xp, x):
    """Return ``|x|``, at most 40: beyond that the normal distribution function is 1."""
    return xp.minimum(xp.abs(x), x.dtype.type(40.0))


@_gelu.vjp("x")
def _(g, x):
    return g * _gelu_slope(x)


@elementwise(ignores_float_errors=True, floating=True, cost=(5, 2))
def _gelu_slope(xp, x: TensorLike):
    """Return the normal distribution function plus ``x`` times the density."""
    size = _bounded(xp, x)
    tail, density = normal_tail(xp, size)
    density *= size
    density *= _DENSITY_AT_0
    return _odd_about_half(xp, x, density - tail)


def _odd_about_half(xp, x, rest):
    """Return ``1 + rest`` for positive ``x``, else ``-rest``, faster than by ``where``."""
    step = (~xp.signbit(x)).astype(x.dtype)
    rest *= step * 2.0 - 1.0
    return rest + step


@_gelu_slope.vjp("x")
def _(g, x):
    x = clip_by_value(x, -40.0, 40.0)  # the derivatives of its square are finite
    square = x * x
    return g * zero_safe_multiply(2.0 - square, exp(square * -0.5) * _DENSITY_AT_0)


@elementwise(zero_when=[{"x"}], ignores_float_errors=True, floating=True, cost=(7, 1))
def _gelu_by_tanh(xp, x: TensorLike):
    # 1 + tanh(u) is 2 / (1 + exp(-2 u)), which keeps its digits where it is small
    x = xp.maximum(x, x.dtype.type(-30))  # where it is 0: no -inf / inf
    share = xp.exp(_inside_tanh(x) * -2.0)
    share += 1.0
    return x / share


def _inside_tanh(x):
    return (x * x * (_ROOT_2_PI * _CUBIC) + _ROOT_2_PI) * x


def _slope_inside(x):
    return x * x * (3.0 * _ROOT_2_PI * _CUBIC) + _ROOT_2_PI


@_gelu_by_tanh.vjp("x")
def _(g, x):
    return g * _gelu_by_tanh_slope(x)


@elementwise(ignores_float_errors=True, floating=True, cost=(14, 1))
def _gelu_by_tanh_slope(xp, x: TensorLike):
    size = xp.minimum(xp.abs(x), x.dtype.type(30.0))  # beyond it is 0 or 1
    small = xp.exp(_inside_tanh(size) * -2.0)
    large = 1.0 / (small + 1.0)
    small *= large  # now the two shares, which add up to 1
    rest = _slope_inside(size)
    rest *= size
    rest *= small * large
    rest *= 2.0
    return _odd_about_half(xp, x, rest - small)


@_gelu_by_tanh_slope.vjp("x")
def _(g, x):
    x = clip_by_value(x, -30.0, 30.0)  # beyond, all is 0
    inside, first = _inside_tanh(x), _slope_inside(x)
    bent = x * (6.0 * _ROOT_2_PI * _CUBIC) - tanh(inside) * first * first * 2.0
    return zero_safe_multiply(tanh_slope(g * 0.5, inside), first * 2.0 + x * bent)


def _by_parts(op):
    """Process large NumPy arrays in parts that stay in the cache."""
    kernel = op.primitive.kernel

    @op.kernel_for("numpy")
    def _(xp, x):
        if x.dtype.kind != "f":
            raise DTypeError(op.primitive.name, "x must be real", x=x)
        return in_blocks(lambda part: kernel(np, part), x)


GELU = _gelu, _gelu_slope, _gelu_by_tanh, _gelu_by_tanh_slope
for _op in GELU:
    _by_parts(_op)


def gelu(
    features: TensorLike, approximate: bool = False, name: str | None = None
) -> Tensor:
    """Gaussian error linear unit: ``x`` times the normal distribution function at ``x``.

    Args:
        features: Real floating tensor.
        approximate: If True, compute ``0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715
            * x ** 3)))``.

    References:
        Hendrycks & Gimpel, "Gaussian error linear units" (2016).

    Example:
        >>> tw.nn.gelu([-20.0, 0.0, 20.0]).numpy()
        array([ 0.,  0., 20.], dtype=float32)
    """
    return _gelu_by_tanh(features) if approximate else _gelu(features)


# ------------------------------------------------------------------------- softmax


def is_short(xp, logits, axis):
    """Return whether a matrix has few columns: NumPy is faster along them as rows."""
    few = logits.ndim == 2 and axis in (-1, 1) and 0 < logits.shape[1] <= 64
    return few and xp is np


def shifted_rows(xp, logits, axis=-1):
    """Subtract the maximum along ``axis``; return the result and the axis in it.

    A matrix with few columns is returned transposed.
    """
    if is_short(xp, logits, axis):
        turned = logits.T.copy(order="C")
        turned -= np.maximum.reduce(turned)
        return turned, 0
    if not logits.size:
        return logits.copy(), axis
    return logits - logits.max(axis=axis, keepdims=True), axis


@along_axis(name="softmax", ignores_float_errors=True, floating=True, cost=(4, 1))
def softmax_p(xp, logits: TensorLike, axis: Axes = -1):
    if not logits.ndim:  # NumPy takes a scalar for a vector
        normalize_axis("softmax", axis, 0)
    weights, lies = shifted_rows(xp, logits, axis)
    xp.exp(weights, out=weights)
    weights /= weights.sum(axis=lies, keepdims=True)
    return weights if lies == axis else weights.T


@softmax_p.vjp("logits")
def _(g, out, axis):
    return softmax_slope(g, out, axis)


@along_axis(linear=[{"g"}], ignores_float_errors=True, cost=(7, 0))
def softmax_slope(xp, g: TensorLike, p: TensorLike, axis: Axes = -1):
    """Compute ``p * (g - sum(g * p))``, the cotangent behind ``p = softmax(x)``.

    Where one share is almost 1 the difference is lost in rounding. It is minus the sum
    of the others, since all of them add up to 0; so their sum is subtracted, by shares.
    """
    slope = g * p
    slope -= p * slope.sum(axis=axis, keepdims=True)
    slope -= p * slope.sum(axis=axis, keepdims=True)
    return slope


@softmax_slope.vjp("g")
def _(c, p, axis):
    return softmax_slope(c, p, axis)


@softmax_slope.vjp("p")
def _(c, g, p, axis):
    of_c, of_g = reduce_sum(c * p, axis, True), reduce_sum(g * p, axis, True)
    rest = 2.0 - reduce_sum(p, axis, True)  # 1, of shares
    return c * g - g * (of_c * rest) - c * (of_g * rest) + of_c * of_g


@reduce_logsumexp.vjp("input_tensor")
def _(g, input_tensor, input_tensor_shape, out, axis, keepdims):
    # The shares are not exp(x - out): out has few digits behind the point where it is
    # large. Entries of inf share equally; where all are -inf the shares are 0.
    total = restored(out, input_tensor_shape, axis, keepdims)
    ends = where(equal(input_tensor, total), zeros_like(input_tensor), -np.inf)
    shares = _shares(where(is_inf(total), ends, input_tensor), axis)
    g = restored(g, input_tensor_shape, axis, keepdims)
    return masked(shares, not_equal(total, -np.inf)) * g


def _shares(x, axis):
    """Compute ``softmax`` over axes; over all of them the rank need not be known."""
    if axis is None:
        powers = exp(x - stop_gradient(reduce_max(x)))
        return powers / reduce_sum(powers)
    axes = normalize_axis("reduce_logsumexp", axis, len(x.shape))
    return softmax_p(x, tuple(axes)) if axes else ones_like(x)


@along_axis(name="log_softmax", ignores_float_errors=True, floating=True, cost=(4, 1))
def log_softmax_p(xp, logits: TensorLike, axis: Axes = -1):
    if not logits.ndim:  # NumPy takes a scalar for a vector
        normalize_axis("log_softmax", axis, 0)
    shifted, lies = shifted_rows(xp, logits, axis)
    shifted -= xp.log(xp.exp(shifted).sum(axis=lies, keepdims=True))
    return shifted if lies == axis else shifted.T


@log_softmax_p.vjp("logits")
def _(g, out, axis):
    p = exp(out)
    slope = g - p * reduce_sum(g, axis, True)
    return slope - p * reduce_sum(slope, axis, True)  # as in `softmax_slope`


def softmax(logits: TensorLike, axis: Axis = -1, name: str | None = None) -> Tensor:
    """Softmax function: ``exp(x) / sum(exp(x))`` along an axis, without overflow.

    Args:
        logits: Floating or complex tensor.
        axis: Axis along which the results sum to 1.

    Example:
        >>> tw.softmax([[0.0, 0.0], [0.0, 999.0]]).numpy()
        array([[0.5, 0.5],
               [0. , 1. ]], dtype=float32)
    """
    axis = -1 if axis is None else axis
    return keep_logits(softmax_p(logits, axis), logits, "softmax", axis)


def log_softmax(logits: TensorLike, axis: Axis = -1, name: str | None = None) -> Tensor:
    """Logarithm of the softmax function, ``log(softmax(x))``, without underflow.

    Args:
        logits: Floating or complex tensor.
        axis: Axis of the softmax.

    Example:
        >>> tw.nn.log_softmax([0.0, 0.0]).numpy()
        array([-0.6931472, -0.6931472], dtype=float32)
    """
    return log_softmax_p(logits, -1 if axis is None else axis)
