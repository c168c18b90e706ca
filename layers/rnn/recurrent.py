"""`SimpleRNN`, `LSTM` and `GRU`: layers that create a cell and run it.

With the default activations all steps are one op, forward and backward (see
`tapewright.ops.nn.recurrence`); otherwise the cell runs step by step, as in `RNN`.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self, Unpack

from tapewright.core.names.reserved_names import Replaceable
from tapewright.ops.array.joining import reverse
from tapewright.ops.array.shape import expand_dims
from tapewright.ops.nn.gru import gru
from tapewright.ops.nn.lstm import lstm
from tapewright.ops.nn.simple_rnn import simple_rnn
from tapewright.serialization.constructor_arguments import constructor_arguments

from .. import activations
from ..base.input_spec import InputSpec
from .cells import GRUCell, LSTMCell, SimpleRNNCell
from .rnn import RNN

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor

    from ..base.layer_types import (
        ActivationLike,
        ConstraintLike,
        InitializerLike,
        LayerOptions,
        RegularizerLike,
        SeedLike,
    )

__all__ = ["GRU", "LSTM", "SimpleRNN"]


class CellLayer(RNN):
    """`RNN` that creates its cell from its own arguments, which form the config."""

    input_spec: InputSpec

    _tw_omit_defaults: dict[str, Any] = {
        **RNN._tw_omit_defaults,
        "implementation": 2,
        "use_cudnn": "auto",
    }

    def _tw_make(self, cell_class, name, arguments):
        """Pass a constructor's arguments to the cell, and keep the others."""
        kwargs = arguments["kwargs"]
        known = [n for n in constructor_arguments(cell_class) if n in arguments]
        of_cell = {n: arguments[n] for n in known if n != "activity_regularizer"}
        same = {n: kwargs[n] for n in ("dtype", "trainable") if n in kwargs}
        own = {n: v for n, v in arguments.items() if n not in of_cell}
        for n in ("self", "kwargs", "__class__"):
            own.pop(n, None)
        takes_cudnn = "use_cudnn" in own
        use_cudnn = own.pop("use_cudnn", "auto")
        RNN.__init__(self, cell_class(name=name, **of_cell, **same), **own, **kwargs)
        self.input_spec = InputSpec(ndim=3)
        fits = use_cudnn in ("auto", False) or (
            use_cudnn is True and self._tw_is_one_op()
        )
        if not fits:
            raise ValueError(
                f"{type(self).__name__}: use_cudnn must be 'auto' or False, or True with "
                f"the default activations and no recurrent_dropout; got {use_cudnn!r}"
            )
        if takes_cudnn:
            self.use_cudnn: Any = use_cudnn

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["cell"]
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)

    def inner_loop(
        self, sequences: Tensor, initial_state: Any, mask: Any, training: bool = False
    ) -> Any:
        if not self._tw_is_one_op(training):
            return super().inner_loop(sequences, initial_state, mask, training)
        cell, sequences = self.cell, self._tw_as_own_dtype(sequences)
        masks = cell._tw_dropped("dropout", sequences[:, 0]) if training else []
        x = sequences * expand_dims(masks[0], 1) if masks else sequences
        if self.go_backwards:
            x = reverse(x, [1])
            mask = None if mask is None else reverse(mask, [1])
        outputs, *states = self._tw_one_op(cell, x, initial_state, mask)
        if self.return_sequences:
            return outputs, states
        return states[0] if mask is None else outputs[:, -1], states

    def _tw_is_one_op(self, training=True):
        """Return whether one op can compute all steps.

        This requires the default activations, and no dropout that needs masks for the
        state or for each gate.
        """
        cell = self.cell
        gate = getattr(cell, "recurrent_activation", activations.sigmoid)
        by_gate = cell.recurrent_dropout or cell.implementation == 1
        dropped = training and (cell.dropout or cell.recurrent_dropout)
        usual = gate is activations.sigmoid and self._tw_has_op()
        usual = usual and cell.compute_dtype == self.compute_dtype
        return usual and not (by_gate and dropped)

    def _tw_has_op(self):
        return self.cell.activation is activations.tanh


for _name in (
    "units", "activation", "recurrent_activation", "use_bias", "unit_forget_bias",
    "reset_after", "kernel_initializer", "recurrent_initializer", "bias_initializer",
    "kernel_regularizer", "recurrent_regularizer", "bias_regularizer",
    "kernel_constraint", "recurrent_constraint", "bias_constraint", "dropout",
    "recurrent_dropout", "seed", "implementation",
):  # fmt: skip
    setattr(CellLayer, _name, Replaceable(attrgetter(f"cell.{_name}")))


