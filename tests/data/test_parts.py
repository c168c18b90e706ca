"""`part_of_batches`: joined, the parts are the batches, for every chain and any number."""

import json

import numpy as np
import pytest

import tapewright as tw
from tapewright.data import Dataset
from tapewright.data.nodes.batching import Batch
from tapewright.data.parts import (
    is_per_worker,
    mark_per_worker,
    part_of_batches,
    per_worker_batches,
    rows_of_batches,
)

from .elements_of import X, Y


def rows():
    return Dataset.from_tensor_slices((X, {"y": Y}))


def numbers():
    return Dataset.from_tensor_slices(Y)


def noisy(ds):
    return ds.map(lambda y: tw.cast(y, "float32") + tw.random.uniform([]))


def ragged(y):
    return tw.fill([int(y) % 5], y)


CHAINS = {
    "arrays": lambda: rows().batch(5),
    "arrays, shuffled": lambda: rows().shuffle(12).batch(5),
    "arrays, through a small buffer": lambda: rows().shuffle(4).batch(5),
    "only whole batches": lambda: rows().shuffle(12).batch(5, drop_remainder=True),
    "rows repeated": lambda: rows().shuffle(12).repeat(3).batch(5),
    "batches repeated": lambda: rows().shuffle(12).batch(5).repeat(3),
    "batches taken": lambda: rows().shuffle(12).batch(3).skip(1).take(2),
    "batches shuffled": lambda: rows().batch(2).shuffle(3).shard(2, 1),
    "prefetch": lambda: rows().shuffle(12).batch(5).prefetch(2).repeat(2),
    "concatenate": lambda: rows().batch(5).concatenate(rows().shuffle(12).batch(7)),
    "map": lambda: noisy(numbers()).batch(5),
    "map twice": lambda: noisy(noisy(numbers()).shuffle(7)).batch(5),
    "map, repeated": lambda: noisy(numbers().shuffle(12)).repeat(3).batch(5),
    "map and filter": lambda: noisy(numbers()).filter(lambda x: x > 4).batch(5),
    "map of numbers": lambda: noisy(Dataset.range(12)).shuffle(5).batch(5),
    "map after batch": lambda: noisy(numbers().batch(5)),
    "cache of rows": lambda: noisy(numbers()).cache().shuffle(12).batch(5).repeat(3),
    "cache of batches": lambda: noisy(numbers()).batch(5).cache().repeat(3),
    "cache of shuffled": lambda: noisy(numbers().shuffle(12)).batch(5).cache(),
    "padded": lambda: numbers().map(ragged).padded_batch(4),
    "generator": lambda: Dataset.from_generator(lambda: iter(range(12))).batch(5),
    "batches in arrays": lambda: Dataset.from_tensor_slices(X.reshape(3, 4, 2)),
    "ones of whole batches": lambda: Dataset.from_tensors((X, Y)).repeat(2),
    "zip": lambda: Dataset.zip((numbers().batch(5), noisy(numbers()).batch(5))),
    "interleave": lambda: numbers().interleave(Dataset.range, 2, 2).batch(5),
}


def leaves(element):
    return [leaf.numpy() for leaf in tw.nest.flatten(element)]


def joined(parts):
    """The batches of which these are all parts; their sizes and stand-ins are checked."""
    columns = [np.concatenate(each) for each in zip(*[leaves(p.rows) for p in parts])]
    for index, part in enumerate(parts):
        size, count = part.size, len(parts)
        assert size == len(columns[0])
        own = (index + 1) * size // count - index * size // count
        assert {len(leaf) for leaf in leaves(part.rows)} == {own}
        if own:
            assert part.stand_in is None
        else:
            for leaf, column in zip(leaves(part.stand_in), columns, strict=True):
                np.testing.assert_array_equal(leaf, column[:1], strict=True)
    return columns


def check_equal(actual, expected):
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other, strict=True)


def made(name, num_parts=None):
    """The data set, or its parts, each as in a process of its own."""
    found = []
    for index in range(num_parts or 1):
        tw.random.set_seed(1)
        ds = CHAINS[name]()
        found.append(part_of_batches(ds, num_parts, index) if num_parts else ds)
    return found if num_parts else found[0]


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("num_parts", [1, 2, 3, 7])
def test_the_parts_of_two_epochs_are_the_batches(name, num_parts):
    whole, parts = made(name), made(name, num_parts)
    for _ in range(2):
        expected = [leaves(batch) for batch in whole]
        together = zip(*parts, strict=True)
        check_equal([joined(each) for each in together], expected)


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("done", [0, 1, 2])
def test_states_serve_any_number_of_parts_and_the_whole(name, done):
    whole, pair = made(name), made(name, 2)
    expected = [leaves(batch) for batch in whole]
    next_epoch = [leaves(batch) for batch in whole]
    iterators = [iter(ds) for ds in pair]
    for iterator in iterators:
        for _ in range(done):
            next(iterator)
    states = [json.loads(json.dumps(iterator.state())) for iterator in iterators]
    assert states[0] == states[1]

    three = made(name, 3)
    restored = [iter(ds) for ds in three]
    for iterator in restored:
        iterator.restore(states[0])
    rest = [joined(each) for each in zip(*restored, strict=True)]
    check_equal(rest, expected[done:])
    check_equal([joined(each) for each in zip(*three, strict=True)], next_epoch)

    alone = made(name)
    iterator = iter(alone)
    iterator.restore(states[0])
    check_equal([leaves(batch) for batch in iterator], expected[done:])


