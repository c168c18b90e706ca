"""`Pipeline`: the layers in turn, in training by default, with masks and in files."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras, layers


def test_layers_are_applied_in_turn_and_train_by_default(tmp_path):
    pipeline = layers.Pipeline([layers.Dense(3), layers.Dropout(0.9, seed=1)], name="p")
    x = np.ones((50, 2), "float32")
    assert (pipeline(x).numpy() == 0).any()
    assert not (pipeline(x, training=False).numpy() == 0).any()
    assert sorted(pipeline.get_config()) == ["layers", "name"]
    model = keras.Sequential([keras.Input((2,)), pipeline])
    model.save(tmp_path / "m.keras")
    twin = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(
        twin.predict(x, verbose=0), model.predict(x, verbose=0)
    )
    with pytest.raises(ValueError, match="must be a list of configs, got None"):
        layers.Pipeline.from_config({"name": "p"})
    with pytest.raises(ValueError, match="must be a list of layers, got <Dense"):
        layers.Pipeline(layers.Dense(1))


def test_a_mask_goes_from_layer_to_layer_and_out():
    ids = np.array([[1, 2, 0]])
    pipeline = layers.Pipeline([layers.Embedding(4, 2, mask_zero=True), layers.LSTM(3)])
    plain = pipeline.layers[1](pipeline.layers[0](ids[:, :2]))
    np.testing.assert_allclose(pipeline(ids), plain, rtol=1e-5, atol=1e-6)
    out = layers.Pipeline([layers.Masking(), layers.Dropout(0.0)])(tw.zeros((1, 2, 3)))
    assert out._keras_mask.numpy().tolist() == [[False, False]]
    given = layers.Pipeline([layers.GlobalAveragePooling1D()])
    y = given([[[1.0], [2.0]]], mask=np.array([[True, False]]))
    assert y.numpy().tolist() == [[1.0]]
