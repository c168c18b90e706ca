"""Layers of the models in ``keras.applications``: their files name them by their modules.

They are no public names of Keras', so they are none here.
"""

from tapewright.ops.nn.dropout import apply_dropout

from . import initializers
from .base.argument_validation import share
from .base.layer import Layer
from .noise import BaseNoise

__all__ = []


class LayerScale(Layer):
    """Multiplies each channel by a learned factor: ``outputs = inputs * gamma``.

    Args: ``init_values``: what ``gamma`` starts from; ``projection_dim``: how many
    channels there are. Reference: Touvron et al., "Going deeper with image transformers"
    (2021).
    """

    keras_class_path = ("keras.src.applications.convnext", "LayerScale", "LayerScale")

    def __init__(self, init_values, projection_dim, **kwargs):
        super().__init__(**kwargs)
        self.init_values = init_values
        self.projection_dim = projection_dim

    def build(self, input_shape):
        start = initializers.Constant(self.init_values)
        self.gamma = self.add_weight((self.projection_dim,), start)

    def call(self, inputs):
        return inputs * self.gamma


class StochasticDepth(BaseNoise):
    """In training, zeroes whole examples with a probability, and scales the others up.

        outputs = inputs * mask / (1 - drop_path_rate),   one mask, 0 or 1, an example

    Reference: Huang et al., "Deep networks with stochastic depth" (2016).
    """

    keras_class_path = (
        "keras.src.applications.convnext",
        "StochasticDepth",
        "StochasticDepth",
    )

    def __init__(self, drop_path_rate, **kwargs):
        super().__init__(**kwargs)
        self.drop_path_rate = share(self, "drop_path_rate", drop_path_rate)
        self._keep_seed(None)

    def call(self, inputs, training=False):
        if not training or self.drop_path_rate == 0:
            return inputs
        ones = (1,) * (len(inputs.shape) - 1)
        stream = self._generator.stream
        return apply_dropout(
            self._title, inputs, self.drop_path_rate, (None, *ones), stream
        )


class CustomScaleLayer(Layer):
    """Adds a share of a second tensor: ``outputs = inputs[0] + inputs[1] * scale``."""

    keras_class_path = (
        "keras.src.applications.inception_resnet_v2",
        "CustomScaleLayer",
        "CustomScaleLayer",
    )

    def __init__(self, scale, **kwargs):
        super().__init__(**kwargs)
        self.scale = scale

    def call(self, inputs):
        first, second = inputs
        return first + second * self.scale
