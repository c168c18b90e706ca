"""Models that are saved as ONNX files and loaded again, by tapewright itself."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras

from .runtime import assert_close

RNG = np.random.default_rng(8)
layers = keras.layers


def convnet():
    return keras.Sequential(
        [
            keras.Input((12, 12, 3)),
            layers.Conv2D(8, 3, padding="same"),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.MaxPooling2D(2),
            layers.SeparableConv2D(8, 3, activation="gelu"),
            layers.UpSampling2D(2),
            layers.Conv2DTranspose(4, 3, strides=2, padding="same"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(5, activation="softmax"),
        ]
    )


def transformer():
    inputs = keras.Input((None, 8))
    x = layers.MultiHeadAttention(2, 4)(inputs, inputs, use_causal_mask=True)
    x = layers.LayerNormalization()(layers.add([x, inputs]))
    return keras.Model(inputs, layers.Dense(3, activation="silu")(x))


def recurrent():
    return keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            layers.Embedding(9, 4, mask_zero=True),
            layers.Bidirectional(layers.LSTM(5, return_sequences=True)),
            layers.GRU(3),
        ]
    )


def unmasked():
    return keras.Sequential(
        [
            keras.Input((None, 4)),
            layers.LSTM(5, return_sequences=True, go_backwards=True),
            layers.GRU(3, return_sequences=True),
            layers.SimpleRNN(2),
        ]
    )


CALLS = {
    convnet: [RNG.random((n, 12, 12, 3), "f4") for n in (1, 3)],
    transformer: [RNG.random((n, t, 8), "f4") for n, t in ((1, 4), (2, 7))],
    recurrent: [RNG.integers(0, 4, s).astype("i4") for s in ((2, 5), (1, 3))],
    unmasked: [RNG.random((n, t, 4), "f4") for n, t in ((2, 5), (1, 3))],
}


@pytest.mark.parametrize("build", CALLS)
def test_a_loaded_model_has_its_outputs_and_weights(build, tmp_path):
    model, path = build(), tmp_path / "model.onnx"
    model.export(path)
    loaded = tw.onnx.load(path)
    for x in CALLS[build]:
        assert_close(loaded(x).numpy(), model(x, training=False))


@pytest.mark.parametrize("build", [convnet, transformer])
def test_a_loaded_model_can_be_trained_and_saved_again(build, tmp_path):
    build().export(tmp_path / "first.onnx")
    model = tw.onnx.load(tmp_path / "first.onnx")
    x = CALLS[build][1]
    before = float(tw.reduce_mean(model(x) ** 2))
    for _ in range(3):
        with tw.GradientTape() as tape:
            loss = tw.reduce_mean(model(x) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        assert None not in gradients
        for variable, gradient in zip(model.trainable_variables, gradients):
            variable.assign_sub(0.1 * gradient)
    assert float(tw.reduce_mean(model(x) ** 2)) < before
    tw.onnx.save(model, model.input_signature, tmp_path / "second.onnx")
    again = tw.onnx.load(tmp_path / "second.onnx")
    assert_close(again(x).numpy(), model(x))
