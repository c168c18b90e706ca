"""Learning rates as functions of the number of steps, under the names of Keras.

A formula is written once, over two sets of functions: those of numbers for an update,
which needs one rate in each step, and those of tensors for tensors.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from tapewright.core.dtypes import float32
from tapewright.core.tensor import constant, convert_to_tensor, is_tensor
from tapewright.core.variable import Variable
from tapewright.ops.array.conversion import cast
from tapewright.ops.math.comparison import where
from tapewright.ops.math.elementwise import ceil, floor, log, maximum, minimum
from tapewright.ops.math.elementwise import pow as tensor_pow
from tapewright.ops.math.trigonometry import cos
from tapewright.serialization import object_config, registry
from tapewright.serialization.configured import Configured

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import TensorLike

__all__ = [
    "CosineDecay",
    "CosineDecayRestarts",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LearningRateSchedule",
    "PiecewiseConstantDecay",
    "PolynomialDecay",
    "deserialize",
    "serialize",
]


class LearningRateSchedule(Configured):
    """Base of schedules: a subclass defines ``__call__(step)``, the rate of a step.

    ``step``, a variable of dtype int64, counts from 0; its arithmetic is that of
    `keras.ops`, so that ``0.1 * step`` is a float32. Constructor arguments that are kept
    as attributes are the config.

    Shapes: ``step`` ``[...]``, the result likewise.

    Example:
        >>> class Warmup(keras.optimizers.schedules.LearningRateSchedule):
        ...     def __call__(self, step):
        ...         return tw.minimum(0.1 * step, 1.0)
        >>> float(Warmup()(3))
        0.30000001192092896
    """

    _tw_kind: str = "schedule"

    def __call__(self, step: TensorLike) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(step)")

    def _tw_at(self, step: int) -> float:
        """Return the rate of a step, as a number."""
        variable = Variable(step, False, dtype="int64")
        variable.path = "iteration"  # as that of an optimizer
        return float(self(variable))


class _Formula(LearningRateSchedule):
    """Base of schedules that are a formula of the step."""

    def __call__(self, step: TensorLike) -> Tensor:
        if is_tensor(step) or np.ndim(step):
            return self._tw_rate(convert_to_tensor(step), TENSORS)
        return constant(self._tw_at(step), float32)

    def _tw_at(self, step: int) -> float:
        return float(self._tw_rate(step, NUMBERS))

    def _tw_check_positive(self, argument):
        value = getattr(self, argument)
        if value <= 0:
            raise ValueError(
                f"{type(self).__name__}: {argument} must be greater than 0, got {value!r}"
            )


class ExponentialDecay(_Formula):
    """``initial_learning_rate * decay_rate ** (step / decay_steps)``.

    With ``staircase`` the exponent is rounded down.

    Raises: ``ValueError`` if ``decay_steps`` is not above 0.

    Example:
        >>> keras.optimizers.schedules.ExponentialDecay(0.5, decay_steps=10, decay_rate=0.5)(20).numpy()
        np.float32(0.125)
    """

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        decay_rate: float,
        staircase: bool = False,
        name: str = "ExponentialDecay",
    ):
        self.initial_learning_rate = initial_learning_rate
        self.decay_rate = decay_rate
        self.decay_steps = decay_steps
        self.staircase = staircase
        self.name = name
        self._tw_check_positive("decay_steps")

    def _tw_rate(self, step, f):
        exponent = f.real(step) / self.decay_steps
        exponent = f.floor(exponent) if self.staircase else exponent
        return self.initial_learning_rate * f.pow(self.decay_rate, exponent)


class InverseTimeDecay(_Formula):
    """``initial_learning_rate / (1 + decay_rate * step / decay_steps)``.

    With ``staircase`` the quotient of the steps is rounded down.

    Raises: ``ValueError`` if ``decay_steps`` is not above 0.

    Example:
        >>> keras.optimizers.schedules.InverseTimeDecay(1.0, decay_steps=10, decay_rate=0.5)(20).numpy()
        np.float32(0.5)
    """

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        decay_rate: float,
        staircase: bool = False,
        name: str = "InverseTimeDecay",
    ):
        self.initial_learning_rate = initial_learning_rate
        self.decay_rate = decay_rate
        self.decay_steps = decay_steps
        self.staircase = staircase
        self.name = name
        self._tw_check_positive("decay_steps")

    def _tw_rate(self, step, f):
        done = f.real(step) / self.decay_steps
        done = f.floor(done) if self.staircase else done
        return self.initial_learning_rate / (1 + self.decay_rate * done)


class PiecewiseConstantDecay(_Formula):
    """``values[i]`` up to and with the step ``boundaries[i]``, then the last value.

    Raises: ``ValueError`` unless there is one value more than boundaries.

    Example:
        >>> rate = keras.optimizers.schedules.PiecewiseConstantDecay([2, 4], [1.0, 0.5, 0.25])
        >>> rate([0, 2, 3, 4, 5]).numpy().tolist()
        [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    def __init__(
        self,
        boundaries: Sequence[float],
        values: Sequence[float],
        name: str = "PiecewiseConstant",
    ):
        if len(boundaries) != len(values) - 1:
            raise ValueError(
                "PiecewiseConstantDecay: boundaries must be one fewer than values, got "
                f"{len(boundaries)} and {len(values)}"
            )
        self.boundaries = boundaries
        self.values = values
        self.name = name

    def _tw_at(self, step: int) -> float:
        return float(self.values[bisect_left(self.boundaries, step)])

    def _tw_rate(self, step, f):
        rate = convert_to_tensor(self.values[-1], float32)
        for boundary, value in zip(self.boundaries[::-1], self.values[-2::-1]):
            if step.dtype.is_integer:
                boundary = math.floor(boundary)
            rate = where(step <= boundary, convert_to_tensor(value, float32), rate)
        return rate


class PolynomialDecay(_Formula):
    """``(initial - end) * (1 - step / decay_steps) ** power + end``, then ``end``.

    With ``cycle`` the rate does not stay at the end: ``decay_steps`` grows to its next
    multiple.

    Raises: ``ValueError`` if ``decay_steps`` is not above 0.

    Example:
        >>> keras.optimizers.schedules.PolynomialDecay(1.0, decay_steps=10, end_learning_rate=0.0)([0, 5, 20]).numpy()
        array([1. , 0.5, 0. ], dtype=float32)
    """

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        end_learning_rate: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        name: str = "PolynomialDecay",
    ):
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.end_learning_rate = end_learning_rate
        self.power = power
        self.cycle = cycle
        self.name = name
        self._tw_check_positive("decay_steps")

    def _tw_rate(self, step, f):
        step, steps = f.real(step), self.decay_steps
        if self.cycle:
            steps = steps * f.maximum(f.ceil(step / steps), 1.0)
        else:
            step = f.minimum(step, float(steps))
        span = self.initial_learning_rate - self.end_learning_rate
        return span * f.pow(1 - step / steps, self.power) + self.end_learning_rate


