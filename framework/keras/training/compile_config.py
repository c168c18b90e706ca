"""Serialization of the arguments of `compile`."""

from tapewright.serialization import object_config, registry
from tapewright.serialization.load_errors import load_error

from ..files.keras_objects import serialize_keras_object

_FAMILIES = {
    "optimizer": "optimizer",
    "loss": "loss",
    "metrics": "metric",
    "weighted_metrics": "metric",
}
_PLAIN = ("loss_weights", "run_eagerly", "steps_per_execution", "jit_compile",
          "auto_scale_loss")  # fmt: skip


def compile_config(options):
    """Return the arguments of `compile` as plain values; names and numbers are unchanged.

    Raises:
        ValueError: If an argument is a lambda, which cannot be serialized.
    """
    config = {}
    for key, value in options.items():
        try:
            config[key] = serialize_keras_object(value)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"compile: {key} cannot be serialized: {error}. To save the model "
                "without it, pass include_optimizer=False"
            ) from error
    return config


def arguments_of_compile(config):
    """Return the arguments for `compile` from a config of `compile_config` or of Keras.

    Raises:
        ValueError: If a key, class or function is unknown.
    """
    if not isinstance(config, dict):
        raise load_error(f"the compile config must be a dict, got {str(config)[:80]}")
    arguments = {}
    for key, value in config.items():
        if key in _FAMILIES:
            arguments[key] = _revived(_FAMILIES[key], value)
        elif key in _PLAIN:
            arguments[key] = value
        elif value is not None:
            raise load_error(
                f"the compile config has the unsupported entry {str(key)[:80]!r}: "
                f"{str(value)[:80]}; supported are "
                f"{', '.join([*_FAMILIES, *_PLAIN])}"
            )
    return arguments


def _revived(family, value):
    """Replace configs by their objects; leave names, which `compile` accepts, unchanged."""
    if isinstance(value, (list, tuple)):
        return [_revived(family, each) for each in value]
    if isinstance(value, str):  # a user's function, in HDF5 files of Keras
        known = registry.get_registered_object(value)
        return value if known is None or isinstance(known, type) else known
    if not isinstance(value, dict):
        return value
    if "class_name" in value:
        return object_config.deserialize(family, value)
    return {key: _revived(family, each) for key, each in value.items()}
