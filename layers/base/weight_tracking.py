"""`Tracked`: create, list and count the weights of a layer and of its inner layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tapewright.core.dtypes import as_dtype
from tapewright.core.interpreters import converted
from tapewright.core.messages.argument_validation import truth
from tapewright.core.module import Module
from tapewright.core.names.naming import unique_name
from tapewright.core.nest import ByType, is_container
from tapewright.core.state.assignment import assign_all
from tapewright.core.state.deferred_initialization import initialized_variable
from tapewright.core.state.own_variables import load_own_variables, save_own_variables
from tapewright.core.trackable import owned
from tapewright.core.variable import Variable
from tapewright.ops.random.sampling import Generator

from .. import activations, constraints, initializers, regularizers

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Array, DTypeLike, ShapeLike, TensorLike

    from .layer_types import ConstraintLike, InitializerLike, RegularizerLike

_PARTS = (Variable, Module, Generator)
# The last word of an argument's name -> the module whose `get` resolves the argument.
_FAMILIES = {
    "activation": activations,
    "initializer": initializers,
    "regularizer": regularizers,
    "constraint": constraints,
}


class Tracked(Module):
    """Mixin that finds the weights, inner layers and penalties among the attributes.

    As in Keras 3, a ``keras.Variable`` in an attribute is a weight. A ``tw.Variable``,
    or a `Module` that is not a layer, is not: `fit` does not train it, and weights
    files do not contain it.
    """

    _tw_keeps_variables = True
    built: bool = False
    _tw_locked = False  # whether it is built, and can have no more weights

    def __children__(self) -> dict[str, Any]:
        children = super().__children__()
        if "_tw_penalties" in children:  # last: they pair weights with others
            children["_tw_penalties"] = children.pop("_tw_penalties")
        return children

    def _tw_track(self, trainable):
        """Start without weights."""
        self._trainable = truth(self, "trainable", trainable)
        self._tw_weights = []
        self._tw_frozen = set()  # references to variables that `trainable` switched off
        self._tw_penalties = []  # pairs of a weight and its regularizer
        self._tw_added = []  # losses given to `add_loss` in the latest call

    def add_weight(
        self,
        *args: Any,
        shape: ShapeLike | None = None,
        initializer: InitializerLike = None,
        dtype: DTypeLike | None = None,
        trainable: bool = True,
        autocast: bool = True,
        regularizer: RegularizerLike = None,
        constraint: ConstraintLike = None,
        aggregation: str = "none",
        name: str | None = None,
    ) -> Variable:
        """Create a variable that belongs to the layer.

        Args:
            *args: ``shape``, ``initializer`` and ``dtype`` by position, as in Keras 3.
            shape: Shape of the variable, ``()`` by default.
            initializer: `Initializer` or its name; by default "glorot_uniform", or
                "zeros" for integers.
            dtype: Dtype of the variable, by default the `variable_dtype` of the layer.
            trainable: If False, exclude the variable from `trainable_variables`.
            autocast: If False, `call` reads the variable without casting it to the
                compute dtype.
            regularizer: Regularizer whose penalty is added to `losses`, or None.
            constraint: Function that optimizers apply to the variable after each
                update, or None.
            aggregation: Ignored: values assigned by replicas are not combined.
            name: Name of the variable.

        Raises:
            ValueError: If a size in ``shape`` is unknown, a name is passed by position,
                or the layer is already built, as it is in `call`.
        """
        if self._tw_name is None:
            raise RuntimeError(
                f"{type(self).__name__}: __init__ must call super().__init__() first"
            )
        if args:
            by_name = shape, initializer, dtype
            shape, initializer, dtype = _by_position(args, by_name)
        name = name or unique_name("variable")
        if not isinstance(name, str):
            raise TypeError(f"add_weight: name must be a string, got {name!r}")
        shape = (shape,) if isinstance(shape, int) else tuple(shape or ())
        if None in shape:
            raise ValueError(
                f"{self._tw_title}: the shape of weight '{name}' must be known, got "
                f"{shape}: it depends on an input size that is None; specify that size"
            )
        if self._tw_locked:
            raise ValueError(
                f"{self._tw_title}: weight '{name}' cannot be added to a layer that is already "
                "built, as in call(); create it in __init__ or build"
            )
        dtype = self._tw_variable_dtype if dtype is None else as_dtype(dtype)
        if initializer is None:
            initializer = "glorot_uniform" if dtype.is_floating else "zeros"
        initializer = initializers.get(initializer)
        variable = initialized_variable(
            self._tw_title, name, shape, dtype, initializer, trainable
        )
        variable.path = f"{self.path}/{name}"
        if not autocast:
            variable.autocast = False
        if constraint is not None:
            variable.constraint = constraints.get(constraint)
        if trainable and not self._trainable:
            self._tw_freeze(variable)
        if regularizer is not None:
            self._tw_penalties.append((variable, regularizers.get(regularizer)))
        self._tw_weights.append(variable)
        return variable

    add_variable = add_weight

    def _tw_keep_weight_arguments(self, arguments):
        """Keep the initializers, regularizers, constraints and activations of weights.

        ``arguments`` are the ``locals()`` of a constructor. Each becomes the attribute
        of its name, such as ``kernel_initializer``; an ``activity_regularizer`` applies
        to the outputs.
        """
        for name, value in arguments.items():
            family = _FAMILIES.get(name.rpartition("_")[2])
            if family is not None and name != "activity_regularizer":
                setattr(self, name, family.get(value))

    def _tw_new_weight(
        self,
        name: str,
        shape: ShapeLike,
        prefix: str | None = None,
        initializer: InitializerLike = None,
        autocast: bool = True,
    ) -> Variable:
        """Add a weight with the kept arguments ``<prefix>_initializer`` and so on.

        ``prefix`` is ``name`` by default; ``initializer`` overrides the kept one.
        """
        prefix = prefix or name
        if initializer is None:
            initializer = getattr(self, f"{prefix}_initializer")
        return self.add_weight(
            name=name,
            shape=shape,
            initializer=initializer,
            autocast=autocast,
            regularizer=getattr(self, f"{prefix}_regularizer"),
            constraint=getattr(self, f"{prefix}_constraint"),
        )

    @property
    def weights(self) -> list[Variable]:
        """All weights, including inner layers; in each layer, trainable first."""
        return self._tw_gather(with_states=False)

    @property
    def variables(self) -> list[Variable]:
        """All weights, and the states of random generators."""
        return self._tw_gather(with_states=True)

    @property
    def trainable_variables(self) -> list[Variable]:
        """Variables updated by training; empty while ``trainable`` is False."""
        if not self._trainable:
            return []
        return [v for v in self.variables if v.trainable]

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """Variables not updated by training, and the states of random generators."""
        if not self._trainable:
            return self.variables
        return [v for v in self.variables if not v.trainable]

    @property
    def trainable_weights(self) -> list[Variable]:
        """Weights updated by training; empty while ``trainable`` is False."""
        return [v for v in self.weights if v.trainable] if self._trainable else []

    @property
    def non_trainable_weights(self) -> list[Variable]:
        """Weights not updated by training."""
        if not self._trainable:
            return self.weights
        return [v for v in self.weights if not v.trainable]

    @property
    def trainable(self) -> bool:
        """True if training updates the weights; setting it also sets inner layers."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        value = truth(self, "trainable", value)
        for layer, parts in self._tw_walk():
            layer._trainable = value
            for variable in _variables_of(parts):
                if not value:
                    layer._tw_freeze(variable)
                elif variable.ref() in layer._tw_frozen:
                    variable.trainable = True
            if value:
                layer._tw_frozen.clear()

    @property
    def losses(self) -> list[Tensor]:
        """Losses added by `add_loss` in the latest call, and regularization penalties.

        A list of scalars; only trainable weights with a regularizer have a penalty.
        """
        added, penalties = [], []
        for layer, _ in self._tw_walk():
            added += layer._tw_added
            for variable, regularizer in layer._tw_penalties:
                if layer._trainable and variable.trainable:
                    penalties.append(converted(regularizer)(variable))
        return added + penalties

    def _tw_take_losses(self) -> list[Tensor]:
        """Return and clear the losses added by `add_loss` in the latest call."""
        added = []
        for layer, _ in self._tw_walk():
            added += layer._tw_added
            layer._tw_added.clear()
        return added

    def _tw_all_penalties(self) -> list[tuple[Variable, Any]]:
        """Return pairs of a weight and its regularizer, including inner layers."""
        return [pair for layer, _ in self._tw_walk() for pair in layer._tw_penalties]

    @property
    def metrics(self) -> list[Any]:
        """Metrics among the attributes, including inner layers."""
        metrics = []
        for layer, _ in self._tw_walk():
            leaves = owned(layer, among=_METRICS)
            metrics += [leaf for leaf in leaves if _is_metric(leaf)]
        return list({id(metric): metric for metric in metrics}.values())

    @property
    def metrics_variables(self) -> list[Variable]:
        """Variables of all metrics."""
        return [v for metric in self.metrics for v in metric.variables]

    def count_params(self) -> int:
        """Return the total number of scalars in all weights.

        Raises:
            ValueError: If the layer is not built.
        """
        if not self.built and not self.weights:
            raise ValueError(
                f"count_params: layer '{self._tw_name}' is not built yet; call it, or "
                "build(input_shape)"
            )
        return sum(math.prod(v.shape) for v in self.weights)

    def get_weights(self) -> list[Array]:
        """Return the weights as a list of NumPy arrays, in the order of `weights`."""
        return [np.asarray(v.numpy()) for v in self.weights]

    def set_weights(self, weights: Sequence[TensorLike]) -> None:
        """Assign arrays to the weights, in the order of `get_weights`; they are cast.

        Args:
            weights: One array for each of `weights`.

        Raises:
            ValueError: If their number or a shape differs; no weight is assigned then.
        """
        variables, values = self.weights, list(weights)
        if not self.built and len(values) != len(variables):
            raise ValueError(
                f"set_weights: layer '{self._tw_name}' has {len(variables)} weights, as it "
                f"is not built yet; got {len(values)}; call build(input_shape) first"
            )
        who = f"set_weights of layer '{self._tw_name}'"
        assign_all(who, variables, values, cast=True)

    save_own_variables = save_own_variables
    load_own_variables = load_own_variables

    def _tw_own_variables(self) -> list[Variable]:
        """Return the weights of this layer, without inner layers."""
        own = {id(v): v for v in _variables_of(self._tw_parts())}
        return sorted(own.values(), key=self._tw_is_never_trainable)

    def _tw_own_variables_before(self) -> list[Variable]:
        """Return these and variables that are not weights, as files of 0.2 have them."""
        own = {id(v): v for v in _with_untracked(self._tw_parts())}
        return sorted(own.values(), key=self._tw_is_never_trainable)

    def _tw_untracked(self) -> list[Variable]:
        """Return untracked variables among the attributes, including inner layers."""
        variables = [v for _, parts in self._tw_walk() for v in _with_untracked(parts)]
        variables, weights = (
            {id(v): v for v in variables},
            {id(v) for v in self.weights},
        )
        return [v for key, v in variables.items() if key not in weights]

    def _tw_freeze(self, variable):
        if variable.trainable:
            variable.trainable = False
            self._tw_frozen.add(variable.ref())

    def _tw_is_never_trainable(self, variable):
        return not (variable.trainable or variable.ref() in self._tw_frozen)

    def _tw_parts(self):
        """Yield variables, modules and generators, in order of assignment."""
        # In order, on which files depend.
        leaves = owned(self, in_order=True, among=_TRAVERSED)
        return [x for x in leaves if isinstance(x, _PARTS) and not _is_metric(x)]

    def _tw_walk(self):
        """Yield each layer, this one and all inner layers once, with its `_tw_parts`."""
        pairs, seen, ahead = [], set(), [self]
        while ahead:
            layer = ahead.pop()
            if id(layer) not in seen:
                seen.add(id(layer))
                parts = layer._tw_parts()
                pairs.append((layer, parts))
                ahead += [part for part in reversed(parts) if isinstance(part, Tracked)]
        return pairs

    def _tw_all_built(self):
        """Return whether this layer and all inner layers are built."""
        return all([layer.built for layer, _ in self._tw_walk()])

    def _tw_gather(self, with_states):
        variables = []
        for layer, parts in self._tw_walk():
            variables_of_layer = _variables_of(parts)
            if not all([v.trainable for v in variables_of_layer]):
                variables_of_layer.sort(key=layer._tw_is_never_trainable)
            variables += variables_of_layer
            if with_states:
                variables += [
                    part.state for part in parts if isinstance(part, Generator)
                ]
        return list({id(v): v for v in variables}.values())


