"""`clone_model`: copies of models with new weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.core.nest import assert_same_structure, flatten, map_structure
from tapewright.layers.base.input_layer import InputLayer
from tapewright.layers.base.layer import Layer
from tapewright.layers.base.symbolic_tensor import KerasTensor, OpCall
from tapewright.serialization.load_errors import trusting_configs
from tapewright.serialization.shared_layers import (
    copying_shared,
    numbering_shared,
    reading_shared,
)

from .model import Model
from .sequential import Sequential

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def clone_model(
    model: Model,
    input_tensors: Any = None,
    clone_function: Callable[[Layer], Layer] | None = None,
    call_function: Callable[..., Any] | None = None,
    recursive: bool = False,
) -> Model:
    """Clone a model: return a new model with the same layers and newly initialized weights.

    The clone is compiled if ``model`` is. A subclass of `Model` that defines ``call``
    is created again from its config.

    Args:
        model: The `Model` to clone.
        input_tensors: Symbolic tensors to build the clone on, in the structure of
            ``model.input``; new ones by default.
        clone_function: Function that returns the copy of a layer; by default it creates
            a layer from the same config.
        call_function: Function ``call_function(layer, *args, **kwargs)`` that calls a
            copied layer, for models made from inputs and outputs.
        recursive: If True, clone inner models by `clone_model`, too, instead of passing
            them to ``clone_function``.

    Raises:
        ValueError: If an argument does not apply to the model.

    Example:
        >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
        >>> twin = keras.models.clone_model(model)
        >>> twin.set_weights(model.get_weights())
    """
    if not isinstance(model, Model):
        raise ValueError(f"clone_model: model must be a Model, got {model!r}")
    if call_function is not None and isinstance(model, Sequential):
        raise ValueError(
            "clone_model: call_function requires a Model(inputs, outputs), "
            "got a Sequential model"
        )
    with copying_shared() as copied:
        cloner = _Cloner(clone_function, call_function, recursive, copied)
        return cloner.cloned(model, input_tensors)


class _Cloner:
    """Clone layers; ``copied(layer, copy)`` records each copy under its original."""

    def __init__(self, clone_function, call_function, recursive, copied):
        self.clone_function = clone_function
        self.call_function = call_function
        self.recursive = recursive
        self.copied = copied

    def cloned(self, model, input_tensors=None):
        """Return a model like this one, compiled with the same options."""
        options = self.clone_function, self.call_function, input_tensors
        is_plain = all([option is None for option in options])
        if isinstance(model, Sequential):
            clone = self._sequential(model, input_tensors)
        elif model._tw_functional is not None and (self.recursive or not is_plain):
            clone = self._functional(model, input_tensors)
        elif is_plain:
            clone = _remade(model)
        else:
            raise ValueError(
                "clone_model: clone_function, call_function and input_tensors "
                "require a Sequential model or a Model(inputs, outputs), but "
                f"{type(model).__name__} defines its own call()"
            )
        if model.compiled and not clone.compiled:
            _compile_alike(model, clone)
        return clone

    def layer(self, layer):
        """Return the copy of a layer or op."""
        return self.copied(layer, lambda: self._new(layer))

    def _copy_parts(self, operations):
        """Copy inner layers before the layers whose configs would copy them, too."""
        for each in sorted(operations, key=_count_layers):
            self.layer(each)

    def _new(self, layer):
        if isinstance(layer, OpCall):
            return OpCall(layer.op, layer.attributes, layer.name)
        if not isinstance(layer, Layer):
            return _remade(layer)
        is_model = isinstance(layer, Sequential) or getattr(
            layer, "_tw_functional", None
        )
        if self.recursive and is_model:
            return self.cloned(layer)
        if self.clone_function is None or isinstance(layer, InputLayer):
            return _remade(layer)
        return self.clone_function(layer)

    def _sequential(self, model, input_tensors):
        self._copy_parts(model.layers)
        layers = [self.layer(x) for x in model.layers]
        clone = type(model)(name=model.name)
        if input_tensors is not None:
            start = flatten(input_tensors)
            if len(start) != 1 or type(start[0]) is not KerasTensor:
                raise ValueError(
                    "clone_model: input_tensors must be one symbolic tensor for a "
                    f"Sequential model, got {input_tensors!r}"
                )
            clone._tw_begin_at(start[0])
        elif model._tw_start is not None:
            clone.add(_remade(model._tw_start._keras_history.operation))
        for layer in layers:
            clone.add(layer)
        if not model.trainable:
            clone.trainable = False
        return clone

    def _functional(self, model, input_tensors):
        """Return a clone of a functional model, layer by layer."""
        graph, values = model._tw_functional, {}
        inputs = graph.input_nest
        if input_tensors is not None:
            tensors = flatten(input_tensors)
            _check_inputs(tensors, input_tensors, inputs)
            values = {id(x): y for x, y in zip(graph.inputs, tensors)}
            inputs = input_tensors
        self._copy_parts(
            [op for op in graph.operations if not isinstance(op, InputLayer)]
        )
        new_inputs, outputs = graph.rebuilt(self.layer, values, self.call_function)
        inputs = new_inputs if input_tensors is None else inputs
        own = type(model).__init__ is Model.__init__
        clone = (type(model) if own else Model)(inputs, outputs, name=model.name)
        if not model.trainable:
            clone.trainable = False
        return clone


def _check_inputs(tensors, given, expected):
    if any([type(x) is not KerasTensor for x in tensors]):
        raise ValueError(
            f"clone_model: input_tensors must be symbolic tensors, got {given!r}"
        )
    try:
        assert_same_structure(given, expected)
        same = True
    except ValueError:
        same = False
    if not same or type(given) is not type(expected):
        raise ValueError(
            "clone_model: input_tensors must have the structure of model.input, "
            f"{expected!r}, got {given!r}"
        )


def _count_layers(operation):
    return len(operation._tw_walk()) if isinstance(operation, Layer) else 0


def _remade(thing):
    """Return a new object with the same class and config."""
    config = numbering_shared(thing.get_config)  # what it holds twice is one again
    with trusting_configs(), reading_shared():  # of an object of this process
        return type(thing).from_config(config)


def _compile_alike(model, clone):
    """Compile with the same options: objects are created anew, names and functions kept."""
    if type(model).compile is not Model.compile:  # with arguments of its own
        clone.compile_from_config(model.get_compile_config())
        return

    def twin(option):
        return _remade(option) if hasattr(option, "from_config") else option

    options = model._tw_compiled.options
    clone.compile(**{name: map_structure(twin, x) for name, x in options.items()})
