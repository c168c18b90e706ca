"""Convolution layers in one to three dimensions: plain, transposed, depthwise, separable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.errors import ShapeError
from tapewright.core.messages.argument_validation import numbers, whole
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

_MAX_WINDOW = 1 << 14  # positions of a kernel, each of which is a product


class ConvolutionBase(Layer):
    """Base of the convolution layers: the window, the bias, the activation.

    ``kernel_size``, ``strides`` and ``dilation_rate`` are integers, or have one integer
    per spatial axis. ``padding`` is "valid", "same" or, for one spatial axis, "causal".
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
            self, "kernel_size", kernel_size, self.rank, most_together=_MAX_WINDOW
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
        """Return the number of channels, and require it of all later inputs."""
        axis = 1 if self.data_format == "channels_first" else -1
        channels = input_shape[axis]
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={axis: channels})
        return channels

    def _tw_add_bias(self, count):
        self.bias: Variable | None = None
        if self.use_bias:
            self.bias = self._tw_new_weight("bias", (count,))

    def _tw_convolved(self, inputs, kernel):
        """Convolve with the layer's strides, padding and dilation."""
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
    """Base of `Conv1D` to `Conv3D`, with a ``kernel`` that mixes the channels of a group."""

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
        """Convolve the inputs with the kernel, before the bias; subclasses may override it.

        Args:
            inputs: Inputs of the layer.
            kernel: Kernel to convolve with.
        """
        return self._tw_convolved(inputs, kernel)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return self._tw_shape_with(self.filters, input_shape)


class Conv1D(_Convolution):
    """1D convolution layer, for sequences (temporal convolution).

    Args:
        filters: Number of output channels.
        kernel_size: Length of the window, an integer.
        strides: Step between windows, an integer.
        padding: "valid" (no padding), "same" (zero padding on both sides, so that
            stride 1 keeps the length) or "causal" (zero padding before the first step,
            so that no output depends on later inputs).
        data_format: "channels_last" or "channels_first"; None uses
            `keras.config.image_data_format`.
        dilation_rate: Dilation of the window, an integer. Strides and dilation cannot
            both be above 1.
        groups: Number of groups into which input and output channels are split; an
            output group depends on one input group. Must divide both.
        activation: Name of a function of `keras.activations`, a function of a tensor,
            or None for no activation.
        use_bias: If False, the layer has no ``bias``.
        kernel_initializer: Initializer of ``kernel``: an object or its name.
        bias_initializer: Initializer of ``bias``: an object or its name.
        kernel_regularizer: Regularizer of ``kernel``, or None.
        bias_regularizer: Regularizer of ``bias``, or None.
        activity_regularizer: Regularizer of the outputs, or None.
        kernel_constraint: Constraint on ``kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, steps, channels]``, outputs ``[batch, windows, filters]``;
        weights ``kernel [kernel_size, channels / groups, filters]`` and
        ``bias [filters]``. Integer inputs are cast.

    Raises:
        ShapeError: If the window is larger than the inputs, or ``groups`` does not
            divide the channels.
        ValueError: If another argument is invalid.

    Example:
        >>> layer = keras.layers.Conv1D(1, 2, padding="causal", kernel_initializer="ones")
        >>> layer([[[1.0], [2.0], [4.0]]]).numpy().ravel()
        array([1., 3., 6.], dtype=float32)
    """

    rank = 1
    _tw_paddings: tuple[str, str, str] = ("valid", "same", "causal")


