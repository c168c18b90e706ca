"""`RMSprop`: gradients over the root of their running mean square."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from .blas_kernels import approach, subtract_scaled
from .optimizer import Optimizer

if TYPE_CHECKING:
    from .optimizer_types import DecayingOptions, LearningRate

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """Divides the gradient by the root of its running mean square.

        velocity <- velocity + (1 - rho) * (g^2 - velocity)
        step      = learning_rate * g / sqrt(velocity + epsilon)
        w        <- w - step                                    without momentum
        m        <- momentum * m + step,  w <- w - m            with momentum

    With ``centered`` the square of the gradient's running mean is taken off velocity.

    Args: ``rho``, how much of the means a step keeps; ``momentum``; ``epsilon``;
    ``centered``; the rest as for `Optimizer`.
    Reference: Tieleman & Hinton, lecture 6.5 (2012). Defaults are those of Keras.
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        **kwargs: Unpack[DecayingOptions],
    ):
        super().__init__(learning_rate, **kwargs)
        self.rho = rho
        self.momentum = momentum
        self.epsilon = epsilon
        self.centered = centered
        self.slots = (("velocity",),)
        if momentum > 0:
            self.slots += (("momentum",),)
        if centered:
            self.slots += (("average_gradient",),)

    def coefficients(self, step, learning_rate, real):
        return 1 - self.rho, self.epsilon, self.momentum, learning_rate

    def update_block(
        self, xp, gradient, variable, scratch, coefficients, velocity, *more
    ):
        new, epsilon, momentum, learning_rate = coefficients
        xp.multiply(gradient, gradient, out=scratch)
        approach(xp, velocity, scratch, new, scratch)
        if self.centered:
            mean = more[-1]
            xp.subtract(gradient, mean, out=scratch)
            xp.multiply(scratch, new, out=scratch)
            xp.add(mean, scratch, out=mean)
            xp.multiply(mean, mean, out=scratch)
            xp.subtract(velocity, scratch, out=scratch)
            xp.add(scratch, epsilon, out=scratch)
        else:
            xp.add(velocity, epsilon, out=scratch)
        xp.sqrt(scratch, out=scratch)
        xp.divide(gradient, scratch, out=scratch)
        if self.momentum > 0:
            xp.multiply(more[0], momentum, out=more[0])
            subtract_scaled(xp, more[0], scratch, -learning_rate, scratch)
            xp.subtract(variable, more[0], out=variable)
        else:
            subtract_scaled(xp, variable, scratch, learning_rate, scratch)
