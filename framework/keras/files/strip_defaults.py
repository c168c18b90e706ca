"""Strip arguments that equal the constructor's defaults from the configs of files.

Keras refuses unknown keys, so each further key makes a file unreadable to some version of
Keras; the defaults are those of every version.
"""

import functools
from typing import Any

from tapewright.serialization import object_config
from tapewright.serialization.constructor_arguments import constructor_defaults
from tapewright.serialization.registry import kind_modules

__all__ = ["strip_defaults"]

_MODEL_MODULES = ("keras", "keras.src.models.functional")
# A dtype is by default that of the process that reads; Rescaling in Keras wants an offset.
_ALWAYS = {"name", "dtype", "offset"}


def strip_defaults(config: Any) -> Any:
    """Return the config of an object, or a nest of them, without default arguments.

    Configs of the user's classes stay as they are.

    >>> from tapewright.keras import layers, saving
    >>> from tapewright.keras.files.strip_defaults import strip_defaults
    >>> strip_defaults(saving.serialize_keras_object(layers.Dense(2, name="d")))["config"]
    {'dtype': 'float32', 'name': 'd', 'units': 2}
    """
    if isinstance(config, (list, tuple)):
        return [strip_defaults(each) for each in config]
    if not isinstance(config, dict):
        return config
    inner = config.get("config")
    if "class_name" not in config or not isinstance(inner, dict):
        return {key: strip_defaults(each) for key, each in config.items()}
    kind = _kind_of(config.get("module"))
    if kind is None:  # the user's, or an array, a tensor, an op
        return config
    cls = object_config.class_of(kind, config)
    short = {key: strip_defaults(each) for key, each in inner.items()}
    defaults = _defaults_of(cls)
    for key in [key for key in short if key in defaults and key not in _ALWAYS]:
        if _is_default(defaults[key], short[key]):
            del short[key]
    rest = {
        key: strip_defaults(each) for key, each in config.items() if key != "config"
    }
    return {key: rest.get(key, short) for key in config}


def _kind_of(module):
    """The kind of our classes of a module, or None."""
    if module in _MODEL_MODULES:
        return "layer"
    modules = kind_modules.items()
    return next((kind for kind, each in modules if each == module), None)


_defaults_of = functools.cache(constructor_defaults)


def _is_default(default, value):
    if isinstance(value, dict):  # an object: by its name, without arguments
        return (
            isinstance(default, str)
            and value.get("config") == {}
            and default.replace("_", "").lower() == str(value["class_name"]).lower()
        )
    if isinstance(default, tuple):
        default = list(default)
    if default is None and value == "linear":  # an activation
        return True
    if type(default) is int and isinstance(value, list) and value:  # one for each axis
        return all([type(each) is int and each == default for each in value])
    return type(default) is type(value) and default == value
