"""Arrays of strings: NumPy arrays of objects, each a ``bytes``, as in TensorFlow.

They are in host memory, hold bytes of any length, including NUL and invalid UTF-8, and
share NumPy's functions that move entries. Only ops that move data, or that declare the
kind "O", accept them; see ``kinds`` in `primitive`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import hooks
from .typing import Array, Shape

_used = False
_ENCODING = "utf-8", "surrogateescape"  # as os.fsencode on most systems


def is_text(dtype: np.dtype[Any]) -> bool:
    """Return whether a NumPy dtype is the dtype of strings."""
    return dtype.char == "O"


def to_bytes(text: str | bytes) -> bytes:
    """Encode a string in UTF-8; file names keep their bytes on disk."""
    return bytes(text) if isinstance(text, bytes) else text.encode(*_ENCODING)


def to_text(entry: bytes) -> str:
    """Decode bytes to the text that `to_bytes` encodes to them, for any bytes."""
    return entry.decode(*_ENCODING)


def make_text(entries: list[bytes], shape: Shape) -> Array:
    """Return an array of strings from its entries in C order.

    Raises:
        ValueError: If the number of entries differs.
    """
    use_text()
    if len(entries) != math.prod(shape):
        raise ValueError(f"{len(entries)} strings do not fit into shape {shape}")
    array = np.empty(shape, object)
    array.reshape(-1)[:] = entries
    return array


def row(array: Any, index: int) -> Any:
    """Return ``array[index]``, an array of rank 0 for a list of strings."""
    entry = array[index]
    return make_text([entry], ()) if type(entry) is bytes else entry


def zeros(xp: Any, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Return an array of zeros, or of empty strings, for the array module ``xp``."""
    if not is_text(dtype):
        return xp.zeros(shape, dtype)
    return make_text([b""] * math.prod(shape), shape)


def as_text(array: Any) -> Array:
    """Convert an array of NumPy strings, bytes or objects to an array of strings.

    Raises:
        TypeError: If an object is neither text nor bytes.
    """
    entries = array.ravel().tolist()
    for entry in entries:
        if not isinstance(entry, str | bytes):
            raise TypeError(
                f"strings must be text or bytes, got {type(entry).__name__}"
            )
    return make_text([to_bytes(entry) for entry in entries], array.shape)


def text_is_used() -> bool:
    """Return whether an array of strings was created; otherwise kernels do not check."""
    return _used


def use_text() -> None:
    """Declare that arrays of strings exist or will be created."""
    global _used
    if not _used:
        _used = True
        hooks.text_is_used.call()
