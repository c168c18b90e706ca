"""`Optimizer`: gradients in, variables changed; what every update rule has in common.

A rule names its slots and writes its update for one block of numbers (`update_step`).
The base class lays variables and slots out in flat buffers (`flat.py`), walks over them
in blocks that fit the cache, clips, decays, and knows sparse gradients.
"""

import inspect
import numbers
import re

import numpy as np

from tapewright import backend, registry
from tapewright.errors import DTypeError
from tapewright.module import snake_case
from tapewright.profiler import watch_method
from tapewright.readers import active_tracer, reading
from tapewright.variable import Variable

from .flat import lay_out
from .update import Update

__all__ = ["Optimizer", "deserialize", "get", "serialize"]

# Sets of variables and gradient kinds whose update is remembered.
MAX_UPDATES = 64
# Entries of Keras' configs that ask for nothing when they have this value.
NEUTRAL = {
    "use_ema": False,
    "ema_momentum": 0.99,
    "ema_overwrite_frequency": None,
    "loss_scale_factor": None,
    "gradient_accumulation_steps": None,
}


class Optimizer(registry.Configured):
    """Base of all optimizers: subclasses define ``slots``, `coefficients`, `update_step`.

    Args: ``learning_rate``, a number, or a function (or schedule) of the iteration, or
    of nothing; ``weight_decay``, the share of each variable, times the learning rate,
    that a step takes off first; ``clipnorm``, the longest that the gradient of one
    variable may be, ``global_clipnorm``, all of them together, or ``clipvalue``, the
    largest that an entry may be (one of the three); ``name``.
    Raises: ``ValueError`` if more than one way of clipping is given, ``TypeError`` for
    an argument that is not known.

    An update writes in place, but never into an array that a tensor, a tape or a view
    still holds.

    >>> class Sign(Optimizer):
    ...     def coefficients(self, step, learning_rate, real):
    ...         return (learning_rate,)
    ...     def update_step(self, xp, gradient, variable, scratch, coefficients):
    ...         xp.sign(gradient, out=scratch)
    ...         xp.multiply(scratch, coefficients[0], out=scratch)
    ...         xp.subtract(variable, scratch, out=variable)
    >>> v = Variable([1.0, 2.0])
    >>> Sign(0.5).apply([[3.0, -4.0]], [v])
    >>> v.numpy()
    array([0.5, 2.5], dtype=float32)
    """

    kind = "optimizer"
    # Names of the per-variable states, in groups. `variables` lists a group variable by
    # variable, and the groups one after another: Keras' order, in which files hold them.
    slots = ()
    # A zero gradient changes nothing: of a sparse one, only its rows need a visit.
    zero_is_idle = False

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        registry.register(cls.kind, cls.__name__.lower(), cls)  # Keras' names in files

    def __init__(
        self,
        learning_rate,
        *,
        weight_decay=None,
        clipnorm=None,
        clipvalue=None,
        global_clipnorm=None,
        name=None,
        **kwargs,
    ):
        if kwargs:
            raise TypeError(
                f"{type(self).__name__}: unknown argument {', '.join(map(repr, kwargs))}; "
                f"known are {', '.join(registry.constructor_arguments(type(self)))}"
            )
        if sum(a is not None for a in (clipnorm, clipvalue, global_clipnorm)) > 1:
            raise ValueError(
                "Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set. "
                f"Received: clipnorm={clipnorm}, clipvalue={clipvalue}, "
                f"global_clipnorm={global_clipnorm}"
            )
        self.name = name or snake_case(type(self).__name__)
        self.weight_decay = weight_decay
        self.clipnorm = clipnorm
        self.clipvalue = clipvalue
        self.global_clipnorm = global_clipnorm
        self.built = False
        self._trainable_variables = []
        self._slots = []  # one list of variables for each slot
        self._not_decayed = (set(), None)
        self._iterations = self._scalar("iteration", 0, "int64")
        self._learning_rate = None
        self.learning_rate = learning_rate
        self._segments, self._updates = None, {}  # how variables lie in memory

    # --- what a rule defines

    def coefficients(self, step: int, learning_rate: float, real: type) -> tuple:
        """The numbers that `update_step` needs in this step, the first being 1.

        ``real`` is the NumPy scalar type of the variables, for where rounding matters.
        """
        return (learning_rate,)

    def update_step(self, xp, gradient, variable, scratch, coefficients, *slots):
        """Changes one block of ``variable`` and of each slot in place.

        All are arrays of one shape and dtype. ``scratch`` is free to use, ``gradient``
        must be left alone. Calls with ``out=`` keep the block in the cache, and
        ``coefficients`` are in a form that costs least.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define update_step, see Optimizer"
        )

    # --- state

    @property
    def iterations(self) -> Variable:
        """How many updates were made."""
        return self._iterations

    @property
    def variables(self) -> list:
        """The whole state: iteration, learning rate, then the slots."""
        found = [self._iterations]
        if isinstance(self._learning_rate, Variable):
            found.append(self._learning_rate)
        slots = iter(self._slots)
        for group in self.slots:
            states = [next(slots, ()) for _ in group]
            found += [state for each in zip(*states) for state in each]
        return found

    @property
    def learning_rate(self):
        """The learning rate now: a Variable, or what the function or schedule gives."""
        if isinstance(self._learning_rate, Variable):
            return self._learning_rate
        if self._takes_iteration:
            return self._learning_rate(self._iterations.numpy())
        return self._learning_rate()

    @learning_rate.setter
    def learning_rate(self, value):
        if callable(value):
            self._learning_rate = value
            self._takes_iteration = _takes_argument(value)
        elif self._learning_rate is None:
            value = _number(type(self).__name__, "learning_rate", value)
            self._learning_rate = self._scalar("learning_rate", value, "float32")
        elif isinstance(self._learning_rate, Variable):
            self._learning_rate.assign(value)
        else:
            raise TypeError(
                "This optimizer was created with a schedule or function as its "
                "`learning_rate`, hence its learning rate is not settable. Create the "
                "optimizer with a number to be able to set it."
            )

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
        names = [name for group in self.slots for name in group]
        self._slots = [[self._slot(v, name) for v in variables] for name in names]
        self._decayed = [self._decays(v) for v in variables]
        self._trainable_variables = variables
        self.built = True

    def _slot(self, variable, name):
        array = variable._array
        xp = backend.array_module(type(array))
        with backend.use_module(xp):
            slot = Variable(xp.zeros(array.shape, array.dtype), trainable=False)
        slot.name = f"{variable.path.replace('/', '_')}_{name}"
        slot.path = f"{self.name}/{slot.name}"
        return slot

    def _scalar(self, name, value, dtype):
        # NumPy's, as it is read in each step: on a GPU, that would wait.
        with backend.use_module(np), reading(()):
            scalar = Variable(value, trainable=False, name=name, dtype=dtype)
        scalar.path = f"{self.name}/{name}"
        return scalar

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

    # --- applying gradients

    def apply_gradients(self, grads_and_vars) -> Variable:
        """Updates each variable of the pairs by its gradient. Returns `iterations`.

        A gradient is a tensor, `IndexedSlices`, an array, or None: then a warning says
        that the variable stays as it is.

        Raises: ``ValueError`` if there is no gradient at all or a variable is not one
        that the optimizer was built with; ``ShapeError``, ``DTypeError`` if a gradient
        does not fit its variable. Then nothing has changed.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError(
                "apply_gradients: there are no pairs of (gradient, variable)"
            )
        grads, variables = zip(*pairs)
        self.apply(grads, variables)
        return self._iterations

    def apply(self, grads, trainable_variables=None) -> None:
        """Updates the variables, by default those of `build`; see `apply_gradients`."""
        if not len(grads):
            return
        if trainable_variables is None:
            trainable_variables = self._all_variables(grads)
        trainable_variables = tuple(trainable_variables)
        # The optimizer keeps its variables alive, so that an id stays theirs.
        key = (*map(id, trainable_variables), *map(type, grads))
        update = self._updates.get(key)
        if update is None:
            update = self._new_update(key, trainable_variables, grads)
        tracer = active_tracer()
        if tracer is not None:
            update.trace(self, grads, tracer)
            return
        with np.errstate(all="ignore"):
            update.apply(self, grads)

    def _all_variables(self, grads):
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

    def _new_update(self, key, variables, grads):
        if len(variables) != len(grads):
            raise ValueError(
                f"apply: {len(grads)} gradients were given for {len(variables)} variables"
            )
        with reading(()):  # slots are made once, whatever is being traced
            self.build(variables)
        known = {id(v) for v in self._trainable_variables}
        for variable in variables:
            if id(variable) not in known:
                raise ValueError(
                    f"Unknown variable: {variable!r}. This optimizer can only be called "
                    "for the variables it was originally built with. When working with a "
                    "new set of variables, you should recreate a new optimizer instance."
                )
        if len({id(v) for v in variables}) < len(variables):
            raise ValueError("apply: a variable is listed twice; add its gradients up")
        if self._segments is None:
            own = self._trainable_variables
            self._segments = lay_out(own, self._slots, self._decayed)
        if len(self._updates) >= MAX_UPDATES:
            self._updates.clear()
        self._updates[key] = update = Update(self._segments, variables, grads)
        return update

    def _rate(self):
        rate = self._learning_rate
        if type(rate) is Variable:
            return rate._array.item()
        return float(self.learning_rate)

    def __getstate__(self):  # views do not survive a copy; they are laid out anew
        return vars(self) | {"_segments": None, "_updates": {}}

    # --- configuration

    def get_config(self) -> dict:
        """The arguments that make an optimizer like this one, without its state."""
        rate = registry.plain(self._learning_rate)
        return super().get_config() | {"learning_rate": rate}

    @classmethod
    def from_config(cls, config, custom_objects=None) -> "Optimizer":
        """The optimizer that `get_config`, ours or Keras', described."""
        config = {k: v for k, v in config.items() if NEUTRAL.get(k, "") != v}
        with registry.custom_object_scope(custom_objects or {}):
            if isinstance(config.get("learning_rate"), (dict, str)):
                rate = registry.resolve("schedule", config["learning_rate"])
                config["learning_rate"] = rate
            return cls(**config)


