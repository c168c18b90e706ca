"""`Adagrad`: gradients over the root of the sum of all their squares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from .blas_kernels import subtract_scaled
from .optimizer import Optimizer

if TYPE_CHECKING:
    from .optimizer_types import DecayingOptions, LearningRate

__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """Steps less far where gradients were large before.

        accumulator <- accumulator + g^2
        w           <- w - learning_rate * g / sqrt(accumulator + epsilon)

    Args: ``initial_accumulator_value``, what the sum starts from; ``epsilon``; the rest
    as for `Optimizer`.
    Reference: Duchi et al., "Adaptive subgradient methods" (2011). Defaults are those of
    Keras.
    """

    slots: tuple[tuple[str]] = (("accumulator",),)
    zero_is_idle = True

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        **kwargs: Unpack[DecayingOptions],
    ):
        super().__init__(learning_rate, **kwargs)
        self.initial_accumulator_value = initial_accumulator_value
        self.epsilon = epsilon
        self.initial: dict[str, float] = {"accumulator": initial_accumulator_value}

    def coefficients(self, step, learning_rate, real):
        return learning_rate, self.epsilon

    def update_block(self, xp, gradient, variable, scratch, coefficients, accumulator):
        learning_rate, epsilon = coefficients
        xp.multiply(gradient, gradient, out=scratch)
        xp.add(accumulator, scratch, out=accumulator)
        xp.add(accumulator, epsilon, out=scratch)
        xp.sqrt(scratch, out=scratch)
        xp.divide(gradient, scratch, out=scratch)
        subtract_scaled(xp, variable, scratch, learning_rate, scratch)
