"""`keras.ops.nn`: activations, losses, normalization, attention, pooling, convolution."""

from __future__ import annotations

from typing import Any

from tapewright.core.dtypes import int64
from tapewright.core.rules import normalize_axis
from tapewright.core.settings.floatx import default_float
from tapewright.core.settings.floatx import epsilon as default_epsilon
from tapewright.core.tensor import Tensor
from tapewright.core.typing import Axes, Axis, DTypeLike, TensorLike
from tapewright.layers import activations
from tapewright.layers.base.spatial import checked_format
from tapewright.layers.preprocessing.categories import encoded, sparse_one_hot
from tapewright.ops.array import shape as shapes
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.conversion import complex as _complex
from tapewright.ops.array.indexing import one_hot as _one_hot
from tapewright.ops.math.elementwise import exp, maximum, square
from tapewright.ops.math.reduction import (
    reduce_any,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
)
from tapewright.ops.math.trigonometry import cos, sin
from tapewright.ops.nn import activation, attention, cross_entropy, normalization
from tapewright.ops.nn import moments as moment_ops

from .. import losses
from ..losses.probabilistic import binary_entropy
from .arrays import moveaxis
from .convolution import (
    adaptive_average_pool,
    adaptive_max_pool,
    average_pool,
    conv,
    conv_transpose,
    depthwise_conv,
    fold,
    max_pool,
    separable_conv,
    unfold,
)
from .ctc import ctc_decode as ctc_decode
from .ctc import ctc_loss as ctc_loss
from .elementwise import log10
from .linalg import norm
from .operation import FLOATS, OperationFamily
from .promotion import promote, to_floating

__all__ = [
    "adaptive_average_pool",
    "adaptive_max_pool",
    "average_pool",
    "batch_normalization",
    "binary_crossentropy",
    "categorical_crossentropy",
    "celu",
    "conv",
    "conv_transpose",
    "depth_to_space",
    "depthwise_conv",
    "dot_product_attention",
    "elu",
    "fold",
    "gelu",
    "glu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "layer_normalization",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "max_pool",
    "moments",
    "multi_hot",
    "normalize",
    "one_hot",
    "polar",
    "psnr",
    "relu",
    "relu6",
    "rms_normalization",
    "selu",
    "separable_conv",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softplus",
    "softsign",
    "space_to_depth",
    "sparse_categorical_crossentropy",
    "sparse_plus",
    "sparse_sigmoid",
    "sparsemax",
    "squareplus",
    "swish",
    "tanh_shrink",
    "threshold",
    "unfold",
]

operation = OperationFamily(__name__, "nn")


# --------------------------------------------------------------------- activations

relu = operation.unary("relu", activation.relu, kinds=FLOATS, details="""
Example:
    >>> keras.ops.relu([-1.0, 2.0]).numpy()
    array([0., 2.], dtype=float32)
""")  # fmt: skip
relu6 = operation.unary("relu6", activation.relu6)
selu = operation.floats("selu", activation.selu)
sigmoid = operation.floats("sigmoid", activation.sigmoid, same_as="sigmoid", details="""
Example:
    >>> keras.ops.sigmoid([0.0, 40.0]).numpy()
    array([0.5, 1. ], dtype=float32)
""")  # fmt: skip
softplus = operation.floats("softplus", activation.softplus)
softsign = operation.floats("softsign", activation.softsign)
log_sigmoid = operation.floats("log_sigmoid", activation.log_sigmoid, kinds="")
silu = swish = operation.floats(
    "silu",
    activation.silu,
    "SiLU activation, also known as swish: ``x * sigmoid(x)``.",
    aliases="swish",
    kinds="",
)
celu = operation(activations.celu)
elu = operation(activations.elu, same_as="elu", kinds=FLOATS)
glu = operation(activations.glu)
hard_shrink = operation(activations.hard_shrink)
hard_sigmoid = operation(activations.hard_sigmoid)
hard_tanh = operation(activations.hard_tanh)
leaky_relu = operation(activations.leaky_relu)
sparse_plus = operation(activations.sparse_plus)
sparse_sigmoid = operation(activations.sparse_sigmoid)
sparsemax = operation(activations.sparsemax)
squareplus = operation(activations.squareplus)
tanh_shrink = operation(activations.tanh_shrink)
threshold = operation(activations.threshold)
hard_silu = hard_swish = operation(activations.hard_silu, aliases="hard_swish")


