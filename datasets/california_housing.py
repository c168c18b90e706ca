"""California housing data set: 20,640 districts with 8 attributes and house values.

The attributes: longitude, latitude, median age of a house, rooms, bedrooms, population,
households, median income. The target is the median value of a house.

References:
    Pace & Barry, "Sparse spatial autoregressions" (1997).
"""

import os

from .fetch import RemoteFile
from .local import Data, find_file
from .tables import check_test_split, load_table

__all__ = ["load_data"]

ARCHIVE = RemoteFile(  # the checksum is Keras'
    "california_housing.npz",
    "sha256:1a2e3a52e0398de6463aebe6f4a8da34fb21fbb6b934cf88c3425e766f2a1a6f",
)
MIRRORS = ("https://storage.googleapis.com/tensorflow/tf-keras-datasets/",)
ROWS = {"small": 600, "large": None}


def load_data(
    version: str = "large",
    path: str | os.PathLike | None = "california_housing.npz",
    test_split: float = 0.2,
    seed: int | None = 113,
) -> Data:
    """Load the California housing data set: ``(x_train, y_train), (x_test, y_test)``.

    Args:
        version: "large", or "small" for the first 600 districts.
        path: ``.npz`` file in Keras' layout, with ``x`` and ``y``. The default name, or
            None, selects the cache, unless a file with this name exists in the working
            directory. The cache, ``$TAPEWRIGHT_HOME/datasets`` or
            ``~/.cache/tapewright/datasets``, is filled by a verified download on first
            use.
        test_split: Fraction of the data for the test set, at least 0 and below 1.
        seed: Seed of the shuffle before the split.

    Returns:
        ``x`` ``[n, 8]`` and ``y`` ``[n]`` in dollars, with ``n`` 16,512 and 4,128, or
        480 and 120; the dtype is the dtype of the file.

    Raises:
        FileNotFoundError: If ``path`` does not exist.
        ValueError: If ``version`` is unknown, ``test_split`` is out of range, or the
            file is invalid.
        DownloadError: If all mirrors fail; an ``OSError`` that lists them.

    Example:
        >>> train, test = tw.datasets.california_housing.load_data("small")  # doctest: +SKIP
        >>> (x_train, y_train), (x_test, y_test) = train, test  # doctest: +SKIP
    """
    if version not in ROWS:
        raise ValueError(
            "california_housing.load_data: version must be 'small' or 'large': got "
            f"{version!r}."
        )
    check_test_split("california_housing.load_data", test_split)
    found = find_file("california_housing.load_data", path, ARCHIVE, MIRRORS)
    return load_table(found, 8, test_split, seed, ROWS[version])