class CosineDecay(_Formula):
    """Half a cosine from ``initial_learning_rate`` down to ``alpha`` times that.

        rate = initial * ((1 - alpha) * (1 + cos(pi * step / decay_steps)) / 2 + alpha)

    With a ``warmup_target`` the rate first grows linearly from
    ``initial_learning_rate`` to it over ``warmup_steps``, and then falls from there
    over ``decay_steps``.

    Raises: ``ValueError`` if ``decay_steps`` is not above 0.

    Reference: Loshchilov & Hutter, "SGDR" (2016).

    Example:
        >>> rate = keras.optimizers.schedules.CosineDecay(0.0, 10, warmup_target=1.0, warmup_steps=4)
        >>> rate([0, 2, 4, 14]).numpy().tolist()
        [0.0, 0.5, 1.0, 0.0]
    """

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        alpha: float = 0.0,
        name: str = "CosineDecay",
        warmup_target: float | None = None,
        warmup_steps: int = 0,
    ):
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.alpha = alpha
        self.name = name
        self.warmup_target = warmup_target
        self.warmup_steps = warmup_steps
        self._tw_check_positive("decay_steps")

    def _tw_rate(self, step, f):
        step, first = f.real(step), self.initial_learning_rate
        if self.warmup_target is None or not self.warmup_steps:
            top = first if self.warmup_target is None else self.warmup_target
            return self._tw_decayed(step, top, f)
        top, steps = self.warmup_target, self.warmup_steps
        return f.select(
            step < steps,
            lambda: (top - first) * (step / steps) + first,
            lambda: self._tw_decayed(step - steps, top, f),
        )

    def _tw_decayed(self, step, top, f):
        done = f.minimum(step, float(self.decay_steps)) / self.decay_steps
        wave = 0.5 * (1 + f.cos(math.pi * done))
        return top * ((1 - self.alpha) * wave + self.alpha)


