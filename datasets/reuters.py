"""Reuters data set: 11,228 newswires in 46 topics, as lists of word ranks.

References:
    Lewis, "Reuters-21578 text categorization collection" (1997).
"""

import os

import numpy as np

from .fetch import RemoteFile
from .local import Data, find_file
from .sequences import limit_words, prepare, read_texts, read_word_index
from .tables import check_test_split

__all__ = ["get_label_names", "get_word_index", "load_data"]

ARCHIVE = RemoteFile(  # the checksums are Keras'
    "reuters.npz",
    "sha256:d6586e694ee56d7a4e65172e12b3e987c03096cb01eab99753921ef915959916",
)
WORD_INDEX = RemoteFile(
    "reuters_word_index.json", "md5:4d44cc38712099c9e383dc6e5f11a921"
)
MIRRORS = ("https://storage.googleapis.com/tensorflow/tf-keras-datasets/",)
LABELS = """
    cocoa grain veg-oil earn acq wheat copper housing money-supply coffee sugar trade
    reserves ship cotton carcass crude nat-gas cpi money-fx interest gnp meal-feed alum
    oilseed gold tin strategic-metal livestock retail ipi iron-steel rubber heat jobs lei
    bop zinc orange pet-chem dlr gas silver wpi hog lead
"""


def load_data(
    path: str | os.PathLike | None = "reuters.npz",
    num_words: int | None = None,
    skip_top: int = 0,
    maxlen: int | None = None,
    test_split: float = 0.2,
    seed: int | None = 113,
    start_char: int | None = 1,
    oov_char: int | None = 2,
    index_from: int = 3,
) -> Data:
    """Load the Reuters newswire data set: ``(x_train, y_train), (x_test, y_test)``.

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
        test_split: Fraction of the data for the test set, at least 0 and below 1.
        seed: Seed of the shuffle of the texts.
        start_char: Index put in front of each text, or None.
        oov_char: Index that replaces words; None drops the words.
        index_from: Number added to the rank of each word.

    Returns:
        Texts, lists of ints in an object array ``[n]``; labels int64 ``[n]``, from 0 to
        45, with ``n`` 8,982 and 2,246.

    Raises:
        FileNotFoundError: If ``path`` does not exist.
        ValueError: If ``test_split`` is out of range, no text is shorter than
            ``maxlen``, or the file is invalid, such as a pickle that would run code.
        DownloadError: If all mirrors fail; an ``OSError`` that lists them.

    Example:
        >>> train, test = tw.datasets.reuters.load_data(num_words=10000)  # doctest: +SKIP
        >>> (x_train, y_train), (x_test, y_test) = train, test  # doctest: +SKIP
    """
    check_test_split("reuters.load_data", test_split)
    found = find_file("reuters.load_data", path, ARCHIVE, MIRRORS)
    ((texts, labels),) = read_texts(found, ("x", "y"))
    rng = np.random.RandomState(seed)
    texts, labels = prepare(texts, labels, rng, start_char, index_from, maxlen)
    if not texts:
        raise ValueError(
            f"reuters.load_data: no text is shorter than maxlen: got maxlen={maxlen}."
        )
    x = limit_words(texts, num_words, skip_top, oov_char)
    n = int(len(x) * (1 - test_split))
    return (x[:n], labels[:n]), (x[n:], labels[n:])


def get_word_index(
    path: str | os.PathLike | None = "reuters_word_index.json",
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
    found = find_file("reuters.get_word_index", path, WORD_INDEX, MIRRORS)
    return read_word_index(found)


def get_label_names() -> tuple[str, ...]:
    """Return the names of the topics, in the order of the labels.

    Example:
        >>> tw.datasets.reuters.get_label_names()[3]
        'earn'
    """
    return tuple(LABELS.split())
