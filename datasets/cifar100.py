"""CIFAR-100 data set: 60,000 color photographs of 32 by 32 pixels in 100 classes.

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
    "cifar-100-python.tar.gz",
    "sha256:85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
)
MIRRORS = ("https://www.cs.toronto.edu/~kriz/",)
MEMBERS = ["cifar-100-python/train", "cifar-100-python/test"]


def load_data(label_mode: str = "fine", path: str | os.PathLike | None = None) -> Data:
    """Load the CIFAR-100 data set: ``(x_train, y_train), (x_test, y_test)``.

    Args:
        label_mode: "fine" for the 100 classes, "coarse" for their 20 superclasses.
        path: Archive ``cifar-100-python.tar.gz``; None for the cache
            (``$TAPEWRIGHT_HOME/datasets``, by default
            ``~/.cache/tapewright/datasets``), filled by a verified download on first
            use.

    Returns:
        Images uint8 ``[n, 32, 32, 3]``, or ``[n, 3, 32, 32]`` if `image_data_format` is
        "channels_first", and labels int64 ``[n, 1]``, with ``n`` 50,000 and 10,000.

    Raises:
        FileNotFoundError: If ``path`` does not exist.
        ValueError: If ``label_mode`` is unknown, or the file is invalid, such as a
            pickle that would run code.
        DownloadError: If all mirrors fail; an ``OSError`` that lists them.

    Example:
        >>> train, test = tw.datasets.cifar100.load_data("coarse")  # doctest: +SKIP
        >>> (x_train, y_train), (x_test, y_test) = train, test  # doctest: +SKIP
    """
    if label_mode not in ("fine", "coarse"):
        raise ValueError(
            f"cifar100.load_data: label_mode must be 'fine' or 'coarse': got {label_mode!r}."
        )
    found = find_file("cifar100.load_data", path, ARCHIVE, MIRRORS)
    train, test = read_batches(found, MEMBERS, f"{label_mode}_labels")
    return _split(*train), _split(*test)


def _split(images, labels):
    return images, np.array(labels, np.int64)[:, None]
