"""`keras.Variable`: initializers, casts, copies; what counts as one."""

import copy
import pickle

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras


def test_a_variable_is_made_of_a_value_or_an_initializer():
    v = keras.Variable(np.ones(2), name="v")
    assert v.dtype == "float64" and v.path == "v" and v.trainable
    assert repr(v) == "<Variable path=v, shape=(2,), dtype=float64, value=[1. 1.]>"
    counts = keras.Variable("zeros", (2,), "int32", trainable=False)
    assert counts.dtype == "int32" and not counts.trainable
    given = keras.Variable(lambda shape, dtype: tw.fill(shape, 3.0), (2, 1))
    assert given.numpy().tolist() == [[3.0], [3.0]] and given.dtype == "float32"
    assert keras.Variable([1.0, 2.0]).name.startswith("variable")


def test_what_is_assigned_is_cast():
    counts = keras.Variable([0, 0])
    assert counts.assign(np.float64([1.7, 2.0])) is counts
    counts.assign_add(tw.constant([1.0, 1.0]))
    counts.assign_sub([0, 1])
    assert counts.numpy().tolist() == [2, 2] and counts.dtype == "int32"
    step = tw.function(lambda: counts.assign_add(tw.constant([1.5, 1.5])))
    step()
    assert counts.numpy().tolist() == [3, 3]
    with pytest.raises(ValueError, match="Shape mismatch"):
        counts.assign([1, 2, 3])


def test_all_variables_count_as_one_and_copies_stay_one():
    class Own(keras.Variable):
        pass

    weight = keras.layers.Dense(2).add_weight(shape=(2,), name="w")
    assert isinstance(weight, keras.Variable) and isinstance(
        tw.Variable(1.0), keras.Variable
    )
    assert not isinstance(1.0, keras.Variable) and not isinstance(weight, Own)
    assert isinstance(Own(1.0), Own) and isinstance(Own(1.0), tw.Variable)
    v = keras.Variable([1.0], name="v", autocast=False, aggregation="sum")
    for twin in (copy.deepcopy(v), pickle.loads(pickle.dumps(v))):
        assert type(twin) is keras.Variable and twin.path == "v"
        assert not twin.autocast and twin.aggregation == "sum" and twin.numpy() == 1


def test_a_layer_trains_a_variable_among_its_attributes():
    class Scale(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.factor = keras.Variable("ones", (2,), name="factor")

        def call(self, x):
            return x * self.factor

    model = keras.Sequential([Scale()])
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 2)), np.zeros((4, 2)), verbose=0)
    (factor,) = model.trainable_variables
    assert factor.name == "factor" and (factor.numpy() < 1).all()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("ones",), "needs a shape.*Ones"),
        (("ones", (None, 2)), r"with known sizes, got shape=\(None, 2\)"),
        (([1.0, 2.0], (3,)), r"the shape must be \(3,\)"),
        ((1.0, None, None, True, True, "all"), "aggregation must be one of"),
    ],
)
def test_a_wrong_argument_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        keras.Variable(*arguments)
    with pytest.raises(ValueError, match="without '/'"):
        keras.Variable(1.0, name="a/b")
    with pytest.raises(ValueError, match="layout is not supported"):
        keras.Variable(1.0, layout="x")


def test_the_version_is_that_of_keras():
    assert keras.version() == keras.__version__ == "3.15.1"


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function])
def test_variables_of_layers_optimizers_and_metrics_cast_what_is_assigned(wrap):
    layer = tw.layers.Layer()
    count = layer.add_weight(shape=(), dtype="int32", trainable=False)
    scale = layer.add_weight(shape=(2,), initializer="zeros")
    total = keras.metrics.Mean().total

    @wrap
    def run(x):
        count.assign(2.7)
        count.assign_add(tw.constant(3, "int64"))
        scale.assign(x)
        scale.assign_sub(tw.constant([1, 1]))
        total.assign(tw.constant(True))

    run(tw.constant([1.5, 2.5], "float64"))
    assert count.numpy() == 5 and total.numpy() == 1.0
    assert scale.numpy().tolist() == [0.5, 1.5] and scale.dtype == "float32"
    keras.optimizers.SGD().iterations.assign(np.float32(4.0))
    with pytest.raises(TypeError, match="cast the value"):
        tw.Variable([1.0]).assign(tw.constant([1.0], "float64"))
