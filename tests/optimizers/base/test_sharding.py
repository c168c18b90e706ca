"""The division of variables among processes; processes are in `tests/distribute`."""

import math

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.state.sharded_variable import Shard
from tapewright.optimizers.base import sharding
from tapewright.optimizers.base.gradients import SparseRows
from tapewright.optimizers.base.sharding import Division, Exchange


class Workers:
    """The number of a process among several."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size


@pytest.fixture
def divide(monkeypatch):
    """``divide(shapes, size, by_entries) -> [Division of each rank]``."""

    def run(shapes, size, by_entries=True):
        variables = [tw.Variable(np.zeros(shape, np.float32)) for shape in shapes]
        divisions = []
        for rank in range(size):
            workers = Workers(rank, size)
            monkeypatch.setattr(sharding, "communicator", lambda w=workers: w)
            divisions.append(Division(variables, by_entries))
        return divisions

    return run


def random_shapes(random):
    ranks = random.integers(0, 4, random.integers(1, 9))
    return [tuple(random.integers(0, 40, rank).tolist()) for rank in ranks]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("by_entries", [True, False])
def test_the_parts_of_all_processes_make_up_each_variable(divide, seed, by_entries):
    random = np.random.default_rng(seed)
    shapes, size = random_shapes(random), int(random.integers(1, 9))
    divisions = divide(shapes, size, by_entries)
    for i, shape in enumerate(shapes):
        array = random.normal(size=shape)
        parts = [each.own[i].of(array).reshape(-1) for each in divisions]
        np.testing.assert_array_equal(np.concatenate(parts), array.reshape(-1))
        if not by_entries:
            assert sum([part.size > 0 for part in parts]) <= 1
    sizes = [sum([shard.size for shard in each.own]) for each in divisions]
    largest = max([math.prod(shape) for shape in shapes])
    # Half a row at each end, of variables of 16 rows for each process or more.
    slack = largest / (sharding.ROWS * size) + 1 if by_entries else largest
    assert max(sizes) - sum(sizes) / size <= slack


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("by_entries", [True, False])
def test_an_exchange_has_the_parts_of_the_processes_in_order(divide, seed, by_entries):
    random = np.random.default_rng(seed)
    shapes = random_shapes(random)
    divisions = divide(shapes, 3, by_entries)
    numbers = sorted(random.permutation(len(shapes))[: 1 + seed % 5].tolist())
    like = np.empty(0, np.float32)
    exchanges = [Exchange(each, numbers, like, like.dtype) for each in divisions]
    arrays = {i: random.normal(size=shapes[i]).astype("f4") for i in numbers}
    flat = exchanges[0].empty()
    for i, view in exchanges[0].views(flat).items():
        view[...] = arrays[i]
    for rank, (division, each) in enumerate(zip(divisions, exchanges)):
        assert each.bounds == exchanges[0].bounds
        piece = flat[slice(*each.bounds[rank])]
        parts = each.split(piece)
        for i in numbers:
            np.testing.assert_array_equal(parts[i], division.own[i].of(arrays[i]))
        packed = each.pack({i: tw.Variable(parts[i]) for i in each.owned})
        np.testing.assert_array_equal(packed[slice(*each.bounds[rank])], piece)


def test_large_matrices_are_cut_between_rows(divide):
    divisions = divide([(100, 7), (3,)], 3)
    assert [each.own[0].shape for each in divisions] == [(33, 7), (34, 7), (33, 7)]
    assert [each.own[1].size for each in divisions] == [0, 0, 3]


@pytest.mark.parametrize("seed", range(30))
def test_rows_of_a_sparse_gradient_go_where_the_dense_entries_go(seed):
    random = np.random.default_rng(seed)
    whole = tuple(random.integers(1, 9, random.integers(1, 4)).tolist())
    ends = sorted(random.integers(0, math.prod(whole) + 1, 2).tolist())
    indices = np.unique(random.integers(0, whole[0], 4))
    rows = SparseRows(indices, random.normal(size=(len(indices), *whole[1:])))
    dense = np.zeros(whole)
    dense[indices] = rows.values
    shard = Shard(whole, *ends)
    own = sharding._own_rows(rows, shard)
    if type(own) is SparseRows:
        found = np.zeros(shard.shape)
        found[own.indices] = own.values
    else:
        found = own
    np.testing.assert_array_equal(found, shard.of(dense))


def test_a_built_optimizer_is_not_sharded_and_others_stay_as_they_are():
    optimizer, v = tw.optimizers.Adam(), tw.Variable([1.0])
    assert tw.distribute.shard_optimizer(optimizer) is optimizer
    optimizer.apply([[1.0]], [v])  # of one process
    assert type(optimizer.variables[-1]) is tw.Variable
    built = tw.optimizers.Adam()
    built.build([v])
    with pytest.raises(ValueError, match="is built already, with all slots"):
        tw.distribute.shard_optimizer(built)
    with pytest.raises(TypeError, match="must be an Optimizer, got 'adam'"):
        tw.distribute.shard_optimizer("adam")


def test_all_optimizers_within_others_are_sharded():
    inner = tw.optimizers.SGD()
    tw.distribute.shard_optimizer(tw.optimizers.LossScaleOptimizer(inner))
    assert inner._tw_is_sharded
    late = tw.optimizers.SGD()
    several = tw.distribute.shard_optimizer(
        tw.optimizers.MultiOptimizer(lambda variable: late)
    )
    several.build([tw.Variable([1.0])])
    assert late._tw_is_sharded
