"""Activation functions by name, as in ``activation="relu"``, with Keras' arguments.

Activations that TensorFlow also has are its ops; the others are composed of ops here.
At points without a derivative the slope is the same as in Keras, except for `celu`, which
is differentiable at 0: its slope there is 1, while Keras returns 2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapewright.core.rules import normalize_axis
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import Axis, TensorLike
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import ones_like
from tapewright.ops.array.joining import split
from tapewright.ops.array.sorting import sort
from tapewright.ops.math import smooth
from tapewright.ops.math.comparison import (
    greater,
    greater_equal,
    less,
    less_equal,
    where,
)
from tapewright.ops.math.elementwise import (
    abs,
    clip_by_value,
    exp,
    expm1,
    maximum,
    minimum,
    square,
)
from tapewright.ops.math.reduction import reduce_sum
from tapewright.ops.math.scan import cumsum
from tapewright.ops.math.trigonometry import tanh
from tapewright.ops.nn import activation as ops
from tapewright.ops.nn.activation import (
    gelu,
    log_sigmoid,
    log_softmax,
    relu6,
    selu,
    sigmoid,
    silu,
    softmax,
    softplus,
    softsign,
)
from tapewright.serialization import object_config, registry

__all__ = [
    "celu",
    "deserialize",
    "elu",
    "exponential",
    "gelu",
    "get",
    "glu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "keeps_shape",
    "leaky_relu",
    "linear",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "selu",
    "serialize",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softplus",
    "softsign",
    "sparse_plus",
    "sparse_sigmoid",
    "sparsemax",
    "squareplus",
    "swish",
    "tanh",
    "tanh_shrink",
    "threshold",
]


# --------------------------------------------------------------------- relu and its kin


def relu(
    x: TensorLike,
    negative_slope: float = 0.0,
    max_value: float | None = None,
    threshold: float = 0.0,
) -> Tensor:
    """Rectified linear unit (ReLU): ``max(x, 0)`` by default.

    Entries above ``threshold`` are kept and clipped to ``max_value``; the others become
    ``negative_slope * (x - threshold)``.

    Args:
        x: Input tensor.
        negative_slope: Slope below ``threshold``.
        max_value: Upper bound of the outputs, or None for no bound.
        threshold: Value up to which entries are scaled by ``negative_slope``.

    Example:
        >>> keras.activations.relu([-10.0, 0.5, 8.0]).numpy()
        array([0. , 0.5, 8. ], dtype=float32)
        >>> keras.activations.relu([-10.0, 0.5, 8.0], negative_slope=0.1, max_value=6.0).numpy()
        array([-1. ,  0.5,  6. ], dtype=float32)
    """
    if negative_slope == 0 and max_value is None and threshold == 0:
        return ops.relu(x)
    if threshold == 0 and max_value is None:
        return ops.leaky_relu(x, negative_slope)
    x = convert_to_tensor(x)
    if threshold == 0 and max_value == 6:
        kept = relu6(x)
    else:
        kept = ops.relu(x) if threshold == 0 else where(greater(x, threshold), x, 0.0)
        kept = kept if max_value is None else clip_by_value(kept, 0.0, max_value)
    if negative_slope == 0:
        return kept
    return kept - ops.relu(threshold - x) * negative_slope


def leaky_relu(x: TensorLike, negative_slope: float = 0.2) -> Tensor:
    """Leaky ReLU: ``x`` where it is positive, else ``negative_slope * x``.

    Args:
        x: Input tensor.
        negative_slope: Slope for negative entries.

    Example:
        >>> keras.activations.leaky_relu([-1.0, 2.0]).numpy()
        array([-0.2,  2. ], dtype=float32)
    """
    return ops.leaky_relu(x, negative_slope)


def elu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """Exponential linear unit (ELU): ``x`` if positive, else ``alpha * (exp(x) - 1)``.

    Args:
        x: Input tensor.
        alpha: Scale of the negative part.

    References:
        Clevert et al., "Fast and accurate deep network learning by exponential linear
        units" (2016).

    Example:
        >>> keras.activations.elu([-20.0, 2.0], alpha=0.5).numpy()
        array([-0.5,  2. ], dtype=float32)
    """
    value = ops.elu(x)
    return value if alpha == 1 else where(greater(value, 0.0), value, value * alpha)


def celu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """Continuously differentiable exponential linear unit (CELU).

    ``x`` where it is positive, else ``alpha * (exp(x / alpha) - 1)``. The slope at 0 is
    1 for any ``alpha``.

    Args:
        x: Input tensor.
        alpha: Scale of the negative part.

    References:
        Barron, "Continuously differentiable exponential linear units" (2017).

    Example:
        >>> keras.activations.celu([-20.0, 2.0], alpha=0.5).numpy()
        array([-0.5,  2. ], dtype=float32)
    """
    x = convert_to_tensor(x)
    return maximum(x, 0.0) + expm1(minimum(0.0, x) / alpha) * alpha  # slope 1 + 0 at 0


def glu(x: TensorLike, axis: Axis = -1) -> Tensor:
    """Gated linear unit (GLU): ``a * sigmoid(b)`` for the halves ``a`` and ``b`` of ``x``.

    Args:
        x: Input tensor.
        axis: Axis along which to split ``x`` into halves.

    Shapes:
        ``[..., 2 n]`` to ``[..., n]``.

    Raises:
        ValueError: If ``axis`` has an odd size.

    References:
        Dauphin et al., "Language modeling with gated convolutional networks" (2017).

    Example:
        >>> keras.activations.glu([3.0, 0.0]).numpy()
        array([1.5], dtype=float32)
    """
    x = convert_to_tensor(x)
    (at,) = normalize_axis("glu", axis, x.ndim)
    if x.shape[at] % 2:
        raise ValueError(
            f"glu: axis {axis} of x must have an even size, got shape {tuple(x.shape)}"
        )
    a, b = split(x, 2, axis=axis)
    return a * sigmoid(b)


# ---------------------------------------------------------------------- straight pieces


def linear(x: TensorLike) -> Any:
    """Identity function, for no activation: return ``x``.

    Args:
        x: Input tensor.

    Example:
        >>> keras.activations.linear(tw.constant([-1.0, 2.0])).numpy()
        array([-1.,  2.], dtype=float32)
    """
    return x


def hard_sigmoid(x: TensorLike) -> Tensor:
    """Piecewise linear approximation of the sigmoid: ``x / 6 + 0.5`` clipped to [0, 1].

    Args:
        x: Input tensor.

    Example:
        >>> keras.activations.hard_sigmoid([-3.0, 0.0, 1.5]).numpy()
        array([0.  , 0.5 , 0.75], dtype=float32)
    """
    return relu6(convert_to_tensor(x) + 3.0) / 6.0


def hard_silu(x: TensorLike) -> Tensor:
    """Hard SiLU, also called hard swish: ``x * hard_sigmoid(x)``.

    Args:
        x: Input tensor.

    References:
        Howard et al., "Searching for MobileNetV3" (2019).

    Example:
        >>> keras.activations.hard_silu([-3.0, 1.5, 3.0]).numpy()
        array([-0.   ,  1.125,  3.   ], dtype=float32)
    """
    x = convert_to_tensor(x)
    return x * hard_sigmoid(x)


def hard_tanh(x: TensorLike) -> Tensor:
    """Hard tanh: ``x`` clipped to [-1, 1].

    Args:
        x: Input tensor.

    Example:
        >>> keras.activations.hard_tanh([-3.0, 0.5, 1.5]).numpy()
        array([-1. ,  0.5,  1. ], dtype=float32)
    """
    return clip_by_value(x, -1.0, 1.0)


def hard_shrink(x: TensorLike, threshold: float = 0.5) -> Tensor:
    """Hard shrinkage: ``x`` where ``|x|`` is above ``threshold``, else 0.

    Args:
        x: Input tensor.
        threshold: Magnitude up to which entries become 0.

    Example:
        >>> keras.activations.hard_shrink([-2.0, 0.25, 2.0]).numpy()
        array([-2.,  0.,  2.], dtype=float32)
    """
    return where(greater(abs(x), threshold), x, 0.0)


def soft_shrink(x: TensorLike, threshold: float = 0.5) -> Tensor:
    """Soft shrinkage: ``sign(x) * max(|x| - threshold, 0)``.

    Args:
        x: Input tensor.
        threshold: Amount by which entries move towards 0.

    Example:
        >>> keras.activations.soft_shrink([-2.0, 0.25, 2.0]).numpy()
        array([-1.5,  0. ,  1.5], dtype=float32)
    """
    x = convert_to_tensor(x)
    below = where(less(x, -threshold), x + threshold, 0.0)
    return where(greater(x, threshold), x - threshold, below)


def threshold(x: TensorLike, threshold: float, default_value: float) -> Tensor:
    """Threshold activation: ``x`` where it is above ``threshold``, else ``default_value``.

    Args:
        x: Input tensor.
        threshold: Value that an entry must exceed to be kept.
        default_value: Replacement of the other entries.

    Example:
        >>> keras.activations.threshold([1.0, 2.0, 3.0], 1.5, 0.0).numpy()
        array([0., 2., 3.], dtype=float32)
    """
    x = convert_to_tensor(x)
    return where(greater(x, threshold), x, default_value)


def sparse_sigmoid(x: TensorLike) -> Tensor:
    """Sparse sigmoid: ``(x + 1) / 2`` clipped to [0, 1].

    Args:
        x: Input tensor.

    References:
        Blondel et al., "Learning classifiers with Fenchel-Young losses" (2019).

    Example:
        >>> keras.activations.sparse_sigmoid([-2.0, 0.0, 0.5]).numpy()
        array([0.  , 0.5 , 0.75], dtype=float32)
    """
    x = convert_to_tensor(x)
    above = where(greater_equal(x, 1.0), 1.0, (x + 1.0) * 0.5)
    return where(less_equal(x, -1.0), 0.0, above)


def sparse_plus(x: TensorLike) -> Tensor:
    """Sparse plus: 0 up to -1, ``(x + 1) ** 2 / 4`` up to 1, ``x`` above.

    Args:
        x: Input tensor.

    Example:
        >>> keras.activations.sparse_plus([-2.0, 0.0, 2.0]).numpy()
        array([0.  , 0.25, 2.  ], dtype=float32)
    """
    x = convert_to_tensor(x)
    bent = square(clip_by_value(x, -1.0, 1.0) + 1.0) * 0.25
    return where(less(x, 1.0), bent, x)


# -------------------------------------------------------------------------- smooth ones


def mish(x: TensorLike) -> Tensor:
    """Mish activation: ``x * tanh(softplus(x))``.

    Args:
        x: Input tensor.

    References:
        Misra, "Mish: a self regularized non-monotonic activation function" (2019).

    Example:
        >>> keras.activations.mish([-1.0, 0.0, 2.0]).numpy().round(3)
        array([-0.303,  0.   ,  1.944], dtype=float32)
    """
    x = convert_to_tensor(x)
    inner = clip_by_value(x, -1e3, 400.0)  # beyond, it is 0 or x with all derivatives
    return where(greater(x, 400.0), x, inner * tanh(softplus(inner)))


def squareplus(x: TensorLike, b: float = 4) -> Tensor:
    """Squareplus activation: ``(x + sqrt(x ** 2 + b)) / 2``.

    Args:
        x: Input tensor.
        b: Smoothness, 0 or more; 0 yields ReLU.

    Raises:
        ValueError: If ``b`` is negative.

    References:
        Barron, "Squareplus: a softplus-like algebraic rectifier" (2021).

    Example:
        >>> keras.activations.squareplus([-1.5, 0.0, 1.5]).numpy()
        array([0.5, 1. , 2. ], dtype=float32)
    """
    if b < 0:
        raise ValueError(f"squareplus: b must not be negative, got {b}")
    return smooth.squareplus(x, b=float(b))


def tanh_shrink(x: TensorLike) -> Tensor:
    """Tanh shrinkage: ``x - tanh(x)``.

    Args:
        x: Input tensor.

    Example:
        >>> keras.activations.tanh_shrink([-1.0, 0.0, 1.0]).numpy().round(3)
        array([-0.238,  0.   ,  0.238], dtype=float32)
    """
    x = convert_to_tensor(x)
    return x - tanh(x) if x.dtype.is_complex else smooth.tanh_shrink(x)


def sparsemax(x: TensorLike, axis: Axis = -1) -> Tensor:
    """Sparsemax: ``max(x - tau, 0)``, with ``tau`` such that the result sums to 1.

    The result is the projection of ``x`` onto the probability simplex: like `softmax`,
    but exactly 0 for entries far below the maximum. Keras 3.15 deviates from the paper
    in the choice of ``tau``, so its outputs do not sum to 1.

    Args:
        x: Input tensor.
        axis: Axis along which the result sums to 1.

    References:
        Martins & Astudillo, "From softmax to sparsemax" (2016).

    Example:
        >>> keras.activations.sparsemax([1.0, 0.5, -1.0]).numpy()
        array([0.75, 0.25, 0.  ], dtype=float32)
    """
    x = convert_to_tensor(x)
    falling = sort(x, axis, "DESCENDING")
    sums, count = cumsum(falling, axis=axis), cumsum(ones_like(x), axis=axis)
    # equation 4: as many of the largest entries count as stay above the tau they give
    inside = greater(falling * count + 1.0, sums)
    size = reduce_sum(cast(inside, x.dtype), axis, True)
    total = reduce_sum(where(inside, falling, 0.0), axis, True)
    return ops.relu(x - (total - 1.0) / size)


exponential = exp
swish = silu
hard_swish = hard_silu


# --------------------------------------------------------------------- names and objects


def get(identifier: Any) -> Callable[..., Any]:
    """Return the activation with the given name.

    Args:
        identifier: Name of an activation, config of a layer, callable (returned as is),
            or None for `linear`.

    Raises:
        ValueError: If no activation has this name; the message lists the known names.
        TypeError: If ``identifier`` is of another type.

    Example:
        >>> keras.activations.get("gelu") is tw.nn.gelu
        True
        >>> keras.activations.get(None) is keras.activations.linear
        True
    """
    if identifier is None:
        return linear
    if isinstance(identifier, str):
        return registry.find("activation", identifier)
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if callable(identifier):
        return identifier
    raise TypeError(
        f"activation must be a name, a callable or None, got {identifier!r}"
    )


def serialize(activation: Any) -> Any:
    """Return the name of an activation function, or the config of a layer.

    Args:
        activation: Activation function or layer.

    Returns:
        A name or config that `get` accepts.

    Example:
        >>> keras.activations.serialize(tw.tanh)
        'tanh'
    """
    return object_config.plain(activation)


def deserialize(
    config: Any, custom_objects: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """Return the activation with the given name or config: the inverse of `serialize`.

    Args:
        config: Name of an activation, or config of a layer or function.
        custom_objects: Dict from names to functions, looked up before the known
            activations.

    Raises:
        ValueError: If the name is unknown.

    Example:
        >>> keras.activations.deserialize("relu") is keras.activations.relu
        True
    """
    with registry.custom_object_scope(custom_objects):
        if isinstance(config, dict) and config.get("class_name") == "function":
            config = config["config"]  # as Keras writes functions of one's own
        if isinstance(config, dict):
            return object_config.deserialize("layer", config)
        return get(config)


def keeps_shape(activation: Any) -> bool:
    """Return whether an activation is known to preserve the shape and dtype of its input.

    Args:
        activation: Function of a tensor, or None for no activation.

    Example:
        >>> from tapewright.keras.activations import keeps_shape
        >>> keeps_shape(keras.activations.relu), keeps_shape(keras.activations.glu)
        (True, False)
        >>> keeps_shape(lambda x: x)
        False
    """
    return activation is None or any([activation is each for each in _KEEPING])


# The first name of a function is the one that configs mention.
_ALIASES = ["swish", "hard_swish"]
_OTHERS = {"deserialize", "get", "keeps_shape", "serialize", *_ALIASES}
_KEEPING = set()
for _name in sorted(set(__all__) - _OTHERS) + _ALIASES:
    registry.register("activation", _name, globals()[_name])
    if _name != "glu":
        _KEEPING.add(globals()[_name])
