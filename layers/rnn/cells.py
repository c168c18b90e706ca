"""Recurrent cells: one step of a recurrent network, which `RNN` applies to sequences.

A cell is called with the inputs of a step and a list of states, and returns the outputs
and the new states: ``outputs, states = cell(inputs, states)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, Unpack

from tapewright.core.messages.argument_validation import whole
from tapewright.core.nest import flatten, is_nested, map_structure
from tapewright.ops.array.creation import ones_like, zeros
from tapewright.ops.array.joining import concat, split
from tapewright.ops.linalg.matmul import affine, matmul
from tapewright.ops.nn.activation import sigmoid
from tapewright.ops.nn.dropout import apply_dropout
from tapewright.ops.nn.gates import rest_of_sigmoid
from tapewright.ops.random.sampling import get_global_generator
from tapewright.serialization.object_config import deserialize

from .. import initializers
from ..base.layer import Layer, call_context
from ..base.seeds import checked_seed, generator_of

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Shape
    from tapewright.core.variable import Variable
    from tapewright.ops.random.generators import Generator

    from ..base.layer_types import (
        ActivationLike,
        ConstraintLike,
        InitializerLike,
        RegularizedLayerOptions,
        RegularizerLike,
        SeedLike,
    )

__all__ = ["GRUCell", "LSTMCell", "SimpleRNNCell", "StackedRNNCells"]


class RecurrentCell(Layer):
    """Base class of cells: two kernels, a bias, and dropout before the kernels.

    ``_tw_gates`` is the number of column blocks in the kernels. With ``implementation``
    1, or ``recurrent_dropout``, each block has its own masks.
    """

    units: int
    dropout: float
    recurrent_dropout: float
    seed_generator: Generator | None
    state_size: int
    output_size: int

    _tw_omit_defaults: dict[str, Any] = {**Layer._tw_omit_defaults, "implementation": 2}
    _tw_gates = 1

    def _tw_keep(self, arguments):
        """Keep the constructor's arguments as attributes."""
        for name, value in arguments.items():
            if name not in ("self", "kwargs", "__class__"):
                setattr(self, name, value)
        self._tw_keep_weight_arguments(arguments)
        self.units = whole(self, "units", self.units)
        self.dropout = min(1.0, max(0.0, self.dropout))
        self.recurrent_dropout = min(1.0, max(0.0, self.recurrent_dropout))
        self.seed: SeedLike = checked_seed(self, self.seed)
        self.seed_generator = generator_of(self.seed)
        self.state_size = self.output_size = self.units
        self._tw_masks = None  # those of dropout, while an RNN runs

    def build(self, input_shape: Shape) -> None:
        width = self._tw_gates * self.units
        self.kernel: Variable = self._tw_new_weight("kernel", (input_shape[-1], width))
        self.recurrent_kernel: Variable = self._tw_new_weight(
            "recurrent_kernel", (self.units, width), prefix="recurrent"
        )
        self.bias: Variable | None = None
        if self.use_bias:
            self.bias = self._tw_add_bias(width)

    def _tw_add_bias(self, width):
        return self._tw_new_weight("bias", (width,))

    def get_initial_state(self, batch_size: int | None = None) -> list[Tensor]:
        """Return a list of zero states, ``[batch, units]`` each.

        Args:
            batch_size: Number of examples.
        """
        sizes = flatten(self.state_size)
        return [zeros((batch_size, size), self._tw_compute_dtype) for size in sizes]

    # --- products with dropout in front

    @contextmanager
    def _tw_one_mask(self) -> Any:
        """Draw dropout masks only once inside the context, for all steps."""
        self._tw_masks = {}
        try:
            yield
        finally:
            self._tw_masks = None

    def _tw_of_inputs(self, inputs: Tensor, training: bool) -> Any:
        """Compute ``inputs @ kernel + bias``."""
        inputs = self._tw_as_own_dtype(inputs)
        masks = self._tw_dropped("dropout", inputs) if training else []
        bias = self.bias if self.bias is None or self.bias.ndim == 1 else self.bias[0]
        if len(masks) < 2:
            inputs = inputs * masks[0] if masks else inputs
            if bias is None:
                return matmul(inputs, self.kernel)
            return affine(inputs, self.kernel, bias)
        product = _by_blocks(inputs, masks, self.kernel)
        return product if bias is None else product + bias

    def _tw_of_state(self, state: Any, training: bool) -> Any:
        """Compute ``state @ recurrent_kernel``."""
        masks = self._tw_dropped("recurrent_dropout", state) if training else []
        if not masks:
            return matmul(state, self.recurrent_kernel)
        return _by_blocks(state, masks, self.recurrent_kernel)

    def _tw_dropped(self, which: Any, inputs: Tensor) -> Any:
        """Return the masks of "dropout" or "recurrent_dropout", one or several."""
        rate = getattr(self, which)
        if not 0 < rate < 1 and (rate == 0 or self._tw_gates > 1):  # as in Keras
            return []
        if self._tw_masks is not None and which in self._tw_masks:
            return self._tw_masks[which]
        by_gate = self.implementation == 1 or self.recurrent_dropout
        count = self._tw_gates if by_gate else 1
        stream = (self.seed_generator or get_global_generator())._tw_stream
        ones = ones_like(inputs)
        masks = [apply_dropout(self._tw_title, ones, rate, None, stream)
                 for _ in range(count)]  # fmt: skip
        if self._tw_masks is not None:
            self._tw_masks[which] = masks
        return masks


