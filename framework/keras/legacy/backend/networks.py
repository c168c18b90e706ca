"""Network functions of older Keras: convolution, losses, padding, recurrence, CTC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from tapewright.compiler.control_flow import map_fn as loops
from tapewright.core.nest import flatten, map_structure
from tapewright.core.settings.floatx import epsilon
from tapewright.core.tensor import Tensor, convert_to_tensor, is_tensor
from tapewright.core.typing import ShapeLike, TensorLike
from tapewright.layers.base.spatial import checked_format, format_of_ops
from tapewright.ops.array import conversion, creation, joining
from tapewright.ops.array import gather as gathering
from tapewright.ops.array import shape as shapes
from tapewright.ops.convolution import conv as convolutions
from tapewright.ops.image.resizing import resize
from tapewright.ops.math.comparison import greater, less, less_equal, where
from tapewright.ops.math.elementwise import clip_by_value, log, pow
from tapewright.ops.math.reduction import reduce_any, reduce_max, reduce_sum
from tapewright.ops.nn import activation, bias, cross_entropy, normalization
from tapewright.ops.nn.dropout import dropout as apply_dropout

from ... import losses
from ...ops import ctc
from ...ops import nn as ops

__all__ = [
    "batch_normalization",
    "bias_add",
    "binary_crossentropy",
    "binary_focal_crossentropy",
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "ctc_batch_cost",
    "ctc_decode",
    "depthwise_conv2d",
    "dropout",
    "pool2d",
    "pool3d",
    "resize_images",
    "resize_volumes",
    "rnn",
    "separable_conv2d",
    "sparse_categorical_crossentropy",
    "spatial_2d_padding",
    "spatial_3d_padding",
    "temporal_padding",
]


Format = Literal["channels_last", "channels_first"]
Padding = Literal["valid", "same"]
Pair = tuple[int, int]


# -------------------------------------------------------------------------- convolutions


def conv1d(
    x: TensorLike,
    kernel: TensorLike,
    strides: int = 1,
    padding: str = "valid",
    data_format: Format | None = None,
    dilation_rate: int = 1,
) -> Tensor:
    """Convolve sequences.

    Args:
        x: Sequences ``[batch, steps, channels]``.
        kernel: Kernel ``[window, channels, filters]``.
        strides: Distance between windows.
        padding: "valid", "same" or "causal".
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.
        dilation_rate: Distance between the entries of a window.
    """
    if padding == "causal":
        kernel = convert_to_tensor(kernel)
        x = temporal_padding(x, (dilation_rate * (kernel.shape[0] - 1), 0))
        padding = "valid"
    return ops.conv(x, kernel, strides, padding, data_format, dilation_rate)


def conv2d(
    x: TensorLike,
    kernel: TensorLike,
    strides: Pair = (1, 1),
    padding: Padding = "valid",
    data_format: Format | None = None,
    dilation_rate: Pair = (1, 1),
) -> Tensor:
    """Convolve images.

    Args:
        x: Images ``[batch, height, width, channels]``.
        kernel: Kernel ``[height, width, channels, filters]``.
        strides: Distance between windows along height and width.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.
        dilation_rate: Distance between the entries of a window along height and width.
    """
    return ops.conv(x, kernel, strides, padding, data_format, dilation_rate)


def conv3d(
    x: TensorLike,
    kernel: TensorLike,
    strides: tuple[int, int, int] = (1, 1, 1),
    padding: Padding = "valid",
    data_format: Format | None = None,
    dilation_rate: tuple[int, int, int] = (1, 1, 1),
) -> Tensor:
    """Convolve volumes.

    Args:
        x: Volumes ``[batch, depth, height, width, channels]``.
        kernel: Kernel ``[depth, height, width, channels, filters]``.
        strides: Distance between windows along each axis.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.
        dilation_rate: Distance between the entries of a window along each axis.
    """
    return ops.conv(x, kernel, strides, padding, data_format, dilation_rate)


def depthwise_conv2d(
    x: TensorLike,
    depthwise_kernel: TensorLike,
    strides: Pair = (1, 1),
    padding: Padding = "valid",
    data_format: Format | None = None,
    dilation_rate: Pair = (1, 1),
) -> Tensor:
    """Depthwise convolution of images: convolve each channel with separate filters.

    Args:
        x: Images ``[batch, height, width, channels]``.
        depthwise_kernel: Kernel ``[height, width, channels, multiplier]``.
        strides: Distance between windows along height and width.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.
        dilation_rate: Distance between the entries of a window along height and width.
    """
    options = strides, padding, data_format, dilation_rate
    return ops.depthwise_conv(x, depthwise_kernel, *options)


def separable_conv2d(
    x: TensorLike,
    depthwise_kernel: TensorLike,
    pointwise_kernel: TensorLike,
    strides: Pair = (1, 1),
    padding: Padding = "valid",
    data_format: Format | None = None,
    dilation_rate: Pair = (1, 1),
) -> Tensor:
    """Separable convolution of images: convolve each channel, then mix the channels.

    Args:
        x: Images ``[batch, height, width, channels]``.
        depthwise_kernel: Kernel ``[height, width, channels, multiplier]``.
        pointwise_kernel: Kernel ``[1, 1, channels * multiplier, filters]``.
        strides: Distance between windows along height and width.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.
        dilation_rate: Distance between the entries of a window along height and width.
    """
    options = strides, padding, data_format, dilation_rate
    return ops.separable_conv(x, depthwise_kernel, pointwise_kernel, *options)


def conv2d_transpose(
    x: TensorLike,
    kernel: TensorLike,
    output_shape: ShapeLike,
    strides: Pair = (1, 1),
    padding: Padding = "valid",
    data_format: Format | None = None,
    dilation_rate: Pair = (1, 1),
) -> Tensor:
    """Transposed convolution of images, the adjoint of `conv2d`.

    Args:
        x: Images ``[batch, height, width, channels]``.
        kernel: Kernel ``[height, width, filters, channels]``.
        output_shape: Shape of the result, with the batch.
        strides: Distance between windows along height and width.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.
        dilation_rate: Distance between the entries of a window along height and width.
    """
    layout = format_of_ops(checked_format("conv2d_transpose", data_format), 2)
    x = convert_to_tensor(x)
    if output_shape[0] is None:
        output_shape = (shapes.shape(x)[0], *output_shape[1:])
    return convolutions.conv2d_transpose(
        x, kernel, output_shape, strides, padding.upper(), layout, dilation_rate
    )


def pool2d(
    x: TensorLike,
    pool_size: Pair,
    strides: Pair = (1, 1),
    padding: Padding = "valid",
    data_format: Format | None = None,
    pool_mode: Literal["max", "avg"] = "max",
) -> Tensor:
    """Pool images: take the maximum or the mean of each window.

    Args:
        x: Images ``[batch, height, width, channels]``.
        pool_size: Height and width of the windows.
        strides: Distance between windows along height and width.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.
        pool_mode: "max" or "avg".
    """
    return _pool(x, pool_size, strides, padding, data_format, pool_mode)


def pool3d(
    x: TensorLike,
    pool_size: tuple[int, int, int],
    strides: tuple[int, int, int] = (1, 1, 1),
    padding: Padding = "valid",
    data_format: Format | None = None,
    pool_mode: Literal["max", "avg"] = "max",
) -> Tensor:
    """Pool volumes: take the maximum or the mean of each window.

    Args:
        x: Volumes ``[batch, depth, height, width, channels]``.
        pool_size: Size of the windows along each axis.
        strides: Distance between windows along each axis.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.
        pool_mode: "max" or "avg".
    """
    return _pool(x, pool_size, strides, padding, data_format, pool_mode)


def _pool(x, pool_size, strides, padding, data_format, pool_mode):
    pools = {"max": ops.max_pool, "avg": ops.average_pool}
    if pool_mode not in pools:
        raise ValueError(f"pool: pool_mode must be 'max' or 'avg', got {pool_mode!r}")
    return pools[pool_mode](x, pool_size, strides, padding, data_format)


def bias_add(
    x: TensorLike, bias: TensorLike, data_format: Format | None = None
) -> Tensor:
    """Add a bias to each channel, or a bias with all axes but the batch.

    Args:
        x: Input tensor.
        bias: Vector with a number for each channel, or a tensor in the shape of an
            example with the channels last; "channels_first" reshapes it, as in Keras.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.

    Raises:
        ValueError: If ``bias`` has another number of axes.
    """
    x, b = convert_to_tensor(x), convert_to_tensor(bias)
    first = checked_format("bias_add", data_format) == "channels_first"
    rank, own = len(x.shape), len(b.shape)
    if own not in (1, rank - 1):
        raise ValueError(
            f"bias_add: bias must have 1 or {rank - 1} axes, got shape {tuple(b.shape)}"
        )
    if own == 1:
        return _add_bias(x, b, "NCHW" if first else "NHWC")
    if first:  # Keras does not move the values
        b = shapes.reshape(b, (b.shape[-1], *b.shape[:-1]))
    return x + shapes.expand_dims(b, 0)


_add_bias = bias.bias_add


def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    var: TensorLike,
    beta: TensorLike | None,
    gamma: TensorLike | None,
    axis: int = -1,
    epsilon: float = 1e-3,
) -> Tensor:
    """Batch normalization: ``(x - mean) / sqrt(var + epsilon) * gamma + beta``.

    Args:
        x: Input tensor.
        mean: Means; broadcast with ``x``.
        var: Variances; broadcast with ``x``.
        beta: Offsets that broadcast with ``x``, or None.
        gamma: Factors that broadcast with ``x``, or None.
        axis: Ignored, as in Keras.
        epsilon: Small number that avoids a division by zero.
    """
    return normalization.batch_normalization(x, mean, var, beta, gamma, epsilon)


def dropout(
    x: TensorLike,
    level: float,
    noise_shape: ShapeLike | None = None,
    seed: int | None = None,
) -> Tensor:
    """Set a random share of the values to 0, and scale up the others.

    Args:
        x: Input tensor.
        level: Share of the values to drop, from 0 to 1.
        noise_shape: Shape of the mask, which broadcasts to ``x``; by default the shape
            of ``x``.
        seed: Integer seed, or None for a random seed.
    """
    return apply_dropout(x, level, noise_shape, seed)


# ------------------------------------------------------------------------------- padding


def temporal_padding(x: TensorLike, padding: Pair = (1, 1)) -> Tensor:
    """Pad sequences with zeros before and after the steps.

    Args:
        x: Sequences ``[batch, steps, channels]``.
        padding: Numbers of zeros ``(before, after)``.
    """
    return joining.pad(x, [[0, 0], list(padding), [0, 0]])


def spatial_2d_padding(
    x: TensorLike,
    padding: tuple[Pair, Pair] = ((1, 1), (1, 1)),
    data_format: Format | None = None,
) -> Tensor:
    """Pad images with zeros.

    Args:
        x: Images ``[batch, height, width, channels]``.
        padding: Numbers of zeros ``(before, after)`` for height and width.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.
    """
    return _pad("spatial_2d_padding", x, padding, data_format, 2)


def spatial_3d_padding(
    x: TensorLike,
    padding: tuple[Pair, Pair, Pair] = ((1, 1), (1, 1), (1, 1)),
    data_format: Format | None = None,
) -> Tensor:
    """Pad volumes with zeros.

    Args:
        x: Volumes ``[batch, depth, height, width, channels]``.
        padding: Numbers of zeros ``(before, after)`` for each axis.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.
    """
    return _pad("spatial_3d_padding", x, padding, data_format, 3)


def _pad(who, x, padding, data_format, rank):
    if [len(pair) for pair in padding] != [2] * rank:
        raise ValueError(
            f"{who}: padding must be {rank} pairs of ints, got {padding!r}"
        )
    widths = [list(pair) for pair in padding]
    if checked_format(who, data_format) == "channels_first":
        return joining.pad(x, [[0, 0], [0, 0], *widths])
    return joining.pad(x, [[0, 0], *widths, [0, 0]])


def resize_images(
    x: TensorLike,
    height_factor: int,
    width_factor: int,
    data_format: Format,
    interpolation: str = "nearest",
) -> Tensor:
    """Enlarge images by integer factors.

    Args:
        x: Images ``[batch, height, width, channels]``.
        height_factor: Factor of the height.
        width_factor: Factor of the width.
        data_format: "channels_last" or "channels_first".
        interpolation: Method of `tw.image.resize`.
    """
    x = convert_to_tensor(x)
    first = checked_format("resize_images", data_format) == "channels_first"
    images = shapes.transpose(x, (0, 2, 3, 1)) if first else x
    size = shapes.shape(images)[1:3] * [height_factor, width_factor]
    if None not in tuple(images.shape[1:3]):
        _, height, width, _ = images.shape
        size = (height * height_factor, width * width_factor)
    images = resize(images, size, interpolation)
    return shapes.transpose(images, (0, 3, 1, 2)) if first else images


def resize_volumes(
    x: TensorLike,
    depth_factor: int,
    height_factor: int,
    width_factor: int,
    data_format: Format,
) -> Tensor:
    """Enlarge volumes by integer factors, repeating each voxel.

    Args:
        x: Volumes ``[batch, depth, height, width, channels]``.
        depth_factor: Factor of the depth.
        height_factor: Factor of the height.
        width_factor: Factor of the width.
        data_format: "channels_last" or "channels_first".
    """
    first = checked_format("resize_volumes", data_format) == "channels_first"
    factors = depth_factor, height_factor, width_factor
    for axis, factor in enumerate(factors, 2 if first else 1):
        x = gathering.repeat(x, factor, axis)
    return x


# -------------------------------------------------------------------------------- losses


def _clipped(output):
    return clip_by_value(output, epsilon(), 1.0 - epsilon())


def binary_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False
) -> Tensor:
    """Element-wise binary cross-entropy of labels and predictions.

    It is ``-target * log(output) - (1 - target) * log(1 - output)``. Probabilities are
    kept away from 0 and 1 by `epsilon`, twice as in Keras 2.

    Args:
        target: Labels from 0 to 1.
        output: Probabilities or logits.
        from_logits: If True, ``output`` holds logits.
    """
    target, output = convert_to_tensor(target), convert_to_tensor(output)
    if from_logits:
        entropy = cross_entropy.sigmoid_cross_entropy_with_logits
        return entropy(labels=target, logits=output)
    p, small = _clipped(output), epsilon()
    return -(target * log(p + small) + (1 - target) * log(1 - p + small))


def binary_focal_crossentropy(
    target: TensorLike,
    output: TensorLike,
    apply_class_balancing: bool = False,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
) -> Tensor:
    """Binary focal cross-entropy: `binary_crossentropy` times ``(1 - p)^gamma``.

    ``p`` is the probability of the true class.

    Args:
        target: Labels from 0 to 1.
        output: Probabilities or logits.
        apply_class_balancing: If True, weight the classes by ``alpha`` and ``1 -
            alpha``.
        alpha: Weight of class 1.
        gamma: Exponent of the focusing factor.
        from_logits: If True, ``output`` holds logits.
    """
    target, output = convert_to_tensor(target), convert_to_tensor(output)
    p = activation.sigmoid(output) if from_logits else output
    right = target * p + (1 - target) * (1 - p)
    entropy = binary_crossentropy(target, output, from_logits)
    focal = pow(1.0 - right, gamma) * entropy
    if apply_class_balancing:
        focal = focal * (target * alpha + (1 - target) * (1 - alpha))
    return focal


def categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """Categorical cross-entropy: ``-sum(target * log(output))`` over the classes.

    Args:
        target: Labels, one-hot or probabilities, ``[..., classes]``.
        output: Probabilities or logits, ``[..., classes]``.
        from_logits: If True, ``output`` holds logits.
        axis: Axis of the classes.
    """
    return ops.categorical_crossentropy(target, output, from_logits, axis)


def categorical_focal_crossentropy(
    target: TensorLike,
    output: TensorLike,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    axis: int = -1,
) -> Tensor:
    """Categorical focal cross-entropy over the classes.

    It is ``-alpha * sum(target * (1 - output)^gamma * log(output))``.

    Args:
        target: Labels, one-hot or probabilities, ``[..., classes]``.
        output: Probabilities or logits, ``[..., classes]``.
        alpha: Factor of the loss.
        gamma: Exponent of the focusing factor.
        from_logits: If True, ``output`` holds logits.
        axis: Axis of the classes.
    """
    target, output = convert_to_tensor(target), convert_to_tensor(output)
    p = activation.softmax(output, axis) if from_logits else output
    p = _clipped(p / reduce_sum(p, axis, True))
    return reduce_sum(-target * log(p) * pow(1.0 - p, gamma) * alpha, axis)


def sparse_categorical_crossentropy(
    target: TensorLike,
    output: TensorLike,
    from_logits: bool = False,
    axis: int = -1,
    ignore_class: int | None = None,
) -> Tensor:
    """Categorical cross-entropy of integer labels: ``-log(output[label])``.

    Args:
        target: Labels, integers ``[...]``.
        output: Probabilities or logits, ``[..., classes]``.
        from_logits: If True, ``output`` holds logits.
        axis: Axis of the classes.
        ignore_class: Class whose labels have a loss of 0, or None.
    """
    function = losses.sparse_categorical_crossentropy
    return function(target, output, from_logits, ignore_class, axis)


def ctc_batch_cost(
    y_true: TensorLike,
    y_pred: TensorLike,
    input_length: TensorLike,
    label_length: TensorLike,
) -> Tensor:
    """CTC loss of each example; the blank is the last class.

    Args:
        y_true: Labels ``[batch, labels]``. The blank and larger numbers are padding at
            the end, even within ``label_length``.
        y_pred: Probabilities ``[batch, steps, classes]``.
        input_length: Number of steps of each example, ``[batch, 1]``.
        label_length: Number of labels of each example, ``[batch, 1]``.

    Returns:
        Losses ``[batch, 1]``.
    """
    y_true, y_pred = convert_to_tensor(y_true), convert_to_tensor(y_pred)
    blank = y_pred.shape[-1] - 1
    ends = creation.range(1, shapes.shape(y_true)[1] + 1)  # the length up to each label
    counted = less(y_true, blank) & less_equal(
        ends, conversion.cast(label_length, "int32")
    )
    length = reduce_max(where(counted, ends, 0), 1, keepdims=True)
    y_true = where(less_equal(ends, length), y_true, 0)
    lengths = [shapes.squeeze(x, -1) for x in (length, input_length)]
    logits = log(y_pred + epsilon())
    return shapes.expand_dims(ctc.ctc_loss(y_true, logits, *lengths, blank), 1)


def ctc_decode(
    y_pred: TensorLike,
    input_length: TensorLike,
    greedy: bool = True,
    beam_width: int = 100,
    top_paths: int = 1,
) -> tuple[list[Tensor], Tensor]:
    """Decode the most likely labels of a CTC model; the blank is the last class.

    Args:
        y_pred: Probabilities ``[batch, steps, classes]``.
        input_length: Number of steps of each example, ``[batch]``.
        greedy: If True, take the most likely class of each step; else use beam search.
        beam_width: Number of candidates that the beam search keeps at each step.
        top_paths: Number of results of the beam search, the most likely first.

    Returns:
        ``(decoded, scores)``; ``decoded`` is a list of ``[batch, steps]``, padded with
        -1.
    """
    logits = log(convert_to_tensor(y_pred) + epsilon())
    strategy = "greedy" if greedy else "beam_search"
    decoded, scores = ctc.ctc_decode(
        logits, input_length, strategy, beam_width, top_paths, mask_index=None
    )
    paths = [conversion.cast(decoded[i], "int64") for i in range(decoded.shape[0])]
    return (paths if greedy else [_merged(path) for path in paths]), scores


def _merged(path):
    """Merge repeated labels, as TensorFlow's older beam search does at its end."""
    merged = np.full(path.shape, -1, np.int64)
    for row, labels in zip(merged, path.numpy()):
        kept = [
            label for i, label in enumerate(labels) if i == 0 or label != labels[i - 1]
        ]
        row[: len(kept)] = kept
    return convert_to_tensor(merged)


