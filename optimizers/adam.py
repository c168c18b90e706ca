"""`Adam` and its variants: steps from running moments of the gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from tapewright.core.hardware.blas import sum_of_squares
from tapewright.core.hardware.devices import array_module
from tapewright.core.names.reserved_names import Replaceable
from tapewright.core.trackable import assign_pending

from .base.arithmetic import approach, subtract_scaled
from .base.optimizer import DecayingOptions, LearningRate, Optimizer, OptimizerOptions

if TYPE_CHECKING:
    from tapewright.core.variable import Variable

__all__ = ["Adam", "AdamW", "Adamax", "Lamb", "Nadam"]


class _MomentOptimizer(Optimizer):
    """Base class of the variants: their common arguments, and slots for two moments."""

    slots: tuple[tuple[str, ...], ...] = (("momentum", "velocity"),)

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


class Adam(_MomentOptimizer):
    """The Adam optimizer (Kingma & Ba, 2014): adaptive moment estimation.

        momentum <- momentum + (1 - beta_1) * (g - momentum)
        velocity <- velocity + (1 - beta_2) * (g^2 - velocity)
        alpha     = learning_rate * sqrt(1 - beta_2^t) / (1 - beta_1^t)
        w        <- w - alpha * momentum / (sqrt(velocity) + epsilon)

    Args:
        learning_rate: Number, `keras.optimizers.schedules.LearningRateSchedule`, or
            function that returns the rate.
        beta_1: Decay rate of ``momentum``, the running mean of the gradient.
        beta_2: Decay rate of ``velocity``, the running mean of the squared gradient.
        epsilon: Small number added to the denominator, the paper's "epsilon hat".
        amsgrad: If True, divide by the root of the largest ``velocity`` so far
            (AMSGrad).
        **kwargs: Base class arguments; see `keras.optimizers.Optimizer`.

    Raises:
        ValueError: If a base class argument is unknown or out of range.

    References:
        Kingma & Ba, "Adam: a method for stochastic optimization" (2014).
        Reddi et al., "On the convergence of Adam and beyond" (2018).

    Example:
        >>> from tapewright import Variable
        >>> v = Variable([1.0, 2.0])
        >>> keras.optimizers.Adam(0.1).apply([[3.0, -4.0]], [v])
        >>> v.numpy().round(3)
        array([0.9, 2.1], dtype=float32)
    """

    _tw_takes_factor = True

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **kwargs: Unpack[DecayingOptions],
    ):
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **kwargs)
        self.amsgrad = amsgrad

    @Replaceable
    def slots(self) -> tuple[tuple[str, ...], ...]:
        hat = (("velocity_hat",),) if self.amsgrad else ()
        return (("momentum", "velocity"), *hat)

    def coefficients(self, step, learning_rate, real):
        root = bias_correction(self.beta_2, step, real) ** 0.5
        alpha = learning_rate * root / bias_correction(self.beta_1, step, real)
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
    """The AdamW optimizer: `Adam` with decoupled weight decay.

    Before each step, ``w <- w - learning_rate * weight_decay * w``. Exclude weights
    that must not decay with `exclude_from_weight_decay`.

    Args:
        learning_rate: Number, `keras.optimizers.schedules.LearningRateSchedule`, or
            function that returns the rate.
        weight_decay: Factor of the weight decay, not None; see above.
        beta_1: Decay rate of ``momentum``, the running mean of the gradient.
        beta_2: Decay rate of ``velocity``, the running mean of the squared gradient.
        epsilon: Small number added to the denominator, the paper's "epsilon hat".
        amsgrad: If True, divide by the root of the largest ``velocity`` so far
            (AMSGrad).
        **kwargs: Base class arguments; see `keras.optimizers.Optimizer`.

    Raises:
        ValueError: If ``weight_decay`` is None, or a base class argument is unknown or
            out of range.

    References:
        Loshchilov & Hutter, "Decoupled weight decay regularization" (2019).

    Example:
        >>> from tapewright import Variable
        >>> v = Variable([1.0, 2.0])
        >>> keras.optimizers.AdamW(0.1, weight_decay=0.5).apply([[3.0, -4.0]], [v])
        >>> v.numpy().round(3)
        array([0.85, 2.  ], dtype=float32)
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


