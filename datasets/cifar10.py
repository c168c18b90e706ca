"""CIFAR-10 data set: 60,000 color photographs of 32 by 32 pixels in ten classes.

References:
    Krizhevsky, "Learning multiple layers of features from tiny images" (2009).
"""

import os

import numpy as np

from .cifar import read_batches
from .fetch import RemoteFile
from .local import Data, find_file

__all__ = ["load_data"]

ARCHIVE = RemoteFile(  # the checksum is Keras'
    "cifar-10-python.tar.gz",
    "sha256:6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
)
MIRRORS = ("https://www.cs.toronto.edu/~kriz/",)
MEMBERS = [
    f"cifar-10-batches-py/{name}"
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
]


def load_data(path: str | os.PathLike | None = None) -> Data:
    """Load the CIFAR-10 data set: ``(x_train, y_train), (x_test, y_test)``.

    The classes: airplane, automobile, bird, cat, deer, dog, frog, horse, ship, truck.

    Args:
        path: Archive ``cifar-10-python.tar.gz``; None for the cache
            (``$TAPEWRIGHT_HOME/datasets``, by default
            ``~/.cache/tapewright/datasets``), filled by a verified download on first
            use.

    Returns:
        Images uint8 ``[n, 32, 32, 3]``, or ``[n, 3, 32, 32]`` if `image_data_format` is
        "channels_first", and labels uint8 ``[n, 1]``, with ``n`` 50,000 and 10,000.

    Raises:
        FileNotFoundError: If ``path`` does not exist.
        ValueError: If the file is invalid, such as a pickle that would run code.
        DownloadError: If all mirrors fail; an ``OSError`` that lists them.

    Example:
        >>> train, test = tw.datasets.cifar10.load_data()  # doctest: +SKIP
        >>> (x_train, y_train), (x_test, y_test) = train, test  # doctest: +SKIP
    """
    found = find_file("cifar10.load_data", path, ARCHIVE, MIRRORS)
    *train, test = read_batches(found, MEMBERS, "labels")
    return _joined(train), _joined([test])


def _joined(batches):
    images = np.concatenate([images for images, _ in batches])
    labels = np.concatenate([np.array(labels, np.uint8) for _, labels in batches])
    return images, labels[:, None]