# ---------------------------------------------------------------------------- recurrence


def rnn(
    step_function: Callable[..., Any],
    inputs: Any,
    initial_states: Sequence[TensorLike],
    go_backwards: bool = False,
    mask: TensorLike | None = None,
    constants: Sequence[Any] | None = None,
    unroll: bool = False,
    input_length: TensorLike | None = None,
    time_major: bool = False,
    zero_output_for_mask: bool = False,
    return_all_outputs: bool = True,
) -> tuple[Any, Any, list[Tensor]]:
    """Run a recurrent network: call ``step_function`` for each step of a sequence.

    A step where ``mask`` is False, or from ``input_length`` on, keeps the states and
    the output of the step before, which is 0 at first. Its output is 0 with
    ``zero_output_for_mask``, and after the longest ``input_length``.

    Args:
        step_function: Function of the inputs of a step and the states that returns
            ``(output, new states)``.
        inputs: Nest of tensors ``[batch, time, ...]``, or ``[time, batch, ...]`` with
            ``time_major``.
        initial_states: States before the first step.
        go_backwards: If True, iterate from the last step to the first, and return the
            outputs in this order.
        mask: Booleans ``[batch, time]``, or ``[time, batch]`` with ``time_major``.
        constants: Tensors that follow the states in each call of ``step_function``.
        unroll: Ignored.
        input_length: Number of steps of each example, a tensor ``[batch]``.
        time_major: If True, the time axis precedes the batch axis.
        zero_output_for_mask: If True, the output of masked steps is 0.
        return_all_outputs: If False, return the outputs of the last step only.

    Returns:
        ``(last output, outputs, last states)``.

    Raises:
        ValueError: If ``input_length`` is not a tensor, or is given with
            ``go_backwards``.
    """
    inputs = map_structure(convert_to_tensor, inputs)
    if not time_major:
        inputs = map_structure(_swapped, inputs)
    valid = _valid_steps(
        flatten(inputs)[0], mask, input_length, time_major, go_backwards
    )
    if go_backwards:
        inputs = map_structure(lambda x: joining.reverse(x, [0]), inputs)
    constants = tuple(constants or ())
    states = [convert_to_tensor(s) for s in initial_states]
    first = map_structure(lambda x: x[0], inputs)
    output, _ = step_function(first, (*states, *constants))
    nothing = map_structure(creation.zeros_like, output)

    def step(carry, entries):
        previous, states = carry
        entry, is_valid = entries
        output, new_states = step_function(entry, (*states, *constants))
        if is_valid is None:
            return output, list(new_states)
        instead = nothing if zero_output_for_mask else previous
        output = map_structure(lambda a, b: _select(is_valid, a, b), output, instead)
        kept = [_select(is_valid, a, b) for a, b in zip(new_states, states)]
        return output, kept

    if valid is None:
        run = lambda carry, entry: step(carry, (entry, None))  # noqa: E731
        outputs, all_states = loops.scan(run, inputs, (nothing, states))
    else:
        outputs, all_states = loops.scan(step, (inputs, valid), (nothing, states))
    if mask is None and valid is not None:  # after the longest sequence nothing runs
        runs = reduce_any(valid, 1)
        outputs = map_structure(
            lambda x: _select(runs, x, creation.zeros_like(x)), outputs
        )
    last = map_structure(lambda x: x[-1], outputs)
    if not return_all_outputs:
        outputs = map_structure(lambda x: x[-1:], outputs)
    if not time_major:
        outputs = map_structure(_swapped, outputs)
    return last, outputs, [s[-1] for s in all_states]


def _swapped(x):
    """Swap the first two axes."""
    return shapes.transpose(x, (1, 0, *range(2, len(x.shape))))


def _valid_steps(x, mask, lengths, time_major, go_backwards):
    """Return the valid steps ``[time, batch]`` in the order of the run; None for all."""
    if mask is not None:
        mask = conversion.cast(mask, bool)
        mask = mask if time_major else _swapped(mask)
        if len(mask.shape) > 2:
            mask = shapes.squeeze(mask, -1)
    elif lengths is not None and (go_backwards or not is_tensor(lengths)):
        raise ValueError(
            "rnn: input_length must be None or a tensor of lengths, and go_backwards False "
            f"with it, got {lengths!r} and {go_backwards}; a mask works in both directions"
        )
    elif lengths is not None:
        steps = shapes.expand_dims(creation.range(shapes.shape(x)[0]), 1)
        mask = greater(
            shapes.expand_dims(lengths, 0), conversion.cast(steps, lengths.dtype)
        )
    return joining.reverse(mask, [0]) if go_backwards and mask is not None else mask


def _select(is_valid, new, old):
    for _ in range(len(new.shape) - 1):
        is_valid = shapes.expand_dims(is_valid, -1)
    return where(is_valid, new, old)
