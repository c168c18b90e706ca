"""Convert configs of Keras 2, and keys of other versions, to Keras 3, and back.

An unknown key is dropped if its value requests nothing; any other value is kept, and
the class rejects it by name.
"""

from typing import Any

from tapewright.serialization.load_errors import load_error
from tapewright.serialization.registry import find, get_registered_object

from ..files.keras_objects import history_config, is_history
from ..files.limits import walk

# Key -> values that ask for nothing; None: any value.
OFF = {
    "time_major": (False,),
    "dynamic": (False,),
    "ragged": (False,),
    "fused": (None, True, False),
    "virtual_batch_size": (None,),
    "adjustment": (None,),
    "input_length": None,  # of Embedding, which follows its inputs
    "experimental_autocast": (True,),
    "quantization_config": (None,),
    "decay": (0, None),
    "jit_compile": None,
    "is_legacy_optimizer": None,
}
# Which of these keys mean something to a class or `compile`, and stay there.
_KEPT = {"InputLayer": {"ragged"}}
CONSTANT = "_CONSTANT_VALUE"  # stands for a layer where an argument is a number


# ---------------------------------------------------------------------------- arguments


def keras3_config(config: Any) -> Any:
    """Convert the config of an object, and of all nested objects, to Keras 3.

    Example:
        >>> from tapewright.keras.legacy.configs import keras3_config
        >>> keras3_config({"class_name": "LSTM", "config": {"units": 2, "time_major": False}})
        {'class_name': 'LSTM', 'config': {'units': 2}}
    """
    if isinstance(config, list):
        return [keras3_config(each) for each in config]
    if not isinstance(config, dict):
        return config
    config = {key: keras3_config(value) for key, value in config.items()}
    name, inner = config.get("class_name"), config.get("config")
    if isinstance(name, str) and isinstance(inner, dict):
        config["config"] = _arguments(name, inner)
    return config


def _arguments(name, inner):
    kept = _KEPT.get(name, ())
    arguments = {
        key: value
        for key, value in inner.items()
        if key in kept or not _asks_for_nothing(key, value)
    }
    axis = arguments.get("axis")
    if name == "BatchNormalization" and isinstance(axis, list) and len(axis) == 1:
        arguments["axis"] = axis[0]
    if "lr" in arguments and "learning_rate" not in arguments:
        arguments["learning_rate"] = arguments.pop("lr")
    return arguments


def _asks_for_nothing(key, value):
    if key not in OFF:
        return False
    return OFF[key] is None or any([value is off or value == off for off in OFF[key]])


# -------------------------------------------------------------------- calls in a network


def keras3_calls(config: dict) -> dict:
    """Return the config of a network with its calls and outputs as in Keras 3.

    Keras 2 lists the tensors of a call as ``[layer, call, output]``, with the keywords
    after the first tensor, and numbers the calls of nested models from 1.

    Raises:
        ValueError: If a list is not a call; from a file, ``SavingError``.
    """
    entries = config["layers"]
    if not isinstance(entries, list) or not any(
        [_calls(each, list) for each in entries]
    ):
        return config
    return _Keras2Calls(entries, config["output_layers"]).converted(config)


def _calls(entry, node_type=(list, dict)):
    """Return the calls of an entry that are lists, or dicts."""
    nodes = entry.get("inbound_nodes") if isinstance(entry, dict) else None
    nodes = nodes if isinstance(nodes, list) else ()
    return [node for node in nodes if node and isinstance(node, node_type)]


def _name(entry):
    inner = entry.get("config")
    name = entry.get("name")
    return inner.get("name") if name is None and isinstance(inner, dict) else name


class _Keras2Calls:
    """The calls of a Keras 2 network: the number of the first call of each layer."""

    def __init__(self, entries, outputs):
        numbers = {}
        for each in walk([outputs, *map(_calls, entries)]):
            if is_history(each):
                numbers.setdefault(each[0], set()).add(each[1])
        self.first, self.counted_in_outputs = {}, set()
        for entry in [each for each in entries if isinstance(each, dict)]:
            name, calls = _name(entry), _calls(entry)
            if not isinstance(name, str):
                continue
            counts = numbers.get(name, {0}) if _calls(entry, list) else {0}
            self.first[name] = int(min(counts) == 1 and max(counts) == len(calls))
            inner = entry.get("config")
            if isinstance(inner, dict) and "input_layers" in inner:
                self.counted_in_outputs.add(name)  # from 1 in Keras 3, too

    def converted(self, config):
        entries = [
            each | {"inbound_nodes": [self._call(_name(each), n) for n in _calls(each)]}
            if _calls(each, list)
            else each
            for each in config["layers"]
        ]
        outputs = self._outputs(config["output_layers"])
        return config | {"layers": entries, "output_layers": outputs}

    def _call(self, name, node):
        if isinstance(node, dict):
            return node
        if node[0] == CONSTANT and len(node) == 4 and isinstance(node[3], dict):
            args, kwargs = [node[2]], node[3]
        else:
            histories = [node] if is_history(node) else node
            for history in histories:
                if not is_history(history) or len(history) > 4:
                    raise load_error(
                        f"Model: {str(name)[:80]!r} is called on {str(history)[:80]}"
                    )
            kwargs = histories[0][3] if len(histories[0]) > 3 else {}
            if not isinstance(kwargs, dict):
                raise load_error(
                    f"Model: {str(name)[:80]!r} is called with {str(kwargs)[:80]}"
                )
            tensors = [self._tensor(history) for history in histories]
            args = tensors if len(tensors) == 1 else [tensors]
        kwargs = {key: self._argument(value) for key, value in kwargs.items()}
        return {"args": args, "kwargs": kwargs, "keeps_training": True}

    def _tensor(self, history):
        name, number, index = history[:3]
        return history_config([name, number - self.first.get(name, 0), index])

    def _argument(self, value):
        if is_history(value) and value[0] in self.first:
            return self._tensor(value)
        return list(map(self._argument, value)) if isinstance(value, list) else value

    def _outputs(self, value):
        if isinstance(value, dict):
            return {key: self._outputs(each) for key, each in value.items()}
        if not isinstance(value, (list, tuple)):
            return value
        if not is_history(value):
            return [self._outputs(each) for each in value]
        name, number, index = value[:3]
        first = 0 if name in self.counted_in_outputs else self.first.get(name, 0)
        return [name, number - first, index]


