"""Read data of MNIST's form from disk: Keras' ``.npz``, or a folder of IDX files."""

import os
import warnings
from pathlib import Path

import numpy as np

from .idx import DataFileError, read_pair

__all__ = ["Data", "load_folder", "load_npz", "load_path"]

Split = tuple[np.ndarray, np.ndarray]
Data = tuple[Split, Split]

KEYS = ("x_train", "y_train", "x_test", "y_test")


def load_path(path: str | os.PathLike, *, stacklevel: int = 2) -> Data:
    """Load ``path``: a folder of IDX files, or else an ``.npz`` file.

    A remark of ``load_folder`` becomes a warning at ``stacklevel``, as of this call.
    """
    if not Path(path).is_dir():
        return load_npz(path)
    data, note = load_folder(path)
    if note:
        warnings.warn(note, stacklevel=stacklevel + 1)
    return data


def load_npz(path: str | os.PathLike) -> Data:
    """Arrays from a file in Keras' layout: ``x_train, y_train, x_test, y_test``.

    Returns: images uint8 ``[n, rows, columns]``, labels uint8 ``[n]``.
    Raises: ``DataFileError`` (a ``ValueError``) if the file is anything else. Pickled
    objects, which could run code, are not loaded.
    """
    x_train, y_train, x_test, y_test = _arrays(path)
    for part, x, y in (("train", x_train, y_train), ("test", x_test, y_test)):
        _check(path, f"x_{part}", x, "[n, rows, columns]", 3)
        _check(path, f"y_{part}", y, "[n]", 1)
        if len(x) != len(y):
            raise DataFileError(
                path, f"{len(x)} images in x_{part}, but {len(y)} labels in y_{part}."
            )
    return (x_train, y_train), (x_test, y_test)


# What NumPy and zipfile raise for archives that are damaged, encrypted, hold pickled
# objects or announce more than fits into memory.
_UNREADABLE = (ValueError, EOFError, KeyError, RuntimeError, MemoryError, OverflowError)


def _arrays(path):
    """The four arrays, in the order of ``KEYS``."""
    import zipfile
    import zlib

    with open(path, "rb") as raw:
        if not zipfile.is_zipfile(raw):
            raise DataFileError(path, "no .npz file, which would be a zip archive.")
        raw.seek(0)
        try:
            with np.load(raw, allow_pickle=False) as archive:
                missing = [key for key in KEYS if key not in archive]
                if missing:
                    raise DataFileError(
                        path,
                        f"{', '.join(missing)} not there; it must hold "
                        f"{', '.join(KEYS)}, and holds {', '.join(archive) or 'none'}.",
                    )
                return [archive[key] for key in KEYS]
        except DataFileError:
            raise
        except (*_UNREADABLE, zipfile.BadZipFile, zlib.error) as error:
            raise DataFileError(path, f"unreadable .npz file ({error}).") from error


def _check(path, key, array, form, axes):
    if getattr(array, "dtype", None) != np.uint8 or array.ndim != axes:
        raise DataFileError(
            path,
            f"{key} must be uint8 {form}: got {getattr(array, 'dtype', type(array))} "
            f"of shape {getattr(array, 'shape', None)}.",
        )


def load_folder(folder: str | os.PathLike) -> tuple[Data, str]:
    """The data in a folder of IDX files, and a remark if they are special.

    The files are ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte`` and the same
    with ``t10k``, gzipped (``.gz``) or not; ``train-images.idx3-ubyte`` is understood
    too. Without training images the ``t10k`` set is divided: the first four fifths of
    its images for training, the rest for testing, and the remark says so; else it is
    empty.

    Raises: ``FileNotFoundError`` naming what is missing, ``DataFileError`` (a
    ``ValueError``) for a file that is not what its name says.
    """
    folder = Path(folder)
    train = [_find(folder, "train", kind) for kind in ("images", "labels")]
    test = [_find(folder, "t10k", kind) for kind in ("images", "labels")]
    if not all(test) or (train[0] and not train[1]):
        wanted = [_name(part, k) for part in ("train", "t10k") for k in _AXES]
        missing = [n for n, p in zip(wanted, train + test, strict=True) if not p]
        raise FileNotFoundError(
            f"{folder} lacks {', '.join(missing)} (each may end in .gz). Right are all "
            f"four of {', '.join(wanted)}, or the two t10k files alone."
        )
    if train[0]:
        return (read_pair(*train), read_pair(*test)), ""
    x, y = read_pair(*test)
    n = len(x) * 4 // 5
    note = (
        f"{folder} has no training images, so its t10k set is divided: the first {n} "
        f"images are for training, the last {len(x) - n} for testing."
    )
    return ((x[:n], y[:n]), (x[n:], y[n:])), note


_AXES = {"images": 3, "labels": 1}


def _name(part, kind, mark="-"):
    return f"{part}-{kind}{mark}idx{_AXES[kind]}-ubyte"


def _find(folder, part, kind):
    """The path of one of the four files under any of its spellings, or None."""
    for mark in "-.":
        for ending in ("", ".gz"):
            path = folder / (_name(part, kind, mark) + ending)
            if path.is_file():
                return path
    return None
