"""`keras.Function`, `keras.Operation`: calls as nodes, in models and their files."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras

X = np.arange(6, dtype="float32").reshape(2, 3)


def power():
    """A class of operations that no module has."""

    class Power(keras.Operation):
        def __init__(self, exponent, name=None):
            super().__init__(name=name)
            self.exponent = exponent

        def call(self, x, y=0.0):
            return x**self.exponent + y

        def compute_output_spec(self, x, y=0.0):
            return x  # a new tensor is made of it

    return Power


def model_of(operation):
    x = keras.Input((3,), name="x")
    total, twice = Split(name="split")(operation(operation(x), y=x))
    return keras.Model(x, [total, twice])


class Split(keras.Operation):
    def call(self, x):
        return keras.ops.sum(x, axis=-1), x * 2


def test_an_operation_is_called_on_tensors_and_becomes_a_node_on_symbols():
    operation = power()(2.0, name="square")
    assert operation(X, y=1.0).tolist() == (X**2 + 1).tolist()
    model = model_of(operation)
    total, twice = model(X)
    np.testing.assert_allclose(twice, 2 * (X**4 + X))
    np.testing.assert_allclose(total, (X**4 + X).sum(-1))
    assert [each.name for each in model.operations] == ["x", "square", "split"]
    assert [each.name for each in model.layers] == ["x"]
    assert operation.input is model.input and operation.output.shape == (None, 3)
    traced = tw.function(model, jit_compile=True)(X)
    np.testing.assert_allclose(traced[1], twice)
    with pytest.raises(NotImplementedError, match="Operation must define call"):
        keras.Operation()(X)
    with pytest.raises(ValueError, match="without '/'"):
        keras.Operation(name="a/b")
    for thing in (model, keras.layers.Dense(1)):
        assert isinstance(thing, keras.Operation)


def test_models_with_operations_are_saved_and_loaded_with_their_classes(tmp_path):
    Power, path = power(), tmp_path / "m.keras"
    model = model_of(Power(2.0, name="square"))
    entry = model.get_config()["layers"][1]
    assert entry["config"] == {"exponent": 2.0, "name": "square"}
    model.save(path)
    with pytest.raises(
        tw.errors.SavingError, match="class 'Power' is unknown: pass custom_obj"
    ):
        keras.models.load_model(path)
    known = {"Power": Power, "Split": Split}
    for twin in (
        keras.models.load_model(path, custom_objects=known),
        keras.models.clone_model(model),
    ):
        np.testing.assert_array_equal(twin(X)[1], model(X)[1])
        assert [type(each).__name__ for each in twin.operations[1:]] == [
            "Power",
            "Split",
        ]


class Sigmoid(keras.Operation):
    """An operation that has the name of one of Keras."""

    def call(self, x):
        return x * 3


@pytest.mark.parametrize("suffix", ["keras", "h5"])
def test_an_operation_is_not_taken_for_that_of_keras_by_its_name(tmp_path, suffix):
    x = keras.Input((3,))
    outputs = keras.ops.sigmoid(Sigmoid()(Sigmoid()(keras.layers.Flatten()(x))))
    model, path = keras.Model(x, outputs), tmp_path / f"m.{suffix}"
    model.save(path)
    twin = keras.models.load_model(path, custom_objects={"Sigmoid": Sigmoid})
    np.testing.assert_allclose(twin(X), 1 / (1 + np.exp(-9 * X)), rtol=1e-6)
    with pytest.raises(tw.errors.SavingError, match="'Sigmoid' is unknown"):
        keras.models.load_model(path)


def test_a_function_runs_from_symbols_to_symbols():
    a, b = keras.KerasTensor((None, 3), name="a"), keras.Input((3,), name="b")
    function = keras.Function({"a": a, "b": [b]}, (a - b, [keras.ops.relu(b)]))
    difference, (relu,) = function({"a": X, "b": [X - 1]})
    assert difference.numpy().tolist() == [[1] * 3] * 2
    assert relu.numpy().tolist() == [[0, 0, 1], [2, 3, 4]]
    assert function.compute_output_shape({"a": (2, 3), "b": [(2, 3)]})[0] == (2, 3)
    c = keras.Input((3,))
    model = keras.Model(c, function({"a": c, "b": [c]})[1])
    assert model(-X).numpy().tolist() == [[0] * 3] * 2
    assert [x.name for x in function.inputs] == ["a", "b"] and len(
        function.outputs
    ) == 2


def test_a_function_says_what_it_takes():
    a = keras.KerasTensor((None, 3), name="a")
    b = keras.KerasTensor((None, 3), name="b")
    with pytest.raises(
        ValueError, match=r"depend on the input 'b', which is not.*\(a\)"
    ):
        keras.Function(a, a + b)
    with pytest.raises(ValueError, match="inputs must not be empty"):
        keras.Function([], a)
    function = keras.Function([a, b], a + b)
    with pytest.raises(ValueError, match=r"must have the structure \['a', 'b'\]"):
        function([X])
    with pytest.raises(
        ValueError, match=r"'b' must have shape \(None, 3\), got \(2, 2\)"
    ):
        function([X, X[:, :2]])
