"""Weights by name, in files of safetensors: ``layers/dense/kernel``.

The name of a weight is the path of its layer, by attribute as in `weights_by_path`, and
its own name. Thus it follows the objects of the model, not the names of layers, which
count the layers of the process. Weights without a name are ``variable``, ``variable_1``,
...
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tapewright.core.errors import SavingError
from tapewright.core.state.own_variables import keeps_plainly
from tapewright.storage.safetensors_file import (
    INDEX_SUFFIX,
    SUFFIX,
    load_safetensors,
    save_safetensors,
)

from .torch_names import check_rule, few, torch_sources
from .weights_by_path import LayerPath, layer_paths


def is_safetensors(path: str) -> bool:
    """Return True if a path names a safetensors file or an index of several."""
    return path.endswith((SUFFIX, INDEX_SUFFIX))


class NamedWeight(NamedTuple):
    """Weight of a layer: its name in a file, and its array.

    ``variable`` is None for an array that the layer loads and saves by hooks. ``layers``
    is the layer with those around it, outermost first.
    """

    name: str
    array: Any
    variable: Any
    layers: list[LayerPath]

    @property
    def entry(self):
        return self.layers[-1]

    @property
    def own_name(self):
        """The name relative to the layer."""
        return self.name[len(self.entry.path) :].removeprefix("/")

    @property
    def shape(self):
        return tuple(self.array.shape)


def named_weights(model):
    """Return the `NamedWeight`s of a model; a variable of several layers occurs once."""
    entries, weights, seen = {}, {}, set()
    for entry in layer_paths(model, by_attribute=True):
        entries[entry.path] = entry
        layers = [entries[path] for path in _outer(entry.path) if path in entries]
        if keeps_plainly(entry.layer):
            own = [v for v in entry.variables if id(v) not in seen]
            seen |= {id(v) for v in own}
            values = [(_own_name(v), v._array, v) for v in own]
        else:
            store = {}
            entry.layer.save_own_variables(store)
            values = [(key, np.asarray(each), None) for key, each in store.items()]
        for own_name, array, variable in values:
            start = f"{entry.path}/{own_name}" if entry.path else own_name
            name, count = start, 0
            while name in weights:
                count += 1
                name = f"{start}_{count}"
            weights[name] = NamedWeight(name, array, variable, layers)
    return list(weights.values())


def _outer(path):
    """Return "" and all starts of a path, with the path itself."""
    parts = path.split("/") if path else []
    return ["/".join(parts[:i]) for i in range(len(parts) + 1)]


def _own_name(variable):
    """Return the name of a variable, without the number of one that has no name."""
    return re.sub(r"^variable_\d+$", "variable", variable.name)


def write_names(path, model, overwrite, max_shard_size):
    """Write the weights of a model to a safetensors file, or several."""
    arrays = {weight.name: weight.array for weight in named_weights(model)}
    save_safetensors(path, arrays, {"format": "np"}, overwrite, max_shard_size)


# ------------------------------------------------------------------------------- reading


def read_names(path, model, assignment, skipped=(), name_map=None, transpose=None):
    """Add the arrays of a safetensors file for a model to a `WeightAssignment`.

    ``skipped``: layers to skip, with all nested layers. For ``name_map`` and
    ``transpose`` see `load_weights`.
    """
    arrays, weights = load_safetensors(path), named_weights(model)
    renamed = None if name_map is None else _renaming(name_map, weights)
    if transpose is None:
        sources = _sources(weights, renamed)
    else:
        sources = torch_sources(path, model, weights, arrays, renamed)
    left = {id(e.layer) for layer in skipped for e in layer_paths(layer)}
    missing, stores = {}, {}
    for weight in weights:
        if weight.name not in sources or id(weight.entry.layer) in left:
            continue
        keys, rule = sources[weight.name]
        check_rule(weight, rule)
        absent = [key for key in keys if key not in arrays]
        missing |= dict.fromkeys(absent, weight.name)
        stored = (
            None if absent else _stored(path, weight, keys, rule, arrays, assignment)
        )
        if stored is None:
            continue
        if weight.variable is not None:
            assignment.add(weight.variable, stored)
        else:
            store = stores.setdefault(weight.entry.path, (weight.entry, {}))[1]
            store[weight.own_name] = stored.read()
    for entry, store in stores.values():
        assignment.add_hook(entry.layer.load_own_variables, store, entry.path)
    used = {key for keys, _ in sources.values() for key in keys}
    unexpected = [key for key in arrays if key not in used]
    if transpose is not None:  # without the count of steps, which we do not keep
        unexpected = [k for k in unexpected if not k.endswith("num_batches_tracked")]
    _add_differences(path, missing, unexpected, assignment)


def _sources(weights, renamed):
    """Return a dict from names to keys, like `torch_sources`, without rules."""
    keys = {w.name: renamed(w.name) if renamed else w.name for w in weights}
    return {name: ((key,), None) for name, key in keys.items() if key is not None}


def _stored(path, weight, keys, rule, arrays, assignment):
    """Return the array for a weight, or add a problem and return None."""
    values = [arrays[key] for key in keys]
    if rule is None:
        return _StoredArray(path, keys[0], values[0])
    expected = tuple(rule.shape(weight.shape))
    for key, array in zip(keys, values):
        if array.shape != expected:
            assignment.add_problem(
                key,
                f"has shape {array.shape}, weight '{weight.name}' {weight.shape} needs "
                f"{expected} in PyTorch's layout",
            )
            return None
    return _StoredArray(path, keys[0], rule.convert(weight.shape, *values))


class _StoredArray:
    """Array of a file, as `WeightAssignment` reads it."""

    def __init__(self, path, location, array):
        self.path, self.location, self._array = path, location, array
        self.shape, self.dtype = array.shape, array.dtype

    def read(self):
        return np.array(self._array, order="C")

    def fail(self, reason):
        raise SavingError(self.path, reason, self.location)


def _add_differences(path, missing, unexpected, assignment):
    """Add problems for keys without counterpart, or raise an error that names all."""
    for key, name in missing.items():
        assignment.add_problem(key, f"is missing, for weight '{name}'")
    for key in unexpected:
        assignment.add_problem(key, "belongs to no weight of the model")
    if (missing or unexpected) and not assignment.skip_mismatch:
        pairs = [f"{key!r} (for '{name}')" for key, name in missing.items()]
        parts = [("lacks", pairs), ("has unexpected", list(map(repr, unexpected)))]
        reason = "; ".join(
            [f"{verb} {', '.join(few(items))}" for verb, items in parts if items]
        )
        raise SavingError(path, reason)


def _renaming(name_map, weights):
    """Return a ``name_map`` as a function from a name to a key or None."""
    if isinstance(name_map, Mapping):
        names = {weight.name for weight in weights}
        unknown = [name for name in name_map if name not in names]
        if unknown:
            raise ValueError(
                f"load_weights: name_map has {unknown[0]!r}, which is no weight of the "
                f"model; it has {', '.join(few(sorted(names)))}"
            )

        def rename(name):
            return name_map.get(name, name)

    elif callable(name_map):
        rename = name_map
    else:
        pairs = [(re.compile(pattern), new) for pattern, new in name_map]

        def rename(name):
            for pattern, new in pairs:
                name = pattern.sub(new, name)
            return name

    def checked(name):
        key = rename(name)
        if not isinstance(key, (str, type(None))):
            raise TypeError(
                f"load_weights: name_map must return a str or None, got {key!r} for "
                f"{name!r}"
            )
        return key

    return checked
