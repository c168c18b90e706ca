"""`SGD`: stochastic gradient descent, with or without momentum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from tapewright.core.messages.argument_validation import share
from tapewright.core.names.reserved_names import Replaceable

from .base.arithmetic import subtract_scaled
from .base.optimizer import DecayingOptions, LearningRate, Optimizer

if TYPE_CHECKING:
    from tapewright.core.variable import Variable

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent, optionally with (Nesterov) momentum.

        w        <- w - learning_rate * g                       without momentum
        velocity <- momentum * velocity - learning_rate * g     with momentum:
        w        <- w + velocity                                plain
        w        <- w + momentum * velocity - learning_rate * g Nesterov's

    Args:
        learning_rate: Number, `keras.optimizers.schedules.LearningRateSchedule`, or
            function that returns the rate.
        momentum: Decay rate of the accumulated steps, from 0 to 1; 0 disables momentum.
        nesterov: If True, use Nesterov momentum.
        **kwargs: Base class arguments; see `keras.optimizers.Optimizer`.

    Raises:
        ValueError: If ``momentum`` is not from 0 to 1, or a base class argument is
            unknown or out of range.

    References:
        Sutskever et al., "On the importance of initialization and momentum in deep
        learning" (2013).

    Example:
        >>> from tapewright import Variable
        >>> v = Variable([1.0, 2.0])
        >>> keras.optimizers.SGD(0.5).apply([[3.0, -4.0]], [v])
        >>> v.numpy()
        array([-0.5,  4. ], dtype=float32)
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        **kwargs: Unpack[DecayingOptions],
    ):
        super().__init__(learning_rate, **kwargs)
        self.momentum: float = share(self, "momentum", float(momentum))
        self.nesterov: bool = bool(nesterov)

    @Replaceable
    def slots(self) -> tuple[tuple[str, ...], ...]:
        return (("momentum",),) if self.momentum else ()

    @Replaceable
    def zero_is_idle(self) -> bool:
        return not self.momentum

    @property
    def momentums(self) -> list[Variable]:
        """The momentum slots of the variables, a list; empty if ``momentum`` is 0."""
        return self._tw_slots[0] if self._tw_slots else []

    def coefficients(self, step, learning_rate, real):
        return learning_rate, self.momentum

    def update_block(
        self, xp, gradient, variable, scratch, coefficients, velocity=None
    ):
        learning_rate, momentum = coefficients
        if velocity is None:
            subtract_scaled(xp, variable, gradient, learning_rate, scratch)
            return
        xp.multiply(velocity, momentum, out=velocity)
        subtract_scaled(xp, velocity, gradient, learning_rate, scratch)
        if self.nesterov:
            subtract_scaled(xp, variable, gradient, learning_rate, scratch)
            xp.multiply(velocity, momentum, out=scratch)
            xp.add(variable, scratch, out=variable)
        else:
            xp.add(variable, velocity, out=variable)
