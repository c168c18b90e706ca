"""`Pipeline`: apply layers in sequence, mostly to preprocess inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from tapewright.core.nest import flatten
from tapewright.serialization.object_config import deserialize, serialize

from ..base.layer import Layer, call_context
from ..base.masks import masked

__all__ = ["Pipeline"]


class Pipeline(Layer):
    """Apply layers in sequence, for preprocessing and data augmentation.

    Unlike a `Sequential`, it is not a model, its inputs may be any nest that the first
    layer accepts, and ``training`` defaults to True: layers such as `RandomFlip` are
    active, also in `Dataset.map`.

    Args:
        layers: List of layers.
        name: Name of the layer, unique by default.

    Raises:
        ValueError: If ``layers`` is not a list of layers.

    Example:
        >>> from tapewright.layers import CenterCrop, Pipeline, Rescaling
        >>> prepare = Pipeline([CenterCrop(2, 2), Rescaling(1 / 255)])
        >>> dataset = tw.data.Dataset.from_tensors(tw.ones([4, 4, 3])).map(prepare)
        >>> dataset.element_spec.shape
        TensorShape([2, 2, 3])
    """

    supports_masking = True

    def __init__(self, layers: Sequence[Layer], name: str | None = None):
        super().__init__(name=name)
        is_list = isinstance(layers, list | tuple)
        if not is_list or not all([isinstance(each, Layer) for each in layers]):
            raise ValueError(
                f"Pipeline: layers must be a list of layers, got {layers!r}"
            )
        self.layers: list[Layer] = list(layers)

    def call(self, inputs: Any, training: bool | None = True, mask: Any = None) -> Any:
        if mask is not None and len(flatten(inputs)) == 1:
            inputs = masked(inputs, mask)
        with call_context(training):
            for layer in self.layers:
                inputs = layer(inputs)
        return inputs

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        return None  # the outputs have that of the last layer

    def get_config(self) -> dict[str, Any]:
        """Return a dict of the layers and the name."""
        return {"layers": [serialize(x) for x in self.layers], "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        layers = config.get("layers")
        if not isinstance(layers, (list, tuple)):
            raise ValueError(
                f"Pipeline.from_config: layers must be a list of configs, got {layers!r}"
            )
        layers = [deserialize("layer", each) for each in layers]
        return cls(**{**config, "layers": layers})
