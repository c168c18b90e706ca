"""`tw.distribute` in several processes: collectives, gradients, strategies, digests."""

import numpy as np
import pytest

import tapewright as tw

PROLOGUE = """
import numpy as np
import tapewright as tw
dist = tw.distribute
rank, size = dist.rank(), dist.size()
"""


@pytest.fixture
def ranks_pass(run_ranks):
    """``ranks_pass(count, source)``: run a script, and fail if it does."""

    def check(*args):
        ended = run_ranks(*args)
        assert ended.rc == 0, ended.stderr

    return check


def test_collectives_take_nests_of_tensors(ranks_pass):
    script = """
nest = {"a": tw.constant([1.0, 2.0]) * (rank + 1.0), "b": (None, tw.constant(rank))}
total = dist.all_reduce(nest, "sum")
assert total["a"].numpy().tolist() == [6.0, 12.0] and total["b"][0] is None
assert total["b"][1].numpy() == 3 and total["b"][1].dtype == tw.int32
assert dist.all_reduce(tw.constant(float(rank))).numpy() == 1.0
gathered = dist.all_gather(tw.constant([rank] * rank + [9]))
assert gathered.numpy().tolist() == [9, 1, 9, 2, 2, 9]
columns = dist.all_gather(tw.constant([[rank], [rank]]), axis=1)
assert columns.numpy().tolist() == [[0, 1, 2], [0, 1, 2]]
assert dist.broadcast(tw.constant([rank]), root=2).numpy() == [2]
assert dist.local_rank() == rank
dist.barrier()
"""
    ranks_pass(3, PROLOGUE + script)


def test_gradients_are_reduced_eagerly_and_in_traces(ranks_pass):
    script = """
x = tw.Variable([1.0, 2.0], dtype="float64")
table = tw.Variable(np.ones((5, 2)))
own = tw.constant(rank + 1.0, "float64")

def gradients(own, op):
    with tw.GradientTape() as tape:
        y = tw.reduce_sum(x * x) * own + tw.reduce_sum(tw.gather(table, [rank, 0]))
    return dist.DistributedGradientTape(tape, op).gradient(y, [x, table])

for function in (gradients, tw.function(gradients)):
    for op, divisor in (("sum", 1), ("mean", 3)):
        dense, slices = function(own, op)
        assert np.allclose(dense, np.array([12.0, 24.0]) / divisor, rtol=1e-14)
        expected = np.zeros((5, 2))
        np.add.at(expected, [0, 0, 1, 0, 2, 0], 1 / divisor)
        assert np.allclose(tw.convert_to_tensor(slices), expected, rtol=1e-14)
        assert function is not gradients or isinstance(slices, tw.IndexedSlices)
"""
    ranks_pass(3, PROLOGUE + script)


def test_derivatives_through_reductions_are_those_of_the_sum_of_all_targets(ranks_pass):
    script = """
from tapewright.ops.collective import all_reduce
x = np.array([0.3, -0.7]) + rank
def total(x, op):  # the sum over the ranks of what each computes from all
    return tw.reduce_sum(tw.sin(all_reduce(x, op)) * x) * (rank + 1.0)

for op in ("sum", "mean", "max", "min"):
    t = tw.constant(x)
    with tw.GradientTape() as outer:
        outer.watch(t)
        with tw.GradientTape() as inner:
            inner.watch(t)
            y = total(t, op)
        g = inner.gradient(y, t)
        slope_of_all = tw.reduce_sum(g)
    h = outer.gradient(slope_of_all, t)
    for owner in range(size):
        for i in range(2):
            def shifted(by):
                moved = x.copy()
                moved[i] += by if rank == owner else 0
                return tw.constant(moved)
            def whole(by):
                return dist.all_reduce(total(shifted(by), op), "sum").numpy()
            numeric = (whole(1e-6) - whole(-1e-6)) / 2e-6
            assert rank != owner or abs(numeric - g.numpy()[i]) < 1e-7, (op, numeric, g)
            def slope(by):
                s = shifted(by)
                with tw.GradientTape() as tape:
                    tape.watch(s)
                    y = total(s, op)
                return dist.all_reduce(tw.reduce_sum(tape.gradient(y, s)), "sum").numpy()
            numeric = (slope(1e-5) - slope(-1e-5)) / 2e-5
            assert rank != owner or abs(numeric - h.numpy()[i]) < 1e-6, (op, numeric, h)
"""
    ranks_pass(2, PROLOGUE + script)


def test_a_variable_that_differs_is_named(ranks_pass):
    script = """
same, other = tw.Variable([1.0]), tw.Variable([0.0, rank], name="other")
dist.check_variables([same])
try:
    dist.check_variables([same, other])
except tw.errors.CollectiveError as error:
    assert "'other' (2,) of rank 1, 2 is not that of rank 0; 1 of 2" in str(error), error
else:
    raise AssertionError("nothing was raised")
dist.broadcast_variables([other], root=1)
dist.check_variables([same, other])
assert other.numpy().tolist() == [0.0, 1.0]
"""
    ranks_pass(3, PROLOGUE + script)


