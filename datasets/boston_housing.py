"""Boston housing data set: 506 districts with 13 attributes and the median home value.

The column "B" was constructed on the assumption that racial segregation raises prices.
Use `california_housing` instead, unless this is the subject of the study.

References:
    Harrison & Rubinfeld, "Hedonic prices and the demand for clean air" (1978).
"""

import os

from .fetch import RemoteFile
from .local import Data, find_file
from .tables import check_test_split, load_table

__all__ = ["load_data"]

ARCHIVE = RemoteFile(  # the checksum is Keras'
    "boston_housing.npz",
    "sha256:f553886a1f8d56431e820c5b82552d9d95cfcb96d1e678153f8839538947dff5",
)
MIRRORS = ("https://storage.googleapis.com/tensorflow/tf-keras-datasets/",)


def load_data(
    path: str | os.PathLike | None = "boston_housing.npz",
    test_split: float = 0.2,
    seed: int | None = 113,
) -> Data:
    """Load the Boston housing data set: ``(x_train, y_train), (x_test, y_test)``.

    Args:
        path: ``.npz`` file in Keras' layout, with ``x`` and ``y``. The default name, or
            None, selects the cache, unless a file with this name exists in the working
            directory. The cache, ``$TAPEWRIGHT_HOME/datasets`` or
            ``~/.cache/tapewright/datasets``, is filled by a verified download on first
            use.
        test_split: Fraction of the data for the test set, at least 0 and below 1.
        seed: Seed of the shuffle before the split.

    Returns:
        ``x`` float64 ``[n, 13]`` and ``y`` float64 ``[n]`` in thousands of dollars,
        with ``n`` 404 and 102.

    Raises:
        FileNotFoundError: If ``path`` does not exist.
        ValueError: If ``test_split`` is out of range, or the file is invalid.
        DownloadError: If all mirrors fail; an ``OSError`` that lists them.

    Example:
        >>> train, test = tw.datasets.boston_housing.load_data()  # doctest: +SKIP
        >>> (x_train, y_train), (x_test, y_test) = train, test  # doctest: +SKIP
    """
    check_test_split("boston_housing.load_data", test_split)
    found = find_file("boston_housing.load_data", path, ARCHIVE, MIRRORS)
    return load_table(found, 13, test_split, seed)
