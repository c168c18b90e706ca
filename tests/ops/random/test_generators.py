"""Generators in a replica context."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.state.replica_context import ReplicaContext, in_replica_context
from tapewright.ops.random import generators


def of_a_generator():
    generator = tw.random.Generator.from_seed(7)
    return lambda: generator.normal([4])


def of_a_seed_generator():
    seed = tw.keras.random.SeedGenerator(7)
    return lambda: tw.keras.random.uniform([4], seed=seed)


def of_dropout():
    layer = tw.layers.Dropout(0.5, seed=7)
    return lambda: layer(tw.ones([64]), training=True)


def of_seeds():
    generator = tw.random.Generator.from_seed(7)
    return lambda: generator.make_seeds(3)


def of_the_global_generator():
    return lambda: tw.random.normal([4])


MAKERS = (
    of_a_generator,
    of_a_seed_generator,
    of_dropout,
    of_seeds,
    of_the_global_generator,
)


def drawn(make, context, wrap):
    tw.random.set_seed(7)
    draw = wrap(make())
    with in_replica_context(context):
        numbers = draw().numpy()
    return numbers, tw.random.get_global_generator().state.numpy()


@pytest.mark.parametrize("target", ["numpy", "native"])
@pytest.mark.parametrize("make", MAKERS)
def test_each_replica_draws_from_a_stream_of_its_own(make, target):
    if target == "native":
        pytest.importorskip("llvmlite")
    with tw.config.use_target(target):
        check_streams(make)


def check_streams(make):
    alone, state = drawn(make, None, lambda f: f)
    numbers = []
    for replica in range(3):
        context = ReplicaContext(3, replica, 1 / 3)
        eager, after = drawn(make, context, lambda f: f)
        traced, also = drawn(make, context, tw.function)
        np.testing.assert_array_equal(eager, traced)
        np.testing.assert_array_equal([after, also], [state, state])
        numbers.append(eager)
    np.testing.assert_array_equal(numbers[0], alone)
    for i, j in (0, 1), (0, 2), (1, 2):
        assert (numbers[i] != numbers[j]).any()


def test_streams_of_replicas_are_independent():
    numbers = []
    for replica in range(4):
        with in_replica_context(ReplicaContext(4, replica, 0.25)):
            numbers.append(tw.random.Generator.from_seed(1).normal([20000]).numpy())
    correlations = np.corrcoef(numbers) - np.eye(4)
    assert np.abs(correlations).max() < 0.04


def test_stateless_draws_are_those_of_their_seed_in_all_replicas():
    expected = tw.random.stateless_normal([3], seed=[1, 2]).numpy()
    with in_replica_context(ReplicaContext(2, 1, 0.5)):
        numbers = tw.random.stateless_normal([3], seed=[1, 2]).numpy()
    np.testing.assert_array_equal(numbers, expected)


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function])
def test_weights_that_a_step_makes_start_alike_in_all_replicas(wrap):
    kernels = []
    for replica in range(2):
        tw.random.set_seed(7)
        layer = tw.layers.Dense(3)
        with in_replica_context(ReplicaContext(2, replica, 0.5)):
            wrap(layer)(tw.ones([1, 4]))
        kernels.append(layer.kernel.numpy())
    np.testing.assert_array_equal(*kernels)


def test_the_streams_of_the_latest_seeds_and_of_functions_are_kept(monkeypatch):
    monkeypatch.setattr(generators, "_RECENT_SIZE", 3)
    monkeypatch.setattr(generators, "_RECENT", type(generators._RECENT)())

    def draw(seed):
        return float(tw.random.normal([], seed=seed))

    tw.random.set_seed(1)
    streams = {seed: [draw(seed) for _ in range(4)] for seed in (101, 102)}
    tw.random.set_seed(1)
    traced = tw.function(lambda: tw.random.normal([], seed=101))
    assert float(traced()) == streams[101][0]
    before = len(generators._STATES)
    assert draw(102) == streams[102][0]
    for seed in range(200, 210):
        draw(seed)
    assert len(generators._STATES) <= before + 3
    assert float(traced()) == streams[101][1]  # goes on
    assert draw(101) == streams[101][2]
    assert draw(102) == streams[102][0]  # starts again
    tw.random.set_seed(1)
    assert float(traced()) == streams[101][0]


def test_seeds_are_integers_or_floats_as_in_tensorflow():
    def drawn(seed):
        tw.random.set_seed(seed)
        return float(tw.random.uniform(()))

    assert drawn(3.0) == drawn(np.float32(3)) == drawn(np.int64(3)) == drawn(3)
    assert drawn(1.5) == drawn(1.5) != drawn(1) and drawn(-1) != drawn(1)
    assert drawn(None) != drawn(None)
    assert drawn(2**70) == drawn(2**70)
    assert tw.random.Generator.from_seed(3.0).state.numpy().tolist() == [3, 0]
    with pytest.raises(ValueError, match="set_seed: seed must be an integer, got '1'"):
        tw.random.set_seed("1")
    with pytest.raises(ValueError, match="set_seed.*got nan"):
        tw.random.set_seed(float("nan"))
    with pytest.raises(ValueError, match="random: seed must be an integer, got '1'"):
        tw.random.normal((), seed="1")
    with pytest.raises(ValueError, match="Dataset: seed must be an integer, got '1'"):
        tw.data.Dataset.range(3).shuffle(3, seed="1")
    with pytest.raises(ValueError, match="set_random_seed: seed .* got 1.0"):
        tw.keras.utils.set_random_seed(1.0)  # as in Keras
