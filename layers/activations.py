"""Activations by name: what ``activation="relu"`` means, with Keras' arguments.

Those that TensorFlow has too are its ops; the others are composed of ops here. At a corner
the slope is Keras', but for `celu`, which has none: Keras gives 2 at 0 where it is 1.
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
    """``x`` above ``threshold``, limited to ``max_value``; with ``negative_slope`` below.

    Below the threshold it is ``negative_slope * (x - threshold)``.

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
    """``x`` where it is positive, else ``negative_slope * x``.

    Example:
        >>> keras.activations.leaky_relu([-1.0, 2.0]).numpy()
        array([-0.2,  2. ], dtype=float32)
    """
    return ops.leaky_relu(x, negative_slope)


def elu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    Reference: Clevert et al., "Fast and accurate deep network learning by exponential
    linear units" (2016).

    Example:
        >>> keras.activations.elu([-20.0, 2.0], alpha=0.5).numpy()
        array([-0.5,  2. ], dtype=float32)
    """
    value = ops.elu(x)
    return value if alpha == 1 else where(greater(value, 0.0), value, value * alpha)


def celu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """``x`` where it is positive, else ``alpha * (exp(x / alpha) - 1)``.

    The slope at 0 is 1 for any ``alpha``.

    Reference: Barron, "Continuously differentiable exponential linear units" (2017).

    Example:
        >>> keras.activations.celu([-20.0, 2.0], alpha=0.5).numpy()
        array([-0.5,  2. ], dtype=float32)
    """
    x = convert_to_tensor(x)
    return maximum(x, 0.0) + expm1(minimum(0.0, x) / alpha) * alpha  # slope 1 + 0 at 0


def glu(x: TensorLike, axis: Axis = -1) -> Tensor:
    """``a * sigmoid(b)`` of the halves ``a`` and ``b`` of ``x`` along ``axis``.

    Shapes: ``[..., 2 n]`` to ``[..., n]``.

    Raises: ``ValueError`` if that axis has an odd size.

    Reference: Dauphin et al., "Language modeling with gated convolutional networks"
    (2017).

    Example:
        >>> keras.activations.glu([3.0, 0.0]).numpy()
        array([1.5], dtype=float32)
    """
    x = convert_to_tensor(x)
    (at,) = normalize_axis("glu", axis, x.ndim)
    if x.shape[at] % 2:
        raise ValueError(
            f"glu: the axis {axis} of x must have an even size, got shape {tuple(x.shape)}"
        )
    a, b = split(x, 2, axis=axis)
    return a * sigmoid(b)


# ---------------------------------------------------------------------- straight pieces


def linear(x: TensorLike) -> Any:
    """``x`` itself: no activation."""
    return x


def hard_sigmoid(x: TensorLike) -> Tensor:
    """``x / 6 + 0.5``, limited to the range from 0 to 1.

    Example:
        >>> keras.activations.hard_sigmoid([-3.0, 0.0, 1.5]).numpy()
        array([0.  , 0.5 , 0.75], dtype=float32)
    """
    return relu6(convert_to_tensor(x) + 3.0) / 6.0


def hard_silu(x: TensorLike) -> Tensor:
    """``x * hard_sigmoid(x)``.

    Reference: Howard et al., "Searching for MobileNetV3" (2019).
    """
    x = convert_to_tensor(x)
    return x * hard_sigmoid(x)


def hard_tanh(x: TensorLike) -> Tensor:
    """``x``, limited to the range from -1 to 1.

    Example:
        >>> keras.activations.hard_tanh([-3.0, 0.5, 1.5]).numpy()
        array([-1. ,  0.5,  1. ], dtype=float32)
    """
    return clip_by_value(x, -1.0, 1.0)


def hard_shrink(x: TensorLike, threshold: float = 0.5) -> Tensor:
    """``x`` where ``|x|`` is above ``threshold``, else 0.

    Example:
        >>> keras.activations.hard_shrink([-2.0, 0.25, 2.0]).numpy()
        array([-2.,  0.,  2.], dtype=float32)
    """
    return where(greater(abs(x), threshold), x, 0.0)


def soft_shrink(x: TensorLike, threshold: float = 0.5) -> Tensor:
    """``x`` moved towards 0 by ``threshold``, and 0 where it is nearer than that.

    Example:
        >>> keras.activations.soft_shrink([-2.0, 0.25, 2.0]).numpy()
        array([-1.5,  0. ,  1.5], dtype=float32)
    """
    x = convert_to_tensor(x)
    below = where(less(x, -threshold), x + threshold, 0.0)
    return where(greater(x, threshold), x - threshold, below)


def threshold(x: TensorLike, threshold: float, default_value: float) -> Tensor:
    """``x`` where it is above ``threshold``, else ``default_value``.

    Example:
        >>> keras.activations.threshold([1.0, 2.0, 3.0], 1.5, 0.0).numpy()
        array([0., 2., 3.], dtype=float32)
    """
    x = convert_to_tensor(x)
    return where(greater(x, threshold), x, default_value)


def sparse_sigmoid(x: TensorLike) -> Tensor:
    """``(x + 1) / 2``, limited to the range from 0 to 1.

    Reference: Blondel et al., "Learning classifiers with Fenchel-Young losses" (2019).

    Example:
        >>> keras.activations.sparse_sigmoid([-2.0, 0.0, 0.5]).numpy()
        array([0.  , 0.5 , 0.75], dtype=float32)
    """
    x = convert_to_tensor(x)
    above = where(greater_equal(x, 1.0), 1.0, (x + 1.0) * 0.5)
    return where(less_equal(x, -1.0), 0.0, above)


def sparse_plus(x: TensorLike) -> Tensor:
    """0 up to -1, then ``(x + 1) ** 2 / 4`` up to 1, then ``x``.

    Example:
        >>> keras.activations.sparse_plus([-2.0, 0.0, 2.0]).numpy()
        array([0.  , 0.25, 2.  ], dtype=float32)
    """
    x = convert_to_tensor(x)
    bent = square(clip_by_value(x, -1.0, 1.0) + 1.0) * 0.25
    return where(less(x, 1.0), bent, x)


# -------------------------------------------------------------------------- smooth ones


def mish(x: TensorLike) -> Tensor:
    """``x * tanh(softplus(x))``.

    Reference: Misra, "Mish: a self regularized non-monotonic activation function" (2019).
    """
    x = convert_to_tensor(x)
    inner = clip_by_value(x, -1e3, 400.0)  # beyond, it is 0 or x with all derivatives
    return where(greater(x, 400.0), x, inner * tanh(softplus(inner)))


def squareplus(x: TensorLike, b: float = 4) -> Tensor:
    """``(x + sqrt(x ** 2 + b)) / 2``.

    Raises: ``ValueError`` for a negative ``b``.

    Reference: Barron, "Squareplus: a softplus-like algebraic rectifier" (2021).
    """
    if b < 0:
        raise ValueError(f"squareplus: b must not be negative, got {b}")
    return smooth.squareplus(x, b=float(b))


def tanh_shrink(x: TensorLike) -> Tensor:
    """``x - tanh(x)``."""
    x = convert_to_tensor(x)
    return x - tanh(x) if x.dtype.is_complex else smooth.tanh_shrink(x)


def sparsemax(x: TensorLike, axis: Axis = -1) -> Tensor:
    """``max(x - tau, 0)`` with the ``tau`` for which it sums to 1 along ``axis``.

    It is the nearest point of the simplex: like `softmax`, but zero far below the top.
    Keras 3.15 subtracts another ``tau`` than the paper, and its outputs do not sum to
    1.

    Reference: Martins & Astudillo, "From softmax to sparsemax" (2016).

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
    """The activation of this name; a callable itself, and `linear` for None.

    Raises: ``ValueError`` with the known names, for another one; ``TypeError`` if it is
    neither.

    Example:
        >>> keras.activations.get("gelu") is tw.nn.gelu, keras.activations.get(None) is keras.activations.linear
        (True, True)
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
        f"activation: must be a name, a callable or None, got {identifier!r}"
    )


def serialize(activation: Any) -> Any:
    """The name of an activation, or the config of a layer, as `get` takes it.

    Example:
        >>> keras.activations.serialize(tw.tanh)
        'tanh'
    """
    return object_config.plain(activation)


def deserialize(
    config: Any, custom_objects: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """The activation of a name, or the layer of a config: the inverse of `serialize`.

    Args: ``custom_objects``: names and functions, which are searched first.

    Raises: ``ValueError`` for an unknown name.

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
    """Return whether the outputs are known to have the shape and dtype of the inputs.

    Example:
        >>> keras.activations.keeps_shape(keras.activations.relu), keras.activations.keeps_shape(keras.activations.glu), keras.activations.keeps_shape(lambda x: x)
        (True, False, False)
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
