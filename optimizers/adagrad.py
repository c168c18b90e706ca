"""`Adagrad`: gradients over the root of the sum of all their squares."""

from .blas_kernels import subtract_scaled
from .optimizer import Optimizer

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

    slots = (("accumulator",),)
    zero_is_idle = True

    def __init__(
        self,
        learning_rate=0.001,
        initial_accumulator_value=0.1,
        epsilon=1e-7,
        **kwargs,
    ):
        super().__init__(learning_rate, **kwargs)
        self.initial_accumulator_value, self.epsilon = (
            initial_accumulator_value,
            epsilon,
        )
        self.initial = {"accumulator": initial_accumulator_value}

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
