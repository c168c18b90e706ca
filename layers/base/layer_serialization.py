"""`LayerConfig`: serialize a layer to a config, and create and build it from one.

Names and formats are the same as in Keras' ``get_config`` and ``get_build_config``.
"""

from __future__ import annotations

from typing import Any, Self

from tapewright.serialization.configured import Configured, from_constructor
from tapewright.serialization.constructor_arguments import constructor_arguments
from tapewright.serialization.object_config import ObjectFamily, plain

_family = ObjectFamily("layer")
serialize, deserialize = _family.serialize, _family.deserialize

_BASE = ("name", "trainable", "dtype")  # in every config of a layer


class LayerConfig(Configured):
    """Serialization mixin of `Layer`."""

    built: bool
    dtype_policy: Any
    autocast: bool

    _tw_kind: str = "layer"
    _tw_omit_defaults: dict[str, Any] = {"activity_regularizer": None}
    _tw_prefer_init_args: bool = True
    _tw_build_shapes = None  # `Opaque`: argument of `build` -> shape

    @from_constructor
    def get_config(self) -> dict[str, Any]:
        """Return a dict of the name, trainable, dtype and the constructor arguments.

        A subclass may extend it with what its ``from_config`` needs. Constructor
        arguments that are plain values (numbers, strings, and lists or dicts of them)
        need not be kept as attributes.
        """
        config = super().get_config()
        if config.get("autocast") == type(self).autocast:
            del config["autocast"]
        dtype = self._tw_dtype_config()
        if "dtype" in config:
            config["dtype"] = dtype
        if self._tw_plain_arguments is None:  # no class of a user's
            return config
        base = {"name": self.name, "trainable": self.trainable, "dtype": dtype}
        return base | config

    def _tw_dtype_config(self) -> Any:
        """Return the config of the policy, or just its name if that defines it.

        Keras reads both forms, Keras 2 only the name.
        """
        policy = self.dtype_policy
        is_plain = policy.name == policy.compute_dtype
        return policy.name if is_plain else plain(policy)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Create a layer from its config, with new weights.

        Args:
            config: Dict returned by `get_config`.
        """
        known = constructor_arguments(cls)
        rest = {key: config[key] for key in _BASE if key in config and key not in known}
        layer = cls(**{key: value for key, value in config.items() if key not in rest})
        if isinstance(rest.get("name"), str):  # what the constructor does not take
            layer._tw_name = rest["name"]
        if "dtype" in rest:
            layer.dtype_policy = rest["dtype"]
        if rest.get("trainable") is False:
            layer.trainable = False
        return layer

    def get_build_config(self) -> dict[str, Any] | None:
        """Return the shapes that `build_from_config` needs; None if not built yet.

        Returns:
            ``{"input_shape": shape}``, or ``{"shapes_dict": shapes}`` for several
            inputs with different shapes.
        """
        if self._tw_build_shapes is None:
            return None
        shapes = self._tw_build_shapes.value
        if len(shapes) == 1:
            return {"input_shape": next(iter(shapes.values()))}
        return {"shapes_dict": dict(shapes)}

    def build_from_config(self, config: dict[str, Any] | None) -> None:
        """Build the layer for the shapes returned by `get_build_config`.

        Args:
            config: Dict returned by `get_build_config`, or None to do nothing.
        """
        if not config or self.built:
            return
        if "input_shape" in config:
            self.build(_shape_of_lists(config["input_shape"]))
        elif "shapes_dict" in config:
            shapes = config["shapes_dict"].items()
            self.build(**{name: _shape_of_lists(shape) for name, shape in shapes})


def is_shape(value):
    """Return whether ``value`` is one shape, not a nest of them."""
    if value is None or isinstance(value, dict):
        return False
    return all([n is None or not hasattr(n, "__iter__") for n in value])


def _shape_of_lists(shape):
    """Convert the lists in a shape, or a nest of shapes, loaded from JSON to tuples."""
    if isinstance(shape, dict):
        return {key: _shape_of_lists(each) for key, each in shape.items()}
    if not isinstance(shape, (list, tuple)):
        return shape
    if is_shape(shape):
        return tuple(shape)
    return [_shape_of_lists(each) for each in shape]