class Adamax(_MomentOptimizer):
    """The Adamax optimizer: `Adam` with the infinity norm.

        momentum <- momentum + (1 - beta_1) * (g - momentum)
        norm     <- max(beta_2 * norm, |g|)
        w        <- w - learning_rate / (1 - beta_1^t) * momentum / (norm + epsilon)

    Args:
        learning_rate: Number, `keras.optimizers.schedules.LearningRateSchedule`, or
            function that returns the rate.
        beta_1: Decay rate of ``momentum``, the running mean of the gradient.
        beta_2: Decay rate of ``norm``, the running maximum of the gradient's magnitude.
        epsilon: Small number added to the denominator, against division by 0.
        **kwargs: Base class arguments; see `keras.optimizers.Optimizer`.

    Raises:
        ValueError: If a base class argument is unknown or out of range.

    References:
        Kingma & Ba, "Adam: a method for stochastic optimization", section 7.1 (2014).

    Example:
        >>> from tapewright import Variable
        >>> v = Variable([1.0, 2.0])
        >>> keras.optimizers.Adamax(0.1).apply([[3.0, -4.0]], [v])
        >>> v.numpy().round(3)
        array([0.9, 2.1], dtype=float32)
    """

    slots: tuple[tuple[str, str]] = (("momentum", "norm"),)

    def coefficients(self, step, learning_rate, real):
        alpha = learning_rate / bias_correction(self.beta_1, step, real)
        return 1 - self.beta_1, self.beta_2, self.epsilon, alpha

    def update_block(
        self, xp, gradient, variable, scratch, coefficients, momentum, norm
    ):
        new, decay, epsilon, alpha = coefficients
        approach(xp, momentum, gradient, new, scratch)
        xp.multiply(norm, decay, out=norm)
        xp.abs(gradient, out=scratch)
        xp.maximum(norm, scratch, out=norm)
        xp.add(norm, epsilon, out=scratch)
        xp.divide(momentum, scratch, out=scratch)
        subtract_scaled(xp, variable, scratch, alpha, scratch)


class Nadam(_MomentOptimizer):
    """The Nadam optimizer: `Adam` with Nesterov momentum.

        u_t       = beta_1 * (1 - 0.96^t / 2),  product_t = u_1 * ... * u_t
        momentum <- momentum + (1 - beta_1) * (g - momentum)
        velocity <- velocity + (1 - beta_2) * (g^2 - velocity)
        ahead     = u_{t+1} / (1 - product_{t+1}) * momentum
                    + (1 - u_t) / (1 - product_t) * g
        w        <- w - learning_rate * ahead / (sqrt(velocity / (1 - beta_2^t)) + epsilon)

    Args:
        learning_rate: Number, `keras.optimizers.schedules.LearningRateSchedule`, or
            function that returns the rate.
        beta_1: Decay rate of ``momentum``, the running mean of the gradient.
        beta_2: Decay rate of ``velocity``, the running mean of the squared gradient.
        epsilon: Small number added to the denominator, against division by 0.
        **kwargs: Base class arguments; see `keras.optimizers.Optimizer`.

    Raises:
        ValueError: If a base class argument is unknown or out of range.

    References:
        Dozat, "Incorporating Nesterov momentum into Adam" (2016).

    Example:
        >>> from tapewright import Variable
        >>> v = Variable([1.0, 2.0])
        >>> keras.optimizers.Nadam(0.1).apply([[3.0, -4.0]], [v])
        >>> v.numpy().round(3)
        array([0.894, 2.106], dtype=float32)
    """

    needs_two = True

    def build(self, variables: Sequence[Variable]) -> None:
        variables = list(variables)
        super().build(variables)
        dtype = variables[0].dtype if variables else "float32"
        self._u_product = self._tw_scalar("u_product", 1.0, dtype)
        self._tw_added = [("u_product", self._u_product)]
        assign_pending(self)

    def advance(self, step: int) -> list[tuple[Variable, Any]]:
        return [(self._u_product, self._tw_product(step))]

    def _tw_product(self, step):
        """Return the product of the factors ``u`` up to this step, an array."""
        product = self._u_product._array
        xp, real = array_module(type(product)), product.dtype.type
        grown = product * real(self.beta_1) * real(1 - 0.5 * 0.96**step)
        return xp.asarray(grown, product.dtype)

    _tw_coefficient_count = 5  # before the first step there are none to be counted

    def coefficients(self, step, learning_rate, real):
        here, ahead = (self.beta_1 * (1 - 0.5 * 0.96**t) for t in (step, step + 1))
        product = self._tw_product(step).item()
        root = bias_correction(self.beta_2, step, real) ** 0.5
        # The correction of velocity, taken out of the root.
        alpha = learning_rate * root
        of_mean = alpha * ahead / (1 - product * ahead)
        of_gradient = alpha * (1 - here) / (1 - product)
        moments = 1 - self.beta_1, 1 - self.beta_2, self.epsilon * root
        return *moments, of_mean, of_gradient

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


