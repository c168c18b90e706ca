"""A model's weights in HDF5, in the layout of Keras 3's ``.weights.h5``.

The arrays of a layer are ``0``, ``1``, ... in a group ``<path>/vars``. Paths follow the
objects, not their names: ``layers/dense``, ``layers/dense_1`` for the layers of a model
that is a list or graph of them, attribute names for what is inside of others.
"""

import os

from ..module import snake_case
from ..nest import is_nested
from .atomic import replacing

__all__ = ["load_weights", "save_weights"]

SUFFIX = ".weights.h5"


def save_weights(model, path, overwrite=True):
    """Writes the weights of a model; the file is there as a whole or not at all.

    Raises: ``ValueError`` for another ending than ``.weights.h5`` or a model without
    weights yet; ``FileExistsError`` unless ``overwrite``.
    """
    import h5py

    path = os.fspath(path)
    if not path.endswith(SUFFIX):
        raise ValueError(f"save_weights: filepath must end in {SUFFIX}, got {path!r}")
    if not model.built and not model.weights:
        raise ValueError(
            f"save_weights: model '{model.name}' has no weights yet; call it, or "
            "build(input_shape)"
        )
    if not overwrite and os.path.exists(path):
        raise FileExistsError(f"save_weights: {path!r} is there already")
    with replacing(path) as temporary, h5py.File(temporary, "w") as file:
        for place, name, variables in _places(model):
            group = file.create_group(f"{place}/vars" if place else "vars")
            group.attrs["name"] = name
            for i, variable in enumerate(variables):
                group.create_dataset(str(i), data=variable.numpy())


def load_weights(model, path):
    """Assigns the weights of a file to a model of the same layers.

    Raises: ``ValueError`` that tells what is missing or of another shape, ``OSError`` for
    what is no HDF5 file; then nothing was assigned.
    """
    path = os.fspath(path)
    if not model.built and not model.weights:
        raise ValueError(
            f"load_weights: model '{model.name}' has no weights yet; call it, or "
            "build(input_shape)"
        )
    with _opened(path) as file:
        pairs = []
        for place, name, variables in _places(model):
            key = f"{place}/vars" if place else "vars"
            group = file.get(key)
            found = [] if group is None else sorted(group, key=int)
            if len(found) != len(variables):
                raise ValueError(
                    f"load_weights: {path}: '{key}' holds {len(found)} arrays, layer "
                    f"'{name}' has {len(variables)} weights"
                )
            for i, variable in enumerate(variables):
                array = group[str(i)]
                if array.shape != tuple(variable.shape):
                    raise ValueError(
                        f"load_weights: {path}: '{key}/{i}' has shape {array.shape}, "
                        f"weight '{variable.path}' {tuple(variable.shape)}"
                    )
                pairs.append((variable, array[()]))
    for variable, array in pairs:
        variable.assign(array)


def _opened(path):
    import h5py

    if not os.path.exists(path):
        raise FileNotFoundError(f"load_weights: there is no file {path!r}")
    if os.path.isdir(path):
        raise IsADirectoryError(f"load_weights: {path!r} is a folder")
    try:
        return h5py.File(path, "r")
    except PermissionError:
        raise
    except OSError as error:
        raise OSError(
            f"load_weights: {path!r} is no HDF5 file, or not a whole one: {error}"
        ) from None


def _places(model):
    """``(path, name, variables)`` of every layer, in order, each once."""
    found, seen = [], set()
    _visit(model, "", found, seen)
    return found


def _visit(layer, path, found, seen):
    if id(layer) in seen:
        return
    seen.add(id(layer))
    own = layer.own_variables()
    if own or path:
        found.append((path, layer.name, own))
    for name, part in _parts(layer):
        inner = f"{path}/{name}" if path else name
        if is_nested(part):
            _visit_all(part, inner, found, seen)
        else:
            _visit(part, inner, found, seen)


def _parts(layer):
    """Layers and containers of them, by the names of attributes."""
    if getattr(layer, "lists_layers", False):
        yield "layers", layer.operations
    for name, value in sorted(vars(layer).items()):
        if name.startswith("_") and hasattr(layer, "layers"):
            continue
        if is_nested(value) or hasattr(value, "own_variables"):
            yield name.lstrip("_"), value


def _visit_all(container, path, found, seen):
    """Items of a container go by their class, with a number where it comes again."""
    items = container.values() if isinstance(container, dict) else container
    counts = {}
    for item in items:
        if is_nested(item):
            kind = "container"
        elif hasattr(item, "own_variables"):
            kind = getattr(item, "kind_in_files", None) or snake_case(
                type(item).__name__
            )
        else:
            continue
        number = counts[kind] = counts.get(kind, -1) + 1
        inner = f"{path}/{kind}_{number}" if number else f"{path}/{kind}"
        if is_nested(item):
            _visit_all(item, inner, found, seen)
        else:
            _visit(item, inner, found, seen)
