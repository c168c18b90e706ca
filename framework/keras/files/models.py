"""`save_model` and `load_model`: a model in a file, with weights and how it is trained.

Saving goes by the ending of the path, ``.keras`` or ``.h5``; loading by what the file is.
Files of Keras are read, and Keras reads ours.
"""

import os

from tapewright.core.errors import SavingError
from tapewright.core.variable import writing
from tapewright.serialization.registry import custom_object_scope
from tapewright.storage.file_kinds import kind_of

from .h5_model import load_h5, save_h5
from .model_state import state_of

__all__ = ["load_model", "save_model"]

H5_SUFFIXES = (".h5", ".hdf5")


def save_model(model, filepath, overwrite=True, zipped=None, **kwargs):
    """Writes a model to ``name.keras`` or ``name.h5``: config, weights, optimizer.

    The file is there as a whole or not at all, and has the values of one moment: training
    in another thread waits. Args: ``include_optimizer=False`` leaves out how it is trained.

    Raises: ``ValueError`` for another ending or argument; ``NotImplementedError`` if a
    layer does not tell its config; `SavingError` if the file cannot be written, a
    ``FileExistsError`` if there is one and ``overwrite`` is False.
    """
    path = os.fspath(filepath)
    include_optimizer = kwargs.pop("include_optimizer", True)
    kwargs.pop("save_format", None)  # the ending tells
    if kwargs:
        raise ValueError(
            f"save_model: the arguments {', '.join(map(repr, kwargs))} are not supported"
        )
    if zipped is False:
        raise ValueError("save_model: zipped must be True, folders are not written")
    with writing(state_of(model)):
        if path.endswith(".keras"):
            from .keras_zip import save_zip

            save_zip(model, path, overwrite, include_optimizer)
        elif path.endswith(H5_SUFFIXES):
            save_h5(model, path, overwrite, include_optimizer)
        else:
            raise ValueError(
                "save_model: filepath must end in .keras, or in .h5 for HDF5, got "
                f"{path!r}"
            )


def load_model(filepath, custom_objects=None, compile=True, safe_mode=True):
    """The model in a file that `save_model` wrote, or Keras, with its weights.

    Args: ``custom_objects``: classes and functions by the names in the file, where they
    are not registered, see `register_keras_serializable`; ``compile``: whether it is
    compiled as it was, and the state of the optimizer restored. ``safe_mode`` is Keras',
    and always on: no code from a file is ever run.

    Raises: `SavingError` that tells what is wrong with the file, and where.
    """
    path = os.fspath(filepath)
    with custom_object_scope(custom_objects or {}):
        kind = kind_of(path)
        if kind == "zip":
            from .keras_zip import load_zip

            return load_zip(path, compile)
        if kind == "json":
            raise SavingError(path, "is JSON, and holds no model")
        return load_h5(path, compile)