@pytest.mark.parametrize(
    "arrange",
    [
        lambda ds: ds.batch(4),
        lambda ds: ds.shuffle(12).batch(4).prefetch(1),
        lambda ds: ds.repeat(1).batch(4).cache().repeat(2),
        lambda ds: ds.map(lambda y: -y).shuffle(5).batch(4),
    ],
)
def test_functions_are_called_for_the_own_rows_alone(arrange):
    calls = []

    def note(y):
        calls.append(int(y))
        return y

    ds = part_of_batches(arrange(numbers().map(note)), 4, 3)
    own = sorted({abs(int(y)) for part in ds for y in part.rows})
    # The first call shows whether the function draws from generators that are not ours.
    assert len(own) == 3 and set(own) <= set(calls) and len(calls) <= 4


def test_a_function_that_draws_from_numpy_is_called_for_all_rows():
    calls = []

    def draw(y):
        calls.append(y)
        return np.random.uniform()

    def run(num_parts=None, index=0):
        np.random.seed(3)
        ds = numbers().map(draw).batch(5)
        return list(part_of_batches(ds, num_parts, index) if num_parts else ds)

    expected = [leaves(batch) for batch in run()]
    both = zip(run(2, 0), run(2, 1), strict=True)
    check_equal([joined(parts) for parts in both], expected)
    assert len(calls) == 3 * len(Y)


def test_rows_of_others_are_not_gathered(monkeypatch):
    from tapewright.data.nodes import node

    taken = []

    def row_taker(array, count):
        return lambda rows: (taken.append(len(rows)), array.take(rows, axis=0))[1]

    monkeypatch.setattr(node, "row_taker", row_taker)
    assert len(list(part_of_batches(numbers().shuffle(12).batch(6), 3, 1))) == 2
    assert taken == [2, 2]


def test_a_cache_of_parts_and_the_cache_of_the_whole_are_of_one_run():
    ds = noisy(numbers().shuffle(12)).batch(5).cache()
    parts = [list(part_of_batches(ds, 2, index)) for index in range(2)]
    expected = [joined(each) for each in zip(*parts, strict=True)]
    check_equal([leaves(batch) for batch in ds], expected)
    again = [list(part_of_batches(ds, 2, index)) for index in range(2)]
    check_equal([joined(each) for each in zip(*again, strict=True)], expected)


def test_whole_batches_are_converted_before_they_are_sliced():
    class Lists(Batch):
        def run(self, position):
            yield [[1, 2, 3], [4, 5, 6]]

        def run_part(self, position, part):
            return map(part.of, self.run(position))

    ds = Dataset(Lists(numbers()._node, 3))
    (part,) = part_of_batches(
        ds, 2, 1, convert=lambda batch: tuple(map(tw.constant, batch))
    )
    assert [leaf.tolist() for leaf in leaves(part.rows)] == [[2, 3], [5, 6]]


def test_elements_without_rows_are_refused():
    with pytest.raises(ValueError, match=r"part_of_batches: .*Is the dataset batched"):
        next(iter(part_of_batches(numbers(), 2, 0)))
    uneven = Dataset.from_tensors((X, Y[:5]))
    with pytest.raises(ValueError, match=r"one length.*\(12, 2\).*\(5,\)"):
        next(iter(part_of_batches(uneven, 2, 0)))


@pytest.mark.parametrize(
    "num_parts, index, message",
    [
        (0, 0, "num_parts must be a positive integer, got 0"),
        (2, -1, "index must be an integer of 0 or more, got -1"),
        (2, 2, "index must be below num_parts, got 2 and 2"),
    ],
)
def test_the_part_must_be_one_of_them(num_parts, index, message):
    with pytest.raises(ValueError, match=f"part_of_batches: {message}"):
        part_of_batches(numbers().batch(2), num_parts, index)


def test_own_batches_of_one_process_are_whole():
    batches = Dataset.from_tensor_slices(np.arange(5)).batch(3)
    parts = list(per_worker_batches(batches))
    assert [(p.rows.numpy().tolist(), p.size) for p in parts] == [
        ([0, 1, 2], 3),
        ([3, 4], 2),
    ]
    assert (
        all(p.stand_in is None for p in parts) and len(per_worker_batches(batches)) == 2
    )


def test_data_sets_know_whether_their_batches_are_for_one_process():
    batches = Dataset.range(6).batch(3)
    assert not is_per_worker(batches)
    for own in (rows_of_batches(batches, 2, 0), mark_per_worker(batches)):
        assert is_per_worker(own) and is_per_worker(own.repeat().prefetch(1))
    assert [b.numpy().tolist() for b in mark_per_worker(batches)] == [
        [0, 1, 2],
        [3, 4, 5],
    ]
