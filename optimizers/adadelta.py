"""`Adadelta`: steps as long as those before, whatever the unit of the gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from .blas_kernels import approach, subtract_scaled
from .optimizer import Optimizer

if TYPE_CHECKING:
    from .optimizer_types import DecayingOptions, LearningRate

__all__ = ["Adadelta"]


class Adadelta(Optimizer):
    """Scales the gradient by the root mean squares of past steps over past gradients.

        grads  <- grads + (1 - rho) * (g^2 - grads)
        delta   = sqrt((deltas + epsilon) / (grads + epsilon)) * g
        deltas <- deltas + (1 - rho) * (delta^2 - deltas)
        w      <- w - learning_rate * delta

    Args: ``learning_rate``, 1 in the paper; ``rho``, how much of the means a step keeps;
    ``epsilon``; the rest as for `Optimizer`.
    Reference: Zeiler, "ADADELTA" (2012). Defaults are those of Keras.
    """

    slots: tuple[tuple[str, str]] = (("accumulated_grad", "accumulated_delta_var"),)
    needs_two = True

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        rho: float = 0.95,
        epsilon: float = 1e-7,
        **kwargs: Unpack[DecayingOptions],
    ):
        super().__init__(learning_rate, **kwargs)
        self.rho = rho
        self.epsilon = epsilon

    def coefficients(self, step, learning_rate, real):
        return 1 - self.rho, self.epsilon, learning_rate

    def update_block(
        self, xp, gradient, variable, scratch, coefficients, grads, deltas
    ):
        delta, scratch = scratch
        new, epsilon, learning_rate = coefficients
        xp.multiply(gradient, gradient, out=scratch)
        approach(xp, grads, scratch, new, scratch)
        xp.add(grads, epsilon, out=scratch)
        xp.add(deltas, epsilon, out=delta)
        xp.divide(delta, scratch, out=delta)
        xp.sqrt(delta, out=delta)
        xp.multiply(delta, gradient, out=delta)
        xp.multiply(delta, delta, out=scratch)
        approach(xp, deltas, scratch, new, scratch)
        subtract_scaled(xp, variable, delta, learning_rate, scratch)
