"""`shuffle`: orders, buffers, seeds."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.data import (
    Dataset,
)

from ..elements_of import Y, values

# --- order


@pytest.mark.parametrize("buffer_size", [1, 3, 12, 100])
@pytest.mark.parametrize("mapped", [False, True])
def test_shuffle_gives_each_element_once(buffer_size, mapped):
    ds = Dataset.from_tensor_slices(Y)
    ds = ds.map(lambda y: y) if mapped else ds
    assert sorted(values(ds.shuffle(buffer_size))) == list(range(12))


@pytest.mark.parametrize("at_once", [1, 5, 1024])
@pytest.mark.parametrize("buffer_size", [3, 12, 100])
@pytest.mark.parametrize(
    "change",
    [
        lambda ds: ds,
        lambda ds: ds.repeat(3),
        lambda ds: ds.skip(2).take(7),
        lambda ds: ds.take(0),
        lambda ds: ds.shuffle(4, seed=3).repeat(2),
        lambda ds: ds.shuffle(12, seed=3),
        lambda ds: ds.shuffle(12, seed=3).shard(2, 1),
    ],
)
def test_gathered_batches_follow_the_same_order_as_elements(
    change, buffer_size, at_once, monkeypatch
):
    monkeypatch.setattr("tapewright.data.nodes.ordering.AT_ONCE", at_once)
    rows = change(Dataset.from_tensor_slices(Y)).shuffle(buffer_size, seed=1)
    elements = change(Dataset.from_tensor_slices(Y).map(lambda y: y))
    elements = elements.shuffle(buffer_size, seed=1)
    for _ in range(2):
        expected = values(elements)
        assert not expected or expected != sorted(expected)
        assert sum(values(rows.batch(5)), []) == expected


def test_a_buffer_of_one_keeps_the_order():
    assert values(Dataset.range(5).shuffle(1)) == [0, 1, 2, 3, 4]


def test_an_element_never_comes_before_the_buffer_reaches_it():
    order = values(Dataset.range(50).shuffle(5, seed=0))
    assert all(place >= number - 5 for place, number in enumerate(order))


def test_an_unknown_buffer_is_the_whole_data_set():
    ds = Dataset.range(9).filter(lambda x: x >= 0)
    whole = values(ds.shuffle(tw.data.UNKNOWN_CARDINALITY, seed=1))
    assert whole == values(ds.shuffle(9, seed=1))


def test_each_run_has_an_order_of_its_own():
    ds = Dataset.range(20).shuffle(20, seed=1)
    assert values(ds) != values(ds)
    assert (
        len(set(map(str, [values(ds.repeat(3))[i : i + 20] for i in (0, 20, 40)]))) == 3
    )


def test_reshuffling_can_be_switched_off():
    ds = Dataset.range(20).shuffle(20, seed=1, reshuffle_each_iteration=False)
    assert values(ds) == values(ds)


def test_the_order_follows_from_its_seed():
    orders = [values(Dataset.range(20).shuffle(20, seed=seed)) for seed in (3, 3, 4)]
    assert orders[0] == orders[1] != orders[2]


def test_the_order_follows_from_the_global_seed():
    orders = []
    for seed in (3, 3, 4):
        tw.random.set_seed(seed)
        orders.append(values(Dataset.range(20).shuffle(20)))
    assert orders[0] == orders[1] != orders[2]


def test_every_place_is_equally_likely_for_every_element():
    places = np.zeros((4, 4))
    ds = Dataset.range(4).shuffle(4, seed=5)
    for _ in range(400):
        places[np.arange(4), values(ds.batch(4))[0]] += 1
    assert abs(places - 100).max() < 40  # more than four standard deviations
