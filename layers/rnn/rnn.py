"""`RNN`: run a cell over the steps of sequences.

Outside of traced functions, or with ``unroll``, this is a Python loop; inside, one node
repeats the cell for any number of steps, known or unknown.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self, Unpack

from tapewright.compiler.control_flow.map_fn import foldl, scan
from tapewright.core.interpreters import active_tracer, use_interpreters
from tapewright.core.nest import flatten, is_nested, map_structure, pack
from tapewright.core.tensor import convert_to_tensor
from tapewright.core.variable import Variable
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import zeros, zeros_like
from tapewright.ops.array.indexing import getitem
from tapewright.ops.array.joining import concat, reverse, stack
from tapewright.ops.array.shape import expand_dims, transpose
from tapewright.ops.math.comparison import where
from tapewright.serialization.object_config import deserialize

from ..base.layer import Layer, call_context
from .cells import StackedRNNCells, size_of_output

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor

    from ..base.layer_types import RegularizedLayerOptions

__all__ = ["RNN"]


class RNN(Layer):
    """Recurrent layer: run a cell over all steps of sequences.

    The call also accepts ``initial_state``, a list of states (zeros by default), and a
    boolean ``mask`` ``[batch, time]``: the states are unchanged at steps where it is
    False.

    Args:
        cell: Object with ``call(inputs, states)``, which returns the outputs of a step
            and the new states, and ``state_size`` (a number or a list of numbers), such
            as `LSTMCell`. It may define ``output_size`` and
            ``get_initial_state(batch_size)``. A list of cells is stacked, see
            `StackedRNNCells`.
        return_sequences: If True, return the outputs of all steps, otherwise only the
            last.
        return_state: If True, also return the last states.
        go_backwards: If True, run from the last step to the first.
        stateful: If True, start each call with the last states of the previous call,
            see `reset_state`.
        unroll: If True, unroll the loop over the steps in traced functions.
        zero_output_for_mask: If True, outputs of masked steps are 0, otherwise they
            repeat the step before; only with ``return_sequences``.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, time, ...]``, outputs ``[batch, output_size]``, or
        ``[batch, time, output_size]`` with ``return_sequences``; with ``return_state``
        followed by each state ``[batch, size]``.

    Raises:
        ValueError: If the cell has no ``call`` or no ``state_size``, the sizes of the
            initial states or the shape of the mask do not match, or the batch size of a
            ``stateful`` layer changes.

    Example:
        >>> from tapewright.layers import RNN, SimpleRNNCell
        >>> layer = RNN(SimpleRNNCell(4), return_sequences=True, return_state=True)
        >>> [tuple(x.shape) for x in layer(tw.zeros((2, 5, 3)))]
        [(2, 5, 4), (2, 4)]
    """

    supports_masking = True

    def __init__(
        self,
        cell: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        zero_output_for_mask: bool = False,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        if isinstance(cell, (list, tuple)):
            cell = StackedRNNCells(cell)
        for what in ("call", "state_size"):
            if not hasattr(cell, what):
                raise ValueError(
                    f"RNN: cell must have the attribute '{what}', got {cell!r}"
                )
        super().__init__(**kwargs)
        self.cell = cell
        self.return_sequences = return_sequences
        self.return_state = return_state
        self.go_backwards = go_backwards
        self.stateful = stateful
        self.unroll = unroll
        self.zero_output_for_mask = zero_output_for_mask
        sizes = cell.state_size
        self.state_size: list[Any] = list(sizes) if is_nested(sizes) else [sizes]
        self._tw_kept = _Kept()

    def __children__(self) -> Any:
        children = super().__children__()
        return children | {"states": self.states or []} if self.stateful else children

    @property
    def states(self) -> Any:
        """List of the state variables of a ``stateful`` layer; None for others."""
        return self._tw_kept.states

    def build(self, sequences_shape: Any, initial_state_shape: Any = None) -> None:
        batch, _, *rest = sequences_shape
        if isinstance(self.cell, Layer) and not self.cell.built:
            self.cell.build((batch, *rest))
        if self.stateful and self.states is None:
            if batch is None:
                raise ValueError(
                    f"{self._tw_title}: with stateful=True the batch size must be known, "
                    f"got inputs of shape {tuple(sequences_shape)}; pass batch_shape to "
                    "Input"
                )
            with use_interpreters(()):
                self._tw_kept.states = map_structure(
                    self._tw_kept_state, self.get_initial_state(batch)
                )

    def _tw_kept_state(self, value):
        value = cast(value, self.variable_dtype)
        return Variable(value, trainable=False, name="rnn_state")

    def get_initial_state(self, batch_size: int | None) -> list[Tensor]:
        """Return a list of the initial states, as defined by the cell, or zeros.

        Args:
            batch_size: Number of examples.
        """
        make = getattr(self.cell, "get_initial_state", None)
        if make is None:
            return [
                zeros((batch_size, n), self._tw_compute_dtype) for n in self.state_size
            ]
        states = make(batch_size=batch_size)
        return list(states) if is_nested(states) else [states]

    def reset_state(self) -> None:
        """Set the states of a ``stateful`` layer to zero; alias ``reset_states``."""
        for state in flatten(self.states or []):
            state.assign(zeros_like(state))

    reset_states = reset_state

    def call(
        self,
        sequences: Tensor,
        initial_state: Any = None,
        mask: Any = None,
        training: bool | None = False,
    ) -> Any:
        if initial_state is None:
            initial_state = self.states if self.stateful else None
        if initial_state is None:
            initial_state = self.get_initial_state(sequences.array.shape[0])
        states = list(initial_state) if is_nested(initial_state) else [initial_state]
        states = map_structure(convert_to_tensor, states)
        mask = None if mask is None else flatten(mask)[0]
        self._tw_check_states(states)
        self._tw_check_mask(sequences, mask)
        self._tw_check_batch(sequences, states)
        with call_context(training):
            outputs, states = self.inner_loop(sequences, states, mask, training)
        if getattr(self.cell, "compute_dtype", None) != self.compute_dtype:
            outputs, states = map_structure(self._tw_floating, (outputs, states))
        if self.stateful:
            for kept, state in zip(flatten(self.states), flatten(states)):
                kept.assign(state)
        return (outputs, *states) if self.return_state else outputs

    def _tw_floating(self, x):
        """Cast floating-point results of a cell to the dtype of this layer."""
        return self._tw_as_own_dtype(x) if x.dtype.is_floating else x

    def _tw_check_states(self, states):
        """Raise an error if number or sizes of the states do not match the cell."""
        sizes = flatten(self.state_size)
        actual = [x.shape[-1] if len(x.shape) else None for x in flatten(states)]
        fits = len(actual) == len(sizes) and all(
            [n == m or not isinstance(n, int) for n, m in zip(sizes, actual)]
        )
        if not fits:
            raise ValueError(
                f"{self._tw_title}: initial_state must be a list of states of sizes "
                f"{sizes}, got sizes {actual}"
            )

    def _tw_check_mask(self, sequences, mask):
        """Raise an error if the mask is not ``[batch, time]``."""
        if mask is None:
            return
        wanted, shape = sequences.array.shape[:2], tuple(convert_to_tensor(mask).shape)
        sizes = [(n, m) for n, m in zip(wanted, shape) if type(n) is type(m) is int]
        if len(shape) != 2 or any([n != m for n, m in sizes]):
            raise ValueError(
                f"{self._tw_title}: mask must be [batch, time], {tuple(wanted)}, got {shape}"
            )

    def _tw_check_batch(self, sequences, states):
        if not self.stateful:
            return
        batch, kept = sequences.array.shape[0], flatten(states)[0].array.shape[0]
        if batch != kept:
            raise ValueError(
                f"{self._tw_title}: with stateful=True all batches must have the same size: "
                f"the states have {kept} examples, got {batch}"
            )

    def inner_loop(
        self, sequences: Tensor, initial_state: Any, mask: Any, training: bool = False
    ) -> Any:
        """Run the cell over all steps; return the outputs and the last states.

        Args:
            sequences: Inputs ``[batch, time, ...]``.
            initial_state: List of states.
            mask: Boolean mask ``[batch, time]``, or None.
            training: True in training, False in inference.
        """
        x = time_first(sequences)
        mask = None if mask is None else time_first(cast(mask, "bool"))
        if self.go_backwards:
            x = reverse(x, [0])
            mask = None if mask is None else reverse(mask, [0])
        with ExitStack() as stacked:
            for cell in _cells_of(self.cell):
                if hasattr(cell, "_tw_one_mask"):
                    stacked.enter_context(cell._tw_one_mask())
            outputs, states = self._tw_steps(x, mask, initial_state)
        return time_first(outputs) if self.return_sequences else outputs, states

    @property
    def _tw_zeroes_masked_steps(self):
        # as Keras documents it; its code zeroes a last output as well
        return self.zero_output_for_mask and self.return_sequences

    def _tw_steps(self, x, mask, states):
        """Return the outputs, time first, and the last states.

        The first step runs outside of the loop: it determines the structure of the
        outputs, and draws the dropout masks.
        """
        first = self._tw_step(None, states, x[0], None if mask is None else mask[0])
        rows = x[1:] if mask is None else (x[1:], mask[1:])

        def step(before, row):
            row, counted = (row, None) if mask is None else row
            return self._tw_step(*before, row, counted)

        if self.unroll or active_tracer() is None:
            return self._tw_in_python(step, first, rows, x.array.shape[0])
        if not self.return_sequences:
            return foldl(step, rows, first)
        outputs, states = scan(step, rows, first)
        states = map_structure(lambda first, x: concat([expand_dims(first, 0), x], 0)[-1],
                               first[1], states)  # fmt: skip
        return concat([expand_dims(first[0], 0), outputs], 0), states

    def _tw_in_python(self, step, now, rows, count):
        outputs = [now[0]]
        for t in range(count - 1):
            now = step(now, map_structure(lambda x: getitem(x, t), rows))  # noqa: B023
            outputs.append(now[0])
        return stack(outputs) if self.return_sequences else now[0], now[1]

    def _tw_step(self, before, states, inputs, counted):
        """Return the outputs and states of a step; ``before`` are the last outputs."""
        run = self.cell if callable(self.cell) else self.cell.call
        outputs, new_states = run(inputs, tuple(states))
        new_states = pack(states, [convert_to_tensor(x) for x in flatten(new_states)])
        if counted is not None:
            if before is None or self._tw_zeroes_masked_steps:
                before = zeros_like(outputs)
            outputs = _where(counted, outputs, before)
            new_states = map_structure(
                lambda x, y: _where(counted, x, y), new_states, states
            )
        return outputs, new_states

    def compute_mask(self, inputs: Tensor, mask: Any = None) -> Any:
        mask = None if mask is None else flatten(mask)[0]
        mask = mask if self.return_sequences else None
        return [mask, *[None for _ in self.state_size]] if self.return_state else mask

    def compute_output_shape(
        self, sequences_shape: Any, initial_state_shape: Any = None
    ) -> Any:
        batch, time = sequences_shape[:2]
        size = size_of_output(self.cell)
        shape = (batch, time, size) if self.return_sequences else (batch, size)
        if not self.return_state:
            return shape
        return shape, *map_structure(lambda n: (batch, n), self.state_size)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**{**config, "cell": deserialize("layer", config["cell"])})


class _Kept:
    """Container that hides states, which are not weights, from variable tracking."""

    states = None


def _cells_of(cell):
    if isinstance(cell, StackedRNNCells):
        return [each for inner in cell.cells for each in _cells_of(inner)]
    return [cell]


def time_first(x):
    """Swap the batch and time axes."""
    return transpose(x, (1, 0, *range(2, len(x.shape))))


def _where(counted, x, y):
    """Select ``x`` for the examples that count, otherwise ``y``."""
    for _ in range(len(x.shape) - 1):
        counted = expand_dims(counted, -1)
    return where(counted, x, y)
