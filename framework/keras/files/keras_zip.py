"""Whole models as ``.keras``, the files of Keras 3: a zip of config and weights.

``config.json`` has the model with its ``compile_config`` and ``build_config``;
``model.weights.h5`` the weights and the state of the optimizer, see `weight_tree`, and a
group of our own, see `model_state`. All members are stored, none is deflated.
"""

from datetime import datetime

from tapewright.storage.file_kinds import WEIGHTS_MEMBER
from tapewright.storage.zips import opened_zip, writing_zip

from .h5_model import VERSION
from .keras_objects import described
from .model_state import (
    compile_as_saved,
    filled_model,
    restore_optimizer,
    write_own_state,
)
from .optimizer_state import optimizer_group, write_optimizer
from .strip_defaults import for_file
from .weight_tree import read_tree, write_tree

__all__ = ["CONFIG", "METADATA", "load_zip", "save_zip"]

CONFIG = "config.json"
METADATA = "metadata.json"


def save_zip(model, path, overwrite, include_optimizer):
    """Writes a model with its weights, and how it is trained."""
    compiled = include_optimizer and getattr(model, "optimizer", None) is not None
    config = for_file(described(model, compiled))
    saved = datetime.now().strftime("%Y-%m-%d@%H:%M:%S")
    with writing_zip(path, overwrite) as zipped:
        zipped.json(METADATA, {"keras_version": VERSION, "date_saved": saved})
        zipped.json(CONFIG, config)
        with zipped.hdf5(WEIGHTS_MEMBER) as root:
            write_tree(root, model)
            if compiled:
                write_optimizer(root.group("optimizer"), model.optimizer)
            write_own_state(root, model)


def load_zip(path, compile):
    """The model in a file, and compiled as it was."""
    with opened_zip(path) as zipped:
        config = zipped.json_object(CONFIG)
        compile_config = config.pop("compile_config", None)
        with zipped.hdf5(WEIGHTS_MEMBER) as root:
            groups = [root.find(key) for key in root.keys() if key != "optimizer"]
            model = filled_model(
                root,
                CONFIG,
                config,
                config.get("build_config"),
                groups,
                lambda model, filling: read_tree(root, model, filling),
            )
            if compile and compile_config:
                if compile_as_saved(model, compile_config, path, CONFIG):
                    group = optimizer_group(root, model.optimizer)
                    arrays = None if group is None else group.numbered()
                    restore_optimizer(model, arrays, path)
    return model
