"""Positions: N elements, save, the rest, in a new chain, are what one run gives."""

import json
import os
import tempfile
import time

import numpy as np
import pytest

import tapewright as tw
from tapewright.data import Dataset

Y = np.arange(10)


def numbers():
    return Dataset.from_tensor_slices(Y)


def generated():
    return Dataset.from_generator(lambda: iter(range(10)))


def doubled(ds):
    return ds.map(lambda x: x * 2)


def lines():
    """Two files of lines, written once."""
    folder = tempfile.gettempdir()
    paths = [f"{folder}/tapewright_lines_{os.getpid()}_{i}" for i in range(2)]
    for i, path in enumerate(paths):
        with open(path, "w") as file:
            file.write("".join([f"{n}\n" for n in range(4 + i)]))
    return tw.data.TextLineDataset(paths)


CHAINS = {
    "files": lambda: lines().shuffle(4),
    "slices": numbers,
    "range": lambda: Dataset.range(10),
    "tensors": lambda: Dataset.from_tensors(Y).repeat(4),
    "generator": generated,
    "map": lambda: doubled(numbers()),
    "random map": lambda: numbers().map(lambda x: tw.random.uniform([])),
    "filter": lambda: numbers().filter(lambda x: x % 3 != 1),
    "zip": lambda: Dataset.zip((numbers(), generated().shuffle(4))),
    "concatenate": lambda: numbers().take(3).concatenate(numbers()),
    "enumerate": lambda: numbers().enumerate(),
    "batch": lambda: numbers().batch(3),
    "collected batch": lambda: generated().batch(3, drop_remainder=True),
    "padded batch": lambda: generated().padded_batch(3),
    "unbatch": lambda: numbers().shuffle(10).batch(4).unbatch(),
    "full shuffle": lambda: numbers().shuffle(10).batch(3),
    "small shuffle": lambda: numbers().shuffle(4).batch(3),
    "shuffled elements": lambda: generated().shuffle(4),
    "shuffle twice": lambda: numbers().shuffle(10).shuffle(3),
    "repeated shuffle": lambda: numbers().shuffle(10).repeat(3).batch(4),
    "shuffled repeat": lambda: numbers().repeat(3).shuffle(7),
    "take and skip": lambda: numbers().shuffle(10).skip(2).take(6),
    "shard": lambda: numbers().shuffle(10, seed=1).shard(2, 1),
    "cache": lambda: doubled(numbers().shuffle(10)).cache().repeat(2),
    "cache and shuffle": lambda: (
        doubled(numbers()).cache().shuffle(10).repeat(2).batch(3)
    ),
    "prefetch": lambda: numbers().shuffle(10).repeat(2).batch(3).prefetch(2),
    "interleave": lambda: numbers().interleave(Dataset.range, 2, 2),
    "scan": lambda: numbers().scan(np.int64(0), lambda s, x: (s + x, s + x)),
    "random scan": lambda: generated().scan(
        0.0, lambda s, x: (tw.random.uniform([]), s)
    ),
    "take while": lambda: numbers().shuffle(10).take_while(lambda x: x != 4).repeat(2),
    "unique": lambda: numbers().map(lambda x: x % 6).unique().repeat(2),
    "ignored errors": lambda: (
        numbers().map(lambda x: 6 // (int(x) % 4)).ignore_errors().batch(2)
    ),
    "rebatch": lambda: numbers().shuffle(10).batch(4).rebatch([3, 1]),
    "groups": lambda: (
        numbers()
        .shuffle(10)
        .group_by_window(lambda x: x % 3, lambda k, w: w.shuffle(9).batch(2), 3)
    ),
    "choose": lambda: Dataset.choose_from_datasets(
        [numbers().shuffle(10), generated()], Dataset.range(2).repeat(), False
    ),
    "sample": lambda: Dataset.sample_from_datasets(
        [numbers(), numbers().shuffle(5)], [0.3, 0.7], rerandomize_each_iteration=True
    ),
    "resample": lambda: numbers().rejection_resample(lambda x: x % 2, [0.8, 0.2]),
    "random": lambda: (
        Dataset.random(seed=1).take(9).concatenate(Dataset.counter().take(3))
    ),
    "options": lambda: numbers().shuffle(10).with_options(tw.data.Options()).batch(3),
    "cardinality": lambda: numbers().apply(tw.data.experimental.assert_cardinality(10)),
    "parallel map": lambda: (
        numbers()
        .shuffle(4)
        .map(lambda x: tw.random.uniform([]), num_parallel_calls=3)
        .batch(2)
    ),
    "parallel interleave": lambda: numbers().interleave(
        lambda n: Dataset.range(n).shuffle(9), 3, 2, num_parallel_calls=2
    ),
    "window": lambda: numbers().window(4, 2).flat_map(lambda w: w.batch(2)),
}


def plain(element):
    return (
        tuple(map(plain, element))
        if isinstance(element, tuple)
        else str(element.numpy())
    )


def take(iterator, count=None):
    found = []
    while count is None or len(found) < count:
        try:
            found.append(plain(next(iterator)))
        except StopIteration:
            break
    return found


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("done", [0, 1, 4, None])
def test_a_new_process_goes_on_where_the_first_stood(name, done):
    """The second chain has another global seed, as another process would."""
    tw.random.set_seed(1)
    first = CHAINS[name]()
    take(iter(first))  # an epoch before
    iterator = iter(first)
    take(iterator, done)
    state = json.loads(json.dumps(iterator.state()))
    rest, next_epoch = take(iterator), take(iter(first))

    tw.random.set_seed(2)
    second = CHAINS[name]()
    restored = iter(second)
    restored.restore(state)
    assert take(restored) == rest
    assert take(iter(second)) == next_epoch


def test_every_position_of_parallel_maps_is_that_of_one_thread():
    def chain(calls):
        return numbers().map(lambda x: (x, tw.random.uniform([])), calls)

    tw.random.set_seed(1)
    expected = take(iter(chain(None)))
    for done in range(11):
        tw.random.set_seed(1)
        iterator = iter(chain(2))
        assert take(iterator, done) == expected[:done]
        state = iterator.state()
        other = iter(chain(None))
        other.restore(state)
        assert take(other) == expected[done:]


def test_positions_without_an_order_lose_no_element():
    def chain():
        ds = numbers().map(
            lambda x: time.sleep(0.002 * (int(x) % 4 == 0)) or x, 3, False
        )
        return ds.repeat(2)

    order = take(iter(chain()))
    assert sorted(order) == sorted(2 * [str(n) for n in range(10)])
    for done in range(0, 21, 3):
        iterator = iter(chain())
        found = take(iterator, done)
        state = json.loads(json.dumps(iterator.state()))
        for ds in (chain(), numbers().map(lambda x: x).repeat(2)):
            other = iter(ds)
            other.restore(state)
            assert sorted(found + take(other)) == sorted(order)


@pytest.mark.parametrize("name", CHAINS)
def test_the_same_iterator_can_be_turned_back(name):
    ds = CHAINS[name]()
    iterator = iter(ds)
    take(iterator, 2)
    state = iterator.state()
    rest = take(iterator)
    iterator.restore(state)
    assert take(iterator) == rest


def test_a_state_does_not_change_as_the_iterator_goes_on():
    iterator = iter(numbers().shuffle(10).batch(2))
    state = iterator.state()
    kept = json.dumps(state)
    take(iterator)
    assert json.dumps(state) == kept


def test_an_endless_data_set_resumes_in_a_later_round():
    ds = numbers().shuffle(10, seed=3).repeat()
    iterator = iter(ds)
    take(iterator, 47)
    state = iterator.state()
    expected = take(iterator, 30)
    other = iter(numbers().shuffle(10, seed=3).repeat())
    other.restore(state)
    assert take(other, 30) == expected


def test_the_state_of_another_chain_is_refused():
    state = iter(numbers().batch(2)).state()
    with pytest.raises(ValueError, match="another dataset"):
        iter(numbers()).restore(state)
    with pytest.raises(ValueError, match="another dataset"):
        iter(numbers()).restore(None)


def test_a_restored_failure_goes_on():
    fail = [True]
    ds = numbers().map(lambda x: 1 // 0 if fail[0] and int(x) == 2 else x)
    iterator = iter(ds)
    take(iterator, 2)
    state = iterator.state()
    with pytest.raises(ZeroDivisionError):
        next(iterator)
    fail[0] = False
    iterator.restore(state)
    assert take(iterator) == [str(n) for n in range(2, 10)]


def test_a_position_that_cannot_be_reached_leaves_the_iterator_where_it_was():
    fail = []

    def numbers_or_error():
        for n in range(6):
            if fail and n == 2:
                raise ZeroDivisionError
            yield n

    ds = Dataset.from_generator(numbers_or_error)
    iterator = iter(ds)
    take(iterator, 4)
    state = iterator.state()
    other = iter(ds)
    take(other, 1)
    before = other.state()["place"]
    fail.append(True)
    with pytest.raises(ZeroDivisionError):
        other.restore(state)
    del fail[:]
    assert other.state()["place"] == before
    assert take(other) == ["1", "2", "3", "4", "5"]
