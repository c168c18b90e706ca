"""`map`, `filter`, `interleave`, and random numbers in their functions."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.data import (
    Dataset,
)

from ..elements_of import X, Y, values


def test_map_gets_the_parts_of_a_tuple_as_arguments():
    assert values(Dataset.from_tensor_slices((Y, X)).map(lambda y, x: y).take(2)) == [
        0,
        1,
    ]


def test_map_turns_a_list_into_a_tuple():
    assert values(Dataset.range(2).map(lambda x: [x, x])) == [(0, 0), (1, 1)]


def test_map_may_compute_in_numpy():
    assert values(Dataset.range(3).map(lambda x: np.sqrt(x.numpy() ** 2))) == [0, 1, 2]


def test_the_spec_of_numpy_results_is_that_of_the_first():
    ds = Dataset.range(3).map(lambda x: np.float32(x.numpy()) * np.ones(4, "f4"))
    assert ds.element_spec == tw.TensorSpec([4], "float32")


def test_the_spec_of_a_function_of_arrays_is_that_of_the_first():
    ds = Dataset.range(3).map(lambda x: x.array.astype("float32") * np.ones(4, "f4"))
    assert ds.element_spec == tw.TensorSpec([4], "float32")


def test_a_mistake_in_a_function_is_not_passed_over_for_the_spec():
    calls = []

    def broken_at_first(x):
        calls.append(x)
        if len(calls) == 1:
            raise RuntimeError("no such file")
        return x

    with pytest.raises(RuntimeError, match="no such file"):
        assert Dataset.range(3).map(broken_at_first).element_spec


def test_filter_keeps_what_is_true():
    assert values(Dataset.range(10).filter(lambda x: x % 3 == 0)) == [0, 3, 6, 9]


@pytest.mark.parametrize("predicate", [lambda x: x, lambda x: [False]])
def test_filter_refuses_what_is_no_truth_value(predicate):
    with pytest.raises(TypeError, match="filter: predicate must return a bool"):
        list(Dataset.range(3).filter(predicate))


def test_interleave_takes_turns_by_blocks():
    ds = Dataset.range(1, 4).interleave(
        lambda n: Dataset.from_tensors(n).repeat(3), cycle_length=2, block_length=2
    )
    assert values(ds) == [1, 1, 2, 2, 1, 2, 3, 3, 3]


@pytest.mark.parametrize("calls", [None, tw.data.AUTOTUNE])
def test_interleave_opens_four_data_sets_by_default(calls):
    ds = Dataset.range(5).interleave(
        lambda n: Dataset.from_tensors(n).repeat(2), num_parallel_calls=calls
    )
    assert values(ds) == [0, 1, 2, 3, 0, 1, 2, 3, 4, 4]  # TensorFlow's of 4 CPUs


# --- random numbers in functions


def test_random_numbers_in_map_differ_from_element_to_element():
    ds = Dataset.range(4).map(lambda _: tw.random.uniform([]))
    assert len(set(values(ds))) == 4


def test_a_seed_in_map_gives_each_element_numbers_and_each_run_the_same():
    def drawn(function, calls=None):
        return values(Dataset.range(6).map(function, num_parallel_calls=calls))

    def draw(_):
        return tw.stack([tw.random.uniform([], seed=3), tw.random.uniform([], seed=3)])

    eager = drawn(draw)
    assert len({x for pair in eager for x in pair}) == 12
    assert drawn(draw) == eager == drawn(draw, 3) == drawn(tw.function(draw))
    assert drawn(lambda _: tw.random.uniform([], seed=4)) != [x for x, _ in eager]
    image = [[[0.0], [1.0]]]  # as in TensorFlow, and keras.random as in Keras
    flips = drawn(lambda _: tw.image.random_flip_left_right(image, seed=3)[0, 0, 0])
    assert set(flips) == {0.0, 1.0}
    assert len(set(drawn(lambda _: keras.random.uniform([], seed=3)))) == 1


def test_random_numbers_in_map_are_the_same_in_a_thread_ahead():
    def drawn(prefetch):
        tw.random.set_seed(1)
        ds = Dataset.range(6).map(lambda _: tw.random.uniform([]))
        found = []
        for value in ds.prefetch(3) if prefetch else ds:
            found.append((float(value), float(tw.random.uniform([]))))
        return found

    assert drawn(False) == drawn(True)
