"""`Sequential`: a linear stack of layers."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tapewright.core.names.reserved_names import class_attribute
from tapewright.core.nest import flatten
from tapewright.core.tensor import TensorSpec
from tapewright.layers.base.input_layer import Input, InputLayer
from tapewright.layers.base.layer import Layer, call_context
from tapewright.layers.base.masks import cast_masked, masked
from tapewright.layers.base.symbolic_tensor import KerasTensor
from tapewright.serialization.load_errors import load_error
from tapewright.serialization.object_config import (
    deserialize,
    serialize,
)
from tapewright.serialization.registry import custom_object_scope
from tapewright.serialization.shared_layers import (
    numbering_shared,
    reading_shared,
)

from .functional import FunctionalGraph, standardized
from .model import Model, in_rank_of, of_any_batch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self

    from tapewright.core.tensor import Tensor


class Sequential(Model):
    """Linear stack of layers, each called on the outputs of the previous one.

    The weights are created on the first call; immediately if the first layer is an
    `Input` or has an ``input_shape``; or by ``build(input_shape)``, with None for the
    batch. A layer that is added several times uses the same weights in all places.

    Args:
        layers: Sequence of layers, optionally beginning with an `Input`.
        trainable: If False, all layers are frozen.
        name: Name of the model, unique by default.
        **kwargs: Base class arguments such as ``dtype``; see `keras.layers.Layer`.

    Raises:
        ValueError: If an entry is not a layer, or two layers have the same name.

    Example:
        >>> from tapewright.layers import Dense, Flatten
        >>> layers = [Flatten(), Dense(4, activation="relu"), Dense(2)]
        >>> model = keras.models.Sequential(layers)
        >>> model.build((None, 3, 3))
        >>> model.count_params()
        50
    """

    built: bool

    _tw_child_names = Model._tw_child_names | {"_layers": "_layers"}

    def __init__(
        self,
        layers: Sequence[Layer | Tensor] | None = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(name=name, **kwargs)
        self._layers = []
        self._tw_names = {}, 0, Layer._tw_renamed  # valid until a layer is renamed
        self._tw_start = None  # the symbolic input, once the shape is known
        self._tw_chain = []  # the symbolic outputs of the layers
        self._tw_given_batch_shape = None
        for layer in layers or ():
            self.add(layer)
        if not trainable:
            self.trainable = False

    @property
    def layers(self) -> list[Layer]:
        """The layers as a new list, without the `Input`."""
        return list(self._layers)

    def add(self, layer: Layer | Tensor, rebuild: bool = True) -> None:
        """Append a layer; an `Input` can be added only before the first layer.

        Args:
            layer: `Layer`, or the symbolic tensor of an `Input`.
            rebuild: Accepted for compatibility with Keras; has no effect.

        Raises:
            ValueError: If ``layer`` is not a layer, its name is taken, or an `Input`
                follows a layer.
        """
        if type(layer) is KerasTensor:
            layer = layer._keras_history.operation
        if not isinstance(layer, Layer):
            raise ValueError(
                f"Sequential '{self.name}': only layers can be added, got {layer!r}; wrap "
                "a function in layers.Lambda or layers.Activation"
            )
        if isinstance(layer, InputLayer):
            self._tw_begin_at(layer.output)
            return
        self._tw_check_name(layer)
        if not self._layers and self._tw_start is None:
            shape = layer._tw_given_shape
            if shape is None and isinstance(layer, Model):
                with suppress(AttributeError):
                    shape = class_attribute(layer, "input_shape")
            if shape is not None:
                self._tw_begin_at(Input(batch_shape=shape))
        if self._tw_start is not None:
            with self._tw_building():
                output = layer(self._tw_chain[-1] if self._tw_chain else self._tw_start)
            self._tw_chain.append(output)
        self._layers.append(layer)
        names, _, renamed = self._tw_names
        names[layer.name] = id(layer)
        self._tw_names = names, len(self._layers), renamed
        self._tw_layers_changed()

    def _tw_check_name(self, layer):
        names, count, renamed = self._tw_names
        if count != len(self._layers) or renamed != Layer._tw_renamed:
            names = {each.name: id(each) for each in self._layers}
            self._tw_names = names, len(self._layers), Layer._tw_renamed
        if names.get(layer.name, id(layer)) != id(layer):
            raise ValueError(
                f"Sequential '{self.name}': layer names must be unique, "
                f"'{layer.name}' exists already; pass name= to one of them"
            )

    def pop(self, rebuild: bool = True) -> Layer:
        """Remove the last layer and return it.

        Args:
            rebuild: Accepted for compatibility with Keras; has no effect.

        Raises:
            IndexError: If there is no layer.
        """
        if not self._layers:
            raise IndexError(f"Sequential '{self.name}': there is no layer to pop")
        layer = self._layers.pop()
        del self._tw_chain[len(self._layers) :]
        self._tw_layers_changed()
        return layer

    def _tw_begin_at(self, tensor):
        if self._layers or self._tw_start is not None:
            raise ValueError(
                f"Sequential '{self.name}': an Input must come first, and only once; "
                f"there is {self._layers[0].name if self._layers else 'one'} already"
            )
        self._tw_start, self._tw_chain = tensor, []

    def _tw_layers_changed(self):
        self._tw_functional = self._tw_output_shape = None
        self.built = self._tw_start is not None
        if self._tw_chain:
            self._tw_output_shape = tuple(self._tw_chain[-1].shape)

    def build(self, input_shape: Any = None) -> None:
        """Build the layers in turn for inputs of this shape.

        Args:
            input_shape: Shape of the inputs with the batch, which may be None.

        Raises:
            ValueError: If there are no layers, or no shape is given.
        """
        if self._tw_start is not None:
            return
        self._tw_need_layers()
        if input_shape is None:
            raise ValueError(
                f"Sequential '{self.name}': build requires the shape of the "
                "inputs, or an Input as the first layer"
            )
        start = Input(
            batch_shape=tuple(input_shape), dtype=self._layers[0].compute_dtype
        )
        chain, x = [], start
        for layer in self._layers:
            x = layer(x)
            chain.append(x)
        self._tw_start, self._tw_chain = start, chain
        self._tw_given_batch_shape = tuple(input_shape)
        self._tw_layers_changed()

    def _tw_need_layers(self):
        if not self._layers and self._tw_start is None:
            raise ValueError(
                f"Sequential '{self.name}': there are no layers; add one with add()"
            )

    def _tw_build_for(self, args, kwargs):
        """Record the input shape; in the first call layers get real inputs and build."""
        self._tw_need_layers()
        self._tw_given_batch_shape = of_any_batch(args[0])

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        self._tw_need_layers()
        if self._tw_start is not None:
            (inputs,) = standardized(
                self._tw_need_graph("inputs"), inputs, self._tw_title
            )
            inputs = self._tw_converted(inputs)
            inputs = in_rank_of(self._tw_start, inputs, self._tw_title)
            if inputs.dtype.is_floating and inputs.dtype != self._tw_start.dtype:
                inputs = cast_masked(inputs, self._tw_start.dtype)
        elif self._tw_given_batch_shape is not None:
            built_for = TensorSpec(self._tw_given_batch_shape, name="inputs")
            inputs = in_rank_of(built_for, inputs, self._tw_title)
        if mask is not None:
            inputs = masked(inputs, flatten(mask)[0])
        with call_context(training):
            for layer in self._layers:
                inputs = layer(inputs)
        return inputs

    _tw_casts_inputs = False  # that is up to the `Input`, or to the first layer

    def _tw_converted(self, inputs):
        return Layer._tw_converted(self, inputs)

    def _tw_need_graph(self, what):
        if self._tw_functional is None:
            if self._tw_start is None:
                if self._tw_given_batch_shape is None:
                    raise AttributeError(
                        f"{self._tw_title}: the {what} are unknown before the shape of "
                        "the inputs is known: start with an Input, or call the model"
                    )
                self.built = False
                self.build(self._tw_given_batch_shape)
                self.built = True
            end = self._tw_chain[-1] if self._tw_chain else self._tw_start
            self._tw_functional = FunctionalGraph(self._tw_start, end)
        return self._tw_functional

    def __getstate__(self) -> dict[str, Any]:
        if self._tw_start is not None:
            self._tw_need_graph("layers")  # which holds the calls for a copy
        return super().__getstate__()

    def _tw_operations(self):
        return self.layers

    _tw_lists_layers = True
    _tw_is_functional = False

    def _tw_output_names(self):
        return [self._layers[-1].name] if self._layers else None

    def get_config(self) -> dict[str, Any]:
        """Return the config: the configs of the layers and the shape of the inputs."""
        return numbering_shared(self._tw_config)

    def _tw_config(self):
        layers = [serialize(layer) for layer in self._layers]
        shape = self._tw_given_batch_shape
        if self._tw_start is not None and shape is None:
            layers.insert(0, serialize(self._tw_start._keras_history.operation))
            shape = tuple(self._tw_start.shape)
        config = {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": self._tw_dtype_config(),
            "layers": layers,
        }
        return config if shape is None else config | {"build_input_shape": list(shape)}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> Self:
        """Create a model from its config, with new layers; built if the config has a shape.

        Args:
            config: Result of `get_config`.
            custom_objects: Dict from name to class or function, searched first.
        """
        config = dict(config)
        shape = config.pop("build_input_shape", None)
        if not isinstance(config.get("layers"), list):
            raise load_error(
                f"{cls.__name__}: the config must have a list of layers, got "
                f"{str(config.get('layers'))[:80]}"
            )
        with custom_object_scope(custom_objects), reading_shared():
            layers = [deserialize("layer", each) for each in config.pop("layers")]
        model = cls(layers, **config)
        if shape is not None and not model.built:
            model.build(shape)
        return model
