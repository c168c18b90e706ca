"""`Adafactor`: memory-efficient Adam with factored second moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from tapewright.ops.array.conversion import cast
from tapewright.ops.array.shape import expand_dims
from tapewright.ops.math.elementwise import (
    maximum,
    minimum,
    power,
    rsqrt,
    sqrt,
    square,
)
from tapewright.ops.math.reduction import reduce_mean

from .base.optimizer import DecayingOptions, LearningRate, Optimizer

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.variable import Variable

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """The Adafactor optimizer (Shazeer & Stern, 2018): Adam with factored second moments.

        rate    = min(learning_rate, 1 / sqrt(t))
        beta_t  = 1 - t^beta_2_decay
        rows   <- beta_t * rows + (1 - beta_t) * mean(g^2 + epsilon_1, axis=-1)
        columns <- beta_t * columns + (1 - beta_t) * mean(g^2 + epsilon_1, axis=-2)
        step    = g / sqrt(rows * columns / mean(rows))
        w      <- w - rate * max(epsilon_2, rms(w)) * step / max(1, rms(step) / clip_threshold)

    The mean squares of the gradient are stored per row and per column, which saves
    memory. For scalars and vectors one mean square per entry is stored.

    Args:
        learning_rate: Number, `keras.optimizers.schedules.LearningRateSchedule`, or
            function that returns the rate.
        beta_2_decay: Exponent of the decay rate of the mean squares, negative.
        epsilon_1: Small number added to the squared gradient.
        epsilon_2: Lower bound of the scale ``rms(w)`` of a variable.
        clip_threshold: Steps with a larger root mean square are scaled down to it.
        relative_step: Changes nothing, as in Keras: the rate never exceeds
            ``1 / sqrt(t)``.
        **kwargs: Base class arguments; see `keras.optimizers.Optimizer`.

    Raises:
        ValueError: If a base class argument is unknown or out of range.

    References:
        Shazeer & Stern, "Adafactor: adaptive learning rates with sublinear memory cost"
        (2018).

    Example:
        >>> from tapewright import Variable
        >>> v = Variable([1.0, 2.0])
        >>> keras.optimizers.Adafactor(0.1).apply([[3.0, -4.0]], [v])
        >>> v.numpy().round(3)
        array([0.842, 2.158], dtype=float32)
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        beta_2_decay: float = -0.8,
        epsilon_1: float = 1e-30,
        epsilon_2: float = 1e-3,
        clip_threshold: float = 1.0,
        relative_step: bool = True,
        **kwargs: Unpack[DecayingOptions],
    ):
        super().__init__(learning_rate, **kwargs)
        self.beta_2_decay = beta_2_decay
        self.epsilon_1 = epsilon_1
        self.epsilon_2 = epsilon_2
        self.clip_threshold = clip_threshold
        self.relative_step = relative_step

    def build(self, variables: Sequence[Variable]) -> None:
        super().build(variables)
        self._tw_rows, self._tw_columns, self._velocities = [], [], []
        for variable in self._trainable_variables:
            shape = tuple(variable.shape)
            # Keras' files have these in any case, and velocities of matrices.
            rows, columns, dtype = (), (), "int32"
            if len(shape) >= 2:
                rows, columns = shape[:-1], (*shape[:-2], shape[-1])
                dtype = variable.dtype
            for slots, size in ((self._tw_rows, rows), (self._tw_columns, columns)):
                name = variable.name
                slots.append(self._tw_add(name, name, size, "zeros", dtype, variable))
            velocity = self.add_variable_from_reference(variable, "velocity")
            self._velocities.append(velocity)

    def update_step(
        self, gradient: Tensor, variable: Variable, learning_rate: Tensor
    ) -> None:
        gradient, rate = (cast(x, variable.dtype) for x in (gradient, learning_rate))
        step = cast(self.iterations + 1, variable.dtype)
        rate = minimum(rate, rsqrt(step))
        squares = square(gradient) + self.epsilon_1
        new = power(step, self.beta_2_decay)  # 1 - beta_t
        at = self._get_variable_index(variable)
        rows = self._tw_rows[at]
        columns = self._tw_columns[at]
        velocity = self._velocities[at]
        if variable.shape.rank < 2:
            self._tw_average(velocity, squares, new)
        else:
            self._tw_average(rows, reduce_mean(squares, -1), new)
            self._tw_average(columns, reduce_mean(squares, -2), new)
            share = rows / reduce_mean(rows, -1, keepdims=True)
            self.assign(velocity, expand_dims(share, -1) * expand_dims(columns, -2))
        change = gradient / sqrt(velocity)
        change /= maximum(1.0, _root_mean_square(change) / self.clip_threshold)
        scale = maximum(self.epsilon_2, _root_mean_square(variable))
        self.assign_sub(variable, scale * rate * change)

    def _tw_average(self, mean, value, new):
        self.assign(mean, (1 - new) * mean + new * value)


def _root_mean_square(x):
    return sqrt(reduce_mean(square(x)))
