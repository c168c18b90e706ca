"""Activations: relu and its kin, sigmoids, softmax."""

from ..primitive import Axes, primitive
from ..rules import elementwise, normalize_axis
from ..tensor import convert_to_tensor
from .comparison import greater, less, where, where_positive
from .elementwise import exp, minimum, tanh
from .reduction import reduce_sum

__all__ = [
    "elu",
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


@elementwise(type_name="Relu", zero_when=[{"features"}])
def relu(xp, features):
    """``max(x, 0)``; the derivative at 0 is 0.

    >>> relu([-1.0, 2.0]).numpy()
    array([0., 2.], dtype=float32)
    """
    # a row of zeros: NumPy's maximum with a scalar takes half as long again
    return xp.maximum(features, xp.zeros(features.shape[-1:], features.dtype))


@relu.vjp("features")
def _(g, out):
    return where_positive(g, out)


def relu6(features, name=None):
    """``min(max(x, 0), 6)``; the derivative at 0 and at 6 is 0."""
    return minimum(6.0, relu(features))  # in a tie the first gets the gradient


@primitive(name="leaky_relu", type_name="LeakyRelu")
def _leaky_relu(xp, features, *, alpha=0.2):
    return xp.where(features > 0, features, features * features.dtype.type(alpha))


def _same_spec(features, **attributes):
    return features


def _same_axis(axes, features, **attributes):
    return axes[0]


def _plainly(op):
    """Shape, batching and diagonal rules of a unary op with scalar attributes."""
    op.infer(_same_spec)
    op.batch(lambda mapped, features, **attributes: op(features, **attributes))
    op.diagonal(_same_axis)  # zero at zero


_plainly(_leaky_relu)


@_leaky_relu.vjp("features")
def _(g, features, alpha):
    return where(greater(features, 0.0), g, g * alpha)


def leaky_relu(features, alpha=0.2, name=None):
    """``x`` where positive, else ``alpha * x``."""
    return _leaky_relu(features, alpha=float(alpha))


@elementwise(type_name="Elu", zero_when=[{"features"}], floating=True)
def elu(xp, features):
    """``x`` where positive, else ``exp(x) - 1``."""
    zero = xp.zeros((), features.dtype)
    return xp.maximum(features, zero) + xp.expm1(xp.minimum(features, zero))


@elu.vjp("features")
def _(g, out):
    return g * (minimum(out, 0.0) + 1.0)


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def selu(features, name=None):
    """``scale * elu(x)`` with another slope below 0: activations normalize themselves.

    Reference: Klambauer et al., "Self-Normalizing Neural Networks" (2017).
    """
    features = convert_to_tensor(features)
    below = elu(minimum(features, 0.0)) * _SELU_ALPHA
    return where(less(features, 0.0), below, features) * _SELU_SCALE


@elementwise(type_name="Sigmoid", quiet=True, floating=True)
def sigmoid(xp, x):
    """``1 / (1 + exp(-x))``, exact to both ends.

    >>> sigmoid(0.0).numpy()
    np.float32(0.5)
    """
    # exp(-x) may overflow: 1 / inf is the right answer
    return xp.reciprocal(xp.exp(-x) + x.dtype.type(1))


@sigmoid.vjp("x")
def _(g, out):
    return g * (out - out * out)


@elementwise(type_name="Softplus", quiet=True, floating=True)
def softplus(xp, features):
    """``log(1 + exp(x))``, without overflow for large ``x``."""
    zero = xp.zeros((), features.dtype)
    return xp.maximum(features, zero) + xp.log1p(xp.exp(-xp.abs(features)))


@softplus.vjp("features")
def _(g, features):
    return g * sigmoid(features)


def log_sigmoid(x, name=None):
    """``log(sigmoid(x))``, without underflow."""
    return -softplus(-convert_to_tensor(x))


@elementwise(type_name="Softsign", zero_when=[{"features"}], floating=True)
def softsign(xp, features):
    """``x / (|x| + 1)``."""
    return features / (xp.abs(features) + features.dtype.type(1))


@softsign.vjp("features")
def _(g, out):
    rest = 1.0 - where(greater(out, 0.0), out, -out)
    return g * (rest * rest)


def silu(features, beta=1.0):
    """``x * sigmoid(beta * x)``, also known as swish."""
    features = convert_to_tensor(features)
    return features * sigmoid(features * beta)


swish = silu


# ------------------------------------------------------------------------- softmax


def is_short(logits, axis):
    """A matrix with few columns: NumPy works along them faster once they are rows."""
    return logits.ndim == 2 and axis in (-1, 1) and 0 < logits.shape[1] <= 64


def shifted_rows(xp, logits, axis=-1):
    """``logits`` less their maximum along ``axis``, and the axis along which it lies now.

    A matrix with few columns comes back transposed.
    """
    if is_short(logits, axis):
        turned = xp.array(logits.T, order="C", copy=True)
        turned -= turned.max(axis=0)
        return turned, 0
    return logits - logits.max(axis=axis, keepdims=True), axis


@primitive(name="softmax", type_name="Softmax", quiet=True, floating=True)
def _softmax(xp, logits, *, axis: Axes = -1):
    weights, lies = shifted_rows(xp, logits, axis)
    xp.exp(weights, out=weights)
    weights /= weights.sum(axis=lies, keepdims=True)
    return weights.T if is_short(logits, axis) else weights


@_softmax.vjp("logits")
def _(g, out, axis):
    weighted = g * out
    return weighted - out * reduce_sum(weighted, axis, True)


@primitive(name="log_softmax", type_name="LogSoftmax", quiet=True, floating=True)
def _log_softmax(xp, logits, *, axis: Axes = -1):
    shifted, lies = shifted_rows(xp, logits, axis)
    shifted -= xp.log(xp.exp(shifted).sum(axis=lies, keepdims=True))
    return shifted.T if is_short(logits, axis) else shifted


@_log_softmax.vjp("logits")
def _(g, out, axis):
    return g - exp(out) * reduce_sum(g, axis, True)


for _op in (_softmax, _log_softmax):

    @_op.infer
    def _(logits, axis):
        normalize_axis("softmax", axis, logits.shape.rank)
        return logits

    @_op.batch
    def _(mapped, logits, *, axis, op=_op):
        return op(logits, axis=axis % (logits.array.ndim - 1) + 1)


def softmax(logits, axis=-1, name=None):
    """``exp(x) / sum(exp(x))`` along ``axis``, without overflow.

    >>> softmax([0.0, 0.0]).numpy()
    array([0.5, 0.5], dtype=float32)
    """
    return _softmax(logits, axis=-1 if axis is None else axis)


def log_softmax(logits, axis=-1, name=None):
    """``log(softmax(x))`` along ``axis``, without underflow."""
    return _log_softmax(logits, axis=-1 if axis is None else axis)
