"""MNIST data set: 70,000 handwritten digits, 28x28, from disk or the canonical mirrors.

References:
    LeCun, Bottou, Bengio & Haffner, "Gradient-based learning applied to document
    recognition" (1998).
"""

import os

from .fetch import DownloadError, RemoteFile, cache_folder, cached, download
from .local import Data, given_path, load_folder, load_npz, load_path

__all__ = ["load_data", "load_folder"]

ARCHIVE = RemoteFile(
    "mnist.npz",
    "sha256:731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
    11490434,
)
ARCHIVE_MIRRORS = ("https://storage.googleapis.com/tensorflow/tf-keras-datasets/",)
FILES = (
    RemoteFile(
        "train-images-idx3-ubyte.gz", "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873", 9912422
    ),
    RemoteFile(
        "train-labels-idx1-ubyte.gz", "md5:d53e105ee54ea40749a09fcbcd1e9432", 28881
    ),
    RemoteFile(
        "t10k-images-idx3-ubyte.gz", "md5:9fb629c4189551a2d022fa330f9573f3", 1648877
    ),
    RemoteFile(
        "t10k-labels-idx1-ubyte.gz", "md5:ec29112dd5afa0611ce80d1b7f02629c", 4542
    ),
)
MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)


def load_data(path: str | os.PathLike | None = "mnist.npz") -> Data:
    """Load the MNIST data set: ``(x_train, y_train), (x_test, y_test)``.

    Args:
        path: ``.npz`` file in Keras' layout, or folder of IDX files (see
            ``load_folder``, whose note is issued as a warning). The default name, or
            None, selects the cache, unless a file with this name exists in the working
            directory. The cache, ``$TAPEWRIGHT_HOME/datasets`` or
            ``~/.cache/tapewright/datasets``, is filled by a verified download on first
            use.

    Returns:
        Images uint8 ``[n, 28, 28]`` and labels uint8 ``[n]``, with ``n`` 60,000 and
        10,000.

    Raises:
        FileNotFoundError: If ``path`` does not exist.
        ValueError: If the file is invalid.
        DownloadError: If all mirrors fail; an ``OSError`` that lists them.

    Example:
        >>> train, test = tw.datasets.mnist.load_data()  # doctest: +SKIP
        >>> (x_train, y_train), (x_test, y_test) = train, test  # doctest: +SKIP
        >>> x_train.shape, y_test.shape  # doctest: +SKIP
        ((60000, 28, 28), (10000,))
    """
    given = given_path("mnist.load_data", path, ARCHIVE.name)
    return _from_cache() if given is None else load_path(given, stacklevel=2)


def _from_cache():
    """Load the data set from the cache, downloaded first if necessary.

    One archive is preferred; the four IDX files, which have other mirrors, are the
    fallback.
    """
    folder = cache_folder()
    if cached(ARCHIVE, folder):
        return load_npz(folder / ARCHIVE.name)
    if all(cached(file, folder / "mnist") for file in FILES):
        return load_folder(folder / "mnist")[0]
    try:
        return load_npz(download(ARCHIVE, ARCHIVE_MIRRORS, folder))
    except DownloadError as first:
        try:
            for file in FILES:
                download(file, MIRRORS, folder / "mnist")
        except DownloadError as second:
            raise DownloadError(
                first.failures + second.failures,
                f"Without a network, copy {ARCHIVE.name} to {folder}, or use "
                "datasets.digits, which needs no network.",
            ) from None
    return load_folder(folder / "mnist")[0]
