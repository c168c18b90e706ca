"""Transposed convolutions: the adjoints of convolutions, which make images larger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.argument_validation import numbers, whole
from tapewright.ops.convolution.conv import conv_transpose

from .convolution import ConvolutionBase
from .spatial import from_channels_last, to_channels_last, transposed_sizes

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
    "Conv1DTranspose",
    "Conv2DTranspose",
    "Conv3DTranspose",
    "Convolution1DTranspose",
    "Convolution2DTranspose",
    "Convolution3DTranspose",
]


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
        self._keep_weight_arguments(locals())
        self._keep_window(kernel_size, strides, padding, data_format, dilation_rate)
        self.use_bias: bool = bool(use_bias)
        self._refuse_strides_with_dilation()
        self.filters: int = whole(self, "filters", filters)
        self.output_padding: tuple[int, ...] | None = self._checked_output_padding(
            output_padding
        )

    def _checked_output_padding(self, value):
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
        channels = self._channels_of(input_shape)
        shape = (*self.kernel_size, self.filters, channels)
        self.kernel: Variable = self._new_weight("kernel", shape)
        self._add_bias(self.filters)

    def call(self, inputs: Tensor) -> Tensor:
        inputs = self._as_own_dtype(inputs)
        sizes, margins = self._sizes_and_margins(tuple(inputs.shape))
        outputs = conv_transpose(
            inputs,
            self.kernel,
            sizes,
            self.strides,
            from_channels_last(((0, 0), *margins, (0, 0)), self.data_format),
            self._format,
            self.dilation_rate,
        )
        return self._finished(outputs)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        sizes, _ = self._sizes_and_margins(input_shape)
        shape = (input_shape[0], *sizes, self.filters)
        return from_channels_last(shape, self.data_format)

    def _sizes_and_margins(self, input_shape):
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
    """`Conv2DTranspose` with one spatial axis: ``[batch, steps, channels]``.

    Weights: ``kernel [kernel_size, filters, channels]``, ``bias [filters]``.
    """

    rank = 1


class Conv2DTranspose(_TransposedConvolution):
    """Each input pixel adds its product with the filters to a window of the outputs.

        outputs[y * s + i * d, x * s + j * d, o] += inputs[y, x, c] * kernel[i, j, o, c]

    The adjoint of a `Conv2D` with these arguments; then bias and activation.

    Args: ``filters``: how many channels come out; ``kernel_size``, ``strides`` s,
    ``dilation_rate`` d: an int or (height, width), and not both of the last two above 1;
    ``padding``: "same" makes the size ``size * strides``, "valid" keeps all that a window
    reaches; ``output_padding``: for another size, ``(size - 1) * strides`` and
    ``kernel_size`` ("valid") or its remainder by 2 ("same"), plus this number, which is
    below the stride.
    Shapes: inputs ``[batch, height, width, channels]``, channels behind the batch for
    ``data_format`` "channels_first"; weights ``kernel [height, width, filters,
    channels]`` and ``bias [filters]``.

    >>> layer = Conv2DTranspose(1, (1, 2), (1, 2), kernel_initializer="ones")
    >>> layer([[[[1.0], [2.0]]]]).numpy()[0, :, :, 0]
    array([[1., 1., 2., 2.]], dtype=float32)
    """

    rank = 2


class Conv3DTranspose(_TransposedConvolution):
    """`Conv2DTranspose` with a third spatial axis, depth, before height and width.

    By position ``data_format`` comes before ``output_padding``, as in Keras.
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
