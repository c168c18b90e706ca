"""`tw.compat`: conversion between text and bytes, as in ``tf.compat``, and `tw.compat.v1`."""

import numbers

import numpy as np

from tapewright.core.names.lazy_import import lazy_imports as _lazy_imports

__all__ = [
    "as_bytes",
    "as_str",
    "as_str_any",
    "as_text",
    "bytes_or_text_types",
    "complex_types",
    "dimension_value",
    "integral_types",
    "path_to_str",
    "real_types",
    "v1",
]

__path__: list[str] = []  # a package, below which `v1` is imported
with _lazy_imports(globals()):
    from . import compat_v1 as v1

bytes_or_text_types = (bytes, str)
complex_types = (numbers.Complex, np.number)
integral_types = (numbers.Integral, np.integer)
real_types = (numbers.Real, np.integer, np.floating)


def as_bytes(bytes_or_text: bytes | bytearray | str, encoding: str = "utf-8") -> bytes:
    """Encode text as bytes; bytes are returned unchanged.

    Args:
        bytes_or_text: Text or bytes.
        encoding: Encoding of the text.

    Example:
        >>> tw.compat.as_bytes("JFIF"), tw.compat.as_bytes(b"JFIF")
        (b'JFIF', b'JFIF')
    """
    if isinstance(bytes_or_text, bytes | bytearray):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    raise TypeError(f"as_bytes: expected bytes or a str, got {bytes_or_text!r}")


def as_text(bytes_or_text: bytes | str, encoding: str = "utf-8") -> str:
    """Decode bytes as text; text is returned unchanged.

    Args:
        bytes_or_text: Text or bytes.
        encoding: Encoding of the bytes.

    Example:
        >>> tw.compat.as_str(b"JFIF"), tw.compat.as_str("JFIF")
        ('JFIF', 'JFIF')
    """
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    raise TypeError(f"as_text: expected bytes or a str, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value: object, encoding: str = "utf-8") -> str:
    """Convert anything to text: bytes are decoded, other values converted by ``str``.

    Args:
        value: Value to convert.
        encoding: Encoding of bytes.

    Example:
        >>> tw.compat.as_str_any(b"JFIF"), tw.compat.as_str_any(7)
        ('JFIF', '7')
    """
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)


def path_to_str(path: object) -> object:
    """Convert a path to text; other values are returned unchanged.

    Args:
        path: Path object, or any other value.

    Example:
        >>> from pathlib import PurePosixPath
        >>> tw.compat.path_to_str(PurePosixPath("data/image.jpg"))
        'data/image.jpg'
    """
    return as_str_any(path.__fspath__()) if hasattr(path, "__fspath__") else path


def dimension_value(dimension: int | None) -> int | None:
    """Return a size of a `TensorShape` unchanged: it is already an int or None.

    Args:
        dimension: Size of an axis.

    Example:
        >>> tw.compat.dimension_value(tw.zeros([2, 3]).shape[-1])
        3
    """
    return dimension
