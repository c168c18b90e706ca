"""`KerasFileEditor`: inspect and edit the weights of a file, as a dict."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tapewright.core.typing import Array as NumPyArray
from tapewright.core.typing import TensorLike
from tapewright.serialization.constructor_call import constructor_call
from tapewright.storage.reader import Array
from tapewright.storage.writer import writing

from ..callbacks.console import say
from .model_file import OWN_GROUP, ZIP, opened_model_file
from .weights.weights_by_path import layer_paths

_SUFFIX = ".weights.h5"


class KerasFileEditor:
    """Inspect and edit the weights of a ``.keras`` or ``.weights.h5`` file.

    ``weights_dict`` has a dict for each object, such as a layer, with its arrays ("0",
    "1", ...) and the dicts of nested objects; it may be modified directly as well.
    ``object_metadata`` has the names of objects by path; ``metadata`` and ``config``
    are the metadata and the model config of a ``.keras`` file. No model is created, and
    no code is run. Objects without arrays are omitted, and so is the data that
    tapewright adds to files besides weights.

    Args:
        filepath: Path of the file, written by Keras or tapewright.

    Raises:
        ValueError: If the file has another suffix.
        SavingError: If the file cannot be read.

    Example:
        >>> import os, tempfile
        >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
        >>> path = os.path.join(tempfile.mkdtemp(), "model.weights.h5")
        >>> model.save_weights(path)
        >>> editor = keras.saving.KerasFileEditor(path)  # doctest: +ELLIPSIS
        Keras model file '...model.weights.h5'
        >>> editor.rename_object("dense", "dense_1")
        >>> editor.weights_dict["layers"]["dense_1"]["0"].shape
        (3, 2)
    """

    def __init__(self, filepath: str | os.PathLike[str]):
        self.filepath: str = os.fspath(filepath)
        if not self.filepath.endswith((".keras", _SUFFIX)):
            raise ValueError(
                "KerasFileEditor: filepath must end in .keras or .weights.h5, got "
                f"{self.filepath!r}"
            )
        self.metadata: dict[str, Any] | None = None
        self.config: dict[str, Any] | None = None
        self.object_metadata: dict[str, dict[str, Any]] = {}
        with opened_model_file(self.filepath) as file:
            if file.by_layer:
                file.root.fail("holds weights in the layout of Keras 2, by layer")
            if file.format == ZIP:
                self.metadata, self.config = file.written_by, file.config
            self.weights_dict: dict[str, Any] = self._read(file.root, "")
        say(f"Keras model file '{self.filepath}'")
        if self.metadata:
            version, date = [
                self.metadata.get(k) for k in ("keras_version", "date_saved")
            ]
            say(f"Saved with Keras {version} - date: {date}")

    __repr__ = constructor_call

    def _read(self, group, path):
        content = {}
        own = group.find_group("vars") if "vars" in group else None
        if own is not None:
            if own.has("name"):
                self.object_metadata[path] = {"name": own.text("name")}
            content |= {k: own.array(k).read() for k in own.keys() if k in own}
        for key in group.keys():
            item = (
                None
                if key in ("vars", *(() if path else (OWN_GROUP,)))
                else group.find(key)
            )
            if isinstance(item, Array):
                content[key] = item.read()
            elif item is not None:
                inner = self._read(item, f"{path}/{key}".strip("/"))
                content |= {key: inner} if inner else {}
        return content

    # --- inspecting

    def summary(self) -> None:
        """Print the tree of objects, with the shapes and dtypes of their weights."""
        say("Weights structure")
        for line in self._lines(self.weights_dict, "", "  "):
            say(line)

    def _lines(self, weights, path, indent):
        for i, (key, value) in enumerate(weights.items()):
            is_last = i == len(weights) - 1
            head = indent + ("└─ " if is_last else "├─ ") + key
            if not isinstance(value, dict):
                yield f"{head}: shape={np.shape(value)}, dtype={np.asarray(value).dtype}"
                continue
            inner = f"{path}/{key}".strip("/")
            name = self.object_metadata.get(inner, {}).get("name")
            yield head if name is None else f"{head} ('{name}')"
            yield from self._lines(
                value, inner, indent + ("    " if is_last else "│   ")
            )

    def compare(self, reference_model: Any) -> dict[str, Any]:
        """Print the differences between the weights and a model, and return their counts.

        Args:
            reference_model: Model to compare with.

        Returns:
            ``{"status": "success" or "error", "error_count", "match_count"}``. Each
            weight that exists in both counts once, and so does each object or weight
            that is missing in one of them.
        """
        errors, matches = [], []
        _compare(self.weights_dict, _specs(reference_model), "", errors, matches)
        for line in errors:
            say(line)
        good = "saved file is compatible with the reference model"
        say(
            f"Comparison successful: {good}"
            if not errors
            else f"Found {len(errors)} errors"
        )
        return {
            "status": "error" if errors else "success",
            "error_count": len(errors),
            "match_count": len(matches),
        }

    # --- changing

    def rename_object(self, object_name: str, new_name: str) -> None:
        """Rename an object.

        Args:
            object_name: Name or path of the object.
            new_name: New name, without "/".

        Raises:
            ValueError: If no object or several objects have the name, or ``new_name``
                contains "/" or exists already.
        """
        if "/" in new_name:
            raise ValueError(
                f"rename_object: new_name must be a name without '/', got {new_name!r}"
            )
        parent, name, path = self._find("rename_object", object_name)
        if new_name in parent:
            raise ValueError(
                f"rename_object: {new_name!r} exists already next to {path!r}"
            )
        entries = {new_name if k == name else k: v for k, v in parent.items()}
        parent.clear()
        parent.update(entries)
        self._forget(path)

    def delete_object(self, object_name: str) -> None:
        """Delete an object, with all nested objects.

        Args:
            object_name: Name or path of the object.

        Raises:
            ValueError: If no object or several objects have the name.
        """
        parent, name, path = self._find("delete_object", object_name)
        del parent[name]
        self._forget(path)

    def add_object(self, object_path: str, weights: dict[str, TensorLike]) -> None:
        """Add an object with weights.

        Args:
            object_path: Path of the new object, below an existing one.
            weights: Dict of arrays by name: ``{"0": kernel, "1": bias}``.

        Raises:
            ValueError: If ``weights`` is not a dict, or the parent of the path does not
                exist.
        """
        values = _arrays("add_object", weights)
        parent, _, name = object_path.rpartition("/")
        holder = self._at(parent)
        if holder is None:
            raise ValueError(f"add_object: there is no object {parent!r}")
        holder[name] = values

    def delete_weight(self, object_name: str, weight_name: str) -> None:
        """Delete a weight of an object.

        Args:
            object_name: Name or path of the object.
            weight_name: Name of the weight, such as "0".

        Raises:
            ValueError: If the object or the weight does not exist.
        """
        weights = self._object("delete_weight", object_name)
        if weight_name not in weights:
            raise ValueError(
                f"delete_weight: {object_name!r} has no weight {weight_name!r}, it has "
                f"{list(weights)}"
            )
        del weights[weight_name]

    def add_weights(self, object_name: str, weights: dict[str, TensorLike]) -> None:
        """Add weights to an object, or replace them.

        Args:
            object_name: Name or path of the object.
            weights: Dict of arrays by name: ``{"0": kernel, "1": bias}``.

        Raises:
            ValueError: If ``weights`` is not a dict, or the object does not exist.
        """
        values = _arrays("add_weights", weights)
        self._object("add_weights", object_name).update(values)

    def _object(self, who, name):
        parent, key, path = self._find(who, name)
        if not isinstance(parent[key], dict):
            raise ValueError(f"{who}: {path!r} is a weight, not an object")
        return parent[key]

    def _find(self, who, name):
        """Return the dict that contains an object, its key in it, and its path."""
        if "/" in name:
            parent, _, key = name.rpartition("/")
            holder = self._at(parent)
            matches = [(holder, key, name)] if key in (holder or ()) else []
        else:
            matches = list(_locations(self.weights_dict, name, ""))
        if len(matches) == 1:
            return matches[0]
        if not matches:
            raise ValueError(
                f"{who}: there is no object {name!r} in the file; summary() lists all"
            )
        paths = ", ".join([path for _, _, path in matches])
        raise ValueError(
            f"{who}: {name!r} matches several objects; pass one of the paths {paths}"
        )

    def _at(self, path):
        """Return the dict at a path, or None."""
        weights = self.weights_dict
        for key in path.split("/") if path else ():
            weights = weights.get(key) if isinstance(weights, dict) else None
        return weights if isinstance(weights, dict) else None

    def _forget(self, path):
        """Remove the names of an object and of nested objects."""
        for each in [*self.object_metadata]:
            if each == path or each.startswith(f"{path}/"):
                del self.object_metadata[each]

    # --- saving

    def save(self, filepath: str | os.PathLike[str]) -> None:
        """Write the weights to a ``.weights.h5`` file, which `Model.load_weights` accepts.

        Args:
            filepath: Path of the file, with the suffix ``.weights.h5``.

        Raises:
            ValueError: If the file has another suffix.
            SavingError: If the file cannot be written.
        """
        path = os.fspath(filepath)
        if not path.endswith(_SUFFIX):
            raise ValueError(f"save: filepath must end in .weights.h5, got {path!r}")
        with writing(path) as root:
            self._write(root, self.weights_dict, "")

    resave_weights = save

    def _write(self, root, weights, path):
        own = {k: v for k, v in weights.items() if not isinstance(v, dict)}
        if own:
            group = root.group(f"{path}/vars" if path else "vars")
            name = self.object_metadata.get(path, {}).get("name")
            if name is not None:
                group.text("name", name)
            for key, value in own.items():
                group.array(key, value)
        for key, value in weights.items():
            if isinstance(value, dict):
                self._write(root, value, f"{path}/{key}" if path else key)


def _arrays(who, weights) -> dict[str, NumPyArray]:
    if not isinstance(weights, dict):
        raise ValueError(
            f"{who}: weights must be a dict of names ('0', '1', ...) and arrays, got "
            f"{type(weights).__name__}"
        )
    return {str(name): np.asarray(value) for name, value in weights.items()}


def _locations(weights, name, path):
    """Return all locations of a name: the dict with it, the name, the path."""
    for key, value in weights.items():
        here = f"{path}/{key}" if path else key
        if isinstance(value, dict):
            yield from _locations(value, name, here)
        if key == name:
            yield weights, key, here


def _specs(model):
    """Return the shapes of all weights of a model, arranged as in a file."""
    specs = {}
    for entry in layer_paths(model):
        _put(specs, entry.path, entry.variables)
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None:
        _put(specs, "optimizer", optimizer.variables)
    return specs


def _put(specs, path, variables):
    for key in path.split("/") if path and variables else ():
        specs = specs.setdefault(key, {})
    specs |= {str(i): tuple(v.shape) for i, v in enumerate(variables)}


def _compare(saved, wanted, path, errors, matches):
    """Add a line for each difference to ``errors``, a path for each match to ``matches``."""
    for key in {**wanted, **saved}:
        here = f"{path}/{key}"
        for where, other, lacking in (
            ("reference model", "saved file", saved),
            ("saved file", "reference model", wanted),
        ):
            if key not in lacking:
                value = (wanted if lacking is saved else saved)[key]
                kind = "Object" if isinstance(value, dict) else "Weight"
                errors.append(
                    f"...{kind} {here} present in {where}, missing from {other}"
                )
        if key not in saved or key not in wanted:
            continue
        if isinstance(saved[key], dict) and isinstance(wanted[key], dict):
            _compare(saved[key], wanted[key], here, errors, matches)
        elif isinstance(saved[key], dict) or isinstance(wanted[key], dict):
            errors.append(
                f"...{here} is an object in one of the two, a weight in the other"
            )
        elif np.shape(saved[key]) != wanted[key]:
            errors.append(
                f"...Weight shape mismatch for {here}: reference model {wanted[key]}, saved "
                f"file {np.shape(saved[key])}"
            )
        else:
            matches.append(here)
