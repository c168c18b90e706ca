"""`SavedLayer`: a layer from a file, of a class that is not known here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from tapewright.core.naming import snake_case
from tapewright.core.trackable import Opaque
from tapewright.ops.random.sampling import Generator

from .layer import Layer

__all__ = ["SavedLayer"]


class SavedLayer(Layer):
    """Runs the graphs that a file has for a layer of the user's, in place of its code.

    Made by ``load_model`` where the class of a layer is not known: gradients of its own
    (`custom_gradient`) are those that were saved. ``class_name`` and ``config`` are those
    of the layer that was saved.
    """

    class_name: Any
    config: dict[str, Any]

    def __init__(
        self,
        head: dict[str, Any],
        config: dict[str, Any],
        read: Callable[..., Any],
        **kwargs: Any,
    ):
        kwargs.setdefault("name", head["name"])
        super().__init__(**kwargs)
        self.class_name, self.config = head["class_name"], dict(config)
        self.keras_class_path: tuple[Any, Any, Any] = (
            head["module"],
            self.class_name,
            head["registered_name"],
        )
        self.kind_in_files: str = snake_case(self.class_name)
        made = [self._added_as(*each) for each in head["weights"]]
        self.generators: list[Generator] = [
            Generator(0) for _ in range(head["streams"])
        ]
        self._filed = Opaque(
            [(path, [made[i] for i in own]) for path, own in head["filed"]]
        )
        self.saved_calls: Any = read(made, [each.state for each in self.generators])
        self.built = True

    def _added_as(self, path, dtype, shape, trainable):
        name = path.rpartition("/")[2]
        variable = self.add_weight(tuple(shape), "zeros", name=name, dtype=dtype,
                                   trainable=trainable)  # fmt: skip
        variable.path = path
        return variable

    def _is_never_trainable(self, variable):
        return False  # all stay in the order that they had in the layer

    def filed_weights(self) -> list[Any]:
        """The places of weights in files: pairs of a path below the layer and variables."""
        return self._filed.value

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        return self.saved_calls[bool(training)](inputs)

    def get_config(self) -> dict[str, Any]:
        """The config of the layer that was saved."""
        return self.config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        raise ValueError(
            f"SavedLayer {config.get('name')!r}: its graphs are in the file of the "
            "whole model; load that file with load_model"
        )
