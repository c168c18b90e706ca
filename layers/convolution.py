"""Convolution layers of one to three dimensions: plain, transposed and by channel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.argument_validation import numbers, whole
from tapewright.core.errors import ShapeError
from tapewright.ops.array.shape import reshape
from tapewright.ops.convolution.conv import conv_transpose, convolution
from tapewright.ops.nn.bias import bias_add

from .base.layer import InputSpec, Layer
from .base.spatial import (
    checked_format,
    checked_padding,
    format_of_ops,
    from_channels_last,
    to_channels_last,
    transposed_sizes,
    window_counts,
)

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Shape, Sizes
    from tapewright.core.variable import Variable

    from .base.layer_types import (
        ActivationLike,
        ConstraintLike,
        InitializerLike,
        LayerOptions,
        RegularizedLayerOptions,
        RegularizerLike,
    )

__all__ = [
    "Conv1D",
    "Conv1DTranspose",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "Convolution1D",
    "Convolution1DTranspose",
    "Convolution2D",
    "Convolution2DTranspose",
    "Convolution3D",
    "Convolution3DTranspose",
    "DepthwiseConv1D",
    "DepthwiseConv2D",
    "SeparableConv1D",
    "SeparableConv2D",
    "SeparableConvolution1D",
    "SeparableConvolution2D",
]

MAX_WINDOW = 1 << 14  # positions of a kernel, each of which is a product


class ConvolutionBase(Layer):
    """Base of the layers with a sliding window: the window, the bias, the activation.

    Args: ``kernel_size``, ``strides``, ``dilation_rate``: an int, or one for each spatial
    axis; ``padding``: "valid" (windows inside the inputs only), "same" (zeros around, so
    that stride 1 keeps the size) or, along one axis, "causal" (zeros before);
    ``data_format``: "channels_last" (default) or "channels_first".
    """

    activation: Any
    bias_initializer: Any
    bias_regularizer: Any
    bias_constraint: Any
    input_spec: InputSpec

    rank = None
    _tw_shape_tells = True
    _tw_paddings: tuple[str, str] = ("valid", "same")

    def _tw_keep_window(
        self, kernel_size, strides, padding, data_format, dilation_rate
    ):
        self.kernel_size: tuple[int, ...] = numbers(
            self, "kernel_size", kernel_size, self.rank, most_together=MAX_WINDOW
        )
        self.strides: tuple[int, ...] = numbers(self, "strides", strides, self.rank)
        self.padding: str = checked_padding(self, padding, self._tw_paddings)
        self.data_format: str = checked_format(self, data_format)
        self.dilation_rate: tuple[int, ...] = numbers(
            self, "dilation_rate", dilation_rate, self.rank
        )
        self.input_spec = InputSpec(ndim=self.rank + 2)
        self._tw_format = format_of_ops(self.data_format, self.rank)

    def _tw_refuse_strides_with_dilation(self):
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError(
                f"{type(self).__name__}: strides and dilation_rate cannot both be above "
                f"1, got {self.strides} and {self.dilation_rate}"
            )

    def _tw_channels_of(self, input_shape):
        """The size of the channel axis, on which the layer insists from now on."""
        axis = 1 if self.data_format == "channels_first" else -1
        channels = input_shape[axis]
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={axis: channels})
        return channels

    def _tw_add_bias(self, count):
        self.bias: Variable | None = None
        if self.use_bias:
            self.bias = self._tw_new_weight("bias", (count,))

    def _tw_convolved(self, inputs, kernel):
        """The convolution with the layer's strides, padding and dilation."""
        padding = self.padding
        if padding == "causal":
            before = (self.kernel_size[0] - 1) * self.dilation_rate[0]
            padding = ((0, 0), (before, 0), (0, 0))
            padding = from_channels_last(padding, self.data_format)
        return convolution(
            inputs, kernel, self.strides, padding, self._tw_format, self.dilation_rate
        )

    def _tw_finished(self, outputs):
        if self.use_bias:
            outputs = bias_add(outputs, self.bias, self._tw_format)
        return outputs if self.activation is None else self.activation(outputs)

    def _tw_shape_with(self, count, input_shape):
        batch, *sizes, _ = to_channels_last(input_shape, self.data_format)
        counts = window_counts(
            self,
            sizes,
            self.kernel_size,
            self.strides,
            self.padding,
            self.dilation_rate,
        )
        return from_channels_last((batch, *counts, count), self.data_format)


