"""One step of a recurrent network: the cells that `RNN` takes through sequences.

A cell is called with the inputs of a step and a list of states, and gives the outputs and
the new states: ``outputs, states = cell(inputs, states)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, Unpack

from tapewright.core.argument_validation import whole
from tapewright.core.nest import flatten, is_nested, map_structure
from tapewright.ops.array.creation import ones_like, zeros
from tapewright.ops.array.joining import concat, split
from tapewright.ops.linalg.matmul import affine, matmul
from tapewright.ops.nn.activation import sigmoid
from tapewright.ops.nn.dropout import apply_dropout
from tapewright.ops.nn.gates import rest_of_sigmoid
from tapewright.ops.random.sampling import get_global_generator
from tapewright.serialization.object_config import deserialize

from . import initializers
from .base.layer import Layer, call_context
from .base.seeds import checked_seed, generator_of

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Shape
    from tapewright.core.variable import Variable
    from tapewright.ops.random.generators import Generator

    from .base.layer_types import (
        ActivationLike,
        ConstraintLike,
        InitializerLike,
        RegularizedLayerOptions,
        RegularizerLike,
        SeedLike,
    )

__all__ = ["GRUCell", "LSTMCell", "SimpleRNNCell", "StackedRNNCells"]


class RecurrentCell(Layer):
    """Base of the cells: two kernels, a bias, and dropout in front of the kernels.

    ``gates``: how many blocks of columns the kernels have. With ``implementation`` 1, or
    ``recurrent_dropout``, each block has masks of its own.
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
        """Make attributes of the constructor's arguments."""
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
        """Return a list of states of zeros, ``[batch, units]`` each."""
        sizes = flatten(self.state_size)
        return [zeros((batch_size, size), self._tw_compute_dtype) for size in sizes]

    # --- products with dropout in front

    @contextmanager
    def _tw_one_mask(self) -> Any:
        """Inside, dropout draws its masks once, for all steps."""
        self._tw_masks = {}
        try:
            yield
        finally:
            self._tw_masks = None

    def _tw_of_inputs(self, inputs: Tensor, training: bool) -> Any:
        """``inputs @ kernel + bias``."""
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
        """``state @ recurrent_kernel``."""
        masks = self._tw_dropped("recurrent_dropout", state) if training else []
        if not masks:
            return matmul(state, self.recurrent_kernel)
        return _by_blocks(state, masks, self.recurrent_kernel)

    def _tw_dropped(self, which: Any, inputs: Tensor) -> Any:
        """The masks of "dropout" or "recurrent_dropout": one, or one for each gate."""
        rate = getattr(self, which)
        if not 0 < rate < 1 and (rate == 0 or self._tw_gates > 1):  # as in Keras
            return []
        if self._tw_masks is not None and which in self._tw_masks:
            return self._tw_masks[which]
        by_gate = self.implementation == 1 or self.recurrent_dropout
        count = self._tw_gates if by_gate else 1
        stream = (self.seed_generator or get_global_generator()).stream
        ones = ones_like(inputs)
        masks = [apply_dropout(self._tw_title, ones, rate, None, stream)
                 for _ in range(count)]  # fmt: skip
        if self._tw_masks is not None:
            self._tw_masks[which] = masks
        return masks


def _by_blocks(x, masks, kernel):
    """``x @ kernel``, where each block of columns has a mask of its own."""
    blocks = split(kernel, len(masks), axis=1)
    return concat([matmul(x * m, block) for m, block in zip(masks, blocks)], 1)


