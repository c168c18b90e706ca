"""Updates divided among processes; several processes are in `tests/distribute`."""

import math

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.state.sharded_variable import Shard
from tapewright.optimizers.base import sharded_update
from tapewright.optimizers.base.gradients import SparseRows


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
    own = sharded_update._own_rows(rows, shard)
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
