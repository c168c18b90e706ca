"""`ConvLSTM1D` to `ConvLSTM3D`: LSTM layers with convolutions for matrix products."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.messages.argument_validation import whole
from tapewright.core.nest import flatten
from tapewright.ops.array.creation import zeros
from tapewright.ops.array.joining import concat, split
from tapewright.ops.convolution.conv import convolution
from tapewright.ops.nn.bias import bias_add

from ..base.input_spec import InputSpec
from ..convolution import ConvolutionBase
from .cells import LSTMBase
from .recurrent import CellLayer

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Shape, Sizes
    from tapewright.core.variable import Variable

    from ..base.layer_types import (
        ActivationLike,
        ConstraintLike,
        InitializerLike,
        LayerOptions,
        RegularizedLayerOptions,
        RegularizerLike,
        SeedLike,
    )

__all__ = ["ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"]


class ConvLSTMCell(LSTMBase, ConvolutionBase):
    """One time step of a ConvLSTM layer with ``rank`` spatial axes."""

    implementation = 1  # each gate has dropout masks of its own

    def __init__(
        self,
        rank: int,
        filters: int,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Sizes = 1,
        activation: ActivationLike = "tanh",
        recurrent_activation: ActivationLike = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: InitializerLike = "glorot_uniform",
        recurrent_initializer: InitializerLike = "orthogonal",
        bias_initializer: InitializerLike = "zeros",
        unit_forget_bias: bool = True,
        kernel_regularizer: RegularizerLike = None,
        recurrent_regularizer: RegularizerLike = None,
        bias_regularizer: RegularizerLike = None,
        kernel_constraint: ConstraintLike = None,
        recurrent_constraint: ConstraintLike = None,
        bias_constraint: ConstraintLike = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: SeedLike = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        whole(self, "rank", rank, most=3)
        self.units: int = whole(self, "filters", filters)
        self._tw_keep(locals())
        self._tw_keep_window(kernel_size, strides, padding, data_format, dilation_rate)
        self._tw_refuse_strides_with_dilation()
        self._tw_gate_axis: int = 1 if self.data_format == "channels_first" else -1
        self.state_size: list[int] = [self.units, self.units]

    def build(self, input_shape: Shape) -> None:
        if None in input_shape[1:]:
            raise ValueError(
                f"{self._tw_title}: the channels and spatial axes of the inputs must have "
                f"known sizes, got steps of shape {tuple(input_shape)}"
            )
        channels, width = self._tw_channels_of(input_shape), self._tw_gates * self.units
        self.state_shape: Shape = self.compute_output_shape(input_shape)[1:]
        self.kernel: Variable = self._tw_new_weight(
            "kernel", (*self.kernel_size, channels, width)
        )
        shape = (*self.kernel_size, self.units, width)
        self.recurrent_kernel: Variable = self._tw_new_weight(
            "recurrent_kernel", shape, prefix="recurrent"
        )
        self.bias: Variable | None = self._tw_add_bias(width) if self.use_bias else None

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return self._tw_shape_with(self.units, input_shape)

    def get_initial_state(self, batch_size: int | None = None) -> list[Tensor]:
        """Return two states of zeros, with the shape of the outputs of a step."""
        shape = (batch_size, *self.state_shape)
        return [zeros(shape, self._tw_compute_dtype) for _ in self.state_size]

    def _tw_of_inputs(self, inputs: Tensor, training: bool) -> Tensor:
        """Convolve the inputs with ``kernel`` and add ``bias``."""
        inputs = self._tw_as_own_dtype(inputs)
        masks = self._tw_dropped("dropout", inputs) if training else []
        x = self._tw_by_gates(self._tw_convolved, inputs, masks, self.kernel)
        return x if self.bias is None else bias_add(x, self.bias, self._tw_format)

    def _tw_of_state(self, state: Tensor, training: bool) -> Tensor:
        """Convolve the state with ``recurrent_kernel``, keeping its size."""
        masks = self._tw_dropped("recurrent_dropout", state) if training else []
        return self._tw_by_gates(self._tw_same, state, masks, self.recurrent_kernel)

    def _tw_same(self, state, kernel):
        return convolution(state, kernel, 1, "same", self._tw_format)

    def _tw_by_gates(self, product, x, masks, kernel):
        """Convolve ``x`` with the kernel of each gate, with one dropout mask per gate."""
        if not masks:
            return product(x, kernel)
        blocks = split(kernel, self._tw_gates, axis=-1)
        products = [product(x * m, block) for m, block in zip(masks, blocks)]
        return concat(products, self._tw_gate_axis)


class _ConvLSTM(CellLayer):
    """Base of the layers: `RNN` of a `ConvLSTMCell` with the layer's ``rank``."""

    cell: ConvLSTMCell
    _tw_rank: int

    def __init__(
        self,
        filters: int,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Sizes = 1,
        activation: ActivationLike = "tanh",
        recurrent_activation: ActivationLike = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: InitializerLike = "glorot_uniform",
        recurrent_initializer: InitializerLike = "orthogonal",
        bias_initializer: InitializerLike = "zeros",
        unit_forget_bias: bool = True,
        kernel_regularizer: RegularizerLike = None,
        recurrent_regularizer: RegularizerLike = None,
        bias_regularizer: RegularizerLike = None,
        activity_regularizer: RegularizerLike = None,
        kernel_constraint: ConstraintLike = None,
        recurrent_constraint: ConstraintLike = None,
        bias_constraint: ConstraintLike = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: SeedLike = None,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        **kwargs: Unpack[LayerOptions],
    ):
        arguments = locals()
        self._tw_make(
            ConvLSTMCell, "conv_lstm_cell", arguments | {"rank": self._tw_rank}
        )
        self.input_spec = InputSpec(ndim=self._tw_rank + 3)

    def _tw_is_one_op(self, training=True):
        return False

    def _tw_check_states(self, states):
        wanted = self.cell.state_shape
        actual = [tuple(x.array.shape)[1:] for x in flatten(states)]
        if actual != [wanted, wanted]:
            raise ValueError(
                f"{self._tw_title}: initial_state must be two states of shape "
                f"{(None, *wanted)}, got {len(actual)} of {actual} after the batch"
            )

    def compute_output_shape(
        self, sequences_shape: Any, initial_state_shape: Any = None
    ) -> Any:
        batch, time, *rest = sequences_shape
        state = tuple(self.cell.compute_output_shape((batch, *rest)))
        shape = (batch, time, *state[1:]) if self.return_sequences else state
        return (shape, state, state) if self.return_state else shape


