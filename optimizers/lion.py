"""`Lion`: steps of constant size along the sign of a running mean."""

from __future__ import annotations

from typing import Unpack

from .base.arithmetic import approach, subtract_scaled
from .base.optimizer import DecayingOptions, LearningRate, Optimizer

__all__ = ["Lion"]


class Lion(Optimizer):
    """The Lion optimizer (Chen et al., 2023): steps by the sign of the momentum.

        w        <- w - learning_rate * sign(beta_1 * momentum + (1 - beta_1) * g)
        momentum <- momentum + (1 - beta_2) * (g - momentum)

    Args:
        learning_rate: Number, `keras.optimizers.schedules.LearningRateSchedule`, or
            function that returns the rate.
        beta_1: Weight of the momentum in a step, above 0 and at most 1.
        beta_2: Decay rate of the momentum.
        **kwargs: Base class arguments; see `keras.optimizers.Optimizer`.

    Raises:
        ValueError: If ``beta_1`` is out of range, or a base class argument is unknown
            or out of range.

    References:
        Chen et al., "Symbolic discovery of optimization algorithms" (2023).

    Example:
        >>> from tapewright import Variable
        >>> v = Variable([1.0, 2.0])
        >>> keras.optimizers.Lion(0.25).apply([[3.0, -4.0]], [v])
        >>> v.numpy()
        array([0.75, 2.25], dtype=float32)
    """

    slots: tuple[tuple[str]] = (("momentum",),)
    needs_two = True

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.99,
        **kwargs: Unpack[DecayingOptions],
    ):
        super().__init__(learning_rate, **kwargs)
        if not 0 < beta_1 <= 1:
            raise ValueError(
                "Argument `beta_1` must be in the (0, 1] range. Otherwise, the "
                f"optimizer degenerates to SignSGD. Received: beta_1={beta_1}."
            )
        self.beta_1 = beta_1
        self.beta_2 = beta_2

    def coefficients(self, step, learning_rate, real):
        return (1 - self.beta_1) / self.beta_1, 1 - self.beta_2, learning_rate

    def update_block(self, xp, gradient, variable, scratch, coefficients, momentum):
        mixed, scratch = scratch
        weight, new, learning_rate = coefficients
        xp.multiply(gradient, weight, out=mixed)
        xp.add(momentum, mixed, out=mixed)
        xp.sign(mixed, out=scratch)  # in place NumPy takes seven times as long
        subtract_scaled(xp, variable, scratch, learning_rate, scratch)
        approach(xp, momentum, gradient, new, scratch)
