"""What an optimizer remembers: counts, and for each variable its slots.

Its variables are listed, and named, as Keras does it: files depend on the order.
"""

import re

import numpy as np

from tapewright import backend
from tapewright.errors import DTypeError
from tapewright.readers import reading
from tapewright.variable import Variable

from .running import ACCUMULATOR, AVERAGE

__all__ = ["State"]


class State:
    """Base of `Optimizer`: makes, lists and loads its variables."""

    # Names of the per-variable states, in groups. `variables` lists a group variable by
    # variable, and the groups one after another: Keras' order, in which files hold them.
    slots = ()
    # What the slots start from, where it is not 0.
    initial = {}
    _awaited = None  # what a checkpoint has for slots that are not made yet

    def _forget(self):
        self.built = False
        self._trainable_variables = []
        self._slots = []  # one list of variables for each slot
        self._extras = {}  # likewise the slots that serve averages and accumulation
        self._scalars = []  # further variables of the rule
        self._not_decayed = (set(), None)
        self._iterations = self._scalar("iteration", 0, "int64")
        self._learning_rate = None

    @property
    def iterations(self):
        """How many updates were made: a Variable, or a tensor if gradients accumulate."""
        if self.gradient_accumulation_steps:
            return self._iterations.read() // self.gradient_accumulation_steps
        return self._iterations

    @property
    def variables(self) -> list:
        """The whole state: iteration, learning rate, then the slots."""
        found = [self._iterations]
        if isinstance(self._learning_rate, Variable):
            found.append(self._learning_rate)
        for states in self._extras.values():
            found += states
        slots = iter(self._slots)
        for group in self.slots:
            states = [next(slots, ()) for _ in group]
            found += [state for each in zip(*states) for state in each]
        return found + self._scalars

    def build(self, variables) -> None:
        """Makes the slots for these variables; the first `apply` does it otherwise."""
        if self.built:
            return
        variables = list(variables)
        for variable in variables:
            if not isinstance(variable, Variable):
                raise TypeError(
                    f"{self.name}.build: variables must be Variables, "
                    f"got {type(variable).__name__}"
                )
            if not variable.dtype.is_differentiable:
                raise DTypeError(
                    f"{self.name}.build", f"'{variable.path}' must be of a floating dtype"
                    " to be trained", variable=variable,
                )  # fmt: skip
        if len({id(v) for v in variables}) < len(variables):
            raise ValueError(f"{self.name}.build: a variable is listed twice")
        for name, wanted in (
            (AVERAGE, self.use_ema),
            (ACCUMULATOR, self.gradient_accumulation_steps),
        ):
            if wanted:
                self._extras[name] = [self._slot(v, name) for v in variables]
        names = [name for group in self.slots for name in group]
        self._slots = [[self._slot(v, name) for v in variables] for name in names]
        self._decayed = [self._decays(v) for v in variables]
        self._trainable_variables = variables
        self.built = True
        if self._awaited is not None:
            self._awaited.arrive(self)

    def checkpoint_parts(self):
        """The state by names that say what it is: counts, then lists for each slot."""
        found = {"iteration": self._iterations}
        if isinstance(self._learning_rate, Variable):
            found["learning_rate"] = self._learning_rate
        names = [name for group in self.slots for name in group]
        found |= self._extras | dict(zip(names, self._slots))
        found |= {scalar.name: scalar for scalar in self._scalars}
        own = {k: v for k, v in vars(self).items() if isinstance(v, Variable)}
        return found | {k: v for k, v in own.items() if not k.startswith("_")}

    def _slot(self, variable, name):
        array = variable._array
        xp = backend.array_module(type(array))
        with backend.use_module(xp):
            start = xp.full(array.shape, self.initial.get(name, 0), array.dtype)
            slot = Variable(start, trainable=False)
        slot.name = f"{variable.path.replace('/', '_')}_{name}"
        slot.path = f"{self.name}/{slot.name}"
        return slot

    def _scalar(self, name, value, dtype):
        # NumPy's, as it is read in each step: on a GPU, that would wait.
        with backend.use_module(np), reading(()):
            scalar = Variable(value, trainable=False, name=name, dtype=dtype)
        scalar.path = f"{self.name}/{name}"
        return scalar

    def set_weights(self, weights) -> None:
        """Assigns the values, in the order of `variables`.

        Raises: ``ValueError`` if the optimizer is not built or one does not fit; then
        nothing has changed.
        """
        if not self.built:
            raise ValueError(
                f"{self.name}.set_weights: the optimizer must be built first; call "
                "`optimizer.build(trainable_variables)`"
            )
        weights, variables = list(weights), self.variables
        if len(weights) != len(variables):
            raise ValueError(
                f"{self.name}.set_weights: {len(variables)} values are needed, got "
                f"{len(weights)}"
            )
        for variable, weight in zip(variables, weights):
            if np.shape(weight) != tuple(variable.shape):
                raise ValueError(
                    f"{self.name}.set_weights: '{variable.path}' has the shape "
                    f"{tuple(variable.shape)}, the value {np.shape(weight)}"
                )
        for variable, weight in zip(variables, weights):
            variable.assign(np.asarray(weight, variable._array.dtype))

    def exclude_from_weight_decay(self, var_list=None, var_names=None) -> None:
        """Spares variables of ``var_list``, or with one of ``var_names`` in their name.

        Raises: ``ValueError`` once the optimizer is built.
        """
        if self.built:
            raise ValueError(
                "`exclude_from_weight_decay()` can only be configured before the "
                "optimizer is built."
            )
        pattern = re.compile("|".join(var_names)) if var_names else None
        self._not_decayed = ({id(v) for v in var_list or ()}, pattern)

    def _decays(self, variable):
        ids, pattern = self._not_decayed
        return id(variable) not in ids and not (
            pattern and pattern.search(variable.name)
        )

    def excluded_from_weight_decay(self) -> list:
        """The variables, of those that it was built with, that decay spares."""
        pairs = zip(self._trainable_variables, self._decayed if self.built else ())
        return [variable for variable, decays in pairs if not decays]

    def finalize_variable_values(self, var_list) -> None:
        """Sets the variables to their averages if ``use_ema``, at the end of training.

        Raises: ``ValueError`` for variables that the optimizer does not know.
        """
        if not self.use_ema:
            return
        own = self._trainable_variables
        averages = {id(v): a for v, a in zip(own, self._extras.get(AVERAGE, ()))}
        var_list = list(var_list)
        for variable in var_list:
            if id(variable) not in averages:
                raise ValueError(
                    f"{self.name}.finalize_variable_values: there is no average of "
                    f"'{variable.path}', with which the optimizer was not built"
                )
        for variable in var_list:
            variable.assign(averages[id(variable)].read())

    @property
    def _model_variables_moving_average(self):
        return self._extras.get(AVERAGE, [])