class Conv2D(_Convolution):
    """2D convolution layer, for images (spatial convolution).

        outputs[y, x, o] = activation(bias[o] + sum_{i, j, c}
            inputs[y * s + i * d, x * s + j * d, c] * kernel[i, j, c, o])

    with strides s and dilation rate d.

    Args:
        filters: Number of output channels.
        kernel_size: Size of the window, an integer or (height, width).
        strides: Step between windows, an integer or (height, width).
        padding: "valid" (no padding) or "same" (zero padding, so that stride 1 keeps
            the size).
        data_format: "channels_last" or "channels_first"; None uses
            `keras.config.image_data_format`.
        dilation_rate: Dilation of the window, an integer or (height, width). Strides
            and dilation cannot both be above 1.
        groups: Number of groups into which input and output channels are split; an
            output group depends on one input group. Must divide both.
        activation: Name of a function of `keras.activations`, a function of a tensor,
            or None for no activation.
        use_bias: If False, the layer has no ``bias``.
        kernel_initializer: Initializer of ``kernel``: an object or its name.
        bias_initializer: Initializer of ``bias``: an object or its name.
        kernel_regularizer: Regularizer of ``kernel``, or None.
        bias_regularizer: Regularizer of ``bias``, or None.
        activity_regularizer: Regularizer of the outputs, or None.
        kernel_constraint: Constraint on ``kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, height, width, channels]``, outputs
        ``[batch, rows, columns, filters]``; weights
        ``kernel [height, width, channels / groups, filters]`` and ``bias [filters]``.
        With "channels_first", the channels are axis 1. Integer inputs are cast.

    Raises:
        ShapeError: If the window is larger than the inputs, or ``groups`` does not
            divide the channels.
        ValueError: If another argument is invalid.

    Example:
        >>> layer = keras.layers.Conv2D(1, (1, 2), kernel_initializer="ones", activation="relu")
        >>> layer([[[[1.0], [2.0], [-5.0]]]]).numpy()[0, :, :, 0]
        array([[3., 0.]], dtype=float32)
    """

    rank = 2


