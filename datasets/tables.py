"""Tables of numbers from ``.npz`` files: read, shuffle, split into training and test."""

import os

import numpy as np

from .idx import DataFileError
from .local import Data
from .npz import read_npz


def load_table(
    path: str | os.PathLike,
    columns: int,
    test_split: float,
    seed: int | None,
    rows: int | None = None,
) -> Data:
    """Load ``x`` and ``y`` of a file: ``(x_train, y_train), (x_test, y_test)``.

    Args:
        path: Path of the file.
        columns: Number of columns of ``x``.
        test_split: Fraction of the data for the test set, at the end.
        seed: Seed of the shuffle by ``numpy.random.RandomState``, as in Keras.
        rows: Number of rows to read, from the start; None for all.

    Raises:
        DataFileError: If the file has other arrays; a ``ValueError``.
    """
    x, y = read_npz(path, ("x", "y"))
    if x.ndim != 2 or x.shape[1] != columns or x.dtype.kind not in "fiu":
        raise DataFileError(
            path, f"x must be [n, {columns}] numbers: got {x.dtype} of shape {x.shape}."
        )
    if y.shape != x.shape[:1] or y.dtype.kind not in "fiu":
        raise DataFileError(
            path, f"y must be [{len(x)}] numbers: got {y.dtype} of shape {y.shape}."
        )
    x, y = x[:rows], y[:rows]
    order = np.arange(len(x))
    np.random.RandomState(seed).shuffle(order)
    x, y = x[order], y[order]
    n = int(len(x) * (1 - test_split))
    return (x[:n], y[:n]), (x[n:], y[n:])


def check_test_split(who: str, test_split: float) -> None:
    """Raise ``ValueError`` if ``test_split`` is not at least 0 and below 1."""
    if not 0 <= test_split < 1:
        raise ValueError(
            f"{who}: test_split must be at least 0 and below 1: got {test_split!r}."
        )
