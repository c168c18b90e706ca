"""Layers of a user's own."""

import tapewright as tw
from tapewright.layers import Layer


class Scale(Layer):
    def __init__(self, gamma_initializer="ones", **kwargs):
        super().__init__(**kwargs)
        self.gamma_initializer = tw.initializers.get(gamma_initializer)

    def build(self, input_shape):
        self.gamma = self.add_weight(
            (input_shape[-1],), self.gamma_initializer, name="gamma"
        )

    def call(self, inputs):
        return inputs * self.gamma


class Outer(Layer):
    """Has layers inside, and takes no ``training``."""

    def __init__(self, *inner, **kwargs):
        super().__init__(**kwargs)
        self.inner = list(inner)

    def call(self, inputs):
        for layer in self.inner:
            inputs = layer(inputs)
        return inputs
