"""`Lamb`: `Adam`, with steps in proportion to the variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from tapewright.core.blas import sum_of_squares

from .blas_kernels import approach, subtract_scaled
from .optimizer import Optimizer

if TYPE_CHECKING:
    from .optimizer_types import DecayingOptions, LearningRate

__all__ = ["Lamb"]


class Lamb(Optimizer):
    """Makes the step of each variable as long as the variable, times the learning rate.

        momentum <- momentum + (1 - beta_1) * (g - momentum)
        velocity <- velocity + (1 - beta_2) * (g^2 - velocity)
        step      = momentum / (1 - beta_1^t)
                    / (sqrt(velocity / (1 - beta_2^t)) + epsilon)
        w        <- w - learning_rate * |w| / |step| * step

    A norm of 0 makes the ratio 1.

    Args: ``beta_1``, ``beta_2``, how much of the moments a step keeps; ``epsilon``; the
    rest as for `Optimizer`.
    Reference: You et al., "Large batch optimization for deep learning" (2019). Defaults
    are those of Keras.
    """

    slots: tuple[tuple[str, str]] = (("momentum", "velocity"),)
    takes_whole = True

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **kwargs: Unpack[DecayingOptions],
    ):
        super().__init__(learning_rate, **kwargs)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon

    def coefficients(self, step, learning_rate, real):
        left_1 = 1 - float(real(float(real(self.beta_1)) ** step))
        root = (1 - float(real(float(real(self.beta_2)) ** step))) ** 0.5
        # What the corrections of the moments leave to multiply by.
        moments = 1 - self.beta_1, 1 - self.beta_2, self.epsilon * root
        return *moments, root / left_1, learning_rate

    def update_block(
        self, xp, gradient, variable, scratch, coefficients, momentum, velocity
    ):
        new_1, new_2, epsilon, correction, learning_rate = coefficients
        approach(xp, momentum, gradient, new_1, scratch)
        xp.multiply(gradient, gradient, out=scratch)
        approach(xp, velocity, scratch, new_2, scratch)
        xp.sqrt(velocity, out=scratch)
        xp.add(scratch, epsilon, out=scratch)
        xp.divide(momentum, scratch, out=scratch)
        xp.multiply(scratch, correction, out=scratch)
        own, step = sum_of_squares(xp, variable), sum_of_squares(xp, scratch)
        both = (own > 0) & (step > 0)
        ratio = xp.sqrt(xp.where(both, own, 1) / xp.where(both, step, 1))
        ratio = (ratio * learning_rate).astype(variable.dtype)
        subtract_scaled(xp, variable, scratch, ratio, scratch)