watch_method(Optimizer, "apply", "optimizer", "apply_gradients")


def get(identifier):
    """The optimizer of a name (``"adam"``) or config; an optimizer, or None, as it is.

    >>> get("sgd").get_config()["momentum"]
    0.0
    """
    if identifier is None or isinstance(identifier, Optimizer):
        return identifier
    if isinstance(identifier, str):
        return deserialize({"class_name": identifier, "config": {}})
    if isinstance(identifier, dict):
        return deserialize(identifier)
    raise ValueError(
        "Could not interpret optimizer identifier: it must be a name, a config or an "
        f"Optimizer, got {identifier!r}"
    )


def serialize(optimizer) -> dict:
    """``{"class_name", "config"}`` of an optimizer."""
    return registry.serialize(optimizer)


def deserialize(config, custom_objects=None) -> Optimizer:
    """The optimizer that `serialize` described."""
    with registry.custom_object_scope(custom_objects or {}):
        return registry.deserialize("optimizer", config)


def _takes_argument(function):
    """Whether it can be called with one positional argument."""
    try:
        inspect.signature(function).bind(0)
    except TypeError:
        return False
    except ValueError:  # a builtin that does not tell
        pass
    return True


def _number(who, argument, value):
    if isinstance(value, numbers.Real) or getattr(value, "shape", None) == ():
        return float(value)
    raise ValueError(
        f"{who}: {argument} must be a number, or a function or schedule of the "
        f"iteration; got {value!r}"
    )
