"""`keras.preprocessing.sequence`: windows of series and pairs of words, as in Keras."""

import random

import numpy as np
import pytest

from tapewright import Sequential
from tapewright.keras.preprocessing.sequence import (
    TimeseriesGenerator,
    make_sampling_table,
    skipgrams,
)
from tapewright.layers import Dense, Flatten


def test_skipgrams_are_those_of_keras():  # 3.15, with the same state of `random`
    random.seed(1)
    pairs = [[1, 3], [1, 2], [2, 1], [2, 1]], [0, 1, 1, 0]
    assert skipgrams([3, 0, 1, 2], 5, window_size=1) == pairs
    random.seed(1)
    table = [0, 1, 1, 1, 0.1]
    options = {"negative_samples": 0.5, "shuffle": False, "categorical": True}
    pairs = [[3, 4], [1, 4], [3, 1]], [[0, 1], [0, 1], [1, 0]]
    found = skipgrams([3, 4, 1], 5, window_size=1, sampling_table=table, **options)
    assert found == pairs
    pairs = [[1, 4], [3, 4], [4, 1], [4, 3]], [1, 1, 1, 1]
    assert skipgrams([3, 4, 1], 5, window_size=1, negative_samples=0, seed=3) == pairs
    assert skipgrams([3, 4, 1], 5, seed=3) == skipgrams([3, 4, 1], 5, seed=3)
    wanted = [0.03152248, 0.03152248, 0.05475973, 0.07415564]
    np.testing.assert_allclose(make_sampling_table(4, 1e-3), wanted, 1e-6)


def test_windows_of_a_series_come_with_the_targets_behind_them():
    data = np.arange(24.0).reshape(12, 2)
    options = {"sampling_rate": 2, "stride": 3, "batch_size": 2}
    series = TimeseriesGenerator(data, np.arange(12), 4, **options)
    assert len(series) == 2
    samples, targets = series[0]
    np.testing.assert_array_equal(samples, [data[0:4:2], data[3:7:2]])
    np.testing.assert_array_equal(targets, [4, 7])
    assert series[1][1].tolist() == [10]
    back = TimeseriesGenerator(data, np.arange(12), 3, end_index=5, reverse=True)
    np.testing.assert_array_equal(back[0][0][0], data[2::-1])
    drawn = TimeseriesGenerator(data, np.arange(12), 3, shuffle=True, batch_size=4)[0]
    assert drawn[0].shape == (4, 3, 2) and drawn[1].min() >= 3
    with pytest.raises(ValueError, match="same length, got 12 and 5"):
        TimeseriesGenerator(data, np.arange(5), 3)
    with pytest.raises(ValueError, match="no window fits"):
        TimeseriesGenerator(data, np.arange(12), 12)
    model = Sequential([Flatten(), Dense(1)])
    model.compile("sgd", "mse")
    assert len(model.predict(back, verbose=0)) == 3
    model.fit(back, verbose=0)
