"""`Adamax`: `Adam` with the largest gradient in the place of the mean square."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from .blas_kernels import approach, subtract_scaled
from .optimizer import Optimizer

if TYPE_CHECKING:
    from .optimizer_types import DecayingOptions, LearningRate

__all__ = ["Adamax"]


class Adamax(Optimizer):
    """Divides a running mean of the gradient by a fading maximum of its size.

        momentum <- momentum + (1 - beta_1) * (g - momentum)
        norm     <- max(beta_2 * norm, |g|)
        w        <- w - learning_rate / (1 - beta_1^t) * momentum / (norm + epsilon)

    Args: ``beta_1``, ``beta_2``, how much of both a step keeps; ``epsilon``; the rest as
    for `Optimizer`.
    Reference: Kingma & Ba, "Adam", section 7.1 (2014). Defaults are those of Keras.
    """

    slots: tuple[tuple[str, str]] = (("momentum", "norm"),)

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
        # Keras takes the power in the variable's dtype.
        left = 1 - float(real(float(real(self.beta_1)) ** step))
        return 1 - self.beta_1, self.beta_2, self.epsilon, learning_rate / left

    def update_block(
        self, xp, gradient, variable, scratch, coefficients, momentum, norm
    ):
        new, fading, epsilon, alpha = coefficients
        approach(xp, momentum, gradient, new, scratch)
        xp.multiply(norm, fading, out=norm)
        xp.abs(gradient, out=scratch)
        xp.maximum(norm, scratch, out=norm)
        xp.add(norm, epsilon, out=scratch)
        xp.divide(momentum, scratch, out=scratch)
        subtract_scaled(xp, variable, scratch, alpha, scratch)
