"""`LossScaleOptimizer`: dynamic loss scaling for float16."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tapewright.compiler.control_flow.cond import cond
from tapewright.core.hardware.devices import array_module
from tapewright.core.interpreters import use_interpreters
from tapewright.core.messages.argument_validation import positive
from tapewright.core.settings.floatx import floatx
from tapewright.core.state.replica_context import replica_context
from tapewright.core.tensor import IndexedSlices, convert_to_tensor
from tapewright.core.variable import Variable
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import zeros_like
from tapewright.ops.array.joining import stack
from tapewright.ops.math.comparison import (
    equal,
    is_finite,
    logical_and,
    logical_not,
    where,
)
from tapewright.ops.math.elementwise import maximum, minimum
from tapewright.ops.math.reduction import reduce_all
from tapewright.serialization import object_config, registry
from tapewright.serialization.constructor_arguments import constructor_arguments
from tapewright.serialization.constructor_call import constructor_call

from .base.gradients import SparseRows, in_pairs
from .base.optimizer import Optimizer
from .base.update import dense_where_it_pays

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import TensorLike

__all__ = ["LossScaleOptimizer"]


SMALLEST, LARGEST = 2.0**-126, 2.0**127  # powers of 2 that are normal in float32

_OF_KERAS_2 = {
    "get_scaled_loss": "call scale_loss(loss)",
    "get_unscaled_gradients": "apply and apply_gradients divide gradients by the scale",
    "loss_scale": "the scale is the variable dynamic_scale",
}


def _of_inner(name: str) -> Any:
    """Return a property: the attribute, or bound method, of the inner optimizer."""
    return property(operator.attrgetter(f"inner_optimizer.{name}"))


class LossScaleOptimizer(Optimizer):
    """Wrap an optimizer with dynamic loss scaling, for training in float16.

    The loss is multiplied by a scale, and the gradients are divided by it. The scale
    doubles after ``dynamic_growth_steps`` steps with finite gradients. If a gradient is
    infinite or NaN, the scale is halved and the step is skipped. As in Keras 2 the
    scale stays finite, and is not halved below 1, or ``initial_scale`` if that is
    smaller: a series of bad batches would otherwise reduce it to 0, from which it
    cannot recover.

    Args:
        inner_optimizer: Optimizer that updates the variables and holds all options.
        initial_scale: Scale of the first step, a positive float32.
        dynamic_growth_steps: Number of steps with finite gradients after which the
            scale doubles.
        name: Name of the optimizer, unique by default.
        **kwargs: No other options: set them on ``inner_optimizer``.

    Raises:
        TypeError: If ``inner_optimizer`` is not an `Optimizer`.
        ValueError: If an option of the inner optimizer is given, or ``initial_scale``
            is not a positive float32.

    References:
        Micikevicius et al., "Mixed precision training" (2018).

    Example:
        >>> from tapewright.optimizers import SGD
        >>> v = tw.Variable([1.0, 2.0])
        >>> optimizer = keras.optimizers.LossScaleOptimizer(SGD(0.5), initial_scale=8.0)
        >>> optimizer.apply([[24.0, -32.0]], [v])  # gradients of the scaled loss
        >>> v.numpy()
        array([-0.5,  4. ], dtype=float32)
    """

    def __init__(
        self,
        inner_optimizer: Optimizer,
        initial_scale: float = 2.0**15,
        dynamic_growth_steps: int = 2000,
        name: str | None = None,
        **kwargs: Any,
    ):
        if not isinstance(inner_optimizer, Optimizer):
            raise TypeError(
                "LossScaleOptimizer: inner_optimizer must be an Optimizer, got "
                f"{inner_optimizer!r}"
            )
        if not kwargs.pop("dynamic", True):
            raise ValueError(
                "LossScaleOptimizer: dynamic must be True; for a fixed scale set "
                "`loss_scale_factor` on the inner optimizer instead"
            )
        _refuse_options(kwargs)
        if not SMALLEST <= initial_scale <= LARGEST:
            raise ValueError(
                "LossScaleOptimizer: initial_scale must be a positive float32, got "
                f"{initial_scale!r}"
            )
        self.inner_optimizer = inner_optimizer
        self._tw_updates_blocks: bool = inner_optimizer._tw_updates_blocks
        super().__init__(0.0, name=name)
        self.initial_scale = positive(self, "initial_scale", initial_scale)
        self.dynamic_growth_steps = dynamic_growth_steps
        inner_optimizer.loss_scale_factor = None
        with use_interpreters(()):
            self.dynamic_scale: Variable = self._tw_new_variable(
                initial_scale, "dynamic_scale", "float32"
            )
            self.step_counter: Variable = self._tw_new_variable(
                0, "step_counter", "int64"
            )
        self._tw_known: tuple[Any, ...] = (None, None)  # arrays of both, their values

    # --- state, followed by that of the inner optimizer

    @property
    def variables(self) -> list[Variable]:
        scalars = [self._iterations, self._learning_rate]
        scalars += [self.step_counter, self.dynamic_scale]
        return scalars + self.inner_optimizer.variables

    iterations: Any = _of_inner("iterations")
    _tw_excluded_from_weight_decay: Any = _of_inner("_tw_excluded_from_weight_decay")

    @property
    def learning_rate(self) -> Any:
        """The learning rate of the inner optimizer."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if self._learning_rate is None:
            self._learning_rate = self._tw_scalar("learning_rate", value, floatx())
        else:
            self.inner_optimizer.learning_rate = value

    def _tw_shard(self) -> None:
        self.inner_optimizer._tw_shard()

    def build(self, variables: Sequence[Variable]) -> None:
        self.inner_optimizer.build(variables)
        self._trainable_variables = self.inner_optimizer._trainable_variables
        self.built = True

    def __children__(self) -> dict[str, Any]:
        return super().__children__() | {"inner_optimizer": self.inner_optimizer}

    def exclude_from_weight_decay(
        self,
        var_list: Sequence[Variable] | None = None,
        var_names: Sequence[str] | None = None,
    ) -> None:
        self.inner_optimizer.exclude_from_weight_decay(var_list, var_names)

    def finalize_variable_values(self, var_list: Sequence[Variable] | None) -> None:
        self.inner_optimizer.finalize_variable_values(var_list)

    # --- steps

    def scale_loss(self, loss: TensorLike) -> Tensor:
        """Return the loss times the current scale.

        Args:
            loss: Loss, a tensor.
        """
        return loss * self.dynamic_scale

    @in_pairs
    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Variable]]
    ) -> Variable:
        super().apply_gradients(grads_and_vars)
        return self.inner_optimizer._iterations

    def _tw_new_update(self, key, variables, grads):
        with use_interpreters(()):
            self.build(variables)
        update = self.inner_optimizer._tw_new_update(key, variables, grads)
        self._tw_updates[key] = update
        return update

    def _tw_make_step(self, update: Any, gradients: Any, share: float = 1.0) -> Any:
        value, steps = before, _ = self._tw_state()
        inner = None
        if not 0 < value <= LARGEST:  # restored from a file of an older version
            steps, value = 0, float(self.initial_scale)
        elif update.everywhere(_all_finite(gradients)):
            inner = self.inner_optimizer._tw_make_step(update, gradients, share / value)
            steps += 1
            if steps == self.dynamic_growth_steps:
                steps, value = 0, min(value * 2, LARGEST)
        else:
            steps, value = 0, max(value / 2, min(value, self._tw_least))
        xp = array_module(type(self.dynamic_scale._array))
        counter = xp.full((), steps, np.int64)
        scale = self.dynamic_scale._array
        if value != before:
            scale = xp.full((), value, np.float32)
        self._tw_known = scale, counter, value, steps
        return _ScaledStep(
            inner, [self.dynamic_scale, self.step_counter], [scale, counter]
        )

    @property
    def _tw_least(self):
        """The lower bound of the scale."""
        return min(1.0, float(self.initial_scale))

    def _tw_arrays(self):
        return self.dynamic_scale._array, self.step_counter._array

    def _tw_state(self):
        """Return scale and counter, without a GPU read of values set by the host."""
        scale, counter = self._tw_arrays()
        if self._tw_known[0] is not scale or self._tw_known[1] is not counter:
            self._tw_known = scale, counter, scale.item(), int(counter.item())
        return self._tw_known[2:]

    def _tw_trace_step(self, update, grads, variables, tracer):
        on_host = isinstance(self.dynamic_scale._array, np.ndarray)
        if on_host or replica_context() is not None:
            super()._tw_trace_step(update, grads, variables, tracer)
        else:
            self._tw_trace_on_device(grads, variables)

    def _tw_trace_on_device(self, grads, variables):
        """Record ops that compute scale and counter; the host reads once whether to step."""
        scale, steps = self.dynamic_scale.read(), self.step_counter.read()
        grads = [
            dense_where_it_pays(self.inner_optimizer, g, v)
            if isinstance(g, IndexedSlices)
            else g
            for g, v in zip(grads, variables)
        ]
        usable = logical_and(scale > 0, is_finite(scale))
        finite = [reduce_all(is_finite(_entries(g))) for g in grads if g is not None]
        finite = reduce_all(stack([usable, *finite]))

        def step():
            divided = [None if g is None else _divided(g, scale) for g in grads]
            self.inner_optimizer.apply(divided, variables)

        cond(finite, step, lambda: None)
        grows = logical_and(finite, equal(steps + 1, self.dynamic_growth_steps))
        halved = maximum(scale / 2, minimum(scale, self._tw_least))
        kept = where(finite, scale, where(usable, halved, self.initial_scale))
        self.dynamic_scale.assign(where(grows, minimum(scale * 2, LARGEST), kept))
        goes_on = logical_and(finite, logical_not(grows))
        self.step_counter.assign(where(goes_on, steps + 1, zeros_like(steps)))

    _tw_changes_gradients = True
    _tw_inner = property(operator.attrgetter("inner_optimizer"))
    _tw_block_rule: Any = _of_inner("_tw_block_rule")
    _tw_reads: Any = _of_inner("_tw_reads")

    def _tw_writes(self, update: Any) -> list[Variable]:
        written = self.inner_optimizer._tw_writes(update)
        return [*written, self.step_counter, self.dynamic_scale]

    def __getattr__(self, name: str) -> Any:
        if name in _OF_KERAS_2:
            raise AttributeError(
                f"LossScaleOptimizer has no {name!r}, as in Keras 3: {_OF_KERAS_2[name]}"
            )
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute {name!r}"
        )

    # --- configuration

    def __repr__(self) -> str:
        return constructor_call(self, omit=["learning_rate"])

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "inner_optimizer": object_config.serialize(self.inner_optimizer),
            "initial_scale": self.initial_scale,
            "dynamic_growth_steps": self.dynamic_growth_steps,
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> Self:
        config = dict(config)
        with registry.custom_object_scope(custom_objects):
            inner = object_config.deserialize(
                "optimizer", config.pop("inner_optimizer")
            )
        return cls(inner, **config)


