"""The state of an optimizer: counters, and slots for each variable.

Variables have the order and the names of Keras: files depend on the order.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from tapewright.core.communication.job import communicator
from tapewright.core.errors import DTypeError
from tapewright.core.hardware import devices
from tapewright.core.interpreters import use_interpreters
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.names.reserved_names import Reserving
from tapewright.core.patterns import pattern_of
from tapewright.core.settings.floatx import default_float
from tapewright.core.state.assignment import assign_all
from tapewright.core.state.own_variables import load_own_variables, save_own_variables
from tapewright.core.state.sharded_variable import ShardedVariable
from tapewright.core.trackable import Trackable, assign_pending, owned
from tapewright.core.variable import Variable, on_device_of
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.shape import broadcast_to
from tapewright.serialization import object_config

from .arithmetic import ACCUMULATOR, AVERAGE
from .partition import Partition

if TYPE_CHECKING:
    from tapewright.core.typing import TensorLike


class State(Reserving, Trackable):
    """Base class of `Optimizer`: creates, lists and loads its variables."""

    # Names of the per-variable states, in groups. `variables` lists a group variable by
    # variable, and the groups one after another: Keras' order, in which files hold them.
    slots: tuple[tuple[str, ...], ...] = ()
    # Initial values of slots, where they are not 0.
    initial: dict[str, float] = {}
    built: bool = False
    _iterations = None
    _tw_is_sharded: bool = False  # the slots are divided among the processes of a job
    _tw_partition: Any = None  # a `Partition`, once it is built

    def _tw_reset_state(self):
        self.built = False
        self._trainable_variables = []
        self._tw_slots = []  # one list of variables for each slot
        self._tw_extras = {}  # the same for the slots of averages and accumulation
        self._tw_added = []  # further variables of the rule: pairs of a slot name and one
        self._tw_indices = {}  # id of a variable -> its index among the trained ones
        self._tw_not_decayed = (set(), None)
        self._iterations = None
        self._iterations = self._tw_scalar("iteration", 0, "int64")
        self._learning_rate = None

    @property
    def iterations(self) -> Any:
        """The number of updates: a Variable, or a tensor if gradients accumulate."""
        if self.gradient_accumulation_steps:
            return self._iterations.read() // self.gradient_accumulation_steps
        return self._iterations

    @property
    def variables(self) -> list[Variable]:
        """The whole state: iteration, learning rate, then the slots."""
        variables = [self._iterations]
        if isinstance(self._learning_rate, Variable):
            variables.append(self._learning_rate)
        for states in self._tw_extras.values():
            variables += states
        slots = iter(self._tw_slots)
        for group in self._tw_rule.slots:
            states = [next(slots, ()) for _ in group]
            variables += [state for each in zip(*states) for state in each]
        variables += [variable for _, variable in self._tw_added]
        known = {id(v) for v in (*variables, *self._trainable_variables)}
        return variables + [v for v in self._tw_attributes() if id(v) not in known]

    def _tw_attributes(self):
        """Return variables in attributes, lists and dicts included, without duplicates."""
        leaves = owned(self, in_order=True)
        return {id(x): x for x in leaves if isinstance(x, Variable)}.values()

    def build(self, variables: Sequence[Variable]) -> None:
        """Create the slots for these variables; the first `apply` does so otherwise.

        Args:
            variables: Variables that the optimizer will update.

        Raises:
            ValueError: If a variable is listed twice.
            TypeError: If an object is not a Variable.
            DTypeError: If a variable is not floating-point.
        """
        if self._iterations is None:
            raise RuntimeError(
                f"{type(self).__name__}: __init__ must call super().__init__() first"
            )
        if self.built:
            return
        variables = list(variables)
        self._tw_indices = {id(v): i for i, v in enumerate(variables)}
        for variable in variables:
            _check_trainable(f"{self.name}.build", variable)
        if len(self._tw_indices) < len(variables):
            raise ValueError(f"{self.name}.build: a variable is listed twice")
        if self._tw_is_sharded and communicator().size > 1:
            self._tw_partition = Partition(variables, self._tw_treats_entries_alike)
        for name, wanted in (
            (AVERAGE, self.use_ema),
            (ACCUMULATOR, self.gradient_accumulation_steps),
        ):
            if wanted:
                self._tw_extras[name] = [self._tw_slot(v, name) for v in variables]
        names = [name for group in self._tw_rule.slots for name in group]
        self._tw_slots = [[self._tw_slot(v, name) for v in variables] for name in names]
        for name, slots in zip(names, self._tw_slots):
            setattr(self, _attribute(name), slots)
        self._tw_decayed = [self._tw_decays(v) for v in variables]
        self._trainable_variables = variables
        self.built = True
        assign_pending(self)

    def __children__(self) -> dict[str, Any]:
        """Return the state by name: counters, then one list per slot."""
        children = {"iteration": self._iterations}
        if isinstance(self._learning_rate, Variable):
            children["learning_rate"] = self._learning_rate
        names = [name for group in self._tw_rule.slots for name in group]
        children |= self._tw_extras | dict(zip(names, self._tw_slots))
        added = {}
        for name, variable in self._tw_added:
            added.setdefault(name, []).append(variable)
        children |= {n: vs[0] if len(vs) == 1 else vs for n, vs in added.items()}
        variables = {k: v for k, v in vars(self).items() if isinstance(v, Variable)}
        return children | {k: v for k, v in variables.items() if not k.startswith("_")}

    def _tw_shard(self) -> None:
        """Divide the slots among the processes of the job, once they are created.

        Raises:
            ValueError: If they exist already.
        """
        if self.built and not self._tw_is_sharded:
            raise ValueError(
                f"shard_optimizer: '{self.name}' is built already, with all slots in "
                "each process; shard it before the first step and before build"
            )
        self._tw_is_sharded = True

    def _tw_shard_of(self, variable):
        """Return the `Shard` of a variable in this process; None if it has the whole."""
        if self._tw_partition is None:
            return None
        return self._tw_partition.own[self._get_variable_index(variable)]

    def _tw_slot(self, variable, name):
        array, shard = variable._array, self._tw_shard_of(variable)
        shape = array.shape if shard is None else shard.shape
        xp = devices.array_module(type(array))
        with devices.use_module(xp):
            start = xp.full(shape, self._tw_rule.initial.get(name, 0), array.dtype)
            return self._tw_new_variable(
                start, f"{_stem(variable)}_{name}", shard=shard
            )

    def _tw_scalar(self, name, value, dtype):
        # NumPy's, as it is read in each step: on a GPU, that would wait.
        with devices.use_module(np), use_interpreters(()):
            return self._tw_new_variable(value, name, dtype)

    def _tw_new_variable(self, value, name, dtype=None, shard=None):
        if shard is None:
            variable = Variable(value, trainable=False, name=name, dtype=dtype)
        else:
            variable = ShardedVariable(value, shard, name=name, dtype=dtype)
        variable.path = f"{self.name}/{name}"
        if self._iterations is not None:  # one lock for all: they change together
            variable._tw_lock = self._iterations._tw_lock
        return variable

    # --- variables and assignments of a rule in ops

    def add_variable(
        self,
        shape: Any,
        initializer: Any = "zeros",
        dtype: Any = None,
        aggregation: Any = None,
        layout: Any = None,
        name: Any = None,
    ) -> Variable:
        """Add a variable to the state of the optimizer.

        Args:
            shape: Shape of the variable.
            initializer: Initializer: an object or its name.
            dtype: Dtype; None for the default float dtype.
            aggregation: Changes nothing.
            layout: Changes nothing.
            name: Name of the variable.
        """
        name = name or "variable"
        return self._tw_add(
            name, name, tuple(shape), initializer, dtype or default_float()
        )

    def add_variable_from_reference(
        self, reference_variable: Any, name: Any = None, initializer: Any = "zeros"
    ) -> Variable:
        """Add a slot of a variable, with the same shape and dtype.

        Args:
            reference_variable: Variable that the slot belongs to.
            name: Name of the slot.
            initializer: Initializer: an object or its name.
        """
        slot, variable = name or "var", reference_variable
        name, shape = f"{_stem(variable)}_{slot}", tuple(variable.shape)
        return self._tw_add(slot, name, shape, initializer, variable.dtype, variable)

    def add_optimizer_variables(
        self,
        trainable_variables: Sequence[Variable],
        name: Any,
        initializer: Any = "zeros",
    ) -> Any:
        """Add one slot for each variable, or several.

        Args:
            trainable_variables: Variables that the slots belong to.
            name: Name of the slot, or a list of names.
            initializer: One initializer for all names, or a list of one per name.

        Returns:
            A list of slots, one per variable; for several names a tuple of such lists.

        Raises:
            ValueError: If the numbers of names and initializers differ.
        """
        names = [name] if isinstance(name, str) else list(name)
        several = isinstance(initializer, (list, tuple))
        initializers = list(initializer) if several else [initializer] * len(names)
        if len(names) != len(initializers):
            raise ValueError(
                f"{self.name}.add_optimizer_variables: initializer must be one "
                f"initializer, or a list of one per name; got name={name!r}, "
                f"initializer={initializer!r}"
            )
        rows = [
            [self.add_variable_from_reference(variable, *pair)
             for pair in zip(names, initializers)]
            for variable in trainable_variables
        ]  # fmt: skip
        columns = tuple([[row[i] for row in rows] for i in range(len(names))])
        return columns[0] if isinstance(name, str) else columns

    def _tw_add(self, slot, name, shape, initializer, dtype, reference=None):
        """Add a variable to the state; if it is a slot, ``reference`` is its variable."""
        initialize = object_config.resolve("initializer", initializer)
        shard, device = None, nullcontext()
        if reference is not None:
            shard, device = self._tw_shard_of(reference), on_device_of(reference)
        with use_interpreters(()), device:
            value = initialize(shape, dtype)
            if shard is not None:
                shard = shard.resized(shape)
                value = shard.of(value.array)
            variable = self._tw_new_variable(value, name, dtype, shard)
        self._tw_added.append((slot, variable))
        return variable

    def _track_variable(self, variable) -> None:
        """Add a variable that a rule created itself to the state; rules for Keras call it."""
        self._tw_added.append((variable.name, variable))

    def _get_variable_index(self, variable) -> int:
        """Return the index of a variable in the list that the optimizer was built with."""
        if not self._tw_indices:  # of a copy
            pairs = enumerate(self._trainable_variables)
            self._tw_indices = {id(v): i for i, v in pairs}
        return self._tw_indices[id(variable)]

    def assign(self, variable: Variable, value: TensorLike) -> None:
        """Assign ``value``, cast to the dtype of the variable.

        Args:
            variable: Variable to change.
            value: New value, with the shape of the variable.
        """
        variable.assign(cast(value, variable.dtype))

    def assign_add(self, variable: Variable, value: TensorLike) -> None:
        """Add ``value``, cast to the dtype of the variable and broadcast to its shape.

        Args:
            variable: Variable to change.
            value: Value to add.
        """
        variable.assign_add(_like(value, variable))

    def assign_sub(self, variable: Variable, value: TensorLike) -> None:
        """Subtract ``value``, cast to the dtype of the variable and broadcast to its shape.

        Args:
            variable: Variable to change.
            value: Value to subtract.
        """
        variable.assign_sub(_like(value, variable))

    # --- loading

    def set_weights(self, weights: Sequence[TensorLike]) -> None:
        """Assign values to the variables of the optimizer.

        Args:
            weights: Values in the order of `variables`.

        Raises:
            ValueError: If the optimizer is not built or a value does not fit; no
                variable changes.
        """
        if not self.built:
            raise ValueError(
                "You are calling `set_weights()` on an optimizer that has not yet been "
                "built. Please call `optimizer.build(trainable_variables)` to create the "
                "optimizer weights before calling `set_weights()`."
            )
        assign_all(f"{self.name}.set_weights", self.variables, weights, cast=True)

    save_own_variables = save_own_variables

    def load_own_variables(self, store: Any) -> None:
        """Assign the values that `save_own_variables` has written to ``store``.

        If their number differs, no value is assigned, with a warning.

        Args:
            store: Mapping from numbers, as strings, to arrays.
        """
        if len(store.keys()) == len(self.variables):
            load_own_variables(self, store)
            return
        warnings.warn(
            f"Skipping variable loading for optimizer '{self.name}', because it has "
            f"{len(self.variables)} variables whereas the saved optimizer has "
            f"{len(store.keys())} variables.",
            stacklevel=user_stacklevel(),
        )

    def exclude_from_weight_decay(
        self,
        var_list: Sequence[Variable] | None = None,
        var_names: Sequence[str] | None = None,
    ) -> None:
        """Exclude variables from weight decay, by object or by name.

        Args:
            var_list: Variables to exclude.
            var_names: Regular expressions; variables whose names match are excluded.

        Raises:
            ValueError: If the optimizer is built already.
        """
        if self.built:
            raise ValueError(
                "`exclude_from_weight_decay()` can only be configured before the "
                "optimizer is built."
            )
        pattern = pattern_of("|".join(var_names)) if var_names else None
        self._tw_not_decayed = ({id(v) for v in var_list or ()}, pattern)

    def _tw_decays(self, variable):
        ids, pattern = self._tw_not_decayed
        return id(variable) not in ids and not (
            pattern and pattern.search(variable.name)
        )

    def _apply_weight_decay(self, variables) -> None:
        """Decay the variables; rules in blocks decay as part of their step."""
        if not self.weight_decay:
            return
        for variable in variables:
            if self._tw_decayed[self._get_variable_index(variable)]:
                self._tw_decay(variable, self.weight_decay)

    def _tw_decay(self, variable, decay):
        decay = cast(self.learning_rate, "float64") * decay  # rounded once
        variable.assign_sub(variable * cast(decay, variable.dtype))

    def _tw_excluded_from_weight_decay(self) -> list[Any]:
        """Return the trained variables that do not decay."""
        pairs = zip(self._trainable_variables, self._tw_decayed if self.built else ())
        return [variable for variable, decays in pairs if not decays]

    def finalize_variable_values(self, var_list: Sequence[Variable]) -> None:
        """Set variables to their moving averages if ``use_ema``; `fit` calls it at the end.

        Args:
            var_list: Variables to set.

        Raises:
            ValueError: If the optimizer was built without one of the variables.
        """
        if not self.use_ema:
            return
        pairs = zip(self._trainable_variables, self._model_variables_moving_average)
        averages = {id(v): average for v, average in pairs}
        var_list = list(var_list)
        for variable in var_list:
            if id(variable) not in averages:
                raise ValueError(
                    f"{self.name}.finalize_variable_values: '{variable.path}' has no "
                    "average, because the optimizer was built without it"
                )
        for variable in var_list:
            variable.assign(averages[id(variable)].read())

    @property
    def _model_variables_moving_average(self):
        return self._tw_extras.get(AVERAGE, [])


def _check_trainable(who, variable):
    """Raise if an optimizer cannot train ``variable``."""
    if not isinstance(variable, Variable):
        raise TypeError(
            f"{who}: variables must be Variables, got {type(variable).__name__}"
        )
    if not variable.dtype.is_differentiable:
        problem = f"'{variable.path}' must have a floating dtype to be trained"
        raise DTypeError(who, problem, variable=variable)
    if getattr(variable, "overwrite_with_gradient", False):
        raise ValueError(
            f"{who}: '{variable.path}' has overwrite_with_gradient set, which is not "
            "supported: assign the value and do not train the variable"
        )


def _attribute(slot):
    """Return the attribute name of a list of slots, as in the rules of Keras."""
    return f"_{slot[:-1]}ies" if slot.endswith("y") else f"_{slot}s"


def _stem(variable):
    """Return the prefix of the names of a variable's slots."""
    return variable.path.replace("/", "_")


def _like(value, variable):
    """Cast a value to the dtype of a variable and broadcast it to its shape."""
    value = cast(value, variable.dtype)
    same = value.shape == variable.shape
    return value if same else broadcast_to(value, variable.shape)
