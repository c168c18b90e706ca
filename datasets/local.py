"""Find data on disk, and read data in the form of MNIST: an ``.npz`` file or IDX files."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .fetch import RemoteFile, cache_folder, download
from .idx import DataFileError, read_pair
from .npz import read_npz

Split = tuple[np.ndarray, np.ndarray]
Data = tuple[Split, Split]

KEYS = ("x_train", "y_train", "x_test", "y_test")


def given_path(
    who: str, path: str | os.PathLike | None, default: str | None = None
) -> Path | None:
    """Return the path given by the user, or None to use the cache.

    None selects the cache, and so does the name ``default``, unless a file with this
    name exists in the working directory.

    Raises:
        FileNotFoundError: If ``path`` does not exist.
    """
    if path is None:
        return None
    found = Path(path).expanduser()
    if found.exists():
        return found
    if default is not None and found == Path(default):
        return None
    raise FileNotFoundError(
        f"{who}: path must name a file or folder that exists: got {found}. Without a "
        f"path, the data is downloaded to {cache_folder()}."
    )


def find_file(
    who: str, path: str | os.PathLike | None, file: RemoteFile, mirrors: Sequence[str]
) -> Path:
    """Return `given_path`, or else the file in the cache, downloaded if necessary."""
    given = given_path(who, path, file.name)
    return download(file, mirrors, cache_folder()) if given is None else given


def load_path(path: str | os.PathLike, *, stacklevel: int = 2) -> Data:
    """Load ``path``: a folder of IDX files, or else an ``.npz`` file.

    The note of ``load_folder`` is issued as a warning at ``stacklevel``, relative to
    this call.
    """
    if not Path(path).is_dir():
        return load_npz(path)
    data, note = load_folder(path)
    if note:
        warnings.warn(note, stacklevel=stacklevel + 1)
    return data


def load_npz(path: str | os.PathLike) -> Data:
    """Load arrays from a file in Keras' layout: ``x_train, y_train, x_test, y_test``.

    Returns:
        Images uint8 ``[n, rows, columns]``, labels uint8 ``[n]``.

    Raises:
        DataFileError: If the file has other contents; a ``ValueError``. Pickled
            objects, which could run code, are not loaded.
    """
    x_train, y_train, x_test, y_test = read_npz(path, KEYS)
    for part, x, y in (("train", x_train, y_train), ("test", x_test, y_test)):
        _check(path, f"x_{part}", x, "[n, rows, columns]", 3)
        _check(path, f"y_{part}", y, "[n]", 1)
        if len(x) != len(y):
            raise DataFileError(
                path, f"{len(x)} images in x_{part}, but {len(y)} labels in y_{part}."
            )
    return (x_train, y_train), (x_test, y_test)


def _check(path, key, array, form, axes):
    if getattr(array, "dtype", None) != np.uint8 or array.ndim != axes:
        raise DataFileError(
            path,
            f"{key} must be uint8 {form}: got {getattr(array, 'dtype', type(array))} "
            f"of shape {getattr(array, 'shape', None)}.",
        )


def load_folder(folder: str | os.PathLike) -> tuple[Data, str]:
    """Load a folder of IDX files, as of MNIST.

    The files are ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte`` and the same
    with ``t10k``, gzipped (``.gz``) or not; ``train-images.idx3-ubyte`` is accepted as
    well. Without training images, the ``t10k`` set is split: the first four fifths of
    its images for training, the rest for testing.

    Args:
        folder: Path of the folder.

    Returns:
        ``((x_train, y_train), (x_test, y_test)), note``; the note is empty unless the
        ``t10k`` set was split.

    Raises:
        FileNotFoundError: If files are missing; the message names them.
        DataFileError: If a file does not have the contents of its name; a
            ``ValueError``.
    """
    folder = Path(folder)
    train = [_find(folder, "train", kind) for kind in ("images", "labels")]
    test = [_find(folder, "t10k", kind) for kind in ("images", "labels")]
    if not all(test) or (train[0] and not train[1]):
        wanted = [_name(part, k) for part in ("train", "t10k") for k in _AXES]
        missing = [n for n, p in zip(wanted, train + test, strict=True) if not p]
        raise FileNotFoundError(
            f"{folder} lacks {', '.join(missing)} (each may end in .gz). It must "
            f"contain all four of {', '.join(wanted)}, or only the two t10k files."
        )
    if train[0]:
        return (read_pair(*train), read_pair(*test)), ""
    x, y = read_pair(*test)
    n = len(x) * 4 // 5
    note = (
        f"{folder} has no training images, so its t10k set is split: the first {n} "
        f"images are for training, the last {len(x) - n} for testing."
    )
    return ((x[:n], y[:n]), (x[n:], y[n:])), note


_AXES = {"images": 3, "labels": 1}


def _name(part, kind, mark="-"):
    return f"{part}-{kind}{mark}idx{_AXES[kind]}-ubyte"


def _find(folder, part, kind):
    """Return the path of one of the four files under any of its names, or None."""
    for mark in "-.":
        for ending in ("", ".gz"):
            path = folder / (_name(part, kind, mark) + ending)
            if path.is_file():
                return path
    return None