def _by_blocks(x, masks, kernel):
    """Compute ``x @ kernel`` with a mask of ``x`` for each block of columns."""
    blocks = split(kernel, len(masks), axis=1)
    return concat([matmul(x * m, block) for m, block in zip(masks, blocks)], 1)


class SimpleRNNCell(RecurrentCell):
    """Cell of a `SimpleRNN`: one step of a fully connected recurrent network.

        h <- activation(inputs @ kernel + h @ recurrent_kernel + bias)

    ``cell(inputs, states)`` returns ``(outputs, new_states)``; the outputs are the new
    state.

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
        kernel_constraint: Constraint on ``kernel``, or None.
        recurrent_constraint: Constraint on ``recurrent_kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        dropout: Fraction of the inputs to drop in training, from 0 to 1. An `RNN` uses
            the same mask for all steps of a call.
        recurrent_dropout: Fraction of the state to drop in training, from 0 to 1.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        implementation: 1 draws a separate dropout mask for each gate, as
            ``recurrent_dropout`` always does; 2 draws one mask for all gates.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, features]``, state and outputs ``[batch, units]``; weights
        ``kernel [features, units]``, ``recurrent_kernel [units, units]``,
        ``bias [units]``.

    Raises:
        ValueError: If ``units`` is not a positive integer.

    Example:
        >>> cell = keras.layers.SimpleRNNCell(4)
        >>> outputs, states = cell(tw.ones([2, 3]), [tw.zeros([2, 4])])
        >>> outputs.shape, len(states)
        (TensorShape([2, 4]), 1)
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
        kernel_constraint: ConstraintLike = None,
        recurrent_constraint: ConstraintLike = None,
        bias_constraint: ConstraintLike = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: SeedLike = None,
        implementation: int = 2,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self._tw_keep(locals())

    def call(self, sequence: Tensor, states: Any, training: bool | None = False) -> Any:
        h = states[0] if is_nested(states) else states
        h = self._tw_of_inputs(sequence, training) + self._tw_of_state(h, training)
        h = h if self.activation is None else self.activation(h)
        return h, [h] if is_nested(states) else h


class LSTMBase(RecurrentCell):
    """Base class of `LSTMCell`, and of cells whose products are convolutions.

    ``_tw_gate_axis`` is the axis along which the products of the four gates are
    concatenated.
    """

    unit_forget_bias: bool

    _tw_gates = 4
    _tw_gate_axis = 1

    def _tw_add_bias(self, width):
        initializer = self._tw_forgetting if self.unit_forget_bias else None
        return self._tw_new_weight("bias", (width,), initializer=initializer)

    def _tw_forgetting(self, shape, dtype=None):
        make, ones, units = self.bias_initializer, initializers.get("ones"), self.units
        blocks = make((units,), dtype), ones((units,), dtype), make((2 * units,), dtype)
        return concat(list(blocks), 0)

    def call(self, inputs: Tensor, states: Any, training: bool | None = False) -> Any:
        h, c = states
        x = self._tw_of_inputs(inputs, training) + self._tw_of_state(h, training)
        i, f, n, o = split(x, 4, axis=self._tw_gate_axis)
        gate = self.recurrent_activation
        c = gate(f) * c + gate(i) * self.activation(n)
        h = gate(o) * self.activation(c)
        return h, [h, c]


class LSTMCell(LSTMBase):
    """Cell of an `LSTM`: one step of a long short-term memory.

        i, f, n, o = the quarters of inputs @ kernel + h @ recurrent_kernel + bias
        c <- sigmoid(f) * c + sigmoid(i) * tanh(n)        h <- sigmoid(o) * tanh(c)

    ``cell(inputs, [h, c])`` returns ``(h, [h, c])`` with the new states.

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
        kernel_constraint: Constraint on ``kernel``, or None.
        recurrent_constraint: Constraint on ``recurrent_kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        dropout: Fraction of the inputs to drop in training, from 0 to 1. An `RNN` uses
            the same mask for all steps of a call.
        recurrent_dropout: Fraction of the state to drop in training, from 0 to 1.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        implementation: 1 draws a separate dropout mask for each gate, as
            ``recurrent_dropout`` always does; 2 draws one mask for all gates.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, features]``, states and outputs ``[batch, units]``; weights
        ``kernel [features, 4 * units]``, ``recurrent_kernel [units, 4 * units]``,
        ``bias [4 * units]``.

    Raises:
        ValueError: If ``units`` is not a positive integer.

    References:
        Hochreiter & Schmidhuber, "Long short-term memory" (1997).

    Example:
        >>> cell = keras.layers.LSTMCell(4)
        >>> outputs, states = cell(tw.ones([2, 3]), cell.get_initial_state(2))
        >>> outputs.shape, len(states)
        (TensorShape([2, 4]), 2)
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
        kernel_constraint: ConstraintLike = None,
        recurrent_constraint: ConstraintLike = None,
        bias_constraint: ConstraintLike = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: SeedLike = None,
        implementation: int = 2,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self._tw_keep(locals())
        self.state_size: list[int] = [self.units, self.units]


