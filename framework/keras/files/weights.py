"""`save_weights` and `load_weights`: a model's weights in a file, without the model.

Written is Keras 3's ``.weights.h5``, see `weight_tree`; read are all files of Keras, whole
models too, whatever they are named.
"""

import os
import warnings
from contextlib import contextmanager

from tapewright.core.interpreters import check_not_traced
from tapewright.core.variable import writing as held
from tapewright.storage.reader import kind_of, opened
from tapewright.storage.writer import writing

from .legacy_h5 import holds_layers, layers_group, read_layers, read_layers_by_name
from .model_state import state_of
from .optimizer_state import (
    StateMismatch,
    optimizer_group,
    pairs_in_order,
    write_optimizer,
)
from .shards import opened_shards
from .weight_assignment import WeightAssignment
from .weight_tree import WEIGHTS_MEMBER, read_tree, write_tree

__all__ = ["load_weights", "save_weights"]

SUFFIX = ".weights.h5"


def save_weights(model, filepath, overwrite=True, max_shard_size=None):
    """Write the weights of a model, and the state of its optimizer if it is compiled.

    The file is there as a whole or not at all. Raises: ``ValueError`` for another ending
    than ``.weights.h5`` or a model without weights yet; `SavingError` if the file cannot
    be written, a ``FileExistsError`` if there is one and ``overwrite`` is False.
    """
    path = os.fspath(filepath)
    if max_shard_size is not None:
        raise ValueError(
            "save_weights: max_shard_size must be None (files are not sharded), got "
            f"{max_shard_size!r}"
        )
    if not path.endswith(SUFFIX):
        raise ValueError(f"save_weights: filepath must end in {SUFFIX}, got {path!r}")
    _need_weights(model, "save_weights")
    check_not_traced(path)
    with held(state_of(model)), writing(path, overwrite) as root:
        write_tree(root, model)
        if getattr(model, "optimizer", None) is not None:
            write_optimizer(root.group("optimizer"), model.optimizer)


def load_weights(
    model, filepath, skip_mismatch=False, by_name=False, objects_to_skip=None
):
    """Assign the weights of a file, ours or Keras', to a model of the same layers.

    Args: ``skip_mismatch``: what does not fit is left out, and a warning lists it;
    ``by_name``, for files of the older ``.h5`` kind: layers are found by their names, and
    those that have no namesake are left out; ``objects_to_skip``: layers to leave alone.
    Where the optimizer has been in use, its state is loaded, too.

    Raises: `SavingError` that tells what is missing or of another shape or dtype, or what
    is wrong with the file; then nothing was assigned.
    """
    path = os.fspath(filepath)
    _need_weights(model, "load_weights")
    assignment = WeightAssignment(path, skip_mismatch)
    with _opened(path) as root:
        if holds_layers(root):
            if objects_to_skip:
                raise ValueError(
                    f"load_weights: {path} has weights by layer; objects_to_skip is for "
                    f"{SUFFIX} files"
                )
            read = read_layers_by_name if by_name else read_layers
            read(layers_group(root), model, assignment)
        else:
            if by_name:
                raise ValueError(
                    f"load_weights: {path} has weights by path; by_name=True needs "
                    "an older .h5 file, with weights by layer"
                )
            read_tree(root, model, assignment, objects_to_skip or ())
            _note_optimizer(root, model, assignment)
        assignment.apply(model.weights)


def _need_weights(model, who):
    if not model.built and not model.weights:
        raise ValueError(
            f"{who}: model '{model.name}' has no weights yet; call it, or "
            "build(input_shape)"
        )


@contextmanager
def _opened(path):
    """The root group of the weights in a file of any kind."""
    kind = kind_of(path)
    if kind == "zip":
        from tapewright.storage.zips import opened_zip

        with opened_zip(path) as zipped, zipped.hdf5(WEIGHTS_MEMBER) as root:
            yield root
    elif kind == "json":
        with opened_shards(path) as root:
            yield root
    else:
        with opened(path) as root:
            yield root


def _note_optimizer(root, model, assignment):
    """Add the state of an optimizer that has as much of it as the file.

    One that has none yet, as it was not used, keeps its learning rate.
    """
    optimizer = getattr(model, "optimizer", None)
    group = None if optimizer is None else optimizer_group(root, optimizer)
    if group is None:
        return
    arrays = group.numbered()
    if not optimizer.built and len(arrays) > len(optimizer.variables):
        return
    try:
        pairs = pairs_in_order(optimizer, arrays)
    except StateMismatch as error:
        warnings.warn(
            f"load_weights: {root.path}: the state of the optimizer "
            f"'{optimizer.name}' is not restored, because the file does not fit: "
            f"{error}",
            stacklevel=4,
        )
        return
    for variable, array in pairs:
        assignment.add(variable, array)
