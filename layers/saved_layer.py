"""`SavedLayer`: a layer from a file, of a class that is not known here."""

from .layer import Layer

__all__ = ["SavedLayer"]


class SavedLayer(Layer):
    """Runs the graphs that a file has for a layer of the user's, in place of its code.

    Made by ``load_model`` where the class of a layer is not known: gradients of its own
    (`custom_gradient`) are those that were saved. ``class_name`` and ``config`` are those
    of the layer that was saved.
    """

    def __init__(self, class_name, config, weights, read, **kwargs):
        kwargs.setdefault("name", config.get("name"))
        super().__init__(**kwargs)
        self.class_name, self.config = class_name, dict(config)
        for path, dtype, shape, trainable in weights:
            name = path.rpartition("/")[2]
            variable = self.add_weight(name, tuple(shape), "zeros", dtype=dtype,
                                       trainable=trainable)  # fmt: skip
            variable.path = path
        self.saved_calls = read(self.weights)
        self.built = True

    def call(self, inputs, training=None):
        return self.saved_calls[bool(training)](inputs)

    def get_config(self):
        """That of the layer that was saved."""
        return self.config

    @classmethod
    def from_config(cls, config):
        raise ValueError(
            f"SavedLayer {config.get('name')!r}: its graphs are in a file of a whole model, "
            "load that with load_model"
        )