class Lamb(_MomentOptimizer):
    """The LAMB optimizer (You et al., 2019): `Adam` with layer-wise adaptation of the rate.

        momentum <- momentum + (1 - beta_1) * (g - momentum)
        velocity <- velocity + (1 - beta_2) * (g^2 - velocity)
        step      = momentum / (1 - beta_1^t)
                    / (sqrt(velocity / (1 - beta_2^t)) + epsilon)
        w        <- w - learning_rate * |w| / |step| * step

    If one of the two norms is 0, their ratio is set to 1.

    Args:
        learning_rate: Number, `keras.optimizers.schedules.LearningRateSchedule`, or
            function that returns the rate.
        beta_1: Decay rate of ``momentum``, the running mean of the gradient.
        beta_2: Decay rate of ``velocity``, the running mean of the squared gradient.
        epsilon: Small number added to the denominator, against division by 0.
        **kwargs: Base class arguments; see `keras.optimizers.Optimizer`.

    Raises:
        ValueError: If a base class argument is unknown or out of range.

    References:
        You et al., "Large batch optimization for deep learning: training BERT in 76
        minutes" (2019).

    Example:
        >>> from tapewright import Variable
        >>> v = Variable([3.0, 4.0])
        >>> keras.optimizers.Lamb(0.1).apply([[1.0, 1.0]], [v])
        >>> v.numpy().round(3)
        array([2.646, 3.646], dtype=float32)
    """

    takes_whole = True

    def coefficients(self, step, learning_rate, real):
        root = bias_correction(self.beta_2, step, real) ** 0.5
        factor = root / bias_correction(self.beta_1, step, real)
        moments = 1 - self.beta_1, 1 - self.beta_2, self.epsilon * root
        return *moments, factor, learning_rate

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
        size, step = sum_of_squares(xp, variable), sum_of_squares(xp, scratch)
        both = (size > 0) & (step > 0)
        ratio = xp.sqrt(xp.where(both, size, 1) / xp.where(both, step, 1))
        ratio = (ratio * learning_rate).astype(variable.dtype)
        subtract_scaled(xp, variable, scratch, ratio, scratch)


def bias_correction(beta, step, real):
    """Return ``1 - beta^step``, the sum of the weights in a running mean after ``step``.

    As in Keras, the power is rounded to the variable's dtype: for ``beta_2`` the
    results in float32 and float64 differ by 1e-5.
    """
    power = real(float(real(beta)) ** step)
    # NumPy's `item` makes a new string in each call, which CPython's cache of methods keeps.
    return 1 - (float(power) if isinstance(power, np.generic) else power.item())
