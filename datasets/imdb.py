"""IMDB data set: 50,000 movie reviews, as lists of word ranks, negative or positive.

References:
    Maas et al., "Learning word vectors for sentiment analysis" (2011).
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
    """Load the IMDB movie review data set: ``(x_train, y_train), (x_test, y_test)``.

    Words are encoded by their rank by frequency, plus ``index_from``.

    Args:
        path: ``.npz`` file in Keras' layout. The default name, or None, selects the
            cache, unless a file with this name exists in the working directory. The
            cache, ``$TAPEWRIGHT_HOME/datasets`` or ``~/.cache/tapewright/datasets``, is
            filled by a verified download on first use.
        num_words: Replace words with this index or a larger one; None for the largest
            index of all texts.
        skip_top: Replace words with an index below.
        maxlen: Keep only texts shorter than this, including the start; None for all
            texts.
        seed: Seed of the shuffle of the texts.
        start_char: Index put in front of each text, or None.
        oov_char: Index that replaces words; None drops the words.
        index_from: Number added to the rank of each word.

    Returns:
        Texts, lists of ints in an object array ``[n]``; labels int64 ``[n]``, 0 or 1,
        with ``n`` 25,000 for both sets.

    Raises:
        FileNotFoundError: If ``path`` does not exist.
        ValueError: If no text is shorter than ``maxlen``, or the file is invalid, such
            as a pickle that would run code.
        DownloadError: If all mirrors fail; an ``OSError`` that lists them.

    Example:
        >>> train, test = tw.datasets.imdb.load_data(num_words=10000)  # doctest: +SKIP
        >>> (x_train, y_train), (x_test, y_test) = train, test  # doctest: +SKIP
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
    """Return the rank of each word by its frequency, from 1: a dict.

    `load_data` adds ``index_from`` to the ranks.

    Args:
        path: JSON file; the default name, or None, selects the cache.

    Raises:
        FileNotFoundError: If ``path`` does not exist.
        ValueError: If the file is invalid.
        DownloadError: If all mirrors fail; an ``OSError`` that lists them.
    """
    found = find_file("imdb.get_word_index", path, WORD_INDEX, MIRRORS)
    return read_word_index(found)
