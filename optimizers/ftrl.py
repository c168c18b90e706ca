"""`Ftrl`: follow the regularized leader, for sparse linear models."""

from __future__ import annotations

from typing import Unpack

from tapewright.core.messages.argument_validation import not_negative
from tapewright.core.names.reserved_names import Replaceable

from .base.optimizer import DecayingOptions, LearningRate, Optimizer

__all__ = ["Ftrl"]


class Ftrl(Optimizer):
    """The FTRL optimizer (follow the regularized leader), for sparse linear models.

        n         = accumulator + g^2
        sigma     = (n^-power - accumulator^-power) / learning_rate
        linear   <- linear + g + 2 * l2_shrinkage * w - sigma * w
        quadratic = n^-power / learning_rate + 2 * l2 + beta / learning_rate
        w        <- (clip(linear, -l1, l1) - linear) / quadratic
        accumulator <- n

    Args:
        learning_rate: Number, `keras.optimizers.schedules.LearningRateSchedule`, or
            function that returns the rate.
        learning_rate_power: The exponent ``power``, not positive; 0 for a constant
            learning rate.
        initial_accumulator_value: Initial value of ``accumulator``, not negative.
        l1_regularization_strength: The factor ``l1``, not negative; larger values set
            more weights to 0.
        l2_regularization_strength: The factor ``l2``, not negative.
        l2_shrinkage_regularization_strength: The factor ``l2_shrinkage`` of a penalty
            on the magnitude of the weights, not negative.
        beta: The paper's beta, added to ``n^-power``.
        **kwargs: Base class arguments; see `keras.optimizers.Optimizer`.

    Raises:
        ValueError: If an argument is out of range, or a base class argument is unknown.

    References:
        McMahan et al., "Ad click prediction: a view from the trenches" (2013).

    Example:
        >>> from tapewright import Variable
        >>> v = Variable([1.0, 2.0])
        >>> keras.optimizers.Ftrl(0.1).apply([[3.0, -4.0]], [v])
        >>> v.numpy().round(3)
        array([0.796, 1.942], dtype=float32)
    """

    slots: tuple[tuple[str, str]] = (("accumulator", "linear"),)
    needs_two = True

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float = 0.0,
        **kwargs: Unpack[DecayingOptions],
    ):
        super().__init__(learning_rate, **kwargs)
        if learning_rate_power > 0:
            raise ValueError(
                "`learning_rate_power` needs to be negative or zero. Received: "
                f"learning_rate_power={learning_rate_power}."
            )
        self.learning_rate_power = learning_rate_power
        self.beta = beta
        self.initial_accumulator_value = initial_accumulator_value
        self.l1_regularization_strength = l1_regularization_strength
        self.l2_regularization_strength = l2_regularization_strength
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        for name in (
            "initial_accumulator_value",
            "l1_regularization_strength",
            "l2_regularization_strength",
            "l2_shrinkage_regularization_strength",
        ):
            not_negative(self, name, getattr(self, name))

    @Replaceable
    def initial(self) -> dict[str, float]:
        return {"accumulator": self.initial_accumulator_value}

    def coefficients(self, step, learning_rate, real):
        if isinstance(learning_rate, float) and learning_rate == 0:
            raise ValueError(
                "Ftrl: learning_rate must not be 0, because the update divides by it"
            )
        least = 2 * self.l2_regularization_strength + self.beta / learning_rate
        shrinkage = 2 * self.l2_shrinkage_regularization_strength
        power, l1 = -self.learning_rate_power, self.l1_regularization_strength
        return learning_rate, power, least, shrinkage, -l1, l1

    def update_block(
        self, xp, gradient, variable, scratch, coefficients, accumulator, linear
    ):
        grown, change = scratch
        learning_rate, power, least, shrinkage, low, high = coefficients
        xp.add(linear, gradient, out=linear)
        if self.l2_shrinkage_regularization_strength:
            xp.multiply(variable, shrinkage, out=grown)
            xp.add(linear, grown, out=linear)
        self._tw_raise(xp, accumulator, power, change)
        xp.multiply(gradient, gradient, out=grown)
        xp.add(accumulator, grown, out=accumulator)
        self._tw_raise(xp, accumulator, power, grown)
        xp.divide(grown, learning_rate, out=grown)
        xp.divide(change, learning_rate, out=change)
        xp.subtract(grown, change, out=change)
        xp.multiply(change, variable, out=change)
        xp.subtract(linear, change, out=linear)
        xp.add(grown, least, out=grown)
        xp.maximum(linear, low, out=change)
        xp.minimum(change, high, out=change)
        xp.subtract(change, linear, out=change)
        xp.divide(change, grown, out=variable)

    def _tw_raise(self, xp, x, power, out):
        if self.learning_rate_power == -0.5:
            xp.sqrt(x, out=out)
        else:
            xp.power(x, power, out=out)
