"""Keras' names of our classes, and of the families of classes.

Configs name a class by the module of its family, such as ``keras.layers``; the tables
here contain the modules, and the classes with another name or module in Keras.
"""

import functools
from typing import Any

from tapewright.layers.base.saved_layer import SavedLayer
from tapewright.serialization import object_config, registry
from tapewright.serialization.constructor_arguments import constructor_defaults
from tapewright.serialization.load_errors import load_error
from tapewright.serialization.registry import unregistered

from .limits import walk

# Family -> the module that configs name.
MODULES = {
    "layer": "keras.layers",
    "optimizer": "keras.optimizers",
    "schedule": "keras.optimizers.schedules",
    "loss": "keras.losses",
    "metric": "keras.metrics",
    "initializer": "keras.initializers",
    "regularizer": "keras.regularizers",
    "constraint": "keras.constraints",
    "dtype_policy": "keras.dtype_policies",
}
FUNCTIONAL = ("keras.src.models.functional", "Functional")
_CONVNEXT = "keras.src.applications.convnext"
_FEATURE_SPACE = "keras.src.layers.preprocessing.feature_space"
_LEGACY = "keras._legacy.layers"
_INCEPTION_RESNET = "keras.src.applications.inception_resnet_v2"
# Class -> module, class name and registered name in Keras, where the table above does not hold.
_CLASSES = {
    "Cross": (_FEATURE_SPACE, "Cross", "Cross"),
    "CustomScaleLayer": (_INCEPTION_RESNET, "CustomScaleLayer", "CustomScaleLayer"),
    "DTypePolicy": ("keras", "DTypePolicy"),
    "Feature": (_FEATURE_SPACE, "Feature", "Feature"),
    "FeatureSpace": ("keras.utils", "FeatureSpace"),
    "FloatDTypePolicy": ("keras", "FloatDTypePolicy"),
    "GroupedQueryAttention": ("keras.layers", "GroupQueryAttention"),
    "LayerScale": (_CONVNEXT, "LayerScale", "LayerScale"),
    "LossFunctionWrapper": ("keras.src.losses.losses", "LossFunctionWrapper"),
    "Model": ("keras", "Model"),
    "RandomHeight": (_LEGACY, "RandomHeight"),
    "RandomWidth": (_LEGACY, "RandomWidth"),
    "SeedGenerator": ("keras.random", "SeedGenerator"),
    "Sequential": ("keras", "Sequential"),
    "StochasticDepth": (_CONVNEXT, "StochasticDepth", "StochasticDepth"),
    "TFDConcat": (_FEATURE_SPACE, "TFDConcat", "TFDConcat"),
    "TFDIdentity": (_FEATURE_SPACE, "TFDIdentity", "TFDIdentity"),
    "ThresholdedReLU": (_LEGACY, "ThresholdedReLU"),
}
# Part of a module's name, of any version -> the family of its classes.
FAMILIES = {module.rpartition(".")[2]: family for family, module in MODULES.items()}
FAMILIES |= {
    "models": "layer",
    "activations": "layer",
    "engine": "layer",  # Keras 2
    "learning_rate_schedule": "schedule",
    "random": "seed_generator",
    "feature_space": "feature",
    "utils": "layer",  # `FeatureSpace`
}


def is_functional(layer: Any) -> bool:
    """Return whether Keras represents a layer as a functional model."""
    return getattr(layer, "_tw_is_functional", False)


def class_path(thing: Any) -> tuple:
    """Return the module, class name and, unless None, registered name of our object."""
    if isinstance(thing, SavedLayer):
        return thing.class_path
    if is_functional(thing):
        return FUNCTIONAL
    name = type(thing).__name__
    return _CLASSES.get(name) or (MODULES.get(type(thing)._tw_kind), name)


def family_of(config: dict, default: str | None = None) -> str:
    """Return the family of the class in a config, by its module.

    Raises:
        ValueError: If neither the module nor the name determines it.
    """
    module = str(config.get("module") or "")
    class_name = str(config.get("class_name"))
    if module == "keras" and registry.is_known("dtype_policy", class_name):
        return "dtype_policy"
    for part in reversed(module.split(".")):
        if part in FAMILIES:
            return FAMILIES[part]
    if default is not None:
        return default
    if module == "keras" or module.startswith("keras.src.models"):
        return "layer"
    name = config.get("registered_name") or config.get("class_name")
    for each in (name, config.get("class_name")):
        cls = registry.get_registered_object(each) if isinstance(each, str) else None
        if cls is not None:
            return getattr(cls, "_tw_kind", None) or "object"
    families = [each for each in MODULES if registry.is_known(each, class_name)]
    if len(families) == 1:
        return families[0]
    raise load_error(unregistered(name))


def custom_classes(*configs: Any) -> set[str]:
    """Return the names of custom classes and functions in configs."""
    names = set()
    for each in walk(configs):
        name = each.get("class_name") if isinstance(each, dict) else None
        if not isinstance(name, str):
            continue
        module, registered = each.get("module"), each.get("registered_name")
        if name == "function":
            name = each.get("config")
            is_custom = module == "builtins" and isinstance(name, str)
        else:
            is_custom = isinstance(module, str) and module.partition(".")[0] != "keras"
        known_as = registered if isinstance(registered, str) else name
        if ">" in known_as and known_as.partition(">")[0] != "keras":
            names.add(known_as)
        elif is_custom or ("module" in each and module is None and registered):
            names.add(name)
    return names


# ------------------------------------------------------------- defaults of constructors


# A dtype is by default that of the process that reads; Keras' classes want the others.
_ALWAYS = {"name", "dtype", "offset", "standardize", "split", "ngrams"}


def strip_defaults(config: Any) -> Any:
    """Return the config of an object, or of nested objects, without default arguments.

    Keras rejects unknown keys, so each additional key makes a file unreadable for some
    version of Keras; the defaults are the same in every version. Configs of custom
    classes are unchanged.

    Example:
        >>> from tapewright.keras import layers, saving
        >>> from tapewright.keras.files.class_names import strip_defaults
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
    family = _family_of_ours(config.get("module"))
    if config.get("module") == "keras" and config["class_name"] == "DTypePolicy":
        return config
    if family is None:  # the user's, or an array, a tensor, an op
        return config
    cls = object_config.class_of(family, config)
    short = {key: strip_defaults(each) for key, each in inner.items()}
    defaults = _defaults_of(cls)
    for key in [key for key in short if key in defaults and key not in _ALWAYS]:
        if _is_default(defaults[key], short[key]):
            del short[key]
    rest = {
        key: strip_defaults(each) for key, each in config.items() if key != "config"
    }
    return {key: rest.get(key, short) for key in config}


def _family_of_ours(module):
    """Return the family of classes in a module of ours, or None."""
    if module in ("keras", _LEGACY, FUNCTIONAL[0]):
        return "layer"
    return next((each for each in MODULES if MODULES[each] == module), None)


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
