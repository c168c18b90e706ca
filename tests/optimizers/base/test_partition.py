"""The partition of variables among processes; processes are in `tests/distribute`."""

import math

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import devices
from tapewright.optimizers.base import partition
from tapewright.optimizers.base.partition import Exchange, Partition


@pytest.fixture(autouse=True)
def on_the_host():
    with devices.use_module(np):
        yield


class Workers:
    """The number of a process among several."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size


@pytest.fixture
def divide(monkeypatch):
    """``divide(shapes, size, by_entries) -> [Partition of each rank]``."""

    def run(shapes, size, by_entries=True):
        variables = [tw.Variable(np.zeros(shape, np.float32)) for shape in shapes]
        partitions = []
        for rank in range(size):
            workers = Workers(rank, size)
            monkeypatch.setattr(partition, "communicator", lambda w=workers: w)
            partitions.append(Partition(variables, by_entries))
        return partitions

    return run


def random_shapes(random):
    ranks = random.integers(0, 4, random.integers(1, 9))
    return [tuple(random.integers(0, 40, rank).tolist()) for rank in ranks]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("by_entries", [True, False])
def test_the_parts_of_all_processes_make_up_each_variable(divide, seed, by_entries):
    random = np.random.default_rng(seed)
    shapes, size = random_shapes(random), int(random.integers(1, 9))
    partitions = divide(shapes, size, by_entries)
    for i, shape in enumerate(shapes):
        array = random.normal(size=shape)
        parts = [each.own[i].of(array).reshape(-1) for each in partitions]
        np.testing.assert_array_equal(np.concatenate(parts), array.reshape(-1))
        if not by_entries:
            assert sum([part.size > 0 for part in parts]) <= 1
    sizes = [sum([shard.size for shard in each.own]) for each in partitions]
    largest = max([math.prod(shape) for shape in shapes])
    # Half a row at each end, of variables of 16 rows for each process or more.
    slack = largest / (partition.ROWS * size) + 1 if by_entries else largest
    assert max(sizes) - sum(sizes) / size <= slack


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("by_entries", [True, False])
def test_an_exchange_has_the_parts_of_the_processes_in_order(divide, seed, by_entries):
    random = np.random.default_rng(seed)
    shapes = random_shapes(random)
    partitions = divide(shapes, 3, by_entries)
    numbers = sorted(random.permutation(len(shapes))[: 1 + seed % 5].tolist())
    like = np.empty(0, np.float32)
    exchanges = [Exchange(each, numbers, like, like.dtype) for each in partitions]
    arrays = {i: random.normal(size=shapes[i]).astype("f4") for i in numbers}
    flat = exchanges[0].empty()
    for i, view in exchanges[0].views(flat).items():
        view[...] = arrays[i]
    for rank, (part, each) in enumerate(zip(partitions, exchanges)):
        assert each.bounds == exchanges[0].bounds
        piece = flat[slice(*each.bounds[rank])]
        parts = each.split(piece)
        for i in numbers:
            np.testing.assert_array_equal(parts[i], part.own[i].of(arrays[i]))
        packed = each.pack({i: tw.Variable(parts[i]) for i in each.owned})
        np.testing.assert_array_equal(packed[slice(*each.bounds[rank])], piece)


def test_large_matrices_are_cut_between_rows(divide):
    partitions = divide([(100, 7), (3,)], 3)
    assert [each.own[0].shape for each in partitions] == [(33, 7), (34, 7), (33, 7)]
    assert [each.own[1].size for each in partitions] == [0, 0, 3]