class CosineDecayRestarts(_Formula):
    """`CosineDecay` with restarts: each period is ``t_mul`` times as long as the last.

    The initial rate of each period changes by the factor ``m_mul``.

    Raises: ``ValueError`` if ``first_decay_steps`` is not above 0.

    Reference: Loshchilov & Hutter, "SGDR" (2016).

    Example:
        >>> keras.optimizers.schedules.CosineDecayRestarts(1.0, 10)([0, 5, 10, 20]).numpy().round(2)
        array([1. , 0.5, 1. , 0.5], dtype=float32)
    """

    def __init__(
        self,
        initial_learning_rate: float,
        first_decay_steps: int,
        t_mul: float = 2.0,
        m_mul: float = 1.0,
        alpha: float = 0.0,
        name: str = "SGDRDecay",
    ):
        self.initial_learning_rate = initial_learning_rate
        self.first_decay_steps = first_decay_steps
        self.t_mul = t_mul
        self.m_mul = m_mul
        self.alpha = alpha
        self.name = name
        self._tw_check_positive("first_decay_steps")

    def _tw_rate(self, step, f):
        done, t = f.real(step) / self.first_decay_steps, self.t_mul
        if t == 1:
            restarts = f.floor(done)
            done = done - restarts
        else:  # the sum of a geometric series, solved for the number of its terms
            restarts = f.floor(f.log(1 - done * (1 - t)) / math.log(t) + f.slack)
            length = f.pow(float(t), restarts)
            done = (done - (1 - length) / (1 - t)) / length
        wave = 0.5 * f.pow(float(self.m_mul), restarts) * (1 + f.cos(math.pi * done))
        return self.initial_learning_rate * ((1 - self.alpha) * wave + self.alpha)


def serialize(learning_rate_schedule: Any) -> dict[str, Any]:
    """Return ``{"class_name", "config"}`` of a schedule."""
    return object_config.serialize(learning_rate_schedule)


def deserialize(
    config: dict[str, Any], custom_objects: dict[str, Any] | None = None
) -> LearningRateSchedule:
    """Return the schedule of a config from `serialize`.

    Args: ``custom_objects``: ``{name: class or function}``, looked up before those that
    are registered.

    Raises: ``ValueError`` for an unknown class, with a list of the known ones.
    """
    with registry.custom_object_scope(custom_objects):
        return object_config.deserialize("schedule", config)


# ------------------------------------------------------- the two sets of functions

NUMBERS = SimpleNamespace(
    real=float,
    floor=lambda x: math.floor(x) if math.isfinite(x) else x,
    ceil=math.ceil,
    log=lambda x: math.log(x) if x > 0 else math.nan,
    cos=math.cos,
    pow=operator.pow,
    minimum=min,
    maximum=max,
    select=lambda condition, yes, no: yes() if condition else no(),
    slack=1e-9,  # log(3 ** 5) / log(3) is to be 5
)

TENSORS = SimpleNamespace(
    real=lambda step: cast(step, float32),
    floor=floor,
    ceil=ceil,
    log=log,
    cos=cos,
    pow=lambda x, y: tensor_pow(convert_to_tensor(x, float32), y),
    minimum=minimum,
    maximum=maximum,
    select=lambda condition, yes, no: where(condition, yes(), no()),
    slack=0.0,
)
