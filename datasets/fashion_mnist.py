"""Fashion-MNIST data set: 70,000 images of clothes in ten classes, shaped like MNIST.

References:
    Xiao, Rasul & Vollgraf, "Fashion-MNIST: a novel image dataset for benchmarking
    machine learning algorithms" (2017).
"""

import os

from .fetch import RemoteFile, cache_folder, download
from .local import Data, given_path, load_folder, load_path

__all__ = ["load_data", "load_folder"]

FILES = (
    RemoteFile(
        "train-images-idx3-ubyte.gz", "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26421880
    ),
    RemoteFile(
        "train-labels-idx1-ubyte.gz", "md5:25c81989df183df01b3e8a0aad5dffbe", 29515
    ),
    RemoteFile(
        "t10k-images-idx3-ubyte.gz", "md5:bef4ecab320f06d8554ea6380940ec79", 4422102
    ),
    RemoteFile(
        "t10k-labels-idx1-ubyte.gz", "md5:bb300cfdad3c16e7a12a480ee83cd310", 5148
    ),
)
# The checksum guards the first mirror, which has no https.
MIRRORS = (
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
)


def load_data(path: str | os.PathLike | None = None) -> Data:
    """Load the Fashion-MNIST data set: ``(x_train, y_train), (x_test, y_test)``.

    The classes: T-shirt, trouser, pullover, dress, coat, sandal, shirt, sneaker, bag,
    ankle boot.

    Args:
        path: ``.npz`` file in Keras' layout, or folder of IDX files (see
            ``load_folder``, whose note is issued as a warning); None for the cache
            (``$TAPEWRIGHT_HOME/datasets``, by default
            ``~/.cache/tapewright/datasets``), filled by a verified download on first
            use.

    Returns:
        Images uint8 ``[n, 28, 28]`` and labels uint8 ``[n]``, with ``n`` 60,000 and
        10,000.

    Raises:
        FileNotFoundError: If ``path`` does not exist.
        ValueError: If the file is invalid.
        DownloadError: If all mirrors fail; an ``OSError`` that lists them.

    Example:
        >>> train, test = tw.datasets.fashion_mnist.load_data()  # doctest: +SKIP
        >>> (x_train, y_train), (x_test, y_test) = train, test  # doctest: +SKIP
    """
    given = given_path("fashion_mnist.load_data", path)
    if given is not None:
        return load_path(given, stacklevel=2)
    folder = cache_folder() / "fashion_mnist"
    for file in FILES:
        download(file, MIRRORS, folder)
    return load_folder(folder)[0]
