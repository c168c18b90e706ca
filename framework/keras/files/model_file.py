"""One view of the files of Keras and tapewright, independent of their layout.

`opened_model_file` detects the format of a file from its content, never from its name.
The `ModelFile` that it yields has the config of the model, the compile config and the
weights, which each format stores elsewhere.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from tapewright.core.errors import SavingError
from tapewright.storage.folders import FolderReader
from tapewright.storage.reader import Group, MergedGroup, file_format, opened
from tapewright.storage.zips import ZipReader, opened_zip

from ..legacy import configs
from .weights.shards import opened_shards

OWN_GROUP = "tapewright"  # a group of HDF5 that Keras ignores
# Members of a `.keras` file.
CONFIG, METADATA, WEIGHTS_MEMBER = "config.json", "metadata.json", "model.weights.h5"

# Formats, as `show` prints them; checkpoints and saved models store the name of theirs.
HDF5_MODEL = "whole model in Keras' HDF5 layout (.h5)"
LAYER_WEIGHTS = "weights in Keras 2's HDF5 layout (.h5)"
WEIGHTS = "weights in Keras 3's layout (.weights.h5)"
ZIP = "whole model in Keras 3's layout (.keras)"
FOLDER = "whole model in Keras 3's layout (a folder)"
SHARDS = "index of weights in several files (.weights.json)"
OTHER = "HDF5 file of another program"


@contextmanager
def opened_model_file(path: str | os.PathLike) -> Iterator["ModelFile"]:
    """Open a file of any format, or a folder, as a context manager.

    Raises:
        SavingError: If it cannot be read.
    """
    path = os.fspath(path)
    if os.path.isdir(path) and CONFIG in (folder := FolderReader(path)):
        with folder.hdf5(WEIGHTS_MEMBER) as root:
            yield ModelFile(path, root, folder)
        return
    container = file_format(path)
    if container == "json":
        with opened_shards(path) as root:
            yield ModelFile(path, root)
    elif container == "zip":
        with opened_zip(path) as zipped, zipped.hdf5(WEIGHTS_MEMBER) as root:
            yield ModelFile(path, root, zipped)
    else:
        with opened(path) as root:
            yield ModelFile(path, root)


def is_in_vars(name: str) -> bool:
    """Return whether an array is in a group ``vars``, as in files of Keras 3."""
    return name.split("/")[-2:-1] == ["vars"]


class ModelFile:
    """An open file; ``root`` is its HDF5 file, or the weights of a ``.keras`` file.

    ``members``: the members of a ``.keras`` file or folder, or None.

    Configs are read on first access, so that weights load from a file with a damaged
    config.
    """

    def __init__(
        self, path: str, root: Group, members: ZipReader | FolderReader | None = None
    ):
        self.path, self.root, self.members = path, root, members

    @property
    def is_model(self) -> bool:
        return self.members is not None or self.root.has("model_config")

    @cached_property
    def by_layer(self) -> bool:
        """True if the weights are listed by layer, see `weights_by_layer`."""
        if self.members:
            return False
        keys = ("model_config", "layer_names", "layer_names0")
        return any(map(self.root.has, keys)) or "model_weights" in self.root

    @cached_property
    def format(self) -> str:
        """One of the formats above, or the name stored in a file of ours."""
        if self.members:
            return FOLDER if isinstance(self.members, FolderReader) else ZIP
        if self.by_layer:
            return HDF5_MODEL if self.is_model else LAYER_WEIGHTS
        if isinstance(self.root, MergedGroup):
            return SHARDS
        if self.root.has("format"):
            return self.root.text("format")
        in_vars = any(is_in_vars(array.name) for array in self.root.arrays())
        return WEIGHTS if in_vars else OTHER

    @property
    def weights(self) -> Group:
        """The group of the weights."""
        nested = self.by_layer and "model_weights" in self.root
        return self.root.group("model_weights") if nested else self.root

    @property
    def own_group(self) -> Group | None:
        """The group with tapewright's additional data."""
        return self.root.find_group(OWN_GROUP)

    @property
    def config_location(self) -> str:
        return CONFIG if self.members else "/@model_config"

    @property
    def compile_location(self) -> str:
        return CONFIG if self.members else "/@training_config"

    @cached_property
    def config(self) -> dict | None:
        """The config of the model, with its build config; None for a weights file."""
        if self.members:
            config = self._members_config
            return {key: config[key] for key in config if key != "compile_config"}
        if not self.is_model:
            return None
        config = self.root.json_object("model_config")
        if self.own_group is not None and self.own_group.has("build_config"):
            config["build_config"] = self.own_group.json("build_config")
        return config

    @cached_property
    def _members_config(self):
        return self.members.json_object(CONFIG)

    @cached_property
    def compile_config(self) -> dict | None:
        """The compile config in the form of Keras 3, or None."""
        if self.members:
            config = self._members_config.get("compile_config")
            if isinstance(config, (dict, type(None))):
                return config
            raise SavingError(self.path, "the compile config must be a dict", CONFIG)
        if self.root.has("training_config"):
            return configs.keras3_compile_config(
                self.root.json_object("training_config")
            )
        return None

    @property
    def written_by(self) -> dict[str, Any]:
        """The versions stored in the file."""
        if self.members:
            return (
                self.members.json_object(METADATA) if METADATA in self.members else {}
            )
        keys = [key for key in ("keras_version", "backend") if self.root.has(key)]
        return {key: self.root.text(key) for key in keys}
