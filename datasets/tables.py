"""Tables of numbers from ``.npz`` files: read, shuffled, divided for training and test."""

import os

import numpy as np

from .idx import DataFileError
from .local import Data
from .npz import read_npz

__all__ = ["check_test_split", "load_table"]


def load_table(
    path: str | os.PathLike,
    columns: int,
    test_split: float,
    seed: int | None,
    rows: int | None = None,
) -> Data:
    """Entries ``x`` and ``y`` of a file: ``(x_train, y_train), (x_test, y_test)``.

    Args: ``columns``: of ``x``; ``rows``: read only the first ones; ``seed``: of the
    order, that of ``numpy.random.RandomState`` as in Keras; ``test_split``: the part
    for the test, at the end.
    Raises: ``DataFileError`` (a ``ValueError``) for a file with other arrays.
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
    """Raise a ``ValueError`` for a part that is not from 0 to below 1."""
    if not 0 <= test_split < 1:
        raise ValueError(
            f"{who}: test_split must be at least 0 and below 1: got {test_split!r}."
        )