class _Convolution(ConvolutionBase):
    """`ConvolutionBase` with a ``kernel`` that mixes the channels of a group."""

    def __init__(
        self,
        filters: int,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Sizes = 1,
        groups: int = 1,
        activation: ActivationLike = None,
        use_bias: bool = True,
        kernel_initializer: InitializerLike = "glorot_uniform",
        bias_initializer: InitializerLike = "zeros",
        kernel_regularizer: RegularizerLike = None,
        bias_regularizer: RegularizerLike = None,
        activity_regularizer: RegularizerLike = None,
        kernel_constraint: ConstraintLike = None,
        bias_constraint: ConstraintLike = None,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self._tw_keep_weight_arguments(locals())
        self._tw_keep_window(kernel_size, strides, padding, data_format, dilation_rate)
        self.use_bias: bool = bool(use_bias)
        self._tw_refuse_strides_with_dilation()
        self.filters: int = whole(self, "filters", filters)
        self.groups: int = whole(self, "groups", groups)
        if self.filters % self.groups:
            raise ValueError(
                f"{type(self).__name__}: filters must be a multiple of groups, got "
                f"{filters} and {groups}"
            )

    def build(self, input_shape: Shape) -> None:
        channels = self._tw_channels_of(input_shape)
        if channels is not None and channels % self.groups:
            raise ShapeError(
                self._tw_title,
                f"the channels of the inputs must be a multiple of groups={self.groups}, "
                f"got shape {tuple(input_shape)}",
            )
        self.compute_output_shape(input_shape)  # refuses inputs below the window
        depth = None if channels is None else channels // self.groups
        shape = (*self.kernel_size, depth, self.filters)
        self.kernel: Variable = self._tw_new_weight("kernel", shape)
        self._tw_add_bias(self.filters)

    def call(self, inputs: Tensor) -> Tensor:
        inputs = self._tw_as_own_dtype(inputs)
        return self._tw_finished(self.convolution_op(inputs, self.kernel))

    def convolution_op(self, inputs: Tensor, kernel: Tensor | Variable) -> Tensor:
        """The convolution of `call`, before the bias: a subclass can use it, or its own."""
        return self._tw_convolved(inputs, kernel)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return self._tw_shape_with(self.filters, input_shape)


class Conv1D(_Convolution):
    """Each output step is the product of its window of the inputs with the filters.

    Args: as for `Conv2D`, with ints for pairs; ``padding`` may also be "causal": zeros
    before the first step, so that no output depends on later inputs.

    Shapes: inputs ``[batch, steps, channels]``, outputs ``[batch, windows, filters]``;
    weights ``kernel [kernel_size, channels / groups, filters]``, ``bias [filters]``.

    Raises: as `Conv2D`.

    Example:
        >>> layer = keras.layers.Conv1D(1, 2, padding="causal", kernel_initializer="ones")
        >>> layer([[[1.0], [2.0], [4.0]]]).numpy().ravel()
        array([1., 3., 6.], dtype=float32)
    """

    rank = 1
    _tw_paddings: tuple[str, str, str] = ("valid", "same", "causal")


class Conv2D(_Convolution):
    """Each output pixel is the product of its window of the inputs with the filters.

        outputs[y, x, o] = activation(bias[o] + sum_{i, j, c}
            inputs[y * s + i * d, x * s + j * d, c] * kernel[i, j, c, o])

    Args: ``filters``: the number of output channels; ``kernel_size``, ``strides`` s,
    ``dilation_rate`` d: an int or (height, width), strides and dilation not both above
    1; ``padding``: "valid" (windows inside the inputs only) or "same" (zeros around, so
    that stride 1 keeps the size); ``groups``: the channels of inputs and outputs are
    cut into that many parts, and each part of the outputs sees one part of the inputs;
    ``data_format``: "channels_last" (default), or "channels_first" with the channels on
    axis 1; the others as for `Dense`.

    Shapes: inputs ``[batch, height, width, channels]``, outputs ``[batch, rows,
    columns, filters]``; weights ``kernel [height, width, channels / groups, filters]``
    and ``bias [filters]``. Integer inputs are cast.

    Raises: `ShapeError` for a window larger than the inputs, or channels that
    ``groups`` does not divide; ``ValueError`` for other arguments that do not fit.

    Example:
        >>> layer = keras.layers.Conv2D(1, (1, 2), kernel_initializer="ones", activation="relu")
        >>> layer([[[[1.0], [2.0], [-5.0]]]]).numpy()[0, :, :, 0]
        array([[3., 0.]], dtype=float32)
    """

    rank = 2


class Conv3D(_Convolution):
    """Each output voxel is the product of its window of the inputs with the filters.

    Args: as for `Conv2D`, with (depth, height, width) for pairs.

    Shapes: inputs ``[batch, depth, height, width, channels]``, outputs ``[batch,
    windows along the three axes, filters]``; weights ``kernel [depth, height, width,
    channels / groups, filters]``, ``bias [filters]``.

    Raises: as `Conv2D`.

    Example:
        >>> from tapewright import ones
        >>> keras.layers.Conv3D(5, 2)(ones([1, 4, 4, 4, 3])).shape
        TensorShape([1, 3, 3, 3, 5])
    """

    rank = 3


Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D


class _TransposedConvolution(ConvolutionBase):
    def __init__(
        self,
        filters: int,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: str = "valid",
        output_padding: Sizes | None = None,
        data_format: str | None = None,
        dilation_rate: Sizes = 1,
        activation: ActivationLike = None,
        use_bias: bool = True,
        kernel_initializer: InitializerLike = "glorot_uniform",
        bias_initializer: InitializerLike = "zeros",
        kernel_regularizer: RegularizerLike = None,
        bias_regularizer: RegularizerLike = None,
        activity_regularizer: RegularizerLike = None,
        kernel_constraint: ConstraintLike = None,
        bias_constraint: ConstraintLike = None,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self._tw_keep_weight_arguments(locals())
        self._tw_keep_window(kernel_size, strides, padding, data_format, dilation_rate)
        self.use_bias: bool = bool(use_bias)
        self._tw_refuse_strides_with_dilation()
        self.filters: int = whole(self, "filters", filters)
        self.output_padding: tuple[int, ...] | None = self._tw_checked_output_padding(
            output_padding
        )

    def _tw_checked_output_padding(self, value):
        if value is None:
            return None
        more = numbers(self, "output_padding", value, self.rank, least=0)
        if any([n >= stride for n, stride in zip(more, self.strides)]):
            raise ValueError(
                f"{type(self).__name__}: output_padding must be less than strides on each "
                f"axis, got {more} for {self.strides}"
            )
        return more

    def build(self, input_shape: Shape) -> None:
        channels = self._tw_channels_of(input_shape)
        shape = (*self.kernel_size, self.filters, channels)
        self.kernel: Variable = self._tw_new_weight("kernel", shape)
        self._tw_add_bias(self.filters)

    def call(self, inputs: Tensor) -> Tensor:
        inputs = self._tw_as_own_dtype(inputs)
        sizes, margins = self._tw_sizes_and_margins(tuple(inputs.shape))
        outputs = conv_transpose(
            inputs,
            self.kernel,
            sizes,
            self.strides,
            from_channels_last(((0, 0), *margins, (0, 0)), self.data_format),
            self._tw_format,
            self.dilation_rate,
        )
        return self._tw_finished(outputs)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        sizes, _ = self._tw_sizes_and_margins(input_shape)
        shape = (input_shape[0], *sizes, self.filters)
        return from_channels_last(shape, self.data_format)

    def _tw_sizes_and_margins(self, input_shape):
        _, *sizes, _ = to_channels_last(input_shape, self.data_format)
        return transposed_sizes(
            sizes,
            self.kernel_size,
            self.strides,
            self.dilation_rate,
            self.padding,
            self.output_padding,
        )


class Conv1DTranspose(_TransposedConvolution):
    """Each input step adds its product with the filters to a window of the outputs.

    Args: as for `Conv2DTranspose`, with ints for pairs.

    Shapes: inputs ``[batch, steps, channels]``, outputs ``[batch, steps * strides,
    filters]`` ("same") or ``[batch, steps * strides + max(kernel_size - strides, 0),
    filters]`` ("valid"); weights ``kernel [kernel_size, filters, channels]``, ``bias
    [filters]``.

    Raises: as `Conv2DTranspose`.

    Example:
        >>> layer = keras.layers.Conv1DTranspose(1, 2, strides=2, kernel_initializer="ones")
        >>> layer([[[1.0], [2.0]]]).numpy().ravel()
        array([1., 1., 2., 2.], dtype=float32)
    """

    rank = 1


class Conv2DTranspose(_TransposedConvolution):
    """Each input pixel adds its product with the filters to a window of the outputs.

        outputs[y * s + i * d, x * s + j * d, o] += inputs[y, x, c] * kernel[i, j, o, c]

    This is the adjoint of a `Conv2D` with these arguments, followed by bias and
    activation.

    Args: ``filters``: the number of output channels; ``kernel_size``, ``strides`` s,
    ``dilation_rate`` d: an int or (height, width), strides and dilation not both above
    1; ``padding``: "same" makes the size ``size * strides``, "valid" keeps all entries
    that a window reaches; ``output_padding``, less than the stride: the size is then
    ``(size - 1) * strides + output_padding`` plus ``kernel_size`` ("valid") or plus its
    remainder by 2 ("same"); ``data_format``: as for `Conv2D`.

    Shapes: inputs ``[batch, height, width, channels]``, outputs ``[batch, rows,
    columns, filters]``; weights ``kernel [height, width, filters, channels]`` and
    ``bias [filters]``.

    Raises: ``ValueError`` if ``output_padding`` is not less than ``strides``.

    Example:
        >>> layer = keras.layers.Conv2DTranspose(1, (1, 2), (1, 2), kernel_initializer="ones")
        >>> layer([[[[1.0], [2.0]]]]).numpy()[0, :, :, 0]
        array([[1., 1., 2., 2.]], dtype=float32)
    """

    rank = 2


class Conv3DTranspose(_TransposedConvolution):
    """Each input voxel adds its product with the filters to a window of the outputs.

    Args: as for `Conv2DTranspose`, with (depth, height, width) for pairs. By position
    ``data_format`` comes before ``output_padding``, as in Keras.

    Shapes: inputs ``[batch, depth, height, width, channels]``, outputs likewise with
    ``filters`` channels; weights ``kernel [depth, height, width, filters, channels]``,
    ``bias [filters]``.

    Raises: as `Conv2DTranspose`.

    Example:
        >>> from tapewright import ones
        >>> keras.layers.Conv3DTranspose(5, 2, strides=2)(ones([1, 4, 4, 4, 3])).shape
        TensorShape([1, 8, 8, 8, 5])
    """

    rank = 3

    def __init__(
        self,
        filters: int,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: str = "valid",
        data_format: str | None = None,
        output_padding: Sizes | None = None,
        *args: Any,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(
            filters, kernel_size, strides, padding, output_padding, data_format, *args,
            **kwargs,
        )  # fmt: skip


Convolution1DTranspose = Conv1DTranspose
Convolution2DTranspose = Conv2DTranspose
Convolution3DTranspose = Conv3DTranspose


class _ByChannel(ConvolutionBase):
    def _tw_by_channel(self, inputs, kernel):
        """Each channel convolved with its filters, ``kernel [*window, channels, filters]``."""
        *window, channels, multiplier = kernel.shape
        kernel = reshape(kernel, (*window, 1, channels * multiplier))
        return self._tw_convolved(inputs, kernel)


class _DepthwiseConvolution(_ByChannel):
    def __init__(
        self,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: str = "valid",
        depth_multiplier: int = 1,
        data_format: str | None = None,
        dilation_rate: Sizes = 1,
        activation: ActivationLike = None,
        use_bias: bool = True,
        depthwise_initializer: InitializerLike = "glorot_uniform",
        bias_initializer: InitializerLike = "zeros",
        depthwise_regularizer: RegularizerLike = None,
        bias_regularizer: RegularizerLike = None,
        activity_regularizer: RegularizerLike = None,
        depthwise_constraint: ConstraintLike = None,
        bias_constraint: ConstraintLike = None,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self._tw_keep_weight_arguments(locals())
        self._tw_keep_window(kernel_size, strides, padding, data_format, dilation_rate)
        self.use_bias: bool = bool(use_bias)
        self.depth_multiplier: int = whole(self, "depth_multiplier", depth_multiplier)

    def build(self, input_shape: Shape) -> None:
        channels = self._tw_channels_of(input_shape)
        self.compute_output_shape(input_shape)  # refuses inputs below the window
        shape = (*self.kernel_size, channels, self.depth_multiplier)
        self.kernel: Variable = self._tw_new_weight("kernel", shape, prefix="depthwise")
        self._tw_add_bias(channels * self.depth_multiplier)

    def call(self, inputs: Tensor) -> Tensor:
        outputs = self._tw_by_channel(self._tw_as_own_dtype(inputs), self.kernel)
        return self._tw_finished(outputs)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        channels = input_shape[1 if self.data_format == "channels_first" else -1]
        count = None if channels is None else channels * self.depth_multiplier
        return self._tw_shape_with(count, input_shape)


class DepthwiseConv1D(_DepthwiseConvolution):
    """Convolves each channel with filters of its own, along one axis.

    Args: as for `DepthwiseConv2D`, with ints for pairs.

    Shapes: inputs ``[batch, steps, channels]``, outputs ``[batch, windows, channels *
    depth_multiplier]``; weights ``kernel [kernel_size, channels, depth_multiplier]``,
    ``bias [channels * depth_multiplier]``.

    Raises: as `DepthwiseConv2D`.

    Example:
        >>> layer = keras.layers.DepthwiseConv1D(2, depthwise_initializer="ones")
        >>> layer([[[1.0, 10.0], [2.0, 20.0]]]).numpy().ravel()
        array([ 3., 30.], dtype=float32)
    """

    rank = 1


class DepthwiseConv2D(_DepthwiseConvolution):
    """Convolves each channel with ``depth_multiplier`` filters of its own.

        outputs[y, x, c * multiplier + m] =
            sum_{i, j} inputs[y * s + i * d, x * s + j * d, c] * kernel[i, j, c, m]

    Bias and activation follow.

    Args: as for `Conv2D`, without ``filters`` and ``groups``.

    Shapes: inputs ``[batch, height, width, channels]``, outputs ``[batch, rows,
    columns, channels * depth_multiplier]``; weights ``kernel [height, width, channels,
    depth_multiplier]`` and ``bias [channels * depth_multiplier]``.

    Raises: `ShapeError` for a window larger than the inputs.

    Example:
        >>> layer = keras.layers.DepthwiseConv2D((1, 2), depthwise_initializer="ones")
        >>> layer([[[[1.0, 10.0], [2.0, 20.0]]]]).numpy().ravel()
        array([ 3., 30.], dtype=float32)
    """

    rank = 2


class _SeparableConvolution(_ByChannel):
    def __init__(
        self,
        filters: int,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Sizes = 1,
        depth_multiplier: int = 1,
        activation: ActivationLike = None,
        use_bias: bool = True,
        depthwise_initializer: InitializerLike = "glorot_uniform",
        pointwise_initializer: InitializerLike = "glorot_uniform",
        bias_initializer: InitializerLike = "zeros",
        depthwise_regularizer: RegularizerLike = None,
        pointwise_regularizer: RegularizerLike = None,
        bias_regularizer: RegularizerLike = None,
        activity_regularizer: RegularizerLike = None,
        depthwise_constraint: ConstraintLike = None,
        pointwise_constraint: ConstraintLike = None,
        bias_constraint: ConstraintLike = None,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self._tw_keep_weight_arguments(locals())
        self._tw_keep_window(kernel_size, strides, padding, data_format, dilation_rate)
        self.use_bias: bool = bool(use_bias)
        self.filters: int = whole(self, "filters", filters)
        self.depth_multiplier: int = whole(self, "depth_multiplier", depth_multiplier)

    def build(self, input_shape: Shape) -> None:
        channels = self._tw_channels_of(input_shape)
        self.compute_output_shape(input_shape)  # refuses inputs below the window
        shape = (*self.kernel_size, channels, self.depth_multiplier)
        self.depthwise_kernel: Variable = self._tw_new_weight(
            "depthwise_kernel", shape, prefix="depthwise"
        )
        shape = (1,) * self.rank + (channels * self.depth_multiplier, self.filters)
        self.pointwise_kernel: Variable = self._tw_new_weight(
            "pointwise_kernel", shape, prefix="pointwise"
        )
        self._tw_add_bias(self.filters)

    def call(self, inputs: Tensor) -> Tensor:
        between = self._tw_by_channel(
            self._tw_as_own_dtype(inputs), self.depthwise_kernel
        )
        outputs = convolution(
            between, self.pointwise_kernel, data_format=self._tw_format
        )
        return self._tw_finished(outputs)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return self._tw_shape_with(self.filters, input_shape)


class SeparableConv1D(_SeparableConvolution):
    """A `DepthwiseConv1D`, then a `Conv1D` of window 1 that mixes the channels.

    Args: as for `SeparableConv2D`, with ints for pairs.

    Shapes: inputs ``[batch, steps, channels]``, outputs ``[batch, windows, filters]``;
    weights ``depthwise_kernel [kernel_size, channels, depth_multiplier]``,
    ``pointwise_kernel [1, channels * depth_multiplier, filters]``, ``bias [filters]``.

    Raises: as `SeparableConv2D`.

    Example:
        >>> from tapewright import ones
        >>> keras.layers.SeparableConv1D(5, 2)(ones([1, 4, 3])).shape
        TensorShape([1, 3, 5])
    """

    rank = 1


class SeparableConv2D(_SeparableConvolution):
    """A `DepthwiseConv2D`, then a `Conv2D` of window 1 x 1 that mixes the channels.

    Bias and activation come once, at the end.

    Args: as for `Conv2D`, without ``groups``; ``depth_multiplier`` as for
    `DepthwiseConv2D`.

    Shapes: inputs ``[batch, height, width, channels]``, outputs ``[batch, rows,
    columns, filters]``; weights ``depthwise_kernel [height, width, channels,
    depth_multiplier]``, ``pointwise_kernel [1, 1, channels * depth_multiplier,
    filters]``, ``bias [filters]``.

    Raises: `ShapeError` for a window larger than the inputs.

    Reference: Chollet, "Xception: Deep learning with depthwise separable convolutions"
    (2017).

    Example:
        >>> layer = keras.layers.SeparableConv2D(
        ...     1, (1, 2), depthwise_initializer="ones", pointwise_initializer="ones"
        ... )
        >>> layer([[[[1.0, 10.0], [2.0, 20.0]]]]).numpy().ravel()
        array([33.], dtype=float32)
    """

    rank = 2


SeparableConvolution1D = SeparableConv1D
SeparableConvolution2D = SeparableConv2D