@operation
def soft_shrink(x: TensorLike, threshold: float = 0.5) -> Tensor:
    """Soft shrink activation: move values towards 0 by a threshold, and the rest to 0.

    Args:
        x: Input tensor; integers are cast to `floatx`.
        threshold: Distance by which values move; smaller values become 0.

    Example:
        >>> keras.ops.soft_shrink([-2.0, 0.25, 2.0]).numpy()
        array([-1.5,  0. ,  1.5], dtype=float32)
    """
    return activations.soft_shrink(to_floating(x), threshold)


@operation
def gelu(x: TensorLike, approximate: bool = True) -> Tensor:
    """Gaussian error linear unit (GELU): ``x * P(X <= x)`` for a standard normal X.

    Args:
        x: Input tensor; integers are cast to `floatx`.
        approximate: If True, approximate the distribution function by tanh.

    Example:
        >>> keras.ops.gelu([0.0, 20.0]).numpy()
        array([ 0., 20.], dtype=float32)
    """
    return activation.gelu(to_floating(x), approximate)


@operation(same_as="softmax", kinds=FLOATS)
def softmax(x: TensorLike, axis: Axes = -1) -> Tensor:
    """Softmax activation: ``exp(x) / sum(exp(x))`` over axes.

    Args:
        x: Input tensor; integers are cast to `floatx`.
        axis: Axis or tuple of axes to normalize; None normalizes over all axes.

    Example:
        >>> keras.ops.softmax([0.0, 0.0]).numpy()
        array([0.5, 0.5], dtype=float32)
    """
    x = to_floating(x)
    if isinstance(axis, int):
        return activation.softmax(x, axis)
    return exp(log_softmax(x, axis))


@operation(same_as="log_softmax", kinds=FLOATS)
def log_softmax(x: TensorLike, axis: Axes = -1) -> Tensor:
    """Log-softmax activation: ``x - log(sum(exp(x)))`` over axes.

    Args:
        x: Input tensor; integers are cast to `floatx`.
        axis: Axis or tuple of axes to normalize; None normalizes over all axes.

    Example:
        >>> keras.ops.log_softmax([0.0, 0.0]).numpy()
        array([-0.6931472, -0.6931472], dtype=float32)
    """
    x = to_floating(x)
    if isinstance(axis, int):
        return activation.log_softmax(x, axis)
    return x - reduce_logsumexp(x, axis, True)