def test_a_strategy_divides_batches_and_reduces_values(ranks_pass):
    script = """
tw.random.set_seed(rank)
strategy = dist.MultiWorkerMirroredStrategy()
drawn = dist.all_gather(tw.random.uniform([1])).numpy()
assert drawn[0] == drawn[1]
assert strategy.num_replicas_in_sync == 2 and strategy.cluster_resolver.task_id == rank
assert strategy.reduce("MEAN", tw.constant(float(rank))).numpy() == 0.5
entries = tw.constant([1.0] * (rank + 1) + [0.0])
mean = strategy.reduce(dist.ReduceOp.MEAN, entries, axis=0)
assert np.isclose(mean, 0.6)
batches = tw.data.Dataset.range(10).batch(4)
parts = [b.numpy().tolist() for b in strategy.experimental_distribute_dataset(batches)]
assert parts == [[[0, 1], [4, 5], [8]], [[2, 3], [6, 7], [9]]][rank]
own = strategy.distribute_datasets_from_function(
    lambda context: tw.data.Dataset.range(6)
    .shard(context.num_input_pipelines, context.input_pipeline_id)
    .batch(context.get_per_replica_batch_size(4))
)
assert [b.numpy().tolist() for b in own] == [[[0, 2], [4]], [[1, 3], [5]]][rank]

v = tw.Variable([1.0])
optimizer = tw.optimizers.SGD(1.0)

@tw.function
def step(x):
    context = dist.get_replica_context()
    assert context.num_replicas_in_sync == 2 and not dist.in_cross_replica_context()
    with tw.GradientTape() as tape:
        loss = tw.nn.compute_average_loss(v * x)
    optimizer.apply_gradients([(tape.gradient(loss, v), v)])
    return context.all_reduce("sum", loss)

with strategy.scope():
    assert dist.get_replica_context() is None and dist.get_strategy() is strategy
    loss = strategy.run(step, args=(tw.constant([1.0, 3.0]) * (1.0 + rank),))
assert loss.numpy() == 3.0 and v.numpy() == [-2.0]
dist.check_variables([v])
"""
    ranks_pass(2, PROLOGUE + script)


def test_gradients_travel_in_half_precision_if_asked_for(ranks_pass):
    script = """
options = dist.CommunicationOptions(compression="float16", timeout_seconds=100)
strategy = dist.MultiWorkerMirroredStrategy(communication_options=options)
exact = np.linspace(-1, 1, 9999).astype("float32") * 1e30  # no float16
v = tw.Variable(tw.zeros(9999))
optimizer = tw.optimizers.SGD(1.0)

def step(g):
    optimizer.apply([g], [v])

for function in (step, tw.function(step)):
    v.assign(tw.zeros(9999))
    strategy.run(function, args=(tw.constant(exact) * (rank + 1.0),))
    error = np.abs(v.numpy() + 3 * exact).max() / 3e30
    assert 1e-6 < error < 2e-3, error
dist.check_variables([v])
"""
    ranks_pass(2, PROLOGUE + script)


def test_in_one_process_everything_runs_as_it_is():
    strategy = tw.distribute.MultiWorkerMirroredStrategy()
    dataset = tw.data.Dataset.range(3).batch(2)
    assert strategy.experimental_distribute_dataset(dataset) is dataset
    assert strategy.run(lambda: tw.distribute.in_cross_replica_context()) is False
    assert strategy.reduce("SUM", tw.constant([1.0, 2.0]), axis=0).numpy() == 3.0
    with strategy.scope():
        assert tw.distribute.has_strategy()
        assert tw.keras.Sequential().distribute_strategy is strategy
    assert not tw.distribute.has_strategy()


def test_keras_distribution_is_that_of_all_models():
    distribution = tw.keras.distribution
    data_parallel = distribution.DataParallel()
    with data_parallel.scope():
        assert distribution.distribution() is data_parallel
        assert tw.distribute.get_strategy() is data_parallel.strategy
    assert distribution.distribution() is None
    with pytest.raises(TypeError, match="DataParallel or None"):
        distribution.set_distribution("data_parallel")
    with pytest.raises(ValueError, match="device_mesh must be None"):
        distribution.DataParallel(device_mesh=[0])
    with pytest.raises(ValueError, match="num_processes must be 1"):
        distribution.initialize(num_processes=2)


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda d: d.all_reduce([1.0], "median"), ValueError, "op must be"),
        (lambda d: d.all_gather(tw.constant(1.0)), ValueError, "a scalar has no axis"),
        (
            lambda d: d.broadcast(tw.constant([1.0]), 3),
            ValueError,
            "root must be a rank",
        ),
        (lambda d: d.broadcast_variables([1.0]), TypeError, "must be Variables"),
        (lambda d: d.DistributedGradientTape(3), TypeError, "must be a GradientTape"),
        (lambda d: tw.function(d.barrier)(), ValueError, "cannot wait"),
        (lambda d: d.Strategy().reduce("MAX", 1.0), ValueError, "reduce_op must be"),
        (
            lambda d: d.InputContext(3).get_per_replica_batch_size(4),
            ValueError,
            "divide",
        ),
    ],
)
def test_bad_arguments_are_named(call, error, named):
    with pytest.raises(error, match=named):
        call(tw.distribute)


def test_losses_are_averaged_over_a_global_batch():
    losses = np.array([1.0, 3.0], np.float32)
    mean = tw.nn.compute_average_loss(losses, sample_weight=[1.0, 0.0])
    assert mean.numpy() == 0.5
    assert tw.nn.compute_average_loss(losses, global_batch_size=8).numpy() == 0.5
    assert tw.nn.scale_regularization_loss(losses).numpy() == 4.0
