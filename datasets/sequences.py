"""Texts as sequences of word indices: read, shuffle, limit vocabulary and length."""

from __future__ import annotations  # numpy.random takes 15 ms to import

import os
from collections.abc import Sequence

import numpy as np

from .idx import DataFileError
from .npz import read_npz

Texts = list[list[int]]

LARGEST = 1 << 26  # bytes of a word index, 40 times those of IMDB


def read_texts(
    path: str | os.PathLike, keys: Sequence[str]
) -> list[tuple[Texts, np.ndarray]]:
    """Return pairs of texts and labels int64 ``[n]``: entries of an ``.npz`` file.

    Raises:
        DataFileError: If the file has other contents, such as a pickle that would run
            code; a ``ValueError``.
    """
    entries = read_npz(path, keys, sequences=True)
    pairs = list(zip(keys[::2], entries[::2], keys[1::2], entries[1::2], strict=True))
    for x_key, texts, y_key, labels in pairs:
        if type(texts) is not list or not all(map(_is_text, texts)):
            raise DataFileError(path, f"{x_key} must be an array of lists of ints.")
        labels = np.asarray(labels)
        if labels.shape != (len(texts),) or labels.dtype.kind not in "iu":
            raise DataFileError(
                path,
                f"{y_key} must be [{len(texts)}] ints: got {labels.dtype} of shape "
                f"{labels.shape}.",
            )
    return [(texts, np.asarray(labels, np.int64)) for _, texts, _, labels in pairs]


def _is_text(text):
    return type(text) is list and set(map(type, text)) <= {int}


def prepare(
    texts: Texts,
    labels: np.ndarray,
    rng: np.random.RandomState,
    start_char: int | None,
    index_from: int,
    maxlen: int | None,
) -> tuple[Texts, np.ndarray]:
    """Shuffle, add ``start_char`` and ``index_from``, and drop texts of ``maxlen`` words."""
    order = np.arange(len(texts))
    rng.shuffle(order)
    start = [] if start_char is None else [start_char]
    texts = [start + [word + index_from for word in texts[i]] for i in order]
    labels = labels[order]
    if maxlen:
        kept = [i for i, text in enumerate(texts) if len(text) < maxlen]
        texts, labels = [texts[i] for i in kept], labels[kept]
    return texts, labels


def limit_words(
    texts: Texts, num_words: int | None, skip_top: int, oov_char: int | None
) -> np.ndarray:
    """Replace words below ``skip_top`` and from ``num_words`` on by ``oov_char``.

    If ``num_words`` is None it is the largest index, which is then replaced itself, as
    in Keras; if ``oov_char`` is None the words are dropped.

    Returns:
        Lists in an object array ``[n]``.
    """
    most = num_words or max([max(text, default=0) for text in texts], default=0)
    limited = np.empty(len(texts), object)
    for i, text in enumerate(texts):
        if oov_char is None:
            limited[i] = [word for word in text if skip_top <= word < most]
        else:
            limited[i] = [w if skip_top <= w < most else oov_char for w in text]
    return limited


def read_word_index(path: str | os.PathLike) -> dict[str, int]:
    """Return the index of each word, from a JSON file.

    Raises:
        DataFileError: If the file has other contents; a ``ValueError``.
    """
    import json

    with open(path, "rb") as file:
        content = file.read(LARGEST + 1)
    try:
        index = json.loads(content) if len(content) <= LARGEST else None
    except (ValueError, RecursionError) as error:
        raise DataFileError(path, f"no JSON file ({error}).") from error
    if type(index) is not dict or not set(map(type, index.values())) <= {int}:
        raise DataFileError(path, "a word index must be an object of words and ints.")
    return index
