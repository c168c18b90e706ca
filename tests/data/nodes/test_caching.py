"""`cache`: what is computed once."""

import numpy as np

from tapewright.data import (
    Dataset,
)

from ..elements_of import X, Y, values

# --- cache


def test_cache_calls_the_function_once_for_each_element():
    calls = []
    ds = Dataset.range(4).map(lambda x: calls.append(1) or x * 2).cache()
    assert values(ds) == values(ds) == values(ds.repeat(1)) == [0, 2, 4, 6]
    assert len(calls) == 4


def test_a_run_that_is_left_early_fills_no_cache():
    ds = Dataset.range(4).map(lambda x: x * 2).cache()
    next(iter(ds))
    assert values(ds) == [0, 2, 4, 6]


def test_cached_rows_are_shuffled_and_batched():
    ds = Dataset.from_tensor_slices((X, Y)).map(lambda x, y: (x * 2, y)).cache()
    ds = ds.shuffle(12, seed=1).batch(5)
    for _ in range(3):
        x, y = map(np.concatenate, zip(*values(ds), strict=True))
        assert sorted(y) == list(range(12)) and np.array_equal(x, X[y] * 2)
