"""Boston housing: 506 districts with 13 attributes and the median value of a home.

The column "B" was made on the assumption that racial segregation raises prices. Use
`california_housing` instead, unless this is the subject.

Reference: Harrison, Rubinfeld, "Hedonic prices and the demand for clean air" (1978).
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
    """Load Boston housing: ``(x_train, y_train), (x_test, y_test)``.

    Args: ``path``: an ``.npz`` file in Keras' layout, ``x`` and ``y``. The plain
    default, or None, stands for the cache (``$TAPEWRIGHT_HOME/datasets``, by default
    ``~/.cache/tapewright/datasets``) unless a file of that name lies in the working
    directory; what the cache lacks is downloaded once and verified. ``test_split``: the
    part for the test, at least 0 and below 1; ``seed``: of the order.
    Returns: ``x`` float64 ``[n, 13]``, ``y`` float64 ``[n]`` in thousands of dollars,
    with ``n`` 404 and 102.
    Raises: ``FileNotFoundError`` if ``path`` names nothing, ``ValueError`` for another
    ``test_split`` or a file that is not what it should be, ``DownloadError`` (an
    ``OSError``) naming every mirror that failed.

    Example:
        >>> (x_train, y_train), (x_test, y_test) = tw.datasets.boston_housing.load_data()  # doctest: +SKIP
    """
    check_test_split("boston_housing.load_data", test_split)
    found = find_file("boston_housing.load_data", path, ARCHIVE, MIRRORS)
    return load_table(found, 13, test_split, seed)