for _name in ("filters kernel_size strides padding data_format dilation_rate").split():
    setattr(_ConvLSTM, _name, property(attrgetter(f"cell.{_name}")))


class ConvLSTM1D(_ConvLSTM):
    """1D convolutional LSTM: a `ConvLSTM2D` with one spatial axis.

    Args:
        filters: Number of output channels.
        kernel_size: Length of the window, an integer.
        strides: Step between windows, an integer.
        padding: "valid" (no padding) or "same" (zero padding, so that stride 1 keeps
            the size).
        data_format: "channels_last" or "channels_first"; None uses
            `keras.config.image_data_format`.
        dilation_rate: Dilation of the window, an integer. Strides and dilation cannot
            both be above 1.
        activation: Name of a function of `keras.activations`, a function of a tensor,
            or None for no activation.
        recurrent_activation: Activation of the gates, a name or a function, or None for
            no activation.
        use_bias: If False, the layer has no ``bias``.
        kernel_initializer: Initializer of ``kernel``: an object or its name.
        recurrent_initializer: Initializer of ``recurrent_kernel``: an object or its
            name.
        bias_initializer: Initializer of ``bias``: an object or its name.
        unit_forget_bias: If True, the part of ``bias`` for the forget gate starts at 1.
        kernel_regularizer: Regularizer of ``kernel``, or None.
        recurrent_regularizer: Regularizer of ``recurrent_kernel``, or None.
        bias_regularizer: Regularizer of ``bias``, or None.
        activity_regularizer: Regularizer of the outputs, or None.
        kernel_constraint: Constraint on ``kernel``, or None.
        recurrent_constraint: Constraint on ``recurrent_kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        dropout: Fraction of the inputs to drop in training, from 0 to 1, with a
            separate mask for each gate.
        recurrent_dropout: Fraction of the state h to drop in training, from 0 to 1,
            with a separate mask for each gate.
        seed: Integer seed, a `keras.random.SeedGenerator`, or None to use the global
            generator.
        return_sequences: If True, return the outputs of all time steps, else the last.
        return_state: If True, also return the final states h and c.
        go_backwards: If True, process the sequence from the last time step to the
            first.
        stateful: If True, start each call with the final states of the previous call.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, time, steps, channels]``, outputs
        ``[batch, windows, filters]``, or ``[batch, time, windows, filters]`` with
        ``return_sequences``; weights ``kernel [kernel_size, channels, 4 * filters]``,
        ``recurrent_kernel [kernel_size, filters, 4 * filters]`` and
        ``bias [4 * filters]``.

    Raises:
        ValueError: If the channels or spatial axes have unknown sizes, the states have
            another shape, or an argument is invalid.
        ShapeError: If the window is larger than the inputs.

    Example:
        >>> layer = keras.layers.ConvLSTM1D(2, 3, return_sequences=True)
        >>> layer(tw.zeros([1, 5, 8, 4])).shape
        TensorShape([1, 5, 6, 2])
    """

    _tw_rank = 1


