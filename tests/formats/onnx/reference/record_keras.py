"""Record models that Keras exports with tf2onnx: `keras_NAME.onnx` and `keras.npz` here.

    pip install tensorflow-cpu==2.21.0 keras==3.15.1 tf2onnx onnx
    python tests/formats/onnx/reference/record_keras.py

Inputs and outputs are named as in ``record_models.py``.
"""

import os
import tempfile
from pathlib import Path

os.environ["KERAS_BACKEND"] = "tensorflow"

import numpy as np
import onnx

import keras
from keras import layers

HERE = Path(__file__).parent


def convnet():
    x = inputs = layers.Input((12, 10, 3))
    x = layers.Conv2D(6, 3, strides=2, padding="same", activation="relu")(x)
    x = layers.BatchNormalization()(x)
    x = layers.DepthwiseConv2D(3, padding="same", depth_multiplier=2)(x)
    x = layers.LeakyReLU(0.1)(layers.LayerNormalization()(x))
    x = layers.MaxPooling2D(2)(x)
    x = layers.SeparableConv2D(8, 2, activation="silu")(x)
    x = layers.Conv2DTranspose(4, 3, strides=2, padding="same")(x)
    x = layers.concatenate([x, layers.UpSampling2D(2, interpolation="bilinear")(
        layers.AveragePooling2D(2, padding="same")(x))])  # fmt: skip
    x = layers.Dropout(0.5)(layers.GlobalAveragePooling2D()(x))
    return keras.Model(inputs, layers.Dense(5, activation="softmax")(x))


def recurrent():
    x = inputs = layers.Input((None, 4))
    x = layers.Bidirectional(layers.LSTM(5, return_sequences=True))(x)
    x = layers.GRU(6, return_sequences=True)(x)
    return keras.Model(inputs, layers.Dense(3)(layers.SimpleRNN(4)(x)))


def transformer():
    inputs = layers.Input((None,), dtype="int32")
    x = layers.Embedding(20, 8)(inputs)
    y = layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    x = layers.LayerNormalization()(x + y)
    x = layers.Dense(8)(layers.Dense(16, activation="silu")(x)) + x
    return keras.Model(inputs, layers.Dense(20)(x))


def main():
    keras.utils.set_random_seed(0)
    rng, arrays = np.random.default_rng(0), {}
    floats = lambda *shape: rng.normal(size=shape).astype("float32")  # noqa: E731
    words = lambda *shape: rng.integers(0, 20, shape).astype("int32")  # noqa: E731
    for build, first, second in (
        (convnet, floats(3, 12, 10, 3), floats(2, 12, 10, 3)),
        (recurrent, floats(3, 7, 4), floats(2, 5, 4)),
        (transformer, words(3, 7), words(2, 5)),
    ):
        model = build()
        for weight in model.weights:
            if len(weight.shape) == 1:
                weight.assign(rng.uniform(0.2, 1.0, weight.shape))
        model(first)
        with tempfile.TemporaryDirectory() as folder:
            model.export(f"{folder}/model.onnx", format="onnx", verbose=False)
            proto = onnx.load(f"{folder}/model.onnx")
        proto.graph.ClearField("value_info")
        onnx.save(proto, HERE / f"keras_{build.__name__}.onnx")
        print(
            build.__name__, len(proto.graph.node), proto.ByteSize(), proto.opset_import
        )
        for key, x in (("a", first), ("b", second)):
            arrays[f"{build.__name__}:{key}_x0"] = x
            arrays[f"{build.__name__}:{key}_y0"] = model(x).numpy()
    np.savez_compressed(HERE / "keras.npz", **arrays)


if __name__ == "__main__":
    main()
