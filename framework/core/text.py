"""Arrays of strings: NumPy arrays of objects, each of them ``bytes``, as in TensorFlow.

They lie in host memory, hold bytes of any length, NUL and text that is no UTF-8 included,
and share NumPy's functions that move entries. Only ops that move data, or say that they
take the kind "O", accept them; see ``kinds`` in `primitive`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .typing import Array, Shape

__all__ = [
    "as_text",
    "is_text",
    "make_text",
    "row",
    "text_is_used",
    "to_bytes",
    "to_text",
    "use_text",
    "when_text_is_used",
    "zeros",
]

_used = False
_when_used: list[Callable[[], None]] = []
_ENCODING = "utf-8", "surrogateescape"  # as os.fsencode on most systems


def is_text(dtype: np.dtype[Any]) -> bool:
    """Return whether a NumPy dtype is that of strings."""
    return dtype.char == "O"


def to_bytes(text: str | bytes) -> bytes:
    """The bytes of a string; text is encoded in UTF-8, names of files as they are on disk."""
    return bytes(text) if isinstance(text, bytes) else text.encode(*_ENCODING)


def to_text(entry: bytes) -> str:
    """The text that `to_bytes` gives these bytes for, whatever they are."""
    return entry.decode(*_ENCODING)


def make_text(entries: list[bytes], shape: Shape) -> Array:
    """An array of strings, from its entries in C order.

    Raises: ``ValueError`` for another number of entries.
    """
    use_text()
    if len(entries) != math.prod(shape):
        raise ValueError(f"{len(entries)} strings do not fit into shape {shape}")
    array = np.empty(shape, object)
    array.reshape(-1)[:] = entries
    return array


def row(array: Any, index: int) -> Any:
    """``array[index]``, an array of rank 0 for a list of strings."""
    entry = array[index]
    return make_text([entry], ()) if type(entry) is bytes else entry


def zeros(xp: Any, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """An array of zeros, or of empty strings, for the array module ``xp``."""
    if not is_text(dtype):
        return xp.zeros(shape, dtype)
    return make_text([b""] * math.prod(shape), shape)


def as_text(array: Any) -> Array:
    """An array of NumPy's strings, bytes or objects as an array of strings.

    Raises: ``TypeError`` if an object is neither text nor bytes.
    """
    entries = array.ravel().tolist()
    for entry in entries:
        if not isinstance(entry, str | bytes):
            raise TypeError(f"{type(entry).__name__} is no string")
    return make_text([to_bytes(entry) for entry in entries], array.shape)


def text_is_used() -> bool:
    """Return whether an array of strings was made: else no kernel looks for them."""
    return _used


def when_text_is_used(hook: Callable[[], None]) -> Callable[[], None]:
    """Call ``hook()`` when the first array of strings is made; return ``hook``."""
    _when_used.append(hook)
    return hook


def use_text() -> None:
    """Note that there are arrays of strings, or will be."""
    global _used
    if not _used:
        _used = True
        for hook in _when_used:
            hook()