class SimpleRNNCell(RecurrentCell):
    """One step of a plain recurrent network, whose output is its state.

        h <- activation(inputs @ kernel + h @ recurrent_kernel + bias)

    Args: ``dropout``, ``recurrent_dropout``: the share of the inputs and of the state
    that is dropped in training, from 0 to 1; inside an `RNN` with one mask for all
    steps of a call. ``seed`` as for `Dropout`; ``implementation``: 1 draws a dropout
    mask for each gate, as ``recurrent_dropout`` does anyhow.

    Inputs: ``cell(inputs, states)`` returns ``(outputs, new_states)``.

    Shapes: inputs ``[batch, features]``, state and outputs ``[batch, units]``; weights
    ``kernel [features, units]``, ``recurrent_kernel [units, units]``, ``bias [units]``.

    Raises: ``ValueError`` if ``units`` is not a positive integer.

    Example:
        >>> from tapewright import ones
        >>> outputs, states = keras.layers.SimpleRNNCell(4)(ones([2, 3]), [tw.zeros([2, 4])])
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
    """Base of `LSTMCell`, and of the cells whose products are convolutions.

    ``gate_axis``: the axis along which the products of the four gates follow each other.
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
    """One step of a long short-term memory, with the states h (the output) and c.

        i, f, n, o = the quarters of inputs @ kernel + h @ recurrent_kernel + bias
        c <- sigmoid(f) * c + sigmoid(i) * tanh(n)        h <- sigmoid(o) * tanh(c)

    Args: ``recurrent_activation`` replaces the sigmoids, ``activation`` tanh;
    ``unit_forget_bias``: the bias of f starts at 1; dropout as for `SimpleRNNCell`.

    Shapes: inputs ``[batch, features]``, states and outputs ``[batch, units]``; weights
    ``kernel [features, 4 * units]``, ``recurrent_kernel [units, 4 * units]``, ``bias [4
    * units]``.

    Raises: ``ValueError`` if ``units`` is not a positive integer.

    Reference: Hochreiter & Schmidhuber, "Long short-term memory" (1997).

    Example:
        >>> from tapewright import ones
        >>> cell = keras.layers.LSTMCell(4)
        >>> outputs, states = cell(ones([2, 3]), cell.get_initial_state(2))
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
    """One step of a gated recurrent unit, whose output is its state.

        x = inputs @ kernel + bias[0]       y = h @ recurrent_kernel + bias[1]
        z, r = sigmoid(x_z + y_z), sigmoid(x_r + y_r)
        h <- z * h + (1 - z) * tanh(x_n + r * y_n)

    Args: ``recurrent_activation`` replaces the sigmoids, ``activation`` tanh;
    ``reset_after``: False applies r to h in place of the product, with the first bias
    alone; dropout as for `SimpleRNNCell`.

    Shapes: inputs ``[batch, features]``, state and outputs ``[batch, units]``; weights,
    in the order z, r, n, ``kernel [features, 3 * units]``, ``recurrent_kernel [units, 3
    * units]``, ``bias [2, 3 * units]``, or ``[3 * units]`` without ``reset_after``.

    Raises: ``ValueError`` if ``units`` is not a positive integer.

    Reference: Cho et al., "Learning phrase representations using RNN encoder-decoder
    for statistical machine translation" (2014).

    Example:
        >>> from tapewright import ones
        >>> cell = keras.layers.GRUCell(4)
        >>> outputs, states = cell(ones([2, 3]), cell.get_initial_state(2))
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
    """Stacks cells to one: each takes the outputs of the one below.

    Args: ``cells``: a list of cells.

    Shapes: inputs ``[batch, features]``, outputs ``[batch, units of the last cell]``;
    the states are a list with an entry for each cell, a list where it has several.

    Raises: ``ValueError`` for an empty list, or an entry without ``call`` or
    ``state_size``.

    Example:
        >>> from tapewright import ones
        >>> from tapewright.layers import RNN
        >>> layer = RNN(keras.layers.StackedRNNCells([keras.layers.LSTMCell(4), keras.layers.LSTMCell(3)]))
        >>> layer(ones([2, 5, 1])).shape
        TensorShape([2, 3])
    """

    def __init__(
        self, cells: Sequence[Layer], **kwargs: Unpack[RegularizedLayerOptions]
    ):
        super().__init__(**kwargs)
        if not cells:
            raise ValueError(
                "StackedRNNCells: cells must hold one cell or more, got none"
            )
        for cell in cells:
            for what in ("call", "state_size"):
                if not hasattr(cell, what):
                    raise ValueError(
                        "StackedRNNCells: each of cells must have the attribute "
                        f"'{what}', got {cell!r}"
                    )
        self.cells: list[Layer] = list(cells)

    @property
    def state_size(self) -> Any:
        """The state sizes of the cells, a list."""
        return [cell.state_size for cell in self.cells]

    @property
    def output_size(self) -> Any:
        """The output size of the last cell."""
        return size_of_output(self.cells[-1])

    def build(self, input_shape: Any) -> None:
        for cell in self.cells:
            if isinstance(cell, Layer) and not cell.built:
                cell.build(input_shape)
            input_shape = (input_shape[0], size_of_output(cell))

    def get_initial_state(self, batch_size: int | None = None) -> list[Tensor]:
        """Return a list of states of zeros for each cell."""
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
    """The ``output_size`` of a cell, or else the size of its first state."""
    size = getattr(cell, "output_size", None)
    if size is None:
        size = cell.state_size
        size = size[0] if is_nested(size) else size
    return size
