"""`split_dataset`, `timeseries_dataset_from_array` and `set_random_seed`."""

import random

import numpy as np
import pytest

import tapewright as tw
from tapewright.data import Dataset
from tapewright.keras.utils import (
    set_random_seed,
    split_dataset,
    timeseries_dataset_from_array,
)

X, Y = np.arange(20.0).reshape(10, 2), np.arange(10)


def numbers(dataset):
    return [int(y) for _, y in dataset]


@pytest.mark.parametrize(
    "sizes, expected",
    [
        ({"left_size": 0.8}, (8, 2)),
        ({"right_size": 3}, (7, 3)),
        ({"left_size": 3, "right_size": 2}, (3, 2)),
        ({"left_size": 0.55, "right_size": 0.2}, (6, 2)),
    ],
)
@pytest.mark.parametrize("kind", [tuple, list])
def test_one_part_is_from_the_front_the_other_from_the_end(sizes, expected, kind):
    left, right = split_dataset(kind([X, Y]), **sizes)
    assert numbers(left) == list(range(expected[0]))
    assert numbers(right) == list(range(10 - expected[1], 10))
    assert next(iter(left))[0].dtype == tw.float64


def test_samples_are_mixed_in_pythons_order():
    left, right = split_dataset((X, Y), left_size=0.5, shuffle=True, seed=3)
    order = list(range(10))
    random.Random(3).shuffle(order)
    assert numbers(left) + numbers(right) == order


def test_a_batched_data_set_gives_batched_parts():
    ds = Dataset.from_tensor_slices({"x": X, "y": Y})
    left, right = split_dataset(ds.batch(4), left_size=0.6)
    assert [len(batch["y"]) for batch in left] == [4, 2] and len(right) == 1
    assert len(split_dataset(ds, right_size=1)[0]) == 9


@pytest.mark.parametrize(
    "dataset, sizes, error, words",
    [
        (X, {}, ValueError, "left_size.*right_size"),
        (X, {"left_size": 10}, ValueError, "left_size .*1.*9.*got 10"),
        (X, {"left_size": 1.5}, ValueError, "left_size"),
        (X, {"left_size": "a"}, TypeError, "left_size"),
        (X, {"left_size": 0.7, "right_size": 0.7}, ValueError, "10 samples .*7 and 7"),
        (
            (X, Y[:3]),
            {"left_size": 1},
            ValueError,
            r"samples.*got shapes \[\(10, 2\), \(3,\)\]",
        ),
        (3, {"left_size": 1}, TypeError, "got int"),
        (Dataset.range(0), {"left_size": 1}, ValueError, "empty"),
    ],
)
def test_what_cannot_be_split_is_named(dataset, sizes, error, words):
    with pytest.raises(error, match=words):
        split_dataset(dataset, **sizes)


def test_windows_come_with_the_target_at_their_first_index():
    series = np.arange(12)
    ds = timeseries_dataset_from_array(
        series, series * 10, 3, sequence_stride=2, sampling_rate=2, batch_size=3
    )
    windows, targets = zip(*ds.as_numpy_iterator(), strict=True)
    assert np.concatenate(windows).tolist() == [[s, s + 2, s + 4] for s in (0, 2, 4, 6)]
    assert np.concatenate(targets).tolist() == [0, 20, 40, 60]


def test_windows_stay_in_their_part_of_the_series():
    ds = timeseries_dataset_from_array(
        np.arange(12), None, 2, batch_size=None, start_index=3, end_index=6
    )
    assert [w.tolist() for w in ds.as_numpy_iterator()] == [[3, 4], [4, 5]]


@pytest.mark.parametrize("length", [10, 12])
def test_a_series_that_is_too_short_has_no_windows(length):
    assert not list(timeseries_dataset_from_array(np.arange(9), None, length))


def test_shuffled_windows_keep_their_targets():
    series = np.arange(30)
    ds = timeseries_dataset_from_array(series, series, 4, shuffle=True, seed=1)
    ((windows, targets),) = ds.as_numpy_iterator()
    assert np.array_equal(windows[:, 0], targets)
    assert targets.tolist() != sorted(targets) == list(range(27))


@pytest.mark.parametrize(
    "options", [{"sequence_stride": 0}, {"sampling_rate": 9}, {"start_index": 9}]
)
def test_windows_that_make_no_sense_are_refused(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))}"):
        timeseries_dataset_from_array(np.arange(9), None, 3, **options)


def test_one_seed_is_for_all_generators():
    def drawn():
        set_random_seed(5)
        return random.random(), np.random.rand(), float(tw.random.normal([]))

    assert drawn() == drawn()


@pytest.mark.parametrize("seed", [None, 1.5, -1, 2**32])
def test_a_seed_is_an_integer(seed):
    with pytest.raises(ValueError, match="seed must be"):
        set_random_seed(seed)


def test_data_sets_of_other_libraries_are_refused():
    with pytest.raises(ValueError, match="preferred_backend must be .*'torch'"):
        split_dataset(np.arange(4), 0.5, preferred_backend="torch")
    with pytest.raises(ValueError, match="format must be 'tf'.*'grain'"):
        timeseries_dataset_from_array(np.arange(4), None, 2, format="grain")
