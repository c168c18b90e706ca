"""Convolutions of each channel by itself, and those mixed by a window of one entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from tapewright.core.argument_validation import whole
from tapewright.ops.array.shape import reshape
from tapewright.ops.convolution.conv import convolution

from .convolution import ConvolutionBase

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Shape, Sizes
    from tapewright.core.variable import Variable

    from .base.layer_types import (
        ActivationLike,
        ConstraintLike,
        InitializerLike,
        LayerOptions,
        RegularizerLike,
    )

__all__ = [
    "DepthwiseConv1D",
    "DepthwiseConv2D",
    "SeparableConv1D",
    "SeparableConv2D",
    "SeparableConvolution1D",
    "SeparableConvolution2D",
]


class _ByChannel(ConvolutionBase):
    def _by_channel(self, inputs, kernel):
        """Each channel convolved with its filters, ``kernel [*window, channels, filters]``."""
        *window, channels, multiplier = kernel.shape
        kernel = reshape(kernel, (*window, 1, channels * multiplier))
        return self._convolved(inputs, kernel)


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
        self._keep_weight_arguments(locals())
        self._keep_window(kernel_size, strides, padding, data_format, dilation_rate)
        self.use_bias: bool = bool(use_bias)
        self.depth_multiplier: int = whole(self, "depth_multiplier", depth_multiplier)

    def build(self, input_shape: Shape) -> None:
        channels = self._channels_of(input_shape)
        self.compute_output_shape(input_shape)  # refuses inputs below the window
        shape = (*self.kernel_size, channels, self.depth_multiplier)
        self.kernel: Variable = self._new_weight("kernel", shape, prefix="depthwise")
        self._add_bias(channels * self.depth_multiplier)

    def call(self, inputs: Tensor) -> Tensor:
        outputs = self._by_channel(self._as_own_dtype(inputs), self.kernel)
        return self._finished(outputs)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        channels = input_shape[1 if self.data_format == "channels_first" else -1]
        count = None if channels is None else channels * self.depth_multiplier
        return self._shape_with(count, input_shape)


class DepthwiseConv1D(_DepthwiseConvolution):
    """`DepthwiseConv2D` with one spatial axis: ``[batch, steps, channels]``.

    Weights: ``kernel [kernel_size, channels, depth_multiplier]``, ``bias [channels *
    depth_multiplier]``.
    """

    rank = 1


class DepthwiseConv2D(_DepthwiseConvolution):
    """Each channel convolved with filters of its own, ``depth_multiplier`` of them.

        outputs[y, x, c * multiplier + m] =
            sum_{i, j} inputs[y * s + i * d, x * s + j * d, c] * kernel[i, j, c, m]

    and then bias and activation. Arguments as for `Conv2D`, without filters and groups.

    Shapes: inputs ``[batch, height, width, channels]``, outputs ``[batch, rows, columns,
    channels * depth_multiplier]``; weights ``kernel [height, width, channels,
    depth_multiplier]`` and ``bias [channels * depth_multiplier]``.

    >>> layer = DepthwiseConv2D((1, 2), depthwise_initializer="ones")
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
        self._keep_weight_arguments(locals())
        self._keep_window(kernel_size, strides, padding, data_format, dilation_rate)
        self.use_bias: bool = bool(use_bias)
        self.filters: int = whole(self, "filters", filters)
        self.depth_multiplier: int = whole(self, "depth_multiplier", depth_multiplier)

    def build(self, input_shape: Shape) -> None:
        channels = self._channels_of(input_shape)
        self.compute_output_shape(input_shape)  # refuses inputs below the window
        shape = (*self.kernel_size, channels, self.depth_multiplier)
        self.depthwise_kernel: Variable = self._new_weight(
            "depthwise_kernel", shape, prefix="depthwise"
        )
        shape = (1,) * self.rank + (channels * self.depth_multiplier, self.filters)
        self.pointwise_kernel: Variable = self._new_weight(
            "pointwise_kernel", shape, prefix="pointwise"
        )
        self._add_bias(self.filters)

    def call(self, inputs: Tensor) -> Tensor:
        between = self._by_channel(self._as_own_dtype(inputs), self.depthwise_kernel)
        outputs = convolution(between, self.pointwise_kernel, data_format=self._format)
        return self._finished(outputs)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return self._shape_with(self.filters, input_shape)


class SeparableConv1D(_SeparableConvolution):
    """`SeparableConv2D` with one spatial axis: ``[batch, steps, channels]``.

    Weights: ``depthwise_kernel [kernel_size, channels, depth_multiplier]``,
    ``pointwise_kernel [1, channels * depth_multiplier, filters]``, ``bias [filters]``.
    """

    rank = 1


class SeparableConv2D(_SeparableConvolution):
    """A `DepthwiseConv2D`, then a `Conv2D` of window 1 x 1 that mixes the channels.

    Bias and activation come at the end, once. Arguments as for both.

    Shapes: inputs ``[batch, height, width, channels]``, outputs ``[batch, rows, columns,
    filters]``; weights ``depthwise_kernel [height, width, channels, depth_multiplier]``,
    ``pointwise_kernel [1, 1, channels * depth_multiplier, filters]``, ``bias [filters]``.
    """

    rank = 2


SeparableConvolution1D = SeparableConv1D
SeparableConvolution2D = SeparableConv2D
