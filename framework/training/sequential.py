"""`Sequential`: layers one after the other."""

from tapewright.layers.layer import Layer

from ..registry import deserialize, serialize
from .summary import summary_lines

__all__ = ["Sequential"]


class Sequential(Layer):
    """Layers called in turn, each on the outputs of the one before.

    The weights are made on the first call, or by ``build(input_shape)``, in which the
    batch size may be None.

    >>> from tapewright.layers import Dense, Flatten
    >>> model = Sequential([Flatten(), Dense(4, activation="relu"), Dense(2)])
    >>> model.build((None, 3, 3))
    >>> model.count_params()
    50
    """

    def __init__(self, layers=None, *, name=None, **kwargs):
        super().__init__(name=name, **kwargs)
        self._layers = []
        self._build_shape = None
        for layer in layers or ():
            self.add(layer)

    @property
    def layers(self):
        """The layers, in a new list."""
        return list(self._layers)

    def add(self, layer):
        """Appends a layer.

        Raises: ``TypeError`` for what is no layer, ``ValueError`` for a name that is taken.
        """
        if not isinstance(layer, Layer):
            raise TypeError(
                f"Sequential '{self.name}': only layers can be added, got {layer!r}; wrap "
                "a function in layers.Activation"
            )
        if any(layer.name == known.name for known in self._layers):
            raise ValueError(
                f"Sequential '{self.name}': the names of layers must differ, there is "
                f"'{layer.name}' already; pass name= to one of them"
            )
        self._layers.append(layer)
        self._shape_changed()

    def pop(self):
        """Removes the last layer and returns it. Raises: ``IndexError`` without layers."""
        if not self._layers:
            raise IndexError(f"Sequential '{self.name}': there is no layer to pop")
        layer = self._layers.pop()
        self._shape_changed()
        return layer

    def _shape_changed(self):
        self._output_shape = None
        if self.built:
            self.built = False
            if self._build_shape is not None:
                self.build(self._build_shape)

    def build(self, input_shape):
        """Builds the layers in turn, for inputs of this shape."""
        shape = tuple(input_shape)
        self._build_shape = shape
        for layer in self._layers:
            if not layer.built:
                layer.build(shape)
            shape = tuple(layer.compute_output_shape(shape))
            layer._output_shape = shape
        self._output_shape = shape

    def _build_for(self, inputs):
        """On the first call the layers see real inputs, and build themselves."""
        self._build_shape = None if isinstance(inputs, dict) else tuple(inputs.shape)

    def call(self, inputs, training=None):
        for layer in self._layers:
            inputs = layer(inputs, training=training)
        return inputs

    def compute_output_shape(self, input_shape):
        for layer in self._layers:
            input_shape = layer.compute_output_shape(input_shape)
        return tuple(input_shape)

    def summary(self, print_fn=None):
        """Prints a table of the layers, their output shapes and numbers of weights.

        ``print_fn`` is called with the whole text instead of ``print``.
        """
        (print_fn or print)("\n".join(summary_lines(self)))

    def get_config(self):
        """The layers, each with its class name and config, and the shape built for."""
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": self.dtype,
            "layers": [serialize(layer) for layer in self._layers],
            "build_input_shape": self._build_shape and list(self._build_shape),
        }

    @classmethod
    def from_config(cls, config):
        """A model of new layers like those of the config, built if that one was."""
        config = dict(config)
        shape = config.pop("build_input_shape", None)
        layers = [deserialize("layer", each) for each in config.pop("layers")]
        model = cls(layers, **config)
        if shape is not None:
            model.build(shape)
        return model
