"""Verify that a file is complete and sound, reading every byte of it.

`verify` continues after a fault where possible, and returns all faults. If a file has
no faults and needs no user classes, loading it is the last check.
"""

import functools
import os
from collections import Counter

import numpy as np

from tapewright.core.dtypes import kind_of
from tapewright.core.errors import SavingError
from tapewright.formats.checkpoints.checkpoint_file import read_content
from tapewright.formats.saved_model import module_file as saved_model
from tapewright.keras.files.limits import check_size
from tapewright.keras.files.model_file import WEIGHTS, ZIP, opened_model_file
from tapewright.keras.files.save_and_load import load_model
from tapewright.storage.reader import Group

from .description import (
    CHECKPOINT,
    MODEL_ITSELF,
    SAVED_MODEL,
    layer_name,
    model_layers,
    needed_classes,
    stored_layers,
)

MAX_FAULTS = 100


def verify(path):
    """Return ``(faults, notes)`` about a file, lists of lines; a sound file has no faults.

    A fault would make loading fail or return wrong values. A note is for information
    only: a missing seal, non-finite values, arrays that nothing refers to.
    """
    path = os.fspath(path)
    faults, notes = [], []
    try:
        with opened_model_file(path) as file:
            classes, load = needed_classes(file), _loader(file)
            _check(file, faults, notes)
        if classes:
            needed = ", ".join(sorted(classes))
            notes.append(f"not loaded: loading needs the registered names {needed}")
        elif load is not None and not faults:
            load(path)
    except SavingError as error:
        faults.append(_without_path(error))
    return list(dict.fromkeys(faults))[:MAX_FAULTS], notes


def _loader(file):
    """Return the loader of a format, or None; it runs no code of the file."""
    if file.is_model:
        return functools.partial(load_model, compile=False)
    return {SAVED_MODEL: saved_model.load, CHECKPOINT: read_content}.get(file.format)


def _without_path(error):
    inside = f"[{error.dataset}] " if error.dataset else ""
    return inside + error.reason


def _check(file, faults, notes):
    if not file.root.sealed:
        notes.append("not sealed: changes since writing cannot be detected")
    for check in (_config, _layer_names, _numbers, _arrays, _unused):
        try:
            check(file, faults, notes)
        except SavingError as error:
            faults.append(_without_path(error))


def _config(file, faults, notes):
    """Check that each layer has a class and a name."""
    config = file.config
    if config is None:
        return
    check_size(config, file.path)
    if not isinstance(config.get("class_name"), str):
        faults.append("the model's config has no class_name")
    if not isinstance(config.get("config"), (dict, list)):
        faults.append("the model's config has no config inside")
    layers = model_layers(config)
    for each in layers:
        if not isinstance(each.get("class_name"), str):
            faults.append(f"a layer without class_name: {str(each)[:80]}")
    faults += [
        f"two layers have the name {name!r}" for name in _repeated(_names(layers))
    ]


def _names(layers):
    names = [layer_name(each) for each in layers]
    return [name for name in names if isinstance(name, str)]


def _repeated(names):
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _layer_names(file, faults, notes):
    """Check that weights are listed in the order of the config's layers."""
    if not file.by_layer:
        return
    stored = [layer.name for layer in stored_layers(file)]
    faults += [f"layer_names has {name!r} twice" for name in _repeated(stored)]
    declared = _names(model_layers(file.config)) if file.is_model else []
    if not declared:
        return
    faults += [
        f"there are weights of {name!r}, which is not in the config"
        for name in stored
        if name not in declared and name != MODEL_ITSELF
    ]
    both = set(declared) & set(stored)
    if [n for n in declared if n in both] != [n for n in stored if n in both]:
        faults.append("layer_names has a different order of layers than the config")


def _numbers(file, faults, notes):
    """Check that groups ``vars`` hold 0, 1, 2, ... without gaps."""
    if file.format not in (WEIGHTS, ZIP):
        return
    for group in file.root.walk():
        if not isinstance(group, Group) or not group.name.endswith("/vars"):
            continue
        keys = group.keys()
        numbers = {str(i) for i in range(len(keys))}
        if all(key.isdigit() for key in keys) and set(keys) != numbers:
            faults.append(
                f"[{group.name}] must hold 0, 1, 2, ..., holds {sorted(keys)}"
            )


def _arrays(file, faults, notes):
    """Check that every array can be read; note non-finite arrays."""
    for array in file.root.arrays():
        try:
            values = array.read()
        except SavingError as error:
            faults.append(_without_path(error))
            continue
        if kind_of(values.dtype) in "fc" and not np.isfinite(values).all():
            count = values.size - np.count_nonzero(np.isfinite(values))
            notes.append(
                f"[{array.name}] {count} of {values.size} values are not finite"
            )


def _unused(file, faults, notes):
    """Note arrays below ``model_weights`` that belong to no layer."""
    if not (file.by_layer and file.is_model):
        return
    used = {array.name for layer in stored_layers(file) for array in layer.arrays}
    names = [array.name for array in file.weights.arrays()]
    notes += [
        f"[{name}] no layer uses this array" for name in names if name not in used
    ]
