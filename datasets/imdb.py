"""IMDB: 50,000 film reviews, words as their rank by frequency, negative or positive.

Reference: Maas et al., "Learning word vectors for sentiment analysis" (2011).
"""

import os

import numpy as np

from .fetch import RemoteFile
from .local import Data, find_file
from .sequences import limit_words, prepare, read_texts, read_word_index

__all__ = ["get_word_index", "load_data"]

ARCHIVE = RemoteFile(  # the checksums are Keras'
    "imdb.npz",
    "sha256:69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f",
)
WORD_INDEX = RemoteFile("imdb_word_index.json", "md5:bfafd718b763782e994055a2d397834f")
MIRRORS = ("https://storage.googleapis.com/tensorflow/tf-keras-datasets/",)


def load_data(
    path: str | os.PathLike | None = "imdb.npz",
    num_words: int | None = None,
    skip_top: int = 0,
    maxlen: int | None = None,
    seed: int | None = 113,
    start_char: int | None = 1,
    oov_char: int | None = 2,
    index_from: int = 3,
) -> Data:
    """Load IMDB: ``(x_train, y_train), (x_test, y_test)``.

    Args: ``path``: an ``.npz`` file in Keras' layout. The plain default, or None,
    stands for the cache (``$TAPEWRIGHT_HOME/datasets``, by default
    ``~/.cache/tapewright/datasets``) unless a file of that name lies in the working
    directory; what the cache lacks is downloaded once and verified. ``num_words``,
    ``skip_top``: indices from ``num_words`` on, by default the largest, and below
    ``skip_top`` become ``oov_char``, or vanish if it is None; ``maxlen``: keep texts
    that are shorter, with their start; ``seed``: of the order; ``start_char``: in front
    of each text, or None; ``index_from``: added to the rank of each word.
    Returns: texts, lists of ints in an array of objects ``[n]``; labels int64 ``[n]``,
    0 or 1, with ``n`` 25,000 twice.
    Raises: ``FileNotFoundError`` if ``path`` names nothing, ``ValueError`` if no text is
    shorter than ``maxlen`` or the file is not what it should be, ``DownloadError`` (an
    ``OSError``) naming every mirror that failed. A file that would run code as a pickle
    is refused.

    Example:
        >>> (x_train, y_train), (x_test, y_test) = tw.datasets.imdb.load_data(num_words=10000)  # doctest: +SKIP
    """
    found = find_file("imdb.load_data", path, ARCHIVE, MIRRORS)
    train, test = read_texts(found, ("x_train", "y_train", "x_test", "y_test"))
    rng = np.random.RandomState(seed)
    x_train, y_train = prepare(*train, rng, start_char, index_from, maxlen)
    x_test, y_test = prepare(*test, rng, start_char, index_from, maxlen)
    if not x_train or not x_test:
        raise ValueError(
            f"imdb.load_data: no text is shorter than maxlen: got maxlen={maxlen}."
        )
    x = limit_words(x_train + x_test, num_words, skip_top, oov_char)
    n = len(x_train)
    return (x[:n], y_train), (x[n:], y_test)


def get_word_index(
    path: str | os.PathLike | None = "imdb_word_index.json",
) -> dict[str, int]:
    """The rank of each word by its frequency, from 1; `load_data` adds ``index_from``.

    Args: ``path``: a JSON file; the plain default, or None, stands for the cache.
    Raises: ``FileNotFoundError``, ``ValueError`` and ``DownloadError`` as `load_data`.
    """
    found = find_file("imdb.get_word_index", path, WORD_INDEX, MIRRORS)
    return read_word_index(found)
