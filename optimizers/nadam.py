"""`Nadam`: `Adam` that looks ahead as Nesterov does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

import numpy as np

from tapewright.core.trackable import assign_pending

from .blas_kernels import approach, subtract_scaled
from .optimizer import Optimizer

if TYPE_CHECKING:
    from tapewright.core.variable import Variable

    from .optimizer_types import DecayingOptions, LearningRate

__all__ = ["Nadam"]


class Nadam(Optimizer):
    """Mixes the gradient into the mean that `Adam` steps along.

        u_t       = beta_1 * (1 - 0.96^t / 2),  product_t = u_1 * ... * u_t
        momentum <- momentum + (1 - beta_1) * (g - momentum)
        velocity <- velocity + (1 - beta_2) * (g^2 - velocity)
        ahead     = u_{t+1} / (1 - product_{t+1}) * momentum
                    + (1 - u_t) / (1 - product_t) * g
        w        <- w - learning_rate * ahead / (sqrt(velocity / (1 - beta_2^t)) + epsilon)

    Args: ``beta_1``, ``beta_2``, how much of the moments a step keeps; ``epsilon``; the
    rest as for `Optimizer`.
    Reference: Dozat, "Incorporating Nesterov momentum into Adam" (2016). Defaults are
    those of Keras.
    """

    slots: tuple[tuple[str, str]] = (("momentum", "velocity"),)
    needs_two = True

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

    def build(self, variables: Sequence[Variable]) -> None:
        variables = list(variables)
        super().build(variables)
        dtype = variables[0].dtype if variables else "float32"
        self._u_product = self._scalar("u_product", 1.0, dtype)
        self._added = [("u_product", self._u_product)]
        assign_pending(self)

    def advance(self, step: int) -> None:
        product = self._u_product._array
        real = product.dtype.type
        grown = product[()] * real(self.beta_1) * real(1 - 0.5 * 0.96**step)
        self._u_product._bind(np.asarray(grown, product.dtype))

    _coefficient_count = 5  # before the first step there are none to be counted

    def coefficients(self, step, learning_rate, real):
        here, ahead = (self.beta_1 * (1 - 0.5 * 0.96**t) for t in (step, step + 1))
        product = self._u_product._array.item()
        root = (1 - float(real(float(real(self.beta_2)) ** step))) ** 0.5
        alpha = learning_rate * root  # of the corrected velocity, taken out of the root
        of_mean = alpha * ahead / (1 - product * ahead)
        of_gradient = alpha * (1 - here) / (1 - product)
        return (
            1 - self.beta_1,
            1 - self.beta_2,
            self.epsilon * root,
            of_mean,
            of_gradient,
        )

    def update_block(
        self, xp, gradient, variable, scratch, coefficients, momentum, velocity
    ):
        scratch, mixed = scratch
        new_1, new_2, epsilon, of_mean, of_gradient = coefficients
        approach(xp, momentum, gradient, new_1, scratch)
        xp.multiply(gradient, gradient, out=scratch)
        approach(xp, velocity, scratch, new_2, scratch)
        xp.multiply(momentum, of_mean, out=mixed)
        subtract_scaled(xp, mixed, gradient, -of_gradient, scratch)
        xp.sqrt(velocity, out=scratch)
        xp.add(scratch, epsilon, out=scratch)
        xp.divide(mixed, scratch, out=scratch)
        xp.subtract(variable, scratch, out=variable)
