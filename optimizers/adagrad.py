"""`Adagrad`, `RMSprop` and `Adadelta`: per-entry rates from squared gradients."""

from __future__ import annotations

from typing import Unpack

from tapewright.core.names.reserved_names import Replaceable

from .base.arithmetic import approach, subtract_scaled
from .base.optimizer import DecayingOptions, LearningRate, Optimizer

__all__ = ["Adadelta", "Adagrad", "RMSprop"]


class Adagrad(Optimizer):
    """The Adagrad optimizer (Duchi et al., 2011): divides by accumulated squared gradients.

        accumulator <- accumulator + g^2
        w           <- w - learning_rate * g / sqrt(accumulator + epsilon)

    Args:
        learning_rate: Number, `keras.optimizers.schedules.LearningRateSchedule`, or
            function that returns the rate.
        initial_accumulator_value: Initial value of ``accumulator``.
        epsilon: Small number added to the denominator, against division by 0.
        **kwargs: Base class arguments; see `keras.optimizers.Optimizer`.

    Raises:
        ValueError: If a base class argument is unknown or out of range.

    References:
        Duchi et al., "Adaptive subgradient methods for online learning" (2011).

    Example:
        >>> from tapewright import Variable
        >>> v = Variable([1.0, 2.0])
        >>> optimizer = keras.optimizers.Adagrad(0.1, initial_accumulator_value=0.0)
        >>> optimizer.apply([[3.0, -4.0]], [v])
        >>> v.numpy().round(3)
        array([0.9, 2.1], dtype=float32)
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

    @Replaceable
    def initial(self) -> dict[str, float]:
        return {"accumulator": self.initial_accumulator_value}

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


class RMSprop(Optimizer):
    """The RMSprop optimizer: divides the gradient by its running root mean square.

        velocity <- velocity + (1 - rho) * (g^2 - velocity)
        step      = learning_rate * g / sqrt(velocity + epsilon)
        w        <- w - step                                    without momentum
        m        <- momentum * m + step,  w <- w - m            with momentum

    Args:
        learning_rate: Number, `keras.optimizers.schedules.LearningRateSchedule`, or
            function that returns the rate.
        rho: Decay rate of the running means.
        momentum: Factor of the previous step; 0 disables momentum.
        epsilon: Small number added to the denominator, against division by 0.
        centered: If True, divide by the root of the variance: the squared running mean
            of the gradient is subtracted from ``velocity``.
        **kwargs: Base class arguments; see `keras.optimizers.Optimizer`.

    Raises:
        ValueError: If a base class argument is unknown or out of range.

    References:
        Tieleman & Hinton, "Neural networks for machine learning", lecture 6.5 (2012).

    Example:
        >>> from tapewright import Variable
        >>> v = Variable([1.0, 2.0])
        >>> keras.optimizers.RMSprop(0.1, rho=0.0).apply([[3.0, -4.0]], [v])
        >>> v.numpy().round(3)
        array([0.9, 2.1], dtype=float32)
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

    @Replaceable
    def slots(self) -> tuple[tuple[str, ...], ...]:
        slots = (("velocity",),)
        if self.momentum > 0:
            slots += (("momentum",),)
        return (*slots, ("average_gradient",)) if self.centered else slots

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


class Adadelta(Optimizer):
    """The Adadelta optimizer (Zeiler, 2012): the size of past steps scales the gradient.

        grads  <- grads + (1 - rho) * (g^2 - grads)
        delta   = sqrt((deltas + epsilon) / (grads + epsilon)) * g
        deltas <- deltas + (1 - rho) * (delta^2 - deltas)
        w      <- w - learning_rate * delta

    Args:
        learning_rate: Number, `keras.optimizers.schedules.LearningRateSchedule`, or
            function that returns the rate; the paper uses 1.
        rho: Decay rate of the running means.
        epsilon: Small number that keeps the first steps above 0.
        **kwargs: Base class arguments; see `keras.optimizers.Optimizer`.

    Raises:
        ValueError: If a base class argument is unknown or out of range.

    References:
        Zeiler, "ADADELTA: an adaptive learning rate method" (2012).

    Example:
        >>> from tapewright import Variable
        >>> v = Variable([1.0, 2.0])
        >>> keras.optimizers.Adadelta(1.0).apply([[1.0, -1.0]], [v])
        >>> v.numpy().round(4)
        array([0.9986, 2.0014], dtype=float32)
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
