"""Checks of `tw.distribute` on several processes: those for as many ranks as there are."""

import numpy as np

import tapewright as tw
from tapewright.ops.collective import all_reduce

dist = tw.distribute
rank, size = dist.rank(), dist.size()
CHECKS = []


def on_ranks(count):
    """Add a check to those that run, if there are so many ranks."""

    def decorate(check):
        if count == size:
            CHECKS.append(check)
        return check

    return decorate


@on_ranks(3)
def collectives_take_nests_of_tensors():
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


@on_ranks(3)
def gradients_are_reduced_eagerly_and_in_traces():
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


@on_ranks(2)
def derivatives_through_reductions_are_those_of_the_sum_of_all_targets():
    for op in ("sum", "mean", "max", "min"):
        check_derivatives(op)


def check_derivatives(op):
    x = np.array([0.3, -0.7]) + rank

    def target(x):
        return tw.reduce_sum(tw.sin(all_reduce(x, op)) * x) * (rank + 1.0)

    def gradient(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = target(x)
        return tape.gradient(y, x)

    def sum_of_targets(x):
        return dist.all_reduce(target(tw.constant(x)), "sum").numpy()

    def sum_of_slopes(x):
        return dist.all_reduce(tw.reduce_sum(gradient(tw.constant(x))), "sum").numpy()

    t = tw.constant(x)
    with tw.GradientTape() as tape:
        tape.watch(t)
        first = gradient(t)
        slope = tw.reduce_sum(first)
    second = tape.gradient(slope, t)
    for owner in range(size):  # of the entry that is shifted
        for i in range(2):
            step = np.eye(2)[i] * (rank == owner)
            for function, exact, by, limit in (
                (sum_of_targets, first, 1e-6, 1e-7),
                (sum_of_slopes, second, 1e-5, 1e-6),
            ):
                ends = function(x + by * step), function(x - by * step)
                error = (ends[0] - ends[1]) / (2 * by) - exact.numpy()[i]
                assert rank != owner or abs(error) < limit, (op, i, error, exact)


@on_ranks(3)
def a_variable_that_differs_is_named():
    same, other = tw.Variable([1.0]), tw.Variable([0.0, rank], name="other")
    dist.check_variables([same])
    try:
        dist.check_variables([same, other])
        message = "nothing was raised"
    except tw.errors.CollectiveError as error:
        message = str(error)
    named = "'other' (2,) of rank 1, 2 differs from rank 0; 1 of 2"
    assert named in message, message
    dist.broadcast_variables([other], root=1)
    dist.check_variables([same, other])
    assert other.numpy().tolist() == [0.0, 1.0]


@on_ranks(2)
def a_strategy_divides_batches_and_reduces_values():
    tw.random.set_seed(rank)
    strategy = dist.MultiWorkerMirroredStrategy()
    drawn = dist.all_gather(tw.random.uniform([1])).numpy()
    assert drawn[0] == drawn[1]
    assert strategy.num_replicas_in_sync == 2
    assert strategy.cluster_resolver.task_id == rank
    assert strategy.reduce("MEAN", tw.constant(float(rank))).numpy() == 0.5
    entries = tw.constant([1.0] * (rank + 1) + [0.0])
    mean = strategy.reduce(dist.ReduceOp.MEAN, entries, axis=0)
    assert np.isclose(mean, 0.6)
    batches = tw.data.Dataset.range(10).batch(4)
    parts = strategy.experimental_distribute_dataset(batches)
    parts = [batch.numpy().tolist() for batch in parts]
    assert parts == [[[0, 1], [4, 5], [8]], [[2, 3], [6, 7], [9]]][rank]
    own = strategy.distribute_datasets_from_function(
        lambda context: (
            tw.data.Dataset.range(6)
            .shard(context.num_input_pipelines, context.input_pipeline_id)
            .batch(context.get_per_replica_batch_size(4))
        )
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


@on_ranks(2)
def gradients_travel_in_half_precision_if_asked_for():
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


assert CHECKS, f"there are none for {size} ranks"
for check in CHECKS:
    check()
