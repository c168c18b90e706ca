"""`save_model` and `load_model`: a model in a file, with weights and training state.

The ending of the path, ``.keras`` or ``.h5``, chooses the format; loading looks at the file
itself. Files of Keras are read, and Keras reads ours.
"""

import os
from typing import Any

from tapewright.core.errors import SavingError
from tapewright.core.interpreters import check_not_traced
from tapewright.core.variable import writing
from tapewright.serialization.registry import custom_object_scope
from tapewright.storage.reader import kind_of

from .h5_model import load_h5, save_h5
from .model_state import state_of

__all__ = ["load_model", "save_model"]

H5_SUFFIXES = (".h5", ".hdf5")


def save_model(
    model: Any,
    filepath: str | os.PathLike,
    overwrite: bool = True,
    zipped: bool | None = None,
    **kwargs: Any,
) -> None:
    """Write a model to ``name.keras`` or ``name.h5``: config, weights, optimizer.

    The file is written as a whole or not at all, and has the values of one moment: training
    in another thread waits. Args: ``include_optimizer=False`` leaves out the compile config
    and the state of the optimizer.

    Raises: ``ValueError`` for another ending or argument; ``NotImplementedError`` if a
    layer has no config; `SavingError` if the file cannot be written, a ``FileExistsError``
    if there is one and ``overwrite`` is False.
    """
    path = os.fspath(filepath)
    include_optimizer = kwargs.pop("include_optimizer", True)
    kwargs.pop("save_format", None)  # the ending tells
    if kwargs:
        raise ValueError(
            f"save_model: the arguments {', '.join(map(repr, kwargs))} are not supported"
        )
    if zipped is False:
        raise ValueError("save_model: zipped must be True (folders are not written)")
    check_not_traced(path)
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


def load_model(
    filepath: str | os.PathLike,
    custom_objects: dict[str, Any] | None = None,
    compile: bool = True,
    safe_mode: bool = True,
) -> Any:
    """Return the model in a file that `save_model`, or Keras, wrote, with its weights.

    Args: ``custom_objects``: classes and functions by the names in the file, if they are
    not registered, see `register_keras_serializable`; ``compile``: compile it as it was,
    and restore the state of the optimizer. ``safe_mode`` is that of Keras, and always on:
    no code from a file is ever run.

    Raises: `SavingError` that names the fault of the file, and its place.
    """
    path = os.fspath(filepath)
    with custom_object_scope(custom_objects):
        kind = kind_of(path)
        if kind == "zip":
            from .keras_zip import load_zip

            return load_zip(path, compile)
        if kind == "json":
            raise SavingError(path, "is a JSON file, not a model")
        return load_h5(path, compile)