class SimpleRNN(CellLayer):
    """Fully connected recurrent layer: `RNN` with a `SimpleRNNCell`.

        h <- activation(inputs @ kernel + h @ recurrent_kernel + bias)

    Args:
        units: Size of the state and of the outputs, positive.
        activation: Function of the new state: a name in `keras.activations`, a function
            of a tensor, or None for no activation.
        use_bias: If False, the layer has no ``bias``.
        kernel_initializer: Initializer of ``kernel``: an object or its name.
        recurrent_initializer: Initializer of ``recurrent_kernel``: an object or its
            name.
        bias_initializer: Initializer of ``bias``: an object or its name.
        kernel_regularizer: Regularizer of ``kernel``, or None.
        recurrent_regularizer: Regularizer of ``recurrent_kernel``, or None.
        bias_regularizer: Regularizer of ``bias``, or None.
        activity_regularizer: Regularizer of the outputs, or None.
        kernel_constraint: Constraint on ``kernel``, or None.
        recurrent_constraint: Constraint on ``recurrent_kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        dropout: Fraction of the inputs to drop in training, from 0 to 1. An `RNN` uses
            the same mask for all steps of a call.
        recurrent_dropout: Fraction of the state to drop in training, from 0 to 1.
        return_sequences: If True, return the outputs of all steps, otherwise only the
            last.
        return_state: If True, also return the last states.
        go_backwards: If True, run from the last step to the first.
        stateful: If True, start each call with the last states of the previous call,
            see `reset_state`.
        unroll: If True, unroll the loop over the steps in traced functions.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        implementation: 1 draws a separate dropout mask for each gate, as
            ``recurrent_dropout`` always does; 2 draws one mask for all gates.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, time, features]``, outputs ``[batch, units]``, or
        ``[batch, time, units]`` with ``return_sequences``; weights as in
        `SimpleRNNCell`.

    Raises:
        ValueError: If ``units`` is not a positive integer.

    Example:
        >>> keras.layers.SimpleRNN(4)([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]]).shape
        TensorShape([1, 4])
    """

    def __init__(
        self,
        units: int,
        activation: ActivationLike = "tanh",
        use_bias: bool = True,
        kernel_initializer: InitializerLike = "glorot_uniform",
        recurrent_initializer: InitializerLike = "orthogonal",
        bias_initializer: InitializerLike = "zeros",
        kernel_regularizer: RegularizerLike = None,
        recurrent_regularizer: RegularizerLike = None,
        bias_regularizer: RegularizerLike = None,
        activity_regularizer: RegularizerLike = None,
        kernel_constraint: ConstraintLike = None,
        recurrent_constraint: ConstraintLike = None,
        bias_constraint: ConstraintLike = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        seed: SeedLike = None,
        implementation: int = 2,
        **kwargs: Unpack[LayerOptions],
    ):
        self._tw_make(SimpleRNNCell, "simple_rnn_cell", locals())

    def _tw_has_op(self):
        return self.cell.activation in _ACTIVATIONS

    def _tw_one_op(self, cell, x, states, mask):
        return simple_rnn(
            x, states[0], cell.kernel, cell.recurrent_kernel, cell.bias,
            _ACTIVATIONS[cell.activation], mask, self._tw_zeroes_masked_steps,
        )  # fmt: skip


_ACTIVATIONS = {
    activations.tanh: "tanh",
    activations.relu: "relu",
    activations.linear: "linear",
}


class LSTM(CellLayer):
    """Long short-term memory (LSTM) layer: `RNN` with an `LSTMCell`.

        i, f, n, o = the quarters of inputs @ kernel + h @ recurrent_kernel + bias
        c <- sigmoid(f) * c + sigmoid(i) * tanh(n)        h <- sigmoid(o) * tanh(c)

    The states are ``h``, which is also the output, and ``c``. With the default
    activations and no ``recurrent_dropout``, all steps are computed by one op.

    Args:
        units: Size of the state and of the outputs, positive.
        activation: Function in place of ``tanh``: a name in `keras.activations` or a
            function of a tensor.
        recurrent_activation: Function in place of ``sigmoid``: a name in
            `keras.activations` or a function of a tensor.
        use_bias: If False, the layer has no ``bias``.
        kernel_initializer: Initializer of ``kernel``: an object or its name.
        recurrent_initializer: Initializer of ``recurrent_kernel``: an object or its
            name.
        bias_initializer: Initializer of ``bias``: an object or its name.
        unit_forget_bias: If True, initialize the bias of the forget gate with 1.
        kernel_regularizer: Regularizer of ``kernel``, or None.
        recurrent_regularizer: Regularizer of ``recurrent_kernel``, or None.
        bias_regularizer: Regularizer of ``bias``, or None.
        activity_regularizer: Regularizer of the outputs, or None.
        kernel_constraint: Constraint on ``kernel``, or None.
        recurrent_constraint: Constraint on ``recurrent_kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        dropout: Fraction of the inputs to drop in training, from 0 to 1. An `RNN` uses
            the same mask for all steps of a call.
        recurrent_dropout: Fraction of the state to drop in training, from 0 to 1.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        return_sequences: If True, return the outputs of all steps, otherwise only the
            last.
        return_state: If True, also return the last states.
        go_backwards: If True, run from the last step to the first.
        stateful: If True, start each call with the last states of the previous call,
            see `reset_state`.
        unroll: If True, unroll the loop over the steps in traced functions.
        use_cudnn: "auto" and False have no effect; True raises an error unless all
            steps are computed by one op.
        implementation: 1 draws a separate dropout mask for each gate, as
            ``recurrent_dropout`` always does; 2 draws one mask for all gates.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, time, features]``, outputs ``[batch, units]``, or
        ``[batch, time, units]`` with ``return_sequences``; with ``return_state`` also
        ``h`` and ``c`` ``[batch, units]``; weights as in `LSTMCell`.

    Raises:
        ValueError: If ``units`` is not a positive integer, or ``use_cudnn`` is True
            with other activations or ``recurrent_dropout``.

    References:
        Hochreiter & Schmidhuber, "Long short-term memory" (1997).

    Example:
        >>> layer = keras.layers.LSTM(4, return_sequences=True, return_state=True)
        >>> outputs, h, c = layer([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]])
        >>> outputs.shape, h.shape, c.shape
        (TensorShape([1, 3, 4]), TensorShape([1, 4]), TensorShape([1, 4]))
    """

    def __init__(
        self,
        units: int,
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
        unroll: bool = False,
        use_cudnn: bool | str = "auto",
        implementation: int = 2,
        **kwargs: Unpack[LayerOptions],
    ):
        self._tw_make(LSTMCell, "lstm_cell", locals())

    def _tw_one_op(self, cell, x, states, mask):
        return lstm(
            x, *states, cell.kernel, cell.recurrent_kernel, cell.bias, mask,
            self._tw_zeroes_masked_steps,
        )  # fmt: skip


