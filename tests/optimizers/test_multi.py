"""`MultiOptimizer`, `OptimizerMap`: who trains which variable; state, files, traces."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.optimizers import (
    SGD,
    Adam,
    LossScaleOptimizer,
    MultiOptimizer,
    OptimizerMap,
)


def named(path, *values):
    return tw.Variable(np.float32(values), name=path)


def make(**options):
    optimizers = OptimizerMap(
        SGD(0.5, name="rest"), {"a/.*": SGD(0.25), "b": Adam(0.1)}
    )
    return MultiOptimizer(optimizers, name="multi", **options)


@pytest.mark.parametrize("traced", [False, True])
def test_each_variable_has_the_optimizer_of_its_path(traced):
    a, b, c = variables = [named("a/x", 1.0), named("b", 1.0), named("c", 1.0)]
    optimizer = make()

    def step(*gradients):
        optimizer.apply(gradients, variables)

    step = tw.function(step) if traced else step
    for _ in range(2):
        step(*[tw.constant([1.0])] * 3)
    assert (a.numpy(), c.numpy()) == (0.5, 0.0)
    # Adam's steps are its rate at first.
    np.testing.assert_allclose(b, [0.8], rtol=1e-5)
    assert optimizer.iterations.numpy() == 2
    assert [x.iterations.numpy() for x in optimizer.optimizers] == [2, 2, 2]
    # as in Keras: the counts of the whole, then each optimizer, the default one last
    names = [v.path.partition("/")[2] for v in optimizer.variables]
    counts = ["iteration", "learning_rate"]
    assert names == [*counts, *counts, *counts, "b_momentum", "b_velocity", *counts]


def test_keys_of_a_map_are_matched_in_linear_time():
    optimizers = OptimizerMap(SGD(), {"(.+.+)+!": Adam(), "(a|aa)+/kernel": Adam(0.5)})
    assert type(optimizers["a" * 3000]) is SGD
    assert float(optimizers["a" * 3000 + "/kernel"].learning_rate) == 0.5
    with pytest.raises(ValueError, match=r"the regular expression '\(': missing"):
        OptimizerMap(SGD(), {"(": Adam()})


def test_a_function_may_tell_the_optimizer():
    fast, slow = SGD(1.0), SGD(0.5)
    v, w = named("v", 1.0), named("w", 1.0)
    optimizer = MultiOptimizer(lambda variable: fast if variable is v else slow)
    optimizer.apply_gradients([([1.0], v), ([1.0], w)])
    assert (v.numpy(), w.numpy()) == (0.0, 0.5) and optimizer.optimizers == [fast, slow]


def test_one_factor_scales_the_loss_for_all():
    v, w = named("a/v", 1.0), named("w", 1.0)
    optimizer = make(loss_scale_factor=4.0)
    assert float(optimizer.scale_loss(tw.constant(2.0))) == 8.0
    optimizer.apply([[4.0], [4.0]], [v, w])
    assert (v.numpy(), w.numpy()) == (0.75, 0.5)


def test_after_an_error_nothing_has_changed():
    v, w = named("a/v", 1.0), named("w", 1.0)
    optimizer = make()
    with pytest.raises(ValueError):
        optimizer.apply([[1.0], [[1.0, 2.0]]], [v, w])
    assert (v.numpy(), w.numpy(), optimizer.iterations.numpy()) == (1.0, 1.0, 0)
    optimizer.apply([[1.0], [1.0]], [v, w])
    with pytest.raises(ValueError, match="Unknown variable.*another"):
        optimizer.apply([[1.0]], [named("another", 1.0)])


def test_a_map_and_its_optimizers_are_checked():
    optimizers = OptimizerMap(SGD(), {"a/.*": SGD(), ".*/b": SGD(), "a/b/c": Adam()})
    assert (
        type(optimizers["a/b/c"]) is Adam and optimizers["x"] is not optimizers["a/x"]
    )
    with pytest.raises(ValueError, match="'a/b', got 2 keys"):
        optimizers["a/b"]
    with pytest.raises(ValueError, match="exists already"):
        optimizers["a/.*"] = SGD()
    del optimizers["a/.*"]
    optimizers["a/.*"] = SGD()
    assert len(optimizers) == 3
    with pytest.raises(ValueError, match="other than LossScaleOptimizer"):
        optimizers["z"] = LossScaleOptimizer(SGD())
    with pytest.raises(TypeError, match="default_optimizer must be an Optimizer"):
        OptimizerMap("sgd")
    with pytest.raises(ValueError, match="must be an OptimizerMap or a function"):
        MultiOptimizer(SGD())
    with pytest.raises(ValueError, match="must be an Optimizer other than"):
        MultiOptimizer(lambda variable: "sgd").build([named("v", 1.0)])
    with pytest.raises(ValueError, match="MultiOptimizer cannot be wrapped"):
        LossScaleOptimizer(make()).apply([[1.0]], [named("v", 1.0)])
    for use in (lambda x: x.learning_rate, lambda x: setattr(x, "learning_rate", 1.0)):
        with pytest.raises(AttributeError, match="individual sub-optimizers"):
            use(make())


def test_a_model_file_and_a_saved_step_hold_all_states(tmp_path):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2, name="a"),
                              keras.layers.Dense(1, name="b")])  # fmt: skip
    rules = OptimizerMap(SGD(0.1, momentum=0.5), {".*/a/.*": Adam(0.01)})
    model.compile(MultiOptimizer(rules), "mse")
    x, y = np.eye(2, dtype="float32"), np.ones((2, 1), "float32")
    model.fit(x, y, epochs=2, verbose=0)
    model.save(tmp_path / "m.keras")
    twin = keras.models.load_model(tmp_path / "m.keras")
    assert twin.optimizer.get_config() == model.optimizer.get_config()
    for each in (model, twin):
        each.train_on_batch(x, y)
    for a, b in zip(model.optimizer.variables, twin.optimizer.variables, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())

    module, v = tw.Module(), named("a/v", 1.0)
    module.v, optimizer = v, make()
    optimizer.exclude_from_weight_decay([v])
    optimizer.build([v])
    module.step = tw.function(
        lambda g: optimizer.apply([g], [v]), input_signature=[tw.TensorSpec([1])]
    )
    module.step(tw.constant([1.0]))
    tw.saved_model.save(module, str(tmp_path / "saved"))
    loaded = tw.saved_model.load(str(tmp_path / "saved"))
    loaded.step(tw.constant([1.0]))
    assert loaded.v.numpy() == 0.5