class GRUCell(RecurrentCell):
    """Cell of a `GRU`: one step of a gated recurrent unit.

        x = inputs @ kernel + bias[0]       y = h @ recurrent_kernel + bias[1]
        z, r = sigmoid(x_z + y_z), sigmoid(x_r + y_r)
        h <- z * h + (1 - z) * tanh(x_n + r * y_n)

    ``cell(inputs, states)`` returns ``(outputs, new_states)``; the outputs are the new
    state.

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
        kernel_constraint: Constraint on ``kernel``, or None.
        recurrent_constraint: Constraint on ``recurrent_kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        dropout: Fraction of the inputs to drop in training, from 0 to 1. An `RNN` uses
            the same mask for all steps of a call.
        recurrent_dropout: Fraction of the state to drop in training, from 0 to 1.
        reset_after: If True, apply the reset gate after the matrix product of the
            state, else before it, with a single bias.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        implementation: 1 draws a separate dropout mask for each gate, as
            ``recurrent_dropout`` always does; 2 draws one mask for all gates.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, features]``, state and outputs ``[batch, units]``; weights, in
        the order z, r, n, ``kernel [features, 3 * units]``,
        ``recurrent_kernel [units, 3 * units]``, ``bias [2, 3 * units]``, or
        ``[3 * units]`` without ``reset_after``.

    Raises:
        ValueError: If ``units`` is not a positive integer.

    References:
        Cho et al., "Learning phrase representations using RNN encoder-decoder for
        statistical machine translation" (2014).

    Example:
        >>> cell = keras.layers.GRUCell(4)
        >>> outputs, states = cell(tw.ones([2, 3]), cell.get_initial_state(2))
        >>> outputs.shape, len(states)
        (TensorShape([2, 4]), 1)
    """

    _tw_gates = 3

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
        kernel_constraint: ConstraintLike = None,
        recurrent_constraint: ConstraintLike = None,
        bias_constraint: ConstraintLike = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        reset_after: bool = True,
        seed: SeedLike = None,
        implementation: int = 2,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self._tw_keep(locals())

    def _tw_add_bias(self, width):
        shape = (2, width) if self.reset_after else (width,)
        return self._tw_new_weight("bias", shape)

    def call(self, inputs: Tensor, states: Any, training: bool | None = False) -> Any:
        h = states[0] if is_nested(states) else states
        x_z, x_r, x_n = split(self._tw_of_inputs(inputs, training), 3, axis=1)
        gate = self.recurrent_activation
        if self.reset_after:
            y = self._tw_of_state(h, training)
            y_z, y_r, y_n = split(
                y if self.bias is None else y + self.bias[1], 3, axis=1
            )
            of_z, r = x_z + y_z, gate(x_r + y_r)
            n = self.activation(x_n + r * y_n)
        else:
            masks = self._tw_dropped("recurrent_dropout", h) if training else []
            h_z, h_r, h_n = [h * m for m in masks] if masks else (h, h, h)
            k_z, k_r, k_n = split(self.recurrent_kernel, 3, axis=1)
            of_z, r = x_z + matmul(h_z, k_z), gate(x_r + matmul(h_r, k_r))
            n = self.activation(x_n + matmul(r * h_n, k_n))
        z = gate(of_z)
        h = z * h + (rest_of_sigmoid(z, of_z) if gate is sigmoid else 1.0 - z) * n
        return h, [h] if is_nested(states) else h


