"""Convolution layers of one to three dimensions.

The mathematics is one op, `convolution`; transposed ones are in `transposed_convolution`,
those that treat each channel by itself in `separable_convolution`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.argument_validation import numbers, whole
from tapewright.core.errors import ShapeError
from tapewright.ops.convolution.conv import convolution
from tapewright.ops.nn.bias import bias_add

from .base.layer import InputSpec, Layer
from .spatial import (
    checked_format,
    checked_padding,
    format_of_ops,
    from_channels_last,
    to_channels_last,
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
        RegularizerLike,
    )

__all__ = [
    "Conv1D",
    "Conv2D",
    "Conv3D",
    "Convolution1D",
    "Convolution2D",
    "Convolution3D",
]


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
    _shape_tells = True
    paddings: tuple[str, str] = ("valid", "same")

    def _keep_window(self, kernel_size, strides, padding, data_format, dilation_rate):
        self.kernel_size: tuple[int, ...] = numbers(
            self, "kernel_size", kernel_size, self.rank
        )
        self.strides: tuple[int, ...] = numbers(self, "strides", strides, self.rank)
        self.padding: str = checked_padding(self, padding, self.paddings)
        self.data_format: str = checked_format(self, data_format)
        self.dilation_rate: tuple[int, ...] = numbers(
            self, "dilation_rate", dilation_rate, self.rank
        )
        self.input_spec = InputSpec(ndim=self.rank + 2)
        self._format = format_of_ops(self.data_format, self.rank)

    def _refuse_strides_with_dilation(self):
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError(
                f"{type(self).__name__}: strides and dilation_rate cannot both be above "
                f"1, got {self.strides} and {self.dilation_rate}"
            )

    def _channels_of(self, input_shape):
        """The size of the channel axis, on which the layer insists from now on."""
        axis = 1 if self.data_format == "channels_first" else -1
        channels = input_shape[axis]
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={axis: channels})
        return channels

    def _add_bias(self, count):
        self.bias: Variable | None = None
        if self.use_bias:
            self.bias = self._new_weight("bias", (count,))

    def _convolved(self, inputs, kernel):
        """The convolution with the layer's strides, padding and dilation."""
        padding = self.padding
        if padding == "causal":
            before = (self.kernel_size[0] - 1) * self.dilation_rate[0]
            padding = ((0, 0), (before, 0), (0, 0))
            padding = from_channels_last(padding, self.data_format)
        return convolution(
            inputs, kernel, self.strides, padding, self._format, self.dilation_rate
        )

    def _finished(self, outputs):
        if self.use_bias:
            outputs = bias_add(outputs, self.bias, self._format)
        return outputs if self.activation is None else self.activation(outputs)

    def _shape_with(self, count, input_shape):
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
        self._keep_weight_arguments(locals())
        self._keep_window(kernel_size, strides, padding, data_format, dilation_rate)
        self.use_bias: bool = bool(use_bias)
        self._refuse_strides_with_dilation()
        self.filters: int = whole(self, "filters", filters)
        self.groups: int = whole(self, "groups", groups)
        if self.filters % self.groups:
            raise ValueError(
                f"{type(self).__name__}: filters must be a multiple of groups, got "
                f"{filters} and {groups}"
            )

    def build(self, input_shape: Shape) -> None:
        channels = self._channels_of(input_shape)
        if channels is not None and channels % self.groups:
            raise ShapeError(
                self._title,
                f"the channels of the inputs must be a multiple of groups={self.groups}, "
                f"got shape {tuple(input_shape)}",
            )
        self.compute_output_shape(input_shape)  # refuses inputs below the window
        depth = None if channels is None else channels // self.groups
        shape = (*self.kernel_size, depth, self.filters)
        self.kernel: Variable = self._new_weight("kernel", shape)
        self._add_bias(self.filters)

    def call(self, inputs: Tensor) -> Tensor:
        return self._finished(self._convolved(self._as_own_dtype(inputs), self.kernel))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return self._shape_with(self.filters, input_shape)


class Conv1D(_Convolution):
    """Each output step is the product of its window of the inputs with the filters.

    Shapes: inputs ``[batch, steps, channels]``, outputs ``[batch, windows, filters]``;
    weights ``kernel [kernel_size, channels / groups, filters]``, ``bias [filters]``.
    Arguments as for `Conv2D`, and ``padding`` may be "causal": zeros before the first
    step, so that no output sees what comes later.
    """

    rank = 1
    paddings: tuple[str, str, str] = ("valid", "same", "causal")


class Conv2D(_Convolution):
    """Each output pixel is the product of its window of the inputs with the filters.

        outputs[y, x, o] = activation(bias[o] + sum_{i, j, c}
            inputs[y * s + i * d, x * s + j * d, c] * kernel[i, j, c, o])

    Args: ``filters``: how many channels come out; ``kernel_size``, ``strides`` s,
    ``dilation_rate`` d: an int or (height, width), and not both of the last two above 1;
    ``padding``: "valid" (windows inside the inputs only) or "same" (zeros around, so that
    stride 1 keeps the size); ``groups``: the i-th of so many parts of the input channels
    makes the i-th part of the outputs.
    Shapes: inputs ``[batch, height, width, channels]``, outputs ``[batch, rows, columns,
    filters]``, both with the channels behind the batch for ``data_format``
    "channels_first"; weights ``kernel [height, width, channels / groups, filters]`` and
    ``bias [filters]``. Integer inputs are cast.
    Raises: ``ShapeError`` for a window larger than the inputs.

    >>> layer = Conv2D(1, (1, 2), kernel_initializer="ones", activation="relu")
    >>> layer([[[[1.0], [2.0], [-5.0]]]]).numpy()[0, :, :, 0]
    array([[3., 0.]], dtype=float32)
    """

    rank = 2


class Conv3D(_Convolution):
    """`Conv2D` with a third spatial axis: ``[batch, depth, height, width, channels]``."""

    rank = 3


Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D
