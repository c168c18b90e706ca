"""`keras.preprocessing.sequence`: pad sequences, windows of time series, skip-grams."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

from ...training.data_adapters.py_dataset_adapter import PyDataset
from ...utils.numerical import pad_sequences

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["TimeseriesGenerator", "make_sampling_table", "pad_sequences", "skipgrams"]


class TimeseriesGenerator(PyDataset):
    """Generate batches of windows of a time series, each with the target of the next step.

    The sample of step ``i`` is ``data[i - length : i : sampling_rate]``, its target
    ``targets[i]``. For new code, prefer `timeseries_dataset_from_array`.

    Args:
        data: Series, an array or list of time steps.
        targets: Targets, one per time step.
        length: Length of a window, in steps.
        sampling_rate: Distance between the steps of a window.
        stride: Distance between successive samples, in steps.
        start_index: First step of a window.
        end_index: Step of the last target; None for the last step.
        shuffle: If True, draw the steps of each batch at random, with NumPy's global
            generator.
        reverse: If True, windows are in reverse order.
        batch_size: Size of the batches; the last batch may be smaller.
        **kwargs: Base class arguments; see `keras.utils.PyDataset`.

    Shapes:
        Samples ``[batch, ceil(length / sampling_rate), ...]``, targets
        ``[batch, ...]``.

    Raises:
        ValueError: If ``data`` and ``targets`` have different lengths, or no window
            fits.

    Example:
        >>> import numpy as np
        >>> TimeseriesGenerator = keras.preprocessing.sequence.TimeseriesGenerator
        >>> series = TimeseriesGenerator(np.arange(6), np.arange(6), length=3, batch_size=2)
        >>> len(series), series[1]
        (2, (array([[2, 3, 4]]), array([5])))
    """

    def __init__(
        self,
        data: Any,
        targets: Any,
        length: int,
        sampling_rate: int = 1,
        stride: int = 1,
        start_index: int = 0,
        end_index: int | None = None,
        shuffle: bool = False,
        reverse: bool = False,
        batch_size: int = 128,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if len(data) != len(targets):
            raise ValueError(
                f"TimeseriesGenerator: data and targets must have the same length, got "
                f"{len(data)} and {len(targets)}"
            )
        self.data = data
        self.targets = targets
        self.length = length
        self.sampling_rate = sampling_rate
        self.stride = stride
        self.start_index = start_index + length
        self.end_index = len(data) - 1 if end_index is None else end_index
        self.shuffle = shuffle
        self.reverse = reverse
        self.batch_size = batch_size
        if self.start_index > self.end_index:
            raise ValueError(
                f"TimeseriesGenerator: no window fits: start_index + length is "
                f"{self.start_index}, end_index is {self.end_index}"
            )

    def __len__(self) -> int:
        steps = self.batch_size * self.stride
        return (self.end_index - self.start_index + steps) // steps

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        stop = self.end_index + 1
        if self.shuffle:
            rows = np.random.randint(self.start_index, stop, size=self.batch_size)
        else:
            steps = self.batch_size * self.stride
            first = self.start_index + steps * index
            rows = np.arange(first, min(first + steps, stop), self.stride)
        every = self.sampling_rate
        samples = np.array([self.data[row - self.length : row : every] for row in rows])
        targets = np.array([self.targets[row] for row in rows])
        return (samples[:, ::-1] if self.reverse else samples), targets


def make_sampling_table(size: int, sampling_factor: float = 1e-5) -> np.ndarray:
    """Return the probabilities with which `skipgrams` keeps words, by rank.

    The probability is ``min(1, sqrt(f))`` where ``f`` is ``sampling_factor`` divided by
    the frequency of a word, which by Zipf's law is ``1 / (rank * (log(rank) + 0.577) +
    1/2 - 1/(12 * rank))``.

    Args:
        size: Number of words.
        sampling_factor: Frequency above which words are sampled less often.

    Shapes:
        Result ``[size]``.

    References:
        Mikolov et al., "Distributed representations of words and phrases and their
        compositionality" (2013).

    Example:
        >>> keras.preprocessing.sequence.make_sampling_table(3).round(4)
        array([0.0032, 0.0032, 0.0055])
    """
    rank = np.arange(size)
    rank[:1] = 1  # no word has rank 0
    inverse_frequency = rank * (np.log(rank) + 0.577) + 0.5 - 1 / (12 * rank)
    return np.minimum(1.0, np.sqrt(sampling_factor * inverse_frequency))


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
    """Generate skip-gram pairs: words near each other, label 1, and random words, label 0.

    Args:
        sequence: Words as integers; 0 is not a word.
        vocabulary_size: One more than the largest word.
        window_size: Largest distance between the words of a pair.
        negative_samples: Number of pairs with label 0 per pair with label 1.
        shuffle: If True, shuffle the pairs.
        categorical: If True, labels are ``[1, 0]`` and ``[0, 1]`` instead of 0 and 1.
        sampling_table: Probability to keep each word, see `make_sampling_table`; None
            keeps all.
        seed: Seed of Python's random generator, or None to leave it alone.

    Returns:
        Pairs and labels, two lists of the same length.

    Example:
        >>> keras.preprocessing.sequence.skipgrams(
        ...     [5, 0, 7, 8], 10, window_size=2, negative_samples=0, shuffle=False
        ... )
        ([[5, 7], [7, 5], [7, 8], [8, 7]], [1, 1, 1, 1])
    """
    draw: Any = random if seed is None else random.Random(seed)
    couples = []
    for i, word in enumerate(sequence):
        if not word:
            continue
        if sampling_table is not None and sampling_table[word] < draw.random():
            continue
        around = range(max(0, i - window_size), min(len(sequence), i + window_size + 1))
        couples += [[word, sequence[j]] for j in around if j != i and sequence[j]]
    labels: list[Any] = [[0, 1] if categorical else 1 for _ in couples]
    if negative_samples > 0:
        words = [word for word, _ in couples]
        draw.shuffle(words)
        for i in range(int(len(couples) * negative_samples)):
            word = words[i % len(words)]
            couples.append([word, draw.randint(1, vocabulary_size - 1)])
            labels.append([1, 0] if categorical else 0)
    if shuffle:
        seed = draw.randint(0, 10_000_000) if seed is None else seed
        random.Random(seed).shuffle(couples)
        random.Random(seed).shuffle(labels)
    return couples, labels