class Conv3D(_Convolution):
    """3D convolution layer, for volumes or videos.

    Args:
        filters: Number of output channels.
        kernel_size: Size of the window, an integer or (depth, height, width).
        strides: Step between windows, an integer or (depth, height, width).
        padding: "valid" (no padding) or "same" (zero padding, so that stride 1 keeps
            the size).
        data_format: "channels_last" or "channels_first"; None uses
            `keras.config.image_data_format`.
        dilation_rate: Dilation of the window, an integer or (depth, height, width).
            Strides and dilation cannot both be above 1.
        groups: Number of groups into which input and output channels are split; an
            output group depends on one input group. Must divide both.
        activation: Name of a function of `keras.activations`, a function of a tensor,
            or None for no activation.
        use_bias: If False, the layer has no ``bias``.
        kernel_initializer: Initializer of ``kernel``: an object or its name.
        bias_initializer: Initializer of ``bias``: an object or its name.
        kernel_regularizer: Regularizer of ``kernel``, or None.
        bias_regularizer: Regularizer of ``bias``, or None.
        activity_regularizer: Regularizer of the outputs, or None.
        kernel_constraint: Constraint on ``kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, depth, height, width, channels]``, outputs
        ``[batch, windows along the three axes, filters]``; weights ``kernel [depth,
        height, width, channels / groups, filters]`` and ``bias [filters]``. Integer
        inputs are cast.

    Raises:
        ShapeError: If the window is larger than the inputs, or ``groups`` does not
            divide the channels.
        ValueError: If another argument is invalid.

    Example:
        >>> keras.layers.Conv3D(5, 2)(tw.ones([1, 4, 4, 4, 3])).shape
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
    """1D transposed convolution layer (deconvolution).

    Args:
        filters: Number of output channels.
        kernel_size: Length of the window, an integer.
        strides: Step between windows, an integer.
        padding: "same" for outputs of size ``size * strides``, or "valid" to keep every
            entry that a window reaches.
        output_padding: If given, the outputs have size
            ``(size - 1) * strides + output_padding``, plus ``kernel_size`` ("valid") or
            plus ``kernel_size % 2`` ("same"). Must be less than ``strides``.
        data_format: "channels_last" or "channels_first"; None uses
            `keras.config.image_data_format`.
        dilation_rate: Dilation of the window, an integer. Strides and dilation cannot
            both be above 1.
        activation: Name of a function of `keras.activations`, a function of a tensor,
            or None for no activation.
        use_bias: If False, the layer has no ``bias``.
        kernel_initializer: Initializer of ``kernel``: an object or its name.
        bias_initializer: Initializer of ``bias``: an object or its name.
        kernel_regularizer: Regularizer of ``kernel``, or None.
        bias_regularizer: Regularizer of ``bias``, or None.
        activity_regularizer: Regularizer of the outputs, or None.
        kernel_constraint: Constraint on ``kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, steps, channels]``, outputs
        ``[batch, steps * strides, filters]`` ("same") or ``[batch, steps * strides +
        max(kernel_size - strides, 0), filters]`` ("valid"); weights
        ``kernel [kernel_size, filters, channels]`` and ``bias [filters]``.

    Raises:
        ValueError: If ``output_padding`` is not less than ``strides``, or another
            argument is invalid.

    Example:
        >>> layer = keras.layers.Conv1DTranspose(1, 2, strides=2, kernel_initializer="ones")
        >>> layer([[[1.0], [2.0]]]).numpy().ravel()
        array([1., 1., 2., 2.], dtype=float32)
    """

    rank = 1


class Conv2DTranspose(_TransposedConvolution):
    """2D transposed convolution layer (deconvolution), to upsample images.

        outputs[y * s + i * d, x * s + j * d, o] += inputs[y, x, c] * kernel[i, j, o, c]

    with strides s and dilation rate d. This is the adjoint of a `Conv2D` with the same
    arguments, followed by bias and activation.

    Args:
        filters: Number of output channels.
        kernel_size: Size of the window, an integer or (height, width).
        strides: Step between windows, an integer or (height, width).
        padding: "same" for outputs of size ``size * strides``, or "valid" to keep every
            entry that a window reaches.
        output_padding: If given, the outputs have size
            ``(size - 1) * strides + output_padding``, plus ``kernel_size`` ("valid") or
            plus ``kernel_size % 2`` ("same"). Must be less than ``strides``.
        data_format: "channels_last" or "channels_first"; None uses
            `keras.config.image_data_format`.
        dilation_rate: Dilation of the window, an integer or (height, width). Strides
            and dilation cannot both be above 1.
        activation: Name of a function of `keras.activations`, a function of a tensor,
            or None for no activation.
        use_bias: If False, the layer has no ``bias``.
        kernel_initializer: Initializer of ``kernel``: an object or its name.
        bias_initializer: Initializer of ``bias``: an object or its name.
        kernel_regularizer: Regularizer of ``kernel``, or None.
        bias_regularizer: Regularizer of ``bias``, or None.
        activity_regularizer: Regularizer of the outputs, or None.
        kernel_constraint: Constraint on ``kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, height, width, channels]``, outputs
        ``[batch, rows, columns, filters]``; weights
        ``kernel [height, width, filters, channels]`` and ``bias [filters]``.

    Raises:
        ValueError: If ``output_padding`` is not less than ``strides``, or another
            argument is invalid.

    Example:
        >>> layer = keras.layers.Conv2DTranspose(
        ...     1, (1, 2), strides=(1, 2), kernel_initializer="ones"
        ... )
        >>> layer([[[[1.0], [2.0]]]]).numpy()[0, :, :, 0]
        array([[1., 1., 2., 2.]], dtype=float32)
    """

    rank = 2


class Conv3DTranspose(_TransposedConvolution):
    """3D transposed convolution layer (deconvolution), to upsample volumes.

    As in Keras, ``data_format`` comes before ``output_padding`` here.

    Args:
        filters: Number of output channels.
        kernel_size: Size of the window, an integer or (depth, height, width).
        strides: Step between windows, an integer or (depth, height, width).
        padding: "same" for outputs of size ``size * strides``, or "valid" to keep every
            entry that a window reaches.
        data_format: "channels_last" or "channels_first"; None uses
            `keras.config.image_data_format`.
        output_padding: If given, the outputs have size
            ``(size - 1) * strides + output_padding``, plus ``kernel_size`` ("valid") or
            plus ``kernel_size % 2`` ("same"). Must be less than ``strides``.
        *args: Further arguments of `Conv2DTranspose`, from ``dilation_rate`` on.
        **kwargs: Further arguments of `Conv2DTranspose` by name, or base class
            arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, depth, height, width, channels]``, outputs
        ``[batch, three spatial axes, filters]``; weights
        ``kernel [depth, height, width, filters, channels]`` and ``bias [filters]``.

    Raises:
        ValueError: If ``output_padding`` is not less than ``strides``, or another
            argument is invalid.

    Example:
        >>> keras.layers.Conv3DTranspose(5, 2, strides=2)(tw.ones([1, 4, 4, 4, 3])).shape
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
        """Convolve each channel with its filters, ``kernel [*window, channels, filters]``."""
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
    """1D depthwise convolution layer: convolve each channel with separate filters.

    Args:
        kernel_size: Length of the window, an integer.
        strides: Step between windows, an integer.
        padding: "valid" (no padding) or "same" (zero padding, so that stride 1 keeps
            the size).
        depth_multiplier: Number of filters for each input channel.
        data_format: "channels_last" or "channels_first"; None uses
            `keras.config.image_data_format`.
        dilation_rate: Dilation of the window, an integer.
        activation: Name of a function of `keras.activations`, a function of a tensor,
            or None for no activation.
        use_bias: If False, the layer has no ``bias``.
        depthwise_initializer: Initializer of ``kernel``: an object or its name.
        bias_initializer: Initializer of ``bias``: an object or its name.
        depthwise_regularizer: Regularizer of ``kernel``, or None.
        bias_regularizer: Regularizer of ``bias``, or None.
        activity_regularizer: Regularizer of the outputs, or None.
        depthwise_constraint: Constraint on ``kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, steps, channels]``, outputs
        ``[batch, windows, channels * depth_multiplier]``; weights
        ``kernel [kernel_size, channels, depth_multiplier]`` and
        ``bias [channels * depth_multiplier]``.

    Raises:
        ShapeError: If the window is larger than the inputs.
        ValueError: If an argument is invalid.

    Example:
        >>> layer = keras.layers.DepthwiseConv1D(2, depthwise_initializer="ones")
        >>> layer([[[1.0, 10.0], [2.0, 20.0]]]).numpy().ravel()
        array([ 3., 30.], dtype=float32)
    """

    rank = 1