class ConvLSTM2D(_ConvLSTM):
    """2D convolutional LSTM: an LSTM whose matrix products are convolutions (*).

        i, f, n, o = the quarters of inputs * kernel + h * recurrent_kernel + bias
        c <- sigmoid(f) c + sigmoid(i) tanh(n)        h <- sigmoid(o) tanh(c)

    The inputs are convolved as by a `Conv2D` with these arguments; the state h is
    convolved with stride 1 and "same" padding, so that it keeps its size.

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
        activation: Name of a function of `keras.activations`, a function of a tensor,
            or None for no activation.
        recurrent_activation: Activation of the gates, a name or a function, or None for
            no activation.
        use_bias: If False, the layer has no ``bias``.
        kernel_initializer: Initializer of ``kernel``: an object or its name.
        recurrent_initializer: Initializer of ``recurrent_kernel``: an object or its
            name.
        bias_initializer: Initializer of ``bias``: an object or its name.
        unit_forget_bias: If True, the part of ``bias`` for the forget gate starts at 1.
        kernel_regularizer: Regularizer of ``kernel``, or None.
        recurrent_regularizer: Regularizer of ``recurrent_kernel``, or None.
        bias_regularizer: Regularizer of ``bias``, or None.
        activity_regularizer: Regularizer of the outputs, or None.
        kernel_constraint: Constraint on ``kernel``, or None.
        recurrent_constraint: Constraint on ``recurrent_kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        dropout: Fraction of the inputs to drop in training, from 0 to 1, with a
            separate mask for each gate.
        recurrent_dropout: Fraction of the state h to drop in training, from 0 to 1,
            with a separate mask for each gate.
        seed: Integer seed, a `keras.random.SeedGenerator`, or None to use the global
            generator.
        return_sequences: If True, return the outputs of all time steps, else the last.
        return_state: If True, also return the final states h and c.
        go_backwards: If True, process the sequence from the last time step to the
            first.
        stateful: If True, start each call with the final states of the previous call.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, time, height, width, channels]``, or
        ``[batch, time, channels, height, width]`` with "channels_first"; outputs, and
        the states h and c, ``[batch, rows, columns, filters]``; with
        ``return_sequences``, outputs have a time axis after the batch. Weights
        ``kernel [height, width, channels, 4 * filters]``,
        ``recurrent_kernel [height, width, filters, 4 * filters]`` and
        ``bias [4 * filters]``.

    Raises:
        ValueError: If the channels or spatial axes have unknown sizes, the states have
            another shape, or an argument is invalid.
        ShapeError: If the window is larger than the inputs.

    References:
        Shi et al., "Convolutional LSTM network: a machine learning approach for
        precipitation nowcasting" (2015), without the product of c in the gates.

    Example:
        >>> layer = keras.layers.ConvLSTM2D(2, 3, padding="same", return_state=True)
        >>> outputs, h, c = layer(tw.zeros([1, 5, 8, 8, 3]))
        >>> outputs.shape, c.shape
        (TensorShape([1, 8, 8, 2]), TensorShape([1, 8, 8, 2]))
    """

    _tw_rank = 2


class ConvLSTM3D(_ConvLSTM):
    """3D convolutional LSTM: a `ConvLSTM2D` with three spatial axes.

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
        activation: Name of a function of `keras.activations`, a function of a tensor,
            or None for no activation.
        recurrent_activation: Activation of the gates, a name or a function, or None for
            no activation.
        use_bias: If False, the layer has no ``bias``.
        kernel_initializer: Initializer of ``kernel``: an object or its name.
        recurrent_initializer: Initializer of ``recurrent_kernel``: an object or its
            name.
        bias_initializer: Initializer of ``bias``: an object or its name.
        unit_forget_bias: If True, the part of ``bias`` for the forget gate starts at 1.
        kernel_regularizer: Regularizer of ``kernel``, or None.
        recurrent_regularizer: Regularizer of ``recurrent_kernel``, or None.
        bias_regularizer: Regularizer of ``bias``, or None.
        activity_regularizer: Regularizer of the outputs, or None.
        kernel_constraint: Constraint on ``kernel``, or None.
        recurrent_constraint: Constraint on ``recurrent_kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        dropout: Fraction of the inputs to drop in training, from 0 to 1, with a
            separate mask for each gate.
        recurrent_dropout: Fraction of the state h to drop in training, from 0 to 1,
            with a separate mask for each gate.
        seed: Integer seed, a `keras.random.SeedGenerator`, or None to use the global
            generator.
        return_sequences: If True, return the outputs of all time steps, else the last.
        return_state: If True, also return the final states h and c.
        go_backwards: If True, process the sequence from the last time step to the
            first.
        stateful: If True, start each call with the final states of the previous call.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, time, depth, height, width, channels]``, outputs
        ``[batch, windows along the three axes, filters]``; with ``return_sequences``,
        outputs have a time axis after the batch. Weights
        ``kernel [depth, height, width, channels, 4 * filters]``, ``recurrent_kernel
        [depth, height, width, filters, 4 * filters]`` and ``bias [4 * filters]``.

    Raises:
        ValueError: If the channels or spatial axes have unknown sizes, the states have
            another shape, or an argument is invalid.
        ShapeError: If the window is larger than the inputs.

    Example:
        >>> keras.layers.ConvLSTM3D(2, 2)(tw.zeros([1, 5, 4, 4, 4, 3])).shape
        TensorShape([1, 3, 3, 3, 2])
    """

    _tw_rank = 3
