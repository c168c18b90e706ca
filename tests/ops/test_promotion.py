"""Dtypes of the operators of variables: Keras' variables promote, TensorFlow's do not."""

import operator

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras

# (dtype of the variable, operator, other operand, dtype of the result in Keras 3.15)
SUMS = [
    ("int64", "mul", 0.001, "float32"),
    ("int64", "add", 3, "int64"),
    ("int64", "truediv", 2, "float32"),
    ("int32", "truediv", lambda: tw.constant(3, "int64"), "float32"),
    ("int32", "sub", lambda: tw.constant(0.5, "float16"), "float16"),
    ("int64", "pow", 0.5, "float32"),
    ("int64", "floordiv", 2, "int64"),
    ("int64", "mod", lambda: tw.constant(3), "int64"),
    ("uint8", "add", lambda: tw.constant(3), "int32"),
    ("bool", "add", 1, "int32"),
    ("float32", "mul", lambda: tw.constant(3), "float32"),
    ("float32", "mul", np.float64(0.5), "float64"),
    ("float32", "mul", np.float32([0.5, 1.0]), "float32"),
    ("float16", "add", 0.5, "float16"),
    ("float16", "add", lambda: tw.constant(0.5), "float32"),
    ("int64", "lt", 4.5, "bool"),
    ("int64", "eq", 4.0, "bool"),
]


@pytest.mark.parametrize("traced", [False, True])
def test_variables_of_keras_meet_other_dtypes_as_in_keras(traced):
    for dtype, name, other, expected in SUMS:
        v = keras.Variable(True if dtype == "bool" else 4, dtype=dtype)
        function = getattr(operator, name)
        other = other() if callable(other) else other
        for swapped in (False, True):
            if swapped and type(other) not in (int, float):
                continue  # what is on the left has its own rules

            def run(function=function, v=v, other=other, swapped=swapped):
                return function(other, v) if swapped else function(v, other)

            found = (tw.function(run) if traced else run)()
            case = dtype, name, other, swapped
            assert found.dtype.name == expected, case
            value = np.asarray(v, "float64")
            pair = (other, value) if swapped else (value, other)
            wanted = function(*[np.asarray(x, "float64") for x in pair])
            np.testing.assert_allclose(np.asarray(found, "float64"), wanted, rtol=1e-3)


def test_weights_and_the_count_of_updates_are_such_variables():
    layer = keras.layers.Layer()
    seen = layer.add_weight(shape=(), initializer="ones", dtype="int32")
    optimizer = keras.optimizers.SGD()
    for variable in (seen, optimizer.iterations):
        assert (variable * 0.5).dtype == (variable / 2).dtype == "float32"


def test_variables_and_tensors_of_tensorflow_keep_its_rules():
    for x in (tw.Variable(4, dtype="int64"), tw.constant(4, "int64")):
        with pytest.raises(TypeError):
            x * 0.5
        assert (x / 2).dtype == "float64"


def test_gradients_pass_a_promotion():
    w = keras.Variable([1.0, 2.0], dtype="float32")
    with tw.GradientTape() as tape:
        y = w * tw.constant([3, 4]) + w * w
    np.testing.assert_array_equal(tape.gradient(y, w), [5.0, 8.0])
