"""`SavedLayer`: a layer loaded from a file whose class is not available."""

from __future__ import annotations

from typing import Any, Self

from .layer import Layer

__all__ = ["SavedLayer"]


class SavedLayer(Layer):
    """Layer loaded from a file whose class is not available: it runs its saved graphs.

    Created by `load_model`. Custom gradients are restored, too. The attribute
    ``saved_calls`` holds the functions for inference and training, ``saved_losses`` the
    number of losses that they add.

    Args:
        class_name: Class name of the saved layer.
        config: Config of the saved layer.
        **kwargs: Base class arguments; see `keras.layers.Layer`.
    """

    class_name: str
    saved_calls: Any = None
    saved_losses: tuple[int, int] = (0, 0)

    def __init__(self, class_name: str, config: dict[str, Any], **kwargs: Any):
        super().__init__(**kwargs)
        self.class_name, self.config = class_name, dict(config)

    def _tw_is_never_trainable(self, variable):
        return False  # all stay in the order that they had in the layer

    def call(self, inputs: Any, *, training: bool | None = None) -> Any:
        outputs = self.saved_calls[bool(training)](inputs)
        if self.saved_losses[bool(training)]:
            outputs, losses = outputs
            self.add_loss(losses)
        return outputs

    def get_config(self) -> dict[str, Any]:
        """Return the config of the saved layer."""
        return self.config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        raise ValueError(
            f"SavedLayer {config.get('name')!r}: cannot be created from a config, as its "
            "graphs are stored with the whole model; load the model with load_model"
        )
