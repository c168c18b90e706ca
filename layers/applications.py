"""Layers of the models in ``keras.applications``; saved models refer to them by module.

They have no public names, as in Keras.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from tapewright.core.messages.argument_validation import share, whole
from tapewright.ops.nn.dropout import apply_dropout

from . import initializers
from .base.layer import Layer
from .noise import BaseNoise

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Shape
    from tapewright.core.variable import Variable

    from .base.layer_types import RegularizedLayerOptions


class LayerScale(Layer):
    """Multiply each channel by a learned factor: ``outputs = inputs * gamma``.

    Args:
        init_values: Initial value of ``gamma``.
        projection_dim: Number of channels.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    References:
        Touvron et al., "Going deeper with image transformers" (2021).
    """

    def __init__(
        self,
        init_values: float,
        projection_dim: int,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.init_values = init_values
        self.projection_dim = whole(self, "projection_dim", projection_dim)

    def build(self, input_shape: Shape) -> None:
        start = initializers.Constant(self.init_values)
        self.gamma: Variable = self.add_weight((self.projection_dim,), start)

    def call(self, inputs: Tensor) -> Tensor:
        return inputs * self.gamma


class StochasticDepth(BaseNoise):
    """Zero whole examples at random in training, and scale up the others.

        outputs = inputs * mask / (1 - drop_path_rate),   one mask, 0 or 1, per example

    Args:
        drop_path_rate: Probability of dropping an example.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    References:
        Huang et al., "Deep networks with stochastic depth" (2016).
    """

    def __init__(
        self, drop_path_rate: float, **kwargs: Unpack[RegularizedLayerOptions]
    ):
        super().__init__(**kwargs)
        self.drop_path_rate: float = share(self, "drop_path_rate", drop_path_rate)
        self._tw_keep_seed(None)

    def call(self, inputs: Tensor, training: bool | None = False) -> Tensor:
        if not training or self.drop_path_rate == 0:
            return inputs
        ones = (1,) * (len(inputs.shape) - 1)
        stream = self._tw_generator._tw_stream
        return apply_dropout(
            self._tw_title, inputs, self.drop_path_rate, (None, *ones), stream
        )


class CustomScaleLayer(Layer):
    """Add a scaled second tensor: ``outputs = inputs[0] + inputs[1] * scale``."""

    def __init__(self, scale: float, **kwargs: Unpack[RegularizedLayerOptions]):
        super().__init__(**kwargs)
        self.scale = scale

    def call(self, inputs: Tensor) -> Tensor:
        first, second = inputs
        return first + second * self.scale
