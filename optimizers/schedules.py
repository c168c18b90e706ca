"""Learning rate schedules: learning rates as functions of the step.

A formula is written once for three sets of functions: functions of numbers for updates,
which need one rate per step, of arrays for updates in machine code, and of tensors for
tensors.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from tapewright.compiler.program.lowering.array_functions import NotTraceable
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
    """Base class of learning rate schedules; subclasses define ``__call__(step)``.

    ``step`` is an int64 variable that counts from 0, with the arithmetic of
    `keras.ops`: ``0.1 * step`` is float32. Constructor arguments that are kept as
    attributes become the config.

    Shapes:
        ``step`` and the result ``[...]``.

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
        """Return the rate of a step as a number."""
        variable = Variable(step, False, dtype="int64")
        variable.path = "iteration"  # as that of an optimizer
        return float(self(variable))

    def _tw_traced(self, count: Any) -> Any:
        """Return the rate of a traced step as an array of float64."""
        raise NotTraceable(f"{type(self).__name__} is a call of Python")


class _Formula(LearningRateSchedule):
    """Base class of schedules that are a formula of the step."""

    def __call__(self, step: TensorLike) -> Tensor:
        if is_tensor(step) or np.ndim(step):
            return self._tw_rate(convert_to_tensor(step), _TENSORS)
        return constant(self._tw_at(step), float32)

    def _tw_at(self, step: int) -> float:
        return float(self._tw_rate(step, NUMBERS))

    def _tw_traced(self, count: Any) -> Any:
        return self._tw_rate(count, ARRAYS)

    def _tw_check_positive(self, argument):
        value = getattr(self, argument)
        if value <= 0:
            raise ValueError(
                f"{type(self).__name__}: {argument} must be greater than 0, got {value!r}"
            )


