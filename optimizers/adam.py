"""`Adam` and `AdamW`: steps scaled by running moments of the gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from .blas_kernels import approach, subtract_scaled
from .optimizer import Optimizer

if TYPE_CHECKING:
    from .optimizer_types import DecayingOptions, LearningRate, OptimizerOptions

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """Divides a running mean of the gradient by the root of a running mean square.

        momentum <- momentum + (1 - beta_1) * (g - momentum)
        velocity <- velocity + (1 - beta_2) * (g^2 - velocity)
        alpha     = learning_rate * sqrt(1 - beta_2^t) / (1 - beta_1^t)
        w        <- w - alpha * momentum / (sqrt(velocity) + epsilon)

    With ``amsgrad`` the largest velocity so far takes the place of velocity.

    Args: ``beta_1``, ``beta_2``, how much of the moments a step keeps; ``epsilon``, the
    paper's "epsilon hat"; ``amsgrad``; the rest as for `Optimizer`.
    References: Kingma & Ba, "Adam" (2014); Reddi et al., "On the convergence of Adam and
    beyond" (2018). Defaults are those of Keras.
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **kwargs: Unpack[DecayingOptions],
    ):
        super().__init__(learning_rate, **kwargs)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.amsgrad = amsgrad
        self.slots = (("momentum", "velocity"),)
        if amsgrad:
            self.slots += (("velocity_hat",),)

    takes_factor = True

    def coefficients(self, step, learning_rate, real):
        # Keras takes the powers in the variable's dtype: 1 - beta_2 differs by 1e-5
        # between float32 and float64.
        left_1 = 1 - float(real(float(real(self.beta_1)) ** step))
        left_2 = 1 - float(real(float(real(self.beta_2)) ** step))
        alpha = learning_rate * left_2**0.5 / left_1
        return 1 - self.beta_1, 1 - self.beta_2, self.epsilon, alpha

    def update_block(
        self, xp, gradient, variable, scratch, coefficients, momentum, velocity, *hat
    ):
        new_1, new_2, epsilon, alpha, factor = coefficients
        approach(xp, momentum, gradient, new_1, scratch, factor)
        xp.multiply(gradient, gradient, out=scratch)
        approach(xp, velocity, scratch, new_2, scratch, factor * factor)
        if hat:
            velocity = xp.maximum(*hat, velocity, out=hat[0])
        xp.sqrt(velocity, out=scratch)
        xp.add(scratch, epsilon, out=scratch)
        xp.divide(momentum, scratch, out=scratch)
        subtract_scaled(xp, variable, scratch, alpha, scratch)


class AdamW(Adam):
    """`Adam` that first takes a share off each weight: ``w <- w - rate * decay * w``.

    Args: ``weight_decay``, which cannot be None here; the rest as for `Adam`. Some
    weights can be spared by `exclude_from_weight_decay`.
    Reference: Loshchilov & Hutter, "Decoupled weight decay regularization" (2019).
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        weight_decay: float = 0.004,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **kwargs: Unpack[OptimizerOptions],
    ):
        if weight_decay is None:
            raise ValueError(
                "Argument `weight_decay` must be a float. Received: weight_decay=None"
            )
        super().__init__(
            learning_rate,
            beta_1,
            beta_2,
            epsilon,
            amsgrad,
            weight_decay=weight_decay,
            **kwargs,
        )
