"""The layers of `keras.applications`, as files of Keras name them."""

import pathlib

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras.models import load_model
from tapewright.layers.applications import LayerScale, StochasticDepth

REFERENCE = pathlib.Path(__file__).parent.parent / "keras" / "files" / "reference"
X = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, 8.0]], "f4")


@pytest.mark.parametrize("ending", ["keras", "h5"])
def test_a_file_of_keras_is_read_and_written_again(ending, tmp_path):
    first = load_model(REFERENCE / f"applications.{ending}")
    first.save(tmp_path / f"again.{ending}")
    for model in (first, load_model(tmp_path / f"again.{ending}")):
        expected = X * (1 + np.array([1, 2, 4]) / 4)
        np.testing.assert_allclose(model.predict(X, verbose=0), expected, rtol=1e-6)
        names = [type(layer).__name__ for layer in model.layers[1:]]
        assert names == ["LayerScale", "StochasticDepth", "CustomScaleLayer"]
        assert model.layers[1].init_values == 1e-6
        assert model.layers[2].drop_path_rate == 0.5


def test_configs_name_the_modules_of_keras():
    config = tw.layers.serialize(LayerScale(0.1, 3))
    assert config["module"] == "keras.src.applications.convnext"
    assert config["registered_name"] == config["class_name"] == "LayerScale"


def test_whole_examples_are_dropped_in_training_and_the_others_scaled_up():
    tw.random.set_seed(1)
    found = StochasticDepth(0.25)(np.ones((4000, 2, 3), "f4"), training=True).numpy()
    whole = found.reshape(4000, -1)
    assert (whole == whole[:, :1]).all()
    assert set(np.round(whole[:, 0], 5)) == {0.0, np.float32(1.33333)}
    assert abs((whole[:, 0] > 0).mean() - 0.75) < 0.03
