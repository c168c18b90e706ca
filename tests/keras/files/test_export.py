"""`Model.export`: ONNX files with the names of the model."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras

from ...formats.onnx.runtime import load, run, same_as_eager

RNG = np.random.default_rng(6)


def draws(*shapes):
    return [RNG.standard_normal(shape, "f4") for shape in shapes]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


def test_export_of_a_model_with_several_inputs_and_outputs(path):
    left, right = [keras.Input((4,), name=name) for name in ("left", "right")]
    first = keras.layers.Dense(3, name="first")(keras.layers.add([left, right]))
    model = keras.Model(
        [left, right], [first, keras.layers.Dense(2, name="second")(first)]
    )
    model.export(path)
    saved = load(path)
    assert [v.name for v in saved.graph.input] == ["left", "right"]
    assert [v.name for v in saved.graph.output] == ["first", "second"]
    x, y = draws((2, 4), (2, 4))
    for got, wanted in zip(run(path, x, y), model([x, y]), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_export_of_a_subclass_needs_a_signature(path):
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(2)

        def call(self, x, training=False):
            return self.dense(x) + (1.0 if training else 0.0)

    model = Net()
    with pytest.raises(ValueError, match="pass input_signature"):
        model.export(path)
    model.export(path, input_signature=[tw.TensorSpec([None, 3])])
    (x,) = draws((2, 3))
    np.testing.assert_allclose(run(path, x)[0], model(x), rtol=1e-5)


def test_export_says_what_it_writes(path, capsys):
    model = keras.Sequential([keras.Input((4,), name="row"), keras.layers.Dense(2)])
    model.export(path, verbose=True)
    assert f"to {path}; inputs: row" in capsys.readouterr().out
    with pytest.raises(NotImplementedError, match="format must be 'onnx'"):
        model.export(path.with_suffix(""), format="tf_saved_model")


@pytest.mark.parametrize(
    "name, size",
    [
        ("MobileNetV2", 32),
        ("MobileNetV3Small", 32),
        ("EfficientNetB0", 32),
        ("DenseNet121", 32),
    ],
)
def test_applications(name, size, path):
    build = getattr(keras.applications, name)
    model = build(weights=None, input_shape=(size, size, 3), classes=5)
    calls = [[RNG.random((n, size, size, 3), "f4")] for n in (1, 2)]
    signature = [tw.TensorSpec([None, size, size, 3])]
    same_as_eager(lambda x: model(x, training=False), signature, *calls, path=path)


def test_a_signature_may_be_a_spec_or_keras_input_spec(path):
    model = keras.Sequential([keras.layers.Dense(2)])
    for given in (
        tw.TensorSpec([None, 3]),
        keras.InputSpec(shape=(None, 3)),
        [keras.InputSpec(shape=(None, 3), dtype="float32")],
    ):
        model.export(path, input_signature=given)
        (x,) = draws((2, 3))
        np.testing.assert_allclose(run(path, x)[0], model(x), rtol=1e-5)


def test_a_model_that_returns_its_input(path):
    inputs = keras.Input((3,), name="x")
    keras.Model(inputs, [inputs, keras.layers.ReLU()(inputs)]).export(path)
    (x,) = draws((2, 3))
    np.testing.assert_array_equal(run(path, x)[0], x)