# ------------------------------------------------------------------------------ training


def keras3_compile_config(training: Any) -> Any:
    """Return the ``compile_config`` of a ``training_config`` in HDF5."""
    if not isinstance(training, dict):
        return training
    config = dict(training)
    optimizer = config.pop("optimizer_config", None)
    for key in ("metrics", "weighted_metrics"):
        config[key] = _unwrapped(config.get(key))
    config.pop("sample_weight_mode", None)
    return {**config, "optimizer": _known_optimizer(optimizer)}


def _known_optimizer(config):
    """Return the config of an optimizer; Keras 2 uses "Custom>Adam" for its classes, too."""
    name = config.get("class_name") if isinstance(config, dict) else None
    if isinstance(name, str) and get_registered_object(name) is None:
        name = name.removeprefix("Custom>")
        is_old = name == "LossScaleOptimizerV3"
        return config | {"class_name": name.removesuffix("V3") if is_old else name}
    return config


def _unwrapped(metrics):
    """Return metrics, with functions that Keras 2 has wrapped replaced by their names."""
    if isinstance(metrics, list):
        return [_unwrapped(metric) for metric in metrics]
    if not isinstance(metrics, dict):
        return metrics
    if metrics.get("class_name") == "MeanMetricWrapper":
        inner = metrics.get("config")
        return inner.get("fn") if isinstance(inner, dict) else metrics
    if "class_name" in metrics:
        return metrics
    return {key: _unwrapped(metric) for key, metric in metrics.items()}


# ----------------------------------------------------------------------- writing Keras 2


def keras2_config(config: dict) -> dict:
    """Convert the config of a model to Keras 2: layers have only a class and a config.

    Ops keep their modules, because ``Add`` is both an op and a layer, and so do custom
    operations, which may share the name of an operation of Keras.
    """
    config = dict(config)
    known_as = config.get("registered_name")
    if not known_as and str(config.get("module")).partition(".")[0] != "keras":
        return config
    if "ops" in str(config.get("module")).split(".") or _is_of_user(config):
        return config
    if config["class_name"] == "GroupQueryAttention":  # not known without its module
        return config
    for key in ("module", "registered_name", "build_config", "compile_config"):
        config.pop(key, None)
    config["class_name"] = known_as or config["class_name"]
    inner = config["config"]
    if config["class_name"] == "Attention" and inner.get("score_mode") == "dot":
        # the default, which Keras 3.15 takes for the function of that name here
        inner = config["config"] = {k: v for k, v in inner.items() if k != "score_mode"}
    if isinstance(inner.get("layers"), list):
        layers = [keras2_config(layer) for layer in inner["layers"]]
        config["config"] = {**inner, "layers": layers}
    return config


def _is_of_user(config):
    """Return whether an entry is a custom operation, or a layer with few arguments."""
    arguments = config["config"]
    is_layer = "trainable" in arguments or "layers" in arguments
    return "inbound_nodes" in config and config.get("registered_name") and not is_layer


def keras2_training_config(config: dict) -> dict:
    """Return the ``training_config`` in HDF5 of a ``compile_config``."""
    config = dict(config)
    optimizer = config.pop("optimizer")
    known_as = optimizer.get("registered_name")
    ours = str(optimizer.get("module")).startswith("keras")
    name = optimizer["class_name"] if ours or not known_as else known_as
    optimizer = {"class_name": name, "config": optimizer["config"]}
    loss = _full_name(config.get("loss"))
    return {**config, "loss": loss, "optimizer_config": optimizer}


def _full_name(loss):
    """Return losses by the full names of their functions: Keras does not read "mse" here."""
    if isinstance(loss, str):
        try:
            return getattr(find("loss", loss), "__name__", loss)
        except ValueError:  # a name that only `compile` knows
            return loss
    if isinstance(loss, list):
        return [_full_name(each) for each in loss]
    if isinstance(loss, dict) and "class_name" not in loss:
        return {key: _full_name(each) for key, each in loss.items()}
    return loss
