"""Runs of data sets and the random numbers in their functions, found again elsewhere."""

import json
import random

import numpy as np
import pytest

import tapewright as tw
from tapewright.data import Dataset


def numbers(elements):
    return [int(element) for element in elements]


def noise(element):
    return tw.cast(element, "float32") + tw.random.normal(())


def yielded():
    for _ in range(6):
        yield tw.random.normal(())


def inner(element):
    return Dataset.range(4).shuffle(4).map(noise)


CAPTURED = Dataset.range(5).shuffle(5)

CHAINS = {
    "noise before shuffle": lambda: Dataset.range(9).map(noise).shuffle(5),
    "noise before prefetch": lambda: Dataset.range(9).map(noise).prefetch(3),
    "a generator that draws": lambda: Dataset.from_generator(yielded).shuffle(4),
    "data sets made for each element": lambda: Dataset.range(3).flat_map(inner),
    "one data set for each element": lambda: Dataset.range(3).interleave(
        lambda _: CAPTURED, cycle_length=2
    ),
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("taken", [0, 3])
def test_random_numbers_in_functions_are_found_again(name, taken):
    tw.random.set_seed(1)
    ds = CHAINS[name]()
    list(ds)  # an epoch before
    iterator = iter(ds)
    for _ in range(taken):
        next(iterator)
    state = json.loads(json.dumps(iterator.state()))
    rest = [float(x) for x in iterator]
    tw.random.set_seed(2)
    other = iter(CHAINS[name]())
    before = tw.random.get_global_generator().state.numpy().tolist()
    other.restore(state)
    assert [float(x) for x in other] == rest
    assert tw.random.get_global_generator().state.numpy().tolist() == before


def test_one_data_set_gives_each_element_its_own_order():
    orders = np.array(numbers(CHAINS["one data set for each element"]())).reshape(-1)
    flat = numbers(Dataset.range(6).flat_map(lambda _: CAPTURED))
    assert len({tuple(flat[i : i + 5]) for i in range(0, 30, 5)}) > 3
    assert sorted(orders) == sorted(list(range(5)) * 3)


def test_runs_that_began_after_this_one_are_counted():
    """As where one shuffled data set serves training and validation."""
    ds = Dataset.range(20).shuffle(20, seed=1)
    training = iter(ds)
    next(training)
    list(ds)
    state = training.state()
    following = numbers(ds)
    other = Dataset.range(20).shuffle(20, seed=1)
    iter(other).restore(state)
    assert numbers(other) == following


def test_a_data_set_tells_which_order_comes_next():
    ds = Dataset.range(20).shuffle(20).batch(4)
    list(ds)
    state = json.loads(json.dumps(ds.state()))
    following = [x.numpy().tolist() for x in ds]
    other = Dataset.range(20).shuffle(20).batch(4)
    other.restore(state)
    assert [x.numpy().tolist() for x in other] == following


def test_to_tell_does_not_begin_a_run():
    ds, other = [Dataset.range(20).shuffle(20, seed=1) for _ in range(2)]
    ds.state()
    assert numbers(ds) == numbers(other)


@pytest.mark.parametrize(
    "make",
    [
        lambda ds: ds.map(lambda x: x + int(np.random.randint(9))).shuffle(3),
        lambda ds: ds.map(lambda x: x + random.randint(0, 9)).prefetch(1),
        lambda ds: ds.filter(lambda x: np.random.rand() < 2).batch(2).unbatch(),
        lambda ds: ds.flat_map(lambda x: Dataset.range(np.random.randint(1, 3))),
        lambda ds: Dataset.from_generator(lambda: iter([np.random.rand()])),
    ],
)
def test_numbers_that_cannot_be_found_again_are_warned_of_once(make):
    iterator = iter(make(Dataset.range(5)))
    next(iterator)
    with pytest.warns(UserWarning, match="global generator of NumPy or Python"):
        iterator.state()
    iterator.state()


def test_numbers_that_a_backup_brings_back_are_not_warned_of():
    ds = Dataset.range(9).shuffle(9).map(lambda x: x + int(np.random.randint(9)))
    iterator = iter(ds.batch(2))
    next(iterator)
    iterator.state()


def test_to_look_at_the_first_element_leaves_no_trace():
    ds, other = [Dataset.range(20).shuffle(20, seed=1) for _ in range(2)]
    mapped = ds.map(lambda x: np.int64(int(x)))
    assert mapped.element_spec.shape == ()
    assert numbers(mapped) == numbers(other)
