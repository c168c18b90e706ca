"""`keras.preprocessing.sequence`: sequences of numbers of words."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..utils.numerical import pad_sequences

__all__ = ["make_sampling_table", "pad_sequences", "skipgrams"]


def make_sampling_table(
    size: int, sampling_factor: float = 1e-5
) -> np.ndarray[Any, Any]:
    """The probability with which word2vec keeps the word of each rank: ``[size]``.

    That is ``min(1, sqrt(factor / frequency))``, where the frequency of rank ``r`` follows
    Zipf's law: ``1 / (r (log(r) + 0.577) + 1/2 - 1/(12 r))``. Source: Mikolov et al. 2013,
    arXiv:1310.4546.

    >>> make_sampling_table(3).round(4)
    array([0.0032, 0.0032, 0.0055])
    """
    rank = np.maximum(np.arange(size), 1)
    frequency = 1 / (rank * (np.log(rank) + 0.577) + 0.5 - 1 / (12 * rank))
    return np.minimum(1, np.sqrt(sampling_factor / frequency))


def skipgrams(
    sequence: Sequence[int],
    vocabulary_size: int,
    window_size: int = 4,
    negative_samples: float = 1.0,
    shuffle: bool = True,
    categorical: bool = False,
    sampling_table: Any = None,
    seed: int | None = None,
) -> tuple[list[list[int]], list[Any]]:
    """Pairs of words that stand near each other, label 1, and random pairs, label 0.

    Args: ``sequence``: numbers of words; 0 stands for none. ``window_size``: the greatest
    distance of a pair; ``negative_samples``: random pairs for each other pair;
    ``categorical``: labels ``[0, 1]`` and ``[1, 0]``; ``sampling_table``: the probability
    to take each word, see `make_sampling_table`; ``seed``: the same pairs at each call,
    else those of Python's `random`.

    >>> skipgrams([1, 2, 3], 4, window_size=1, negative_samples=0, shuffle=False)
    ([[1, 2], [2, 1], [2, 3], [3, 2]], [1, 1, 1, 1])
    """
    drawn: Any = random if seed is None else random.Random(seed)
    couples = []
    for i, word in enumerate(sequence):
        if not word:
            continue
        if sampling_table is not None and sampling_table[word] < drawn.random():
            continue
        begin, end = max(0, i - window_size), i + window_size + 1
        near = [*sequence[begin:i], *sequence[i + 1 : end]]
        couples += [[word, other] for other in near if other]
    no, yes = ([1, 0], [0, 1]) if categorical else (0, 1)
    labels: list[Any] = [yes] * len(couples)
    words = [word for word, _ in couples]
    drawn.shuffle(words)
    for i in range(int(len(couples) * negative_samples)):
        couples.append([words[i % len(words)], drawn.randint(1, vocabulary_size - 1)])
        labels.append(no)
    if shuffle:
        pairs = list(zip(couples, labels))
        drawn.shuffle(pairs)
        couples, labels = [c for c, _ in pairs], [label for _, label in pairs]
    return couples, labels