class StackedRNNCells(Layer):
    """Stack recurrent cells into one: the outputs of a cell are the inputs of the next.

    Args:
        cells: List of cells.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, features]``, outputs ``[batch, units of the last cell]``; the
        states are a list with one entry per cell, itself a list if the cell has several
        states.

    Raises:
        ValueError: If the list is empty, or an entry has no ``call`` or no
            ``state_size``.

    Example:
        >>> cells = [keras.layers.LSTMCell(4), keras.layers.LSTMCell(3)]
        >>> layer = keras.layers.RNN(keras.layers.StackedRNNCells(cells))
        >>> layer(tw.ones([2, 5, 1])).shape
        TensorShape([2, 3])
    """

    def __init__(
        self, cells: Sequence[Layer], **kwargs: Unpack[RegularizedLayerOptions]
    ):
        super().__init__(**kwargs)
        if not cells:
            raise ValueError(
                "StackedRNNCells: cells must contain at least one cell, got none"
            )
        for cell in cells:
            for what in ("call", "state_size"):
                if not hasattr(cell, what):
                    raise ValueError(
                        "StackedRNNCells: each cell must have the attribute "
                        f"'{what}', got {cell!r}"
                    )
        self.cells: list[Layer] = list(cells)

    @property
    def state_size(self) -> Any:
        """List of the state sizes of the cells."""
        return [cell.state_size for cell in self.cells]

    @property
    def output_size(self) -> Any:
        """Output size of the last cell."""
        return size_of_output(self.cells[-1])

    def build(self, input_shape: Any) -> None:
        for cell in self.cells:
            if isinstance(cell, Layer) and not cell.built:
                cell.build(input_shape)
            input_shape = (input_shape[0], size_of_output(cell))

    def get_initial_state(self, batch_size: int | None = None) -> list[Tensor]:
        """Return a list of the initial states of each cell.

        Args:
            batch_size: Number of examples.
        """
        states = []
        for cell in self.cells:
            if hasattr(cell, "get_initial_state"):
                states.append(cell.get_initial_state(batch_size=batch_size))
            else:
                states.append(
                    map_structure(
                        lambda size: zeros((batch_size, size), self._tw_compute_dtype),
                        cell.state_size,
                    )
                )
        return states

    def call(self, inputs: Tensor, states: Any, training: bool | None = False) -> Any:
        new_states = []
        with call_context(training):
            for cell, state in zip(self.cells, states):
                run = cell if callable(cell) else cell.call
                many = is_nested(state)
                inputs, state = run(inputs, list(state) if many else [state])
                new_states.append(state if many or not is_nested(state) else state[0])
        return inputs, new_states

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        cells = [deserialize("layer", cell) for cell in config["cells"]]
        return cls(**{**config, "cells": cells})


def size_of_output(cell):
    """Return the ``output_size`` of a cell, or the size of its first state."""
    size = getattr(cell, "output_size", None)
    if size is None:
        size = cell.state_size
        size = size[0] if is_nested(size) else size
    return size