@operation(call="abs_ angle")
def polar(abs_: TensorLike, angle: TensorLike) -> Tensor:
    """Create complex numbers from absolute values and angles.

    Args:
        abs_: Absolute values.
        angle: Angles in radians; broadcast with ``abs_``.

    Example:
        >>> keras.ops.polar([1.0, 2.0], 0.0).numpy()
        array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    abs_, angle = promote(abs_, angle, at_least=float)
    return _complex(abs_ * cos(angle), abs_ * sin(angle))


# ------------------------------------------------------------------------- classes


@operation
def one_hot(
    x: TensorLike,
    num_classes: int,
    axis: Axis = -1,
    dtype: DTypeLike | None = None,
    sparse: bool = False,
) -> Tensor:
    """One-hot encoding: 1 at the index ``x`` along a new axis, else 0.

    Args:
        x: Indices, integers; an index out of range gives zeros.
        num_classes: Size of the new axis.
        axis: Position of the new axis in the result.
        dtype: Dtype of the result, `floatx` by default.
        sparse: If True, return a `SparseTensor` with an entry for each index, which is
            0 for an index out of range.

    Shapes:
        ``[...]`` to ``[..., num_classes]``.

    Example:
        >>> keras.ops.one_hot([1, 0], 3).numpy()
        array([[0., 1., 0.],
               [1., 0., 0.]], dtype=float32)
    """
    x, dtype = cast(x, int64), dtype or default_float()
    if sparse:
        return sparse_one_hot(x, num_classes, dtype, axis)
    return _one_hot(x, num_classes, axis=axis, dtype=dtype)


@operation
def multi_hot(
    inputs: TensorLike,
    num_classes: int | None = None,
    axis: Axis = -1,
    dtype: DTypeLike | None = None,
    sparse: bool = False,
    **kwargs: Any,
) -> Tensor:
    """Multi-hot encoding: 1 at each of the indices in a row, else 0; see `one_hot`.

    Args:
        inputs: Indices, integers ``[n]`` or ``[batch, n]``.
        num_classes: Number of classes, required.
        axis: Position of the axis of the classes.
        dtype: Dtype of the result, `floatx` by default.
        sparse: If True, return a `SparseTensor`.
        **kwargs: Accepts ``num_tokens``, an older name of ``num_classes``.

    Shapes:
        ``[n]`` to ``[num_classes]``, or ``[batch, n]`` to ``[batch, num_classes]``.

    Raises:
        ValueError: If ``sparse`` is True and ``axis`` is not the last axis.

    Example:
        >>> keras.ops.multi_hot([[1, 2], [0, 0]], 4).numpy()
        array([[0., 1., 1., 0.],
               [1., 0., 0., 0.]], dtype=float32)
    """
    num_classes = kwargs.pop("num_tokens", num_classes)
    if num_classes is None or kwargs:
        raise ValueError(
            f"multi_hot: num_classes must be given, and no unknown argument, got "
            f"num_classes={num_classes} and {kwargs}"
        )
    if sparse:
        if axis != -1:
            raise ValueError(f"multi_hot: axis must be -1 with sparse=True, got {axis}")
        inputs, dtype = cast(inputs, int64), dtype or default_float()
        return encoded(inputs, "multi_hot", num_classes, dtype, sparse=True)
    result = one_hot(inputs, num_classes, axis, dtype)
    over = 1 if result.ndim > 2 else 0
    return (
        reduce_any(result, over) if result.dtype.is_bool else reduce_max(result, over)
    )


# -------------------------------------------------------------------------- losses


def _check_shapes(who, target, output):
    output = to_floating(output)
    target = cast(target, output.dtype)
    fits = output.ndim == target.ndim and all(
        [m is None or n is None or m == n for m, n in zip(target.shape, output.shape)]
    )
    if not fits:
        raise ValueError(
            f"{who}: target and output must have the same shape, got "
            f"{tuple(target.shape)} and {tuple(output.shape)}"
        )
    return target, output


@operation(call="target output")
def binary_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False
) -> Tensor:
    """Element-wise binary cross-entropy: ``-y * log(p) - (1 - y) * log(1 - p)``.

    Args:
        target: Labels ``y`` from 0 to 1.
        output: Probabilities ``p``, or logits; in the shape of ``target``.
        from_logits: If True, ``output`` holds logits.

    Raises:
        ValueError: If the shapes differ.

    Example:
        >>> keras.ops.binary_crossentropy([1.0], [0.5]).numpy()
        array([0.6931472], dtype=float32)
    """
    target, output = _check_shapes("binary_crossentropy", target, output)
    if from_logits:
        return cross_entropy.sigmoid_cross_entropy_with_logits(target, output)
    return binary_entropy(target, output)


@operation(call="target output")
def categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: Axis = -1
) -> Tensor:
    """Categorical cross-entropy of one-hot labels: ``-sum(y * log(p))`` over the classes.

    Args:
        target: Labels ``y``, one-hot or probabilities, ``[..., classes]``.
        output: Probabilities ``p``, which are scaled to a sum of 1, or logits; in the
            shape of ``target``.
        from_logits: If True, ``output`` holds logits.
        axis: Axis of the classes.

    Shapes:
        ``[..., classes]``, both, to ``[...]``.

    Raises:
        ValueError: If the shapes differ.

    Example:
        >>> keras.ops.categorical_crossentropy([[1.0, 0.0]], [[0.5, 0.5]]).numpy()
        array([0.6931472], dtype=float32)
    """
    target, output = _check_shapes("categorical_crossentropy", target, output)
    (axis,) = normalize_axis("categorical_crossentropy", axis, output.ndim)
    return losses.categorical_crossentropy(target, output, from_logits, axis=axis)


@operation(call="target output")
def sparse_categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: Axis = -1
) -> Tensor:
    """Categorical cross-entropy of integer labels: ``-log(p[label])``.

    Args:
        target: Labels ``[...]``, integers from 0 to classes - 1.
        output: Probabilities ``p`` or logits, ``[..., classes]``.
        from_logits: If True, ``output`` holds logits.
        axis: Axis of the classes, which must be the last axis.

    Shapes:
        ``[...]`` and ``[..., classes]`` to ``[...]``.

    Raises:
        ValueError: If a label is out of range, on the CPU.

    Example:
        >>> keras.ops.sparse_categorical_crossentropy([1], [[0.5, 0.5]]).numpy()
        array([0.6931472], dtype=float32)
    """
    output = to_floating(output)
    if axis not in (-1, output.ndim - 1):
        raise ValueError(
            f"sparse_categorical_crossentropy: axis must be the last axis, got {axis}"
        )
    return losses.sparse_categorical_crossentropy(target, output, from_logits)


dot_product_attention = operation(
    attention.dot_product_attention, call="query key value bias mask scale"
)


# ------------------------------------------------------------------- normalization


@operation
def moments(
    x: TensorLike, axes: Axes, keepdims: bool = False, synchronized: bool = False
) -> tuple[Tensor, Tensor]:
    """Compute the mean and the variance over axes.

    Args:
        x: Input tensor.
        axes: Axis or axes to reduce.
        keepdims: If True, keep reduced axes with size 1.
        synchronized: Ignored.

    Returns:
        ``(mean, variance)``.

    Example:
        >>> mean, variance = keras.ops.moments([1.0, 3.0], axes=[0])
        >>> mean.numpy(), variance.numpy()
        (np.float32(2.0), np.float32(1.0))
    """
    return moment_ops.moments(to_floating(x), axes, keepdims=keepdims)


@operation(call="x mean variance offset scale", class_name="BatchNorm", fill_call=True)
def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    axis: Axis,
    offset: int | None = None,
    scale: TensorLike | None = None,
    epsilon: float = 0.001,
) -> Tensor:
    """Batch normalization: ``(x - mean) / sqrt(variance + epsilon) * scale + offset``.

    Args:
        x: Input tensor.
        mean: Means, a vector along ``axis``.
        variance: Variances, a vector along ``axis``.
        axis: Axis of the features.
        offset: Offsets, a vector along ``axis``, or None.
        scale: Factors, a vector along ``axis``, or None.
        epsilon: Small number that avoids a division by zero.

    Shapes:
        ``mean``, ``variance``, ``offset`` and ``scale`` ``[x.shape[axis]]``.

    Example:
        >>> x, mean, variance = [[1.0], [3.0]], [2.0], [1.0]
        >>> keras.ops.batch_normalization(x, mean, variance, axis=-1, epsilon=0.0).numpy()
        array([[-1.],
               [ 1.]], dtype=float32)
    """
    x = to_floating(x)
    (axis,) = normalize_axis("batch_normalization", axis, x.ndim)
    line = [-1 if i == axis else 1 for i in range(x.ndim)]
    mean, variance, offset, scale = (
        None if v is None else shapes.reshape(cast(v, x.dtype), line)
        for v in (mean, variance, offset, scale)
    )
    return normalization.batch_normalization(x, mean, variance, offset, scale, epsilon)


@operation(
    call="x gamma beta",
    class_name="LayerNorm",
    fill_call=True,
    fixed={"rms_scaling": False},
)
def layer_normalization(
    x: TensorLike,
    gamma: TensorLike | None = None,
    beta: TensorLike | None = None,
    axis: Axes = -1,
    epsilon: float | None = None,
) -> Tensor:
    """Layer normalization: ``(x - mean) / sqrt(variance + epsilon) * gamma + beta``.

    Args:
        x: Input tensor.
        gamma: Factors, in the shape of the normalized axes, or None.
        beta: Offsets, in the shape of the normalized axes, or None.
        axis: Axis or axes to normalize.
        epsilon: Small number that avoids a division by zero, 1e-7 by default.

    Example:
        >>> keras.ops.layer_normalization([[1.0, 3.0]]).numpy()
        array([[-1.,  1.]], dtype=float32)
    """
    return normalization.layer_normalization(to_floating(x), gamma, beta, axis, epsilon)


@operation(call="x scale", class_name="RMSNorm", fill_call=True)
def rms_normalization(
    x: TensorLike,
    scale: TensorLike | None = None,
    axis: Axes = -1,
    epsilon: float | None = None,
) -> Tensor:
    """Root mean square normalization: ``x / sqrt(mean(x ** 2) + epsilon) * scale``.

    Args:
        x: Input tensor.
        scale: Factors, in the shape of the normalized axes, or None.
        axis: Axis or axes to normalize.
        epsilon: Small number that avoids a division by zero, 1e-7 by default.

    Example:
        >>> keras.ops.rms_normalization([[1.0, 7.0]]).numpy()
        array([[0.2, 1.4]], dtype=float32)
    """
    return normalization.rms_normalization(to_floating(x), scale, axis, epsilon)


@operation
def normalize(
    x: TensorLike, axis: Axis = -1, order: int = 2, epsilon: float | None = None
) -> Tensor:
    """Divide a tensor by its norm along an axis.

    Args:
        x: Input tensor.
        axis: Axis to normalize.
        order: Order p of the norm ``sum(|x| ** p) ** (1 / p)``.
        epsilon: Least value of the norm, 1e-7 by default.

    Raises:
        ValueError: If ``order`` is below 1.

    Example:
        >>> keras.ops.normalize([3.0, 4.0]).numpy()
        array([0.6, 0.8], dtype=float32)
    """
    if not isinstance(order, int) or order < 1:
        raise ValueError(
            f"normalize: order must be an integer of 1 or more, got {order!r}"
        )
    x, epsilon = to_floating(x), default_epsilon() if epsilon is None else epsilon
    x = shapes.expand_dims(x, 0) if x.ndim == 0 else x
    if order == 2:
        return normalization.l2_normalize(x, axis, epsilon**2)
    return x / maximum(norm(x, order, axis, True), epsilon)


@operation(call="x1 x2", class_name="PSNR")
def psnr(x1: TensorLike, x2: TensorLike, max_val: float) -> Tensor:
    """Peak signal-to-noise ratio (PSNR) of two tensors in decibels.

    It is ``10 log10(max_val ** 2 / mean((x1 - x2) ** 2))``, a scalar.

    Args:
        x1: First tensor.
        x2: Second tensor; broadcasts with ``x1``.
        max_val: Largest possible value of the signal.

    Example:
        >>> keras.ops.psnr([0.0], [0.1], max_val=1.0).numpy()
        np.float32(20.0)
    """
    x1, x2 = promote(x1, x2, at_least=float)
    noise = reduce_mean(square(x1 - x2))
    return log10(cast(max_val, x1.dtype)) * 20.0 - log10(noise) * 10.0


# ----------------------------------------------------------------- blocks of pixels


@operation
def depth_to_space(
    x: TensorLike, block_size: int, data_format: str = "channels_last"
) -> Tensor:
    """Rearrange channels into blocks of pixels, the inverse of `space_to_depth`.

    Args:
        x: Images ``[batch, height, width, channels]``.
        block_size: Height and width of the blocks.
        data_format: "channels_last" or "channels_first".

    Shapes:
        ``[batch, height, width, channels]`` to ``[batch, height * block_size, width *
        block_size, channels / block_size ** 2]``; in "channels_first" the channels are
        axis 1.

    Raises:
        ValueError: If ``data_format`` is unknown.
    """
    return _channels_last(
        "depth_to_space", shapes.depth_to_space, x, block_size, data_format
    )


@operation
def space_to_depth(
    x: TensorLike, block_size: int, data_format: str = "channels_last"
) -> Tensor:
    """Rearrange blocks of pixels into channels, the inverse of `depth_to_space`.

    Args:
        x: Images ``[batch, height, width, channels]``.
        block_size: Height and width of the blocks.
        data_format: "channels_last" or "channels_first".

    Shapes:
        ``[batch, height, width, channels]`` to ``[batch, height / block_size, width /
        block_size, channels * block_size ** 2]``; in "channels_first" the channels are
        axis 1.

    Raises:
        ValueError: If ``data_format`` is unknown.
    """
    return _channels_last(
        "space_to_depth", shapes.space_to_depth, x, block_size, data_format
    )


def _channels_last(who, op, x, block_size, data_format):
    if checked_format(who, data_format) == "channels_last":
        return op(x, block_size)
    return moveaxis(op(moveaxis(x, 1, -1), block_size), -1, 1)
