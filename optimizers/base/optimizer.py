"""`Optimizer`: the base of all update rules, which applies gradients to variables.

A rule is written in one of two ways. With ops, as in Keras: `update_step` assigns to
one variable. With arrays, as the rules of tapewright: the class names its slots, and
`update_block` changes one block of numbers in place; the base class lays out variables
and slots in flat buffers (`flat_buffers.py`) and updates them in blocks that fit the
cache (`update.py`). The base class clips, decays, accumulates and averages for both,
also with sparse gradients.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, TypeVar

import numpy as np

from tapewright.compiler.program.instructions.variable_update import BlockRule
from tapewright.compiler.program.lowering.array_functions import NotTraceable
from tapewright.core.dtypes import float32
from tapewright.core.hardware.devices import array_module, use_module
from tapewright.core.hooks import watch_method
from tapewright.core.interpreters import active_tracer, use_interpreters
from tapewright.core.messages.argument_validation import positive, share, whole
from tapewright.core.messages.names_of_pytorch import OF_OPTIMIZERS, explain_elsewhere
from tapewright.core.messages.source_lines import is_own_code, user_stacklevel
from tapewright.core.messages.suggestions import explain_argument
from tapewright.core.names.naming import snake_case, unique_name
from tapewright.core.names.reserved_names import class_attribute
from tapewright.core.settings import config
from tapewright.core.settings.floatx import floatx
from tapewright.core.tensor import constant, convert_to_tensor, new_tensor
from tapewright.core.trackable import assign_pending
from tapewright.core.variable import Variable, writing
from tapewright.serialization import object_config, registry
from tapewright.serialization.configured import Configured
from tapewright.serialization.constructor_arguments import (
    constructor_arguments,
    is_own,
    refuse_arguments,
)

from ..schedules import LearningRateSchedule
from .arithmetic import scratch_count, update
from .device_update import device_update
from .flat_buffers import lay_out
from .gradients import check_is_list, clipping, in_pairs
from .recording import ReadSettings, are_current
from .rule_step import RuleStep, update_alone
from .sharded_update import Parts, ShardedUpdate
from .state import State
from .traced_step import traced_step
from .update import Update

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, TensorLike

__all__ = ["Optimizer"]

Method = TypeVar("Method", bound=Callable[..., Any])

# What a rule in blocks defines.
_EXTENSION_POINTS = {
    "advance", "coefficients", "initial", "needs_two", "slots", "takes_whole",
    "update_block", "zero_is_idle",
}  # fmt: skip
# Sets of variables and gradient kinds whose update is remembered.
_MAX_UPDATES = 64
_BUILDING = threading.RLock()  # one thread makes the slots

# A number, a schedule, or a function of the iteration or of nothing.
LearningRate: TypeAlias = float | LearningRateSchedule | Callable[..., Any]


class OptimizerOptions(TypedDict, total=False):
    """Keyword arguments that every optimizer passes to `Optimizer`."""

    clipnorm: float | None
    clipvalue: float | None
    global_clipnorm: float | None
    use_ema: bool
    ema_momentum: float
    ema_overwrite_frequency: int | None
    loss_scale_factor: float | None
    gradient_accumulation_steps: int | None
    name: str | None


class DecayingOptions(OptimizerOptions, total=False):
    """`OptimizerOptions` of optimizers that do not list ``weight_decay`` themselves."""

    weight_decay: float | None


class Optimizer(State, Configured):
    """Base class of optimizers; subclasses define `update_step` or `update_block`.

    An update writes in place, but never into an array that a tensor, a tape or a view
    still holds. Steps of several threads run one after the other; a variable read
    during a step has the value from before it, or the read waits for the value after
    it. If several replicas step together, their gradients are summed first.

    `update_step` updates one variable with ops, as in Keras; the slots are created in
    `build`. It may assign to the variables of the optimizer and to the variables that
    are updated. In a traced function it is traced, and again when a setting that it
    reads has changed; if it needs the value of a tensor, or sets an attribute, its
    Python code runs in each call, as with `py_function`. `update_block` computes in
    place, see the second example.

    Args:
        learning_rate: Number; `keras.optimizers.schedules.LearningRateSchedule` or
            other function of the iteration; or function without arguments.
        weight_decay: If set, each step first subtracts
            ``learning_rate * weight_decay * variable`` from each variable.
        clipnorm: If set, clip the gradient of each variable to this norm.
        clipvalue: If set, clip the entries of gradients to this magnitude.
        global_clipnorm: If set, clip all gradients together to this norm. Only one of
            ``clipnorm``, ``clipvalue`` and ``global_clipnorm`` can be set.
        use_ema: If True, keep an exponential moving average of each variable;
            `finalize_variable_values` assigns it to the variable at the end of
            training.
        ema_momentum: Decay rate of the moving averages, from 0 to 1.
        ema_overwrite_frequency: If set, assign the averages to the variables every
            this number of steps, not only at the end.
        loss_scale_factor: Factor of `scale_loss`, by which gradients are divided; None
            for no scaling.
        gradient_accumulation_steps: If set, an integer above 1: update the variables
            once per this number of calls, by the mean of their gradients. Schedules
            count the calls.
        name: Name of the optimizer, unique by default.
        **kwargs: No other options; ``decay`` of Keras 2 is ignored, with a warning.

    Raises:
        ValueError: If several ways of clipping are set, a number is out of range, or an
            argument is unknown.

    Example:
        >>> class Momentum(keras.optimizers.Optimizer):
        ...     def build(self, variables):
        ...         super().build(variables)
        ...         self.momenta = self.add_optimizer_variables(variables, "momentum")
        ...     def update_step(self, gradient, variable, learning_rate):
        ...         momentum = self.momenta[self._get_variable_index(variable)]
        ...         self.assign(momentum, momentum * 0.9 - gradient * learning_rate)
        ...         self.assign_add(variable, momentum)
        >>> v = tw.Variable([1.0, 2.0])
        >>> Momentum(0.5).apply([[3.0, -4.0]], [v])
        >>> v.numpy()
        array([-0.5,  4. ], dtype=float32)

        A rule in blocks makes no new arrays:

        >>> class Sign(keras.optimizers.Optimizer):
        ...     def update_block(self, xp, gradient, variable, scratch, coefficients):
        ...         xp.sign(gradient, out=scratch)
        ...         xp.multiply(scratch, coefficients[0], out=scratch)
        ...         xp.subtract(variable, scratch, out=variable)
        >>> v = tw.Variable([1.0, 2.0])
        >>> Sign(0.5).apply([[3.0, -4.0]], [v])
        >>> v.numpy()
        array([0.5, 2.5], dtype=float32)
    """

    _tw_kind: str = "optimizer"
    _tw_refuses_arguments = True
    _tw_argument_error: type[Exception] = ValueError  # as in Keras
    # A zero gradient changes nothing: a sparse one updates only its rows.
    zero_is_idle = False
    # The rule needs each variable as a whole: no blocks, one variable a segment.
    takes_whole = False
    # `update_block` gets a pair of scratch arrays.
    needs_two = False
    # `update_block` gets one more coefficient, last: a factor for the gradient, which saves
    # a pass where gradients are scaled.
    _tw_takes_factor = False
    # `update_block` makes the updates: no subclass overrides `update_step`.
    _tw_updates_blocks: bool = True
    loss_scale_factor: float | None = None
    _tw_updates = {}
    _tw_inner: Any = None  # the optimizer that this one wraps
    _tw_several: Any = None  # the optimizers that share the variables of this one
    _tw_is_rule = False  # no attribute hides what the rule in blocks defines
    _tw_rule_class: type  # the one that defines `update_block`

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "build" in vars(cls):
            # By name: an assignment would hide the type of `build` from checkers.
            setattr(cls, "build", _once(cls.build))  # noqa: B010
        cls._tw_rule_class = next(c for c in cls.__mro__ if "update_block" in vars(c))
        has_blocks = cls._tw_rule_class is not Optimizer
        if has_blocks and _are_no_groups(cls.slots):
            raise TypeError(
                f"{cls.__name__}.slots must be a tuple of groups of names, such as "
                f"(('momentum', 'velocity'),), got {cls.slots!r}"
            )
        methods = cls.update_step, cls._backend_update_step
        inherited = Optimizer.update_step, Optimizer._backend_update_step
        cls._tw_updates_blocks = methods == inherited
        cls._tw_is_rule = has_blocks and cls._tw_updates_blocks
        try:
            inspect.signature(cls.update_step).bind(None, None, None, None)
        except TypeError:
            raise TypeError(
                f"{cls.__name__}.update_step must accept (gradient, variable, "
                "learning_rate); to update blocks of arrays in place, define "
                "update_block(xp, gradient, variable, scratch, coefficients, *slots), "
                "see Optimizer"
            ) from None

    def __init__(
        self,
        learning_rate: LearningRate,
        weight_decay: float | None = None,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        use_ema: bool = False,
        ema_momentum: float = 0.99,
        ema_overwrite_frequency: int | None = None,
        loss_scale_factor: float | None = None,
        gradient_accumulation_steps: int | None = None,
        name: str | None = None,
        **kwargs: Any,
    ):
        if kwargs.pop("decay", None) is not None:
            warnings.warn(
                "Argument `decay` is no longer supported and will be ignored.",
                stacklevel=user_stacklevel(),
            )
        if kwargs:
            refuse_arguments(type(self), kwargs)
        if sum(a is not None for a in (clipnorm, clipvalue, global_clipnorm)) > 1:
            raise ValueError(
                "Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set. "
                f"Received: clipnorm={clipnorm}, clipvalue={clipvalue}, "
                f"global_clipnorm={global_clipnorm}"
            )
        self.name: str = name or unique_name(snake_case(type(self).__name__))
        self.weight_decay = weight_decay
        self.clipnorm = clipnorm
        self.clipvalue = clipvalue
        self.global_clipnorm = global_clipnorm
        self.use_ema = use_ema
        self.ema_momentum = ema_momentum
        self.ema_overwrite_frequency = ema_overwrite_frequency
        self.loss_scale_factor = loss_scale_factor
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self._tw_check_ranges()
        self._tw_reset_state()
        self.learning_rate = learning_rate
        # The layout of variables in memory.
        self._tw_segments = None
        # The `Parts` that this process updates, if it is sharded.
        self._tw_own_parts = None
        self._tw_updates = {}
        self._tw_compiled = {}  # machine code of `update_block`, by dtype and settings

    def _tw_check_ranges(self):
        for name in ("clipnorm", "clipvalue", "global_clipnorm"):
            if getattr(self, name) is not None:
                positive(self, name, getattr(self, name))
        decay = self.weight_decay
        if decay is not None and not isinstance(decay, numbers.Real):
            raise ValueError(
                f"{type(self).__name__}: weight_decay must be a number or None, got "
                f"{decay!r}"
            )
        steps, every = self.gradient_accumulation_steps, self.ema_overwrite_frequency
        if steps:
            whole(self, "gradient_accumulation_steps", steps, 2)
        if self.use_ema:
            share(self, "ema_momentum", self.ema_momentum)
        if self.use_ema and every:
            whole(self, "ema_overwrite_frequency", every)

    # --- methods that a rule defines

    def update_step(
        self, gradient: Any, variable: Variable, learning_rate: LearningRate
    ) -> None:
        """Update one variable, and its slots, by its gradient; subclasses may override it.

        The base class applies `update_block`, for overrides that call ``super()``.

        Args:
            gradient: Gradient of ``variable``, a tensor.
            variable: Variable to update.
            learning_rate: Learning rate of this step, a scalar tensor.
        """
        step = int(self._iterations) // (self.gradient_accumulation_steps or 1)
        i = self._get_variable_index(variable)
        update_alone(
            self, step + 1, float(learning_rate), convert_to_tensor(gradient),
            variable, [slots[i] for slots in self._tw_slots],
        )  # fmt: skip

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        """Call `update_step` for each variable; rules written for Keras may override it."""
        for gradient, variable in zip(grads, trainable_variables):
            self.update_step(gradient, variable, learning_rate)

    def advance(self, step: int) -> list[tuple[Variable, Any]]:
        """Return the state after this step except slots: pairs of a variable and an array.

        Called once before each update, and before `coefficients`. The arrays are bound
        together with the new weights, so `coefficients` reads the values from before
        the step.

        Args:
            step: Number of the step, from 1.
        """
        return []

    def coefficients(
        self, step: int, learning_rate: float, real: type[Any]
    ) -> tuple[float, ...]:
        """Return the numbers that `update_block` needs in this step.

        Args:
            step: Number of the step, from 1.
            learning_rate: Learning rate of this step.
            real: NumPy scalar type of the variables, for exact rounding.
        """
        return (learning_rate,)

    def update_block(
        self,
        xp: Any,
        gradient: Any,
        variable: Any,
        scratch: Any,
        coefficients: Any,
        *slots: Any,
    ) -> None:
        """Update one block of ``variable`` and of each slot in place; may be overridden.

        All blocks are arrays of one shape and dtype. Calls with ``out=`` keep them in
        the cache.

        Args:
            xp: Module of the arrays, NumPy or CuPy.
            gradient: Block of the gradient, read-only.
            variable: Block of the variable, updated in place.
            scratch: Array that may be overwritten; a pair of arrays if the class sets
                ``needs_two``.
            coefficients: Numbers from `coefficients`, in the form that ufuncs process
                fastest.
            *slots: Blocks of the slots, updated in place.
        """
        raise NotImplementedError(
            f"{self.__class__.__name__} must define update_step, see Optimizer"
        )

    # --- state

    @property
    def learning_rate(self) -> Any:
        """The current learning rate: a Variable, or the result of the function or schedule.

        Raises:
            TypeError: If it is set although it is a function or schedule.
        """
        rate = self._learning_rate
        if isinstance(rate, Variable):
            return rate
        traced = active_tracer() is not None
        if isinstance(rate, LearningRateSchedule) and not traced:
            return constant(rate._tw_at(self._iterations._array.item()), float32)
        if not self._tw_takes_iteration:
            return rate()
        with use_module(array_module(type(self._iterations._array))):
            # in a traced function the rate is computed beside the count of updates
            return rate(self._iterations if traced else self._iterations.numpy())

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if callable(value):
            self._learning_rate = value
            self._tw_takes_iteration = _takes_argument(value)
        elif self._learning_rate is None:
            value = _number(type(self).__name__, "learning_rate", value)
            self._learning_rate = self._tw_scalar("learning_rate", value, floatx())
        elif isinstance(self._learning_rate, Variable):
            self._learning_rate.assign(value)
        else:
            raise TypeError(
                "This optimizer was created with a schedule or function as its "
                "`learning_rate`, hence its learning rate is not settable. Create the "
                "optimizer with a number to be able to set it."
            )

    def scale_loss(self, loss: TensorLike) -> Any:
        """Return the loss times ``loss_scale_factor``, by which gradients are divided.

        Args:
            loss: Loss, a tensor.
        """
        return loss if self.loss_scale_factor is None else loss * self.loss_scale_factor

    # --- applying gradients

    @in_pairs
    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Variable]]
    ) -> Variable:
        """Update variables by their gradients, given as pairs.

        Args:
            grads_and_vars: Pairs ``(gradient, variable)``. A gradient is a tensor,
                `IndexedSlices` or array with the shape of its variable; a variable
                whose gradient is None is skipped, with a warning.

        Returns:
            The counter `iterations`.

        Raises:
            ValueError: If there is no gradient at all, a variable is listed twice, or
                the optimizer was built without it. No variable changes after an error.

        Example:
            >>> from tapewright.optimizers import SGD
            >>> v = tw.Variable([1.0, 2.0])
            >>> SGD(0.5).apply_gradients([([3.0, -4.0], v)]).numpy()
            np.int64(1)
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError(
                "apply_gradients: grads_and_vars must contain pairs (gradient, "
                "variable), got none"
            )
        grads, variables = zip(*pairs)
        self.apply(grads, variables)
        return self._iterations

    def apply(
        self,
        grads: Sequence[Any],
        trainable_variables: Sequence[Variable] | None = None,
    ) -> None:
        """Update the variables by their gradients; see `apply_gradients`.

        Args:
            grads: Gradients: tensors, `IndexedSlices`, arrays or None.
            trainable_variables: Variables, one per gradient; by default the variables
                that the optimizer was built with.
        """
        check_is_list(trainable_variables)
        if not len(grads):
            return
        if trainable_variables is None:
            trainable_variables = self._tw_all_variables(grads)
        update = self._tw_update_of(tuple(trainable_variables), grads)
        tracer = active_tracer()
        if tracer is not None:
            self._tw_trace_step(update, grads, trainable_variables, tracer)
            return
        update.apply(self, grads)

    def _tw_trace_step(self, update, grads, variables, tracer):
        """Record a step, which every replay executes."""
        update.trace(self, grads, tracer)

    def _tw_all_variables(self, grads):
        if not self.built:
            raise ValueError(
                "When passing `grads` without `variables`, the optimizer must already be "
                "built on a list of variables. Call "
                "`optimizer.build(trainable_variables)` first."
            )
        if len(grads) != len(self._trainable_variables):
            raise ValueError(
                f"apply: the optimizer was built with {len(self._trainable_variables)} "
                f"variables, but {len(grads)} gradients were given"
            )
        return self._trainable_variables

    def _tw_update_of(self, variables: Sequence[Variable], grads: Sequence[Any]) -> Any:
        """Return the update for a tuple of variables and the types of their gradients."""
        # The optimizer keeps its variables alive, so that their ids stay unique.
        key = (*map(id, variables), *map(type, grads))
        update = self._tw_updates.get(key)
        if update is None:
            with _BUILDING:
                update = self._tw_updates.get(key)
                if update is None:
                    update = self._tw_new_update(key, variables, grads)
        return update

    def _tw_new_update(self, key, variables, grads):
        if len(variables) != len(grads):
            raise ValueError(
                f"apply: {len(grads)} gradients were given for {len(variables)} variables"
            )
        with use_interpreters(()):  # once, whatever is being traced
            self.build(variables)
            if self._tw_segments is None:
                self._tw_segments = self._tw_lay_out()
        known = {id(v) for v in self._trainable_variables}
        for variable in variables:
            if id(variable) not in known:
                raise ValueError(
                    f"Unknown variable: {variable!r}. This optimizer can only be called "
                    "for the variables it was originally built with. When working with a "
                    "new set of variables, you should recreate a new optimizer instance."
                )
        if len({id(v) for v in variables}) < len(variables):
            raise ValueError(
                "apply: a variable is listed twice; pass the sum of its gradients"
            )
        if len(self._tw_updates) >= _MAX_UPDATES:
            self._tw_updates.clear()
        segments, parts = self._tw_segments, self._tw_own_parts
        if parts is None:
            update = Update(segments, variables, grads)
        else:
            numbers = [self._get_variable_index(v) for v in variables]
            update = ShardedUpdate(parts, segments, variables, grads, numbers)
        self._tw_updates[key] = update
        return update

    def _tw_lay_out(self):
        """Return the segments of the variables, or parts, that this process updates."""
        updated, decayed = self._trainable_variables, self._tw_decayed
        slots = self._tw_slots if self._tw_updates_blocks else []
        names, extras = [*self._tw_extras], [*self._tw_extras.values()]
        if self._tw_partition is not None:
            self._tw_own_parts = Parts(self._tw_partition, updated)
            columns = [self._tw_own_parts.updated, decayed, *slots, *extras]
            updated, decayed, *columns = self._tw_own_parts.of_updated(*columns)
            slots, extras = columns[: len(slots)], columns[len(slots) :]
        extras = dict(zip(names, extras))
        return lay_out(updated, slots, extras, decayed, self._tw_rule.takes_whole)

    def stateless_apply(
        self,
        optimizer_variables: Sequence[Variable],
        grads: Sequence[Any],
        trainable_variables: Sequence[Variable] | None,
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Return the values after one step from the given values; no variable changes.

        Args:
            optimizer_variables: Values of `variables`, the state of the optimizer.
            grads: One gradient per trainable variable.
            trainable_variables: Values of the variables that the optimizer was built
                with.

        Returns:
            Two lists of tensors: the new values of the trainable variables, and of the
            optimizer's variables.

        Raises:
            ValueError: If the optimizer is not built, or the number of values differs.
        """
        trained, state = self._trainable_variables, self.variables
        if not self.built:
            raise ValueError(
                f"{self.name}.stateless_apply: the optimizer must be built first; call "
                "`optimizer.build(trainable_variables)`"
            )
        for name, values, expected in (
            ("optimizer_variables", optimizer_variables, state),
            ("trainable_variables", trainable_variables, trained),
        ):
            if len(values) != len(expected):
                raise ValueError(
                    f"{self.name}.stateless_apply: {name} must have {len(expected)} "
                    f"values, got {len(values)}"
                )
        everything = [*trained, *state]
        with writing(everything):
            before = [v.read() for v in everything]
            try:
                values = [*trainable_variables, *optimizer_variables]
                for variable, value in zip(everything, values):
                    variable.assign(value)
                self.apply(grads)
                after = [v.read() for v in everything]
            finally:
                for variable, value in zip(everything, before):
                    variable.assign(value)
        return after[: len(trained)], after[len(trained) :]

    def _clip_gradients(self, grads):
        """Return gradients clipped as in an update; None stays None."""
        present = [convert_to_tensor(g) for g in grads if g is not None]
        arrays = [g.array for g in present]
        clips = clipping(arrays, *self._tw_limits)
        clipped = iter([_clipped(g, clip) for g, clip in zip(present, clips)])
        return [None if g is None else next(clipped) for g in grads]

    def _tw_rate(self):
        rate = self._learning_rate
        if type(rate) is Variable:
            return rate._array.item()
        with use_interpreters(()):
            if isinstance(rate, LearningRateSchedule):
                return rate._tw_at(self._iterations._array.item())
            return float(self.learning_rate)

    def _tw_traced_rate(self, count, load):
        """Return the rate of a step as a traced array of float64.

        ``count`` is the traced counter, ``load`` returns the value of a variable.
        """
        rate = self._learning_rate
        if type(rate) is Variable:
            return load(rate).astype(np.float64)
        if not isinstance(rate, LearningRateSchedule):
            raise NotTraceable("the learning rate is a call of Python")
        return rate._tw_traced(count)

    # --- the interface of an `Update`

    def _tw_make_step(self, update: Any, gradients: Any, share: float = 1.0) -> Any:
        """Return a step with ``share`` of checked gradients, for a commit."""
        return RuleStep(update, self, gradients, share)

    def _tw_constrain(self, variable):
        variable.assign(variable.constraint(variable))

    @property
    def _tw_changes_gradients(self) -> bool:
        """True if an update modifies the gradients first."""
        scales = (self.loss_scale_factor, self.gradient_accumulation_steps)
        return any((*self._tw_limits, *scales)) or not self._tw_updates_blocks

    @property
    def _tw_limits(self) -> tuple[float | None, ...]:
        """The limits of gradients, for `clipping`."""
        return self.clipnorm, self.clipvalue, self.global_clipnorm

    @property
    def _tw_block_rule(self) -> Any:
        """The arithmetic of `update_block`, a `BlockRule`; None for a rule in ops."""
        return _block_rule(self, self) if self._tw_updates_blocks else None

    def _tw_compiled_update(
        self, xp: Any, dtype: DTypeLike | None, count: int, decays: Any, scaled: Any
    ) -> Any:
        """Return `update_block` with ``count`` numbers as machine code, or None.

        See `make_update`. It is compiled again when a setting that `update_block` reads
        has changed.
        """
        if xp is not np:
            return None
        key = config.target(), dtype, count, decays, scaled
        function, read = self._tw_compiled.get(key, (None, None))
        if read is None or not are_current(self, read):
            read = {}
            function = self._tw_compile_update(read, *key)
            self._tw_compiled[key] = function, read
        return function

    def _tw_compile_update(self, read, target, dtype, count, decays, scaled):
        if target != "native" or not self._tw_updates_blocks:
            return None
        from tapewright.compiler.pipeline import make_update  # loads all passes

        rule = _block_rule(self, ReadSettings(self, read))._replace(numbers=count)
        return make_update(rule, dtype, decays, scaled)

    def _tw_device_update(self, update: Any) -> Any:
        """Return a step of an `Update` for a device, or None if it must run in Python."""
        if (
            type(self)._tw_make_step is not Optimizer._tw_make_step
            or not self._tw_updates_blocks
            or self._tw_partition is not None
        ):
            return None
        read = ReadSettings(self, {})
        return device_update(update, self, _block_rule(self, read), read)

    def _tw_traced_step(self, update: Any, dense: bool) -> Any:
        """Return the graph of a step of a rule in ops; see `traced_step`."""
        is_own = type(self)._tw_make_step is not Optimizer._tw_make_step
        if is_own or self._tw_updates_blocks or not dense or self._tw_has_state:
            return None, None
        return traced_step(update, self)

    @property
    def _tw_treats_entries_alike(self):
        """True if the rule may update any part of a variable by itself."""
        return self._tw_updates_blocks and not self._tw_rule.takes_whole

    @property
    def _tw_has_state(self):
        """True if the rule has state besides slots, which Python computes."""
        advance = getattr(self._tw_rule.advance, "__func__", None)
        return advance is not Optimizer.advance

    @property
    def _tw_rule(self):
        """The methods and settings of a rule in blocks, under their public names."""
        return self if self._tw_is_rule else _Rule(self)

    def _tw_warn_of_typo(self, name):
        """Warn of a new attribute of a user's that resembles an argument: it has no effect."""
        cls, caller = type(self), sys._getframe(2).f_code.co_filename
        if is_own_code(caller) or hasattr(cls, name) or not is_own(cls):
            return
        hint = explain_argument(name, constructor_arguments(cls))
        if hint:
            warnings.warn(
                f"{cls.__name__}: setting {name!r} has no effect{hint}",
                stacklevel=user_stacklevel(),
            )

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in vars(self) and name[0] != "_":
            self._tw_warn_of_typo(name)
        super().__setattr__(name, value)
        if name in _EXTENSION_POINTS:
            vars(self)["_tw_is_rule"] = False

    @property
    def _tw_coefficient_count(self):
        return len(self._tw_rule.coefficients(1, 1.0, np.float32))

    def _tw_reads(self) -> list[Variable]:
        """Return the variables that an update reads but does not change."""
        rate = self._learning_rate
        return [rate] if isinstance(rate, Variable) else []

    def _tw_writes(self, update: Any) -> list[Variable]:
        """Return the variables that an update changes."""
        owners = update.variables_outside(self)
        owners = [*owners, *[v for s in update.touched(self) for v in s.owners]]
        state = [v for v in self.variables if v is not self._learning_rate]
        return list({id(v): v for v in (*owners, *state)}.values())

    def __getstate__(self) -> dict[str, Any]:
        # A copy of a view is no view: the copy lays its variables out again. They have
        # other ids.
        return vars(self) | {
            "_tw_indices": {},
            "_tw_segments": None,
            "_tw_own_parts": None,
            "_tw_updates": {},
            "_tw_compiled": {},
        }

    # --- configuration

    def _tw_arguments_elsewhere(self):
        rate = {"learning_rate": self._learning_rate}
        return super()._tw_arguments_elsewhere() | rate

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor, without the state."""
        rate = object_config.plain(self._learning_rate)
        return super().get_config() | {"learning_rate": rate}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> Optimizer:
        """Return the optimizer of a config of tapewright or Keras.

        Args:
            config: Dict from `get_config`.
            custom_objects: Dict ``{name: class or function}``, searched before the
                registered objects.
        """
        with registry.custom_object_scope(custom_objects):
            if isinstance(config.get("learning_rate"), (dict, str)):
                rate = object_config.resolve("schedule", config["learning_rate"])
                config = {**config, "learning_rate": rate}
            return cls(**config)


Optimizer._tw_rule_class = Optimizer
watch_method(Optimizer, "apply", "optimizer", "apply_gradients")


def _once(build: Method) -> Method:
    """Wrap ``build`` to create the slots once, with the values of a restored checkpoint."""

    @functools.wraps(build)
    def build_once(self, variables):
        if self.built:
            return
        count = len(self._tw_added)
        try:
            build(self, variables)
        except BaseException:
            # The slots that a rule makes after `super().build` are missing.
            self.built = False
            del self._tw_added[count:]
            raise
        assign_pending(self)  # also to what a rule makes after `super().build`

    return build_once  # type: ignore[return-value]


def _clipped(tensor, clip):
    if clip is None:
        return tensor
    xp = array_module(type(tensor.array))
    return new_tensor(clip(xp, tensor.array, xp.empty_like(tensor.array)))


def _takes_argument(function):
    """Return whether a function can be called with one positional argument."""
    try:
        inspect.signature(function).bind(0)
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature
        pass
    return True


def _number(who, argument, value):
    if isinstance(value, numbers.Real) or getattr(value, "shape", None) == ():
        return float(value)
    raise ValueError(
        f"{who}: {argument} must be a number, or a function or schedule of the "
        f"iteration; got {value!r}"
    )


def _are_no_groups(slots):
    names = slots if isinstance(slots, (tuple, list)) else [slots]
    return any([isinstance(name, str) for name in names])


class _Rule:
    """The definitions of a rule in blocks, if an optimizer has such a rule.

    A user's rule in ops may have attributes of these names, and so may a subclass of
    our optimizers: in that case the class that defines the rule counts.
    """

    __slots__ = ("_optimizer",)

    def __init__(self, optimizer):
        self._optimizer = optimizer

    def __getattr__(self, name):
        optimizer = self._optimizer
        cls = optimizer._tw_rule_class
        if cls is not Optimizer:
            if not is_own(cls):
                return getattr(optimizer, name)
            if optimizer._tw_updates_blocks:
                cls = type(optimizer)
        return class_attribute(optimizer, name, cls)


def _block_rule(rule, reads):
    """Return the `BlockRule` of an optimizer that reads its attributes from ``reads``."""
    method = functools.partial(type(rule).update_block, reads)
    function = functools.partial(update, rule._tw_rule, method)
    numbers = 1 + rule._tw_coefficient_count
    return BlockRule(
        function, numbers, len(rule._tw_slots), scratch_count(rule._tw_rule)
    )


explain_elsewhere(Optimizer, OF_OPTIMIZERS)