class ExponentialDecay(_Formula):
    """Learning rate schedule with exponential decay.

        rate = initial_learning_rate * decay_rate ** (step / decay_steps)

    Args:
        initial_learning_rate: Learning rate of step 0.
        decay_steps: Number of steps over which the rate decays by ``decay_rate``,
            positive.
        decay_rate: Factor of the decay.
        staircase: If True, round the exponent down: the rate decays in discrete
            intervals.
        name: Name of the schedule, part of its config.

    Raises:
        ValueError: If ``decay_steps`` is not positive.

    Example:
        >>> rate = keras.optimizers.schedules.ExponentialDecay(0.5, 10, decay_rate=0.5)
        >>> rate(20).numpy()
        np.float32(0.125)
        >>> optimizer = keras.optimizers.SGD(rate)
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
    """Learning rate schedule with inverse time decay.

        rate = initial_learning_rate / (1 + decay_rate * step / decay_steps)

    Args:
        initial_learning_rate: Learning rate of step 0.
        decay_steps: Number of steps that counts as one unit of time, positive.
        decay_rate: Decay per unit of time.
        staircase: If True, round ``step / decay_steps`` down: the rate decays in
            discrete intervals.
        name: Name of the schedule, part of its config.

    Raises:
        ValueError: If ``decay_steps`` is not positive.

    Example:
        >>> rate = keras.optimizers.schedules.InverseTimeDecay(1.0, 10, decay_rate=0.5)
        >>> rate(20).numpy()
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
    """Learning rate schedule with constant rates between boundaries.

    The rate is ``values[i]`` up to and including step ``boundaries[i]``, then the last
    value.

    Args:
        boundaries: Increasing steps, at which the rate changes.
        values: Rates, one more than ``boundaries``.
        name: Name of the schedule, part of its config.

    Raises:
        ValueError: If ``values`` does not have one entry more than ``boundaries``.

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

    def _tw_traced(self, count: Any) -> Any:
        rate = np.float64(self.values[-1])
        for boundary, value in zip(self.boundaries[::-1], self.values[-2::-1]):
            rate = np.where(count <= math.floor(boundary), np.float64(value), rate)
        return rate

    def _tw_rate(self, step, f):
        rate = convert_to_tensor(self.values[-1], float32)
        for boundary, value in zip(self.boundaries[::-1], self.values[-2::-1]):
            if step.dtype.is_integer:
                boundary = math.floor(boundary)
            rate = where(step <= boundary, convert_to_tensor(value, float32), rate)
        return rate


class PolynomialDecay(_Formula):
    """Learning rate schedule with polynomial decay to ``end_learning_rate``.

        rate = (initial - end) * (1 - step / decay_steps) ** power + end

    After ``decay_steps`` the rate is ``end_learning_rate``.

    Args:
        initial_learning_rate: Learning rate of step 0.
        decay_steps: Number of steps until the rate reaches ``end_learning_rate``,
            positive.
        end_learning_rate: Final learning rate.
        power: Exponent of the polynomial; 1 for linear decay.
        cycle: If True, extend ``decay_steps`` to its next multiple instead of staying
            at the end: the rate rises and decays again.
        name: Name of the schedule, part of its config.

    Raises:
        ValueError: If ``decay_steps`` is not positive.

    Example:
        >>> rate = keras.optimizers.schedules.PolynomialDecay(1.0, 10, end_learning_rate=0.0)
        >>> rate([0, 5, 20]).numpy()
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
    """Learning rate schedule with cosine decay, and optional linear warmup.

        rate = initial * ((1 - alpha) * (1 + cos(pi * step / decay_steps)) / 2 + alpha)

    With ``warmup_target`` the rate first grows linearly from ``initial_learning_rate``
    to it over ``warmup_steps`` steps, and then decays from there over ``decay_steps``
    steps.

    Args:
        initial_learning_rate: Learning rate of step 0.
        decay_steps: Number of steps of the decay, positive.
        alpha: Final rate, as a fraction of the rate at which the decay starts.
        name: Name of the schedule, part of its config.
        warmup_target: Learning rate at the end of the warmup; None for no warmup.
        warmup_steps: Number of steps of the warmup.

    Raises:
        ValueError: If ``decay_steps`` is not positive.

    References:
        Loshchilov & Hutter, "SGDR: stochastic gradient descent with warm restarts"
        (2016).

    Example:
        >>> rate = keras.optimizers.schedules.CosineDecay(
        ...     0.0, 10, warmup_target=1.0, warmup_steps=4
        ... )
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
    """Learning rate schedule with cosine decay and warm restarts.

    Each period is a `CosineDecay` and ``t_mul`` times as long as the previous one.

    Args:
        initial_learning_rate: Learning rate of step 0.
        first_decay_steps: Number of steps of the first period, positive.
        t_mul: Factor of the length of each period.
        m_mul: Factor of the initial rate of each period.
        alpha: Final rate of each period, as a fraction of ``initial_learning_rate``.
        name: Name of the schedule, part of its config.

    Raises:
        ValueError: If ``first_decay_steps`` is not positive.

    References:
        Loshchilov & Hutter, "SGDR: stochastic gradient descent with warm restarts"
        (2016).

    Example:
        >>> rate = keras.optimizers.schedules.CosineDecayRestarts(1.0, 10)
        >>> rate([0, 5, 10, 20]).numpy().round(2)
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
    """Return the ``{"class_name", "config"}`` dict of a learning rate schedule.

    Args:
        learning_rate_schedule: Schedule to serialize.
    """
    return object_config.serialize(learning_rate_schedule)


def deserialize(
    config: dict[str, Any], custom_objects: dict[str, Any] | None = None
) -> LearningRateSchedule:
    """Return the learning rate schedule of a config from `serialize`.

    Args:
        config: Dict from `serialize`.
        custom_objects: Dict ``{name: class or function}``, searched before the
            registered objects.

    Raises:
        ValueError: If the class is unknown; the message lists the known classes.
    """
    with registry.custom_object_scope(custom_objects):
        return object_config.deserialize("schedule", config)


# ----------------------------------------------------- the three sets of functions

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

ARRAYS = SimpleNamespace(  # of NumPy, as in traced kernels
    real=lambda step: step.astype(np.float64),
    floor=np.floor,
    ceil=np.ceil,
    log=np.log,
    cos=np.cos,
    pow=np.power,
    minimum=np.minimum,
    maximum=np.maximum,
    select=lambda condition, yes, no: np.where(condition, yes(), no()),
    slack=NUMBERS.slack,
)

_TENSORS = SimpleNamespace(
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