class DepthwiseConv2D(_DepthwiseConvolution):
    """2D depthwise convolution layer: convolve each channel with separate filters.

        outputs[y, x, c * depth_multiplier + m] =
            sum_{i, j} inputs[y * s + i * d, x * s + j * d, c] * kernel[i, j, c, m]

    with strides s and dilation rate d, followed by bias and activation.

    Args:
        kernel_size: Size of the window, an integer or (height, width).
        strides: Step between windows, an integer or (height, width).
        padding: "valid" (no padding) or "same" (zero padding, so that stride 1 keeps
            the size).
        depth_multiplier: Number of filters for each input channel.
        data_format: "channels_last" or "channels_first"; None uses
            `keras.config.image_data_format`.
        dilation_rate: Dilation of the window, an integer or (height, width).
        activation: Name of a function of `keras.activations`, a function of a tensor,
            or None for no activation.
        use_bias: If False, the layer has no ``bias``.
        depthwise_initializer: Initializer of ``kernel``: an object or its name.
        bias_initializer: Initializer of ``bias``: an object or its name.
        depthwise_regularizer: Regularizer of ``kernel``, or None.
        bias_regularizer: Regularizer of ``bias``, or None.
        activity_regularizer: Regularizer of the outputs, or None.
        depthwise_constraint: Constraint on ``kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, height, width, channels]``, outputs
        ``[batch, rows, columns, channels * depth_multiplier]``; weights
        ``kernel [height, width, channels, depth_multiplier]`` and
        ``bias [channels * depth_multiplier]``.

    Raises:
        ShapeError: If the window is larger than the inputs.
        ValueError: If an argument is invalid.

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
    """1D depthwise separable convolution layer.

    A `DepthwiseConv1D`, then a `Conv1D` with a window of 1 that mixes the channels;
    bias and activation are applied once, at the end.

    Args:
        filters: Number of output channels.
        kernel_size: Length of the window, an integer.
        strides: Step between windows, an integer.
        padding: "valid" (no padding) or "same" (zero padding, so that stride 1 keeps
            the size).
        data_format: "channels_last" or "channels_first"; None uses
            `keras.config.image_data_format`.
        dilation_rate: Dilation of the window, an integer.
        depth_multiplier: Number of depthwise filters for each input channel.
        activation: Name of a function of `keras.activations`, a function of a tensor,
            or None for no activation.
        use_bias: If False, the layer has no ``bias``.
        depthwise_initializer: Initializer of ``depthwise_kernel``: an object or its
            name.
        pointwise_initializer: Initializer of ``pointwise_kernel``: an object or its
            name.
        bias_initializer: Initializer of ``bias``: an object or its name.
        depthwise_regularizer: Regularizer of ``depthwise_kernel``, or None.
        pointwise_regularizer: Regularizer of ``pointwise_kernel``, or None.
        bias_regularizer: Regularizer of ``bias``, or None.
        activity_regularizer: Regularizer of the outputs, or None.
        depthwise_constraint: Constraint on ``depthwise_kernel``, or None.
        pointwise_constraint: Constraint on ``pointwise_kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, steps, channels]``, outputs ``[batch, windows, filters]``;
        weights ``depthwise_kernel [kernel_size, channels, depth_multiplier]``,
        ``pointwise_kernel [1, channels * depth_multiplier, filters]`` and
        ``bias [filters]``.

    Raises:
        ShapeError: If the window is larger than the inputs.
        ValueError: If an argument is invalid.

    Example:
        >>> keras.layers.SeparableConv1D(5, 2)(tw.ones([1, 4, 3])).shape
        TensorShape([1, 3, 5])
    """

    rank = 1


class SeparableConv2D(_SeparableConvolution):
    """2D depthwise separable convolution layer.

    A `DepthwiseConv2D`, then a `Conv2D` with a 1 x 1 window that mixes the channels;
    bias and activation are applied once, at the end.

    Args:
        filters: Number of output channels.
        kernel_size: Size of the window, an integer or (height, width).
        strides: Step between windows, an integer or (height, width).
        padding: "valid" (no padding) or "same" (zero padding, so that stride 1 keeps
            the size).
        data_format: "channels_last" or "channels_first"; None uses
            `keras.config.image_data_format`.
        dilation_rate: Dilation of the window, an integer or (height, width).
        depth_multiplier: Number of depthwise filters for each input channel.
        activation: Name of a function of `keras.activations`, a function of a tensor,
            or None for no activation.
        use_bias: If False, the layer has no ``bias``.
        depthwise_initializer: Initializer of ``depthwise_kernel``: an object or its
            name.
        pointwise_initializer: Initializer of ``pointwise_kernel``: an object or its
            name.
        bias_initializer: Initializer of ``bias``: an object or its name.
        depthwise_regularizer: Regularizer of ``depthwise_kernel``, or None.
        pointwise_regularizer: Regularizer of ``pointwise_kernel``, or None.
        bias_regularizer: Regularizer of ``bias``, or None.
        activity_regularizer: Regularizer of the outputs, or None.
        depthwise_constraint: Constraint on ``depthwise_kernel``, or None.
        pointwise_constraint: Constraint on ``pointwise_kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, height, width, channels]``, outputs
        ``[batch, rows, columns, filters]``; weights ``depthwise_kernel [height, width,
        channels, depth_multiplier]``, ``pointwise_kernel [1, 1, channels *
        depth_multiplier, filters]`` and ``bias [filters]``.

    Raises:
        ShapeError: If the window is larger than the inputs.
        ValueError: If an argument is invalid.

    References:
        Chollet, "Xception: Deep learning with depthwise separable convolutions" (2017).

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
