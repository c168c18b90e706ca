"""Whole models as ``.keras``, the files of Keras 3: a zip of config and weights.

``config.json`` has the model with its ``compile_config`` and ``build_config``;
``model.weights.h5`` the weights and the state of the optimizer, see `weight_tree`, and a
group of our own, see `model_state`. All members are stored, none is deflated.
"""

from datetime import datetime
from typing import Any

from tapewright.storage.zips import opened_zip, writing_zip

from .h5_model import VERSION
from .keras_objects import full_config
from .model_state import (
    compile_as_saved,
    restore_optimizer,
    restored_model,
    write_own_state,
)
from .optimizer_state import optimizer_group, write_optimizer
from .strip_defaults import strip_defaults
from .weight_tree import WEIGHTS_MEMBER, read_tree, write_tree

__all__ = ["CONFIG", "METADATA", "load_zip", "save_zip"]

CONFIG = "config.json"
METADATA = "metadata.json"


def save_zip(model: Any, path: str, overwrite: bool, include_optimizer: bool) -> None:
    """Write a model with its weights, compile config and optimizer state."""
    compiled = include_optimizer and getattr(model, "optimizer", None) is not None
    config = strip_defaults(full_config(model, compiled))
    saved = datetime.now().strftime("%Y-%m-%d@%H:%M:%S")
    with writing_zip(path, overwrite) as zipped:
        zipped.json(METADATA, {"keras_version": VERSION, "date_saved": saved})
        zipped.json(CONFIG, config)
        with zipped.hdf5(WEIGHTS_MEMBER) as root:
            write_tree(root, model)
            if compiled:
                write_optimizer(root.group("optimizer"), model.optimizer)
            write_own_state(root, model)


def load_zip(path: str, compile: bool) -> Any:
    """Return the model in a file, compiled as it was if ``compile``."""
    with opened_zip(path) as zipped:
        config = zipped.json_object(CONFIG)
        compile_config = config.pop("compile_config", None)
        with zipped.hdf5(WEIGHTS_MEMBER) as root:
            groups = [root.find(key) for key in root.keys() if key != "optimizer"]
            model = restored_model(
                root,
                CONFIG,
                config,
                config.get("build_config"),
                groups,
                lambda model, assignment: read_tree(root, model, assignment),
            )
            if compile and compile_config:
                if compile_as_saved(model, compile_config, path, CONFIG):
                    group = optimizer_group(root, model.optimizer)
                    arrays = None if group is None else group.numbered()
                    restore_optimizer(model, arrays, path)
    return model
