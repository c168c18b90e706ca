"""`Lambda`: a function as a layer. Its config has the name of the function, never code."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any, Self, Unpack

from tapewright.core.interpreters import converted
from tapewright.core.nest import flatten
from tapewright.core.tensor import convert_to_tensor
from tapewright.serialization import object_config, registry
from tapewright.serialization.registry import (
    get_registered_name,
    get_registered_object,
    name_in_scope,
)

from .base.layer import Layer

if TYPE_CHECKING:
    from .base.layer_types import RegularizedLayerOptions

__all__ = ["Lambda"]

_FAMILIES = ("function", "activation")


class Lambda(Layer):
    """Wrap a function as a layer: ``outputs = function(inputs, **arguments)``.

    A config refers to functions by their registered names; code is neither saved nor
    loaded.

    Args:
        function: Callable, or name of a registered function. If it has parameters
            ``training`` or ``mask``, they are passed as well.
        output_shape: Shape of the outputs without the batch, or a function of the shape
            of the inputs; None infers it by tracing.
        mask: Mask of the outputs, a function ``mask(inputs, mask)``, or None.
        arguments: Dict of further keyword arguments of ``function``.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs of ``function``.

    Raises:
        TypeError: If ``function`` is not callable.
        ValueError: If a name is unknown; in `get_config`, if ``function`` is not
            registered.

    Example:
        >>> layer = keras.layers.Lambda(lambda x, power: x**power, arguments={"power": 2})
        >>> layer([3.0]).numpy()
        array([9.], dtype=float32)
    """

    def __init__(
        self,
        function: Callable[..., Any],
        output_shape: Any = None,
        mask: Any = None,
        arguments: dict[str, Any] | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.function: Any = _registered("function", function)
        if not callable(self.function):
            raise TypeError(
                f"Lambda: function must be a callable or a name, got {function!r}"
            )
        self._tw_given_output_shape = output_shape
        self.mask: Any = _registered("mask", mask)
        self.supports_masking: bool = mask is not None
        self.arguments: dict[str, Any] = dict(arguments or {})
        self._tw_wanted = _arguments_of(self.function) & {"training", "mask"}

    def call(self, inputs: Any, mask: Any = None, training: bool | None = None) -> Any:
        own = {"mask": mask, "training": training}
        wanted = {name: own[name] for name in own if name in self._tw_wanted}
        return converted(self.function)(inputs, **self.arguments, **wanted)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        if self.mask is None or callable(self.mask):
            return self.mask and self.mask(inputs, mask)
        return convert_to_tensor(self.mask)

    def compute_output_shape(self, input_shape: Any) -> Any:
        given = self._tw_given_output_shape
        if given is None:
            return super().compute_output_shape(input_shape)
        if callable(given):
            return given(input_shape)
        return (flatten(input_shape)[0], *given)

    @property
    def _tw_knows_shape(self):
        return self._tw_given_output_shape is not None

    _tw_config_exclude: tuple[str, str, str] = ("function", "output_shape", "mask")

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        given = (self.function, self._tw_given_output_shape, self.mask)
        for name, value in zip(self._tw_config_exclude, given):
            if callable(value):
                config[name] = object_config.function_config(
                    self._tw_name_of(name, value)
                )
            elif value is not None:
                config[name] = object_config.plain(value)
        return config

    def _tw_name_of(self, argument, function):
        name = name_in_scope(function) or get_registered_name(function)
        if get_registered_object(name) is function:
            return name
        for family in _FAMILIES:
            name = registry.registered_name(family, function)
            if name is not None:
                return name
        raise ValueError(
            f"{self._tw_title}: a config cannot hold the function given as {argument}, "
            f"{function!r}, since code is never saved. Use a named function "
            "registered with @register_keras_serializable(), or write a subclass of "
            "Layer"
        )

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        config = dict(config)
        for name in cls._tw_config_exclude:
            value = config.get(name)
            if isinstance(value, dict) and value.get("class_name") == "__lambda__":
                raise ValueError(
                    f"Lambda: the config holds Python code as {name}, which is never "
                    "run. Create the layer again with a registered function"
                )
            if isinstance(value, dict) and isinstance(value.get("config"), str):
                config[name] = object_config.function_of("layer", value["config"])
        if isinstance(config.get("output_shape"), str):
            config["output_shape"] = _registered("output_shape", config["output_shape"])
        return super().from_config(config)


def _registered(argument, value):
    """Return the registered object if the value is a name, else the value."""
    if not isinstance(value, str):
        return value
    for family in _FAMILIES:
        try:
            return registry.find(family, value)
        except ValueError:
            continue
    raise ValueError(
        f"Lambda: {argument} names {value!r}, which is not registered; pass the "
        "function itself, or register it under that name"
    )


def _arguments_of(function):
    try:
        return set(signature(function).parameters)
    except (TypeError, ValueError):  # some functions written in C tell nothing
        return set()
