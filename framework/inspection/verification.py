"""Verify that a file is whole and sound, reading every byte of it.

`verify` goes on after the first fault where it can, and tells all of them. Where nothing
is wrong so far, and no class of the user's is needed, it loads the file, as the last proof.
"""

import itertools
import os
from collections import Counter

import numpy as np

from tapewright.core.errors import SavingError
from tapewright.formats.checkpoints.checkpoint_file import read_content
from tapewright.formats.contents import CHECKPOINT, SAVED_MODEL, optimizers_of
from tapewright.formats.saved_model import module_file as saved_model
from tapewright.keras.files.contents import (
    ITSELF,
    layer_name,
    legacy_groups,
    model_layers,
    needed_classes,
)
from tapewright.keras.files.limits import check_size
from tapewright.keras.files.model_file import (
    HDF5_MODEL,
    LAYER_WEIGHTS,
    WEIGHTS,
    ZIP,
    opened_model_file,
)
from tapewright.keras.files.save_and_load import load_model

__all__ = ["verify"]

MAX_FAULTS = 100


def verify(path):
    """``(faults, notes)`` about a file: lists of lines; no fault means that it is sound.

    A fault is what loading would refuse, or get wrong. A note is what one may want to
    know: no seal, values that are not finite, arrays that nothing refers to.
    """
    path = os.fspath(path)
    faults, notes = [], []
    try:
        with opened_model_file(path) as found:
            kind = found.format
            more = optimizers_of(found.root) if kind == SAVED_MODEL else []
            classes = needed_classes(found, *more)
            _check(found, faults, notes)
        if classes:
            needed = ", ".join(sorted(classes))
            notes.append(f"not loaded, which needs what is registered as {needed}")
        elif not faults:
            _load(kind, path)
    except SavingError as error:
        faults.append(_without_path(error))
    return list(dict.fromkeys(faults))[:MAX_FAULTS], notes


def _load(kind, path):
    """Loads what can be loaded by itself; no code of the file is ever run."""
    if kind in (HDF5_MODEL, ZIP):
        load_model(path, compile=False)
    elif kind == SAVED_MODEL:
        saved_model.load(path)
    elif kind == CHECKPOINT:
        read_content(path)


def _without_path(error):
    inside = f"[{error.dataset}] " if error.dataset else ""
    return inside + error.reason


def _check(found, faults, notes):
    if not found.root.sealed:
        notes.append("not sealed: nothing tells whether it is as it was written")
    for check in (_config, _names, _numbers, _arrays, _used):
        try:
            check(found, faults, notes)
        except SavingError as error:
            faults.append(_without_path(error))


def _config(found, faults, notes):
    """The config describes a model whose layers have a class and a name each."""
    if found.config is None:
        return
    check_size(found.config, found.root.path)
    if not isinstance(found.config.get("class_name"), str):
        faults.append("the model's config has no class_name")
    if not isinstance(found.config.get("config"), (dict, list)):
        faults.append("the model's config has no config inside")
    names = []
    for each in model_layers(found.config):
        if not isinstance(each.get("class_name"), str):
            faults.append(f"a layer without class_name: {str(each)[:80]}")
        names.append(layer_name(each))
    twice = _repeated(name for name in names if isinstance(name, str))
    faults += [f"two layers have the name {name!r}" for name in twice]


def _repeated(names):
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _names(found, faults, notes):
    """The weights stand in the order of the config's layers."""
    if found.format not in (HDF5_MODEL, LAYER_WEIGHTS):
        return
    stored = [name for name, *_ in legacy_groups(found.weights)]
    faults += [f"layer_names has {name!r} twice" for name in _repeated(stored)]
    if found.config is None:
        return
    names = (layer_name(each) for each in model_layers(found.config))
    declared = [name for name in names if isinstance(name, str)]
    if not declared:
        return
    known = set(declared)
    unknown = [name for name in stored if name not in known and name != ITSELF]
    faults += [f"there are weights of {name!r}, which the config lacks"
               for name in unknown]  # fmt: skip
    both = known & set(stored)
    if [n for n in declared if n in both] != [n for n in stored if n in both]:
        faults.append("layer_names has the layers in another order than the config")


def _arrays(found, faults, notes):
    """Every array can be read, and is finite."""
    for array in found.root.arrays():
        try:
            values = array.read()
        except SavingError as error:
            faults.append(_without_path(error))
            continue
        if values.dtype.kind in "fc" and not np.isfinite(values).all():
            count = values.size - np.count_nonzero(np.isfinite(values))
            notes.append(
                f"[{array.name}] {count} of {values.size} values are not finite"
            )


def _used(found, faults, notes):
    """Every array below ``model_weights`` is that of a layer."""
    if found.format != HDF5_MODEL:
        return
    groups = legacy_groups(found.weights)
    used = {array.name for *_, arrays in groups for _, array in arrays}
    names = [array.name for array in found.weights.arrays()]
    notes += [f"[{name}] no layer has this array" for name in names if name not in used]


def _numbers(found, faults, notes):
    """Groups ``vars`` hold 0, 1, 2, ... without a gap."""
    if found.format not in (WEIGHTS, ZIP):
        return
    arrays = (array.name for array in found.root.arrays())
    for place, names in itertools.groupby(arrays, lambda name: name.rpartition("/")[0]):
        keys = [name.rpartition("/")[2] for name in names]
        if place.endswith("/vars") and all(key.isdigit() for key in keys):
            if {int(key) for key in keys} != set(range(len(keys))):
                faults.append(f"[{place}] must hold 0, 1, 2, ..., holds {sorted(keys)}")