class GRU(CellLayer):
    """Gated recurrent unit (GRU) layer: `RNN` with a `GRUCell`.

        x = inputs @ kernel + bias[0]       y = h @ recurrent_kernel + bias[1]
        z, r = sigmoid(x_z + y_z), sigmoid(x_r + y_r)
        h <- z * h + (1 - z) * tanh(x_n + r * y_n)

    With the default activations, ``reset_after`` and no ``recurrent_dropout``, all
    steps are computed by one op.

    Args:
        units: Size of the state and of the outputs, positive.
        activation: Function in place of ``tanh``: a name in `keras.activations` or a
            function of a tensor.
        recurrent_activation: Function in place of ``sigmoid``: a name in
            `keras.activations` or a function of a tensor.
        use_bias: If False, the layer has no ``bias``.
        kernel_initializer: Initializer of ``kernel``: an object or its name.
        recurrent_initializer: Initializer of ``recurrent_kernel``: an object or its
            name.
        bias_initializer: Initializer of ``bias``: an object or its name.
        kernel_regularizer: Regularizer of ``kernel``, or None.
        recurrent_regularizer: Regularizer of ``recurrent_kernel``, or None.
        bias_regularizer: Regularizer of ``bias``, or None.
        activity_regularizer: Regularizer of the outputs, or None.
        kernel_constraint: Constraint on ``kernel``, or None.
        recurrent_constraint: Constraint on ``recurrent_kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        dropout: Fraction of the inputs to drop in training, from 0 to 1. An `RNN` uses
            the same mask for all steps of a call.
        recurrent_dropout: Fraction of the state to drop in training, from 0 to 1.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        return_sequences: If True, return the outputs of all steps, otherwise only the
            last.
        return_state: If True, also return the last states.
        go_backwards: If True, run from the last step to the first.
        stateful: If True, start each call with the last states of the previous call,
            see `reset_state`.
        unroll: If True, unroll the loop over the steps in traced functions.
        reset_after: If True, apply the reset gate after the matrix product of the
            state, else before it, with a single bias.
        use_cudnn: "auto" and False have no effect; True raises an error unless all
            steps are computed by one op.
        implementation: 1 draws a separate dropout mask for each gate, as
            ``recurrent_dropout`` always does; 2 draws one mask for all gates.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, time, features]``, outputs ``[batch, units]``, or
        ``[batch, time, units]`` with ``return_sequences``; weights as in `GRUCell`.

    Raises:
        ValueError: If ``units`` is not a positive integer, or ``use_cudnn`` is True and
            the steps are not computed by one op.

    References:
        Cho et al., "Learning phrase representations using RNN encoder-decoder for
        statistical machine translation" (2014).

    Example:
        >>> layer = keras.layers.GRU(4, return_sequences=True)
        >>> layer([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]]).shape
        TensorShape([1, 3, 4])
    """

    def __init__(
        self,
        units: int,
        activation: ActivationLike = "tanh",
        recurrent_activation: ActivationLike = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: InitializerLike = "glorot_uniform",
        recurrent_initializer: InitializerLike = "orthogonal",
        bias_initializer: InitializerLike = "zeros",
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
        unroll: bool = False,
        reset_after: bool = True,
        use_cudnn: bool | str = "auto",
        implementation: int = 2,
        **kwargs: Unpack[LayerOptions],
    ):
        self._tw_make(GRUCell, "gru_cell", locals())

    def _tw_has_op(self):
        return super()._tw_has_op() and self.cell.reset_after

    def _tw_one_op(self, cell, x, states, mask):
        return gru(
            x, *states, cell.kernel, cell.recurrent_kernel, cell.bias, mask,
            self._tw_zeroes_masked_steps,
        )  # fmt: skip