class _ScaledStep:
    """The step of an inner optimizer, or None, and the new values of scale and counter."""

    def __init__(self, inner, variables, arrays):
        self.inner, self.variables, self.arrays = inner, variables, arrays

    @property
    def is_taken(self):
        """True unless the step is skipped."""
        return self.inner is not None

    @property
    def changes_variables(self):
        """True if the step may change variables."""
        return self.is_taken and self.inner.changes_variables

    def add_to(self, change):
        """Add the changes to a `Commit`."""
        if self.inner is not None:
            self.inner.add_to(change)
        change.bind(self.variables, self.arrays)


def _refuse_options(options):
    """Raise if an option is unknown or differs from its default."""
    neutral = {"use_ema": False, "ema_momentum": 0.99}
    unknown = [name for name in options if name not in constructor_arguments(Optimizer)]
    if unknown:
        listed = ", ".join([f"`{name}`" for name in unknown])
        raise ValueError(f"LossScaleOptimizer: unsupported arguments: {listed}")
    for name, value in options.items():
        if value != neutral.get(name):
            raise ValueError(
                f"LossScaleOptimizer does not accept {name!r}; set it on the "
                "`inner_optimizer`"
            )


def _all_finite(gradients):
    """Return whether all gradients are finite, in one check: each check waits for a GPU."""
    arrays = [g.values if type(g) is SparseRows else g for g in gradients]
    if not arrays:
        return True
    xp = array_module(type(arrays[0]))
    # A finite sum has finite terms; one that overflows, in float16, may have them, too.
    if xp.isfinite(xp.stack([array.sum() for array in arrays])).all():
        return True
    return bool(xp.stack([xp.isfinite(array).all() for array in arrays]).all())


def _values(gradient):
    """Return the stored values of a gradient, as a tensor."""
    if isinstance(gradient, IndexedSlices):
        gradient = gradient.values
    return convert_to_tensor(gradient)


def _entries(gradient):
    """Return the stored entries of a gradient, rows summed, as a tensor."""
    if isinstance(gradient, IndexedSlices):
        gradient = gradient._tw_sum_repeated()
    return _values(gradient)


def _divided(gradient, scale):
    values = _values(gradient)
    values = values * cast(1 / scale, values.dtype)
    is_sparse = isinstance(gradient, IndexedSlices)
    return gradient.with_values(values) if is_sparse else values
