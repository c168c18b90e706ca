"""Configs of Keras 2, and keys of other versions of Keras, in the form that is read here.

A key that is not known here may go if its value asks for nothing; any other value stays,
and the class refuses it by name.
"""

__all__ = ["in_present_form"]

# Key -> values that ask for nothing; None in place of them: whatever it is.
OFF = {
    "time_major": (False,),
    "dynamic": (False,),
    "ragged": (False,),
    "fused": (None, True, False),
    "virtual_batch_size": (None,),
    "adjustment": (None,),
    "input_length": None,  # of Embedding: the inputs tell
    "experimental_autocast": (True,),
    "quantization_config": (None,),
    "decay": (0, None),
    "jit_compile": None,
    "is_legacy_optimizer": None,
}
# Which of these keys mean something to a class or `compile`, and stay there.
KEPT = {"InputLayer": {"ragged"}}


def in_present_form(config):
    """The config of an object, and of all inside it; others are left as they are.

    >>> in_present_form({"class_name": "LSTM", "config": {"units": 2, "time_major": False}})
    {'class_name': 'LSTM', 'config': {'units': 2}}
    """
    if isinstance(config, list):
        return [in_present_form(each) for each in config]
    if not isinstance(config, dict):
        return config
    config = {key: in_present_form(value) for key, value in config.items()}
    name, inner = config.get("class_name"), config.get("config")
    if isinstance(name, str) and isinstance(inner, dict):
        config["config"] = _present(name, inner)
    return config


def _present(name, inner):
    kept = KEPT.get(name, ())
    found = {
        key: value
        for key, value in inner.items()
        if key in kept or not _asks_for_nothing(key, value)
    }
    axis = found.get("axis")
    if name == "BatchNormalization" and isinstance(axis, list) and len(axis) == 1:
        found["axis"] = axis[0]
    if "lr" in found and "learning_rate" not in found:
        found["learning_rate"] = found.pop("lr")
    return found


def _asks_for_nothing(key, value):
    if key not in OFF:
        return False
    return OFF[key] is None or any([value is off or value == off for off in OFF[key]])
