"""Whole models in HDF5, the layout of Keras 2 that Keras 3 calls legacy.

Attributes ``model_config`` and ``training_config``, the weights in ``model_weights``, see
`legacy_h5`. The state of the optimizer is kept in the group of our own, see `model_state`:
with one in ``optimizer_weights`` Keras 3.15 cannot go on training.
"""

from typing import Any

from tapewright.storage.reader import opened
from tapewright.storage.writer import writing

from .keras2_configs import (
    keras2_config,
    keras2_training_config,
    keras3_compile_config,
)
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
    training = keras2_training_config(config["compile_config"]) if compiled else None
    with writing(path, overwrite) as root:
        root.text("keras_version", VERSION)
        root.text("backend", "tapewright")
        root.json("model_config", keras2_config(config))
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
            lambda model, assignment: read_layers(holder, model, assignment),
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
