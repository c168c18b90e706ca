"""Whole models in HDF5, the layout of Keras 2 that Keras 3 calls legacy.

Attributes ``model_config`` and ``training_config``, the weights in ``model_weights``, see
`legacy_h5`. The state of the optimizer is kept in the group of our own, see `model_state`:
with one in ``optimizer_weights`` Keras 3.15 cannot go on training.
"""

from typing import Any

from tapewright.serialization.registry import find
from tapewright.storage.reader import opened
from tapewright.storage.writer import writing

from .keras2_configs import keras3_compile_config
from .keras_objects import full_config
from .legacy_h5 import read_layers, write_layers
from .model_state import (
    OWN_GROUP,
    compile_as_saved,
    restore_optimizer,
    restored_model,
    write_own_state,
)
from .operations import is_operation
from .optimizer_state import write_optimizer
from .strip_defaults import strip_defaults

__all__ = ["load_h5", "save_h5"]

VERSION = "3.15.1"  # of Keras, whose layout it is


def save_h5(model: Any, path: str, overwrite: bool, include_optimizer: bool) -> None:
    """Write a model with its weights, compile config and optimizer state."""
    compiled = include_optimizer and getattr(model, "optimizer", None) is not None
    config = strip_defaults(full_config(model, compiled))
    training = _training_config(config["compile_config"]) if compiled else None
    with writing(path, overwrite) as root:
        root.text("keras_version", VERSION)
        root.text("backend", "tapewright")
        root.json("model_config", _old_form(config))
        if training:
            root.json("training_config", training)
        write_layers(root.group("model_weights"), model, VERSION)
        own = write_own_state(root, model)
        if config.get("build_config"):
            own.json("build_config", config["build_config"])
        if compiled:
            write_optimizer(own.group("optimizer"), model.optimizer)


def load_h5(path: str, compile: bool) -> Any:
    """Return the model in a file, compiled as it was if ``compile``."""
    with opened(path) as root:
        if not root.has("model_config"):
            root.fail(
                "holds no model, it has no attribute 'model_config'; if it holds weights, "
                "make the model, then call its load_weights"
            )
        config = root.json("model_config")
        own = root.find_group(OWN_GROUP)
        build_config = None
        if own is not None and own.has("build_config"):
            build_config = own.json("build_config")
        holder = root.group("model_weights")
        _check_count(root, config, holder)
        model = restored_model(
            root,
            "/@model_config",
            config,
            build_config,
            [holder],
            lambda model, filling: read_layers(holder, model, filling),
        )
        if compile and root.has("training_config"):
            place = "/@training_config"
            training = keras3_compile_config(root.json("training_config"))
            if compile_as_saved(model, training, path, place):
                _restore(root, model)
    return model


def _check_count(root, config, holder):
    """Check that the file lists the layers of the config. Raises: `SavingError`."""
    inner = config.get("config") if isinstance(config, dict) else None
    layers = inner.get("layers") if isinstance(inner, dict) else None
    if not isinstance(layers, list):
        return
    own = [each for each in layers if isinstance(each, dict) and not is_operation(each)]
    own = [each for each in own if each.get("class_name") != "InputLayer"]
    listed = len(holder.texts("layer_names"))
    if len(own) > listed:
        root.fail(
            f"the config has {len(own)} layers, {listed} are listed in {holder.place}",
            "model_config",
        )


def _restore(root, model):
    own = root.find_group(f"{OWN_GROUP}/optimizer/vars")
    if own is not None:
        restore_optimizer(model, own.numbered(), root.path)
        return
    arrays = names = None
    if "optimizer_weights" in root:
        group = root.group("optimizer_weights")
        names = group.texts("weight_names")
        arrays = [group.array(name) for name in names]
    restore_optimizer(model, arrays, root.path, names)


# -------------------------------------------------------------------- the forms of configs


def _old_form(config):
    """The config of a model whose layers have a class and a config only.

    Ops among them keep their modules: they tell ``Add`` the op from ``Add`` the layer.
    """
    config = dict(config)
    known_as = config.get("registered_name")
    if not known_as and str(config.get("module")).partition(".")[0] != "keras":
        return config
    if "ops" in str(config.get("module")).split("."):
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
        layers = [_old_form(layer) for layer in inner["layers"]]
        config["config"] = {**inner, "layers": layers}
    return config


def _training_config(config):
    """The ``training_config`` of a ``compile_config``."""
    config = dict(config)
    optimizer = config.pop("optimizer")
    known_as = optimizer.get("registered_name")
    ours = str(optimizer.get("module")).startswith("keras")
    name = optimizer["class_name"] if ours or not known_as else known_as
    optimizer = {"class_name": name, "config": optimizer["config"]}
    loss = _in_full(config.get("loss"))
    return {**config, "loss": loss, "optimizer_config": optimizer}


def _in_full(loss):
    """Losses by the full names of their functions: Keras does not read "mse" here."""
    if isinstance(loss, str):
        try:
            return getattr(find("loss", loss), "__name__", loss)
        except ValueError:  # a name that only `compile` knows
            return loss
    if isinstance(loss, list):
        return [_in_full(each) for each in loss]
    if isinstance(loss, dict) and "class_name" not in loss:
        return {key: _in_full(each) for key, each in loss.items()}
    return loss
