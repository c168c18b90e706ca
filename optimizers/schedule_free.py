"""`ScheduleFreeAdamW`: averaging of the weights instead of a learning rate schedule."""

from __future__ import annotations

from typing import Unpack

from .adam import bias_correction
from .base.arithmetic import approach
from .base.optimizer import DecayingOptions, LearningRate, Optimizer

__all__ = ["ScheduleFreeAdamW"]


class ScheduleFreeAdamW(Optimizer):
    """The schedule-free AdamW optimizer: averages weights, needs no learning rate schedule.

        velocity <- velocity + (1 - beta_2) * (g^2 - velocity)
        z        <- z - rate * g / (sqrt(velocity / (1 - beta_2^t)) + epsilon)
        mean     <- mean + (z - mean) / t
        w         = (1 - beta_1) * z + beta_1 * mean

    Training evaluates gradients at ``w``, between ``z`` and its mean. The slot
    ``momentum`` is ``z``, which starts at ``w``; ``mean`` follows from ``w`` and ``z``.

    Args:
        learning_rate: Number, `keras.optimizers.schedules.LearningRateSchedule`, or
            function that returns the rate.
        beta_1: Weight of ``mean`` in ``w``, positive.
        beta_2: Decay rate of ``velocity``, the running mean of the squared gradient.
        epsilon: Small number added to the denominator, against division by 0.
        warmup_steps: Number of steps over which ``rate`` grows to ``learning_rate``.
        **kwargs: Base class arguments; see `keras.optimizers.Optimizer`.

    Raises:
        ValueError: If a base class argument is unknown or out of range.

    References:
        Defazio et al., "The road less scheduled" (2024).

    Example:
        >>> from tapewright import Variable
        >>> v = Variable([1.0, 2.0])
        >>> keras.optimizers.ScheduleFreeAdamW(0.1).apply([[3.0, -4.0]], [v])
        >>> v.numpy().round(3)
        array([0.9, 2.1], dtype=float32)
    """

    slots: tuple[tuple[str, str]] = (("momentum", "velocity"),)
    needs_two = True

    def __init__(
        self,
        learning_rate: LearningRate = 0.0025,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        warmup_steps: int = 0,
        **kwargs: Unpack[DecayingOptions],
    ):
        super().__init__(learning_rate, **kwargs)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.warmup_steps = warmup_steps

    def _tw_slot(self, variable, name):
        slot = super()._tw_slot(variable, name)
        if name == "momentum":
            slot.assign(variable)
        return slot

    def coefficients(self, step, learning_rate, real):
        warm = min(step / self.warmup_steps, 1.0) if self.warmup_steps else 1.0
        root = bias_correction(self.beta_2, step, real) ** 0.5
        # The correction of velocity, out of the root.
        rate = learning_rate * warm * root
        moments = 1 - self.beta_2, self.epsilon * root
        return *moments, rate, 1 - self.beta_1, 1 - 1 / step, self.beta_1 / step

    def update_block(
        self, xp, gradient, variable, scratch, coefficients, momentum, velocity
    ):
        scratch, change = scratch
        new, epsilon, rate, ahead, old, latest = coefficients
        xp.multiply(momentum, ahead, out=scratch)
        xp.subtract(variable, scratch, out=variable)
        xp.multiply(variable, old, out=variable)  # of the mean without this step
        xp.multiply(gradient, gradient, out=scratch)
        approach(xp, velocity, scratch, new, scratch)
        xp.sqrt(velocity, out=scratch)
        xp.add(scratch, epsilon, out=scratch)
        xp.multiply(gradient, rate, out=change)
        xp.divide(change, scratch, out=change)
        xp.subtract(momentum, change, out=momentum)
        xp.multiply(momentum, ahead + latest, out=scratch)
        xp.add(variable, scratch, out=variable)
