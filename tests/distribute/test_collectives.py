"""`tw.distribute` in one process; `scripts/tensors.py` has the checks of several."""

import numpy as np
import pytest

import tapewright as tw


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
        (
            lambda d: d.all_gather(tw.constant(1.0)),
            ValueError,
            "an axis to concatenate along",
        ),
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
            "divisible",
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
