"""Assets: files of layers beside their weights, such as vocabularies.

A layer with the methods ``save_assets(folder)`` and ``load_assets(folder)`` has its
files in a ``.keras`` file or folder as ``assets/<path>/<name>``, with the paths of the
weights.
"""

import functools
import os
from tempfile import TemporaryDirectory

from tapewright.core.errors import SavingError

from .weights.weights_by_path import layer_paths

ASSETS = "assets"
MAX_ASSETS = 256 << 20  # bytes of all assets of a layer


def write_assets(members, model):
    """Write the assets of all layers as members of a file or folder."""
    for folder, layer in _owners(model, "save_assets"):
        with TemporaryDirectory(prefix="tapewright-") as temporary:
            layer.save_assets(temporary)
            for name in _files_below(temporary):
                members.file(f"{folder}/{name}", os.path.join(temporary, name))


def read_assets(file, model, assignment):
    """Add calls of ``load_assets``, with the files of each layer, to a `WeightAssignment`.

    Raises:
        SavingError: If a file is too large.
    """
    for folder, layer in _owners(model, "load_assets"):
        assets, size = {}, 0
        for name in file.names_below(folder):
            assets[name] = file.read(f"{folder}/{name}")
            size += len(assets[name])
            if size > MAX_ASSETS:
                reason = f"the files of layer '{layer.name}' have more than {MAX_ASSETS} bytes"
                raise SavingError(file.path, reason, folder)
        load = functools.partial(_load, layer.load_assets)
        load.__qualname__ = layer.load_assets.__qualname__
        assignment.add_hook(load, assets, folder)


def _load(load_assets, assets):
    with TemporaryDirectory(prefix="tapewright-") as temporary:
        for name, content in assets.items():
            path = os.path.join(temporary, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
        load_assets(temporary)


def _owners(model, method):
    """Return pairs of the asset folder of a layer, and the layer."""
    for entry in layer_paths(model):
        if hasattr(entry.layer, method):
            yield f"{ASSETS}/{entry.path}".rstrip("/"), entry.layer


def _files_below(folder):
    for parent, _, files in os.walk(folder):
        for name in sorted(files):
            path = os.path.relpath(os.path.join(parent, name), folder)
            yield path.replace(os.sep, "/")
