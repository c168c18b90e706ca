"""Read the archives of CIFAR: pickles in a tar file, without running code from them.

These are Keras' archives, not the binary version, for which Keras has no checksum.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .idx import DataFileError


def _channels_last():
    return "channels_last"


# The order of the axes; `keras.datasets` puts the setting of `keras.config` here.
image_data_format: Callable[[], str] = _channels_last

LARGEST = 1 << 30  # bytes of an unpacked archive, five times those of CIFAR


def read_batches(
    path: str | os.PathLike, names: Sequence[str], label_key: str
) -> list[tuple[np.ndarray, list[int]]]:
    """Read images and labels from members of a ``.tar.gz`` archive.

    Returns:
        Images uint8 ``[n, 32, 32, 3]``, or ``[n, 3, 32, 32]`` if `image_data_format` is
        "channels_first", and their labels.

    Raises:
        DataFileError: If the archive is damaged, lacks a member, or has an invalid one,
            such as a pickle that would run code; a ``ValueError``.
    """
    from .plain_pickle import read_pickle

    contents = _members(path, names)
    found = []
    for name in names:
        try:
            batch = read_pickle(contents[name])
            found.append(_batch(batch, label_key))
        except ValueError as error:
            raise DataFileError(path, f"{name}: {error}.") from error
    return found


def _members(path, names):
    """Return the bytes of the members with these names."""
    import gzip
    import tarfile
    import zlib

    contents = {}
    try:
        with (
            gzip.open(path) as unpacked,
            tarfile.open(fileobj=_Bounded(unpacked), mode="r|") as archive,
        ):
            for member in archive:
                if member.name in names and member.isreg():
                    contents[member.name] = archive.extractfile(member).read()
                if len(contents) == len(names):
                    return contents
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataFileError(
            path, f"not a .tar.gz file, or damaged ({error}). Download the file again."
        ) from error
    except ValueError as error:
        raise DataFileError(path, f"{error}.") from error
    missing = [name for name in names if name not in contents]
    raise DataFileError(path, f"the archive has no {', '.join(missing)}.")


class _Bounded:
    """File object from which at most ``LARGEST`` bytes can be read."""

    def __init__(self, file):
        self._file, self._left = file, LARGEST

    def read(self, size):
        block = self._file.read(size)
        self._left -= len(block)
        if self._left < 0:
            raise ValueError(f"it unpacks to more than {LARGEST} bytes")
        return block


def _batch(batch: Any, label_key):
    """Check a batch, and return its images and labels."""
    key = label_key.encode()
    if type(batch) is not dict or not {b"data", key} <= batch.keys():
        raise ValueError(f"it must be a dict with 'data' and {label_key!r}")
    data, labels = batch[b"data"], batch[key]
    shape = getattr(data, "shape", None)
    if getattr(data, "dtype", None) != np.uint8 or shape[1:] != (3072,):
        raise ValueError(
            f"data must be uint8 [n, 3072], got {type(data)} of shape {shape}"
        )
    if type(labels) is not list or len(labels) != len(data):
        raise ValueError(f"{label_key} must be a list of {len(data)} ints")
    if not all(type(label) is int and 0 <= label < 100 for label in labels):
        raise ValueError(f"{label_key} must be ints from 0 to 99")
    images = data.reshape(-1, 3, 32, 32)
    if image_data_format() == "channels_last":
        images = images.transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), labels
