"""Read arrays, and lists of sequences, from ``.npz`` files without running code."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from .idx import DataFileError

LARGEST = 1 << 28  # bytes of a pickle; 17 times those of IMDB


def read_npz(
    path: str | os.PathLike, keys: Sequence[str], sequences: bool = False
) -> list[Any]:
    """Return the arrays of an ``.npz`` file with these names.

    Args:
        path: Path of the file.
        keys: Names of the entries.
        sequences: If True, also accept object arrays, and return them as lists. NumPy
            writes them as pickles, which `plain_pickle` reads.

    Raises:
        DataFileError: If the file has another format, is damaged or lacks an entry, or
            a pickle has anything but plain data; a ``ValueError``.
    """
    import zipfile
    import zlib

    # What NumPy and zipfile raise for archives that are damaged, encrypted, or announce
    # more than fits into memory.
    unreadable = (
        ValueError,
        EOFError,
        KeyError,
        RuntimeError,
        MemoryError,
        OverflowError,
    )
    with open(path, "rb") as raw:
        if not zipfile.is_zipfile(raw):
            raise DataFileError(path, "not an .npz file, which is a zip archive.")
        raw.seek(0)
        try:
            with np.load(raw, allow_pickle=False) as archive:
                missing = [key for key in keys if key not in archive]
                if missing:
                    raise DataFileError(
                        path,
                        f"it has no {', '.join(missing)}; it must contain "
                        f"{', '.join(keys)}, and contains "
                        f"{', '.join(archive) or 'none'}.",
                    )
                if sequences:
                    return [_entry(archive, key) for key in keys]
                return [archive[key] for key in keys]
        except DataFileError:
            raise
        except (*unreadable, zipfile.BadZipFile, zlib.error) as error:
            raise DataFileError(path, f"unreadable .npz file ({error}).") from error


def _entry(archive, key):
    """Return an entry: an array, or a list for an object array."""
    with archive.zip.open(f"{key}.npy") as file:
        version = np.lib.format.read_magic(file)
        read = {1: np.lib.format.read_array_header_1_0}.get(
            version[0], np.lib.format.read_array_header_2_0
        )
        _, _, dtype = read(file)
        if not dtype.hasobject:
            return archive[key]
        from .plain_pickle import read_pickle

        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"{key} is a pickle of more than {LARGEST} bytes")
    entry = read_pickle(content)
    # A pickle may name one list many times; apart, they could fill any memory.
    if sum(len(each) for each in entry if type(each) is list) > len(content):
        raise ValueError(f"{key} is a pickle with fewer bytes than entries")
    return entry