def _is_metric(part):
    return getattr(type(part), "_tw_kind", None) == "metric"  # its state is no weight


# Types of attributes: of most of the dozens that a layer has, nothing has to be asked.
_TRAVERSED = ByType(lambda kind: is_container(kind) or issubclass(kind, _PARTS))
_METRICS = ByType(
    lambda kind: is_container(kind) or getattr(kind, "_tw_kind", None) == "metric"
)


def _variables_of(parts):
    """Return the weights among the parts."""
    return [part for part in parts if isinstance(part, Variable) and part._tw_is_weight]


def _with_untracked(parts):
    """Return all variables among the parts, including modules that are not layers."""
    variables = []
    for part in parts:
        if isinstance(part, Variable):
            variables.append(part)
        elif isinstance(part, Module) and not isinstance(part, Tracked):
            variables.extend(part.variables)
    return variables


def _by_position(args, by_name):
    """Return shape, initializer and dtype, the first of which may be positional."""
    names = ("shape", "initializer", "dtype")
    if isinstance(args[0], str):
        raise ValueError(
            f"add_weight: shape must be a tuple, got {args[0]!r}; pass the name by keyword, "
            f"add_weight(shape, name={args[0]!r})"
        )
    if len(args) > len(names):
        raise TypeError(
            f"add_weight: only {', '.join(names)} may be given by position, got {args!r}"
        )
    for name, value in zip(names[: len(args)], by_name):
        if value is not None:
            raise ValueError(f"add_weight: {name} is given twice, also as {value!r}")
    return (*args, *by_name[len(args) :])
